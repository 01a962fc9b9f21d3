"""Checks of the documentation that Sphinx does not make: `python docs/extensions/checks.py`, as `make docs` does.

- Every image has an alt text: in Markdown, and in the pages that were built, where figures of code cells are images.
- Python code is run: it is a code cell, or a comment before it says why it is not: `% not a cell: REASON`.
- Links lead somewhere: those of Markdown files to files and headings, those of the built pages to pages and ids.
- Built pages load nothing from another host.
"""

import ast
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
OUTSIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
RUN_BY_TESTS = ("README.md",)
"""Files whose Python blocks a test runs as they are."""
REASON = re.compile(r"% not a cell: \S.*")
PYTHON = ("python", "py", "python3", "pycon", "ipython", "ipython3")
NOT_BUILT = ("_build", "jupyter_execute")


def markdown_files(root: Path) -> list[Path]:
    """All documents of a project: those of its root by name, and those under `docs`."""
    pages = sorted(path for path in root.glob("docs/**/*.md") if not set(path.parts) & set(NOT_BUILT))
    return [path for name in OUTSIDE if (path := root / name).exists()] + pages


def flat(tokens: list[Token]) -> Iterator[tuple[Token, int]]:
    """Tokens and their children, with the line on which they begin."""
    line = 1
    for token in tokens:
        line = token.map[0] + 1 if token.map else line
        yield token, line
        for child in token.children or ():
            yield child, line


def without_front_matter(text: str) -> str:
    """A text whose front matter is blank lines, so that numbers of lines stay."""
    found = re.match(r"---\n.*?\n---\n", text, re.DOTALL)
    return "\n" * found[0].count("\n") + text[found.end() :] if found else text


def parsed(text: str) -> list[tuple[Token, int]]:
    return list(flat(MarkdownIt("commonmark").enable("table").parse(without_front_matter(text))))


def slug(heading: str) -> str:
    """The anchor that GitHub and MyST give to a heading.

    >>> slug("Use it: `TPRAttention`, now")
    'use-it-tprattention-now'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).strip().replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Headings of a document as anchors, in both forms that MyST knows, and the labels that are written before them."""
    tokens = [token for token, _ in parsed(text)]
    headings = {inline.content for first, inline in pairwise(tokens) if first.type == "heading_open"}
    ids = {re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-") for heading in headings}
    return ids | {slug(heading) for heading in headings} | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))


def image_problems(text: str) -> Iterator[str]:
    for token, line in parsed(text):
        if token.type == "image" and not token.content.strip():
            yield f"{line}: image without alt text: {token.attrs['src']}"
        directive = re.fullmatch(r"\{(?:image|figure)\} *(\S+)", token.info.strip())
        if directive and not re.search(r"^:alt: *\S", token.content, re.MULTILINE):
            yield f"{line}: image without alt text: {directive[1]}"
        if token.type in ("html_block", "html_inline"):
            for tag in re.findall(r"<img\b[^>]*>", token.content):
                if not re.search(r'\balt="[^"]+"', tag):
                    yield f"{line}: image without alt text: {tag}"


def imports_something(code: str) -> bool:
    """Whether a block is Python that imports: who left out its language did not make it other than Python."""
    try:
        return any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(ast.parse(code)))
    except SyntaxError:
        return False


def code_problems(text: str) -> Iterator[str]:
    lines = text.splitlines()
    for token, line in parsed(text):
        if token.type not in ("fence", "code_block"):
            continue
        language = token.info.split()[0] if token.info.strip() else ""
        if language in PYTHON or (not language and imports_something(token.content)):
            before = next((one for one in reversed(lines[: line - 1]) if one.strip()), "")
            if not REASON.fullmatch(before.strip()):
                yield f"{line}: Python code that is not run: make it a code cell, or say why: % not a cell: REASON"


def link_problems(path: Path, text: str) -> Iterator[str]:
    for token, line in parsed(text):
        target = token.attrs.get("href") if token.type == "link_open" else token.attrs.get("src", "")
        parts = urlsplit(str(target or ""))
        if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
            continue
        file = path.parent / unquote(parts.path) if parts.path else path
        if not file.exists():
            yield f"{line}: link to a file that is not there: {target}"
        elif parts.fragment and file.suffix == ".md" and parts.fragment not in anchors(file.read_text()):
            yield f"{line}: link to a heading that is not there: {target}"


def problems_of_documents(root: Path) -> list[str]:
    """What is wrong with the Markdown files of a project, each with its file and line."""
    found = []
    for path in markdown_files(root):
        text = path.read_text()
        name = path.relative_to(root)
        found += [f"{name}:{problem}" for problem in image_problems(text)]
        found += [f"{name}:{problem}" for problem in link_problems(path, text)]
        if path.name not in RUN_BY_TESTS:
            found += [f"{name}:{problem}" for problem in code_problems(text)]
    return found


class Page(HTMLParser):
    """Ids, links, images and loaded addresses of a built page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.bad_images: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids |= {one for name in ("id", "name") if (one := values.get(name))}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"] or "")
        if tag == "img":
            source, alt = values.get("src") or "", (values.get("alt") or "").strip()
            if not alt or Path(alt).name == Path(source).name:
                self.bad_images.append(source)
        if tag in ("img", "script", "iframe", "source") and values.get("src"):
            self.loaded.append(values["src"] or "")
        if tag == "link" and values.get("rel") in ("stylesheet", "preload", "icon"):
            self.loaded.append(values.get("href") or "")


def problems_of_pages(built: Path) -> list[str]:
    """What is wrong with the pages that were built, each with its page."""
    pages = {path: Page(path.read_text()) for path in sorted(built.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(built)
        found += [f"{name}: image without alt text: {source}" for source in page.bad_images]
        found += [f"{name}: loads from another host: {address}" for address in page.loaded if urlsplit(address).netloc]
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.exists():
                found.append(f"{name}: link to a page that is not there: {link}")
            elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].ids:
                found.append(f"{name}: link to an id that is not there: {link}")
    return found


def main(root: Path, built: Path | None) -> int:
    """Print every problem. Returns 1 if there is one."""
    found = problems_of_documents(root) + (problems_of_pages(built) if built else [])
    sys.stdout.write("".join(f"{problem}\n" for problem in found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(ROOT, Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None))
