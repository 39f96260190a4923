"""A model folder of Attune as numpy arrays and pieces of text, see docs/file-formats.md."""

import json
import struct
from pathlib import Path

import numpy as np

UNKNOWN = "<unk>"


class NotSupported(ValueError):
    """The other program has nothing that does the same. One line for the user."""


def read_json(path: Path) -> dict:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected an object, found {type(content).__name__}")
    return content


def read_safetensors(path: Path, left_out: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """By name, mapped from the file; what is written to them stays in this process. All are float32 but those that are
    left out, whose names end so."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    numbers = np.memmap(path, dtype=np.uint8, mode="c", offset=8 + length)
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or name.endswith(left_out):
            continue
        if entry["dtype"] != "F32":
            raise NotSupported(f"{path}: {name} is {entry['dtype']}, expected F32")
        begin, end = entry["data_offsets"]
        tensors[name] = numbers[begin:end].view(np.float32).reshape(entry["shape"])
    return tensors


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """A header of JSON behind its length, then the numbers, little-endian."""
    header, offset = {}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [offset, offset + x.nbytes]}
        offset += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for x in tensors.values():
            file.write(x.astype("<f4", copy=False).tobytes())


def vocabulary_file(folder: Path) -> Path:
    """Attune's vocabulary of words, or the hub's tokenizer."""
    own = folder / "vocabulary.json"
    return own if own.is_file() else folder / "tokenizer.json"


class Pieces:
    """Text to pieces of text and back, by a whitespace vocabulary or SentencePiece."""

    def __init__(self, folder: Path, side: str):
        names = [side_of + name for side_of in ("", f"{side}_") for name in ("vocabulary.json", "tokenizer.model")]
        found = [folder / name for name in names if (folder / name).is_file()]
        if len(found) != 1:
            raise ValueError(f"{folder}: expected one tokenizer of the {side}, found {len(found)}")
        self.sentencepiece = None
        if found[0].suffix == ".model":
            from sentencepiece import SentencePieceProcessor

            model = self.sentencepiece = SentencePieceProcessor(model_file=str(found[0]))
            self.pieces = [model.id_to_piece(i) for i in range(model.vocab_size())]
            self.unknown, self.bos, self.eos = model.unk_id(), model.bos_id(), model.eos_id()
        else:
            content = read_json(found[0])
            if content.get("type") != "whitespace":
                raise NotSupported(f"{found[0]}: {content.get('type')} tokenizers are not read here")
            self.pieces, self.marker = content["pieces"], content.get("subword_marker", "")
            self.unknown, self.bos, self.eos = 1, 2, 3
        self.ids = {piece: i for i, piece in enumerate(self.pieces)}

    def encode(self, line: str) -> list[str]:
        """Without eos; a word that is not in the vocabulary is the unknown piece."""
        if self.sentencepiece:
            return [self.pieces[i] for i in self.sentencepiece.encode(line)]
        return [word if word in self.ids else self.pieces[self.unknown] for word in line.split()]

    def decode(self, pieces: list[str]) -> str:
        if self.sentencepiece:
            return self.sentencepiece.decode([self.ids[p] for p in pieces])
        text = " ".join(pieces)
        return (text + " ").replace(f"{self.marker} ", "").rstrip(" ") if self.marker else text


class ModelFolder:
    def __init__(self, path: Path, architecture: str):
        self.path = path
        self.config = read_json(path / "config.json")
        found = self.config.get("architecture")
        if found != architecture:
            raise NotSupported(f"{path}: expected an {architecture}, found {found}")
        # Older files call the weight of a norm "gain".
        self.tensors = {
            f"{name.removesuffix('.gain')}.weight" if name.endswith(".gain") else name: x
            for name, x in read_safetensors(path / "model.safetensors").items()
        }

    def choice(self, name: str) -> tuple[str, dict]:
        """The kind of a choice, and its parameters where it has some."""
        value = self.config[name]
        return (value["kind"], value) if isinstance(value, dict) else (value, {})

    def require(self, name: str, *accepted: object) -> None:
        value = self.config.get(name, accepted[0])
        if value not in accepted:
            raise NotSupported(f"{self.path}: {name} = {value} has no counterpart here")

    def require_plain_attention(self, *names: str) -> None:
        """Multi-head attention to everything, with as many key heads as query heads."""
        for name in names:
            kind, parameters = self.choice(name) if name in self.config else ("multi_head", {})
            if kind != "multi_head":
                raise NotSupported(f"{self.path}: {name} = {kind} has no counterpart here")
            if parameters.get("kv_heads", 0) not in (0, self.config["heads"]):
                raise NotSupported(f"{self.path}: {name}.kv_heads = {parameters['kv_heads']} is not converted")
            pattern = parameters.get("pattern", "full")
            if (pattern["kind"] if isinstance(pattern, dict) else pattern) != "full":
                raise NotSupported(f"{self.path}: {name}.pattern = {pattern} has no counterpart here")

    def first_of(self, *names: str) -> np.ndarray:
        """A shared tensor stands once, under its first name."""
        for name in names:
            if name in self.tensors:
                return self.tensors[name]
        raise ValueError(f"{self.path}: has none of {', '.join(names)}")


def sinusoids(length: int, d_model: int) -> np.ndarray:
    """[length, d_model], sines at even and cosines at odd places: Vaswani et al. 2017, section 3.5."""
    frequency = np.exp(np.arange(0, d_model, 2, dtype=np.float32) * np.float32(-np.log(1e4) / d_model))
    angle = np.arange(length, dtype=np.float32)[:, None] * frequency
    return np.stack([np.sin(angle), np.cos(angle)], axis=2).reshape(length, d_model)
