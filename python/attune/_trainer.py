from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import ceil
from os import fspath
from pathlib import Path as FilePath
from typing import Any

from . import _core
from ._core import Interrupt, RunConfig, StartReport, StepReport, TrainingResult, ValidationReport
from ._options import Path
from ._pictures import Curves, metrics_of, training_curves
from ._text_files import NewTexts, write_examples

Example = str | tuple[str, str] | tuple[float, str] | tuple[str, str, str] | tuple[float, str, str]
Config = Mapping[str, Mapping[str, Any]]

_FILES = ("train_source", "train_target", "valid_source", "valid_target", "train_files", "valid_files")


class Trainer:
    """Trains a model of any architecture and writes the results into a folder, as `attune train` does: checkpoints,
    metrics.jsonl, best/, and in the end model/.

    `config` is a dict of sections with the keys of docs/configuration.md, or the path of a TOML file; `preset` names a
    configuration from the literature to begin with. The training text is what config["data"] names, or `train_data` and
    `valid_data`: any iterables, which are read here and written into files one example at a time, so that they may be
    larger than memory. train() puts the files beside the folder (FOLDER.data). The examples are

        encoder_decoder       (source, target)
        encoder_classifier    (label, text), or (label, text, second text) where the tokenizer has a form for two texts, as
                              those of the hub; a number in the label's place for regression: model.label_scores "none"
        decoder_lm            text, or (prompt, answer), of which the answer is learned
        the others            text

    data.text_unit says what a text is. "stream", the default of decoder_lm: the texts are one, each on lines of its own,
    and the model does not see where one ends. "line", the default of the others: each is a document of one line.
    "paragraph": each is a document that may have several lines, none of them empty.

    `automatic`: what `config` and `preset` leave open is chosen from the amount of text, as `attune train --source` (or
    --labelled, --text) does; `choices` then has (key, value, reason) of it, and the text is read once to count it. The
    text is of model.architecture, and `config` is a dict. Throws ConfigError naming the key, and DataError for an
    example of another form, or with a line end that would make two of it.

    >>> trainer = Trainer(
    ...     {"model": {"architecture": "decoder_lm", "d_model": 16, "heads": 2, "layers": 1, "d_ff": 32},
    ...      "data": {"tokenizer_type": "characters", "text_unit": "line"},
    ...      "train": {"steps": 2, "batch_tokens": 64}},
    ...     folder / "run",
    ...     train_data=["a b c", "b c d"],
    ... )
    >>> trainer.train().step
    2
    >>> generator = TextGenerator(trainer.model_folder)
    """

    def __init__(
        self,
        config: Config | Path,
        folder: Path,
        *,
        preset: str = "",
        train_data: Iterable[Example] | None = None,
        valid_data: Iterable[Example] | None = None,
        automatic: bool = False,
    ) -> None:
        self.folder = FilePath(folder)
        file, sections = ("", config) if isinstance(config, Mapping) else (fspath(config), {})
        if automatic and file:
            raise _core.ConfigError(f"{file}: with automatic, config is a dict of sections")
        chosen = {name: dict(keys) for name, keys in sections.items()}
        begun = RunConfig(file, chosen, preset)
        self.choices: list[tuple[str, Any, str]] = []
        self._texts: NewTexts | None = None  # until train() puts them into their place
        written: dict[str, Any] = {}
        try:
            if train_data is not None or valid_data is not None:
                self._texts = NewTexts(FilePath(f"{self.folder}.data"))
                written = _write(self._texts.folder, begun, train_data, valid_data)
            if automatic:
                begun, self.choices = _chosen_for_text(chosen, preset, written)
                file, chosen, preset = "", begun.to_dict(), ""
            if self._texts is not None:
                place_of = self._texts.place_of
                places = {key: [place_of(one) for one in files] for key, files in written.items() if key in _FILES}
                chosen["data"] = chosen.get("data", {}) | written | places
                begun = RunConfig(file, chosen, preset)
        except BaseException:
            if self._texts is not None:
                self._texts.remove()
            raise
        self.config = begun
        self._interrupt = Interrupt()

    @property
    def model_folder(self) -> FilePath:
        """The folder of the finished model, which is written at the end."""
        return self.folder / "model"

    def train(
        self,
        *,
        resume: bool = False,
        progress: bool = False,
        on_start: Callable[[StartReport], object] | None = None,
        on_step: Callable[[StepReport], object] | None = None,
        on_validation: Callable[[ValidationReport], object] | None = None,
        on_checkpoint: Callable[[FilePath], object] | None = None,
        on_message: Callable[[str], object] | None = None,
    ) -> TrainingResult:
        """Trains until one of the limits. `resume` goes on from the newest checkpoint, bit for bit. The functions are
        called as the run goes on; what they raise ends it, and stop() ends it with a checkpoint, as Ctrl-C does.
        `progress` shows a bar of tqdm, whose total is an estimate where epochs or max_minutes end the run. Throws
        ConfigError when the folder has a run and `resume` is False, or `resume` is True and the run has another text, or
        FOLDER.data a file that no run has written."""
        self._interrupt = Interrupt()
        self._put_texts(resume)
        bar = _Bar(self.config.to_dict()["train"].get("max_minutes", 0)) if progress else None
        try:
            return _core.train(
                self.config,
                self.folder,
                resume,
                on_start=on_start,
                on_step=_both(bar.on_step if bar else None, on_step),
                on_validation=_both(bar.on_validation if bar else None, on_validation),
                on_checkpoint=on_checkpoint,
                on_message=on_message,
                interrupt=self._interrupt,
            )
        finally:
            if bar is not None:
                bar.close()

    def _put_texts(self, resume: bool) -> None:
        has_run = any(self.folder.glob("checkpoints/step-*.safetensors"))
        if has_run and not resume:
            message = "has checkpoints of an earlier run: use train(resume=True) to go on, or another folder"
            raise _core.ConfigError(f"{self.folder}: {message}")
        if self._texts is not None:
            self._texts.put(resume=has_run)
            self._texts = None

    def stop(self) -> None:
        """Ends train() after the step at work, with a checkpoint. May be called by its functions and other threads."""
        self._interrupt.set()

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl, without one that is not whole yet."""
        return metrics_of(self.folder)

    def curves(self) -> Curves:
        """The losses of the run as a picture, which a notebook shows."""
        return training_curves(self.folder)


def _write(
    folder: FilePath, config: RunConfig, train_data: Iterable[Example] | None, valid_data: Iterable[Example] | None
) -> dict[str, Any]:
    """Writes the iterables into files of the folder; returns the keys of [data] that name and describe them."""
    text_unit = config.to_dict()["data"].get("text_unit", "stream")
    written: dict[str, Any] = {}
    for kind, examples in (("train", train_data), ("valid", valid_data)):
        if examples is not None:
            written |= write_examples(folder, kind, config.architecture, text_unit, examples)
    return written


def _chosen_for_text(
    sections: dict[str, dict[str, Any]], preset: str, written: dict[str, Any]
) -> tuple[RunConfig, list[tuple[str, Any, str]]]:
    architecture = RunConfig("", sections, preset).architecture
    data = sections.get("data", {})
    files = {key: data.pop(key) for key in _FILES if key in data}
    text = {"model": {"architecture": architecture}, "data": files | written}
    return RunConfig.automatic(text, sections, preset)


class _Bar:
    def __init__(self, max_minutes: float) -> None:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

        self._bar = tqdm(desc="train", unit="step")
        self._most_seconds = 60 * max_minutes  # 0: no limit
        self._notes: dict[str, str] = {}

    def on_step(self, report: StepReport) -> None:
        self._bar.total = self._total(report)
        if self._bar.n == 0 and report.step > 1:  # resumed: the rate is of what this process does
            self._bar.n = self._bar.initial = report.step - 1
        self._bar.update(report.step - self._bar.n)
        self._notes["loss"] = f"{report.loss:.3f}"
        self._bar.set_postfix(self._notes)

    def _total(self, report: StepReport) -> int | None:
        """The steps of the whole run: those that fit in its time, where that ends it earlier."""
        total = report.total_steps or None
        if self._most_seconds == 0 or report.seconds == 0:
            return total
        in_time = max(report.step, ceil(report.step * self._most_seconds / report.seconds))
        return min(total or in_time, in_time)

    def on_validation(self, report: ValidationReport) -> None:
        self._notes["valid_loss"] = f"{report.loss:.3f}"

    def close(self) -> None:
        self._bar.close()


def _both(
    first: Callable[[Any], object] | None, second: Callable[[Any], object] | None
) -> Callable[[Any], object] | None:
    if first is None or second is None:
        return first or second

    def call(report: Any) -> None:
        first(report)
        second(report)

    return call
