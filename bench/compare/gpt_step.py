#!/usr/bin/env python3
"""Tokens per second of training GPT-2's smallest model, 124 million parameters: Attune, PyTorch and llm.c in turn.

llm.c is a program of its own that is built elsewhere; --llmc names its CPU trainer, which has to stand in the folder
with the files that it opens. The numbers of sequences and of tokens in each are constants in its source.
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
    wait,
)

RATE = "tokens_per_s"
LLMC = "llm.c"
CONTEXT = 1024
LLMC_STEP = re.compile(r"step (\d+): train loss (\S+) \(took (\S+) ms\)")
LLMC_SIZE = re.compile(r"(max_seq_len|padded_vocab_size|num_\w+|channels): (\d+)")


def attune_command(o: argparse.Namespace, contender: str) -> list[str]:
    settings = {"model.dropout": 0, "model.attention_dropout": 0, "optimizer.clip_norm": 0}
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    size = ["--tokens", str(o.batch * CONTEXT), "--steps", str(o.steps), "--warmup", str(o.warmup)]
    return [
        *(o.attune, "bench", "train", "--preset", "gpt2-124m", *words, *ATTUNE[contender], *size),
        *("--threads", str(o.threads), "--json"),
    ]


def pytorch_command(o: argparse.Namespace, contender: str) -> list[str]:
    script = str(Path(__file__).with_name("pytorch_gpt_step.py"))
    size = ["--context", str(CONTEXT), "--batch", str(o.batch), "--steps", str(o.steps), "--warmup", str(o.warmup)]
    return [o.python, script, *size, "--threads", str(o.threads), *PYTORCH[contender]]


def llmc_activations(sizes: dict[str, int], batch: int, context: int) -> int:
    """How many numbers llm.c keeps of a forward pass: the only place where its output tells batch and length."""
    d = sizes["channels"]
    of_layer = 18 * d + 4 + 2 * sizes["num_heads"] * context
    return batch * context * (sizes["num_layers"] * of_layer + 2 * d + 2 * sizes["padded_vocab_size"] + 3)


def llmc_result(o: argparse.Namespace, lines: list[str], peak_mb: float) -> dict:
    """From what the trainer printed until it was ended."""
    text = "\n".join(lines)
    sizes = {name: int(value) for name, value in LLMC_SIZE.findall(text)}
    steps = [(float(loss), float(ms)) for _, loss, ms in LLMC_STEP.findall(text)]
    needed = {"channels", "num_layers", "num_heads", "padded_vocab_size", "num_activations", "num_parameters"}
    if not needed <= sizes.keys():
        raise Failure(f"{LLMC}: expected lines with {', '.join(sorted(needed))}, found {text[:80]!r}")
    expected = llmc_activations(sizes, o.batch, CONTEXT)
    if sizes["num_activations"] != expected:
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
            [str(o.llmc)], cwd=o.llmc.parent, env={**os.environ, **environment}, stdout=follower, stderr=follower
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
                missing -= LLMC_STEP.search(lines[-1]) is not None
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
            return run_llmc(o, environment[contender])
        command = attune_command if contender in ATTUNE else pytorch_command
        return result_of(contender, run(command(o, contender), environment[contender]).output, RATE)

    return in_turn(o, RATE, "tokens/s", one)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(p, (*ATTUNE, *PYTORCH))
    p.add_argument("--llmc", type=Path, help="llm.c's CPU trainer; adds the contender llm.c at the end")
    p.add_argument("--batch", type=int, default=1, help=f"sequences of {CONTEXT} tokens of a step")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--steps", type=int, default=5, help="timed steps of a run")
    p.add_argument("--warmup", type=int, default=2, help="steps before the timed ones")
    p.add_argument("--llmc-steps", type=int, default=2, help="timed steps of llm.c, which is much slower")
    p.add_argument("--llmc-warmup", type=int, default=1, help="steps before those")
    o = p.parse_args()
    check_at_least_1(p, o, ("threads", "batch", "rounds", "steps", "llmc_steps"))
    for name in ("warmup", "llmc_warmup"):
        if getattr(o, name) < 0:
            p.error(f"--{name.replace('_', '-')} {getattr(o, name)}: expected at least 0")
    known = (*ATTUNE, *PYTORCH)
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
    settings |= {"rounds": o.rounds, "llmc_steps": o.llmc_steps, "llmc_warmup": o.llmc_warmup}
    try:
        with tempfile.TemporaryDirectory() as folder:
            summary = {**settings, **summarise(measure(o, Path(folder)), RATE)}
    except Failure as failure:
        print(f"gpt_step: {failure}", file=sys.stderr)
        return 1
    title = f"gpt2-124m, {o.batch} x {CONTEXT} tokens, {o.threads} threads, {o.rounds} rounds, tokens/s"
    print(json.dumps(summary, indent=2) if o.json else "\n".join([title, *table(summary, RATE)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
