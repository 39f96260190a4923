"""Texts and examples as they stand in files of training text."""

from __future__ import annotations

import filecmp
import json
import re
import shutil
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from itertools import chain, islice
from pathlib import Path as FilePath
from typing import Any

from . import _core
from ._options import check_text

_PAIR = ("source", "target")
_PROMPT = ("prompt", "answer")
_LABELLED = ("label", "text")
_LABELLED_PAIR = ("label", "text", "second_text")
_EMPTY_LINE = re.compile(r"\n[ \t\r]*\n")
_LIST = "written.json"  # in a folder of texts: the names of the files that a run has put there


def checked(examples: Iterable[Any]) -> Iterator[Any]:
    """The examples. Throws DataError for one with a text that has no UTF-8, with its number."""
    for number, example in enumerate(examples, 1):
        parts = example if isinstance(example, Collection) and not isinstance(example, str) else (example,)
        for part in parts:
            if isinstance(part, str):
                check_text(part, f"example {number}")
        yield example


def as_written(text: str | tuple[str, str], text_unit: str) -> str:
    """One of several texts as a model of this data.text_unit reads it in a file: a (prompt, answer) where that is
    "answer". Line ends at its end do not count. Throws DataError for another kind, and for a text that the model would
    read as several: one of several lines where the unit is "line", one with an empty line where it is "paragraph"."""
    if text_unit == "answer":
        return _json_line(text, _PROMPT)
    if not isinstance(text, str):
        raise _core.DataError(f"{_shown(text)}: a text was expected, as text_unit is {text_unit!r}")
    text = text.rstrip("\n")
    if text_unit == "line" and "\n" in text:
        message = "a text of one line was expected, as text_unit is 'line'; 'paragraph' takes texts of several"
        raise _core.DataError(f"{_shown(text)}: {message}")
    if text_unit == "paragraph" and _EMPTY_LINE.search(text.strip()):
        raise _core.DataError(f"{_shown(text)}: a text without empty lines was expected, as text_unit is 'paragraph'")
    return text + ("\n\n" if text_unit == "paragraph" else "\n")


def write_examples(
    folder: FilePath, kind: str, architecture: str, text_unit: str, examples: Iterable[Any]
) -> dict[str, Any]:
    """Writes the files of training (`kind` "train") or validation ("valid"). Returns the keys of [data] that name and
    describe them. Throws DataError for an example of another form, and for a text that has no UTF-8."""
    examples = checked(examples)
    if architecture == "encoder_decoder":
        source, target = folder / f"{kind}.source", folder / f"{kind}.target"
        with _to_write(source) as sources, _to_write(target) as targets:
            for example in examples:
                one, other = _parts(example, _PAIR)
                sources.write(_line(one))
                targets.write(_line(other))
        return {f"{kind}_source": [str(source)], f"{kind}_target": [str(target)]}
    first = list(islice(examples, 1))
    examples = chain(first, examples)
    if architecture == "encoder_classifier":
        is_pair = any(has_form(one, _LABELLED_PAIR) for one in first)
        form = _LABELLED_PAIR if is_pair else _LABELLED
        path = folder / f"{kind}.jsonl"
        with _to_write(path) as lines:
            lines.writelines(_json_line(example, form) for example in examples)
        keys = {f"{kind}_files": [str(path)], "format": "jsonl", "label_field": "label", "text_field": "text"}
        return keys | ({"second_text_field": "second_text"} if is_pair else {})
    answers = any(not isinstance(one, str) for one in first)
    path = folder / (f"{kind}.jsonl" if answers else f"{kind}.txt")
    with _to_write(path) as lines:
        lines.writelines(as_written(example, "answer" if answers else text_unit) for example in examples)
    return {f"{kind}_files": [str(path)]} | ({"text_unit": "answer"} if answers else {})


class NewTexts:
    """Files for a folder of texts, in a temporary folder beside it, which is removed with this. What a killed process
    left there is removed by the next one with the same folder of texts."""

    def __init__(self, folder: FilePath) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._place = folder
        self._temporary = _core.TemporaryFolder(folder.absolute())  # which is locked as long as this lives
        self.folder = self._temporary.path
        self.remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def place_of(self, file: str) -> str:
        """Where a file of `folder` will be."""
        return str(self._place / FilePath(file).name)

    def put(self, resume: bool) -> None:
        """Moves the files into their place. A file that is there stays if it is the same, and is replaced if a run has
        put it there. Throws ConfigError for any other file, and with `resume` for another text to train on; nothing has
        been moved then."""
        own = set(json.loads((self._place / _LIST).read_text())) if (self._place / _LIST).is_file() else set()
        new = [file for file in sorted(self.folder.iterdir()) if not _is_same(file, self._place / file.name)]
        for file in new:
            place = self._place / file.name
            if not place.exists():
                continue
            if resume and file.name.startswith("train."):
                raise _core.ConfigError(f"{place}: has the text of the run to be resumed, and train_data is another one")
            if file.name not in own:
                raise _core.ConfigError(f"{place}: no run has written it, and this one would replace it: move it away")
        if new:
            self._place.mkdir(exist_ok=True)
            names = self.folder / _LIST
            names.write_text(json.dumps(sorted(own | {file.name for file in new})))
            for file in [names, *new]:
                shutil.move(file, self._place / file.name)
        self.remove()


def _is_same(file: FilePath, other: FilePath) -> bool:
    return other.is_file() and filecmp.cmp(file, other, shallow=False)


def _to_write(path: FilePath) -> Any:
    return open(path, "w", encoding="utf-8", newline="")


def has_form(example: Any, form: tuple[str, ...]) -> bool:
    """Whether `example` has an order and as many parts as `form`. A dict, a set or a string is refused."""
    if isinstance(example, (str, bytes, Mapping, Set)) or not isinstance(example, Collection):
        return False
    return len(example) == len(form)


def _parts(example: Any, form: tuple[str, ...]) -> list[Any]:
    if not has_form(example, form):
        raise _core.DataError(f"{_shown(example)}: an example ({', '.join(form)}) was expected")
    return list(example)


def _line(text: Any) -> str:
    if not isinstance(text, str):
        raise _core.DataError(f"{_shown(text)}: a text was expected")
    if "\n" in text or "\r" in text:
        raise _core.DataError(f"an example has a line end: {_shown(text)}")
    return text + "\n"


def _json_line(example: Any, form: tuple[str, ...]) -> str:
    parts = dict(zip(form, _parts(example, form)))
    try:
        return json.dumps(parts, allow_nan=False) + "\n"
    except ValueError:
        raise _core.DataError(f"{_shown(example)}: a number that is finite was expected") from None


def _shown(example: Any) -> str:
    return repr(example)[:80]
