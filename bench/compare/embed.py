#!/usr/bin/env python3
"""Sentences a second that Attune, sentence-transformers and ONNX Runtime turn into vectors, in turn, and their agreement.

  pip install sentence-transformers onnxruntime onnx
  bench/compare/embed.py --model all-MiniLM-L6-v2 --data sentences.txt --threads 1,2 --batch-sizes 1,64

`attune embed` is timed as a whole, with a file of each sentence once and one of each several times; the difference counts,
so that loading is not in it, but reading, tokenising and writing are. The others are timed inside their process, without
loading and writing.
"""

import argparse
import json
import platform
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from in_turn import Failure, add_options, check_at_least_1, in_turn, numbers, quantized, ratio_of, result_of, run, spread

CONTENDERS = ("attune", "sentence-transformers", "onnxruntime", "attune-int8", "onnxruntime-int8")
PAIRS = (("attune", "sentence-transformers"), ("attune", "onnxruntime"), ("attune-int8", "onnxruntime-int8"))
RATE = "sentences_per_s"
LONGER = 5


def seconds_of_attune(o: argparse.Namespace, model: Path, file: Path, batch_size: int, threads: int) -> float:
    options = ["--batch-size", str(batch_size), "--threads", str(threads), "--output", str(o.work / "attune.npy")]
    begin = time.perf_counter()
    run([o.attune, "embed", str(model), "--file", str(file), *options], {})
    return time.perf_counter() - begin


def measure(o: argparse.Namespace, contender: str, batch_size: int, threads: int) -> dict:
    if contender.startswith("attune"):
        model = o.int8 if contender == "attune-int8" else o.model
        long, short = (seconds_of_attune(o, model, f, batch_size, threads) for f in (o.longer, o.shorter))
        return {RATE: (LONGER - 1) * o.sentences / (long - short)}
    command = [o.python, str(Path(__file__).with_name("pypi_embed.py")), contender.removesuffix("-int8")]
    command += ["--model", str(o.model), "--data", str(o.shorter), "--batch-size", str(batch_size)]
    command += ["--threads", str(threads), "--graphs", str(o.work), "--vectors", str(o.work / f"{contender}.npy")]
    command += ["--int8"] if contender.endswith("-int8") else []
    return result_of(contender, run(command, {"OMP_NUM_THREADS": str(threads)}).output, RATE)


def largest_difference(o: argparse.Namespace) -> float:
    """Between the vectors of attune and of sentence-transformers."""
    seconds_of_attune(o, o.model, o.shorter, 64, 1)
    ours, theirs = (np.load(o.work / f"{name}.npy") for name in ("attune", "sentence-transformers"))
    return float(np.abs(ours - theirs).max())


def compare(o: argparse.Namespace, batch_size: int, threads: int) -> dict:
    runs = in_turn(o, RATE, "sentences/s", lambda c, _: measure(o, c, batch_size, threads))
    rates = {c: spread([r[RATE] for r in results]) for c, results in runs.items()}
    ratios = {f"{a}/{b}": ratio_of(runs, a, b, RATE) for a, b in PAIRS if a in runs and b in runs}
    return {"batch_size": batch_size, "threads": threads, "rates": rates, "ratios": ratios}


def report(rows: list[dict]) -> str:
    lines = []
    for row in rows:
        lines.append(f"batch {row['batch_size']}, threads {row['threads']}")
        lines += [f"  {c:24} {rate['median']:>9.0f} sentences/s" for c, rate in row["rates"].items()]
        for pair, ratio in row["ratios"].items():
            rounds = " ".join(f"{r:.2f}" for r in ratio["pairs"])
            lines.append(f"  {pair:36} {ratio['median']:.2f}: {rounds}")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(p, CONTENDERS, thread_counts="1,2")
    p.add_argument("--model", type=Path, required=True, help="a sentence-transformers folder")
    p.add_argument("--data", type=Path, required=True, help="sentences, one a line")
    p.add_argument("--batch-sizes", default="1,64", help="with commas")
    p.add_argument("--sentences", type=int, default=500, help="the first so many of the file")
    p.add_argument("--rounds", type=int, default=3)
    o = p.parse_args()
    check_at_least_1(p, o, ("rounds", "sentences"))
    o.threads, o.batch_sizes = numbers(p, o, "threads"), numbers(p, o, "batch_sizes")
    o.contenders = o.contenders.split(",")
    if unknown := set(o.contenders) - set(CONTENDERS):
        p.error(f"--contenders: unknown {', '.join(sorted(unknown))}")
    return o


def main() -> int:
    o = parse_options()
    with tempfile.TemporaryDirectory() as work:
        o.work, o.shorter, o.longer = Path(work), Path(work) / "shorter.txt", Path(work) / "longer.txt"
        lines = o.data.read_text(encoding="utf-8").splitlines()[: o.sentences]
        o.sentences = len(lines)
        o.shorter.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        o.longer.write_text("".join(f"{line}\n" for line in lines) * LONGER, encoding="utf-8")
        try:
            if "attune-int8" in o.contenders:
                o.int8 = quantized(o.attune, o.model, o.work / "model-int8")
            rows = [compare(o, batch_size, threads) for threads in o.threads for batch_size in o.batch_sizes]
            difference = largest_difference(o) if {"attune", "sentence-transformers"} <= set(o.contenders) else None
        except Failure as failure:
            print(f"embed.py: {failure}", file=sys.stderr)
            return 1
    if o.json:
        print(json.dumps({"machine": platform.platform(), "rows": rows, "largest_difference": difference}))
        return 0
    print(report(rows))
    if difference is not None:
        print(f"largest difference to sentence-transformers: {difference:.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
