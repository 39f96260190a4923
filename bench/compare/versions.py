#!/usr/bin/env python3
"""Two builds of Attune at the same work, in turn: is anything lost?

    versions.py OLD_ATTUNE NEW_ATTUNE [--rounds 5] [--threads 2]

Each round runs both on every row; a ratio above 1 says that the new one is faster. What is told is the median over the
rounds of the ratio within a round, with the smallest and the largest.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable

BASE = ["--steps", "8", "--warmup", "2"]
GPT2 = ["--d-model", "768", "--heads", "12", "--layers", "12", "--d-ff", "3072", "--vocab", "50257",
        "--contexts", "256", "--kinds", "standard"]


def told(attune: str, arguments: list[str]) -> dict:
    done = subprocess.run([attune, "bench", *arguments, "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def tokens_per_second(result) -> float:
    """The first number of that name, wherever the command puts it."""
    rest = [result]
    while rest:
        value = rest.pop(0)
        if isinstance(value, dict):
            if "tokens_per_s" in value:
                return float(value["tokens_per_s"])
            rest.extend(value.values())
        elif isinstance(value, list):
            rest.extend(value)
    raise SystemExit("versions.py: the command tells no tokens_per_s")


def model_folders(attune: str, folder: Path) -> tuple[Path, Path]:
    """A base-sized model that has made two training steps, and its int8 form. Both versions read them."""
    data = folder / "data"
    subprocess.run([attune, "demo-corpus", "--out", data, "--train", "4000", "--valid", "20", "--test", "300"],
                   check=True, capture_output=True)
    settings = {"data.train_source": data / "train.en", "data.train_target": data / "train.de",
                "data.valid_source": data / "valid.en", "data.valid_target": data / "valid.de",
                "data.vocab_size": 1000, "model.d_model": 512, "model.heads": 8, "model.layers": 6, "model.d_ff": 2048,
                "train.steps": 2, "schedule.warmup_steps": 1, "train.valid_every": 2, "train.valid_sentences": 1,
                "generation.max_length": 24}
    command = [attune, "train", "examples/demo.toml", "--out", folder / "run"]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"versions.py: {done.stderr.strip()}")
    model, int8 = folder / "run" / "model", folder / "int8"
    subprocess.run([attune, "quantize", model, "--out", int8], check=True, capture_output=True)
    return model, int8


def sentences_per_second(attune: str, model: Path, text: Path, batch: int, sentences: int, threads: int) -> float:
    lines = text.read_text().splitlines()[:sentences]
    begin = time.monotonic()
    subprocess.run([attune, "translate", model, "--batch-size", str(batch), "--threads", str(threads)],
                   input="\n".join(lines) + "\n", check=True, capture_output=True, text=True)
    return sentences / (time.monotonic() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", help="only rows whose names contain this")
    options = parser.parse_args()
    threads = ["--threads", str(options.threads)]
    with tempfile.TemporaryDirectory() as folder:
        model, int8 = model_folders(options.old, Path(folder))
        text = Path(folder) / "data" / "test.en"

        def bench(*arguments: str) -> Callable[[str], float]:
            return lambda attune: tokens_per_second(told(attune, [*arguments, *threads]))

        def translate(folder: Path, batch: int, sentences: int) -> Callable[[str], float]:
            return lambda attune: sentences_per_second(attune, folder, text, batch, sentences, options.threads)

        rows = {
            "training step, base, float32": bench("train", *BASE),
            "training step, base, bfloat16": bench("train", *BASE, "--set", "train.precision=bfloat16"),
            "training step, d_model 128": bench("train", "--preset", "transformer-tiny", *BASE),
            "translate, float32, batch 1": translate(model, 1, 40),
            "translate, float32, batch 64": translate(model, 64, 300),
            "translate, int8, batch 1": translate(int8, 1, 40),
            "translate, int8, batch 64": translate(int8, 64, 300),
            "generation, GPT-2's shape, batch 1": bench("decode", *GPT2, "--batch", "1", "--steps", "40", "--repeats", "6"),
            "generation, GPT-2's shape, batch 16": bench("decode", *GPT2, "--batch", "16", "--steps", "12", "--repeats", "4"),
        }
        chosen = {name: row for name, row in rows.items() if not options.rows or options.rows in name}
        ratios: dict[str, list[float]] = {name: [] for name in chosen}
        for round_number in range(options.rounds):
            for name, row in chosen.items():
                pair = [options.old, options.new]
                if round_number % 2 == 1:
                    pair.reverse()
                rates = {attune: row(attune) for attune in pair}
                ratios[name].append(rates[options.new] / rates[options.old])
            print(f"round {round_number + 1} of {options.rounds}", file=sys.stderr)
    print("| work | new / old | least to most |\n| --- | --- | --- |")
    for name, values in ratios.items():
        print(f"| {name} | {statistics.median(values):.3f} | {min(values):.3f} to {max(values):.3f} |")


if __name__ == "__main__":
    main()
