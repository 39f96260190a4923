#!/usr/bin/env python3
"""Accuracy, seconds and memory of fine-tuning an encoder of the Hugging Face hub: Attune and PyTorch, same recipe.

Both take mean pooling, a new linear head, dropout, AdamW and a linear schedule, and the same number of epochs. Batches
of the contender "pytorch" are --texts texts in random order, as most programs have them; those of the others have
--batch-tokens tokens, texts of similar length together. A round is a seed. Both models are tested by the program that
trained them.
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
    result_of,
    run,
    spread,
)

CONTENDERS = ("attune", "attune-bf16", "pytorch", "pytorch-tuned")


def attune_command(o: argparse.Namespace, contender: str, seed: int, folder: Path) -> list[str]:
    settings = {
        "train.initialize_from": json.dumps(str(o.model)),
        "model.architecture": "encoder_classifier",
        "model.pooling": "mean",
        "model.dropout": o.dropout,
        "model.attention_dropout": o.dropout,
        "data.train_files": json.dumps([str(o.train)]),
        "data.max_tokens": o.max_tokens,
        "optimizer.kind": "adamw",
        "optimizer.beta_2": 0.999,
        "optimizer.epsilon": 1e-8,
        "optimizer.weight_decay": o.weight_decay,
        "optimizer.clip_norm": 1.0,
        "schedule.kind": "linear",
        "schedule.learning_rate": o.learning_rate,
        "schedule.warmup_steps": o.warmup_steps,
        "train.steps": 0,
        "train.epochs": o.epochs,
        "train.batch_tokens": o.batch_tokens,
        "train.label_smoothing": 0,
        "train.checkpoint_every": 0,
        "train.threads": o.threads,
        "train.seed": seed,
    }
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    for setting in o.set:
        words += ["--set", setting]
    return [o.attune, "train", "--out", str(folder / "run"), *words, *ATTUNE[contender]]


def of_attune(o: argparse.Namespace, contender: str, seed: int, folder: Path, environment: dict) -> dict:
    finished = run(attune_command(o, contender, seed, folder), environment)
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    last = [line for line in lines if "seconds" in line][-1]
    test = [o.attune, "evaluate", str(folder / "run" / "model"), "--data", str(o.test), "--json"]
    found = json.loads(run(test, environment).output)
    return {
        "program": contender,
        "steps": last["step"],
        "seconds": last["seconds"],
        "peak_memory_mb": finished.peak_memory_mb,
        "accuracy": 100 * found["accuracy"],
    }


def of_pytorch(o: argparse.Namespace, contender: str, seed: int, environment: dict) -> dict:
    script = str(Path(__file__).with_name("pytorch_fine_tune.py"))
    given = {"model": o.model, "train": o.train, "test": o.test, "epochs": o.epochs, "texts": o.texts}
    given |= {"max-tokens": o.max_tokens, "learning-rate": o.learning_rate, "warmup-steps": o.warmup_steps}
    given |= {"weight-decay": o.weight_decay, "dropout": o.dropout, "threads": o.threads, "seed": seed}
    if contender != "pytorch":
        given["batch-tokens"] = o.batch_tokens
    words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    finished = run([o.python, script, *words, *PYTORCH[contender]], environment)
    return result_of(contender, finished.output, "seconds") | {"peak_memory_mb": finished.peak_memory_mb}


def measure(o: argparse.Namespace, folder: Path) -> dict[str, list[dict]]:
    environment = environments(o, folder)
    results: dict[str, list[dict]] = {c: [] for c in o.contenders}
    for seed in range(1, o.rounds + 1):
        for c in o.contenders:
            with tempfile.TemporaryDirectory(dir=folder) as name:
                if c in ATTUNE:
                    result = of_attune(o, c, seed, Path(name), environment[c])
                else:
                    result = of_pytorch(o, c, seed, environment[c])
            results[c].append(result)
            print(
                f"seed {seed}/{o.rounds}  {c:16} accuracy {result['accuracy']:6.2f}  {result['seconds']:7.1f} s  "
                f"{result['peak_memory_mb']:6.0f} MB  {result['steps']} steps",
                file=sys.stderr,
            )
    return results


def summarise(results: dict[str, list[dict]]) -> dict:
    def of(runs: list[dict], key: str) -> list[float]:
        return [r[key] for r in runs]

    first = next(iter(results))
    summary = {"contenders": {}, "ratios": {}, "runs": results}
    for c, runs in results.items():
        accuracies = of(runs, "accuracy")
        deviation = statistics.stdev(accuracies) if len(accuracies) > 1 else 0.0
        row = {"accuracy": statistics.mean(accuracies), "deviation": deviation}
        summary["contenders"][c] = row | {k: spread(of(runs, k)) for k in ("seconds", "peak_memory_mb")}
        if c != first:
            ratios = {}
            for key in ("seconds", "peak_memory_mb"):
                ratios[key] = spread([a / b for a, b in zip(of(results[first], key), of(runs, key))])
            summary["ratios"][f"{first}/{c}"] = ratios
    return summary


def table(summary: dict) -> list[str]:
    lines = [f"{'':16} {'accuracy':>9} {'deviation':>9} {'seconds':>9} {'peak MB':>9}"]
    for c, row in summary["contenders"].items():
        seconds, memory = row["seconds"]["median"], row["peak_memory_mb"]["median"]
        lines.append(f"{c:16} {row['accuracy']:9.2f} {row['deviation']:9.2f} {seconds:9.1f} {memory:9.0f}")
    for pair, ratios in summary["ratios"].items():
        seconds, memory = ratios["seconds"]["median"], ratios["peak_memory_mb"]["median"]
        lines.append(f"{pair:32} speed {1 / seconds:5.2f}   memory {memory:5.2f}")
    return lines


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", type=Path, required=True, help="folder of a BERT, such as all-MiniLM-L6-v2")
    p.add_argument("--train", type=Path, required=True, help="label<TAB>text")
    p.add_argument("--test", type=Path, required=True, help="the same")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--texts", type=int, default=32, help="of a batch of PyTorch as installed")
    p.add_argument("--batch-tokens", type=int, default=640, help="of a batch of the others")
    p.add_argument("--max-tokens", type=int, default=128, help="of a text")
    p.add_argument("--learning-rate", type=float, default=1e-4)
    p.add_argument("--warmup-steps", type=int, default=50)
    p.add_argument("--weight-decay", type=float, default=0.01)
    p.add_argument("--dropout", type=float, default=0.1)
    p.add_argument("--set", action="append", default=[], help="a further setting of attune train: key=value")
    p.add_argument("--rounds", type=int, default=3, help="seeds")
    add_options(p, CONTENDERS)
    o = p.parse_args()
    check_at_least_1(p, o, ("epochs", "texts", "batch_tokens", "max_tokens", "rounds", "threads"))
    check_options(p, o, needs_attune=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            summary = summarise(measure(o, Path(folder)))
    except Failure as failure:
        print(f"fine_tune.py: {failure}", file=sys.stderr)
        return 1
    print(json.dumps(summary, indent=2) if o.json else "\n".join(table(summary)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
