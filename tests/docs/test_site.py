"""The docs site: built strictly, complete, and without anything from other hosts."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import pytest

import quantail
from quantail import testing
from quantail.cli.main import COMMANDS
from quantail.config import flat_settings
from quantail.recipes import PRESETS
from tests.helpers.snippets import ROOT
from tools.docs.tables import plain


def build(folder, *options):
    """Build the site into a folder."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder), *options]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def pages(tmp_path):
    """A site of one page: the function takes its text and returns how its build went."""

    def built(text):
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / "index.md").write_text(text, encoding="utf-8")
        settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[0]
        settings = settings.replace("tools/docs/hook.py", str(ROOT / "tools/docs/hook.py"))
        settings = settings.replace("  - assets/site.css", "  []")
        (tmp_path / "mkdocs.yml").write_text(settings, encoding="utf-8")
        return build(tmp_path / "site", "-f", str(tmp_path / "mkdocs.yml"))

    return built


class _Loads(HTMLParser):
    """What a browser fetches by itself when it shows a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed", "object"):
            self.found += [given.get(name) or "" for name in ("src", "srcset", "data", "poster")]
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.found.append(given.get("href") or "")


def test_the_site_loads_nothing_from_other_hosts(site):
    for page in site.rglob("*.html"):
        loads = _Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        assert loads.found
        assert not [one for one in loads.found if re.match("(https?:)?//", one)], page
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"(url\(\s*[\"']?|@import\s+[\"'])(https?:)?//", text), style


def test_formulas_need_no_script(site):
    pages = [page.read_text(encoding="utf-8") for page in site.rglob("*.html")]
    assert not any("mathjax" in page.lower() or "katex" in page.lower() for page in pages)
    assert any("<math " in page for page in pages)


def test_every_public_name_is_on_the_page_of_the_api(site):
    page = (site / "reference/api/index.html").read_text(encoding="utf-8")
    names = [f"quantail.{name}" for name in quantail.__all__]
    names += [f"quantail.testing.{name}" for name in testing.__all__]
    missing = [name for name in names if f'id="{name}"' not in page]
    assert not missing


def test_every_name_on_the_page_of_the_api_has_a_docstring_and_can_be_imported():
    page = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    names = re.findall(r"^::: (.*)$", page, re.MULTILINE)
    assert len(names) == len(set(names)) > 60
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert getattr(importlib.import_module(module), attribute).__doc__, name


def test_the_page_of_settings_has_every_setting_and_preset(site):
    page = (site / "reference/settings/index.html").read_text(encoding="utf-8")
    for name in flat_settings():
        assert name == "preset" or f'id="{name}"' in page, name
    for name in PRESETS:
        assert f"<code>{name}</code>" in page, name
    rows = dict(re.findall(r'<a id="(\w+)".*?<td>(.*?)</tr>', page, re.DOTALL))
    assert "0.00005" in rows["learning_rate"] or "5e-05" in rows["learning_rate"]
    assert "<code>minatar</code>" in rows["learning_rate"]
    assert "whole number of steps, at least 1" in rows["n_step"]
    assert "QR-DQN, Dabney et al. 2017" in rows["learning_rate"]


def test_the_manual_of_the_command_line_has_every_command_with_its_options(site):
    page = (site / "reference/command-line/index.html").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f'<h2 id="{name}">' in page, name
    for option in ("--protocol NAME", "--checkpoint last|best|N", "--engine"):
        assert f"<code>{option}" in page, option
    assert "%(" not in page


def test_results_are_a_page_with_their_figures(site):
    page = site / "results/index.html"
    text = page.read_text(encoding="utf-8")
    figures = re.findall(r'<img[^>]*src="([^"#]+)', text)
    assert len(figures) >= 3
    assert all((page.parent / figure).resolve().is_file() for figure in figures)
    assert "learning_rate" in text


def test_a_build_names_the_page_of_every_broken_link_and_fails(pages):
    done = pages("# Title\n\n[a](nowhere.md) [b](#nowhere) ![c](nowhere.png)\n\n`[x](code.md)`\n")
    assert done.returncode != 0
    assert "Doc file 'index.md' contains a link '#nowhere'" in done.stderr
    for target in ("nowhere.md", "nowhere.png"):
        assert (
            f"Doc file 'index.md' contains a link '{target}', but the target is not found" in done.stderr
        )
    assert "code.md" not in done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[there](../quantail/nowhere.py)",
            "docs/index.md links to quantail/nowhere.py, which does not",
        ),
        (r"So \(\nowhere\) is", r"index.md has a formula with \nowhere"),
        (r"So \[ \frac{1}{2} \]", "is a paragraph of its own"),
        ("::: quantail.nowhere", "quantail.nowhere could not be found"),
    ],
)
def test_a_build_fails_with_a_sentence_on_what_is_wrong(pages, text, says):
    done = pages(f"# Title\n\n{text}\n")
    assert done.returncode != 0
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_the_hook_shows_files_of_the_repository_and_figures_for_both_themes(pages, tmp_path):
    (tmp_path / "docs").mkdir()
    source = next(ROOT.glob("docs/images/*.png"))
    for name in ("one.png", "one-dark.png", "two.png"):
        shutil.copy(source, tmp_path / "docs" / name)
    done = pages(
        "# Title\n\n![a](one.png){ width=100 } ![b](two.png)\n\n"
        "[Example](../examples/adaptive_risk.py) and [folder](../tests/plugin)\n\n"
        "```text\n[x](../none.py) ![a](one.png)\n```\n"
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    assert re.findall(r'src="(\w+(?:-dark)?\.png[^"]*)"', page) == [
        *("one.png#only-light", "one-dark.png#only-dark"),
        "two.png",
    ]
    assert 'href="repository/examples/adaptive_risk.py/"' in page
    assert "[x](../none.py) ![a](one.png)" in page
    example = (tmp_path / "site/repository/examples/adaptive_risk.py/index.html").read_text("utf-8")
    assert "adaptive_risk.py" in example
    assert (tmp_path / "site/repository/tests/plugin/index.html").exists()


def test_text_in_tables_is_shown_as_it_is():
    assert plain("a_b * <c> `d_e` [f]") == r"a\_b \* &lt;c> `d_e` \[f\]"
