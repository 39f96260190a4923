"""transformers' pipelines, where they mean the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from ._classifier import Classifier
from ._options import Path
from ._text_generator import TextGenerator
from ._translator import Translator


def pipeline(task: str, model: Path) -> Callable[..., list[Any]]:
    """A function of texts that returns dicts as transformers.pipeline() does.

    "translation" gives {"translation_text"}, "text-generation" {"generated_text"}, the prompt included unless
    return_full_text=False, "text-classification" {"label", "score"}; with top_k=K a list of the K best labels of each
    text, with top_k=None of all. The arguments are those of transformers: max_length, num_beams, length_penalty,
    src_lang and tgt_lang of a translation; max_new_tokens, do_sample, temperature, top_k, top_p, min_p,
    repetition_penalty, num_return_sequences and stop_strings of a generation, and `seed`. Throws ConfigError for
    another task, and for another argument of a translation or generation.

    >>> classify = pipeline("text-classification", classification_model)
    >>> sorted(classify("a b")[0])
    ['label', 'score']
    """
    if task == "translation" or task.startswith("translation_"):
        return _translation(Translator(model))
    if task == "text-generation":
        return _generation(TextGenerator(model))
    if task in ("text-classification", "sentiment-analysis"):
        return _classification(Classifier(model))
    raise _core.ConfigError(f'task: is "{task}", needs one of translation, text-generation, text-classification')


_NOT_GIVEN: Any = object()


def _texts(inputs: str | Sequence[str]) -> list[str]:
    return [inputs] if isinstance(inputs, str) else list(inputs)


def _renamed(arguments: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    unknown = sorted(set(arguments) - set(names))
    if unknown:
        raise _core.ConfigError(f"unknown argument {unknown[0]!r}; there are {', '.join(names)}")
    return {names[name]: value for name, value in arguments.items() if value is not None}


def _translation(translator: Translator) -> Callable[..., list[Any]]:
    names = {"max_length": "max_length", "num_beams": "beam_size", "length_penalty": "length_penalty"}
    names |= {"src_lang": "source_language", "tgt_lang": "target_language"}

    def call(inputs: str | Sequence[str], **arguments: Any) -> list[Any]:
        options: Any = _renamed(arguments, names)
        if "max_length" in options:
            options["max_length"] = max(1, options["max_length"] - 1)  # transformers counts the start token
        return [{"translation_text": t.text} for t in translator.translate(_texts(inputs), **options)]

    return call


def _generation(generator: TextGenerator) -> Callable[..., list[Any]]:
    names = {"max_new_tokens": "max_tokens", "num_return_sequences": "samples", "stop_strings": "stop"}
    names |= {name: name for name in ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")}

    def call(
        inputs: str | Sequence[str], *, do_sample: bool | None = None, return_full_text: bool = True, **arguments: Any
    ) -> list[Any]:
        options: Any = _renamed(arguments, names)
        if do_sample is False:
            options["temperature"] = 0
        elif do_sample and generator.sampling["temperature"] == 0:
            options = {"temperature": 1.0, "top_k": 50} | options  # the defaults of transformers
        prompts = _texts(inputs)
        found = generator.generate(prompts, keep_stop=True, **options)  # as transformers leaves them in the text
        samples = len(found) // max(1, len(prompts))
        of_prompt = [
            [
                {"generated_text": (prompt if return_full_text else "") + text.text}
                for text in found[i * samples : (i + 1) * samples]
            ]
            for i, prompt in enumerate(prompts)
        ]
        return of_prompt[0] if isinstance(inputs, str) else of_prompt

    return call


def _classification(classifier: Classifier) -> Callable[..., list[Any]]:
    def call(inputs: str | Sequence[str], *, top_k: int | None = _NOT_GIVEN) -> list[Any]:
        labels = [
            [{"label": label, "score": score} for label, score in prediction.scores.items()]
            for prediction in classifier.classify(_texts(inputs))
        ]
        if top_k is _NOT_GIVEN:
            return [best for best, *_ in labels]
        found = [of_text[:top_k] for of_text in labels]
        return found[0] if isinstance(inputs, str) else found

    return call
