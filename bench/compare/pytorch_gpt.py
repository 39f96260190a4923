"""A GPT in PyTorch, as its users write one for speed (Radford et al. 2019)."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class GptConfig(NamedTuple):
    vocab: int
    d_model: int
    heads: int
    layers: int
    context: int
    bias: bool = False  # of the linear layers; the projection has none
    gelu: str = "none"  # or "tanh", the approximation of GPT-2


class Block(nn.Module):
    """Pre-norm: causal self-attention and a feed-forward network with GELU; no dropout."""

    def __init__(self, config: GptConfig):
        super().__init__()
        d, bias = config.d_model, config.bias
        self.heads, self.gelu = config.heads, config.gelu
        self.norm_1, self.norm_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.query_key_value = nn.Linear(d, 3 * d, bias=bias)
        self.output = nn.Linear(d, d, bias=bias)
        self.linear_1 = nn.Linear(d, 4 * d, bias=bias)
        self.linear_2 = nn.Linear(4 * d, d, bias=bias)

    def attention(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.query_key_value(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)  # [batch, heads, length, d_head]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(y.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.linear_2(F.gelu(self.linear_1(self.norm_2(x)), approximate=self.gelu))


class Gpt(nn.Module):
    """Learned positions; the projection's weight is the embedding."""

    def __init__(self, config: GptConfig):
        super().__init__()
        self.embedding = nn.Embedding(config.vocab, config.d_model)
        self.positions = nn.Embedding(config.context, config.d_model)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.d_model)
        self.projection = nn.Linear(config.d_model, config.vocab, bias=False)
        self.projection.weight = self.embedding.weight
        self.register_buffer("places", torch.arange(config.context), persistent=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                ends_sublayer = name.endswith(("output.weight", "linear_2.weight"))
                nn.init.normal_(parameter, std=0.02 / (math.sqrt(2 * config.layers) if ends_sublayer else 1))
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """The mean cross entropy of the labels."""
        x = self.embedding(ids) + self.positions(self.places[: ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.projection(self.norm(x)).flatten(0, 1), labels.flatten())


def adamw(model: nn.Module, learning_rate: float, betas: tuple[float, float]) -> torch.optim.Optimizer:
    """Matrices decay, gains and biases do not."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, eps=1e-8, fused=True)
