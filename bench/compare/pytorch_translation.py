#!/usr/bin/env python3
"""Training a translation model in PyTorch, and writing it as a model folder of Attune.

The same recipe as `attune train`: the same model, loss, optimizer, schedule and rule for batches; `attune translate`
and `attune evaluate` then search and score both models alike. Prints one line of JSON.
"""

import argparse
import json
import random
import shutil
import sys
import time
from pathlib import Path
from typing import Iterator

import torch
from torch import Tensor, nn

from model_folder import write_safetensors
from pytorch_program import add_program_options, check_model_options, peak_memory_mb, run_program, set_up
from pytorch_transformer import EOS, Attention, Layer, Step, Transformer, adam, add_model_options, make_batch

UNKNOWN = 1
BATCHES_PER_POOL = 64
LONGEST = 256  # tokens of a sentence without eos; longer pairs are left out

Pair = tuple[list[int], list[int]]


def read_vocabulary(path: Path) -> dict[str, int]:
    """Of a whitespace tokenizer's file: the place in the list is the id."""
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.get("type") != "whitespace" or "pieces" not in content:
        raise ValueError(f'{path}: expected a vocabulary of "type": "whitespace" with "pieces"')
    return {piece: i for i, piece in enumerate(content["pieces"])}


def read_pairs(o: argparse.Namespace, vocabulary: dict[str, int]) -> list[Pair]:
    def sides(path: Path) -> list[list[int]]:
        lines = path.read_text(encoding="utf-8").split("\n")
        return [[vocabulary.get(word, UNKNOWN) for word in line.split()] for line in lines]

    source, target = sides(o.source), sides(o.target)
    if len(source) != len(target):
        raise ValueError(f"{o.source} has {len(source)} lines but {o.target} has {len(target)}")
    kept = [(s, t) for s, t in zip(source, target) if 0 < len(s) <= LONGEST and 0 < len(t) <= LONGEST]
    if not kept:
        raise ValueError(f"{o.source}: has no sentence pair")
    return [(s + [EOS], t + [EOS]) for s, t in kept]


def epoch_of(pairs: list[Pair], batch_tokens: int, shuffle: random.Random) -> list[list[Pair]]:
    """Pools in random order, each sorted by the longer side, cut where either side has more than `batch_tokens`."""
    pool_of, tokens = [], 0
    for pair in shuffle.sample(pairs, len(pairs)):
        pool_of.append((tokens // (BATCHES_PER_POOL * batch_tokens), pair))
        tokens += max(map(len, pair))

    def place(of_pool: tuple[int, Pair]) -> tuple[int, int]:
        pool, length = of_pool[0], max(map(len, of_pool[1]))
        return pool, -length if pool % 2 else length  # by turns upwards and downwards

    batches, source, target = [], batch_tokens, batch_tokens
    for _, pair in sorted(pool_of, key=place):
        source, target = source + len(pair[0]), target + len(pair[1])
        if source > batch_tokens or target > batch_tokens:
            batches.append([])
            source, target = map(len, pair)
        batches[-1].append(pair)
    shuffle.shuffle(batches)
    return batches


def batches_of(o: argparse.Namespace, pairs: list[Pair]) -> Iterator[list[Pair]]:
    """Epoch after epoch."""
    shuffle = random.Random(o.seed)
    while True:
        yield from epoch_of(pairs, o.batch_tokens, shuffle)


def learning_rate(o: argparse.Namespace, step: int) -> float:
    """Linear from 0 to the peak, then linear to 0 at the last step; steps count from 1."""
    if step < o.warmup_steps:
        return o.learning_rate * step / o.warmup_steps
    return o.learning_rate * (1 - min(1, (step - o.warmup_steps) / max(1, o.steps - o.warmup_steps)))


def train(o: argparse.Namespace, model: nn.Module, pairs: list[Pair]) -> dict:
    """Seconds are those of the steps, the making of a batch included."""
    step = Step(o, model, adam(model, o, epsilon=1e-8))
    windows, seconds, loss_sum, labels, tokens = [], 0.0, 0.0, 0, 0
    positions = real = 0
    for number, chosen in zip(range(1, o.steps + 1), batches_of(o, pairs)):
        start = time.perf_counter()
        batch = make_batch([s for s, _ in chosen], [t for _, t in chosen])
        for group in step.optimizer.param_groups:
            group["lr"] = learning_rate(o, number)
        loss = step(batch).item()
        seconds += time.perf_counter() - start
        loss_sum, labels = loss_sum + loss * batch.target_tokens, labels + batch.target_tokens
        tokens += batch.target_tokens
        positions += batch.source.numel() + batch.labels.numel()
        real += batch.source_tokens + batch.target_tokens
        if number % o.log_every == 0 or number == o.steps:
            windows.append({"step": number, "loss": loss_sum / labels, "seconds": seconds})
            print(f"step {number}  loss {loss_sum / labels:.3f}  {seconds / 60:.1f} minutes", file=sys.stderr)
            loss_sum, labels = 0.0, 0
    return {
        "minutes": seconds / 60,
        "median_ms_per_step": 1e3 * seconds / o.steps,
        "target_tokens_per_s": tokens / seconds,
        "padding_share": 1 - real / positions,
        "loss_first": windows[0]["loss"],
        "loss_last": windows[-1]["loss"],
        "windows": windows,
    }


def of_linear(name: str, linear: nn.Linear) -> dict[str, Tensor]:
    return {f"{name}.weight": linear.weight, f"{name}.bias": linear.bias}


def of_norm(name: str, norm: nn.LayerNorm) -> dict[str, Tensor]:
    return {f"{name}.weight": norm.weight, f"{name}.bias": norm.bias}


def of_attention(name: str, attention: Attention) -> dict[str, Tensor]:
    """One product here is several matrices there."""
    joint = [(attention.query, "q"), (attention.key_value, "kv")] if attention.cross else []
    tensors = {}
    for linear, letters in joint or [(attention.query_key_value, "qkv")]:
        parts = zip(letters, linear.weight.chunk(len(letters)), linear.bias.chunk(len(letters)))
        for letter, weight, bias in parts:
            tensors |= {f"{name}.w_{letter}.weight": weight, f"{name}.w_{letter}.bias": bias}
    return tensors | of_linear(f"{name}.w_o", attention.output)


def of_layer(name: str, layer: Layer) -> dict[str, Tensor]:
    tensors = of_attention(f"{name}.self_attention", layer.self_attention)
    if layer.decoder:
        tensors |= of_attention(f"{name}.cross_attention", layer.cross_attention)
    for number in (1, 2):
        tensors |= of_linear(f"{name}.feed_forward.linear_{number}", getattr(layer.feed_forward, f"linear_{number}"))
    for number, norm in enumerate(layer.norms, 1):
        tensors |= of_norm(f"{name}.residual_{number}.norm", norm)
    return tensors


def attune_tensors(model: Transformer) -> dict[str, Tensor]:
    """By Attune's names, as docs/file-formats.md has them; a shared one stands once."""
    tensors = {"source_embedding.weight": model.source_embedding.weight}
    for side in ("encoder", "decoder"):
        for i, layer in enumerate(getattr(model, side)):
            tensors |= of_layer(f"{side}.layers.{i}", layer)
        norm = getattr(model, f"{side}_norm")
        tensors |= of_norm(f"{side}.norm", norm) if isinstance(norm, nn.LayerNorm) else {}
    return tensors | {"projection.bias": model.projection.bias}


def write_model(o: argparse.Namespace, model: Transformer, vocab: int) -> None:
    config = {
        "model_type": "transformer",
        "attune_version": "pytorch_translation.py",
        "architecture": "encoder_decoder",
        "source_vocab": vocab,
        "target_vocab": vocab,
        "positions": o.positions,
        "share_embeddings": True,
        "share_projection": True,
    }
    names = ("d_model", "heads", "layers", "d_ff", "norm", "activation")
    config |= {name: getattr(o, name) for name in (*names, "dropout", "attention_dropout", "activation_dropout")}
    o.out.mkdir(parents=True, exist_ok=True)
    (o.out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (o.out / "generation_config.json").write_text('{"beam_size": 5, "length_penalty": 1.0}\n', encoding="utf-8")
    shutil.copyfile(o.tokenizer, o.out / "vocabulary.json")
    numbers = {name: x.detach().float().numpy() for name, x in attune_tensors(model).items()}
    write_safetensors(o.out / "model.safetensors", numbers)


def measure(o: argparse.Namespace) -> dict:
    result = set_up(o)
    vocabulary = read_vocabulary(o.tokenizer)
    pairs = read_pairs(o, vocabulary)
    o.vocab = len(vocabulary)
    model = Transformer(o, LONGEST + 1).train()
    result |= {"steps": o.steps, "parameters": sum(p.numel() for p in model.parameters())}
    result |= train(o, model, pairs)
    write_model(o, model, len(vocabulary))
    return result | {"peak_memory_mb": peak_memory_mb()}


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--source", type=Path, required=True, help="text, its words or pieces of words between spaces")
    p.add_argument("--target", type=Path, required=True, help="its translation, line by line")
    p.add_argument("--tokenizer", type=Path, required=True, help="from `attune tokenizer train --kind whitespace`")
    p.add_argument("--out", type=Path, required=True, help="folder for the model")
    add_model_options(p)
    p.set_defaults(d_model=128, heads=4, layers=4, d_ff=256, dropout=0.2, learning_rate=3e-3)
    p.set_defaults(norm="pre", positions="rotary", tied=True)
    p.add_argument("--batch-tokens", type=int, default=2500, help="of either side at most")
    p.add_argument("--steps", type=int, default=4900)
    p.add_argument("--warmup-steps", type=int, default=600, help="of the schedule")
    p.add_argument("--log-every", type=int, default=100)
    add_program_options(p)
    o = p.parse_args()
    check_model_options(p, o, ("d_model", "heads", "layers", "d_ff", "batch_tokens", "steps", "log_every"))
    if o.warmup_steps < 0:
        p.error(f"--warmup-steps {o.warmup_steps}: expected at least 0")
    return o


if __name__ == "__main__":
    sys.exit(run_program("pytorch_translation", parse_options(), measure))
