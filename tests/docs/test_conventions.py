"""The code blocks of every page are written so that the tests know what to do with them."""

import re
import shlex

import pytest

from quantail.cli.main import COMMANDS
from tests.docs.pages import DOCS, PAGES, name
from tests.helpers.snippets import ROOT, blocks_of

SITE = [page for page in PAGES if page.is_relative_to(DOCS)]
RUN = {"python", "console"}
SHOWN = {"sh", "text", "toml", "json", "yaml", "csv", "html"}
# What cannot run in a test: installing, other machines, windows, and hours of training.
NOT_RUN = {
    *("make", "pip", "python", "git", "cd", "source", "export", "ssh", "scp", "ray", "sbatch", "docker"),
    *("apt-get", "brew", "for", "done", "wait", "quantail", ".venv/bin/quantail"),
}


@pytest.mark.parametrize("page", SITE, ids=name)
def test_every_code_block_has_a_language(page):
    for block in blocks_of(page):
        assert block.language in RUN | SHOWN, f"{page.name}, line {block.line - 1}: {block.language!r}"
        assert not block.title or block.language in {"python", "toml"}, f"{page.name}: {block.title}"


@pytest.mark.parametrize("page", SITE, ids=name)
def test_a_console_block_begins_with_a_command(page):
    for block in blocks_of(page):
        if block.language == "console":
            assert block.text.startswith("$ "), f"{page.name}, line {block.line}"
            assert all(command for _, command in block.commands), f"{page.name}, line {block.line}"


@pytest.mark.parametrize("page", SITE, ids=name)
def test_a_shell_block_has_only_what_cannot_run_in_a_test(page):
    for block in blocks_of(page):
        for line in block.text.splitlines() if block.language == "sh" else ():
            if (words := shlex.split(line, comments=True)) and not line.startswith(" "):
                assert words[0] in NOT_RUN or re.match(r"[A-Z_]+=", words[0]), f"{page.name}: {line}"


def test_the_commands_that_the_readme_lists_exist():
    listed = [
        line.removeprefix(".venv/bin/")
        for block in blocks_of(ROOT / "README.md")
        for line in block.text.splitlines()
    ]
    commands = [line.partition("#")[0] for line in listed if line.startswith("quantail ")]
    named = {command for line in commands for command in _subcommands(line)}
    assert len(named) > 10
    assert named <= set(COMMANDS), named - set(COMMANDS)


def _subcommands(line):
    """Return the commands in a line such as `quantail agents | risks` or `quantail eval RUN`."""
    first, *others = line.removeprefix("quantail ").split(" | ")
    return [one.split()[0] for one in (first, *others) if one[0].islower()]


def test_no_page_stands_outside_the_tests():
    assert len(PAGES) == len(set(PAGES)) == 1 + len(list(DOCS.rglob("*.md")))
