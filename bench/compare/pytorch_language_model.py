#!/usr/bin/env python3
"""Training a small character-level GPT in PyTorch, timed.

The same work as `attune train --preset gpt-char`: the same model, loss, optimizer and schedule on the same text,
written as a PyTorch user would write it for speed. Prints one line of JSON.
"""

import argparse
import json
import math
import resource
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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


class Block(nn.Module):
    """Pre-norm: causal self-attention and a feed-forward network with GELU; linear layers have no bias."""

    def __init__(self, d_model: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.query_key_value = nn.Linear(d_model, 3 * d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)
        self.linear_1 = nn.Linear(d_model, 4 * d_model, bias=False)
        self.linear_2 = nn.Linear(4 * d_model, d_model, bias=False)

    def attention(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.query_key_value(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)  # [batch, heads, length, d_head]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(y.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.linear_2(F.gelu(self.linear_1(self.norm_2(x))))


class LanguageModel(nn.Module):
    """Radford et al. 2019: learned positions, the projection's weight is the embedding."""

    def __init__(self, o: argparse.Namespace, vocab: int):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(vocab, o.d_model), nn.Embedding(o.context, o.d_model)
        self.blocks = nn.ModuleList(Block(o.d_model, o.heads) for _ in range(o.layers))
        self.norm = nn.LayerNorm(o.d_model)
        self.projection = nn.Linear(o.d_model, vocab, bias=False)
        self.projection.weight = self.embedding.weight
        self.register_buffer("places", torch.arange(o.context), persistent=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                ends_sublayer = name.endswith(("output.weight", "linear_2.weight"))
                nn.init.normal_(parameter, std=0.02 / (math.sqrt(2 * o.layers) if ends_sublayer else 1))

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """The mean cross entropy of the labels."""
        x = self.embedding(ids) + self.positions(self.places[: ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.projection(self.norm(x)).flatten(0, 1), labels.flatten())


def optimizer_of(model: nn.Module, o: argparse.Namespace) -> torch.optim.Optimizer:
    """Matrices decay, gains and biases of the norms do not."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=o.learning_rate, betas=(0.9, 0.99), eps=1e-8, fused=True)


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
    torch.set_num_threads(o.threads)
    torch.manual_seed(o.seed)
    text = Text(o.text, o.context)
    model = LanguageModel(o, text.vocab).train()
    run = torch.compile(model) if o.compile else model
    optimizer = optimizer_of(model, o)
    seconds, losses = [], []  # of each window of steps
    start, total = time.perf_counter(), 0.0
    for step in range(1, o.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(o, step)
        inputs, labels = text.batch(o.batch)
        optimizer.zero_grad(set_to_none=True)
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
    result = {
        "program": "pytorch",
        "torch": torch.__version__,
        "threads": o.threads,
        "steps": o.steps,
        "compiled": o.compile,
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


def peak_memory_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # macOS counts bytes, Linux KiB


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
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--compile", action="store_true", help="through torch.compile")
    options = p.parse_args()
    for name in ("d_model", "heads", "layers", "context", "batch", "window", "threads"):
        if getattr(options, name) < 1:
            p.error(f"--{name.replace('_', '-')} {getattr(options, name)}: expected at least 1")
    if options.steps < 2 * options.window:
        p.error(f"--steps {options.steps}: expected at least two windows of {options.window}")
    if options.warmup_steps < 0:
        p.error(f"--warmup-steps {options.warmup_steps}: expected at least 0")
    if options.d_model % options.heads:
        p.error(f"--d-model {options.d_model} is not divisible by --heads {options.heads}")
    return options


def main() -> int:
    options = parse_options()
    try:
        result = measure(options)
    except (OSError, ValueError) as error:
        print(f"pytorch_language_model: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        if not options.compile:
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        print(f"pytorch_language_model: --compile failed, run without it: {reason}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
