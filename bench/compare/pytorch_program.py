"""What the PyTorch programs here have in common: options, start, what they measure of themselves, how they end."""

import argparse
import json
import sys
from typing import Callable

import torch

from in_turn import check_at_least_1
from in_turn import own_peak_memory_mb as peak_memory_mb


def add_program_options(p: argparse.ArgumentParser) -> None:
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
    return {
        "program": "pytorch",
        "torch": torch.__version__,
        "threads": options.threads,
        "compiled": options.compile,
        "precision": options.precision,
        "import_memory_mb": peak_memory_mb(),
    }


def autocast(options: argparse.Namespace) -> torch.autocast:
    """For forward and loss; parameters, gradients and the optimizer stay in float32."""
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "bfloat16")


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
