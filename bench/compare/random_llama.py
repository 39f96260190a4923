#!/usr/bin/env python3
"""Writes a folder as on the Hugging Face hub: a LLaMA of about 1.1 billion random bfloat16 weights.

Its tokenizer is that of another folder and smaller than the vocabulary. What the weights are does not change the speed.
"""

import argparse
import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np

HIDDEN, LAYERS, D_FF, HEADS, KV_HEADS, VOCAB = 2048, 16, 8192, 32, 8, 32000
CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "dtype": "bfloat16",
    "hidden_size": HIDDEN,
    "intermediate_size": D_FF,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HIDDEN // HEADS,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
    "vocab_size": VOCAB,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def shapes(tied: bool) -> dict[str, list[int]]:
    kv = HIDDEN // HEADS * KV_HEADS
    result = {"model.embed_tokens.weight": [VOCAB, HIDDEN], "model.norm.weight": [HIDDEN]}
    if not tied:
        result["lm_head.weight"] = [VOCAB, HIDDEN]
    for i in range(LAYERS):
        layer = f"model.layers.{i}"
        of_attention = {"q_proj": [HIDDEN, HIDDEN], "k_proj": [kv, HIDDEN], "v_proj": [kv, HIDDEN]}
        of_attention["o_proj"] = [HIDDEN, HIDDEN]
        for name, shape in of_attention.items():
            result[f"{layer}.self_attn.{name}.weight"] = shape
        result[f"{layer}.mlp.gate_proj.weight"] = [D_FF, HIDDEN]
        result[f"{layer}.mlp.up_proj.weight"] = [D_FF, HIDDEN]
        result[f"{layer}.mlp.down_proj.weight"] = [HIDDEN, D_FF]
        result[f"{layer}.input_layernorm.weight"] = [HIDDEN]
        result[f"{layer}.post_attention_layernorm.weight"] = [HIDDEN]
    return result


def bfloat16_bits(x: np.ndarray) -> np.ndarray:
    whole = x.view(np.uint32)
    return ((whole + 0x7FFF + (whole >> 16 & 1)) >> 16).astype("<u2")


def write_weights(path: Path, tied: bool, seed: int) -> None:
    random, header, offset = np.random.default_rng(seed), {}, 0
    for name, shape in shapes(tied).items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * ((56 - len(text)) % 64)  # so that the data begins at a multiple of 64
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes(tied).items():
            norm = name.endswith("norm.weight")
            x = np.ones(shape, np.float32) if norm else random.standard_normal(shape, np.float32) * np.float32(0.02)
            file.write(bfloat16_bits(x).tobytes())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="to write")
    parser.add_argument("--tokenizer", type=Path, required=True, help="a folder with tokenizer.json")
    parser.add_argument("--tied", action="store_true", help="the projection is the embedding")
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    o.folder.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(o.tokenizer / name, o.folder / name)
    write_weights(o.folder / "model.safetensors", o.tied, o.seed)
    config = CONFIG | {"tie_word_embeddings": o.tied}
    (o.folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
