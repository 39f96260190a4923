"""The options of calls: the same names and meanings as in docs/configuration.md and on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any, Literal, TypedDict, Union

from . import _core

Path = Union[str, "PathLike[str]"]
Precision = Literal["float32", "bfloat16", "auto"]
Progress = Union[bool, Callable[[int, int], object]]


class CallOptions(TypedDict, total=False):
    """What every call that decodes takes."""

    adapter: str  # one of `adapters` of the model; "": the model as it is
    threads: int  # that the call works with; 0: as many as thread_count()
    timeout_seconds: float  # the call ends after so long, with what it has; 0: no limit


class TranslateOptions(CallOptions, total=False):
    """What is not given is as the model's folder says."""

    beam_size: int
    length_penalty: float
    length_normalization: Literal["wu", "power"]
    max_length: int
    max_length_ratio: float
    max_length_offset: int
    coverage_penalty: float
    early_stopping: Literal["bound", "first", "patience", "heuristic"]
    patience: float
    beam_groups: int
    diversity_penalty: float
    min_length: int
    no_repeat_ngram_size: int
    repetition_penalty: float
    penalize_log_probabilities: bool
    renormalize_logits: bool
    rank_unfinished: bool
    start_token: int
    eos_tokens: list[int]
    forced_first_token: int
    forced_last_token: int
    suppressed_tokens: list[int]
    suppressed_at_begin: list[int]
    suppressed_phrases: list[list[int]]
    special_tokens: bool
    n_best: int  # translations of each sentence, at most beam_size
    alignments: bool  # fills Translation.alignment
    required: list[str]  # phrases that each translation has
    banned: list[str]  # phrases that no translation has
    source_language: str  # of models of many languages
    target_language: str
    max_source_tokens: int  # a longer sentence is a DataError
    batch_sentences: int  # at once, of each thread; from 2 to 15: of all threads together
    batch_tokens: int


class GenerateOptions(CallOptions, total=False):
    """What is not given is as the model's folder says."""

    repetition_penalty: float
    temperature: float  # 0: the likeliest token, always
    top_k: int
    top_p: float
    min_p: float
    max_tokens: int  # of a continuation
    max_length: int  # with max_tokens = 0: of a prompt and its continuation
    min_tokens: int
    no_repeat_ngram_size: int
    seed: int
    slide: bool
    eos_tokens: list[int]
    suppressed_tokens: list[int]
    suppressed_at_begin: list[int]
    suppressed_phrases: list[list[int]]
    forced_first_token: int
    forced_last_token: int
    special_tokens: bool
    stop: list[str]  # strings that end a text and are left out of it
    keep_stop: bool  # they are left in, with the rest of the token that ends one
    samples: int  # continuations of each prompt
    batch_texts: int  # the most texts at once
    prompts_have_special_tokens: bool  # as those of apply_chat_template(): none is put around them
    draft_tokens: int  # that a draft proposes at once


class ClassifyOptions(TypedDict, total=False):
    """What is not given has the library's default."""

    max_tokens: int  # of a text; longer ones are cut
    top: int  # labels that a result has; 0: all
    batch_texts: int
    batch_tokens: int
    threads: int


class EmbedOptions(TypedDict, total=False):
    """What is not given is as the model's folder says."""

    pooling: Literal["cls", "max", "mean", "mean_sqrt_len", "last_token"]
    normalize: bool
    prompt_name: str  # of the folder's prompts, which stand in front of texts; "": none
    batch_texts: int
    batch_tokens: int
    threads: int


@contextmanager
def reporting(progress: Progress, description: str) -> Iterator[Callable[[int, int], object] | None]:
    """What the bindings call with (done, total): the caller's function, or a bar of tqdm where `progress` is True."""
    if progress is False:
        yield None
    elif progress is True:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

        with tqdm(desc=description) as bar:

            def show(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            yield show
    else:
        yield progress


def check_text(text: Any, place: str) -> None:
    """Throws TypeError for what is no str, and DataError for a str that has no UTF-8, both with its place."""
    if not isinstance(text, str):
        raise TypeError(f"{place}: is {repr(text)[:80]}, needs to be a str")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"{place}: character {error.start + 1} is half of a surrogate pair, which has no UTF-8"
        raise _core.DataError(message) from None


def texts_of(texts: str | Iterable[str], kind: str) -> list[str]:
    """One text or several as a list. Throws for one that check_text() refuses: "KIND 4: ..."."""
    found = [texts] if isinstance(texts, str) else list(texts)
    for number, text in enumerate(found, 1):
        check_text(text, f"{kind} {number}")
    return found


def names_of_folders(adapters: Mapping[str, Path] | None) -> dict[str, str]:
    """Adapters as the bindings take them."""
    return {name: fspath(folder) for name, folder in (adapters or {}).items()}


def plain(options: Any) -> dict[str, Any]:
    """A TypedDict as the bindings take it, without what is None: that was not given."""
    return {name: value for name, value in options.items() if value is not None}
