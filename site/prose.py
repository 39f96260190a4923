"""Comments as Markdown: what is not `code` is escaped, so that it shows as it is written."""

from __future__ import annotations

import re
from itertools import groupby


def escaped(line: str) -> str:
    parts = re.split(r"(`[^`]+`)", line)
    return "".join(p if p.startswith("`") else re.sub(r"([\\`*_<>\[\]$#|])", r"\\\1", p) for p in parts)


def prose(lines: list[str]) -> str:
    """Paragraphs; lines that are indented, and examples from >>> to the next empty line, stay as they are."""
    kinds, example = [], False
    for line in lines:
        example = line.startswith(">>>") or (example and bool(line.strip()))
        kinds.append("pycon" if example else "text" if line.startswith("  ") else "")
    text = ""
    for kind, numbered in groupby(enumerate(lines), key=lambda pair: kinds[pair[0]]):
        part = [line for _, line in numbered]
        text += f"\n``````{kind}\n" + "\n".join(part) + "\n``````\n\n" if kind else "\n".join(map(escaped, part)) + "\n"
    return text.strip()
