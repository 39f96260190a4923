#!/usr/bin/env python3
"""Time and memory of attention alone by length, forward and forward with backward, Attune and PyTorch in turn."""

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path

from in_turn import (
    PYTORCH,
    Failure,
    add_options,
    check_at_least_1,
    check_options,
    column,
    environments,
    pairs_of,
    ratio_of,
    run,
    spread,
)

FIGURES = ("forward_ms", "forward_backward_ms", "forward_mb", "forward_backward_mb", "process_mb")
CONTENDERS = ("attune", "pytorch", "pytorch-tuned", "pytorch-bf16")


def command(o: argparse.Namespace, contender: str, length: int) -> list[str]:
    work = ["--lengths", str(length), "--heads", str(o.heads), "--d-head", str(o.d_head)]
    work += ["--repeats", str(o.repeats), "--threads", str(o.threads), *(["--causal"] if o.causal else [])]
    if contender == "attune":
        return [o.attune, "bench", "attention", "--patterns", "full", *work, "--json"]
    return [o.python, str(Path(__file__).with_name("pytorch_attention.py")), *work, *PYTORCH[contender]]


def measure_once(o: argparse.Namespace, contender: str, length: int, environment: dict[str, str]) -> dict:
    """The figures of one process, whose only work is this length."""
    finished = run(command(o, contender, length), environment)
    try:
        (found,) = json.loads(finished.output)["results"]
        result = {"process_mb": finished.peak_memory_mb, **found}
        for pass_name in ("forward", "forward_backward"):
            result[f"{pass_name}_mb"] = result[f"{pass_name}_bytes"] / 1e6
        return {name: result[name] for name in FIGURES}
    except (ValueError, KeyError, TypeError):
        raise Failure(f"{contender}: expected the results of a length, found {finished.output[:80]!r}") from None


def measure(o: argparse.Namespace, folder: Path) -> list[dict]:
    """For every length the figures of all contenders, which take turns."""
    environment = environments(o, folder)
    lengths = []
    for length in o.lengths:
        runs = {c: [] for c in o.contenders}
        for number in range(1, o.rounds + 1):
            for c in o.contenders:
                runs[c].append(measure_once(o, c, length, environment[c]))
                ms = runs[c][-1]["forward_backward_ms"]
                print(f"length {length}  round {number}/{o.rounds}  {c:16} {ms:10.2f} ms", file=sys.stderr)
        lengths.append(summarise(length, runs))
    return lengths


def summarise(length: int, runs: dict[str, list[dict]]) -> dict:
    """Ratios say how many times as long, or as much, the later contender takes as the earlier one."""
    figures = {c: {name: spread(column(of_contender, name)) for name in FIGURES} for c, of_contender in runs.items()}
    ratios = {f"{b}/{a}": {name: ratio_of(runs, b, a, name) for name in FIGURES} for a, b in pairs_of(runs)}
    return {"length": length, "contenders": figures, "ratios": ratios, "runs": runs}


def table(lengths: list[dict], names: tuple[str, ...], title: str) -> list[str]:
    contenders, pairs = list(lengths[0]["contenders"]), list(lengths[0]["ratios"])
    lines = [title, f"{'length':>8} " + " ".join(f"{c:>20}" for c in contenders) + "   " + "   ".join(pairs)]
    for row in lengths:
        medians = [" / ".join(f"{row['contenders'][c][n]['median']:.2f}" for n in names) for c in contenders]
        ratios = [" / ".join(f"{row['ratios'][p][n].get('median', 0):.2f}" for n in names) for p in pairs]
        cells = "   ".join(f"{ratio:>{len(pair)}}" for ratio, pair in zip(ratios, pairs))
        lines.append(f"{row['length']:>8} " + " ".join(f"{m:>20}" for m in medians) + "   " + cells)
    return lines


def report(o: argparse.Namespace, lengths: list[dict]) -> str:
    kind = "causal" if o.causal else "not causal"
    lines = [f"attention, {o.heads} heads of {o.d_head}, {kind}, {o.threads} threads, medians of {o.rounds} rounds", ""]
    lines += table(lengths, FIGURES[:2], "milliseconds, forward / forward and backward")
    lines += ["", *table(lengths, FIGURES[2:4], "MB of tensors beyond the inputs, forward / forward and backward")]
    lines += ["", *table(lengths, FIGURES[4:], "MB of the whole process at its peak")]
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(p, CONTENDERS)
    p.add_argument("--lengths", default="128,256,512,1024,2048,4096,8192,16384", help="tokens of the sequence")
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--d-head", type=int, default=64)
    p.add_argument("--causal", action="store_true", help="a query sees no later key")
    p.add_argument("--repeats", type=int, default=3, help="in a process, of which the median counts")
    p.add_argument("--rounds", type=int, default=7)
    o = p.parse_args()
    try:
        o.lengths = [int(n) for n in o.lengths.split(",")]
    except ValueError:
        p.error(f"--lengths {o.lengths}: expected numbers with commas between them")
    if min(o.lengths) < 1:
        p.error(f"--lengths {min(o.lengths)}: expected at least 1")
    check_at_least_1(p, o, ("threads", "heads", "d_head", "repeats", "rounds"))
    check_options(p, o, needs_attune=False, known=CONTENDERS)
    return o


def main() -> int:
    o = parse_options()
    try:
        with tempfile.TemporaryDirectory() as folder:
            lengths = measure(o, Path(folder))
    except Failure as failure:
        print(f"attention: {failure}", file=sys.stderr)
        return 1
    names = ("heads", "d_head", "causal", "threads", "repeats", "rounds")
    summary = {name: getattr(o, name) for name in names} | {"machine": platform.platform(), "lengths": lengths}
    print(json.dumps(summary, indent=2) if o.json else report(o, lengths))
    return 0


if __name__ == "__main__":
    sys.exit(main())
