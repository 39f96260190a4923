"""Differentiable functions of tensors, and record(), which makes a computation of NumPy or PyTorch one of them."""

from ._core import (
    add,
    cross_entropy,
    embedding,
    gather,
    gelu,
    layer_norm,
    linear,
    log_softmax,
    matmul,
    record,
    relu,
    silu,
    softmax,
    tanh,
)

__all__ = [
    "add",
    "cross_entropy",
    "embedding",
    "gather",
    "gelu",
    "layer_norm",
    "linear",
    "log_softmax",
    "matmul",
    "record",
    "relu",
    "silu",
    "softmax",
    "tanh",
]
