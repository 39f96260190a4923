"""An encoder-decoder Transformer in PyTorch and its batches, written the way that was found fastest among those that a
PyTorch user would write (see README.md)."""

import argparse
import math
from typing import NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pytorch_program import autocast

PAD, BOS, EOS = 0, 2, 3


class Batch(NamedTuple):
    """Sentences padded at the right to the longest; without padding the mask is None, which is the faster path."""

    source: Tensor  # int64 [batch, source_length]
    decoder_input: Tensor  # int64 [batch, target_length], bos and the target without its last token
    labels: Tensor  # int64 [batch, target_length]
    source_mask: Optional[Tensor]  # bool [batch, 1, 1, source_length], True at real tokens
    source_tokens: int  # real ones, as all counts of tokens here
    target_tokens: int

    def to(self, device: str) -> "Batch":
        return Batch(*(x.to(device) if isinstance(x, Tensor) else x for x in self))


def pad(sentences: list[list[int]]) -> Tensor:
    length = max(map(len, sentences))
    return torch.tensor([s + [PAD] * (length - len(s)) for s in sentences])


def make_batch(source: list[list[int]], target: list[list[int]]) -> Batch:
    """Of sentences that end in eos."""
    ids = pad(source)
    mask = (ids != PAD)[:, None, None, :]
    return Batch(
        ids,
        pad([[BOS] + t[:-1] for t in target]),
        pad(target),
        None if mask.all() else mask,
        sum(map(len, source)),
        sum(map(len, target)),
    )


class Dropout(nn.Module):
    """As nn.Dropout, whose bernoulli_() takes about four times as long on a CPU as rand() and a comparison. On a GPU it
    is one kernel, and taken."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if self.p == 0 or not self.training:
            return x
        if x.is_cuda:
            return F.dropout(x, self.p)
        return x * ((torch.rand_like(x) >= self.p) * (1 / (1 - self.p)))


def rotary_table(length: int, d_head: int) -> Tensor:
    """Cosines and sines of the angles, [2, length, d_head / 2]; Su et al. 2021, section 3.2.2"""
    angle = torch.arange(length)[:, None] * 1e4 ** (torch.arange(0, d_head, 2) / -d_head)
    return torch.stack([angle.cos(), angle.sin()])


def rotated(x: Tensor, table: Tensor) -> Tensor:
    """x [..., length, d_head], dimension i turned together with i + d_head / 2."""
    a, b = x.chunk(2, dim=-1)
    cosine, sine = table
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1)


class Attention(nn.Module):
    """Multi-head attention; queries, keys and values of self-attention come from one matrix product."""

    def __init__(self, d_model: int, heads: int, dropout: float, cross: bool):
        super().__init__()
        self.heads, self.dropout, self.cross = heads, dropout, cross
        if cross:
            self.query = nn.Linear(d_model, d_model)
            self.key_value = nn.Linear(d_model, 2 * d_model)
        else:
            self.query_key_value = nn.Linear(d_model, 3 * d_model)
        self.output = nn.Linear(d_model, d_model)

    def split(self, x: Tensor, parts: int) -> Tensor:
        """[batch, length, parts * d_model] -> [parts, batch, heads, length, d_head]"""
        batch, length, width = x.shape
        return x.view(batch, length, parts, self.heads, width // parts // self.heads).permute(2, 0, 3, 1, 4)

    def projected(self, x: Tensor, memory: Optional[Tensor], places: Optional[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        if self.cross:
            return self.split(self.query(x), 1)[0], *self.split(self.key_value(memory), 2)
        parts = self.split(self.query_key_value(x), 3)
        return tuple(parts) if places is None else (*rotated(parts[:2], places), parts[2])

    def forward(
        self, x: Tensor, memory: Optional[Tensor], mask: Optional[Tensor], causal: bool, places: Optional[Tensor]
    ) -> Tensor:
        q, k, v = self.projected(x, memory, places)
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, dropout_p=self.dropout if self.training else 0.0, is_causal=causal
        )
        return self.output(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float):
        super().__init__()
        self.linear_1, self.linear_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear_2(self.dropout(F.relu(self.linear_1(x), inplace=True)))


class Layer(nn.Module):
    """An encoder layer, or with cross-attention a decoder layer."""

    def __init__(self, options: argparse.Namespace, decoder: bool):
        super().__init__()
        d, o = options.d_model, options
        self.pre_norm, self.decoder = o.norm == "pre", decoder
        self.self_attention = Attention(d, o.heads, o.attention_dropout, cross=False)
        self.cross_attention = Attention(d, o.heads, o.attention_dropout, cross=True) if decoder else None
        self.feed_forward = FeedForward(d, o.d_ff, o.activation_dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3 if decoder else 2))
        self.dropout = Dropout(o.dropout)

    def residual(self, x: Tensor, norm: nn.LayerNorm, sublayer) -> Tensor:
        if self.pre_norm:
            return x + self.dropout(sublayer(norm(x)))
        return norm(x + self.dropout(sublayer(x)))

    def forward(
        self, x: Tensor, memory: Optional[Tensor], source_mask: Optional[Tensor], places: Optional[Tensor]
    ) -> Tensor:
        # A causal mask hides the padding at the right of a target from every real token before it.
        own_mask = None if self.decoder else source_mask
        x = self.residual(x, self.norms[0], lambda y: self.self_attention(y, None, own_mask, self.decoder, places))
        if self.decoder:
            x = self.residual(x, self.norms[1], lambda y: self.cross_attention(y, memory, source_mask, False, None))
        return self.residual(x, self.norms[-1], self.feed_forward)


def sinusoids(length: int, d_model: int) -> Tensor:
    """[length, d_model], Vaswani et al. 2017, section 3.5"""
    angle = torch.arange(length)[:, None] * torch.exp(torch.arange(0, d_model, 2) * (-math.log(1e4) / d_model))
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)[:, :d_model]


class Transformer(nn.Module):
    def __init__(self, options: argparse.Namespace, max_length: int):
        super().__init__()
        d, vocab = options.d_model, options.vocab
        self.scale = math.sqrt(d)
        self.source_embedding, self.target_embedding = nn.Embedding(vocab, d), nn.Embedding(vocab, d)
        self.projection = nn.Linear(d, vocab)
        if options.tied:
            self.source_embedding.weight = self.target_embedding.weight = self.projection.weight
        self.encoder = nn.ModuleList(Layer(options, decoder=False) for _ in range(options.layers))
        self.decoder = nn.ModuleList(Layer(options, decoder=True) for _ in range(options.layers))
        final_norm = (lambda: nn.LayerNorm(d)) if options.norm == "pre" else nn.Identity
        self.encoder_norm, self.decoder_norm = final_norm(), final_norm()
        self.dropout = Dropout(options.dropout)
        self.rotary = options.positions == "rotary"
        table = rotary_table(max_length, d // options.heads) if self.rotary else sinusoids(max_length, d)
        self.register_buffer("positions", table, persistent=False)
        self.initialize()

    def initialize(self) -> None:
        """Glorot and Bengio 2010 for each matrix of its own, also where one product computes several; biases are 0."""
        for name, parameter in self.named_parameters():
            parts = 3 if "query_key_value" in name else 2 if "key_value" in name else 1
            if parameter.dim() == 1 and name.endswith("bias"):
                nn.init.zeros_(parameter)
            for matrix in parameter.chunk(parts) if parameter.dim() > 1 else ():
                nn.init.xavier_uniform_(matrix)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=embedding.embedding_dim**-0.5)

    def embed(self, embedding: nn.Embedding, ids: Tensor) -> tuple[Tensor, Optional[Tensor]]:
        """What enters the layers, and the places for their self-attention where positions are rotary."""
        x, length = embedding(ids) * self.scale, ids.shape[1]
        if self.rotary:
            return self.dropout(x), self.positions[:, :length]
        return self.dropout(x + self.positions[:length]), None

    def forward(self, source: Tensor, decoder_input: Tensor, source_mask: Optional[Tensor]) -> Tensor:
        memory, places = self.embed(self.source_embedding, source)
        for layer in self.encoder:
            memory = layer(memory, None, source_mask, places)
        memory = self.encoder_norm(memory)
        x, places = self.embed(self.target_embedding, decoder_input)
        for layer in self.decoder:
            x = layer(x, memory, source_mask, places)
        return self.projection(self.decoder_norm(x))


def add_model_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--d-model", type=int, default=512)
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--layers", type=int, default=6, help="of the encoder and of the decoder")
    p.add_argument("--d-ff", type=int, default=2048)
    p.add_argument("--dropout", type=float, default=0.1, help="of embeddings and residual branches")
    p.add_argument("--activation-dropout", type=float, default=0.0, help="inside the feed-forward network")
    p.add_argument("--attention-dropout", type=float, default=0.0, help="of attention weights; leaves the fused kernel")
    p.add_argument("--norm", choices=["pre", "post"], default="post")
    p.add_argument("--positions", choices=["sinusoidal", "rotary"], default="sinusoidal")
    p.add_argument("--activation", choices=["relu"], default="relu")
    p.add_argument("--tied", action="store_true", help="source and target embedding and projection share one weight")
    p.add_argument("--label-smoothing", type=float, default=0.1)
    p.add_argument("--learning-rate", type=float, default=1e-4)


def adam(model: nn.Module, options: argparse.Namespace, epsilon: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=options.learning_rate, betas=(0.9, 0.98), eps=epsilon, fused=True)


class Step:
    """Forward, loss, backward and update: what is timed."""

    def __init__(self, options: argparse.Namespace, model: nn.Module, optimizer: Optional[torch.optim.Optimizer]):
        self.model, self.options, self.optimizer = model, options, optimizer
        self.run = torch.compile(self.loss, dynamic=True) if options.compile else self.loss

    def loss(self, batch: Batch) -> Tensor:
        with autocast(self.options):
            logits = self.model(batch.source, batch.decoder_input, batch.source_mask)
            return F.cross_entropy(
                logits.flatten(0, 1),
                batch.labels.flatten(),
                label_smoothing=self.options.label_smoothing,
                ignore_index=PAD,
            )

    def __call__(self, batch: Batch) -> Tensor:
        """The loss; on a GPU it need not be computed yet."""
        self.model.zero_grad(set_to_none=True)
        loss = self.run(batch)
        loss.backward()
        if self.optimizer:
            self.optimizer.step()
        return loss.detach()
