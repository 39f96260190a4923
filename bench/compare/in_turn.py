"""Programs that do the same work, in turn.

Each round runs every contender once, as a process of its own, so that what disturbs the machine disturbs all of them;
what counts is the ratio within a round, and its median over the rounds.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Callable

CONTENDERS = ("attune", "pytorch", "pytorch-tuned")
TIMEOUT_S = 3600

# MKL keeps its AVX-512 code from a processor that is not Intel's. This answers its question with yes.
MKL_SHIM = "int mkl_serv_intel_cpu_true(void) { return 1; }\nint mkl_serv_intel_cpu(void) { return 1; }\n"
# Large tensors stay with the process from step to step, where glibc would give them back and fault them in again.
GLIBC_TUNABLES = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8589934592"


class Failure(Exception):
    """One line for the user."""


def run(command: list[str], environment: dict[str, str]) -> str:
    """What the command prints, or a Failure with the last line of what it complained about."""
    try:
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise Failure(f"{command[0]}: not finished after {TIMEOUT_S} s") from None
    if done.returncode != 0:
        complaint = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise Failure(f"{' '.join(command[:3])} ... ended with {done.returncode}: {complaint}")
    return done.stdout


def result_of(contender: str, output: str, rate_name: str) -> dict:
    """The JSON object that a program printed, on its last line or over several; it has to have a rate."""
    lines = output.strip().splitlines()
    for text in (output, lines[-1] if lines else ""):
        try:
            result = json.loads(text)
        except json.JSONDecodeError:
            continue
        rate = result.get(rate_name) if isinstance(result, dict) else None
        if isinstance(rate, (int, float)) and rate > 0:
            return result
    raise Failure(f'{contender}: expected a JSON object with "{rate_name}", found {output.strip()[:80]!r}')


def environments(o: argparse.Namespace, folder: Path) -> dict[str, dict[str, str]]:
    """What each contender finds in its environment; `folder` is for what it refers to."""
    threads = {"OMP_NUM_THREADS": str(o.threads)}
    result = {c: threads for c in o.contenders}
    if "pytorch-tuned" in o.contenders:
        tuned = {**threads, "GLIBC_TUNABLES": GLIBC_TUNABLES}
        if platform.machine() == "x86_64":
            source, library = folder / "mkl_shim.c", folder / "mkl_shim.so"
            source.write_text(MKL_SHIM, encoding="utf-8")
            run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], {})
            tuned["LD_PRELOAD"] = str(library)
        result["pytorch-tuned"] = tuned
    return result


def in_turn(
    o: argparse.Namespace, rate_name: str, unit: str, measure: Callable[[str, int], dict]
) -> dict[str, list[dict]]:
    """The results of every contender, one for each round: measure(contender, round), rounds from 1."""
    results = {c: [] for c in o.contenders}
    for number in range(1, o.rounds + 1):
        for c in o.contenders:
            results[c].append(measure(c, number))
            rate = results[c][-1][rate_name]
            print(f"round {number}/{o.rounds}  {c:14} {rate:10.0f} {unit}", file=sys.stderr)
    return results


def spread(values: list[float]) -> dict:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def summarise(o: argparse.Namespace, results: dict[str, list[dict]], rate_name: str) -> dict:
    def column(contender: str, key: str) -> list[float]:
        return [r[key] for r in results[contender] if isinstance(r.get(key), (int, float))]

    def median(values: list[float]):
        return statistics.median(values) if values else None

    contenders, ratios = {}, {}
    first = o.contenders[0]
    for c in o.contenders:
        rates = column(c, rate_name)
        contenders[c] = {
            rate_name: spread(rates),
            "median_ms_per_step": median(column(c, "median_ms_per_step")),
            "peak_memory_mb": median(column(c, "peak_memory_mb")),
            "parameters": median(column(c, "parameters")),
        }
        if c != first:
            pairs = [a / b for a, b in zip(column(first, rate_name), rates)]
            ratios[f"{first}/{c}"] = {**spread(pairs), "pairs": pairs}
    return {"machine": platform.platform(), "contenders": contenders, "ratios": ratios, "runs": results}


def table(summary: dict, rate_name: str) -> list[str]:
    def cell(value, width: int) -> str:
        return f"{'-' if value is None else format(value, '.0f'):>{width}}"

    lines = [f"{'':14} {'median':>9} {'min':>9} {'max':>9} {'ms/step':>9} {'peak MB':>9}"]
    for c, row in summary["contenders"].items():
        rate = row[rate_name]
        values = (rate["median"], rate["min"], rate["max"], row["median_ms_per_step"], row["peak_memory_mb"])
        lines.append(f"{c:14} " + " ".join(cell(v, 9) for v in values))
    for pair, ratio in summary["ratios"].items():
        pairs = " ".join(f"{r:.2f}" for r in ratio["pairs"])
        lines.append(f"{pair:24} median {ratio['median']:.2f}   by round: {pairs}")
    counts = {c: row["parameters"] for c, row in summary["contenders"].items() if row["parameters"] is not None}
    if len(set(counts.values())) > 1:
        numbers = ", ".join(f"{c} {n:.0f}" for c, n in counts.items())
        lines.append(f"the models differ in their number of parameters: {numbers}")
    return lines


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--attune", default="build/release/attune", help="the binary")
    p.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    p.add_argument("--contenders", default=",".join(CONTENDERS), help="in the order of a round, ratios to the first")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--compile", action="store_true", help="PyTorch through torch.compile")
    p.add_argument("--json", action="store_true", help="print everything measured as one JSON object")


def check_at_least_1(p: argparse.ArgumentParser, options: argparse.Namespace, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(options, name) < 1:
            p.error(f"--{name.replace('_', '-')} {getattr(options, name)}: expected at least 1")


def check_options(p: argparse.ArgumentParser, options: argparse.Namespace, needs_attune: bool) -> None:
    """Splits options.contenders. `needs_attune`: its program is used even where it is not one of them."""
    names = options.contenders.split(",")
    if len(set(names)) != len(names) or not set(names) <= set(CONTENDERS):
        p.error(f"--contenders {options.contenders}: expected some of {','.join(CONTENDERS)}, each once")
    options.contenders = names
    if ("attune" in names or needs_attune) and shutil.which(options.attune) is None:
        p.error(f"--attune {options.attune}: no such program")
