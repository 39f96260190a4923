#!/usr/bin/env python3
"""Converts an encoder-decoder of Attune to CTranslate2.

Reads config.json, model.safetensors and the tokenizers of a model folder, and writes the folder that
ctranslate2.Translator opens. What CTranslate2 has no counterpart of is refused by name.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from ctranslate2.specs import common_spec, transformer_spec

from model_folder import ModelFolder, NotSupported, Pieces, sinusoids

LONGEST = 2048  # rows of sinusoidal positions that are written
ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "gelu_tanh": common_spec.Activation.GELUTanh,
    "silu": common_spec.Activation.SWISH,
    "swiglu": common_spec.Activation.SWISH,
    "geglu": common_spec.Activation.GELU,
}
GATED = ("swiglu", "geglu")


def check(model: ModelFolder) -> None:
    """Throws NotSupported."""
    model.require_plain_attention("encoder_attention", "decoder_attention", "cross_attention")
    model.require("norm_form", "variance", "rms")
    model.require("share_layers", False)
    model.require("activation", *ACTIVATIONS)
    kind, rotary = model.choice("positions")
    if kind not in ("sinusoidal", "learned", "rotary"):
        raise NotSupported(f"{model.path}: positions = {kind} are not converted")
    if rotary.get("scaling", "none") != "none":
        raise NotSupported(f"{model.path}: positions.scaling = {rotary['scaling']} is not converted")


class Converter:
    def __init__(self, model: ModelFolder):
        check(model)
        self.model, self.config = model, model.config
        self.rms, self.gated = self.config["norm_form"] == "rms", self.config["activation"] in GATED

    def spec(self) -> transformer_spec.TransformerSpec:
        c, (positions, rotary) = self.config, self.model.choice("positions")
        options = {
            "pre_norm": c["norm"] == "pre",
            "no_final_norm": not c.get("final_norm", True),
            "activation": ACTIVATIONS[c["activation"]],
            "layernorm_embedding": c.get("embedding_norm", False),
            "ffn_glu": self.gated,
            "rms_norm": self.rms,
        }
        if positions == "rotary":
            options["rotary_dim"] = rotary.get("dimensions", 0)
            options["rotary_interleave"] = rotary.get("pairing", "half") == "interleaved"
            options["rotary_base"] = rotary.get("base", 10000)
        spec = transformer_spec.TransformerSpec(
            transformer_spec.TransformerEncoderSpec(c["layers"], c["heads"], **options),
            transformer_spec.TransformerDecoderSpec(c["layers"], c["heads"], **options),
        )
        self.stack(spec.encoder, spec.encoder.embeddings[0], "encoder", "source")
        self.stack(spec.decoder, spec.decoder.embeddings, "decoder", "target")
        self.projection(spec.decoder.projection)
        for side, register in (
            ("source", spec.register_source_vocabulary),
            ("target", spec.register_target_vocabulary),
        ):
            register(Pieces(self.model.path, side).pieces)
        self.tokens(spec.config)
        return spec

    def tokens(self, config: transformer_spec.TransformerConfig) -> None:
        """The source ends in eos, the target begins with bos."""
        target = Pieces(self.model.path, "target")
        names = {"unk_token": target.unknown, "bos_token": target.bos, "eos_token": target.eos}
        for name, id in {**names, "decoder_start_token": target.bos}.items():
            setattr(config, name, target.pieces[id])
        config.add_source_eos = True
        config.layer_norm_epsilon = self.config["norm_epsilon"]

    def projection(self, spec: common_spec.LinearSpec) -> None:
        spec.weight = self.model.first_of("projection.weight", "target_embedding.weight", "source_embedding.weight")
        if "projection.bias" in self.model.tensors:
            spec.bias = self.model.tensors["projection.bias"]

    def stack(self, spec, embeddings: common_spec.EmbeddingsSpec, stack: str, side: str) -> None:
        embeddings.weight = self.model.first_of(f"{side}_embedding.weight", "source_embedding.weight")
        spec.scale_embeddings = self.config.get("scale_embeddings", True)
        kind, _ = self.model.choice("positions")
        if kind == "sinusoidal":
            spec.position_encodings.encodings = sinusoids(LONGEST, self.config["d_model"])
        elif kind == "learned":
            spec.position_encodings.encodings = self.model.tensors[f"{side}_embedding.position.weight"]
        if self.config.get("embedding_norm", False):
            self.norm(spec.layernorm_embedding, f"{side}_embedding.norm")
        if hasattr(spec, "layer_norm"):
            self.norm(spec.layer_norm, f"{stack}.norm")
        for i, layer in enumerate(spec.layer):
            self.layer(layer, f"{stack}.layers.{i}", decoder=stack == "decoder")

    def layer(self, spec, name: str, decoder: bool) -> None:
        attention = f"{name}.self_attention"
        self.linear(spec.self_attention.linear[0], *(f"{attention}.w_{x}" for x in "qkv"))
        self.linear(spec.self_attention.linear[1], f"{attention}.w_o")
        self.norm(spec.self_attention.layer_norm, f"{name}.residual_1.norm")
        if decoder:
            attention = f"{name}.cross_attention"
            self.linear(spec.attention.linear[0], f"{attention}.w_q")
            self.linear(spec.attention.linear[1], f"{attention}.w_k", f"{attention}.w_v")
            self.linear(spec.attention.linear[2], f"{attention}.w_o")
            self.norm(spec.attention.layer_norm, f"{name}.residual_2.norm")
        self.feed_forward(spec.ffn, f"{name}.feed_forward")
        self.norm(spec.ffn.layer_norm, f"{name}.residual_{3 if decoder else 2}.norm")

    def feed_forward(self, spec: transformer_spec.FeedForwardSpec, name: str) -> None:
        """The first half of a gated unit's outputs goes through the activation."""
        self.linear(spec.linear_0, f"{name}.linear_1")
        self.linear(spec.linear_1, f"{name}.linear_2")
        if self.gated:
            halves = [
                np.split(part, 2) if isinstance(part, np.ndarray) else (part, part)
                for part in (spec.linear_0.weight, spec.linear_0.bias)
            ]
            for half, linear in enumerate((spec.linear_0, spec.linear_0_noact)):
                linear.weight, linear.bias = halves[0][half], halves[1][half]

    def linear(self, spec: common_spec.LinearSpec, *names: str) -> None:
        """Several are one above the other."""
        tensors = self.model.tensors
        weights = [tensors[f"{name}.weight"] for name in names]
        spec.weight = np.concatenate(weights)
        if any(f"{name}.bias" in tensors for name in names):
            zeros = (np.zeros(len(w), np.float32) for w in weights)
            spec.bias = np.concatenate([tensors.get(f"{name}.bias", zero) for name, zero in zip(names, zeros)])

    def norm(self, spec: common_spec.LayerNormSpec, name: str) -> None:
        spec.gamma = self.model.tensors[f"{name}.weight"]
        if not self.rms:
            spec.beta = self.model.tensors[f"{name}.bias"]


def convert(model: Path, output: Path, quantization: str) -> None:
    """Throws ValueError, of it NotSupported, and OSError."""
    spec = Converter(ModelFolder(model, "encoder_decoder")).spec()
    spec.validate()
    spec.optimize(quantization)
    output.mkdir(parents=True, exist_ok=True)
    spec.save(str(output))


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("model", type=Path, help="folder of an encoder-decoder of Attune")
    p.add_argument("output", type=Path, help="folder to write")
    p.add_argument("--quantization", choices=["float32", "int8", "int8_float32"], default="float32")
    o = p.parse_args()
    try:
        convert(o.model, o.output, o.quantization)
    except (OSError, ValueError, KeyError) as error:
        print(f"to_ctranslate2: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
