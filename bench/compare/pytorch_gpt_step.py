#!/usr/bin/env python3
"""The training step of GPT-2's smallest model in PyTorch, timed on random tokens.

The same work as `attune bench train --preset gpt2-124m` without dropout and clipping: forward, loss, backward and
AdamW. Prints one line of JSON.
"""

import argparse
import statistics
import sys

import torch

from in_turn import add_device
from pytorch_gpt import Gpt, GptConfig, adamw
from pytorch_program import StepClock, add_program_options, autocast, check_model_options, memory, run_program, set_up

DIFFERENT_BATCHES = 8


def measure(o: argparse.Namespace) -> dict:
    result = set_up(o)
    config = GptConfig(o.vocab, o.d_model, o.heads, o.layers, o.context, bias=True, gelu="tanh")
    model = Gpt(config).train().to(o.device)
    run = torch.compile(model) if o.compile else model
    optimizer = adamw(model, 1e-4, betas=(0.9, 0.95))
    text = torch.randint(o.vocab, (DIFFERENT_BATCHES, o.batch, o.context + 1)).to(o.device)
    losses, clock = [], StepClock(o.device)
    clock.mark()
    for step in range(o.warmup + o.steps):
        ids = text[step % DIFFERENT_BATCHES]
        optimizer.zero_grad(set_to_none=True)
        with autocast(o):
            loss = run(ids[:, :-1], ids[:, 1:])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        clock.mark()
    median = statistics.median(clock.seconds()[o.warmup :])
    return result | {
        "steps": o.steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "median_ms_per_step": 1e3 * median,
        "tokens_per_s": o.batch * o.context / median,
        **memory(o.device),
        "loss_first": losses[0].item(),
        "loss_last": losses[-1].item(),
    }


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--vocab", type=int, default=50257)
    p.add_argument("--d-model", type=int, default=768)
    p.add_argument("--heads", type=int, default=12)
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--context", type=int, default=1024)
    p.add_argument("--batch", type=int, default=1, help="sequences of a step")
    p.add_argument("--steps", type=int, default=5, help="timed ones")
    p.add_argument("--warmup", type=int, default=2, help="steps before the timed ones")
    add_program_options(p)
    add_device(p)
    o = p.parse_args()
    check_model_options(p, o, ("vocab", "d_model", "heads", "layers", "context", "batch", "steps"))
    if o.warmup < 0:
        p.error(f"--warmup {o.warmup}: expected at least 0")
    return o


if __name__ == "__main__":
    sys.exit(run_program("pytorch_gpt_step", parse_options(), measure))
