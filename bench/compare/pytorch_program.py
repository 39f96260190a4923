"""What the PyTorch programs here have in common: options, start, what they measure of themselves, how they end."""

import argparse
import itertools
import json
import sys
import time
from typing import Callable

import torch

from in_turn import check_at_least_1
from in_turn import own_peak_memory_mb as peak_memory_mb


def add_program_options(p: argparse.ArgumentParser) -> None:
    """Without add_device() the CPU computes."""
    p.set_defaults(device="cpu")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--compile", action="store_true", help="through torch.compile")
    p.add_argument("--precision", choices=["float32", "bfloat16"], default="float32", help="bfloat16: by autocast")


def check_model_options(p: argparse.ArgumentParser, options: argparse.Namespace, names: tuple[str, ...]) -> None:
    """`names` are those that need at least 1."""
    check_at_least_1(p, options, (*names, "threads"))
    if options.d_model % options.heads:
        p.error(f"--d-model {options.d_model} is not divisible by --heads {options.heads}")


def set_up(options: argparse.Namespace) -> dict:
    """Sets threads and seed; what a result says of every run, the memory that torch alone takes among it."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("highest")  # no TF32, which Attune does not use either
    if options.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda: torch finds no GPU")
    return {
        "program": "pytorch",
        "torch": torch.__version__,
        "device": options.device,
        "device_name": torch.cuda.get_device_name() if options.device == "cuda" else None,
        "threads": options.threads,
        "compiled": options.compile,
        "precision": options.precision,
        "import_memory_mb": peak_memory_mb(),
    }


def autocast(options: argparse.Namespace) -> torch.autocast:
    """For forward and loss; parameters, gradients and the optimizer stay in float32."""
    return torch.autocast(options.device, dtype=torch.bfloat16, enabled=options.precision == "bfloat16")


class StepClock:
    """The seconds of steps that follow each other: mark() stands before the first and behind each.

    On a GPU the marks are events between the kernels of two steps. The host does not wait for them before the end, so
    that it can start the next step while the GPU computes this one.
    """

    def __init__(self, device: str):
        self.on_gpu, self.marks = device == "cuda", []

    def mark(self) -> None:
        if self.on_gpu:
            self.marks.append(torch.cuda.Event(enable_timing=True))
            self.marks[-1].record()
        else:
            self.marks.append(time.perf_counter())

    def seconds(self) -> list[float]:
        """Of each step."""
        if self.on_gpu:
            torch.cuda.synchronize()
            return [1e-3 * start.elapsed_time(end) for start, end in itertools.pairwise(self.marks)]
        return [end - start for start, end in itertools.pairwise(self.marks)]


def memory(device: str) -> dict:
    """The peak so far; on a GPU also that of the tensors there."""
    result = {"peak_memory_mb": peak_memory_mb()}
    if device == "cuda":
        result["peak_device_memory_mb"] = torch.cuda.max_memory_allocated() / 1e6
    return result


def run_program(
    name: str, options: argparse.Namespace, measure: Callable[[argparse.Namespace], dict]
) -> int:
    """Prints what measure() returns as one line of JSON, or one line that says what is wrong."""
    try:
        result = measure(options)
    except (OSError, ValueError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        if not options.compile:
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        print(f"{name}: --compile failed, run without it: {reason}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0
