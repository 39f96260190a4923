#!/usr/bin/env python3
"""Converts a language model of Attune with the architecture of GPT-2 to GGUF, llama.cpp's format.

The vocabulary is written where it is GPT-2's, in Hugging Face's format; others are left out. With --type q8_0 matrices are rounded to 8 bits in groups of 32, as llama-quantize does it: all but learned positions.
"""

import argparse
import sys
from pathlib import Path

import gguf
import numpy as np

from model_folder import ModelFolder, NotSupported, read_json, vocabulary_file

TYPES = {"f32": gguf.GGMLQuantizationType.F32, "q8_0": gguf.GGMLQuantizationType.Q8_0}
FILE_TYPES = {"f32": gguf.LlamaFileType.ALL_F32, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}


def check(model: ModelFolder) -> None:
    """Throws NotSupported."""
    model.require_plain_attention("attention")
    for name, value in (
        ("norm", "pre"),
        ("norm_form", "variance"),
        ("activation", "gelu_tanh"),
        ("scale_embeddings", False),
        ("share_projection", True),
        ("projection_bias", False),
        ("final_norm", True),
        ("embedding_norm", False),
        ("feed_forward_bias", True),
        ("share_layers", False),
    ):
        model.require(name, value)
    if model.choice("positions")[0] != "learned":
        model.require("positions", "learned")


def tensors_of(model: ModelFolder) -> dict[str, np.ndarray]:
    """By the names of GGUF."""
    of = model.tensors

    def both(to: str, *names: str, weight: str = "weight") -> dict[str, np.ndarray]:
        parts = ((f"{to}.weight", weight), (f"{to}.bias", "bias"))
        return {name: np.concatenate([of[f"{n}.{part}"] for n in names]) for name, part in parts}

    tensors = {"token_embd.weight": of["embedding.weight"], "position_embd.weight": of["embedding.position.weight"]}
    for i in range(model.config["layers"]):
        layer, block = f"decoder.layers.{i}", f"blk.{i}"
        tensors |= both(f"{block}.attn_norm", f"{layer}.residual_1.norm")
        tensors |= both(f"{block}.attn_qkv", *(f"{layer}.self_attention.w_{x}" for x in "qkv"))
        tensors |= both(f"{block}.attn_output", f"{layer}.self_attention.w_o")
        tensors |= both(f"{block}.ffn_norm", f"{layer}.residual_3.norm")
        tensors |= both(f"{block}.ffn_up", f"{layer}.feed_forward.linear_1")
        tensors |= both(f"{block}.ffn_down", f"{layer}.feed_forward.linear_2")
    return tensors | both("output_norm", "decoder.norm")


def add_vocabulary(writer: gguf.GGUFWriter, tokenizer: dict) -> None:
    if tokenizer.get("type") == "whitespace":
        writer.add_tokenizer_model("no_vocab")
        return
    of, special = tokenizer["model"], {t["id"]: t["content"] for t in tokenizer["added_tokens"]}
    pieces = {id: piece for piece, id in of["vocab"].items()} | special
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in of["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([pieces[i] for i in range(len(pieces))])
    writer.add_token_types([gguf.TokenType.CONTROL if i in special else gguf.TokenType.NORMAL for i in range(len(pieces))])
    writer.add_token_merges(merges)
    for add in (writer.add_bos_token_id, writer.add_eos_token_id):
        add(max(special))
    writer.add_add_bos_token(False)


def convert(folder: Path, output: Path, of_type: str) -> None:
    """Throws ValueError, of it NotSupported, and OSError."""
    model = ModelFolder(folder, "decoder_lm")
    check(model)
    c = model.config
    writer = gguf.GGUFWriter(str(output), "gpt2")
    writer.add_block_count(c["layers"])
    writer.add_context_length(c["context_length"])
    writer.add_embedding_length(c["d_model"])
    writer.add_feed_forward_length(c["d_ff"])
    writer.add_head_count(c["heads"])
    writer.add_layer_norm_eps(c["norm_epsilon"])
    writer.add_vocab_size(c["vocab"])
    add_vocabulary(writer, read_json(vocabulary_file(folder)))
    writer.add_file_type(FILE_TYPES[of_type])
    for name, x in tensors_of(model).items():
        if of_type != "f32" and x.ndim == 2 and name != "position_embd.weight":
            writer.add_tensor(name, gguf.quants.quantize(x, TYPES[of_type]), raw_dtype=TYPES[of_type])
        else:
            writer.add_tensor(name, np.ascontiguousarray(x))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("model", type=Path, help="folder of a language model of Attune")
    p.add_argument("output", type=Path, help="file to write")
    p.add_argument("--type", choices=sorted(TYPES), default="f32")
    o = p.parse_args()
    try:
        convert(o.model, o.output, o.type)
    except (OSError, ValueError, KeyError) as error:
        print(f"to_gguf: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
