#!/usr/bin/env python3
"""The training step of an encoder-decoder Transformer in PyTorch, timed on the batches of a file.

The same work as `attune bench train`: the same model, loss and optimizer on the same batches in the same order, written
the way that was found fastest among those that a PyTorch user would write (see README.md). Prints one line of JSON.
"""

import argparse
import itertools
import json
import statistics
import sys
from pathlib import Path

from in_turn import add_device
from pytorch_program import StepClock, add_program_options, check_model_options, memory, run_program, set_up
from pytorch_transformer import EOS, PAD, Batch, Step, Transformer, adam, add_model_options, make_batch


def check_sentences(value, vocab: int, where: str) -> list[list[int]]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{where}: expected a list of sentences, found {json.dumps(value)[:40]}")
    for i, sentence in enumerate(value):
        if not isinstance(sentence, list) or not sentence or sentence[-1] != EOS:
            raise ValueError(f"{where}: sentence {i} is not a list of ids that ends in eos = {EOS}")
        for token in sentence:
            if type(token) is not int or not 0 <= token < vocab or token == PAD:
                raise ValueError(f"{where}: sentence {i} has id {token!r}, expected 1 to {vocab - 1}")
    return value


def read_batches(path: Path, vocab: int) -> list[Batch]:
    """One JSON object a line: {"source": [[id, ..., eos], ...], "target": [[id, ..., eos], ...]}."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8: {error}") from None
    batches = []
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{where}: not JSON: {error}") from None
        if not isinstance(record, dict) or not {"source", "target"} <= record.keys():
            raise ValueError(f'{where}: expected an object with "source" and "target"')
        source = check_sentences(record["source"], vocab, f"{where}: source")
        target = check_sentences(record["target"], vocab, f"{where}: target")
        if len(source) != len(target):
            raise ValueError(f"{where}: {len(source)} source sentences but {len(target)} target sentences")
        batches.append(make_batch(source, target))
    if not batches:
        raise ValueError(f"{path}: holds no batch")
    return batches


def measure(options: argparse.Namespace) -> dict:
    result = set_up(options)
    batches = [batch.to(options.device) for batch in read_batches(options.batches, options.vocab)]
    max_length = max(max(b.source.shape[1], b.labels.shape[1]) for b in batches)
    model = Transformer(options, max_length).train().to(options.device)
    step = Step(options, model, adam(model, options, epsilon=1e-9) if options.optimizer == "adam" else None)
    losses, used = [], list(itertools.islice(itertools.cycle(batches), options.warmup + options.steps))
    clock = StepClock(options.device)
    clock.mark()
    for batch in used:
        losses.append(step(batch))
        clock.mark()
    seconds, losses = clock.seconds(), [loss.item() for loss in losses]
    if options.jsonl:
        rows = [
            {"step": i, "ms": 1e3 * s, "loss": l, "source_tokens": b.source_tokens, "target_tokens": b.target_tokens}
            for i, (s, l, b) in enumerate(zip(seconds, losses, used))
        ]
        options.jsonl.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    seconds, used = seconds[options.warmup :], used[options.warmup :]
    tokens = sum(b.source_tokens + b.target_tokens for b in used)
    positions = sum(b.source.numel() + b.labels.numel() for b in used)
    return result | {
        "steps": options.steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "median_ms_per_step": 1e3 * statistics.median(seconds),
        "target_tokens_per_s": statistics.median(b.target_tokens / s for b, s in zip(used, seconds)),
        "source_tokens_per_s": statistics.median(b.source_tokens / s for b, s in zip(used, seconds)),
        "padding_share": 1 - tokens / positions,
        **memory(options.device),
        "loss_first": losses[0],
        "loss_last": losses[-1],
    }


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--batches", type=Path, required=True, help="JSON lines, from `attune bench train --write-batches`")
    p.add_argument("--vocab", type=int, default=8000)
    add_model_options(p)
    p.add_argument("--optimizer", choices=["adam", "none"], default="adam")
    add_program_options(p)
    add_device(p)
    p.add_argument("--steps", type=int, default=10, help="timed ones")
    p.add_argument("--warmup", type=int, default=3, help="steps before the timed ones")
    p.add_argument("--jsonl", type=Path, help="write one line for each step here, warm-up included")
    options = p.parse_args()
    check_model_options(p, options, ("d_model", "heads", "layers", "d_ff", "vocab", "steps"))
    if options.warmup < 0:
        p.error(f"--warmup {options.warmup}: expected at least 0")
    return options


if __name__ == "__main__":
    sys.exit(run_program("pytorch_train_step", parse_options(), measure))
