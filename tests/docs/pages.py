"""The pages whose snippets are run, by the file of tests that runs them."""

from tests.helpers.snippets import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def pages(*folders):
    """Return pytest parameters: the pages in these folders of the docs, or with no folder all others."""
    own = ("guides", "reference")
    return [
        page for page in PAGES if _folder(page) in folders or (not folders and _folder(page) not in own)
    ]


def _folder(page):
    return page.relative_to(ROOT).parts[1] if page.is_relative_to(DOCS) else ""


def name(page):
    return str(page.relative_to(ROOT))
