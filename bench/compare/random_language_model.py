#!/usr/bin/env python3
"""Writes a model folder of Attune with random weights: GPT-2's smallest model, 124 million parameters.

Its vocabulary are words w0, w1 ..., or GPT-2's own with --tokenizer; so that no text ends early, the special tokens are
never the likeliest. What the weights are does not change the speed.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import numpy as np

from model_folder import write_safetensors

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
END_OF_TEXT = 50256  # GPT-2's only special token
CONFIG = {
    "model_type": "transformer",
    "attune_version": "random_language_model.py",
    "architecture": "decoder_lm",
    "vocab": 50257,
    "d_model": 768,
    "heads": 12,
    "layers": 12,
    "d_ff": 3072,
    "positions": "learned",
    "norm": "pre",
    "norm_epsilon": 1e-5,
    "activation": "gelu_tanh",
    "scale_embeddings": False,
    "share_projection": True,
    "projection_bias": False,
    "context_length": 1024,
}


def tensors_of(config: dict, special: list[int], seed: int) -> dict[str, np.ndarray]:
    random, d, d_ff = np.random.default_rng(seed), config["d_model"], config["d_ff"]

    def normal(*shape: int, scale: float = 0.02) -> np.ndarray:
        return random.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    def norm(name: str) -> dict[str, np.ndarray]:
        return {f"{name}.weight": 1 + normal(d), f"{name}.bias": normal(d)}

    def linear(name: str, out: int, into: int) -> dict[str, np.ndarray]:
        return {f"{name}.weight": normal(out, into, scale=0.04), f"{name}.bias": normal(out)}

    table = normal(config["vocab"], d)
    table[special] = 0  # whose logits are 0, when others are above it
    tensors = {"embedding.weight": table, "embedding.position.weight": normal(config["context_length"], d)}
    for i in range(config["layers"]):
        layer = f"decoder.layers.{i}"
        for part in ("w_q", "w_k", "w_v", "w_o"):
            tensors |= linear(f"{layer}.self_attention.{part}", d, d)
        tensors |= norm(f"{layer}.residual_1.norm")
        tensors |= linear(f"{layer}.feed_forward.linear_1", d_ff, d) | linear(f"{layer}.feed_forward.linear_2", d, d_ff)
        tensors |= norm(f"{layer}.residual_3.norm")
    return tensors | norm("decoder.norm")


def write_model(folder: Path, config: dict, tokenizer: Path | None, seed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    words = [f"w{i}" for i in range(config["vocab"] - len(SPECIAL))]
    contents = {"config.json": config, "generation_config.json": {"text_unit": "stream", "temperature": 0.0}}
    if tokenizer is None:
        contents["vocabulary.json"] = {"type": "whitespace", "subword_marker": "", "pieces": [*SPECIAL, *words]}
    else:
        shutil.copyfile(tokenizer / "tokenizer.json", folder / "tokenizer.json")
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    special = list(range(len(SPECIAL))) if tokenizer is None else [END_OF_TEXT]
    write_safetensors(folder / "model.safetensors", tensors_of(config, special, seed))


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("output", type=Path, help="folder to write")
    p.add_argument("--tokenizer", type=Path, help="folder with GPT-2's tokenizer.json")
    p.add_argument("--seed", type=int, default=1)
    for name in ("layers", "d_model", "heads", "d_ff", "vocab"):
        p.add_argument(f"--{name.replace('_', '-')}", type=int, default=CONFIG[name])
    o = p.parse_args()
    sizes = {name: getattr(o, name) for name in ("layers", "d_model", "heads", "d_ff", "vocab")}
    try:
        write_model(o.output, CONFIG | sizes, o.tokenizer, o.seed)
    except OSError as error:
        print(f"random_language_model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
