#!/usr/bin/env python3
"""Tokens per second of one text from a hub folder: Attune, and transformers in bfloat16 where --python has it.

A token reads every weight once, so bytes of weights times tokens a second are set against what the same number of
threads reads from memory. Each program generates greedily; the time of a token is that of a longer run less that of a
shorter one, so that loading is not counted.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

from in_turn import Failure, Finished, run

PROMPT = "a b c d"
SHORT, LONG = 8, 40


def weight_bytes(folder: Path) -> int:
    """Of all that a token reads: without the embedding table, unless the projection is that table."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    total = sum(p.stat().st_size for p in folder.glob("*.safetensors"))
    return total if config.get("tie_word_embeddings") else total - 2 * config["vocab_size"] * config["hidden_size"]


def timed(command: list[str], threads: int) -> tuple[float, Finished]:
    begin = time.perf_counter()
    finished = run(command, {"OMP_NUM_THREADS": str(threads), "ATTUNE_THREADS": str(threads)})
    return time.perf_counter() - begin, finished


def attune(o: argparse.Namespace, tokens: int) -> list[str]:
    options = ["--temperature", "0", "--max-tokens", str(tokens), "--json", "--prompt", PROMPT]
    return [o.attune, "generate", str(o.model), *options, *o.option]


def transformers(o: argparse.Namespace, tokens: int) -> list[str]:
    program = Path(__file__).with_name("transformers_decode.py")
    return [o.python, str(program), str(o.model), "--tokens", str(tokens), "--threads", str(o.threads)]


def measure(o: argparse.Namespace, command) -> dict:
    short, _ = timed(command(o, SHORT), o.threads)
    long, finished = timed(command(o, LONG), o.threads)
    result = json.loads(finished.output.strip().splitlines()[-1])
    made = result["tokens"] if isinstance(result["tokens"], int) else len(result["tokens"])
    if made != LONG:
        raise Failure(f"expected {LONG} tokens, found {made}: the text ended early")
    seconds = (long - short) / (LONG - SHORT)
    return {"tokens_per_s": 1 / seconds, "gb_per_s": weight_bytes(o.model) / seconds / 1e9,
            "start_s": short - SHORT * seconds, "peak_memory_mb": finished.peak_memory_mb}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="a hub folder in bfloat16, see random_llama.py")
    parser.add_argument("--attune", default="build/release/attune")
    parser.add_argument("--option", action="append", default=[], help="for attune generate; may be given several times")
    parser.add_argument("--python", help="with torch and transformers; without it Attune alone is measured")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    o = parser.parse_args()
    contenders = {"attune": attune} | ({"transformers": transformers} if o.python else {})
    results: dict[str, list[dict]] = {name: [] for name in contenders}
    reads = []
    try:
        for _ in range(o.rounds):
            machine = run([o.attune, "bench", "machine", "--threads", str(o.threads), "--json"], {}).output
            reads.append(json.loads(machine)["memory_read_gb_per_s"])
            for name, command in contenders.items():
                results[name].append(measure(o, command))
    except Failure as failure:
        print(f"hub_decode.py: {failure}", file=sys.stderr)
        return 1
    read = statistics.median(reads)
    print(f"{'':<14}{'tokens/s':>10}{'GB/s':>8}{'of read':>9}{'start s':>9}{'peak MB':>9}")
    for name, runs in results.items():
        median = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        print(f"{name:<14}{median['tokens_per_s']:>10.2f}{median['gb_per_s']:>8.1f}{median['gb_per_s'] / read:>9.2f}"
              f"{median['start_s']:>9.2f}{median['peak_memory_mb']:>9.0f}")
    print(f"memory read: {read:.1f} GB/s with {o.threads} threads; weights of a token: {weight_bytes(o.model) / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
