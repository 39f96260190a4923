#!/usr/bin/env python3
"""Megabytes a second that Attune and PyPI's `tokenizers` encode, in turn, line by line.

  bench/compare/tokenizer_speed.py --data news.en --threads 1,2 gpt2/tokenizer.json bert/tokenizer.json
"""

import argparse
import json
import platform
import sys
from pathlib import Path

from in_turn import Failure, add_options, check_at_least_1, in_turn, numbers, ratio_of, result_of, run, spread

CONTENDERS = ("attune", "tokenizers")
RATE = "mb_per_s"


def command(o: argparse.Namespace, contender: str, tokenizer: Path, threads: int) -> list[str]:
    work = [str(tokenizer), "--data", str(o.data), "--rounds", str(o.passes), "--threads", str(threads)]
    if contender == "attune":
        return [o.attune, "bench", "tokenizer", *work, "--json"]
    return [o.python, str(Path(__file__).with_name("pypi_tokenizers.py")), *work]


def measure(o: argparse.Namespace, tokenizer: Path, threads: int) -> dict:
    """The rates of both, which take turns, and their ratio."""
    runs = in_turn(
        o, RATE, "MB/s", lambda c, _: result_of(c, run(command(o, c, tokenizer, threads), {}).output, RATE)
    )
    tokens = {c: {r["tokens"] for r in results} for c, results in runs.items()}
    if len(set().union(*tokens.values())) != 1:
        raise Failure(f"{tokenizer}: the numbers of tokens differ: {tokens}")
    rates = {c: spread([r[RATE] for r in results]) for c, results in runs.items()}
    return {"tokenizer": str(tokenizer), "threads": threads, **rates, "ratio": ratio_of(runs, *CONTENDERS, RATE)}


def report(rows: list[dict]) -> str:
    lines = [f"{'tokenizer':40} {'threads':>7} {'attune':>10} {'tokenizers':>10}   times, by round"]
    for row in rows:
        rates = " ".join(f"{row[c]['median']:>10.1f}" for c in CONTENDERS)
        pairs = " ".join(f"{r:.2f}" for r in row["ratio"]["pairs"])
        lines.append(f"{row['tokenizer'][-40:]:40} {row['threads']:>7} {rates}   {row['ratio']['median']:.2f}: {pairs}")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(p, CONTENDERS, thread_counts="1,2")
    p.add_argument("tokenizers", type=Path, nargs="+", help="tokenizer.json files")
    p.add_argument("--data", type=Path, required=True, help="a text, one line after the other")
    p.add_argument("--passes", type=int, default=3, help="in a process, of which the median counts")
    p.add_argument("--rounds", type=int, default=7)
    o = p.parse_args()
    check_at_least_1(p, o, ("passes", "rounds"))
    o.thread_counts = numbers(p, o, "threads")
    o.contenders = list(CONTENDERS)
    return o


def main() -> int:
    o = parse_options()
    try:
        rows = [measure(o, tokenizer, threads) for tokenizer in o.tokenizers for threads in o.thread_counts]
    except Failure as failure:
        print(f"tokenizer_speed: {failure}", file=sys.stderr)
        return 1
    print(json.dumps({"machine": platform.platform(), "rows": rows}, indent=2) if o.json else report(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
