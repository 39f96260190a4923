#!/usr/bin/env python3
"""Tokens per second of training GPT-2's smallest model, 124 million parameters: Attune, PyTorch and llm.c in turn.

llm.c is a program of its own that is built elsewhere; --llmc names its trainer for the device, which has to stand in
the folder with the files that it opens. In the CPU's the numbers of sequences and of tokens in each are constants.
"""

import argparse
import json
import os
import pty
import re
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from in_turn import (
    ATTUNE,
    PYTORCH,
    TIMEOUT_S,
    Failure,
    add_device,
    add_options,
    check_at_least_1,
    check_options,
    end,
    environments,
    in_turn,
    leave_out_refused,
    result_of,
    run,
    summarise,
    table,
    training_contenders,
    wait,
    with_memory_of,
)

RATE = "tokens_per_s"
LLMC = "llm.c"
CONTEXT, LAYERS, D_MODEL = 1024, 12, 768
LLMC_STEP = {
    "cpu": re.compile(r"step (\d+): train loss (\S+) \(took (\S+) ms\)"),
    "cuda": re.compile(r"step +(\d+)/\d+ \| loss (\S+) .* \| (\S+) ms \|"),
}
LLMC_SIZE = re.compile(r"(max_seq_len|padded_vocab_size|num_\w+|channels): (\d+)")


def attune_command(o: argparse.Namespace, contender: str) -> list[str]:
    settings = {"model.dropout": 0, "model.attention_dropout": 0, "optimizer.clip_norm": 0}
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    size = ["--tokens", str(o.batch * CONTEXT), "--steps", str(o.steps), "--warmup", str(o.warmup)]
    return [
        *(o.attune, "bench", "train", "--preset", "gpt2-124m", *words, *ATTUNE[contender], *size),
        *("--device", o.device, "--threads", str(o.threads), "--json"),
    ]


def pytorch_command(o: argparse.Namespace, contender: str) -> list[str]:
    script = str(Path(__file__).with_name("pytorch_gpt_step.py"))
    size = ["--context", str(CONTEXT), "--batch", str(o.batch), "--steps", str(o.steps), "--warmup", str(o.warmup)]
    return [o.python, script, *size, "--device", o.device, "--threads", str(o.threads), *PYTORCH[contender]]


def llmc_command(o: argparse.Namespace) -> list[str]:
    """The trainer for GPUs takes options: random weights, nothing computed twice, no TF32, one batch for validation."""
    if o.device == "cpu":
        return [str(o.llmc)]
    steps = o.llmc_warmup + o.llmc_steps + 1  # at the end it would validate
    options = {"-b": o.batch, "-t": CONTEXT, "-x": steps, "-e": "d12", "-r": 0, "-f": 0, "-l": 1e-4, "-c": 0.1}
    options |= {"-v": steps, "-m": 1, "-s": 0, "-j": "dev/data/tinyshakespeare/tiny_shakespeare_train.bin"}
    return [str(o.llmc), *(str(word) for option in options.items() for word in option)]


def llmc_activations(sizes: dict[str, int], batch: int, context: int) -> int:
    """How many numbers llm.c keeps of a forward pass: the only place where its output tells batch and length."""
    d = sizes["channels"]
    of_layer = 18 * d + 4 + 2 * sizes["num_heads"] * context
    return batch * context * (sizes["num_layers"] * of_layer + 2 * d + 2 * sizes["padded_vocab_size"] + 3)


def llmc_result(o: argparse.Namespace, lines: list[str], peak_mb: float) -> dict:
    """From what the trainer printed until it was ended."""
    text = "\n".join(lines)
    sizes = {name: int(value) for name, value in LLMC_SIZE.findall(text)}
    steps = [(float(loss), float(ms)) for _, loss, ms in LLMC_STEP[o.device].findall(text)]
    needed = {"num_parameters"}
    if o.device == "cpu":
        needed |= {"channels", "num_layers", "num_heads", "padded_vocab_size", "num_activations"}
    if not needed <= sizes.keys():
        raise Failure(f"{LLMC}: expected lines with {', '.join(sorted(needed))}, found {text[:80]!r}")
    if o.device == "cpu" and sizes["num_activations"] != (expected := llmc_activations(sizes, o.batch, CONTEXT)):
        raise Failure(
            f"{LLMC}: expected {expected} activations, for B = {o.batch} and T = {CONTEXT}, found "
            f"{sizes['num_activations']}: it was built for others"
        )
    times = [ms for _, ms in steps[o.llmc_warmup :]]
    median = statistics.median(times)
    return {
        "program": LLMC,
        "threads": o.threads,
        "steps": len(times),
        "parameters": sizes["num_parameters"],
        "median_ms_per_step": median,
        RATE: 1e3 * o.batch * CONTEXT / median,
        "peak_memory_mb": peak_mb,
        "loss_first": steps[0][0],
        "loss_last": steps[-1][0],
    }


def run_llmc(o: argparse.Namespace, environment: dict[str, str]) -> dict:
    """Runs the trainer for as many steps as are wanted. It writes to a terminal, or its lines would come too late."""
    leader, follower = pty.openpty()
    try:
        process = subprocess.Popen(
            llmc_command(o), cwd=o.llmc.parent, env={**os.environ, **environment}, stdout=follower, stderr=follower
        )
    except OSError as error:
        os.close(leader)
        raise Failure(f"{o.llmc}: {error.strerror}") from None
    finally:
        os.close(follower)
    timer = threading.Timer(TIMEOUT_S, end, [process])
    timer.start()
    lines, missing = [], o.llmc_warmup + o.llmc_steps
    try:
        with open(leader, encoding="utf-8", errors="replace") as output:
            while missing > 0:
                lines.append(output.readline().rstrip())
                missing -= LLMC_STEP[o.device].search(lines[-1]) is not None
    except OSError:
        pass  # a terminal whose program has ended reads as an error
    finally:
        timer.cancel()
        end(process)
        peak_mb, _ = wait(process, TIMEOUT_S)
    if missing > 0:
        said = next((line for line in reversed(lines) if line), "no message")
        raise Failure(f"{LLMC}: {missing} steps are missing after its end, or {TIMEOUT_S} s: {said}")
    return llmc_result(o, lines, peak_mb)


def measure(o: argparse.Namespace, folder: Path) -> dict[str, list[dict]]:
    """The results of every contender, one for each round."""
    leave_out_refused(o, folder)
    environment = environments(o, folder)

    def one(contender: str, _round: int) -> dict:
        if contender == LLMC:
            return with_memory_of(o.device, run_llmc(o, environment[contender]))
        command = attune_command if contender in ATTUNE else pytorch_command
        finished = run(command(o, contender), environment[contender])
        return with_memory_of(o.device, result_of(contender, finished.output, RATE))

    return in_turn(o, RATE, "tokens/s", one)


def add_mfu(summary: dict, peak_tflops: float) -> None:
    """Model FLOPs utilisation of each contender, Chowdhery et al. 2022, appendix B, with all parameters in N."""
    for row in summary["contenders"].values():
        flops_per_token = 6 * row["parameters"] + 12 * LAYERS * D_MODEL * CONTEXT
        row["mfu"] = row[RATE]["median"] * flops_per_token / (peak_tflops * 1e12)


def report(o: argparse.Namespace, summary: dict) -> str:
    title = f"gpt2-124m, {o.batch} x {CONTEXT} tokens, {o.device}, {o.threads} threads, {o.rounds} rounds, tokens/s"
    lines = [title, *table(summary, RATE)]
    if o.device == "cuda":
        shares = ", ".join(f"{c} {100 * row['mfu']:.1f} %" for c, row in summary["contenders"].items())
        lines.append(f"MFU of {o.peak_tflops:g} TFLOP/s: {shares}")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(p, ())
    add_device(p)
    p.add_argument("--peak-tflops", type=float, default=989, help="of MFU with --device cuda; an H100's in bfloat16")
    p.add_argument("--llmc", type=Path, help="llm.c's trainer for the device; adds the contender llm.c at the end")
    p.add_argument("--batch", type=int, default=1, help=f"sequences of {CONTEXT} tokens of a step")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--steps", type=int, default=5, help="timed steps of a run")
    p.add_argument("--warmup", type=int, default=2, help="steps before the timed ones")
    p.add_argument("--llmc-steps", type=int, default=2, help="of llm.c on the CPU, which is much slower")
    p.add_argument("--llmc-warmup", type=int, default=1, help="steps before those")
    o = p.parse_args()
    check_at_least_1(p, o, ("threads", "batch", "rounds", "steps", "llmc_steps"))
    for name in ("warmup", "llmc_warmup"):
        if getattr(o, name) < 0:
            p.error(f"--{name.replace('_', '-')} {getattr(o, name)}: expected at least 0")
    if o.peak_tflops <= 0:
        p.error(f"--peak-tflops {o.peak_tflops}: expected more than 0")
    if o.device == "cuda":
        o.llmc_steps, o.llmc_warmup = o.steps, o.warmup
    known = training_contenders(o)
    if o.llmc is not None:
        if not o.llmc.is_file():
            p.error(f"--llmc {o.llmc}: no such program")
        o.llmc = o.llmc.resolve()
        known = (*known, LLMC)
        if LLMC not in o.contenders.split(","):
            o.contenders += f",{LLMC}"
    check_options(p, o, needs_attune=False, known=known)
    return o


def main() -> int:
    o = parse_options()
    settings = {"batch": o.batch, "context": CONTEXT, "threads": o.threads, "steps": o.steps, "warmup": o.warmup}
    settings |= {"device": o.device, "rounds": o.rounds, "llmc_steps": o.llmc_steps, "llmc_warmup": o.llmc_warmup}
    try:
        with tempfile.TemporaryDirectory() as folder:
            summary = {**settings, **summarise(measure(o, Path(folder)), RATE)}
        if o.device == "cuda":
            summary["peak_tflops"] = o.peak_tflops
            add_mfu(summary, o.peak_tflops)
    except Failure as failure:
        print(f"gpt_step: {failure}", file=sys.stderr)
        return 1
    print(json.dumps(summary, indent=2) if o.json else report(o, summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
