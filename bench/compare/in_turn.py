"""Programs that do the same work, in turn.

Each round runs every contender once, as a process of its own, so that what disturbs the machine disturbs all of them;
what counts is the ratio within a round, and its median over the rounds.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Callable, Iterable, NamedTuple

# What the programs are told to be a contender. Those of PyTorch but the first have the settings of `environments`.
ATTUNE = {"attune": [], "attune-bf16": ["--set", "train.precision=bfloat16"]}
PYTORCH = {
    "pytorch": [],
    "pytorch-tuned": [],
    "pytorch-bf16": ["--precision", "bfloat16"],
    "pytorch-compiled": ["--compile"],
    "pytorch-compiled-bf16": ["--compile", "--precision", "bfloat16"],
}
CONTENDERS = ("attune", "pytorch", "pytorch-tuned")  # where nothing else is said
# Of a training step, by --device. What pytorch-tuned sets says nothing about a GPU.
TRAINING = {
    "cpu": (*ATTUNE, "pytorch", "pytorch-tuned", "pytorch-bf16", "pytorch-compiled"),
    "cuda": (*ATTUNE, "pytorch", "pytorch-bf16", "pytorch-compiled", "pytorch-compiled-bf16"),
}
TIMEOUT_S = 3600

# MKL keeps its AVX-512 code from a processor that is not Intel's. This answers its question with yes.
MKL_SHIM = "int mkl_serv_intel_cpu_true(void) { return 1; }\nint mkl_serv_intel_cpu(void) { return 1; }\n"
# Large tensors stay with the process from step to step, where glibc would give them back and fault them in again.
GLIBC_TUNABLES = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8589934592"


class Failure(Exception):
    """One line for the user."""


def peak_memory_mb(usage: resource.struct_rusage) -> float:
    """The largest resident set in MB, 10^6 bytes."""
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6  # macOS counts bytes, Linux KiB


def own_peak_memory_mb() -> float:
    """Of this process so far."""
    return peak_memory_mb(resource.getrusage(resource.RUSAGE_SELF))


class Finished(NamedTuple):
    output: str
    peak_memory_mb: float  # the largest resident set, as the system counts it


def run(command: list[str], environment: dict[str, str], timeout_s: float = TIMEOUT_S) -> Finished:
    """What the command prints, or a Failure with the last line of what it complained about."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        try:
            process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=output, stderr=errors)
        except OSError as error:
            raise Failure(f"{command[0]}: {error.strerror}") from None
        peak, late = wait(process, timeout_s)
        output.seek(0)
        errors.seek(0)
        text, complaints = output.read(), errors.read()
    if late:
        raise Failure(f"{command[0]}: not finished after {timeout_s:.0f} s")
    if process.returncode != 0:
        complaint = (complaints.strip() or text.strip() or "no message").splitlines()[-1]
        raise Failure(f"{' '.join(command[:3])} ... ended with {process.returncode}: {complaint}")
    return Finished(text, peak)


def end(process: subprocess.Popen) -> None:
    """Process.kill() would also take the exit status, and with it what wait() asks for."""
    if process.returncode is None:
        os.kill(process.pid, signal.SIGKILL)


def wait(process: subprocess.Popen, timeout_s: float) -> tuple[float, bool]:
    """The process's peak memory in MB, and whether it was ended because it took too long."""
    late = threading.Event()
    timer = threading.Timer(timeout_s, lambda: (late.set(), end(process)))
    timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        timer.cancel()
        end(process)
    return peak_memory_mb(usage), late.is_set()


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


def with_memory_of(device: str, result: dict) -> dict:
    """On a GPU its memory counts in place of the process's; there is none where a program does not tell it."""
    if device == "cpu":
        return result
    kept = {key: value for key, value in result.items() if key not in ("peak_memory_mb", "import_memory_mb")}
    peak = result.get("peak_device_memory_mb")
    return kept if peak is None else kept | {"peak_memory_mb": peak}


def environments(o: argparse.Namespace, folder: Path) -> dict[str, dict[str, str]]:
    """What each contender finds in its environment; `folder` is for what it refers to."""
    threads = {"OMP_NUM_THREADS": str(o.threads)}
    tuned = {**threads, "GLIBC_TUNABLES": GLIBC_TUNABLES}
    with_settings = [c for c in o.contenders if c in PYTORCH and c != "pytorch" and o.device == "cpu"]
    if with_settings and platform.machine() == "x86_64":
        source, library = folder / "mkl_shim.c", folder / "mkl_shim.so"
        source.write_text(MKL_SHIM, encoding="utf-8")
        run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], {})
        tuned["LD_PRELOAD"] = str(library)
    return {c: tuned if c in with_settings else threads for c in o.contenders}


def leave_out_refused(o: argparse.Namespace, folder: Path) -> None:
    """Takes attune-bf16 from the contenders, with a message, where this build of Attune does not know its setting."""
    if "attune-bf16" not in o.contenders:
        return
    try:
        run([o.attune, "bench", "train", *ATTUNE["attune-bf16"], "--write-batches", str(folder / "unused.jsonl")], {})
    except Failure as failure:
        if "precision" not in str(failure):
            raise
        print(f"attune-bf16 is left out: {failure}", file=sys.stderr)
        leave_out(o, "attune-bf16")


def leave_out(o: argparse.Namespace, contender: str) -> None:
    o.contenders.remove(contender)
    if not o.contenders:
        raise Failure("no contender is left")


def quantized(attune: str, model: Path, to: Path) -> Path | None:
    """The model in int8, or None, with a message, where this build of Attune cannot make it."""
    try:
        run([attune, "quantize", str(model), "--out", str(to), "--type", "int8"], {})
    except Failure as failure:
        print(f"attune-int8 is left out: {failure}", file=sys.stderr)
        return None
    return to


def in_turn(
    o: argparse.Namespace, rate_name: str, unit: str, measure: Callable[[str, int], dict]
) -> dict[str, list[dict]]:
    """The results of every contender, one for each round: measure(contender, round), rounds from 1."""
    results = {c: [] for c in o.contenders}
    for number in range(1, o.rounds + 1):
        for c in o.contenders:
            results[c].append(measure(c, number))
            rate = results[c][-1][rate_name]
            print(f"round {number}/{o.rounds}  {c:16} {rate:10.0f} {unit}", file=sys.stderr)
    return results


def spread(values: list[float]) -> dict:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def column(runs: list[dict], key: str) -> list[float]:
    return [r[key] for r in runs if isinstance(r.get(key), (int, float))]


def pairs_of(contenders: Iterable[str]) -> list[tuple[str, str]]:
    """Which are compared: the first one, and every one of Attune's, with each that comes later."""
    names = list(contenders)
    return [(a, b) for i, a in enumerate(names) if i == 0 or a in ATTUNE for b in names[i + 1 :]]


def ratio_of(results: dict[str, list[dict]], a: str, b: str, key: str) -> dict:
    """Round by round, as far as both have been measured."""
    pairs = [x / y for x, y in zip(column(results[a], key), column(results[b], key)) if y > 0]
    return {**spread(pairs), "pairs": pairs} if pairs else {}


def summarise(results: dict[str, list[dict]], rate_name: str) -> dict:
    def median(runs: list[dict], key: str):
        values = column(runs, key)
        return statistics.median(values) if values else None

    contenders = {}
    for c, runs in results.items():
        contenders[c] = {rate_name: spread(column(runs, rate_name))}
        for key in ("median_ms_per_step", "peak_memory_mb", "import_memory_mb", "parameters"):
            contenders[c][key] = median(runs, key)
    ratios = {f"{a}/{b}": ratio_of(results, a, b, rate_name) for a, b in pairs_of(results)}
    for r in (r for runs in results.values() for r in runs if "peak_memory_mb" in r):
        r["work_memory_mb"] = r["peak_memory_mb"] - r.get("import_memory_mb", 0)
    memory, work_memory = (
        {f"{a}/{b}": ratio for a, b in pairs_of(results) if (ratio := ratio_of(results, a, b, key))}
        for key in ("peak_memory_mb", "work_memory_mb")
    )
    return {
        "machine": platform.platform(),
        "contenders": contenders,
        "ratios": ratios,
        "memory_ratios": memory,
        "work_memory_ratios": work_memory,
        "runs": results,
    }


def table(summary: dict, rate_name: str) -> list[str]:
    def cell(value, width: int, digits: int = 0) -> str:
        return f"{'-' if value is None else format(value, f'.{digits}f'):>{width}}"

    wide = max([16, *map(len, summary["contenders"])])
    wide_pair = max([30, *map(len, summary["ratios"])])
    titles = ("median", "min", "max", "ms/step", "peak MB", "import MB")
    lines = [f"{'':{wide}} " + " ".join(f"{title:>9}" for title in titles)]
    for c, row in summary["contenders"].items():
        rate = row[rate_name]
        ms = row["median_ms_per_step"]
        cells = [cell(rate[key], 9) for key in ("median", "min", "max")]
        cells += [cell(ms, 9, 1 if ms is not None and ms < 100 else 0)]
        cells += [cell(row[key], 9) for key in ("peak_memory_mb", "import_memory_mb")]
        lines.append(f"{c:{wide}} " + " ".join(cells))
    for pair, ratio in summary["ratios"].items():
        if not ratio:
            continue
        pairs = " ".join(f"{r:.2f}" for r in ratio["pairs"])
        memory, work = (summary[key].get(pair) for key in ("memory_ratios", "work_memory_ratios"))
        of_memory = f"peak memory {memory['median']:.2f}, without imports {work['median']:.2f}" if memory else ""
        lines.append(f"{pair:{wide_pair}} speed {ratio['median']:5.2f}   {of_memory:39}  speed by round: {pairs}")
    counts = {c: row["parameters"] for c, row in summary["contenders"].items() if row["parameters"] is not None}
    if len(set(counts.values())) > 1:
        numbers = ", ".join(f"{c} {n:.0f}" for c, n in counts.items())
        lines.append(f"the models differ in their number of parameters: {numbers}")
    return lines


def add_options(
    p: argparse.ArgumentParser, contenders: Iterable[str] = CONTENDERS, thread_counts: str | None = None
) -> None:
    """`thread_counts`: of a comparison that is made with several. Without add_device() the CPU computes."""
    p.set_defaults(device="cpu")
    p.add_argument("--attune", default="build/release/attune", help="the binary")
    p.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    p.add_argument("--contenders", default=",".join(contenders), help="in the order of a round, ratios to the first")
    if thread_counts is None:
        p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    else:
        p.add_argument("--threads", default=thread_counts, help="one setting after the other, with commas")
    p.add_argument("--json", action="store_true", help="print everything measured as one JSON object")


def add_device(p: argparse.ArgumentParser) -> None:
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where the training steps are computed")


def training_contenders(o: argparse.Namespace) -> tuple[str, ...]:
    """Those of o.device; all of them are taken where none was named."""
    o.contenders = o.contenders or ",".join(TRAINING[o.device])
    return TRAINING[o.device]


def check_at_least_1(p: argparse.ArgumentParser, options: argparse.Namespace, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(options, name) < 1:
            p.error(f"--{name.replace('_', '-')} {getattr(options, name)}: expected at least 1")


def numbers(p: argparse.ArgumentParser, options: argparse.Namespace, name: str) -> list[int]:
    """Of an option like 1,2."""
    text = getattr(options, name)
    try:
        found = [int(n) for n in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        p.error(f"--{name.replace('_', '-')} {text}: expected numbers above 0 with commas between them")
    return found


def check_model_folders(p: argparse.ArgumentParser, options: argparse.Namespace, names: Iterable[str]) -> None:
    for name in names:
        folder = getattr(options, name)
        if folder is not None and not (folder / "config.json").is_file():
            p.error(f"--{name} {folder}: expected a model folder")


def check_options(
    p: argparse.ArgumentParser,
    options: argparse.Namespace,
    needs_attune: bool,
    known: Iterable[str] = (*ATTUNE, *PYTORCH),
) -> None:
    """Splits options.contenders. `needs_attune`: its program is used even where it is not one of them."""
    names = options.contenders.split(",")
    if len(set(names)) != len(names) or not set(names) <= set(known):
        p.error(f"--contenders {options.contenders}: expected some of {','.join(known)}, each once")
    options.contenders = names
    if (needs_attune or set(names) & set(ATTUNE)) and shutil.which(options.attune) is None:
        p.error(f"--attune {options.attune}: no such program")
