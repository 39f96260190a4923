from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, TypedDict, Unpack, overload

from . import _core
from ._core import Interrupt, ScoredText, Translation
from ._options import Path, Precision, Progress, TranslateOptions, check_text, names_of_folders, plain, reporting, texts_of
from ._streams import Source, Stream, in_thread

_SENTENCES_AT_ONCE = 256  # that translate_iterable() reads at most: sentences of similar length are translated together


class TranslationScores(TypedDict):
    """How near translations are to references, in percent."""

    bleu: float
    chrf: float
    ter: float
    translations: list[str]


class Translator:
    """An encoder-decoder model with its tokenizers: text in, text out.

    `model` is a model folder, Attune's or one of the Hugging Face hub, or a list of folders that translate together.
    A folder is mapped into memory; one of `attune quantize` loads quickly, and processes share one copy. `adapters` are
    folders in PEFT's format by the names that calls choose one by (adapter="medical"); they lie beside the weights of
    one model, and calls with different ones are decoded together. Throws FileError and ConfigError.

    >>> translator = Translator(translation_model)
    >>> len(translator.translate(["a b", "c d e"], beam_size=2, n_best=2))
    2

    May be used by several threads at once: their calls are decoded together.
    """

    def __init__(
        self,
        model: Path | Sequence[Path],
        *,
        precision: Precision = "float32",
        cache_bytes: int = 0,
        device: str = "cpu",
        adapters: Mapping[str, Path] | None = None,
    ) -> None:
        folders = [fspath(model)] if isinstance(model, (str, PathLike)) else [fspath(folder) for folder in model]
        self._translator = _core.Translator(folders, precision, cache_bytes, device, names_of_folders(adapters))

    @property
    def adapters(self) -> list[str]:
        """The names that calls choose from."""
        return self._translator.adapters

    @property
    def generation(self) -> dict[str, Any]:
        """How outputs are searched for unless a call says otherwise: generation_config.json."""
        return dict(self._translator.generation())

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is a sequence of str
        self,
        text: str,
        *,
        prefix: str | None = None,
        progress: Progress = False,
        interrupt: Interrupt | None = None,
        **options: Unpack[TranslateOptions],
    ) -> Translation: ...
    @overload
    def translate(
        self,
        text: Sequence[str],
        *,
        prefix: Sequence[str] | None = None,
        progress: Progress = False,
        interrupt: Interrupt | None = None,
        **options: Unpack[TranslateOptions],
    ) -> list[Translation]: ...
    def translate(
        self,
        text: str | Sequence[str],
        *,
        prefix: str | Sequence[str] | None = None,
        progress: Progress = False,
        interrupt: Interrupt | None = None,
        **options: Unpack[TranslateOptions],
    ) -> Translation | list[Translation]:
        """Returns the translation of one sentence, or one for each of several. A translation does not depend on the
        others. `prefix` is what translations begin with. `progress` is True for a bar of tqdm, or a function that is
        called with two numbers of sentences: done, and all. Throws DataError naming the sentence that is too long,
        ConfigError for options that do not fit, Interrupted after interrupt.set()."""
        sentences = texts_of(text, "sentence")
        prefixes = texts_of([] if prefix is None else prefix, "prefix")
        with reporting(progress, "translate") as report:
            found = self._translator.translate(sentences, plain(options), prefixes, report, interrupt)
        return found[0] if isinstance(text, str) else found

    @overload
    async def translate_async(self, text: str, **options: Unpack[TranslateOptions]) -> Translation: ...  # type: ignore[overload-overlap]
    @overload
    async def translate_async(self, text: Sequence[str], **options: Unpack[TranslateOptions]) -> list[Translation]: ...
    async def translate_async(
        self, text: str | Sequence[str], **options: Unpack[TranslateOptions]
    ) -> Translation | list[Translation]:
        """translate() as a coroutine: other tasks run meanwhile. Cancelling the task ends the work."""
        sentences = [text] if isinstance(text, str) else list(text)
        found = await in_thread(lambda end: self.translate(sentences, interrupt=end, **options))
        return found[0] if isinstance(text, str) else found

    def translate_iterable(
        self, source: Iterable[str], **options: Unpack[TranslateOptions]
    ) -> Stream[Translation, None]:
        """Translates more sentences than memory holds, in their order: for or async for over the result. `source` is
        read on another thread, some thousand sentences ahead at most; what has arrived is translated. Leaving the loop
        ends the work.

        >>> translator = Translator(translation_model)
        >>> sum(1 for _ in translator.translate_iterable("a b" for _ in range(1000)))
        1000
        """
        translator, choices = self._translator, plain(options)

        def check(sentence: str, number: int) -> None:
            check_text(sentence, f"sentence {number}")

        def run(put: Any, interrupt: Interrupt) -> None:
            def write(translations: list[Translation]) -> None:
                for translation in translations:
                    put(translation)

            with Source(source, _SENTENCES_AT_ONCE, check, interrupt) as sentences:
                translator.translate_stream(sentences.take, write, choices, interrupt)

        return Stream(run, most=4 * _SENTENCES_AT_ONCE)

    def translate_batch(
        self,
        source: Sequence[str],
        target_prefix: Sequence[str] | None = None,
        *,
        beam_size: int | None = None,
        patience: float | None = None,
        num_hypotheses: int = 1,
        length_penalty: float | None = None,
        coverage_penalty: float | None = None,
        repetition_penalty: float | None = None,
        no_repeat_ngram_size: int | None = None,
        max_decoding_length: int | None = None,
        min_decoding_length: int | None = None,
        max_input_length: int | None = None,
        max_batch_size: int | None = None,
    ) -> list[Translation]:
        """translate() with the arguments of ctranslate2.Translator.translate_batch(), for texts in place of tokens.
        Scores are divided by length ** length_penalty where that is given, as there. A sentence of more than
        max_input_length tokens is a DataError, where CTranslate2 cuts it."""
        given: dict[str, Any] = {
            "beam_size": beam_size,
            "n_best": num_hypotheses,
            "length_penalty": length_penalty,
            "length_normalization": None if length_penalty is None else "power",
            "coverage_penalty": coverage_penalty,
            "repetition_penalty": repetition_penalty,
            "no_repeat_ngram_size": no_repeat_ngram_size,
            "max_length": max_decoding_length,
            "min_length": min_decoding_length,
            "max_source_tokens": max_input_length,
            "batch_sentences": max_batch_size,
            "patience": patience,
            "early_stopping": None if patience is None else "patience",
        }
        prefixes = texts_of(target_prefix or [], "target_prefix")
        return self._translator.translate(texts_of(source, "sentence"), plain(given), prefixes)

    def target_tokens(self, text: ScoredText) -> list[str]:
        """The tokens of a translation as people see them: `hypotheses` of CTranslate2's results."""
        return self._translator.target_tokens(text)

    def evaluate(
        self,
        sources: Sequence[str],
        references: Sequence[str] | Sequence[Sequence[str]],
        *,
        progress: Progress = False,
        **options: Unpack[TranslateOptions],
    ) -> TranslationScores:
        """BLEU, chrF2 and TER in percent, as sacreBLEU computes them, of the translations of `sources`. `references` has
        one for each sentence, or is a list of such lists, each with another reference of every sentence. Throws
        DataError where their numbers differ."""
        sources = list(sources)
        alone = isinstance(next(iter(references), ""), str)
        lists: Any = [references] if alone else references
        for one in lists:
            if len(one) != len(sources):
                raise _core.DataError(f"evaluate: {len(sources)} sentences but {len(one)} references")
        found = [t.text for t in self.translate(sources, progress=progress, **options)]
        return {
            "bleu": _core.bleu(found, references),
            "chrf": _core.chrf(found, references),
            "ter": _core.ter(found, references),
            "translations": found,
        }
