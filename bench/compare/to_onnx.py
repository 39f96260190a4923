#!/usr/bin/env python3
"""Writes a BERT of the Hugging Face hub as an ONNX graph of ONNX Runtime's fused operators.

These are what its optimizer for Transformers makes of an exported model: EmbedLayerNormalization, Attention,
SkipLayerNormalization and BiasGelu. The graph takes input_ids and attention_mask, int32 [texts, tokens], padded on the
right, and returns last_hidden_state [texts, tokens, hidden].
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from model_folder import NotSupported, read_json, read_safetensors

FUSED = "com.microsoft"


class Graph:
    def __init__(self, tensors: dict[str, np.ndarray], epsilon: float):
        self.tensors, self.epsilon = tensors, epsilon
        self.nodes, self.constants = [], []

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype=np.float32), name))
        return name

    def tensor(self, name: str) -> str:
        return self.constant(name, self.tensors[name])

    def node(self, kind: str, inputs: list[str], output: str, domain: str = FUSED, **attributes) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def product(self, x: str, name: str) -> str:
        """Without the bias, which is a part of the node behind it."""
        weight = self.constant(f"{name}.transposed", self.tensors[f"{name}.weight"].T)
        return self.node("MatMul", [x, weight], f"{name}.product", domain="")

    def norm(self, x: str, skip: str, linear: str, name: str) -> str:
        """LayerNorm(x + bias of `linear` + skip)"""
        parts = [self.tensor(f"{name}.weight"), self.tensor(f"{name}.bias"), self.tensor(f"{linear}.bias")]
        return self.node("SkipLayerNormalization", [x, skip, *parts], f"{name}.out", epsilon=self.epsilon)


def embeddings(graph: Graph) -> str:
    """All tokens are of the first segment: its row is added to the positions."""
    of, name = graph.tensors, "embeddings"
    positions = of[f"{name}.position_embeddings.weight"] + of[f"{name}.token_type_embeddings.weight"][0]
    inputs = ["input_ids", "", graph.tensor(f"{name}.word_embeddings.weight"), graph.constant("positions", positions), ""]
    inputs += [graph.tensor(f"{name}.LayerNorm.weight"), graph.tensor(f"{name}.LayerNorm.bias"), "attention_mask"]
    graph.nodes.append(
        helper.make_node("EmbedLayerNormalization", inputs, ["embedded", "lengths"], domain=FUSED, epsilon=graph.epsilon)
    )
    return "embedded"


def layer(graph: Graph, x: str, name: str, heads: int) -> str:
    of, attention = graph.tensors, f"{name}.attention"
    parts = [f"{attention}.self.{part}" for part in ("query", "key", "value")]
    weight = graph.constant(f"{attention}.weights", np.concatenate([of[f"{p}.weight"].T for p in parts], axis=1))
    bias = graph.constant(f"{attention}.biases", np.concatenate([of[f"{p}.bias"] for p in parts]))
    y = graph.node("Attention", [x, weight, bias, "lengths"], f"{attention}.out", num_heads=heads)
    output = f"{attention}.output"
    x = graph.norm(graph.product(y, f"{output}.dense"), x, f"{output}.dense", f"{output}.LayerNorm")
    inner = f"{name}.intermediate.dense"
    y = graph.node("BiasGelu", [graph.product(x, inner), graph.tensor(f"{inner}.bias")], f"{inner}.out")
    return graph.norm(graph.product(y, f"{name}.output.dense"), x, f"{name}.output.dense", f"{name}.output.LayerNorm")


def convert(folder: Path, output: Path) -> None:
    """Throws ValueError, of it NotSupported, and OSError."""
    config = read_json(folder / "config.json")
    for name, expected in (("model_type", "bert"), ("hidden_act", "gelu")):
        if config.get(name) != expected:
            raise NotSupported(f"{folder}: expected {name} = {expected}, found {config.get(name)}")
    found = read_safetensors(folder / "model.safetensors", left_out=("embeddings.position_ids",))
    tensors = {name.removeprefix("bert."): x for name, x in found.items()}
    graph = Graph(tensors, config["layer_norm_eps"])
    x = embeddings(graph)
    for i in range(config["num_hidden_layers"]):
        x = layer(graph, x, f"encoder.layer.{i}", config["num_attention_heads"])
    graph.node("Identity", [x], "last_hidden_state", domain="")

    def value(name: str, of_type: int, *shape) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, of_type, shape)

    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "bert",
            [value(name, TensorProto.INT32, "texts", "tokens") for name in ("input_ids", "attention_mask")],
            [value("last_hidden_state", TensorProto.FLOAT, "texts", "tokens", config["hidden_size"])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)],
        ir_version=8,
    )
    onnx.save(model, str(output))


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("model", type=Path, help="folder of a BERT, in float32")
    p.add_argument("output", type=Path, help="file to write")
    o = p.parse_args()
    try:
        convert(o.model, o.output)
    except (OSError, ValueError, KeyError) as error:
        print(f"to_onnx: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
