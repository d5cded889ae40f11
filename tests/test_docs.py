"""The docs agree with the code. Their snippets are run by the tests in tests/docs."""

import re
from pathlib import Path

import pytest

from quantail.networks.heads import HEADS
from quantail.networks.torsos import TORSOS
from quantail.recipes import AGENTS, composition
from quantail.registry import KINDS
from quantail.settings import shown

DOCS = Path(__file__).parent.parent / "docs"
ROW = re.compile(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agents_page_shows_its_published_settings_with_their_sources(agent):
    page = (DOCS / "reference" / "agents" / f"{agent}.md").read_text(encoding="utf-8")
    composed = composition("atari-paper", {"agent": agent})
    config, values = composed.config, composed.config.to_dict()
    rows = {name: (value, source) for name, value, _, source in ROW.findall(page)}
    assert len(rows) > 10
    for name, (value, source) in rows.items():
        assert value == shown(values[name]), name
        assert source == composed.sources.get(name, config.about(name).source), name
        assert config.is_active(name), name
    assert set(AGENTS[agent].parts) <= set(rows)
    assert set(AGENTS[agent].on.get("atari-paper", {})) <= set(rows)
    assert AGENTS[agent].paper.split("arXiv ")[-1] in page or "Nature" in page


def test_every_link_between_docs_has_an_existing_target():
    for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_file_of_ours_that_the_docs_name_exists():
    root = DOCS.parent
    for page in [*DOCS.rglob("*.md"), root / "README.md", root / "CONTRIBUTING.md"]:
        for name in re.findall(
            r"`((?:tests|tools|docs|quantail|benchmarks)/[\w./-]+)`", page.read_text()
        ):
            assert (root / name).exists(), f"{page.name}: {name}"


def test_the_readme_and_the_page_of_agents_list_every_agent_and_head():
    page = (DOCS / "reference" / "agents" / "index.md").read_text(encoding="utf-8")
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    for name, recipe in AGENTS.items():
        assert f"| [{name}]({name}.md) | {recipe.parts['head']} |" in page, name
        assert f"`{name}`" in readme, name
    for name in HEADS:
        assert f"| `{name}` |" in page, name


def test_the_page_of_own_parts_has_every_kind_with_its_base_class():
    page = (DOCS / "guides" / "extending.md").read_text(encoding="utf-8")
    for kind, about in KINDS.items():
        base = about.base.partition(":")[2]
        assert re.search(rf"^\|[^|]*{kind}[^|]*\|[^|]*\| `[\w.]*\b{base}`", page, re.MULTILINE), kind


def test_the_page_of_environments_lists_every_torso():
    page = (DOCS / "reference" / "environments.md").read_text(encoding="utf-8")
    for name in ("auto", *TORSOS):
        assert f"| `{name}`" in page, name
