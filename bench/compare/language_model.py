#!/usr/bin/env python3
"""Tokens per second of training a small character-level GPT, Attune and PyTorch in turn on the same text.

What is timed is training as people run it, batch making and schedule included; start-up and validation are not. With
--validate the rest of the training is done as well, and both models are measured on the same held-out text.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from in_turn import (
    ATTUNE,
    PYTORCH,
    Failure,
    add_options,
    check_at_least_1,
    check_options,
    environments,
    in_turn,
    leave_out_refused,
    result_of,
    run,
    spread,
    summarise,
    table,
)

RATE = "tokens_per_s"
BATCH, CONTEXT = 12, 64  # windows, and characters of each: those of the preset


def steps_of(o: argparse.Namespace) -> int:
    """The first window is left out: it is for what happens once."""
    return o.steps if o.validate else o.window + o.steps


def attune_command(o: argparse.Namespace, folder: Path, seed: int) -> list[str]:
    steps = steps_of(o)
    settings = {
        "data.train_files": json.dumps([str(o.text)]),
        "data.tokenizer_type": "characters",
        "data.valid_fraction": 0.1,
        "schedule.learning_rate": o.learning_rate,
        "schedule.final_learning_rate": o.final_learning_rate,
        "schedule.warmup_steps": o.warmup_steps,
        "train.batch_tokens": BATCH * CONTEXT,
        "train.steps": steps,
        "train.log_every": o.window,
        "train.valid_every": steps,
        "train.checkpoint_every": steps,
        "train.threads": o.threads,
        "train.seed": seed,
    }
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return [o.attune, "train", "--preset", "gpt-char", "--out", str(folder), *words]


def attune_result(o: argparse.Namespace, folder: Path) -> dict:
    """From the run's metrics, in which a line stands for a window of steps and the last one for the validation."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    windows = [line for line in lines if "tokens_per_second" in line and line["step"] % o.window == 0]
    losses = [line["valid_nll"] for line in lines if "valid_nll" in line]
    if len(windows) < 2 or not losses:
        raise Failure(f"attune: {folder}/metrics.jsonl: expected windows and a validation, found {len(lines)} lines")
    rate = statistics.median(line["tokens_per_second"] for line in windows[1:])
    model = json.loads(run([o.attune, "inspect", str(folder / "model"), "--json"], {}).output)
    return {
        "program": "attune",
        "threads": o.threads,
        "steps": steps_of(o),
        "parameters": model["parameters"]["total"],
        "median_ms_per_step": 1e3 * BATCH * CONTEXT / rate,  # a few batches of an epoch are smaller
        RATE: rate,
        "loss_first": windows[0]["nll"],
        "loss_last": windows[-1]["nll"],
        "validation_loss": losses[-1],
    }


def pytorch_command(o: argparse.Namespace, contender: str, seed: int) -> list[str]:
    script = str(Path(__file__).with_name("pytorch_language_model.py"))
    work = ["--text", str(o.text), "--batch", str(BATCH), "--context", str(CONTEXT)]
    schedule = ["--learning-rate", str(o.learning_rate), "--final-learning-rate", str(o.final_learning_rate)]
    schedule += ["--warmup-steps", str(o.warmup_steps)]
    size = ["--steps", str(steps_of(o)), "--window", str(o.window), "--threads", str(o.threads), "--seed", str(seed)]
    flags = [*PYTORCH[contender], *(["--validate"] if o.validate else [])]
    return [o.python, script, *work, *schedule, *size, *flags]


def measure(o: argparse.Namespace, folder: Path) -> dict[str, list[dict]]:
    """The results of every contender, one for each round, which is the seed as well."""
    leave_out_refused(o, folder)
    environment = environments(o, folder)

    def one(contender: str, number: int) -> dict:
        if contender in ATTUNE:
            with tempfile.TemporaryDirectory(dir=folder) as run_folder:
                command = [*attune_command(o, Path(run_folder), number), *ATTUNE[contender]]
                finished = run(command, environment[contender])
                return attune_result(o, Path(run_folder)) | {"peak_memory_mb": finished.peak_memory_mb}
        return result_of(contender, run(pytorch_command(o, contender, number), environment[contender]).output, RATE)

    return in_turn(o, RATE, "tokens/s", one)


def report(o: argparse.Namespace, summary: dict) -> str:
    lines = [f"gpt-char, {o.threads} threads, {o.rounds} rounds, tokens/s", *table(summary, RATE)]
    for c, loss in summary.get("validation_loss", {}).items():
        lines.append(f"{c:16} validation loss {loss['median']:.4f} (from {loss['min']:.4f} to {loss['max']:.4f})")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--text", type=Path, required=True, help="UTF-8; the first 90 %% are for training")
    add_options(p)
    p.add_argument("--rounds", type=int, help="7, with --validate 1; the number of a round is its seed")
    p.add_argument("--steps", type=int, help="timed steps, 500; with --validate all of them, 2000")
    p.add_argument("--window", type=int, default=50, help="steps that are timed together; the first so many are not")
    p.add_argument("--learning-rate", type=float, default=4e-3, help="at the peak")
    p.add_argument("--final-learning-rate", type=float, default=1e-4, help="at the last step")
    p.add_argument("--warmup-steps", type=int, default=100, help="of the schedule")
    p.add_argument("--validate", action="store_true", help="also print the loss on the last 10 %% of the text")
    o = p.parse_args()
    if o.rounds is None:
        o.rounds = 1 if o.validate else 7
    if o.steps is None:
        o.steps = 2000 if o.validate else 500
    check_at_least_1(p, o, ("threads", "rounds", "steps", "window"))
    if steps_of(o) < 2 * o.window:
        p.error(f"--steps {o.steps}: expected at least {'two windows' if o.validate else 'a window'} of {o.window}")
    if not 0 <= o.warmup_steps < steps_of(o):
        p.error(f"--warmup-steps {o.warmup_steps}: expected less than the {steps_of(o)} steps")
    if not o.text.is_file():
        p.error(f"--text {o.text}: no such file")
    check_options(p, o, needs_attune=False)
    return o


def main() -> int:
    o = parse_options()
    settings = {"threads": o.threads, "steps": o.steps, "window": o.window, "rounds": o.rounds}
    settings |= {"learning_rate": o.learning_rate, "final_learning_rate": o.final_learning_rate, "text": str(o.text)}
    try:
        with tempfile.TemporaryDirectory() as folder:
            results = measure(o, Path(folder))
    except Failure as failure:
        print(f"language_model: {failure}", file=sys.stderr)
        return 1
    summary = {**settings, **summarise(results, RATE)}
    if o.validate:
        summary["validation_loss"] = {c: spread([r["validation_loss"] for r in rs]) for c, rs in results.items()}
    print(json.dumps(summary, indent=2) if o.json else report(o, summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
