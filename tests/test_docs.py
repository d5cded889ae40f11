"""The settings in the docs agree with the code."""

import re
from pathlib import Path

import pytest

from quantail.networks.torsos import TORSOS
from quantail.recipes import AGENTS, compose, sources
from quantail.settings import ABOUT, shown

DOCS = Path(__file__).parent.parent / "docs"
ROW = re.compile(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agents_page_shows_its_published_settings_with_their_sources(agent):
    page = (DOCS / "agents" / f"{agent}.md").read_text(encoding="utf-8")
    settings, origins = (
        compose("atari-paper", {"agent": agent}),
        sources("atari-paper", {"agent": agent}),
    )
    rows = {name: (value, source) for name, value, _, source in ROW.findall(page)}
    assert len(rows) > 10
    for name, (value, source) in rows.items():
        assert value == shown(getattr(settings, name)), name
        assert source == origins.get(name, ABOUT[name].source), name
        assert settings.is_active(name), name
    assert set(AGENTS[agent].parts) <= set(rows)
    assert set(AGENTS[agent].on.get("atari-paper", {})) <= set(rows)
    assert AGENTS[agent].paper.split("arXiv ")[-1] in page or "Nature" in page


def test_every_link_between_docs_has_an_existing_target():
    for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_page_of_environments_lists_every_torso():
    page = (DOCS / "environments.md").read_text(encoding="utf-8")
    for name in ("auto", *TORSOS):
        assert f"| `{name}`" in page, name
