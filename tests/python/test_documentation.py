"""Every example in a docstring runs, and so does every Python block of the documents."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import attune

ROOT = Path(__file__).parent.parent.parent
MODULES = ["_translator", "_text_generator", "_classifier", "_embedder", "_trainer", "_pipeline", "_core"]


def names(hub: Path, tmp_path: Path) -> dict[str, Any]:
    """What examples may use beside the package."""
    return vars(attune) | {
        "attune": attune,
        "folder": tmp_path,
        "translation_model": hub / "marian",
        "language_model": hub / "gpt2",
        "classification_model": hub / "bert-classifier",
        "embedding_model": hub / "bert-classifier",
    }


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module: str, hub: Path, tmp_path: Path) -> None:
    found = importlib.import_module(f"attune.{module}")
    result = doctest.testmod(found, extraglobs=names(hub, tmp_path))
    assert result.failed == 0 and (result.attempted > 0 or module == "_core")


def test_docstrings_of_bindings(hub: Path, tmp_path: Path) -> None:
    runner = doctest.DocTestRunner()
    finder = doctest.DocTestFinder(exclude_empty=True)
    for cls in (attune.Tensor, attune.Model, attune.Adam, attune.Tokenizer):
        for test in finder.find(cls, cls.__name__, module=False, globs=names(hub, tmp_path)):
            assert runner.run(test).failed == 0


@pytest.mark.parametrize("document", ["README.md", "docs/python.md", "docs/start-python.md"])
def test_documents(document: str, hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks run one after another in one namespace, in a folder with the models that they name."""
    models = {"runs/mine/model": "marian", "runs/demo/model": "marian", "en-de": "marian"}
    models |= {"writer": "gpt2", "runs/writer/model": "gpt2", "runs/topics/model": "bert-classifier"}
    for name, model in (models | {"topics": "bert-classifier", "minilm": "bert-classifier"}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(hub / model)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, document, "exec"), namespace)
