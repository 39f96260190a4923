"""What the programs here that translate a text have in common; nothing of a framework."""

import argparse
from pathlib import Path

from in_turn import check_at_least_1, own_peak_memory_mb
from model_folder import Pieces


def parse_decoding_options(p: argparse.ArgumentParser) -> argparse.Namespace:
    p.add_argument("--model", type=Path, required=True, help="folder of Attune")
    p.add_argument("--source", type=Path, required=True, help="text, a sentence a line")
    p.add_argument("--output", type=Path, required=True, help="file for the translations")
    p.add_argument("--beam-size", type=int, default=5, help="1: greedy")
    p.add_argument("--batch-size", type=int, default=1)
    p.add_argument("--length-penalty", type=float, default=1.0)
    p.add_argument("--max-length", type=int, default=256, help="most tokens of a translation")
    p.add_argument("--threads", type=int, default=1)
    o = p.parse_args()
    check_at_least_1(p, o, ("beam_size", "batch_size", "max_length", "threads"))
    return o


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def finish(o: argparse.Namespace, target: Pieces, translations: list[list[str]], seconds: float) -> dict:
    """As finish_texts(), with tokens in place of texts."""
    return finish_texts(o, [target.decode(t) for t in translations], sum(map(len, translations)), seconds)


def finish_texts(o: argparse.Namespace, texts: list[str], tokens: int, seconds: float) -> dict:
    """Writes the texts; returns what is said of every run."""
    o.output.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return {
        "seconds": seconds,
        "output_tokens": tokens,
        "target_tokens_per_s": tokens / seconds,
        "peak_memory_mb": own_peak_memory_mb(),
    }
