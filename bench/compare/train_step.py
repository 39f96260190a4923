#!/usr/bin/env python3
"""Tokens per second of a training step, Attune and PyTorch in turn on the same batches."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from in_turn import (
    ATTUNE,
    PYTORCH,
    Failure,
    add_device,
    add_options,
    check_at_least_1,
    check_options,
    environments,
    in_turn,
    leave_out_refused,
    result_of,
    run,
    summarise,
    table,
    training_contenders,
    with_memory_of,
)

RATE = "target_tokens_per_s"

# A batch of a model is about --tokens target tokens. Dropout stands at the embeddings and the residual branches alone.
MODELS = {
    "base": {"d_model": 512, "heads": 8, "layers": 6, "d_ff": 2048, "vocab": 8000, "dropout": 0.1, "norm": "post"},
    "small": {"d_model": 128, "heads": 4, "layers": 4, "d_ff": 256, "vocab": 10000, "dropout": 0.3, "norm": "post"},
}


def attune_settings(model: dict) -> list[str]:
    settings = {name: value for name, value in model.items() if name != "vocab"}
    settings |= {"source_vocab": model["vocab"], "target_vocab": model["vocab"], "norm": json.dumps(model["norm"])}
    settings |= {"share_embeddings": "true", "share_projection": "true", "embedding_initialization": '"normal"'}
    settings |= {"attention_dropout": 0.0, "activation_dropout": 0.0}
    return [word for name, value in settings.items() for word in ("--set", f"model.{name}={value}")]


def corpus_settings(o: argparse.Namespace, folder: Path) -> list[str]:
    """Of the text, and of a vocabulary that is learned from it."""
    if o.source is None:
        return []
    tokenizer, vocab = str(folder / "tokenizer.model"), str(MODELS[o.model]["vocab"])
    learn = ["--kind", "bpe", "--vocab-size", vocab, "--output", tokenizer]
    run([o.attune, "tokenizer", "train", "--input", str(o.source), str(o.target), *learn], {})
    settings = {"train_source": json.dumps([str(o.source)]), "train_target": json.dumps([str(o.target)])}
    settings["tokenizer"] = json.dumps(tokenizer)
    return [word for name, value in settings.items() for word in ("--set", f"data.{name}={value}")]


def write_batches(o: argparse.Namespace, folder: Path) -> Path:
    batches = folder / "batches.jsonl"
    settings = [*attune_settings(MODELS[o.model]), *corpus_settings(o, folder)]
    size = ["--tokens", str(o.tokens), "--write-batches", str(batches)]
    run([o.attune, "bench", "train", *settings, *size], {})
    return batches


def attune_command(o: argparse.Namespace, contender: str, batches: Path) -> list[str]:
    size = ["--steps", str(o.steps), "--warmup", str(o.warmup), "--threads", str(o.threads), "--json"]
    settings = [*attune_settings(MODELS[o.model]), *ATTUNE[contender]]
    return [o.attune, "bench", "train", *settings, "--batches", str(batches), "--device", o.device, *size]


def pytorch_command(o: argparse.Namespace, contender: str, batches: Path) -> list[str]:
    script = str(Path(__file__).with_name("pytorch_train_step.py"))
    model = [word for name, value in MODELS[o.model].items() for word in (f"--{name.replace('_', '-')}", str(value))]
    size = ["--steps", str(o.steps), "--warmup", str(o.warmup), "--threads", str(o.threads), "--device", o.device]
    return [o.python, script, *model, "--tied", "--batches", str(batches), *size, *PYTORCH[contender]]


def measure(o: argparse.Namespace, folder: Path) -> dict[str, list[dict]]:
    """The results of every contender, one for each round."""
    batches = o.batches or write_batches(o, folder)
    leave_out_refused(o, folder)
    environment = environments(o, folder)

    def one(contender: str, _round: int) -> dict:
        command = attune_command if contender in ATTUNE else pytorch_command
        finished = run(command(o, contender, batches), environment[contender])
        return with_memory_of(o.device, result_of(contender, finished.output, RATE))

    return in_turn(o, RATE, "target tokens/s", one)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--model", choices=sorted(MODELS), default="base")
    add_options(p, ())
    add_device(p)
    p.add_argument("--source", type=Path, help="text of the batches, with --target; otherwise they are random")
    p.add_argument("--target", type=Path, help="its translation, line by line")
    p.add_argument("--batches", type=Path, help="a batch file in place of text")
    p.add_argument("--tokens", type=int, default=4000, help="target tokens of a batch, where Attune writes the file")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--steps", type=int, default=10, help="timed steps of a run")
    p.add_argument("--warmup", type=int, default=3, help="steps before the timed ones")
    options = p.parse_args()
    check_at_least_1(p, options, ("tokens", "threads", "rounds", "steps"))
    if (options.source is None) != (options.target is None) or (options.source and options.batches):
        p.error("expected --source and --target, or --batches, or none of them")
    for name in ("source", "target", "batches"):
        file = getattr(options, name)
        if file is not None and not file.is_file():
            p.error(f"--{name} {file}: no such file")
    known = training_contenders(options)
    check_options(p, options, needs_attune=options.batches is None, known=known)
    return options


def main() -> int:
    o = parse_options()
    settings = {"model": o.model, "device": o.device, "threads": o.threads, "steps": o.steps, "warmup": o.warmup}
    settings["rounds"] = o.rounds
    try:
        with tempfile.TemporaryDirectory() as folder:
            summary = {**settings, **summarise(measure(o, Path(folder)), RATE)}
    except Failure as failure:
        print(f"train_step: {failure}", file=sys.stderr)
        return 1
    title = f"model {o.model}, {o.device}, {o.threads} threads, {o.rounds} rounds, target tokens/s"
    print(json.dumps(summary, indent=2) if o.json else "\n".join([title, *table(summary, RATE)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
