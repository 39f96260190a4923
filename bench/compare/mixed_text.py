"""Valid text of every kind, for comparing tokenizers: languages, code, emoji sequences, characters of all blocks."""

import random
import sysconfig
import unicodedata
from pathlib import Path
from typing import Iterator

EMOJI = [c for c in (*range(0x2600, 0x27C0), *range(0x1F300, 0x1FAFF)) if unicodedata.category(chr(c)) != "Cn"]
CHARACTERS = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
ASSIGNED = [c for c in CHARACTERS if unicodedata.category(chr(c)) not in ("Cn", "Co")]
MARKS = [c for c in ASSIGNED if unicodedata.category(chr(c))[0] == "M"]
SPACES = [c for c in range(0x3001) if chr(c).isspace()] + [0x180E, 0x200B, 0x2581, 0xFEFF]
BLOCKS = [ASSIGNED[i : i + 200] for i in range(0, len(ASSIGNED), 200)]
SEPARATORS = ["", "\n", ", ", ". ", "\r\n", "  ", "\t", "\n\n", "   \n ", "-", "/", "_", "'", "'s ", "'LL "]
SPECIAL = ["<s>", "</s>", "<unk>", "[MASK]", "<mask>", "[CLS]", "<|endoftext|>", "<pad>", "<extra_id_3>", "<0x41>"]
CONTRACTIONS = ["don't", "WE'LL", "I'm", "we’re", "they'ſ", "▁x"]


def source_files(folders: list[Path]) -> list[Path]:
    """The files that are named, what folders have, and Python's standard library."""
    files = list(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py"))
    for folder in folders:
        files += [folder] if folder.is_file() else [f for f in folder.rglob("*") if f.is_file()]
    return sorted(files)


def read_texts(files: list[Path]) -> list[str]:
    texts = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        if text and "\0" not in text:
            texts.append(text)
    return texts


def characters(r: random.Random, of: list[int], most: int) -> str:
    return "".join(chr(r.choice(of)) for _ in range(r.randint(1, most)))


def emoji(r: random.Random) -> str:
    one = lambda: chr(r.choice(EMOJI))  # noqa: E731
    kinds = [
        lambda: characters(r, list(range(0x1F1E6, 0x1F200)), 4),  # flags
        lambda: one() + chr(r.randint(0x1F3FB, 0x1F3FF)),  # shades of skin
        lambda: "\u200d".join(one() for _ in range(r.randint(2, 4))),  # families
        lambda: r.choice("0123456789#*") + "\ufe0f\u20e3",  # keys
        lambda: one() + "\ufe0f",
        lambda: "\U0001f3f4" + "".join(chr(0xE0000 + ord(c)) for c in "gbeng") + "\U000e007f",  # tags
        one,
    ]
    return "".join(r.choice(kinds)() for _ in range(r.randint(1, 8)))


def separator(r: random.Random) -> str:
    kind = r.random()
    return " " if kind < 0.6 else r.choice(SEPARATORS) if kind < 0.8 else characters(r, SPACES, 4)


def mixture(r: random.Random, texts: list[str]) -> str:
    """Words of random scripts, emoji, marks, numbers, special tokens, runs, and pieces of the texts."""
    kinds = [
        (45, lambda: characters(r, r.choice(BLOCKS), 10)),
        (10, lambda: emoji(r)),
        (10, lambda: characters(r, ASSIGNED, 6)),
        (5, lambda: r.choice("aeoAEOnсд") + characters(r, MARKS, 5)),
        (5, lambda: str(r.randint(0, 10 ** r.randint(1, 12)))),
        (5, lambda: characters(r, list(range(33, 127)), 12)),
        (2, lambda: chr(r.choice(CHARACTERS))),
        (2, lambda: r.choice("!?.-=*#~/\\<>|") * r.randint(1, 40)),
        (1, lambda: r.choice("ax ") * r.randint(1, 300)),
        (2, lambda: r.choice(SPECIAL + CONTRACTIONS)),
        (13, lambda: piece(r, texts, 80)),
    ]
    weights = [weight for weight, _ in kinds]
    words = r.choices([make for _, make in kinds], weights, k=r.randint(1, 60))
    return "".join(make() + separator(r) for make in words)


def piece(r: random.Random, texts: list[str], length: int) -> str:
    text = r.choice(texts)
    begin = r.randrange(len(text))
    return text[begin : begin + length]


def documents(texts: list[str], total_bytes: int, seed: int) -> Iterator[str]:
    """Documents of 1 byte to some thousand: pieces of the texts, and mixtures, until there are so many bytes."""
    r = random.Random(seed)
    done = 0
    while done < total_bytes:
        text = piece(r, texts, r.choice((200, 1000, 5000))) if r.random() < 0.6 else mixture(r, texts)
        done += len(text.encode())
        yield text
