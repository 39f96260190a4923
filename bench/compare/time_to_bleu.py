#!/usr/bin/env python3
"""Minutes of training and BLEU of a small translation model, Attune and PyTorch with the same recipe.

Every number of steps is a schedule of its own that ends at a learning rate of 0; the time to reach a BLEU is that of
the shortest schedule that reaches it. Attune searches and scores both models.
"""

import argparse
import json
import os
import platform
import statistics
import struct
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from in_turn import (
    ATTUNE,
    PYTORCH,
    Failure,
    add_options,
    check_at_least_1,
    check_options,
    environments,
    leave_out_refused,
    result_of,
    run,
    spread,
)

TRAINING_TIMEOUT_S = 24 * 3600
FILES = {
    "train_source": "train.en",
    "train_target": "train.de",
    "test_source": "test.2016.en",
    "test_reference": "test.2016.tok.de",
}
MODEL = {"d_model": 128, "heads": 4, "layers": 4, "d_ff": 256, "dropout": 0.2}


def attune_command(o: argparse.Namespace, contender: str, steps: int, seed: int, folder: Path) -> list[str]:
    settings = {f"model.{name}": value for name, value in MODEL.items()}
    settings |= {f"model.{name}": 0 for name in ("attention_dropout", "activation_dropout")}
    settings |= {f"model.{name}": "true" for name in ("share_embeddings", "share_projection")}
    settings |= {"model.norm": "pre", "model.positions": "rotary", "model.embedding_initialization": "normal"}
    settings |= {
        "data.train_source": json.dumps([str(o.train_source)]),
        "data.train_target": json.dumps([str(o.train_target)]),
        "data.tokenizer": json.dumps(str(folder / "tokenizer.json")),
        "optimizer.kind": "adam",
        "optimizer.beta_1": 0.9,
        "optimizer.beta_2": 0.98,
        "optimizer.epsilon": 1e-8,
        "schedule.kind": "linear",
        "schedule.learning_rate": o.learning_rate,
        "schedule.warmup_steps": o.warmup_steps,
        "train.batch_tokens": o.batch_tokens,
        "train.label_smoothing": 0.1,
        "train.steps": steps,
        "train.valid_every": steps,
        "train.checkpoint_every": steps,
        "train.log_every": min(o.log_every, steps),
        "train.threads": o.threads,
        "train.seed": seed,
    }
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return [o.attune, "train", "--out", str(folder / contender), *words, *ATTUNE[contender]]


def attune_result(folder: Path, steps: int) -> dict:
    """Seconds of the steps are in the metadata of the last checkpoint, losses in the metrics."""
    path = folder / "checkpoints" / f"step-{steps:08}.safetensors"
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        state = json.loads(json.loads(file.read(length))["__metadata__"]["state"])
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    windows = [{"step": line["step"], "loss": line["loss"]} for line in lines if "loss" in line]
    return {"program": "attune", "steps": steps, "minutes": state["training"]["seconds"] / 60, "windows": windows}


def pytorch_command(o: argparse.Namespace, contender: str, steps: int, seed: int, folder: Path) -> list[str]:
    script = str(Path(__file__).with_name("pytorch_translation.py"))
    model = [word for name, value in MODEL.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    text = ["--source", str(o.train_source), "--target", str(o.train_target)]
    schedule = ["--learning-rate", str(o.learning_rate), "--warmup-steps", str(o.warmup_steps), "--steps", str(steps)]
    size = ["--batch-tokens", str(o.batch_tokens), "--threads", str(o.threads), "--seed", str(seed)]
    size += ["--log-every", str(min(o.log_every, steps)), *PYTORCH[contender]]
    out = ["--tokenizer", str(folder / "tokenizer.json"), "--out", str(folder / contender / "model")]
    return [o.python, script, *text, *model, *schedule, *size, *out]


def train(o: argparse.Namespace, contender: str, steps: int, seed: int, folder: Path, environment: dict) -> dict:
    of_attune = contender in ATTUNE
    command = (attune_command if of_attune else pytorch_command)(o, contender, steps, seed, folder)
    finished = run(command, environment, TRAINING_TIMEOUT_S)
    result = (
        attune_result(folder / contender, steps) if of_attune else result_of(contender, finished.output, "minutes")
    )
    return result | {"peak_memory_mb": finished.peak_memory_mb, "loss_last": result["windows"][-1]["loss"]}


def train_all(o: argparse.Namespace, steps: int, seed: int, folder: Path, environment: dict) -> dict[str, dict]:
    """One after the other, or at once, each on cores of its own."""
    cores = sorted(os.sched_getaffinity(0))

    def one(place: int, contender: str) -> dict:
        if o.parallel:  # of this thread, and so of the program that it starts
            os.sched_setaffinity(0, cores[place * o.threads : (place + 1) * o.threads])
        return train(o, contender, steps, seed, folder, environment[contender])

    with ThreadPoolExecutor(len(o.contenders) if o.parallel else 1) as pool:
        return dict(zip(o.contenders, pool.map(one, range(len(o.contenders)), o.contenders)))


def score(o: argparse.Namespace, model: Path) -> dict:
    text = ["--source", str(o.test_source), "--reference", str(o.test_reference), "--bleu-tokenizer", "none"]
    search = ["--beam-size", "5", "--length-penalty", "1", "--threads", str(o.threads), "--json"]
    found = json.loads(run([o.attune, "evaluate", str(model), *text, *search], {}).output)
    return {"bleu": found["bleu"], "chrf": found["chrf"]}


def measure(o: argparse.Namespace, folder: Path) -> dict[int, dict[str, list[dict]]]:
    """By number of steps and contender, one for each round, which is the seed as well."""
    leave_out_refused(o, folder)
    environment = environments(o, folder)
    results = {steps: {c: [] for c in o.contenders} for steps in o.steps}
    for steps in o.steps:
        for number in range(1, o.rounds + 1):
            with tempfile.TemporaryDirectory(dir=folder) as name:
                of_round = Path(name)
                learn = ["--kind", "whitespace", "--vocab-size", "16000", "--subword-marker", "@@"]
                text = ["--input", str(o.train_source), str(o.train_target)]
                tokenizer = str(of_round / "tokenizer.json")
                run([o.attune, "tokenizer", "train", *text, *learn, "--output", tokenizer], {})
                for c, result in train_all(o, steps, number, of_round, environment).items():
                    results[steps][c].append(result | score(o, of_round / c / "model"))
                    minutes, bleu = result["minutes"], results[steps][c][-1]["bleu"]
                    print(
                        f"{steps} steps  round {number}/{o.rounds}  {c:16} {minutes:7.1f} minutes  BLEU {bleu:.2f}",
                        file=sys.stderr,
                    )
    return results


def summarise(o: argparse.Namespace, results: dict[int, dict[str, list[dict]]]) -> dict:
    schedules, reached = [], {}
    first = o.contenders[0]
    for steps, runs in results.items():
        row = {"steps": steps, "contenders": {}, "times_as_long": {}}
        for c, of_contender in runs.items():
            figures = ("minutes", "bleu", "chrf", "loss_last", "peak_memory_mb")
            row["contenders"][c] = {name: spread([r[name] for r in of_contender]) for name in figures}
            pairs = [r["minutes"] / f["minutes"] for r, f in zip(of_contender, runs[first])]
            row["times_as_long"][f"{c}/{first}"] = {**spread(pairs), "pairs": pairs}
            if row["contenders"][c]["bleu"]["median"] >= o.bleu and c not in reached:
                reached[c] = {"steps": steps, "minutes": statistics.median(r["minutes"] for r in of_contender)}
        schedules.append(row)
    return {"bleu": o.bleu, "reached": reached, "schedules": schedules, "runs": results}


def report(o: argparse.Namespace, summary: dict) -> str:
    how = "at once" if o.parallel else "in turn"
    lines = [f"{o.threads} threads each, {how}, {o.rounds} rounds; BLEU: median (from least to most)"]
    lines.append(f"{'steps':>6} {'':16} {'minutes':>8} {'of first':>8} {'BLEU':>22} {'loss':>7} {'peak MB':>8}")
    for row in summary["schedules"]:
        for c, figures in row["contenders"].items():
            longer = row["times_as_long"][f"{c}/{o.contenders[0]}"]["median"]
            minutes, bleu, loss, peak = (figures[n] for n in ("minutes", "bleu", "loss_last", "peak_memory_mb"))
            of_bleu = f"{bleu['median']:.2f} ({bleu['min']:.2f} to {bleu['max']:.2f})"
            lines.append(
                f"{row['steps']:>6} {c:16} {minutes['median']:>8.2f} {longer:>8.2f} {of_bleu:>22} "
                f"{loss['median']:>7.3f} {peak['median']:>8.0f}"
            )
    for c in o.contenders:
        found = summary["reached"].get(c)
        what = f"{found['minutes']:.1f} minutes, {found['steps']} steps" if found else "not reached"
        lines.append(f"{o.bleu:g} BLEU, {c}: {what}")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--data", type=Path, help=f"folder with {', '.join(FILES.values())}")
    for name, file in FILES.items():
        p.add_argument(f"--{name.replace('_', '-')}", type=Path, help=f"in place of {file} in that folder")
    add_options(p, ("attune", "pytorch-tuned"))
    p.add_argument("--steps", default="4900", help="of each schedule, with commas: 1200,2400,4900")
    p.add_argument("--bleu", type=float, default=39.0, help="the one to reach")
    p.add_argument("--rounds", type=int, default=1, help="the number of a round is the seed")
    p.add_argument("--parallel", action="store_true", help="train all at once, each on --threads cores of its own")
    p.add_argument("--learning-rate", type=float, default=3e-3, help="at the peak")
    p.add_argument("--warmup-steps", type=int, default=600, help="of the schedule")
    p.add_argument("--batch-tokens", type=int, default=2500, help="of either side at most")
    p.add_argument("--log-every", type=int, default=100)
    o = p.parse_args()
    try:
        o.steps = sorted({int(n) for n in o.steps.split(",")})
    except ValueError:
        p.error(f"--steps {o.steps}: expected numbers with commas between them")
    check_at_least_1(p, o, ("threads", "rounds", "batch_tokens", "log_every"))
    if not 0 <= o.warmup_steps < o.steps[0]:
        p.error(f"--warmup-steps {o.warmup_steps}: expected less than the {o.steps[0]} steps")
    for name, file in FILES.items():
        if getattr(o, name) is None and o.data is None:
            p.error(f"expected --data or --{name.replace('_', '-')}")
        setattr(o, name, getattr(o, name) or o.data / file)
        if not getattr(o, name).is_file():
            p.error(f"--{name.replace('_', '-')} {getattr(o, name)}: no such file")
    check_options(p, o, needs_attune=True)
    if o.parallel and len(o.contenders) * o.threads > len(os.sched_getaffinity(0)):
        p.error(f"--parallel: {len(o.contenders)} times --threads {o.threads} are more than the cores there are")
    return o


def main() -> int:
    o = parse_options()
    try:
        with tempfile.TemporaryDirectory() as folder:
            summary = summarise(o, measure(o, Path(folder)))
    except Failure as failure:
        print(f"time_to_bleu: {failure}", file=sys.stderr)
        return 1
    names = ("threads", "parallel", "rounds", "learning_rate", "warmup_steps", "batch_tokens")
    settings = {name: getattr(o, name) for name in names} | {"machine": platform.platform()}
    print(json.dumps(settings | summary, indent=2) if o.json else report(o, summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
