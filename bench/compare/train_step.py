#!/usr/bin/env python3
"""Tokens per second of a training step, Attune and PyTorch in turn on the same batches.

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
import tempfile
from pathlib import Path

# A batch of a model is about --tokens target tokens. Dropout stands at the embeddings and the residual branches alone.
MODELS = {
    "base": {"d_model": 512, "heads": 8, "layers": 6, "d_ff": 2048, "vocab": 8000, "dropout": 0.1, "norm": "post"},
    "small": {"d_model": 128, "heads": 4, "layers": 4, "d_ff": 256, "vocab": 10000, "dropout": 0.3, "norm": "post"},
}
CONTENDERS = ("attune", "pytorch", "pytorch-tuned")
TIMEOUT_S = 3600

# MKL keeps its AVX-512 code from a processor that is not Intel's. This answers its question with yes.
MKL_SHIM = "int mkl_serv_intel_cpu_true(void) { return 1; }\nint mkl_serv_intel_cpu(void) { return 1; }\n"
# Large tensors stay with the process from step to step, where glibc would give them back and fault them in again.
GLIBC_TUNABLES = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8589934592"


def attune_settings(model: dict) -> list[str]:
    settings = {name: value for name, value in model.items() if name != "vocab"}
    settings |= {"source_vocab": model["vocab"], "target_vocab": model["vocab"], "norm": json.dumps(model["norm"])}
    settings |= {"share_embeddings": "true", "share_projection": "true"}
    settings |= {"attention_dropout": 0.0, "activation_dropout": 0.0}
    return [word for name, value in settings.items() for word in ("--set", f"model.{name}={value}")]


def attune_write_command(o: argparse.Namespace, batches: Path) -> list[str]:
    settings = attune_settings(MODELS[o.model])
    return [o.attune, "bench", "train", *settings, "--tokens", str(o.tokens), "--write-batches", str(batches)]


def attune_command(o: argparse.Namespace, batches: Path) -> list[str]:
    run = ["--steps", str(o.steps), "--warmup", str(o.warmup), "--threads", str(o.threads), "--json"]
    return [o.attune, "bench", "train", *attune_settings(MODELS[o.model]), "--batches", str(batches), *run]


def pytorch_command(o: argparse.Namespace, batches: Path) -> list[str]:
    script = str(Path(__file__).with_name("pytorch_train_step.py"))
    model = [word for name, value in MODELS[o.model].items() for word in (f"--{name.replace('_', '-')}", str(value))]
    run = ["--steps", str(o.steps), "--warmup", str(o.warmup), "--threads", str(o.threads)]
    return [o.python, script, *model, "--tied", "--batches", str(batches), *run, *(["--compile"] if o.compile else [])]


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


def result_of(contender: str, output: str) -> dict:
    lines = output.strip().splitlines()
    for text in (output, lines[-1] if lines else ""):  # one object, over several lines or on the last one
        try:
            result = json.loads(text)
        except json.JSONDecodeError:
            continue
        rate = result.get("target_tokens_per_s") if isinstance(result, dict) else None
        if isinstance(rate, (int, float)) and rate > 0:
            return result
    raise Failure(f'{contender}: expected a JSON object with "target_tokens_per_s", found {output.strip()[:80]!r}')


def tuned_environment(folder: Path) -> dict[str, str]:
    environment = {"GLIBC_TUNABLES": GLIBC_TUNABLES}
    if platform.machine() == "x86_64":
        source, library = folder / "mkl_shim.c", folder / "mkl_shim.so"
        source.write_text(MKL_SHIM, encoding="utf-8")
        run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], {})
        environment["LD_PRELOAD"] = str(library)
    return environment


def measure(o: argparse.Namespace, folder: Path) -> dict[str, list[dict]]:
    """The results of every contender, one for each round."""
    batches = o.batches
    if batches is None:
        batches = folder / "batches.jsonl"
        run(attune_write_command(o, batches), {})
    threads = {"OMP_NUM_THREADS": str(o.threads)}
    commands = {"attune": attune_command, "pytorch": pytorch_command, "pytorch-tuned": pytorch_command}
    environments = {c: threads for c in o.contenders}
    if "pytorch-tuned" in o.contenders:
        environments["pytorch-tuned"] = {**threads, **tuned_environment(folder)}
    results = {c: [] for c in o.contenders}
    for round_number in range(1, o.rounds + 1):
        for c in o.contenders:
            results[c].append(result_of(c, run(commands[c](o, batches), environments[c])))
            rate = results[c][-1]["target_tokens_per_s"]
            print(f"round {round_number}/{o.rounds}  {c:14} {rate:10.0f} target tokens/s", file=sys.stderr)
    return results


def summarise(o: argparse.Namespace, results: dict[str, list[dict]]) -> dict:
    def column(contender: str, key: str) -> list[float]:
        return [r[key] for r in results[contender] if isinstance(r.get(key), (int, float))]

    def median(values: list[float]):
        return statistics.median(values) if values else None

    contenders, ratios = {}, {}
    first = o.contenders[0]
    for c in o.contenders:
        rates = column(c, "target_tokens_per_s")
        contenders[c] = {
            "target_tokens_per_s": {"median": median(rates), "min": min(rates), "max": max(rates)},
            "median_ms_per_step": median(column(c, "median_ms_per_step")),
            "peak_memory_mb": median(column(c, "peak_memory_mb")),
            "parameters": median(column(c, "parameters")),
        }
        if c != first:
            pairs = [a / b for a, b in zip(column(first, "target_tokens_per_s"), rates)]
            ratios[f"{first}/{c}"] = {"median": median(pairs), "min": min(pairs), "max": max(pairs), "pairs": pairs}
    settings = {"model": o.model, "threads": o.threads, "steps": o.steps, "warmup": o.warmup, "rounds": o.rounds}
    return {**settings, "machine": platform.platform(), "contenders": contenders, "ratios": ratios, "runs": results}


def table(summary: dict) -> str:
    def cell(value, width: int) -> str:
        return f"{'-' if value is None else format(value, '.0f'):>{width}}"

    lines = [f"model {summary['model']}, {summary['threads']} threads, {summary['rounds']} rounds, target tokens/s"]
    lines.append(f"{'':14} {'median':>9} {'min':>9} {'max':>9} {'ms/step':>9} {'peak MB':>9}")
    for c, row in summary["contenders"].items():
        rate = row["target_tokens_per_s"]
        values = (rate["median"], rate["min"], rate["max"], row["median_ms_per_step"], row["peak_memory_mb"])
        lines.append(f"{c:14} " + " ".join(cell(v, 9) for v in values))
    for pair, ratio in summary["ratios"].items():
        pairs = " ".join(f"{r:.2f}" for r in ratio["pairs"])
        lines.append(f"{pair:24} median {ratio['median']:.2f}   by round: {pairs}")
    counts = {c: row["parameters"] for c, row in summary["contenders"].items() if row["parameters"] is not None}
    if len(set(counts.values())) > 1:
        numbers = ", ".join(f"{c} {n:.0f}" for c, n in counts.items())
        lines.append(f"the models differ in their number of parameters: {numbers}")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--model", choices=sorted(MODELS), default="base")
    p.add_argument("--attune", default="build/release/attune", help="the binary")
    p.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    p.add_argument("--contenders", default=",".join(CONTENDERS), help="in the order of a round, ratios to the first")
    p.add_argument("--batches", type=Path, help="a batch file; otherwise Attune writes one")
    p.add_argument("--tokens", type=int, default=2000, help="target tokens of a batch, where Attune writes the file")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--steps", type=int, default=10, help="timed steps of a run")
    p.add_argument("--warmup", type=int, default=3, help="steps before the timed ones")
    p.add_argument("--compile", action="store_true", help="PyTorch through torch.compile")
    p.add_argument("--json", action="store_true", help="print everything measured as one JSON object")
    options = p.parse_args()
    options.contenders = options.contenders.split(",")
    if len(set(options.contenders)) != len(options.contenders) or not set(options.contenders) <= set(CONTENDERS):
        p.error(f"--contenders {','.join(options.contenders)}: expected some of {','.join(CONTENDERS)}, each once")
    for name in ("tokens", "threads", "rounds", "steps"):
        if getattr(options, name) < 1:
            p.error(f"--{name} {getattr(options, name)}: expected at least 1")
    if options.batches is not None and not options.batches.is_file():
        p.error(f"--batches {options.batches}: no such file")
    if ("attune" in options.contenders or options.batches is None) and shutil.which(options.attune) is None:
        p.error(f"--attune {options.attune}: no such program")
    return options


def main() -> int:
    options = parse_options()
    try:
        with tempfile.TemporaryDirectory() as folder:
            summary = summarise(options, measure(options, Path(folder)))
    except Failure as failure:
        print(f"train_step: {failure}", file=sys.stderr)
        return 1
    print(json.dumps(summary, indent=2) if options.json else table(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
