"""Every example in a docstring runs, and so does every Python block of the documents."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

import attune

ROOT = Path(__file__).parent.parent.parent
PUBLIC = {name: getattr(attune, name) for name in attune.__all__ if name not in ("__version__", "ops")}
PUBLIC |= {f"ops.{name}": getattr(attune.ops, name) for name in attune.ops.__all__}
# What a program makes itself. The rest are results, reports, options and errors.
WITH_EXAMPLES = {"Adam", "Classifier", "Embedder", "Interrupt", "Model", "RunConfig", "Stream", "Tensor"}
WITH_EXAMPLES |= {"TextGenerator", "Tokenizer", "Trainer", "Translator", "bleu", "pipeline", "ter"}
WITH_EXAMPLES |= {f"ops.{name}" for name in ("cross_entropy", "embedding", "linear", "matmul", "record", "softmax")}


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


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings(name: str, hub: Path, tmp_path: Path) -> None:
    runner = doctest.DocTestRunner()
    assert (PUBLIC[name].__doc__ or "").strip()
    for test in doctest.DocTestFinder().find(PUBLIC[name], name, module=False, globs=names(hub, tmp_path)):
        runner.run(test)
    assert runner.failures == 0 and (runner.tries > 0 or name not in WITH_EXAMPLES)


@pytest.mark.parametrize("name", attune.ops.__all__)
def test_operations_say_their_shapes(name: str) -> None:
    assert re.search(r"\[|shape", getattr(attune.ops, name).__doc__.split("\n\n", 1)[1])


@pytest.mark.parametrize("document", ["README.md", "docs/python.md", "docs/start-python.md"])
def test_documents(document: str, hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks run one after another in one namespace, in a folder with the models that they name."""
    models = {"runs/mine/model": "marian", "runs/demo/model": "marian", "en-de": "marian"}
    models |= {"writer": "gpt2", "runs/writer/model": "gpt2", "runs/topics/model": "bert-classifier"}
    for name, model in (models | {"topics": "bert-classifier", "minilm": "bert-classifier"}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(hub / model)
    (tmp_path / "runs/legal/model").mkdir(parents=True)
    (tmp_path / "runs/legal/model/adapter").symlink_to(hub.parent / "adapters" / "gpt2")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, document, "exec"), namespace)
