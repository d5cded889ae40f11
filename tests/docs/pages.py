"""The pages whose snippets are run, by the file of tests that runs them."""

from tests.helpers.snippets import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


# The guides that run studies and long evaluations take as long as all others together.
LONG = ("evaluation.md", "scale.md", "studies.md")


def pages(part=""):
    """Return the pages in a folder of the docs; those of no part are the README and all others."""
    return [page for page in PAGES if _part(page) == part]


def _part(page):
    folder = page.relative_to(ROOT).parts[1] if page.is_relative_to(DOCS) else ""
    if folder == "guides":
        return "long guides" if page.name in LONG else "guides"
    return "reference" if folder == "reference" else ""


def name(page):
    return str(page.relative_to(ROOT))
