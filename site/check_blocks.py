"""Checks the blocks of all Markdown pages.

    check_blocks.py [ATTUNE]

sh: bash can read it, the files of the repository that it names are there, and with the program ATTUNE each command of
it has the options that it is given; keys of --set are in docs/configuration.md. json, toml and python: can be read; keys
of a run in toml are in docs/configuration.md. cpp: each attune::name is in a public header. A script runs each block
that can run, or a line before the block says why not: <!-- not run by CI: why -->.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import cpp_reference

ROOT = Path(__file__).parent.parent
# Pages whose blocks do not run as they stand (the Python of README.md does).
NOT_RUN = {
    "README.md": ".ci/run has its commands with a small input",
    "docs/adding-": "parts of a change that is not made",
    "docs/results": "they measure, on idle machines",
    "bench/": "they measure, on idle machines",
}
NOT_RUN_MARK = re.compile(r"<!-- not run by CI: .+ -->\n *$")
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def configuration() -> set[str]:
    """model.d_model and all others, from the page that a test compares with the program."""
    keys, section = set(), ""
    for line in (ROOT / "docs/configuration.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## \[(\w+)\]", line):
            section = heading[1]
        elif row := re.match(r"\| `([\w.]+)` \|", line):
            keys.add(f"{section}.{row[1]}")
    return keys


def commands(program: str) -> dict[str, set[str]]:
    """The options of each command, "/bench/decode", from the script of completion."""
    script = subprocess.run([program, "completion", "bash"], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"^    '(.*?)'\) commands='.*?' options='(.*?)' ;;$", script, re.MULTILINE)
    return {path: set(options.split()) for path, options in found}


def calls(code: str) -> Iterator[list[str]]:
    """The words of each simple command that is a call of attune, without it."""
    plain = re.sub(r"(^|\s)#.*", "", code.replace("\\\n", " "), flags=re.MULTILINE)
    lexer = shlex.shlex(plain, posix=True, punctuation_chars="|&;<>()\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    words: list[str] = []
    for word in [*lexer, "\n"]:
        if set(word) <= set("|&;()\n"):
            at = next((i for i, w in enumerate(words) if re.fullmatch(r"(\$|.*/)?attune", w)), None)
            if at is not None and (at == 0 or re.fullmatch(r"\w+=.*|mpirun|torchrun|srun|(.*/)?time", words[0])):
                yield words[at + 1 :]
            words = []
        else:
            words.append(word)


def of_call(words: list[str], known: dict[str, set[str]], keys: set[str]) -> Iterator[str]:
    path = ""
    for i, word in enumerate(words):
        if f"{path}/{word}" in known:
            path += f"/{word}"
        elif i == 0 and known and not word.startswith("-"):
            yield f"there is no command {word}"
        if known and word.startswith("--") and word.split("=")[0] not in known[path]:
            yield f"attune{path.replace('/', ' ')} has no option {word}"
        if word == "--set" and "=" in words[i + 1] and (key := words[i + 1].split("=")[0]) not in keys:
            yield f"{key} is not in docs/configuration.md"


def of_shell(code: str, known: dict[str, set[str]], keys: set[str]) -> Iterator[str]:
    read = subprocess.run(["bash", "-n"], input=code, capture_output=True, text=True, check=False)
    if read.returncode != 0:
        yield read.stderr
        return
    for file in re.findall(r"(?<![\w/.$-])(?:\./)?((?:scripts|examples|bench|tests)/[\w./-]+)", code):
        if not (ROOT / file).exists():
            yield f"there is no {file}"
    for words in calls(code):
        yield from of_call(words, known, keys)


def of_toml(code: str, keys: set[str]) -> Iterator[str]:
    sections = {key.split(".")[0] for key in keys}
    for section, table in tomllib.loads(code).items():
        if section in sections:
            yield from (f"{section}.{key} is unknown" for key in table if f"{section}.{key}" not in keys)


def of_block(language: str, code: str, known: dict[str, set[str]], keys: set[str], names: set[str]) -> Iterator[str]:
    try:
        if language == "sh":
            yield from of_shell(code, known, keys)
        elif language == "json":
            json.loads(code)
        elif language == "toml":
            yield from of_toml(code, keys)
        elif language == "python":
            ast.parse(code)
        elif language == "cpp":
            yield from (f"attune::{n} is not public" for n in re.findall(r"attune::(\w+)", code) if n not in names)
    except (ValueError, SyntaxError) as error:
        yield str(error)


def runs(page: str, language: str) -> bool:
    """Whether one of the scripts that run blocks names the blocks of this language on this page."""
    by = {"sh": ("scripts/site", f" {page}"), "python": ("tests/python/test_documentation.py", f'"{page}"')}
    script, name = by.get(language, ("scripts/check-install", f"block {Path(page).stem} {language} "))
    return name in (ROOT / script).read_text(encoding="utf-8")


def unexplained(page: str, language: str, before: str) -> Iterator[str]:
    can_run = language in ("sh", "python", "c", "cpp", "cmake", "rust")
    if can_run and not any(page.startswith(p) for p in NOT_RUN) and not NOT_RUN_MARK.search(before):
        if not runs(page, language):
            yield "nothing runs this block: name the page in a script, or write <!-- not run by CI: why --> before it"


def main() -> int:
    known = commands(sys.argv[1]) if len(sys.argv) > 1 else {}
    keys = configuration()
    headers = "".join((ROOT / h).read_text(encoding="utf-8") for h in cpp_reference.public_headers(ROOT))
    names = set(re.findall(r"\w+", headers))
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    blocks = problems = 0
    for page in listed.split():
        text = (ROOT / page).read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            blocks += 1
            line = text.count("\n", 0, block.start()) + 1
            language = block[2] or ("sh" if block[3].startswith("attune ") else "")
            problems_here = list(of_block(language, textwrap.dedent(block[3]), known, keys, names))
            problems_here += unexplained(page, language, text[: block.start()])
            for problem in problems_here:
                problems += 1
                print(f"{page}:{line}: {problem}", file=sys.stderr)
    print(f"{blocks} blocks, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
