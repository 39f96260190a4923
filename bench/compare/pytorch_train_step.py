#!/usr/bin/env python3
"""The training step of an encoder-decoder Transformer in PyTorch, timed on the batches of a file.

The same work as `attune bench train`: the same model, loss and optimizer on the same batches in the same order, written
the way that was found fastest among those that a PyTorch user would write (see README.md). Prints one line of JSON.
"""

import argparse
import itertools
import json
import math
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD, BOS, EOS = 0, 2, 3


class Batch(NamedTuple):
    """Sentences padded at the right to the longest; without padding the mask is None, which is the faster path."""

    source: Tensor  # int64 [batch, source_length]
    decoder_input: Tensor  # int64 [batch, target_length], bos and the target without its last token
    labels: Tensor  # int64 [batch, target_length]
    source_mask: Optional[Tensor]  # bool [batch, 1, 1, source_length], True at real tokens
    source_tokens: int  # real ones, as all counts of tokens here
    target_tokens: int


def pad(sentences: list[list[int]]) -> Tensor:
    length = max(map(len, sentences))
    return torch.tensor([s + [PAD] * (length - len(s)) for s in sentences])


def check_sentences(value, vocab: int, where: str) -> list[list[int]]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{where}: expected a list of sentences, found {json.dumps(value)[:40]}")
    for i, sentence in enumerate(value):
        if not isinstance(sentence, list) or not sentence or sentence[-1] != EOS:
            raise ValueError(f"{where}: sentence {i} is not a list of ids that ends in eos = {EOS}")
        for token in sentence:
            if type(token) is not int or not 0 <= token < vocab or token == PAD:
                raise ValueError(f"{where}: sentence {i} has id {token!r}, expected 1 to {vocab - 1}")
    return value


def read_batches(path: Path, vocab: int) -> list[Batch]:
    """One JSON object a line: {"source": [[id, ..., eos], ...], "target": [[id, ..., eos], ...]}."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8: {error}") from None
    batches = []
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{where}: not JSON: {error}") from None
        if not isinstance(record, dict) or not {"source", "target"} <= record.keys():
            raise ValueError(f'{where}: expected an object with "source" and "target"')
        source = check_sentences(record["source"], vocab, f"{where}: source")
        target = check_sentences(record["target"], vocab, f"{where}: target")
        if len(source) != len(target):
            raise ValueError(f"{where}: {len(source)} source sentences but {len(target)} target sentences")
        ids = pad(source)
        mask = (ids != PAD)[:, None, None, :]
        batches.append(
            Batch(
                ids,
                pad([[BOS] + t[:-1] for t in target]),
                pad(target),
                None if mask.all() else mask,
                sum(map(len, source)),
                sum(map(len, target)),
            )
        )
    if not batches:
        raise ValueError(f"{path}: holds no batch")
    return batches


class Dropout(nn.Module):
    """As nn.Dropout, whose bernoulli_() takes about four times as long on a CPU as rand() and a comparison."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if self.p == 0 or not self.training:
            return x
        return x * ((torch.rand_like(x) >= self.p) * (1 / (1 - self.p)))


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

    def split(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        """[batch, length, parts * d_model] -> parts views [batch, heads, length, d_head]"""
        batch, length, width = x.shape
        return x.view(batch, length, parts, self.heads, width // parts // self.heads).permute(2, 0, 3, 1, 4).unbind(0)

    def forward(self, x: Tensor, memory: Optional[Tensor], mask: Optional[Tensor], causal: bool) -> Tensor:
        if self.cross:
            (q,) = self.split(self.query(x), 1)
            k, v = self.split(self.key_value(memory), 2)
        else:
            q, k, v = self.split(self.query_key_value(x), 3)
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

    def forward(self, x: Tensor, memory: Optional[Tensor], source_mask: Optional[Tensor]) -> Tensor:
        # A causal mask hides the padding at the right of a target from every real token before it.
        own_mask = None if self.decoder else source_mask
        x = self.residual(x, self.norms[0], lambda y: self.self_attention(y, None, own_mask, self.decoder))
        if self.decoder:
            x = self.residual(x, self.norms[1], lambda y: self.cross_attention(y, memory, source_mask, False))
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
        self.register_buffer("positions", sinusoids(max_length, d))
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=d**-0.5)

    def embed(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        return self.dropout(embedding(ids) * self.scale + self.positions[: ids.shape[1]])

    def forward(self, source: Tensor, decoder_input: Tensor, source_mask: Optional[Tensor]) -> Tensor:
        memory = self.embed(self.source_embedding, source)
        for layer in self.encoder:
            memory = layer(memory, None, source_mask)
        memory = self.encoder_norm(memory)
        x = self.embed(self.target_embedding, decoder_input)
        for layer in self.decoder:
            x = layer(x, memory, source_mask)
        return self.projection(self.decoder_norm(x))


class Step:
    """Forward, loss, backward and update: what is timed."""

    def __init__(self, options: argparse.Namespace, model: nn.Module):
        self.model, self.smoothing = model, options.label_smoothing
        self.run = torch.compile(self.loss, dynamic=True) if options.compile else self.loss
        self.optimizer = None
        if options.optimizer == "adam":
            self.optimizer = torch.optim.Adam(
                model.parameters(), lr=options.learning_rate, betas=(0.9, 0.98), eps=1e-9, fused=True
            )

    def loss(self, batch: Batch) -> Tensor:
        logits = self.model(batch.source, batch.decoder_input, batch.source_mask)
        return F.cross_entropy(
            logits.flatten(0, 1), batch.labels.flatten(), label_smoothing=self.smoothing, ignore_index=PAD
        )

    def __call__(self, batch: Batch) -> float:
        self.model.zero_grad(set_to_none=True)
        loss = self.run(batch)
        loss.backward()
        if self.optimizer:
            self.optimizer.step()
        return loss.item()


def peak_memory_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # macOS counts bytes, Linux KiB


def measure(options: argparse.Namespace) -> dict:
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    import_mb = peak_memory_mb()
    batches = read_batches(options.batches, options.vocab)
    max_length = max(max(b.source.shape[1], b.labels.shape[1]) for b in batches)
    step = Step(options, Transformer(options, max_length).train())
    losses, seconds, used = [], [], []
    for batch in itertools.islice(itertools.cycle(batches), options.warmup + options.steps):
        start = time.perf_counter()
        losses.append(step(batch))
        seconds.append(time.perf_counter() - start)
        used.append(batch)
    if options.jsonl:
        rows = [
            {"step": i, "ms": 1e3 * s, "loss": l, "source_tokens": b.source_tokens, "target_tokens": b.target_tokens}
            for i, (s, l, b) in enumerate(zip(seconds, losses, used))
        ]
        options.jsonl.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    seconds, used = seconds[options.warmup :], used[options.warmup :]
    tokens = sum(b.source_tokens + b.target_tokens for b in used)
    positions = sum(b.source.numel() + b.labels.numel() for b in used)
    return {
        "program": "pytorch",
        "torch": torch.__version__,
        "threads": options.threads,
        "steps": options.steps,
        "compiled": options.compile,
        "parameters": sum(p.numel() for p in step.model.parameters()),
        "median_ms_per_step": 1e3 * statistics.median(seconds),
        "target_tokens_per_s": statistics.median(b.target_tokens / s for b, s in zip(used, seconds)),
        "source_tokens_per_s": statistics.median(b.source_tokens / s for b, s in zip(used, seconds)),
        "padding_share": 1 - tokens / positions,
        "peak_memory_mb": peak_memory_mb(),
        "import_memory_mb": import_mb,
        "loss_first": losses[0],
        "loss_last": losses[-1],
    }


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--batches", type=Path, required=True, help="JSON lines, from `attune bench train --write-batches`")
    p.add_argument("--d-model", type=int, default=512)
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--layers", type=int, default=6, help="of the encoder and of the decoder")
    p.add_argument("--d-ff", type=int, default=2048)
    p.add_argument("--vocab", type=int, default=8000)
    p.add_argument("--dropout", type=float, default=0.1, help="of embeddings and residual branches")
    p.add_argument("--activation-dropout", type=float, default=0.0, help="inside the feed-forward network")
    p.add_argument("--attention-dropout", type=float, default=0.0, help="of attention weights; leaves the fused kernel")
    p.add_argument("--norm", choices=["pre", "post"], default="post")
    p.add_argument("--activation", choices=["relu"], default="relu")
    p.add_argument("--tied", action="store_true", help="source and target embedding and projection share one weight")
    p.add_argument("--label-smoothing", type=float, default=0.1)
    p.add_argument("--optimizer", choices=["adam", "none"], default="adam")
    p.add_argument("--learning-rate", type=float, default=1e-4)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--steps", type=int, default=10, help="timed ones")
    p.add_argument("--warmup", type=int, default=3, help="steps before the timed ones")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--compile", action="store_true", help="through torch.compile")
    p.add_argument("--jsonl", type=Path, help="write one line for each step here, warm-up included")
    options = p.parse_args()
    for name in ("d_model", "heads", "layers", "d_ff", "vocab", "threads", "steps"):
        if getattr(options, name) < 1:
            p.error(f"--{name.replace('_', '-')} {getattr(options, name)}: expected at least 1")
    if options.warmup < 0:
        p.error(f"--warmup {options.warmup}: expected at least 0")
    if options.d_model % options.heads:
        p.error(f"--d-model {options.d_model} is not divisible by --heads {options.heads}")
    return options


def main() -> int:
    options = parse_options()
    try:
        result = measure(options)
    except (OSError, ValueError) as error:
        print(f"pytorch_train_step: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        if not options.compile:
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        print(f"pytorch_train_step: --compile failed, run without it: {reason}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
