"""Pages of the reference from the public headers: attune/attune.h, attune/c.h and what they include.

Headers are formatted by clang-format, so that what begins at the margin is a declaration, or the comment above it.
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from prose import prose

HIDE = "---\nhide: [navigation]\n---\n"  # code has up to 120 columns

# What configuration files and other programs of Attune's need, and nobody else.
INTERNAL = re.compile(r"^(struct (EnumNames|VariantNames)<|(void|bool|auto) visit_\w+\()", re.MULTILINE)
TYPE = re.compile(r"^(?:class|struct|enum class|using|concept)\s+(?:\[\[.*?\]\]\s+)?(\w+)(?=[\s;:={])", re.MULTILINE)
FUNCTION = re.compile(r"\b(?!decltype\b)(~?\w+|operator\S+)\s*\(")
CONSTANT = re.compile(r"(\w+)(?:\[\])? =")


def public_headers(root: Path) -> list[str]:
    found: list[str] = []
    waiting = ["attune/attune.h", "attune/c.h"]
    while waiting:
        header = waiting.pop(0)
        if header not in found:
            found.append(header)
            text = (root / header).read_text(encoding="utf-8")
            waiting += re.findall(r'^#include "(attune/[^"]+)"', text, re.MULTILINE)
    return sorted(found)


def introduction(text: str) -> list[str]:
    """The lines of the comment that a header begins with."""
    lines = text.split("#pragma once\n", 1)[-1].splitlines()
    end = next(i for i, line in enumerate(lines) if not line.startswith("//"))
    return [line.removeprefix("//").removeprefix(" ") for line in lines[:end]]


def declarations(text: str) -> list[str]:
    """What stands in the namespace: pieces that begin after an empty line, with a comment after code, or with a type."""
    body = re.search(r"^namespace (?:\[\[.*?\]\] )?attune \{\n(.*)^\}  // namespace attune$", text, re.M | re.S)
    pieces, depth = [""], 0
    for line in body[1].splitlines() if body else []:
        has_code = not re.fullmatch(r"(//.*\n|template.*\n)*", pieces[-1])
        if depth == 0 and (not line or (has_code and (line.startswith("//") or TYPE.match(line)))):
            pieces.append("")
        plain = re.sub(r"//.*|\"(\\.|[^\"])*\"|'.'", "", line)
        depth += plain.count("{") - plain.count("}")
        if line or depth > 0:
            pieces[-1] += line + "\n"
    return [piece for piece in pieces if piece]


def without_private_parts(code: str) -> str:
    """A class without its private part; a function without its body."""
    code = re.sub(r"^ (private|protected):\n.*?(?=^ public:|^ protected:|^\};?$)", "", code, flags=re.M | re.S)
    code = re.sub(r"\n+(?=\};?$)", "\n", code, flags=re.M)
    if not TYPE.search(code):
        code = re.sub(r"\s*(?:: .*?)?\{\n.*?^\}$", ";", code, flags=re.M | re.S)
    return code


def name_of(code: str) -> str:
    plain = re.sub(r"^ *//.*\n", "", code, flags=re.M)
    found = TYPE.search(plain) or FUNCTION.search(re.sub(r"\[\[.*?\]\]", "", plain)) or CONSTANT.search(plain)
    return found[1] if found else ""


def section(piece: str) -> str:
    lines = piece.splitlines()
    count = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    comment = [re.sub(r"^///? ?", "", line) for line in lines[:count]]
    code = without_private_parts("\n".join(lines[count:]) + "\n").strip()
    if INTERNAL.search(code) or re.fullmatch(r"((class|struct) \w+;.*\n?)+", code):  # or declared alone
        return ""
    if not code:
        return prose(comment) + "\n\n"
    return f"## {name_of(code)}\n\n{prose(comment)}\n\n``````cpp\n{code}\n``````\n\n"


def c_page(text: str) -> str:
    """attune/c.h has its sections named: /* ---- Translation ---- */"""
    first, *parts = re.split(r"^/\* ---- (.*?) ---- \*/$", text, flags=re.MULTILINE)
    named = [("Errors, versions, interrupts", first), *zip(parts[::2], parts[1::2])]
    return "".join(f"## {name}\n\n``````c\n{code.strip()}\n``````\n\n" for name, code in named)


def page(header: str, text: str) -> str:
    if header.endswith("/c.h"):
        return f"{HIDE}# {header}\n\n{c_page(text)}"
    sections = "".join(section(piece) for piece in declarations(text))
    return f"{HIDE}# {header}\n\n{prose(introduction(text))}\n\n``````cpp\n#include <{header}>\n``````\n\n{sections}"


def index(headers: list[str], root: Path) -> str:
    """All headers by folder, with what each begins with."""
    text = "# C++\n\n`#include <attune/attune.h>` gives everything. [The guide](../library.md) says how to link.\n"
    for folder, members in groupby((h for h in headers if not h.endswith("/c.h")), lambda header: header.split("/")[1]):
        text += f"\n## {folder}\n\n| header | what it has |\n| --- | --- |\n"
        for header in members:
            source = (root / header).read_text(encoding="utf-8")
            about = " ".join(introduction(source)).split(". ")[0].rstrip(".:")
            about = about or ", ".join(f"`{name}`" for name in filter(None, map(name_of, declarations(source))))
            text += f"| [{header}]({header}.md) | {prose([about])} |\n"
    return text
