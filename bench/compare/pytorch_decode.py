#!/usr/bin/env python3
"""Translates a text in PyTorch with the weights of a model folder of Attune, and prints speed and memory as JSON.

A decoder as PyTorch's users write it, at its best: one cache for all layers, reordered by one index_select a step;
beams of a sentence read its encoding as several queries; sentences that are done leave the batch.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from decoding_program import finish, parse_decoding_options, read_lines
from model_folder import ModelFolder, NotSupported, Pieces
from pytorch_program import run_program, set_up
from pytorch_transformer import BOS, EOS, PAD, Attention, Layer, Transformer, pad, rotated

LONGEST = 1024  # positions


def load(folder: Path) -> Transformer:
    """Throws NotSupported for what pytorch_transformer.py does not have."""
    model = ModelFolder(folder, "encoder_decoder")
    model.require_plain_attention("encoder_attention", "decoder_attention", "cross_attention")
    model.require("norm_form", "variance")
    model.require("activation", "relu")
    positions, parameters = model.choice("positions")
    if positions not in ("sinusoidal", "rotary") or parameters.get("scaling", "none") != "none":
        raise NotSupported(f"{folder}: positions = {model.config['positions']} have no counterpart here")
    for name, value in (("base", 10000), ("pairing", "half"), ("dimensions", 0)):
        if parameters.get(name, value) != value:
            raise NotSupported(f"{folder}: positions.{name} = {parameters[name]} has no counterpart here")
    model.require("final_norm", True)
    for name in ("scale_embeddings", "feed_forward_bias", "projection_bias"):
        model.require(name, True)
    for name in ("embedding_norm", "share_layers"):
        model.require(name, False)
    c = model.config
    names = ("d_model", "heads", "layers", "d_ff", "norm")
    options = argparse.Namespace(**{name: c[name] for name in names}, positions=positions, vocab=c["target_vocab"])
    options.dropout = options.attention_dropout = options.activation_dropout = 0
    options.tied = c["share_embeddings"] and c["share_projection"]
    if c["source_vocab"] != c["target_vocab"]:
        raise ValueError(f"{folder}: expected one vocabulary, found two")
    result = Transformer(options, LONGEST).eval()
    for norm in result.modules():
        if isinstance(norm, nn.LayerNorm):
            norm.eps = c["norm_epsilon"]
    fill(result, model)
    return result


@torch.no_grad()
def fill(result: Transformer, model: ModelFolder) -> None:
    def tensor(name: str, *others: str) -> Tensor:
        return torch.from_numpy(np.array(model.first_of(name, *others)))

    def linear(to: nn.Linear, *names: str) -> None:
        to.weight.copy_(torch.cat([tensor(f"{name}.weight") for name in names]))
        to.bias.copy_(torch.cat([tensor(f"{name}.bias") for name in names]))

    def norm(to: nn.Module, name: str) -> None:
        if isinstance(to, nn.LayerNorm):
            to.weight.copy_(tensor(f"{name}.weight"))
            to.bias.copy_(tensor(f"{name}.bias"))

    def attention(to: Attention, name: str) -> None:
        if to.cross:
            linear(to.query, f"{name}.w_q")
            linear(to.key_value, f"{name}.w_k", f"{name}.w_v")
        else:
            linear(to.query_key_value, *(f"{name}.w_{x}" for x in "qkv"))
        linear(to.output, f"{name}.w_o")

    result.source_embedding.weight.copy_(tensor("source_embedding.weight"))
    target = ("target_embedding.weight", "source_embedding.weight")
    result.target_embedding.weight.copy_(tensor(*target))
    result.projection.weight.copy_(tensor("projection.weight", *target))
    result.projection.bias.copy_(tensor("projection.bias"))
    for side in ("encoder", "decoder"):
        norm(getattr(result, f"{side}_norm"), f"{side}.norm")
        for i, layer in enumerate(getattr(result, side)):
            name = f"{side}.layers.{i}"
            attention(layer.self_attention, f"{name}.self_attention")
            if layer.decoder:
                attention(layer.cross_attention, f"{name}.cross_attention")
            for number in (1, 2):
                linear(getattr(layer.feed_forward, f"linear_{number}"), f"{name}.feed_forward.linear_{number}")
            for number, of_layer in enumerate(layer.norms, 1):
                norm(of_layer, f"{name}.residual_{number}.norm")


class Decoder:
    """Of a batch of sentences, `beam` rows each."""

    def __init__(self, model: Transformer, sources: list[list[int]], beam: int, most_tokens: int):
        self.model, self.beam, self.sentences, self.length = model, beam, len(sources), 0
        ids = pad(sources)
        mask = (ids != PAD)[:, None, None, :]
        self.mask = None if mask.all() else mask
        x, places = model.embed(model.source_embedding, ids)
        for layer in model.encoder:
            x = layer(x, None, self.mask, places)
        x = model.encoder_norm(x)
        # [layers, 2, sentences, heads, source length, d_head]
        self.source = torch.stack([a.split(a.key_value(x), 2) for a in (f.cross_attention for f in model.decoder)])
        heads, d_head = self.source.shape[3], self.source.shape[5]
        self.cache = torch.empty(len(model.decoder), 2, self.sentences * beam, heads, most_tokens, d_head)

    def step(self, tokens: Tensor) -> Tensor:
        """int64 [rows] -> logits [rows, vocabulary]"""
        model, at = self.model, self.length
        x = model.target_embedding(tokens)[:, None] * model.scale
        places = model.positions[:, at : at + 1] if model.rotary else None
        if not model.rotary:
            x = x + model.positions[at]
        self.length += 1
        for i, layer in enumerate(model.decoder):
            x = layer.residual(x, layer.norms[0], lambda y: self.self_attention(layer, i, y, places))
            x = layer.residual(x, layer.norms[1], lambda y: self.cross_attention(layer, i, y))
            x = layer.residual(x, layer.norms[2], layer.feed_forward)
        return model.projection(model.decoder_norm(x)[:, 0])

    def self_attention(self, layer: Layer, i: int, x: Tensor, places: Tensor | None) -> Tensor:
        attention = layer.self_attention
        parts = attention.split(attention.query_key_value(x), 3)  # [3, rows, heads, 1, d_head]
        if places is not None:
            parts = torch.cat([rotated(parts[:2], places), parts[2:]])
        self.cache[i, :, :, :, self.length - 1] = parts[1:, :, :, 0]
        keys, values = self.cache[i, :, :, :, : self.length]
        y = F.scaled_dot_product_attention(parts[0], keys, values)
        return attention.output(y.transpose(1, 2).flatten(2))

    def cross_attention(self, layer: Layer, i: int, x: Tensor) -> Tensor:
        attention = layer.cross_attention
        of_sentence = attention.query(x).view(self.sentences, self.beam, -1)
        q = attention.split(of_sentence, 1)[0]  # [sentences, heads, beam, d_head]
        y = F.scaled_dot_product_attention(q, *self.source[i], attn_mask=self.mask)
        return attention.output(y.transpose(1, 2).flatten(2)).view(x.shape)

    def reorder(self, parents: list[int], sentences: list[int]) -> None:
        """Row r goes on from row parents[r]; `sentences` are those that stay."""
        if parents != list(range(self.cache.shape[2])):
            rows = torch.tensor(parents)
            past = self.cache[:, :, :, :, : self.length].index_select(2, rows)
            self.cache = self.cache[:, :, : len(parents)]
            self.cache[:, :, :, :, : self.length] = past
        if len(sentences) < self.sentences:
            rows = torch.tensor(sentences)
            self.source = self.source.index_select(2, rows)
            self.mask = None if self.mask is None else self.mask.index_select(0, rows)
            self.sentences = len(sentences)


def greedy(model: Transformer, sources: list[list[int]], most_tokens: int) -> list[list[int]]:
    decoder = Decoder(model, sources, 1, most_tokens)
    outputs, alive = [[] for _ in sources], list(range(len(sources)))
    tokens = torch.full((len(sources),), BOS)
    while alive:
        logits = decoder.step(tokens)
        logits[:, [PAD, BOS]] = -torch.inf
        tokens = logits.argmax(1)
        found = tokens.tolist()
        stay = []
        for row, token in enumerate(found):
            if token != EOS:
                outputs[alive[row]].append(token)
                if len(outputs[alive[row]]) < most_tokens:
                    stay.append(row)
        if len(stay) < len(alive):
            alive, tokens = [alive[row] for row in stay], tokens[stay]
        if alive:
            decoder.reorder(stay, stay)
    return outputs


class Sentence:
    """What a beam search has of one sentence."""

    def __init__(self, place: int, beam: int, length_penalty: float):
        self.place, self.beam, self.length_penalty = place, beam, length_penalty
        self.live = [[] for _ in range(beam)]
        self.finished: list[tuple[float, list[int]]] = []

    def advance(self, sums: list[float], rows: list[int], tokens: list[int]) -> list[tuple[int, int, float]]:
        """Of the 2 * beam best extensions: (row, token, log probability) of those that live on."""
        chosen = []
        for rank, (total, row, token) in enumerate(zip(sums, rows, tokens)):
            if token == EOS:
                if rank < self.beam:
                    length = len(self.live[row]) + 1
                    self.finished.append((total / length**self.length_penalty, self.live[row]))
            elif len(chosen) < self.beam:
                chosen.append((row, token, total))
        self.live = [self.live[row] + [token] for row, token, _ in chosen]
        return chosen

    def result(self, sums: list[float], cut: bool) -> list[int]:
        """`cut`: at the longest length, where what lives counts as well."""
        if cut:
            of_live = ((s / max(1, len(t)) ** self.length_penalty, t) for s, t in zip(sums, self.live))
            self.finished.extend(of_live)
        return max(self.finished, key=lambda f: f[0])[1]


def beam_search(
    model: Transformer, sources: list[list[int]], beam: int, length_penalty: float, most_tokens: int
) -> list[list[int]]:
    """A search ends when as many outputs as the beam are finished."""
    decoder = Decoder(model, sources, beam, most_tokens)
    outputs, alive = [[] for _ in sources], [Sentence(i, beam, length_penalty) for i in range(len(sources))]
    tokens = torch.full((len(sources) * beam,), BOS)
    sums = torch.full((len(sources), beam), -torch.inf)
    sums[:, 0] = 0
    while alive:
        log_probabilities = F.log_softmax(decoder.step(tokens), 1).view(len(alive), beam, -1)
        log_probabilities[:, :, [PAD, BOS]] = -torch.inf
        best, places = (sums[:, :, None] + log_probabilities).flatten(1).topk(2 * beam)
        vocab = log_probabilities.shape[2]
        best, rows, found = best.tolist(), (places // vocab).tolist(), (places % vocab).tolist()
        stay, chosen = [], []
        for number, sentence in enumerate(alive):
            of_sentence = sentence.advance(best[number], rows[number], found[number])
            cut = decoder.length == most_tokens
            if cut or len(sentence.finished) >= beam:
                outputs[sentence.place] = sentence.result([s for _, _, s in of_sentence], cut)
            else:
                stay.append(number)
                chosen.extend((number * beam + row, token, total) for row, token, total in of_sentence)
        alive = [alive[number] for number in stay]
        if alive:
            decoder.reorder([row for row, _, _ in chosen], stay)
            tokens = torch.tensor([token for _, token, _ in chosen])
            sums = torch.tensor([total for _, _, total in chosen]).view(len(alive), beam)
    return outputs


@torch.inference_mode()
def translate(o: argparse.Namespace, model: Transformer, sources: list[list[int]]) -> list[list[int]]:
    """Longest first, so that those of a batch are of similar length."""
    order = sorted((i for i, s in enumerate(sources) if len(s) > 1), key=lambda i: -len(sources[i]))
    outputs = [[] for _ in sources]
    for begin in range(0, len(order), o.batch_size):
        batch = order[begin : begin + o.batch_size]
        of_batch = [sources[i] for i in batch]
        found = (
            greedy(model, of_batch, o.max_length)
            if o.beam_size == 1
            else beam_search(model, of_batch, o.beam_size, o.length_penalty, o.max_length)
        )
        for i, tokens in zip(batch, found):
            outputs[i] = tokens
    return outputs


def measure(o: argparse.Namespace) -> dict:
    result = set_up(o)
    model, pieces, target = load(o.model), Pieces(o.model, "source"), Pieces(o.model, "target")
    sources = [[pieces.ids[p] for p in pieces.encode(line)] + [EOS] for line in read_lines(o.source)]
    translate(o, model, sources[: o.batch_size])  # so that what happens once has happened
    start = time.perf_counter()
    outputs = translate(o, model, sources)
    seconds = time.perf_counter() - start
    return result | finish(o, target, [[target.pieces[i] for i in tokens] for tokens in outputs], seconds)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.set_defaults(seed=1, compile=False, precision="float32", device="cpu")
    return parse_decoding_options(p)


if __name__ == "__main__":
    sys.exit(run_program("pytorch_decode", parse_options(), measure))
