#!/usr/bin/env python3
"""Attention alone in PyTorch, forward and forward with backward: time and memory by length.

The same work as `attune bench attention --patterns full`: F.scaled_dot_product_attention of one sequence, in float32 or
bfloat16. Prints one line of JSON.
"""

import argparse
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from pytorch_program import add_program_options, check_at_least_1, peak_memory_mb, run_program, set_up


def attention(o: argparse.Namespace, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=o.causal)


def inputs(o: argparse.Namespace, length: int) -> list[Tensor]:
    """q, k, v and the cotangent, [1, heads, length, d_head]."""
    dtype = torch.bfloat16 if o.precision == "bfloat16" else torch.float32
    return [torch.randn(1, o.heads, length, o.d_head).to(dtype) for _ in range(4)]


def peak_bytes(work) -> int:
    """What tensors hold at most beyond those that are there before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    changes = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = most = 0
    for event in sorted(changes, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


def measure_length(o: argparse.Namespace, length: int) -> dict:
    run = torch.compile(attention) if o.compile else attention
    q, k, v, cotangent = inputs(o, length)

    def forward() -> None:
        with torch.no_grad():
            run(o, q, k, v)

    def both() -> None:
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        run(o, *leaves).backward(cotangent)

    times = {forward: [], both: []}
    for repeat in range(-1, o.repeats):  # the first one warms up
        for work, taken in times.items():
            start = time.perf_counter()
            work()
            if repeat >= 0:
                taken.append(1e3 * (time.perf_counter() - start))
    return {
        "length": length,
        "forward_ms": statistics.median(times[forward]),
        "forward_backward_ms": statistics.median(times[both]),
        "process_mb": peak_memory_mb(),  # before the profiler takes its own
        "forward_bytes": peak_bytes(forward),
        "forward_backward_bytes": peak_bytes(both),
    }


def measure(o: argparse.Namespace) -> dict:
    result = set_up(o)
    sizes = {"heads": o.heads, "d_head": o.d_head, "causal": o.causal, "repeats": o.repeats}
    return result | sizes | {"results": [measure_length(o, length) for length in o.lengths]}


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--lengths", type=lambda text: [int(n) for n in text.split(",")], default=[1024, 4096, 16384])
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--d-head", type=int, default=32)
    p.add_argument("--causal", action="store_true", help="a query sees no later key")
    p.add_argument("--repeats", type=int, default=5, help="of which the median is told, after one to warm up")
    add_program_options(p)
    o = p.parse_args()
    check_at_least_1(p, o, ("heads", "d_head", "repeats", "threads"))
    if min(o.lengths) < 1:
        p.error(f"--lengths {','.join(map(str, o.lengths))}: expected at least 1")
    return o


if __name__ == "__main__":
    sys.exit(run_program("pytorch_attention", parse_options(), measure))
