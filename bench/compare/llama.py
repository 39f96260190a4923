#!/usr/bin/env python3
"""Tokens per second of a language model: Attune and llama.cpp in turn, with the same weights in float32 and in 8 bits.

The model is GPT-2's smallest with random weights, unless --model is given. A prompt is read, and greedy generation, one
token at a time, goes on from it.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from in_turn import (
    TIMEOUT_S,
    Failure,
    add_options,
    check_at_least_1,
    check_model_folders,
    check_options,
    end,
    leave_out,
    numbers,
    quantized,
    result_of,
    run,
    spread,
    wait,
)

PROMPT_RATE, RATE = "prompt_tokens_per_s", "tokens_per_s"
OF_ATTUNE = ("attune", "attune-int8")
OF_LLAMA = {"llama.cpp": "f32", "llama.cpp-q8": "q8_0"}
DEFAULT = ("attune", "llama.cpp", "attune-int8", "llama.cpp-q8")
PAIRS = (("attune", "llama.cpp"), ("attune-int8", "llama.cpp-q8"), ("attune-int8", "attune"))


class Prompt(NamedTuple):
    """As text and as ids, which are places in the vocabulary."""

    pieces: list[str]
    text: Path
    ids: Path


def write_prompt(o: argparse.Namespace, model: Path, folder: Path) -> Prompt:
    tokenizer = json.loads((model / "vocabulary.json").read_text(encoding="utf-8"))
    if tokenizer.get("type") != "whitespace" or tokenizer.get("subword_marker"):
        raise Failure(f"{model}: expected a whitespace vocabulary without marks, so that a word is a token")
    pieces = tokenizer["pieces"]
    ids = random.Random(1).choices(range(4, len(pieces)), k=o.prompt_tokens)
    prompt = Prompt(pieces, folder / "prompt.txt", folder / "prompt.ids")
    prompt.text.write_text(" ".join(pieces[i] for i in ids) + "\n", encoding="utf-8")
    prompt.ids.write_text(" ".join(map(str, ids)) + "\n", encoding="utf-8")
    return prompt


def growing_output(command: list[str], threads: int) -> tuple[list[tuple[float, int]], bytes, float]:
    """When how many bytes of the program's output had come, all of it, and its peak memory in MB."""
    with tempfile.TemporaryFile("w+") as errors:
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors)
        timer = threading.Timer(TIMEOUT_S, end, [process])
        timer.start()
        moments, output = [], b""
        try:
            while chunk := os.read(process.stdout.fileno(), 1 << 16):
                output += chunk
                moments.append((time.perf_counter(), len(output)))
        finally:
            timer.cancel()
            process.stdout.close()
            peak_mb, _ = wait(process, TIMEOUT_S)
        errors.seek(0)
        complaint = (errors.read().strip() or "no message").splitlines()[-1]
    if process.returncode != 0:
        raise Failure(f"{' '.join(command[:3])} ... ended with {process.returncode}: {complaint}")
    return moments, output, peak_mb


def attune_result(o: argparse.Namespace, model: Path, prompt: Prompt, threads: int) -> dict:
    """The prompt is echoed once the model is loaded, and every word is written when it is found."""
    size = ["--max-tokens", str(o.tokens), "--threads", str(threads)]
    command = [o.attune, "generate", str(model), "--file", str(prompt.text), "--echo", "--temperature", "0", *size]
    moments, output, peak_mb = growing_output(command, threads)
    echoed = len(prompt.text.read_bytes()) - 1
    words = output[echoed:].decode().split()
    grown = [t for t, length in moments if length > echoed and output[echoed:length].strip()]
    loaded = next((t for t, length in moments if length >= echoed), None)
    if len(words) != o.tokens or loaded is None or loaded == grown[0]:
        raise Failure(f"{model}: expected the prompt and then {o.tokens} words, found {len(words)}")
    last = next(t for t, length in moments if len(output[echoed:length].split()) == o.tokens)
    place = {piece: i for i, piece in enumerate(prompt.pieces)}
    return {
        "program": "attune",
        "threads": threads,
        PROMPT_RATE: o.prompt_tokens / (grown[0] - loaded),
        RATE: (o.tokens - 1) / (last - grown[0]),
        "tokens": [place[w] for w in words],
        "peak_memory_mb": peak_mb,
    }


def make_models(o: argparse.Namespace, folder: Path) -> dict[str, Path]:
    """The folder or file of every contender; without those that cannot be made."""
    scripts = Path(__file__).parent
    model = o.model
    if model is None:
        model = folder / "random"
        run([o.python, str(scripts / "random_language_model.py"), str(model)], {})
    models = {"attune": model}
    if "attune-int8" in o.contenders:
        int8 = o.int8 or quantized(o.attune, model, folder / "int8")
        if int8 is None:
            leave_out(o, "attune-int8")
        else:
            models["attune-int8"] = int8
    for c, of_type in OF_LLAMA.items():
        if c in o.contenders:
            models[c] = folder / f"{of_type}.gguf"
            run([o.python, str(scripts / "to_gguf.py"), str(model), str(models[c]), "--type", of_type], {})
    return models


def weight_bytes(model: Path, config: dict) -> int:
    """What a token has to read: all of the file but the learned positions, of which it reads one."""
    file = model / "model.safetensors" if model.is_dir() else model
    return file.stat().st_size - 4 * config["d_model"] * config["context_length"]


def measure(o: argparse.Namespace, folder: Path) -> list[dict]:
    """For every number of threads what was measured of each contender."""
    models = make_models(o, folder)
    prompt = write_prompt(o, models["attune"], folder)
    config = json.loads((models["attune"] / "config.json").read_text(encoding="utf-8"))

    def one(c: str, threads: int) -> dict:
        if c in OF_ATTUNE:
            return attune_result(o, models[c], prompt, threads)
        script = str(Path(__file__).with_name("llama_decode.py"))
        size = ["--tokens", str(o.tokens), "--threads", str(threads), "--cache", o.cache]
        command = [o.python, script, "--gguf", str(models[c]), "--prompt", str(prompt.ids), *size]
        return result_of(c, run(command, {"OMP_NUM_THREADS": str(threads)}).output, RATE)

    settings = []
    for threads in o.threads:
        runs: dict[str, list[dict]] = {c: [] for c in o.contenders}
        bandwidth = []
        for number in range(1, o.rounds + 1):
            machine = run([o.attune, "bench", "machine", "--threads", str(threads), "--json"], {}).output
            bandwidth.append(json.loads(machine)["memory_read_gb_per_s"])
            for c in o.contenders:
                r = one(c, threads)
                r["bandwidth_share"] = weight_bytes(models[c], config) * r[RATE] / (bandwidth[-1] * 1e9)
                runs[c].append(r)
                print(
                    f"{threads} threads  round {number}/{o.rounds}  {c:16} {r[PROMPT_RATE]:8.1f} tokens/s of prompt, "
                    f"{r[RATE]:8.2f} generated",
                    file=sys.stderr,
                )
        settings.append(summarise(threads, runs, bandwidth, {c: weight_bytes(models[c], config) for c in runs}))
    return settings


def same_tokens(a: list[int], b: list[int]) -> int:
    """How many from the beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def summarise(threads: int, runs: dict[str, list[dict]], bandwidth: list[float], sizes: dict[str, int]) -> dict:
    first = next(iter(runs.values()))[0]["tokens"]
    row = {"threads": threads, "memory_read_gb_per_s": spread(bandwidth), "contenders": {}, "ratios": {}}
    for c, of in runs.items():
        row["contenders"][c] = {
            **{name: spread([r[name] for r in of]) for name in (PROMPT_RATE, RATE, "bandwidth_share")},
            "peak_memory_mb": statistics.median(r["peak_memory_mb"] for r in of),
            "import_memory_mb": statistics.median(r.get("import_memory_mb", 0) for r in of),
            "weight_bytes": sizes[c],
            "same_tokens": same_tokens(first, of[-1]["tokens"]),
            "runs": of,
        }
    for a, b in PAIRS:
        if a in runs and b in runs:
            pairs = {name: [x[name] / y[name] for x, y in zip(runs[a], runs[b])] for name in (PROMPT_RATE, RATE)}
            row["ratios"][f"{a}/{b}"] = {name: {**spread(p), "pairs": p} for name, p in pairs.items()}
    return row


def report(o: argparse.Namespace, settings: list[dict]) -> str:
    def range_of(values: dict, digits: int) -> str:
        return f"{values['median']:.{digits}f} ({values['min']:.{digits}f} to {values['max']:.{digits}f})"

    size = f"{o.prompt_tokens} tokens of prompt, {o.tokens} generated, {o.rounds} rounds"
    lines = [f"{size}; median (from least to most)"]
    for row in settings:
        read = range_of(row["memory_read_gb_per_s"], 1)
        lines += ["", f"{row['threads']} threads; the machine reads {read} GB/s"]
        lines.append(
            f"{'':24} {'prompt tokens/s':>24} {'generated tokens/s':>24} {'of bandwidth':>12} {'same':>5} "
            f"{'peak MB':>8} {'import MB':>9}"
        )
        for c, of in row["contenders"].items():
            lines.append(
                f"{c:24} {range_of(of[PROMPT_RATE], 0):>24} {range_of(of[RATE], 1):>24} "
                f"{100 * of['bandwidth_share']['median']:>11.0f}% {of['same_tokens']:>5} "
                f"{of['peak_memory_mb']:>8.0f} {of['import_memory_mb']:>9.0f}"
            )
        for pair, of in row["ratios"].items():
            lines.append(f"{pair:24} {range_of(of[PROMPT_RATE], 2):>24} {range_of(of[RATE], 2):>24}")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(p, DEFAULT, thread_counts="1,2")
    p.add_argument("--model", type=Path, help="folder of a model like GPT-2 with a whitespace vocabulary")
    p.add_argument("--int8", type=Path, help="the same in int8; otherwise attune quantize makes it")
    p.add_argument("--prompt-tokens", type=int, default=512)
    p.add_argument("--tokens", type=int, default=128, help="to generate")
    p.add_argument("--cache", choices=["float16", "float32"], default="float16", help="of llama.cpp")
    p.add_argument("--rounds", type=int, default=7)
    o = p.parse_args()
    o.threads = numbers(p, o, "threads")
    check_at_least_1(p, o, ("prompt_tokens", "rounds"))
    if o.tokens < 2:
        p.error(f"--tokens {o.tokens}: expected at least 2")
    if o.int8 is not None and o.model is None:
        p.error("--int8 needs --model, of which it was made")
    check_model_folders(p, o, ("model", "int8"))
    check_options(p, o, needs_attune=True, known=DEFAULT)
    return o


def main() -> int:
    o = parse_options()
    try:
        with tempfile.TemporaryDirectory() as folder:
            settings = measure(o, Path(folder))
    except Failure as failure:
        print(f"llama: {failure}", file=sys.stderr)
        return 1
    names = ("prompt_tokens", "tokens", "cache", "rounds")
    given = {name: getattr(o, name) for name in names} | {"machine": platform.platform()}
    print(json.dumps(given | {"settings": settings}, indent=2) if o.json else report(o, settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
