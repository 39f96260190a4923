#!/usr/bin/env python3
"""Fine-tuning an encoder of the Hugging Face hub as a classifier, with PyTorch and transformers.

The same recipe as bench/compare/fine_tune.py gives `attune train`: mean pooling, a new linear head, AdamW, a linear
schedule. Batches are --texts texts in random order, padded to the longest, as most programs have them; with
--batch-tokens they are made by Attune's rule, texts of similar length together. Prints one line of JSON.
"""

import argparse
import random
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer

from pytorch_program import add_program_options, autocast, peak_memory_mb, run_program, set_up

BATCHES_PER_POOL = 64

Example = tuple[list[int], int]


def read(path: Path, tokenizer, longest: int, labels: list[str]) -> list[Example]:
    """Lines of label<TAB>text; a label that is new is added."""
    lines = [line.split("\t", 1) for line in path.read_text(encoding="utf-8").split("\n") if line]
    ids = tokenizer([text for _, text in lines], truncation=True, max_length=longest)["input_ids"]
    for label in sorted({label for label, _ in lines} - set(labels)):
        labels.append(label)
    return [(i, labels.index(label)) for i, (label, _) in zip(ids, lines)]


def batches_of_texts(examples: list[Example], texts: int, shuffle: random.Random) -> list[list[Example]]:
    order = shuffle.sample(examples, len(examples))
    return [order[i : i + texts] for i in range(0, len(order), texts)]


def batches_of_tokens(examples: list[Example], budget: int, shuffle: random.Random) -> list[list[Example]]:
    """Pools in random order, each sorted by length, cut where a batch would have more than `budget` tokens."""
    placed, tokens = [], 0
    for example in shuffle.sample(examples, len(examples)):
        placed.append((tokens // (BATCHES_PER_POOL * budget), example))
        tokens += len(example[0])
    batches, size = [], budget
    for _, example in sorted(placed, key=lambda p: (p[0], len(p[1][0]))):
        size += len(example[0])
        if size > budget:
            batches.append([])
            size = len(example[0])
        batches[-1].append(example)
    shuffle.shuffle(batches)
    return batches


class Classifier(nn.Module):
    def __init__(self, folder: Path, labels: int, dropout: float):
        super().__init__()
        rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
        self.encoder = AutoModel.from_pretrained(folder, add_pooling_layer=False, **rates)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(self.encoder.config.hidden_size, labels)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        hidden = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask[..., None].to(hidden.dtype)
        return self.head(self.dropout((hidden * weights).sum(1) / weights.sum(1)))


def padded(batch: list[Example], pad: int) -> tuple[Tensor, Tensor, Tensor]:
    longest = max(len(ids) for ids, _ in batch)
    ids = torch.tensor([i + [pad] * (longest - len(i)) for i, _ in batch])
    mask = torch.tensor([[1] * len(i) + [0] * (longest - len(i)) for i, _ in batch])
    return ids, mask, torch.tensor([label for _, label in batch])


def accuracy(model: nn.Module, examples: list[Example], pad: int) -> float:
    model.eval()
    right, ordered = 0, sorted(examples, key=lambda e: len(e[0]))
    with torch.inference_mode():
        for i in range(0, len(ordered), 64):
            ids, mask, labels = padded(ordered[i : i + 64], pad)
            right += int((model(ids, mask).argmax(1) == labels).sum())
    return 100 * right / len(examples)


def adamw(model: nn.Module, o: argparse.Namespace) -> torch.optim.AdamW:
    """No weight decay of biases and norms."""
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": o.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=o.learning_rate, betas=(0.9, 0.999), eps=1e-8, fused=True)


def measure(o: argparse.Namespace) -> dict:
    result = set_up(o)
    tokenizer = AutoTokenizer.from_pretrained(o.model)
    labels: list[str] = []
    train = read(o.train, tokenizer, o.max_tokens, labels)
    test = read(o.test, tokenizer, o.max_tokens, labels)
    model = Classifier(o.model, len(labels), o.dropout)
    pad, optimizer, shuffle = tokenizer.pad_token_id, adamw(model, o), random.Random(o.seed)

    def epoch() -> list[list[Example]]:
        if o.batch_tokens:
            return batches_of_tokens(train, o.batch_tokens, shuffle)
        return batches_of_texts(train, o.texts, shuffle)

    start = time.perf_counter()
    batches = [batch for _ in range(o.epochs) for batch in epoch()]
    model.train()
    for number, batch in enumerate(batches, 1):
        rate = min(number / max(1, o.warmup_steps), (len(batches) - number) / max(1, len(batches) - o.warmup_steps))
        for group in optimizer.param_groups:
            group["lr"] = o.learning_rate * rate
        ids, mask, classes = padded(batch, pad)
        with autocast(o):
            loss = nn.functional.cross_entropy(model(ids, mask), classes)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    seconds = time.perf_counter() - start
    return result | {
        "steps": len(batches),
        "seconds": seconds,
        "texts_per_s": o.epochs * len(train) / seconds,
        "peak_memory_mb": peak_memory_mb(),
        "accuracy": accuracy(model, test, pad),
    }


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", type=Path, required=True, help="folder of a BERT")
    p.add_argument("--train", type=Path, required=True, help="label<TAB>text")
    p.add_argument("--test", type=Path, required=True, help="the same")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--texts", type=int, default=32, help="of a batch")
    p.add_argument("--batch-tokens", type=int, default=0, help="batches of so many tokens in place of --texts")
    p.add_argument("--max-tokens", type=int, default=128, help="of a text")
    p.add_argument("--learning-rate", type=float, default=1e-4)
    p.add_argument("--warmup-steps", type=int, default=50)
    p.add_argument("--weight-decay", type=float, default=0.01)
    p.add_argument("--dropout", type=float, default=0.1)
    add_program_options(p)
    return run_program("pytorch_fine_tune.py", p.parse_args(), measure)


if __name__ == "__main__":
    sys.exit(main())
