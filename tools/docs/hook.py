"""The hook of MkDocs: what the site shows beside the pages as they are written.

- Markers such as `<!-- settings -->` are replaced by tables from the code, or by another page.
  The pages with a marker are real files, so that links to them work in the repository too.
- Links to files outside docs/ become links to pages of the site that show those files.
- Where NAME-dark.svg stands beside NAME.svg, each is shown in its theme.
- Formulas become MathML, which browsers show without a script.
"""

import posixpath
import re
import sys
from importlib import import_module
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]  # mkdocs runs hooks without the folder that it was started in

from tools.docs import formulas  # noqa: E402

FENCE = re.compile(r"^( *)(`{3,})[^`\n]*\n.*?^ *\2 *$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(
    r"(?P<open>!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(|^ *\[[^\]]+\]: +)(?P<to>[^)\s#]+)", re.MULTILINE
)
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)(\{[^}\n]*\})?")
# Files of the repository that are part of a page.
SHOWN_BY = {"results/README.md": "results.md"}
MARKERS = {
    "<!-- settings -->": lambda: _made_by("settings"),
    "<!-- commands -->": lambda: _made_by("commands"),
    "<!-- results -->": lambda: _rest_of("results/README.md", "results.md"),
}
LANGUAGES = {
    ".py": "python",
    ".toml": "toml",
    ".json": "json",
    ".yml": "yaml",
    ".sh": "sh",
    ".csv": "text",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages for the files of the repository to which pages link."""
    waiting = [(f"docs/{page.src_uri}", page.content_string) for page in files.documentation_pages()]
    waiting += [(source, _read(source)) for source in SHOWN_BY]
    while waiting:
        source, text = waiting.pop()
        for target in _targets(source, text):
            uri = _site_uri(target)
            if target.startswith("docs/") or files.get_file_from_path(uri) is not None:
                continue
            if not (ROOT / target).exists():
                raise PluginError(f"{source} links to {target}, which does not exist.")
            files.append(_shown(config, target, uri))
            if target.endswith(".md"):
                waiting.append((target, _read(target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in markers, and rewrite links and images."""
    uri = page.file.src_uri
    source = f"docs/{uri}"
    if uri.startswith("repository/") and uri.endswith(".md.md"):
        source = uri.removeprefix("repository/").removesuffix(".md")
    markdown = _relinked(markdown, source, uri)
    for marker, fill in MARKERS.items():
        if marker in markdown:
            markdown = markdown.replace(marker, fill())
    return _outside_code(markdown, lambda text: _themed(text, uri, files))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn formulas into MathML."""
    return formulas.to_mathml(html, page.file.src_uri)


def _made_by(module: str) -> str:
    """Return the page that a module makes; it is imported here because it imports torch."""
    page: str = import_module(f"tools.docs.{module}").page()
    return page


def _rest_of(source: str, uri: str) -> str:
    """Return a page of the repository without its title, for the page of the site at `uri`."""
    return _relinked(re.sub(r"\A# .*\n", "", _read(source)), source, uri)


def _outside_code(markdown: str, change) -> str:
    """Change the parts of a page that are not code."""
    parts, at = [], 0
    for code in _code(markdown):
        parts += [change(markdown[at : code[0]]), markdown[code[0] : code[1]]]
        at = code[1]
    return "".join([*parts, change(markdown[at:])])


def _code(markdown: str) -> list[tuple[int, int]]:
    """Return where blocks of code are. Code within a line may be the text of a link."""
    return [match.span() for match in FENCE.finditer(markdown)]


def _targets(source: str, text: str) -> list[str]:
    """Return the files of the repository to which a page of it links."""
    text = CODE.sub(_kept, FENCE.sub("", text))
    found = [_resolved(match["to"], source) for match in LINK.finditer(text)]
    return [target for target in found if target]


def _read(source: str) -> str:
    return (ROOT / source).read_text(encoding="utf-8")


def _kept(code: re.Match[str]) -> str:
    """Return code within a line without its brackets, which make no link."""
    return re.sub(r"[\[\]()]", "·", code[0])


def _resolved(link: str, source: str) -> str:
    """Return the file of the repository to which a link leads, or nothing if it leads elsewhere."""
    if re.match(r"[a-z]+:|/|<", link):
        return ""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    return "" if target.startswith("..") else target


def _site_uri(target: str) -> str:
    """Return the file of the site that shows a file of the repository."""
    if target in SHOWN_BY:
        return SHOWN_BY[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    if Path(target).suffix in (".png", ".svg", ".gif", ".webp"):
        return f"repository/{target}"
    return f"repository/{target}.md"


def _relinked(markdown: str, source: str, uri: str) -> str:
    """Return a page whose links lead to files of the site."""

    def change(match: re.Match[str]) -> str:
        target = _resolved(match["to"], source)
        if not target or (target.startswith("docs/") and source == f"docs/{uri}"):
            return match[0]
        return match["open"] + posixpath.relpath(_site_uri(target), posixpath.dirname(uri) or ".")

    return _outside_code(markdown, lambda text: LINK.sub(change, text))


def _shown(config: MkDocsConfig, target: str, uri: str) -> File:
    """Return a file of the site that shows a file of the repository."""
    path = ROOT / target
    level = InclusionLevel.NOT_IN_NAV
    if not uri.endswith(".md"):
        return File.generated(config, uri, content=path.read_bytes(), inclusion=level)
    if path.is_dir():
        names = sorted(
            one.name + "/" * one.is_dir() for one in path.iterdir() if one.name[0] not in "_."
        )
        text = f"# {target}/\n\n" + "\n".join(f"- `{name}`" for name in names)
    elif path.suffix == ".md":
        text = _read(target)
    else:
        ticks = "`" * 6
        language = LANGUAGES.get(path.suffix, "text")
        text = f"# {target}\n\n{ticks}{language}\n{_read(target)}\n{ticks}\n"
    return File.generated(config, uri, content=text, inclusion=level)


def _themed(markdown: str, uri: str, files: Files) -> str:
    """Show each figure that has a dark sibling in its theme."""

    def change(match: re.Match[str]) -> str:
        alt, link, attributes = match[1], match[2], match[3] or ""
        stem, dot, suffix = link.rpartition(".")
        dark = posixpath.normpath(posixpath.join(posixpath.dirname(uri), f"{stem}-dark{dot}{suffix}"))
        if not stem or files.get_file_from_path(dark) is None:
            return match[0]
        light = f"![{alt}]({link}#only-light){attributes}"
        return f"{light}\n![{alt}]({stem}-dark.{suffix}#only-dark){attributes}"

    return IMAGE.sub(change, markdown)
