"""What the site has beside the pages of docs/: the reference, sources that pages link to, and formulas as MathML."""

from __future__ import annotations

import html
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

import cpp_reference
import python_reference

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\]\(([^)\s#:]+)(#[^)\s]*)?\)")
LANGUAGES = {"": "text", ".h": "cpp", ".cu": "cpp", ".txt": "text"}  # where the suffix is not the language's name

# Where a file of the repository is among the site's pages.
places: dict[str, str] = {
    "README.md": "index.md",
    "attune/attune.h": "reference/cpp.md",
    "python/attune/__init__.py": "reference/python.md",
}


def target(path: str, link: str) -> str:
    """What a link of the file at `path` leads to, as a path in the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def source_page(path: str) -> str:
    language = LANGUAGES.get(Path(path).suffix, Path(path).suffix[1:])
    text = (ROOT / path).read_text(encoding="utf-8")
    header = "---\nhide: [navigation, toc]\nsearch: {exclude: true}\n---\n"
    return f"{header}# {path}\n\n``````{language}\n{text}\n``````\n"


def on_files(files: Files, config: Any) -> Files:
    """Adds the reference, and a page for each file that a page links to."""

    def add(place: str, text: str) -> None:
        files.append(File.generated(config, place, content=text))

    headers = cpp_reference.public_headers(ROOT)
    headers.remove("attune/attune.h")  # the index takes its place
    for header in headers:
        places[header] = f"reference/{header}.md"
        add(places[header], cpp_reference.page(header, (ROOT / header).read_text(encoding="utf-8")))
    add("reference/cpp.md", cpp_reference.index(headers, ROOT))
    add("reference/python.md", python_reference.page(ROOT))
    add("site.css", (ROOT / "site" / "site.css").read_text(encoding="utf-8"))

    waiting = ["CHANGELOG.md", "CONTRIBUTING.md"]
    for file in sorted((ROOT / "docs").rglob("*.md")):
        path = file.relative_to(ROOT).as_posix()
        places[path] = path.removeprefix("docs/")
        waiting += [target(path, link) for link, _ in LINK.findall(file.read_text(encoding="utf-8"))]
    while waiting:
        path = waiting.pop()
        if path in places or path.startswith("docs/") or not (ROOT / path).is_file():
            continue
        if path.endswith(".md"):
            text = (ROOT / path).read_text(encoding="utf-8")
            places[path] = path if "/" not in path else f"source/{path}"
            waiting += [target(path, link) for link, _ in LINK.findall(text)]
            add(places[path], text)
        else:
            places[path] = f"source/{path}.md"
            add(places[path], source_page(path))
    return files


def widened(markdown: str) -> str:
    """Lists as Python-Markdown wants them: what belongs to an item is indented by 4, where CommonMark takes as much as
    the marker has, and an item after a paragraph has an empty line in front of it."""
    items: list[tuple[int, int]] = []  # that are open: the indentation of their content, there and here
    lines: list[str] = [""]
    fence = paragraphs = False
    for line in markdown.splitlines():
        text = line.lstrip()
        indent = len(line) - len(text)
        while items and text and not fence and indent < items[-1][0]:
            items.pop()
        there, here = items[-1] if items else (0, 0)
        marker = None if fence else re.match(r"(?:[-*]|\d+\.) +", text)
        if marker and paragraphs and lines[-1]:
            lines.append("")
        lines.append(" " * max(0, indent - there + here) + text if text else "")
        fence ^= text.startswith("```")
        paragraphs = not text or (paragraphs and not marker)
        if marker:
            items.append((indent + len(marker[0]), here + 4))
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to files of the repository lead to their pages."""
    place = page.file.src_uri
    path = next((path for path, found in places.items() if found == place and path != "README.md"), place)

    def changed(link: re.Match[str]) -> str:
        found = places.get(target(path, link[1]))
        return f"]({posixpath.relpath(found, posixpath.dirname(place) or '.')}{link[2] or ''})" if found else link[0]

    return LINK.sub(changed, widened(markdown))


def on_page_content(content: str, **_: Any) -> str:
    """Formulas become MathML, which browsers show without a program."""

    def formula(found: re.Match[str]) -> str:
        display = "block" if found[1] == "div" else "inline"
        math = convert(html.unescape(found[2]).strip(), display=display)
        math = math.replace("<mi>log</mi>", '<mi>log</mi><mspace width="0.17em"/>')
        return f'<div class="formula">{math}</div>' if display == "block" else math

    return re.sub(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', formula, content, flags=re.DOTALL)
