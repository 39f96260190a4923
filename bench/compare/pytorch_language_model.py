#!/usr/bin/env python3
"""Training a small character-level GPT in PyTorch, timed.

The same work as `attune train --preset gpt-char`: the same model, loss, optimizer and schedule on the same text,
written as a PyTorch user would write it for speed. Prints one line of JSON.
"""

import argparse
import math
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from pytorch_gpt import Gpt, GptConfig, adamw
from pytorch_program import add_program_options, autocast, check_model_options, peak_memory_mb, run_program, set_up

SPECIAL = 4  # ids before the first character: pad, unk, bos and eos, which Attune's tokenizer has and nothing here uses


class Text:
    """Ids of the characters; the last tenth is for validation."""

    def __init__(self, path: Path, context: int):
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
        characters = {c: SPECIAL + i for i, c in enumerate(sorted(set(text)))}
        self.vocab, self.context = SPECIAL + len(characters), context
        ids = torch.tensor([characters[c] for c in text])
        end = math.floor(len(ids) * (1 - 0.1))
        self.train, self.valid = ids[:end], ids[end:]
        if len(self.train) <= context or len(self.valid) < 2:
            raise ValueError(f"{path}: {len(text)} characters are too few for windows of {context}")
        self.windows = self.train.unfold(0, context + 1, 1)  # a view [windows, context + 1]

    def batch(self, size: int) -> tuple[Tensor, Tensor]:
        """Random windows and what follows each of their characters, both int64 [size, context]."""
        chosen = self.windows[torch.randint(len(self.windows), (size,))]
        return chosen[:, :-1], chosen[:, 1:]

    def validation_batches(self, size: int):
        """Every id but the first is predicted once: windows that do not overlap, the last one may be shorter."""
        inputs, labels = self.valid[:-1], self.valid[1:]
        whole = len(inputs) // self.context * self.context
        if whole > 0:
            rows = (x[:whole].view(-1, self.context).split(size) for x in (inputs, labels))
            yield from zip(*rows)
        if whole < len(inputs):
            yield inputs[None, whole:], labels[None, whole:]


def learning_rate(o: argparse.Namespace, step: int) -> float:
    """Linear from 0, then a cosine to the final one at the last step; steps count from 1."""
    if step < o.warmup_steps:
        return o.learning_rate * step / o.warmup_steps
    done = (step - o.warmup_steps) / max(1, o.steps - o.warmup_steps)
    return o.final_learning_rate + (o.learning_rate - o.final_learning_rate) * (1 + math.cos(math.pi * done)) / 2


@torch.inference_mode()
def validation_loss(model: nn.Module, text: Text) -> float:
    """Of every token after the first of the validation text."""
    model.eval()
    total = sum(model(inputs, labels).item() * labels.numel() for inputs, labels in text.validation_batches(64))
    model.train()
    return total / (len(text.valid) - 1)


def measure(o: argparse.Namespace) -> dict:
    result = set_up(o)
    text = Text(o.text, o.context)
    config = GptConfig(vocab=text.vocab, d_model=o.d_model, heads=o.heads, layers=o.layers, context=o.context)
    model = Gpt(config).train()
    run = torch.compile(model) if o.compile else model
    optimizer = adamw(model, o.learning_rate, betas=(0.9, 0.99))
    seconds, losses = [], []  # of each window of steps
    start, total = time.perf_counter(), 0.0
    for step in range(1, o.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(o, step)
        inputs, labels = text.batch(o.batch)
        optimizer.zero_grad(set_to_none=True)
        with autocast(o):
            loss = run(inputs, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
        if step % o.window == 0:
            now = time.perf_counter()
            seconds.append(now - start)
            losses.append(total / o.window)
            start, total = now, 0.0
    tokens = o.window * o.batch * o.context
    result |= {
        "steps": o.steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "median_ms_per_step": 1e3 * statistics.median(seconds[1:]) / o.window,
        "tokens_per_s": statistics.median(tokens / s for s in seconds[1:]),
        "peak_memory_mb": peak_memory_mb(),
        "loss_first": losses[0],
        "loss_last": losses[-1],
    }
    if o.validate:
        result["validation_loss"] = validation_loss(model, text)
    return result


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--text", type=Path, required=True, help="UTF-8; the last tenth is for validation")
    p.add_argument("--d-model", type=int, default=128)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--context", type=int, default=64, help="characters of a window")
    p.add_argument("--batch", type=int, default=12, help="windows of a batch")
    p.add_argument("--steps", type=int, default=2000)
    p.add_argument("--window", type=int, default=50, help="steps that are timed together; the first so many are not")
    p.add_argument("--learning-rate", type=float, default=4e-3, help="at the peak")
    p.add_argument("--final-learning-rate", type=float, default=1e-4, help="at the last step")
    p.add_argument("--warmup-steps", type=int, default=100, help="of the schedule")
    p.add_argument("--validate", action="store_true", help="add the loss on the validation text")
    add_program_options(p)
    options = p.parse_args()
    check_model_options(p, options, ("d_model", "heads", "layers", "context", "batch", "window"))
    if options.steps < 2 * options.window:
        p.error(f"--steps {options.steps}: expected at least two windows of {options.window}")
    if options.warmup_steps < 0:
        p.error(f"--warmup-steps {options.warmup_steps}: expected at least 0")
    return options


if __name__ == "__main__":
    sys.exit(run_program("pytorch_language_model", parse_options(), measure))
