from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any

from . import _core
from ._core import Interrupt, RunConfig, StartReport, StepReport, TrainingResult, ValidationReport
from ._options import Path
from ._pictures import Curves, training_curves

Example = str | tuple[str, str] | tuple[float, str]
Config = Mapping[str, Mapping[str, Any]]


class Trainer:
    """Trains a model of any architecture and writes the results into a folder, as `attune train` does: checkpoints,
    metrics.jsonl, best/, and in the end model/.

    `config` is a dict of sections with the keys of docs/configuration.md, or the path of a TOML file; `preset` names a
    configuration from the literature to begin with. The training text is what config["data"] names, or `train_data` and
    `valid_data`: any iterables, which are written into files beside the folder (FOLDER.data) one example at a time, so
    that they may be larger than memory. Their examples are

        encoder_decoder       (source, target)
        encoder_classifier    (label, text), or (number, text) for regression: model.label_scores "none"
        the others            text

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
    ) -> None:
        self.folder = FilePath(folder)
        file, sections = ("", config) if isinstance(config, Mapping) else (str(config), {})
        chosen = {name: dict(keys) for name, keys in sections.items()}
        architecture = _core.RunConfig(file, chosen, preset).architecture
        data = chosen.setdefault("data", {})
        for kind, examples in (("train", train_data), ("valid", valid_data)):
            if examples is not None:
                data.update(_write_examples(FilePath(f"{self.folder}.data"), kind, architecture, examples))
        self.config = RunConfig(file, chosen, preset)
        self._interrupt = Interrupt()

    @property
    def model_folder(self) -> FilePath:
        """What a user should use, written at the end."""
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
        `progress` shows a bar of tqdm. Throws ConfigError when the folder has a run and `resume` is False."""
        self._interrupt = Interrupt()
        bar = _Bar() if progress else None
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

    def stop(self) -> None:
        """Ends train() after the step at work, with a checkpoint. May be called by its functions and other threads."""
        self._interrupt.set()

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl."""
        with open(self.folder / "metrics.jsonl", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def curves(self) -> Curves:
        """The losses of the run as a picture, which a notebook shows."""
        return training_curves(self.folder)


class _Bar:
    def __init__(self) -> None:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

        self._bar = tqdm(desc="train", unit="step")
        self._notes: dict[str, str] = {}

    def on_step(self, report: StepReport) -> None:
        self._bar.total = report.total_steps or None
        self._bar.update(report.step - self._bar.n)
        self._notes["loss"] = f"{report.loss:.3f}"
        self._bar.set_postfix(self._notes)

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


def _line(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise _core.DataError(f"an example has a line end: {text[:80]!r}")
    return text + "\n"


def _write_examples(folder: FilePath, kind: str, architecture: str, examples: Iterable[Any]) -> dict[str, Any]:
    """Writes the files of one side; returns the keys of [data] that name them."""
    folder.mkdir(parents=True, exist_ok=True)
    if architecture == "encoder_decoder":
        source, target = folder / f"{kind}.source", folder / f"{kind}.target"
        with open(source, "w", encoding="utf-8") as sources, open(target, "w", encoding="utf-8") as targets:
            for one, other in examples:
                sources.write(_line(one))
                targets.write(_line(other))
        return {f"{kind}_source": [str(source)], f"{kind}_target": [str(target)]}
    if architecture == "encoder_classifier":
        path = folder / f"{kind}.jsonl"
        with open(path, "w", encoding="utf-8") as lines:
            for label, text in examples:
                lines.write(json.dumps({"label": label, "text": text}) + "\n")
        return {f"{kind}_files": [str(path)], "format": "jsonl", "label_field": "label", "text_field": "text"}
    path = folder / f"{kind}.txt"
    with open(path, "w", encoding="utf-8") as lines:
        for text in examples:
            lines.write(text.rstrip("\n") + "\n")
    return {f"{kind}_files": [str(path)]}
