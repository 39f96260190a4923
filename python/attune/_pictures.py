"""Pictures that a notebook shows."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from os import fspath
from pathlib import Path as FilePath
from typing import Any

from . import _core
from ._options import Path


@dataclass(frozen=True)
class AttentionPicture:
    """The attention of every layer and head over a text. `page` is one HTML file without references."""

    page: str

    def _repr_html_(self) -> str:
        content = html.escape(self.page, quote=True)
        return f'<iframe srcdoc="{content}" style="width: 100%; height: 640px; border: 0"></iframe>'

    def save(self, file: Path) -> None:
        FilePath(file).write_text(self.page, encoding="utf-8")


@dataclass(frozen=True)
class Curves:
    """Curves as SVG."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, file: Path) -> None:
        FilePath(file).write_text(self.svg, encoding="utf-8")


def attention(model: Path, text: str, target: str = "") -> AttentionPicture:
    """The heat maps of `attune inspect --attention`: a model folder reads a text. `target` is the translation to look
    at, else the model's own."""
    return AttentionPicture(_core.attention_page(fspath(model), text, target))


def metrics_of(run: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl, the last one left out where a running process has not ended it."""
    with open(FilePath(run) / "metrics.jsonl", "rb") as lines:
        return [json.loads(line) for line in lines if line.endswith(b"\n")]


def training_curves(*runs: Path, values: tuple[str, ...] = ("loss", "valid_loss")) -> Curves:
    """What runs have measured, by step: names of metrics.jsonl. Throws DataError where none has such a value."""
    curves: list[tuple[str, list[tuple[float, float]]]] = []
    for run in runs:
        entries = metrics_of(run)
        for value in values:
            points = [(float(e["step"]), float(e[value])) for e in entries if "step" in e and e.get(value) is not None]
            if points:
                name = value if len(runs) == 1 else f"{FilePath(run).name}: {value}"
                curves.append((name, points))
    if not curves:
        raise _core.DataError(f"training_curves: no run has measured {', '.join(values)}")
    return Curves(_core.draw_curves("Training", "step", [("", curves)]))
