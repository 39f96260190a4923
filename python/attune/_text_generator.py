from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypedDict, Unpack, overload

from . import _core
from ._core import GeneratedText, Interrupt
from ._options import GenerateOptions, Path, Precision, Progress, check_text, names_of_folders, plain, reporting, texts_of
from ._streams import Stream, in_thread, stream_of
from ._text_files import as_written, checked


class GenerationStep(NamedTuple):
    """A token that was drawn."""

    step: int  # from 0
    token_id: int
    token: str  # as people see it


class PredictionScores(TypedDict):
    """How well a language model predicts a text."""

    nll: float  # negative log likelihood, nats a token
    perplexity: float  # exp(nll)
    bits_per_byte: float  # of the text, comparable between vocabularies
    accuracy: float  # share of tokens that are the likeliest
    tokens: int  # that are predicted
    documents: int


class TextGenerator:
    """A language model with its tokenizer: text that continues a prompt.

    `model` is a model folder, Attune's or one of the Hugging Face hub. `adapters` are folders in PEFT's format by the
    names that calls choose one by (adapter="legal"); they lie beside the weights of one model, and calls with different
    ones are decoded together. Throws FileError and ConfigError.

    >>> generator = TextGenerator(language_model)
    >>> generator.generate("a b", max_tokens=4, seed=7).finish_reason in ("eos", "length")
    True
    >>> "".join(generator.stream("a b", max_tokens=4, seed=7)) == generator.generate("a b", max_tokens=4, seed=7).text
    True

    May be used by several threads at once: their calls are decoded together.
    """

    def __init__(
        self,
        model: Path,
        *,
        precision: Precision = "float32",
        cache_bytes: int = 0,
        device: str = "cpu",
        adapters: Mapping[str, Path] | None = None,
    ) -> None:
        self._folder = fspath(model)
        self._precision = precision
        self._device = device
        self._generator = _core.TextGenerator(self._folder, precision, cache_bytes, device, names_of_folders(adapters))
        self._template: _core.ChatTemplate | None = None

    @property
    def adapters(self) -> list[str]:
        """The names that calls choose from."""
        return self._generator.adapters

    @property
    def sampling(self) -> dict[str, Any]:
        """How texts are drawn unless a call says otherwise."""
        return dict(self._generator.sampling())

    @overload
    def generate(  # type: ignore[overload-overlap]  # a str is a sequence of str
        self,
        prompt: str,
        *,
        draft: TextGenerator | None = None,
        interrupt: Interrupt | None = None,
        progress: Progress = False,
        **options: Unpack[GenerateOptions],
    ) -> GeneratedText: ...
    @overload
    def generate(
        self,
        prompt: Sequence[str],
        *,
        draft: TextGenerator | None = None,
        interrupt: Interrupt | None = None,
        progress: Progress = False,
        **options: Unpack[GenerateOptions],
    ) -> list[GeneratedText]: ...
    def generate(
        self,
        prompt: str | Sequence[str],
        *,
        draft: TextGenerator | None = None,
        interrupt: Interrupt | None = None,
        progress: Progress = False,
        **options: Unpack[GenerateOptions],
    ) -> GeneratedText | list[GeneratedText]:
        """Returns the continuation of one prompt, or `samples` of each of several, those of one prompt together. A text
        does not depend on the others. `draft` is a smaller model with the same vocabulary that proposes tokens; the
        texts have the same distribution. interrupt.set() ends the call, which returns what there is. `progress` counts
        tokens, of at most max_tokens for each text. Throws DataError naming the prompt that is too long."""
        prompts, given = texts_of(prompt, "prompt"), plain(options)
        draft_generator = None if draft is None else draft._generator
        with reporting(progress, "generate") as report:
            on_token = None
            if report is not None:
                settings = {**self.sampling, **given}
                longest = settings["max_tokens"] or settings["max_length"]
                total = len(prompts) * given.get("samples", 1) * longest
                done = 0

                def on_token(index: int, token: int) -> None:
                    nonlocal done
                    done += 1
                    report(done, total)

            found = self._generator.generate(prompts, given, None, on_token, draft_generator, interrupt)
        return found[0] if isinstance(prompt, str) and given.get("samples", 1) == 1 else found

    @overload
    async def generate_async(self, prompt: str, **options: Unpack[GenerateOptions]) -> GeneratedText: ...  # type: ignore[overload-overlap]
    @overload
    async def generate_async(
        self, prompt: Sequence[str], **options: Unpack[GenerateOptions]
    ) -> list[GeneratedText]: ...
    async def generate_async(
        self, prompt: str | Sequence[str], **options: Unpack[GenerateOptions]
    ) -> GeneratedText | list[GeneratedText]:
        """generate() as a coroutine: other tasks run meanwhile. Cancelling the task ends the work."""
        prompts = [prompt] if isinstance(prompt, str) else list(prompt)
        found = await in_thread(lambda end: self.generate(prompts, interrupt=end, **options))
        return found[0] if isinstance(prompt, str) and plain(options).get("samples", 1) == 1 else found

    def stream(self, prompt: str, **options: Unpack[GenerateOptions]) -> Stream[str, GeneratedText]:
        """The continuation of a prompt as it grows: `for text in generator.stream(...)`, or `async for`. Each text is
        what was added, whole characters; all together are the continuation. Leaving the loop ends the work. `result` of
        what this returns is the GeneratedText in the end."""
        check_text(prompt, "prompt")
        generator, choices = self._generator, plain(options)

        def run(put: Any, interrupt: Interrupt) -> GeneratedText:
            return generator.generate([prompt], choices, lambda index, added: put(added), None, None, interrupt)[0]

        return Stream(run)

    def generate_tokens(
        self,
        prompt: str,
        *,
        max_length: int | None = None,
        min_length: int | None = None,
        sampling_topk: int | None = None,
        sampling_topp: float | None = None,
        sampling_temperature: float | None = None,
        repetition_penalty: float | None = None,
        no_repeat_ngram_size: int | None = None,
    ) -> Stream[GenerationStep, GeneratedText]:
        """The tokens of a continuation as they are drawn, with the arguments of
        ctranslate2.Generator.generate_tokens(), for a text in place of tokens."""
        given: dict[str, Any] = {
            "max_tokens": max_length,
            "min_tokens": min_length,
            "top_k": sampling_topk,
            "top_p": sampling_topp,
            "temperature": sampling_temperature,
            "repetition_penalty": repetition_penalty,
            "no_repeat_ngram_size": no_repeat_ngram_size,
        }
        check_text(prompt, "prompt")
        generator, options = self._generator, plain(given)

        def run(put: Any, interrupt: Interrupt) -> GeneratedText:
            steps = 0

            def on_token(index: int, token: int) -> None:
                nonlocal steps
                put(GenerationStep(steps, token, generator.piece(token)))
                steps += 1

            return generator.generate([prompt], options, None, on_token, None, interrupt)[0]

        return Stream(run)

    def generate_iterable(
        self, prompts: Iterable[str], **options: Unpack[GenerateOptions]
    ) -> Stream[GeneratedText, None]:
        """generate() for more prompts than memory holds, in their order: for or async for over the result. `prompts` is
        read on another thread, three pieces of 8 * batch_texts ahead at most; a call takes what has arrived. Leaving the
        loop ends the work.

        >>> generator = TextGenerator(language_model)
        >>> sum(1 for _ in generator.generate_iterable(("a b" for _ in range(3)), max_tokens=2))
        3
        """

        def call(piece: list[str], interrupt: Interrupt) -> list[GeneratedText]:
            return self.generate(piece, interrupt=interrupt, **options)

        def check(prompt: str, number: int) -> None:
            check_text(prompt, f"prompt {number}")

        return stream_of(call, prompts, 8 * plain(options).get("batch_texts", 32), check)

    def evaluate(
        self,
        text: str | Sequence[str] | Sequence[tuple[str, str]] | PathLike[str],
        *,
        stride: int = 0,
        interrupt: Interrupt | None = None,
    ) -> PredictionScores:
        """How well the model, without an adapter, predicts a text, as `attune evaluate --data` measures it.

        `text` is a file (a pathlib.Path), plain or gzip, that is read as the model's training text was (data.text_unit),
        or what would stand in such a file: one text, or the lines, paragraphs or (prompt, answer) of one. The model
        reads it in windows of its context that advance by `stride` tokens; 0: by the context. Throws DataError for a
        text without tokens to predict, and for one of several that would be read as two (see Trainer); ConfigError for
        a stride out of range; Interrupted after interrupt.set().

        >>> generator = TextGenerator(language_model)
        >>> scores = generator.evaluate(["a b c", "b c d"])
        >>> scores["perplexity"] > 1
        True
        """
        if isinstance(text, PathLike):
            return self._evaluate_file(FilePath(text), stride, interrupt)
        if isinstance(text, str):
            check_text(text, "text")
        with TemporaryDirectory() as folder:
            file = FilePath(folder) / "text"
            with open(file, "w", encoding="utf-8", newline="") as written:
                if isinstance(text, str):
                    written.write(text)
                else:
                    written.writelines(as_written(one, self._generator.text_unit) for one in checked(text))
            return self._evaluate_file(file, stride, interrupt)

    def _evaluate_file(self, file: FilePath, stride: int, interrupt: Interrupt | None) -> PredictionScores:
        scores = _core.evaluate_language_model(
            self._folder, file, stride, self._precision, self._device, interrupt
        )
        return {
            "nll": scores.nll,
            "perplexity": scores.perplexity,
            "bits_per_byte": scores.bits_per_byte,
            "accuracy": scores.accuracy,
            "tokens": scores.tokens,
            "documents": scores.documents,
        }

    def apply_chat_template(
        self, messages: list[dict[str, Any]], *, add_generation_prompt: bool = True, **variables: Any
    ) -> str:
        """Writes a conversation as the model reads it, with the template of its folder: a prompt for generate() with
        prompts_have_special_tokens=True, since the template writes bos and the like itself. `messages` are dicts with
        "role" and "content"; `variables` are what the template uses beside them. Throws ConfigError for a folder
        without a template."""
        if self._template is None:
            self._template = _core.ChatTemplate.load(self._folder)
        if self._template is None:
            raise _core.ConfigError(f"{self._folder}: has no chat template")
        return self._template.render(messages, variables, add_generation_prompt)

    def encode_prompt(self, prompt: str, *, has_special_tokens: bool = False) -> list[int]:
        """The ids that the model reads of a prompt. `has_special_tokens`: the prompt has them already, as one of
        apply_chat_template()."""
        return self._generator.encode_prompt(prompt, has_special_tokens)
