#!/usr/bin/env python3
"""Whether Attune's ids are those of PyPI's `tokenizers`, on as much mixed text as is asked for.

  pip install tokenizers==0.23.*
  bench/compare/tokenizer_equality.py --texts corpora/ --megabytes 100 gpt2/tokenizer.json bert/tokenizer.json
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from mixed_text import documents, read_texts, source_files
from tokenizers import Tokenizer

BATCH = 256


def ids_of_attune(attune: str, tokenizer: Path, file: Path) -> subprocess.Popen:
    command = [attune, "tokenizer", "encode", str(tokenizer), "--ids", "--special-tokens", "--json-lines"]
    return subprocess.Popen([*command, "--file", str(file)], stdout=subprocess.PIPE, text=True)


def compare(o: argparse.Namespace, path: Path, file: Path) -> tuple[int, int, int]:
    """The bytes and tokens that were compared, and the texts that differ."""
    theirs = Tokenizer.from_file(str(path))
    theirs.no_truncation()
    theirs.no_padding()
    total_bytes = tokens = different = 0

    def check(texts: list[str], process: subprocess.Popen) -> None:
        nonlocal total_bytes, tokens, different
        for text, encoding in zip(texts, theirs.encode_batch_fast(texts)):
            expected, found = " ".join(map(str, encoding.ids)), process.stdout.readline().rstrip("\n")
            total_bytes += len(text.encode())
            tokens += len(encoding.ids)
            if found == expected:
                continue
            different += 1
            if different <= o.show:
                print(f"{path}: {text[:200]!r}\n  expected {expected[:300]}\n  found    {found[:300]}")

    with ids_of_attune(o.attune, path, file) as process, file.open(encoding="utf-8") as lines:
        batch = []
        for line in lines:
            batch.append(json.loads(line))
            if len(batch) == BATCH:
                check(batch, process)
                batch = []
        check(batch, process)
    if process.returncode != 0:
        raise SystemExit(f"attune ended with {process.returncode}")
    return total_bytes, tokens, different


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("tokenizers", type=Path, nargs="+", help="tokenizer.json files")
    p.add_argument("--texts", type=Path, nargs="*", default=[], help="files and folders, beside Python's library")
    p.add_argument("--megabytes", type=float, default=100)
    p.add_argument("--seed", type=int, default=11)
    p.add_argument("--show", type=int, default=3, help="differences that are printed for each tokenizer")
    p.add_argument("--attune", default="build/release/attune", help="the binary")
    return p.parse_args()


def main() -> int:
    o = parse_options()
    texts = read_texts(source_files(o.texts))
    any_different = False
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "documents.jsonl"
        with file.open("w", encoding="utf-8") as out:
            for text in documents(texts, int(o.megabytes * 1e6), o.seed):
                out.write(json.dumps(text) + "\n")
        for path in o.tokenizers:
            total_bytes, tokens, different = compare(o, path, file)
            print(f"{path}: {total_bytes} bytes, {tokens} tokens, {different} texts differ", flush=True)
            any_different |= different > 0
    return 1 if any_different else 0


if __name__ == "__main__":
    sys.exit(main())
