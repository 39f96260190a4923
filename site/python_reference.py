"""The reference of the Python package, read from its sources: nothing is imported.

Names that are compiled have their docstrings in the stub `_core.pyi`, which scripts/wheel puts into dist/*.whl.
"""

from __future__ import annotations

import ast
import zipfile
from pathlib import Path

from prose import prose

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.ClassDef | Function


def by_name(body: list[ast.stmt]) -> dict[str, list[Definition]]:
    """Returns the definitions by name: one, or all overloads and their implementation."""
    found: dict[str, list[Definition]] = {}
    for node in body:
        if isinstance(node, Definition) and ".setter" not in decorators(node):
            found.setdefault(node.name, []).append(node)
    return found


def decorators(node: Definition) -> str:
    return " ".join(ast.unparse(decorator) for decorator in node.decorator_list)


def code(lines: list[str]) -> str:
    return "``````python\n" + "\n".join(lines) + "\n``````\n\n" if lines else ""


def signature(node: Definition, source: list[str]) -> list[str]:
    """The declaration as it is written, without its body."""
    body = node.body[0]
    on_a_line_of_its_own = not source[body.lineno - 1][: body.col_offset].strip()
    lines = source[node.lineno - 1 : body.lineno - on_a_line_of_its_own]
    indent = len(lines[0]) - len(lines[0].lstrip())
    text = "\n".join(line[indent:].split("  # type:")[0] for line in lines)
    shown = text.removesuffix("...").strip().removesuffix(":").splitlines()
    return ["@property", *shown] if decorators(node) == "property" else shown


def described(heading: str, nodes: list[Definition], source: list[str]) -> str:
    """A function, all its overloads, or a class with its public members."""
    overloads = [node for node in nodes if "overload" in decorators(node)] or nodes
    texts = dict.fromkeys(ast.get_docstring(node) or "" for node in nodes)
    text = f"{heading}\n\n" + "\n\n".join(prose(found.splitlines()) for found in texts) + "\n\n"
    node = nodes[0]
    if not isinstance(node, ast.ClassDef):
        return text + code([line for each in overloads for line in signature(each, source)])
    members = by_name(node.body)
    fields = [source[item.lineno - 1].strip() for item in node.body if isinstance(item, ast.AnnAssign)]
    begin = [line for each in members.get("__init__", []) for line in signature(each, source)]
    text += code(begin + fields or signature(node, source))
    name = heading.removeprefix("## ")
    return text + "".join(
        described(f"### {name}.{member}", found, source) for member, found in members.items() if member[0] != "_"
    )


def stub(root: Path) -> str:
    for wheel in sorted((root / "dist").glob("attune_transformers-*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            return archive.read("attune/_core.pyi").decode()
    return ""


def listed(file: Path) -> list[str]:
    """__all__ of a module."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return next(ast.literal_eval(node.value) for node in body if isinstance(node, ast.Assign))


def page(root: Path) -> str:
    package = root / "python" / "attune"
    known: dict[str, tuple[list[Definition], list[str]]] = {}
    for source in [stub(root), *(file.read_text(encoding="utf-8") for file in sorted(package.glob("_[a-z]*.py")))]:
        found = by_name(ast.parse(source).body)
        known |= {name: (nodes, source.splitlines()) for name, nodes in found.items()}
    names = [name for name in listed(package / "__init__.py") if name[0] != "_" and name != "ops"]
    names.sort(key=lambda name: (name[0].islower(), name))
    headings = {name: f"## {name}" for name in names}
    headings |= {name: f"## ops.{name}" for name in listed(package / "ops.py") if name not in headings}
    text = "# Python\n\n[The guide](../python.md) shows each class in use.\n\n"
    if missing := [f"`{heading[3:]}`" for name, heading in headings.items() if name not in known]:
        text += f"Only a site that is built beside a wheel (`scripts/wheel`) describes {', '.join(missing)}.\n\n"
    return text + "".join(described(heading, *known[name]) for name, heading in headings.items() if name in known)
