"""Sentence vectors by sentence-transformers or ONNX Runtime; one JSON object with the sentences of a second.

The graph for ONNX Runtime is the encoder as PyTorch exports it, with the fusions of ONNX Runtime's own optimiser for BERT.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def sentence_transformer(o: argparse.Namespace):
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(o.threads)
    model = SentenceTransformer(o.model, device="cpu")
    return lambda lines: model.encode(lines, batch_size=o.batch_size, normalize_embeddings=True)


def export(model: str, to: Path, int8: bool) -> Path:
    """The fused graph, and its weights in 8 bits where those are asked for."""
    import onnx
    import torch
    import transformers
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers import optimizer

    encoder = transformers.AutoModel.from_pretrained(model, attn_implementation="eager").eval()

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = encoder

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.encoder(
                input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
            ).last_hidden_state

    plain, fused, quantized = (to / f"{name}.onnx" for name in ("plain", "fused", "int8"))
    if not fused.exists():
        ids = torch.randint(100, 1000, (2, 8))
        axes = {name: {0: "batch", 1: "tokens"} for name in (*INPUTS, "hidden")}
        example = (ids, torch.ones_like(ids), torch.zeros_like(ids))
        names = {"input_names": list(INPUTS), "output_names": ["hidden"], "dynamic_axes": axes}
        torch.onnx.export(Hidden(), example, str(plain), opset_version=17, dynamo=False, **names)
        config = encoder.config
        optimizer.optimize_model(
            str(plain), model_type="bert", num_heads=config.num_attention_heads, hidden_size=config.hidden_size
        ).save_model_to_file(str(fused))
    if not int8:
        return fused
    if not quantized.exists():
        types = {"DefaultTensorType": onnx.TensorProto.FLOAT}  # of what fused nodes give
        quantize_dynamic(str(fused), str(quantized), weight_type=QuantType.QInt8, extra_options=types)
    return quantized


def onnx_runtime(o: argparse.Namespace):
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = o.threads
    session = onnxruntime.InferenceSession(str(export(o.model, o.graphs, o.int8)), options)
    tokenizer = Tokenizer.from_file(str(Path(o.model) / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()

    def encode(lines: list[str]) -> np.ndarray:
        order = np.argsort([-len(line) for line in lines], kind="stable")  # as sentence-transformers does
        vectors = np.empty((len(lines), 0), np.float32)
        for begin in range(0, len(lines), o.batch_size):
            rows = order[begin : begin + o.batch_size]
            batch = tokenizer.encode_batch([lines[i] for i in rows])
            values = [[e.ids for e in batch], [e.attention_mask for e in batch], [e.type_ids for e in batch]]
            (hidden,) = session.run(None, dict(zip(INPUTS, (np.array(v, np.int64) for v in values))))
            mask = np.array(values[1], np.float32)[..., None]
            mean = (hidden * mask).sum(1) / mask.sum(1)
            if vectors.shape[1] == 0:
                vectors = np.empty((len(lines), mean.shape[1]), np.float32)
            vectors[rows] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return vectors

    return encode


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("library", choices=("sentence-transformers", "onnxruntime"))
    p.add_argument("--model", required=True, help="a sentence-transformers folder")
    p.add_argument("--data", type=Path, required=True, help="sentences, one a line")
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--passes", type=int, default=3)
    p.add_argument("--int8", action="store_true", help="onnxruntime: weights in 8 bits")
    p.add_argument("--graphs", type=Path, default=Path("."), help="onnxruntime: folder for the exported graphs")
    p.add_argument("--vectors", help="a .npy file for the vectors")
    o = p.parse_args()
    encode = sentence_transformer(o) if o.library == "sentence-transformers" else onnx_runtime(o)
    lines = o.data.read_text(encoding="utf-8").splitlines()
    encode(lines[: 4 * o.batch_size])
    seconds = []
    for _ in range(o.passes):
        begin = time.perf_counter()
        vectors = encode(lines)
        seconds.append(time.perf_counter() - begin)
    if o.vectors:
        np.save(o.vectors, np.asarray(vectors, np.float32))
    middle = statistics.median(seconds)
    print(json.dumps({"program": o.library, "sentences": len(lines), "sentences_per_s": len(lines) / middle}))


if __name__ == "__main__":
    main()
