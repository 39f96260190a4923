from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import fspath
from typing import Any, TypedDict, Unpack, overload

from . import _core
from ._core import Interrupt
from ._options import ClassifyOptions, Path, Precision, Progress, check_text, plain, reporting
from ._streams import Stream, in_thread, stream_of
from ._text_files import has_form

Text = str | tuple[str, str]  # a tuple: a pair of texts
Texts = Sequence[str] | Sequence[tuple[str, str]]

_PAIR = ("first", "second")


class ClassifierScores(TypedDict):
    """How well a classifier labels texts; the scores are in [0, 1]."""

    accuracy: float
    macro_f1: float
    predictions: list[str]


class RegressionScores(TypedDict):
    """How well a regression gives texts numbers."""

    mean_squared_error: float
    pearson: float
    spearman: float
    predictions: list[float]


@dataclass(frozen=True)
class Prediction:
    """The likeliest label of a text."""

    label: str
    score: float  # its probability, or, of a regression, its value
    scores: dict[str, float]  # of all labels, likeliest first
    cut_tokens: int  # that were cut from the end of a text that was too long


class Classifier:
    """An encoder with labels: text in, labels out.

    `model` is a model folder, Attune's or one of the Hugging Face hub.

    >>> classifier = Classifier(classification_model)
    >>> classifier.classify("a b").label in classifier.labels
    True

    May be used by several threads at once.
    """

    def __init__(self, model: Path, *, precision: Precision = "float32", device: str = "cpu") -> None:
        self._classifier = _core.Classifier(fspath(model), precision, device)
        self._labels = list(self._classifier.labels)

    @property
    def labels(self) -> list[str]:
        return list(self._labels)

    @property
    def max_tokens(self) -> int:
        """The most tokens of a text that are read; of a longer one the beginning is."""
        return self._classifier.max_tokens

    @overload
    def classify(  # type: ignore[overload-overlap]  # a str is a sequence of str
        self,
        texts: Text,
        *,
        progress: Progress = False,
        interrupt: Interrupt | None = None,
        **options: Unpack[ClassifyOptions],
    ) -> Prediction: ...
    @overload
    def classify(
        self,
        texts: Texts,
        *,
        progress: Progress = False,
        interrupt: Interrupt | None = None,
        **options: Unpack[ClassifyOptions],
    ) -> list[Prediction]: ...
    def classify(
        self,
        texts: Text | Texts,
        *,
        progress: Progress = False,
        interrupt: Interrupt | None = None,
        **options: Unpack[ClassifyOptions],
    ) -> Prediction | list[Prediction]:
        """Returns the labels of one text, or of each of a list. A tuple is a pair of texts that are read together: a
        question and an answer. A result does not depend on the other texts. Throws DataError for a list of both kinds,
        ConfigError for options that do not fit, Interrupted after interrupt.set()."""
        alone = isinstance(texts, (str, tuple))
        items: list[Text] = [texts] if isinstance(texts, (str, tuple)) else list(texts)
        for number, item in enumerate(items, 1):
            _check(item, f"text {number}")
        single = [item for item in items if isinstance(item, str)]
        pairs = [_core.TextPair(*item) for item in items if not isinstance(item, str)]
        if single and pairs:
            raise _core.DataError(f"classify: {len(single)} texts and {len(pairs)} pairs, needs one kind")
        with reporting(progress, "classify") as report:
            if pairs:
                found = self._classifier.classify_pairs(pairs, plain(options), report, interrupt)
            else:
                found = self._classifier.classify(single, plain(options), report, interrupt)
        predictions = [self._prediction(one) for one in found]
        return predictions[0] if alone else predictions

    @overload
    async def classify_async(self, texts: Text, **options: Unpack[ClassifyOptions]) -> Prediction: ...  # type: ignore[overload-overlap]
    @overload
    async def classify_async(self, texts: Texts, **options: Unpack[ClassifyOptions]) -> list[Prediction]: ...
    async def classify_async(
        self, texts: Text | Texts, **options: Unpack[ClassifyOptions]
    ) -> Prediction | list[Prediction]:
        """classify() as a coroutine: other tasks run meanwhile. Cancelling the task ends the work."""
        items: Any = [texts] if isinstance(texts, (str, tuple)) else texts
        found: list[Prediction] = await in_thread(lambda end: self.classify(items, interrupt=end, **options))
        return found[0] if isinstance(texts, (str, tuple)) else found

    def classify_iterable(
        self, texts: Iterable[str] | Iterable[tuple[str, str]], **options: Unpack[ClassifyOptions]
    ) -> Stream[Prediction, None]:
        """classify() for more texts, or pairs, than memory holds, in their order: for or async for over the result.
        `texts` is read on another thread, three pieces of 16 * batch_texts ahead at most; a call takes what has arrived.
        Leaving the loop ends the work.

        >>> classifier = Classifier(classification_model)
        >>> sum(1 for _ in classifier.classify_iterable("a b" for _ in range(100)))
        100
        """

        def call(piece: list[Any], interrupt: Interrupt) -> list[Prediction]:
            return self.classify(piece, interrupt=interrupt, **options)

        kinds: set[bool] = set()

        def check(text: Any, number: int) -> None:
            _check(text, f"text {number}")
            kinds.add(isinstance(text, str))
            if len(kinds) > 1:  # whichever call it would be in
                raise _core.DataError(f"text {number}: there are texts and pairs, needs one kind")

        return stream_of(call, texts, 16 * plain(options).get("batch_texts", 64), check)

    @overload
    def evaluate(
        self,
        texts: Texts,
        labels: Sequence[str],
        *,
        progress: Progress = False,
        **options: Unpack[ClassifyOptions],
    ) -> ClassifierScores: ...
    @overload
    def evaluate(
        self,
        texts: Texts,
        labels: Sequence[float],
        *,
        progress: Progress = False,
        **options: Unpack[ClassifyOptions],
    ) -> RegressionScores: ...
    def evaluate(
        self,
        texts: Texts,
        labels: Sequence[str] | Sequence[float],
        *,
        progress: Progress = False,
        **options: Unpack[ClassifyOptions],
    ) -> ClassifierScores | RegressionScores:
        """Accuracy and macro F1 of the predictions for texts with known labels; of a regression, whose labels are
        numbers, mean squared error, Pearson's and Spearman's correlation. Throws DataError where the numbers of texts
        and labels differ, and for a label that the model does not have."""
        items: Any = list(texts)
        known: list[Any] = list(labels)
        if len(items) != len(known):
            raise _core.DataError(f"evaluate: {len(items)} texts but {len(known)} labels")
        if self._classifier.is_regression:
            if len(self._labels) != 1:
                raise _core.DataError(f"evaluate: the model gives a text {len(self._labels)} numbers")
            numbers = [float(label) for label in known]
            scores = [p.score for p in self.classify(items, progress=progress, **options)]
            error, pearson, spearman = _core.regression_scores(scores, numbers)
            return {"mean_squared_error": error, "pearson": pearson, "spearman": spearman, "predictions": scores}
        names = [str(label) for label in known]
        unknown = sorted(set(names) - set(self._labels))
        if unknown:
            raise _core.DataError(f"evaluate: the model has no label {unknown[0]!r}")
        predictions = [p.label for p in self.classify(items, progress=progress, **options)]
        index = {label: i for i, label in enumerate(self._labels)}
        accuracy, macro_f1 = _core.classification_scores(
            [index[p] for p in predictions], [index[label] for label in names], len(self._labels)
        )
        return {"accuracy": accuracy, "macro_f1": macro_f1, "predictions": predictions}

    def _prediction(self, found: _core.Classification) -> Prediction:
        scores = {self._labels[one.label]: one.probability for one in found.labels}
        label, score = next(iter(scores.items()))
        return Prediction(label, score, scores, found.cut_tokens)


def _check(item: Any, place: str) -> None:
    """Throws for what is no text and no pair of texts."""
    if isinstance(item, str) or not has_form(item, _PAIR):
        return check_text(item, place)
    for text, part in zip(item, _PAIR):
        check_text(text, f"{place}, {part}")
