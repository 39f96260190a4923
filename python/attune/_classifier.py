from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack, overload

from . import _core
from ._core import Interrupt
from ._options import ClassifyOptions, Path, Precision, Progress, chunks, plain, reporting
from ._streams import in_thread

Text = str | tuple[str, str]


class ClassifierScores(TypedDict):
    accuracy: float
    macro_f1: float
    predictions: list[str]


class RegressionScores(TypedDict):
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
        self._classifier = _core.Classifier(str(model), precision, device)
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
        texts: Sequence[str] | Sequence[tuple[str, str]],
        *,
        progress: Progress = False,
        interrupt: Interrupt | None = None,
        **options: Unpack[ClassifyOptions],
    ) -> list[Prediction]: ...
    def classify(
        self,
        texts: Text | Sequence[str] | Sequence[tuple[str, str]],
        *,
        progress: Progress = False,
        interrupt: Interrupt | None = None,
        **options: Unpack[ClassifyOptions],
    ) -> Prediction | list[Prediction]:
        """Returns the labels of one text, or of each of a list. A tuple is a pair of texts that are read together: a
        question and an answer. A result does not depend on the other texts."""
        alone = isinstance(texts, (str, tuple))
        items: list[Text] = [texts] if isinstance(texts, (str, tuple)) else list(texts)
        with reporting(progress, "classify") as report:
            if items and isinstance(items[0], tuple):
                pairs = [_core.TextPair(*item) for item in items]
                found = self._classifier.classify_pairs(pairs, plain(options), report, interrupt)
            else:
                found = self._classifier.classify([str(i) for i in items], plain(options), report, interrupt)
        predictions = [self._prediction(one) for one in found]
        return predictions[0] if alone else predictions

    async def classify_async(
        self, texts: Sequence[str] | Sequence[tuple[str, str]], **options: Unpack[ClassifyOptions]
    ) -> list[Prediction]:
        """classify() that other tasks run beside. Cancelling the task ends the work."""
        return await in_thread(lambda end: self.classify(texts, interrupt=end, **options))

    def classify_iterable(self, texts: Iterable[str], **options: Unpack[ClassifyOptions]) -> Iterator[Prediction]:
        """classify() for more texts than memory holds."""
        for batch in chunks(texts, 16 * options.get("batch_texts", 64)):
            yield from self.classify(batch, **options)

    @overload
    def evaluate(
        self,
        texts: Sequence[str],
        labels: Sequence[str],
        *,
        progress: Progress = False,
        **options: Unpack[ClassifyOptions],
    ) -> ClassifierScores: ...
    @overload
    def evaluate(
        self,
        texts: Sequence[str],
        labels: Sequence[float],
        *,
        progress: Progress = False,
        **options: Unpack[ClassifyOptions],
    ) -> RegressionScores: ...
    def evaluate(
        self,
        texts: Sequence[str],
        labels: Sequence[str] | Sequence[float],
        *,
        progress: Progress = False,
        **options: Unpack[ClassifyOptions],
    ) -> ClassifierScores | RegressionScores:
        """Accuracy and macro F1 of the predictions for texts with known labels; of a regression, whose labels are
        numbers, mean squared error, Pearson's and Spearman's correlation. Throws DataError for a label that the model
        does not have."""
        if self._classifier.is_regression:
            if len(self._labels) != 1:
                raise _core.DataError(f"evaluate: the model gives a text {len(self._labels)} numbers")
            numbers = [float(label) for label in labels]
            scores = [p.score for p in self.classify(list(texts), progress=progress, **options)]
            error, pearson, spearman = _core.regression_scores(scores, numbers)
            return {"mean_squared_error": error, "pearson": pearson, "spearman": spearman, "predictions": scores}
        names = [str(label) for label in labels]
        unknown = sorted(set(names) - set(self._labels))
        if unknown:
            raise _core.DataError(f"evaluate: the model has no label {unknown[0]!r}")
        predictions = [p.label for p in self.classify(list(texts), progress=progress, **options)]
        index = {label: i for i, label in enumerate(self._labels)}
        accuracy, macro_f1 = _core.classification_scores(
            [index[p] for p in predictions], [index[label] for label in names], len(self._labels)
        )
        return {"accuracy": accuracy, "macro_f1": macro_f1, "predictions": predictions}

    def _prediction(self, found: _core.Classification) -> Prediction:
        scores = {self._labels[one.label]: one.probability for one in found.labels}
        label, score = next(iter(scores.items()))
        return Prediction(label, score, scores, found.cut_tokens)
