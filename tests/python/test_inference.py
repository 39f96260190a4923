"""Translation, generation, classification and embeddings of folders of the hub."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attune

SENTENCES = ["a small house", "the dog", "the dog sees a house"]


def test_a_translation_is_the_same_alone_and_in_a_batch(translator: attune.Translator) -> None:
    together = translator.translate(SENTENCES)
    assert [t.text for t in together] == [translator.translate(s).text for s in SENTENCES]
    assert isinstance(together[0], attune.Translation)
    assert str(together[0]) == together[0].text


def test_n_best_is_ordered_and_has_scores(translator: attune.Translator) -> None:
    found = translator.translate("the dog", beam_size=4, n_best=3)
    scores = [t.score for t in found.n_best]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True)
    assert found.score == scores[0] and found.tokens == found.n_best[0].tokens
    assert len(translator.target_tokens(found.n_best[0])) == len(found.tokens)


def test_translate_batch_takes_the_names_of_ctranslate2(translator: attune.Translator) -> None:
    found = translator.translate_batch(SENTENCES, beam_size=2, num_hypotheses=2, max_decoding_length=5)
    assert [len(t.n_best) for t in found] == [2, 2, 2]
    assert all(len(t.tokens) <= 5 for t in found)
    same = translator.translate(SENTENCES, beam_size=2, n_best=2, max_length=5)
    assert [t.text for t in found] == [t.text for t in same]


def test_the_options_in_python_are_those_of_the_library() -> None:
    for options, binding in [
        (attune.TranslateOptions, attune._core.Translator),
        (attune.GenerateOptions, attune._core.TextGenerator),
        (attune.ClassifyOptions, attune._core.Classifier),
        (attune.EmbedOptions, attune._core.Embedder),
    ]:
        assert sorted(options.__annotations__) == sorted(binding.option_names())


def test_an_unknown_option_names_the_nearest(translator: attune.Translator) -> None:
    with pytest.raises(attune.ConfigError, match="beam_size"):
        translator.translate("a", beam_sise=2)  # type: ignore[call-overload]
    with pytest.raises(attune.ConfigError, match='did you mean "beam_size"'):
        translator.translate("a", beam=2)  # type: ignore[call-overload]


def test_a_wrong_text_is_named(
    translator: attune.Translator, generator: attune.TextGenerator, classifier: attune.Classifier, hub: Path
) -> None:
    embedder = attune.Embedder(hub / "bert-classifier")
    wrong: Any
    for wrong, error in (("a\ud800", attune.DataError), (None, TypeError), (b"a", TypeError)):
        texts = ["a"] * 3 + [wrong]
        calls: list[tuple[str, Callable[[], object]]] = [
            ("sentence 4: ", lambda: translator.translate(texts)),
            ("sentence 4: ", lambda: translator.translate_batch(texts)),
            ("prefix 4: ", lambda: translator.translate(["a"] * 4, prefix=texts)),
            ("prompt 4: ", lambda: generator.generate(texts)),
            ("text 4: ", lambda: classifier.classify(texts)),
            ("text 2, second: ", lambda: classifier.classify([("a", "b"), ("a", wrong)])),
            ("text 4: ", lambda: embedder.embed(texts)),
        ]
        for place, call in calls:
            with pytest.raises(error, match=place):
                call()


def test_none_is_what_was_not_given(translator: attune.Translator, generator: attune.TextGenerator) -> None:
    none: Any = {"adapter": None, "samples": None}
    assert generator.generate("the dog", seed=1, **none).text == generator.generate("the dog", seed=1).text
    nothing: Any = None
    assert translator.translate("the dog", beam_size=nothing).text == translator.translate("the dog").text


def test_numbers_and_texts_of_any_size(generator: attune.TextGenerator) -> None:
    with pytest.raises(attune.ConfigError, match="seed = 9223372036854775808"):
        generator.generate("the dog", seed=2**63)
    for number in (2**64, -(2**63) - 1):
        with pytest.raises(attune.ConfigError, match=f"{number} has more than 64 bits"):
            generator.generate("the dog", seed=number)
    assert generator.generate("the dog", seed=np.int64(2), max_tokens=3).text  # type: ignore[arg-type]
    with pytest.raises(attune.ConfigError, match="is no number"):
        generator.generate("the dog", stop=["\udc80"])
    endless: dict[str, Any] = {}
    endless["train"] = endless
    with pytest.raises(attune.ConfigError, match="levels deep"):
        attune.RunConfig("", endless, "")
    with pytest.raises(attune.ConfigError, match="train.seed"):
        attune.RunConfig("", {"train": {"seed": 2**63}}, "")
    names = ["a\0b", "yes"]
    model = attune.Model.build(
        {"architecture": "encoder_classifier", "vocab": 20, "d_model": 16, "heads": 2, "layers": 1, "labels": names}
    )
    assert model.config["labels"] == names


def test_an_ensemble_is_any_sequence(translator: attune.Translator, hub: Path) -> None:
    class Folders(Sequence[Path]):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: Any) -> Any:
            return ([hub / "marian"] * 2)[index]

    for folders in (Folders(), deque([str(hub / "marian")] * 2)):
        ensemble = attune.Translator(folders)
        assert ensemble.translate("the dog").text == translator.translate("the dog").text


def test_a_folder_is_any_path(hub: Path) -> None:
    folders = {entry.name: entry for entry in os.scandir(hub)}
    assert attune.Translator(folders["marian"]).generation
    assert attune.TextGenerator(folders["gpt2"]).generate("the dog", max_tokens=2).tokens
    assert attune.Classifier(folders["bert-classifier"]).labels
    assert attune.Embedder(folders["bert-classifier"]).dimension() > 0


def test_errors_are_those_of_python_too(translator: attune.Translator, tmp_path: Path) -> None:
    with pytest.raises(OSError) as error:
        attune.Translator(tmp_path / "nothing")
    assert isinstance(error.value, attune.FileError) and isinstance(error.value, attune.Error)
    with pytest.raises(attune.FileError):
        attune.Tokenizer("a" * 300)  # too long a name
    with pytest.raises(ValueError):
        translator.translate("a", beam_size=-1)


def test_errors_about_any_name_and_text(translator: attune.Translator) -> None:
    with pytest.raises(attune.FileError, match="nothing\ufffd"):
        attune.Translator("/tmp/nothing\udcff")  # a name that is not UTF-8
    with pytest.raises(attune.ConfigError) as error:
        translator.translate("a", length_normalization="ä" * 60)
    assert "ääää" in str(error.value) and "\ufffd" not in str(error.value)


def test_the_device_is_chosen_by_name(hub: Path) -> None:
    sentence = "a small house"
    assert attune.Translator(hub / "marian", device="cpu").translate(sentence).text == attune.Translator(
        hub / "marian"
    ).translate(sentence).text
    for load in attune.Translator, attune.TextGenerator, attune.Classifier, attune.Embedder:
        with pytest.raises(attune.ConfigError, match="device = gpu: needs cpu, cuda, or cuda:N"):
            load(hub / "marian", device="gpu")


def test_progress_counts_all_sentences(translator: attune.Translator) -> None:
    seen: list[tuple[int, int]] = []
    translator.translate(SENTENCES, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3, 3)


def test_an_error_of_a_callback_ends_the_call(translator: attune.Translator) -> None:
    def fail(done: int, total: int) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        translator.translate(SENTENCES, progress=fail)
    assert translator.translate("the dog").text == translator.translate(["the dog"])[0].text


def test_an_interrupt_ends_a_call(translator: attune.Translator) -> None:
    interrupt = attune.Interrupt()
    interrupt.set()
    with pytest.raises(attune.Interrupted):
        translator.translate(SENTENCES * 50, interrupt=interrupt)


def fail_if_called(done: int, total: int) -> None:
    pytest.fail("nothing needs to be computed")


def test_evaluation_scores_translations(translator: attune.Translator) -> None:
    own = [t.text for t in translator.translate(SENTENCES)]
    scores = translator.evaluate(SENTENCES, own)
    assert scores["translations"] == own
    assert 0 <= scores["chrf"] <= 100
    assert attune.bleu(["a b c d e"], ["a b c d e"]) == pytest.approx(100)
    assert scores["ter"] == pytest.approx(attune.ter(own, own))
    others = ["nothing"] * len(own)
    several = translator.evaluate(SENTENCES, [others, own])
    assert several["bleu"] == scores["bleu"] and several["chrf"] == scores["chrf"]
    assert translator.evaluate(SENTENCES, others)["bleu"] < scores["bleu"]
    assert attune.ter(["a b c"], [["a b d"], ["a b c d"]]) == pytest.approx(100 / 3.5)
    with pytest.raises(attune.DataError, match="3 sentences but 1 references"):
        translator.evaluate(SENTENCES, [own, own[:1]], progress=fail_if_called)


def test_greedy_text_is_the_same_alone_and_in_a_batch(generator: attune.TextGenerator) -> None:
    text = generator.generate("the dog", temperature=0, max_tokens=8)
    assert text.finish_reason in ("length", "eos")
    assert len(text.tokens) <= 8
    assert generator.generate(["the dog"], temperature=0, max_tokens=8)[0].text == text.text


def test_samples_of_a_seed_are_the_same(generator: attune.TextGenerator) -> None:
    one = generator.generate(["the"], samples=3, seed=5, max_tokens=6)
    assert [t.text for t in one] == [t.text for t in generator.generate(["the"], samples=3, seed=5, max_tokens=6)]
    assert len(one) == 3


def test_many_threads_share_a_generator(generator: attune.TextGenerator) -> None:
    alone = generator.generate("the dog", seed=3, max_tokens=10).text
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(generator.generate("the dog", seed=3, max_tokens=10).text))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 4


def test_a_draft_does_not_change_greedy_text(generator: attune.TextGenerator) -> None:
    plain = generator.generate("the dog", temperature=0, max_tokens=12)
    assert generator.generate("the dog", temperature=0, max_tokens=12, draft=generator).tokens == plain.tokens


def test_a_language_model_is_evaluated(generator: attune.TextGenerator, hub: Path, tmp_path: Path) -> None:
    model = attune.Model(hub / "gpt2")
    ids = generator.encode_prompt("the dog sees")
    logits = np.asarray(model.logits([ids]))[:-1].astype(np.float64)
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    nll = -log_probabilities[np.arange(len(ids) - 1), ids[1:]].mean()
    scores = generator.evaluate("the dog sees")
    assert scores["nll"] == pytest.approx(nll, rel=1e-5) and scores["tokens"] == len(ids) - 1
    assert scores["perplexity"] == pytest.approx(np.exp(nll), rel=1e-5)
    assert scores["bits_per_byte"] == pytest.approx(nll * (len(ids) - 1) / np.log(2) / len("the dog sees"), rel=1e-5)

    file = tmp_path / "text"
    file.write_text("the dog sees\na house\n")
    assert generator.evaluate(file) == generator.evaluate(["the dog sees", "a house"])
    printed = subprocess.run(
        [sys.executable, "-c", "from attune._command_line import main; main()"]
        + ["evaluate", hub / "gpt2", "--data", file, "--json"],
        capture_output=True,
        check=True,
    ).stdout
    of_program = json.loads(printed)
    assert {name: of_program[name] for name in generator.evaluate(file)} == generator.evaluate(file)
    with pytest.raises(attune.DataError, match="text: character 3 is half of a surrogate pair"):
        generator.evaluate("a \ud83d")
    with pytest.raises(attune.DataError, match="example 2: character 1 is half of a surrogate pair"):
        generator.evaluate(["a", "\ud83d"])
    with pytest.raises(attune.ConfigError, match="stride 100000"):
        generator.evaluate(file, stride=100000)
    with pytest.raises(attune.DataError, match="a text was expected"):
        generator.evaluate([("a prompt", "an answer")])
    interrupt = attune.Interrupt()
    interrupt.set()
    with pytest.raises(attune.Interrupted):
        generator.evaluate(file, interrupt=interrupt)


def test_calls_choose_an_adapter(generator: attune.TextGenerator, hub: Path, tmp_path: Path) -> None:
    shutil.copytree(hub.parent / "adapters" / "gpt2", tmp_path / "legal")
    config = json.loads((tmp_path / "legal" / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = str(hub / "gpt2")
    (tmp_path / "legal" / "adapter_config.json").write_text(json.dumps(config))
    merged = attune.TextGenerator(tmp_path / "legal")
    several = attune.TextGenerator(hub / "gpt2", adapters={"legal": tmp_path / "legal"})
    assert several.adapters == ["legal"] and generator.adapters == []
    tokens = {
        name: several.generate("the dog", temperature=0, max_tokens=12, adapter=name).tokens for name in ("", "legal")
    }
    assert tokens[""] == generator.generate("the dog", temperature=0, max_tokens=12).tokens
    assert tokens["legal"] == merged.generate("the dog", temperature=0, max_tokens=12).tokens
    assert tokens["legal"] != tokens[""]
    with pytest.raises(attune.ConfigError, match='adapter = "poems": the model was loaded with legal'):
        several.generate("the dog", adapter="poems")
    with pytest.raises(attune.ConfigError, match="adapters are for one model"):
        attune.Translator([hub / "marian"] * 2, adapters={"legal": tmp_path / "legal"})


def test_chat_templates_need_one_in_the_folder(generator: attune.TextGenerator) -> None:
    with pytest.raises(attune.ConfigError, match="chat template"):
        generator.apply_chat_template([{"role": "user", "content": "Hello"}])


def test_labels_are_sorted_and_pairs_are_read(classifier: attune.Classifier) -> None:
    found = classifier.classify(["the dog", "a house"])
    for prediction in found:
        scores = list(prediction.scores.values())
        assert scores == sorted(scores, reverse=True) and prediction.score == scores[0]
        assert sorted(prediction.scores) == sorted(classifier.labels)
    assert classifier.classify("the dog") == found[0]
    assert classifier.classify(("the dog", "a house")).label in classifier.labels
    assert [p.label for p in classifier.classify_iterable(["the dog"] * 3)] == [found[0].label] * 3
    pairs = [("the dog", "a house"), ("a house", "the dog")]
    assert list(classifier.classify_iterable(iter(pairs))) == classifier.classify(pairs)
    with pytest.raises(attune.DataError, match="1 texts and 1 pairs"):
        classifier.classify(["the dog", pairs[0]])  # type: ignore[call-overload]


def test_a_classifier_is_evaluated(classifier: attune.Classifier) -> None:
    texts = ["the dog", "a house", "the"]
    own = [p.label for p in classifier.classify(texts)]
    assert classifier.evaluate(texts, own)["accuracy"] == 1
    pairs = [("the dog", "a house"), ("a house", "the")]
    assert classifier.evaluate(pairs, [p.label for p in classifier.classify(pairs)])["accuracy"] == 1
    with pytest.raises(attune.DataError, match="no label 'nothing'"):
        classifier.evaluate(texts, ["nothing"] * 3)
    with pytest.raises(attune.DataError, match="3 texts but 2 labels"):
        classifier.evaluate(texts, own[:2], progress=fail_if_called)


def test_vectors_are_arrays_without_a_copy(hub: Path) -> None:
    embedder = attune.Embedder(hub / "bert-classifier")
    vectors = embedder.embed(["the dog", "a house"], normalize=True)
    array = np.asarray(vectors)
    assert array.shape == (2, embedder.dimension()) and array.dtype == np.float32
    assert np.allclose(np.linalg.norm(array, axis=1), 1, atol=1e-5)
    array[0, 0] = 7
    assert np.asarray(vectors)[0, 0] == 7
    assert np.array_equal(embedder.embed("a house", normalize=True), array[1])
    one = next(embedder.embed_iterable(iter(["a house"]), normalize=True))
    assert np.array_equal(one, array[1])


def test_embedded_texts_that_are_cut_are_counted(hub: Path) -> None:
    embedder = attune.Embedder(hub / "bert-classifier")
    with pytest.warns(UserWarning, match="^1 of 2 texts was cut: the model reads 128 tokens, with bos and eos$"):
        embedder.embed(["the dog " * 200, "a house"])
    with pytest.warns(UserWarning, match="^2 of 2 texts were cut"):
        list(embedder.embed_iterable(["the dog " * 200] * 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pieces = ["the dog " * 200] * 40 + ["a house"]  # with batch_texts=1, of 16 texts at most
        assert len(list(embedder.embed_iterable(pieces, batch_texts=1))) == 41
    assert [str(warning.message).split(":")[0] for warning in caught] == ["40 of 41 texts were cut"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        embedder.embed(["the dog", "a house"])


def test_a_tokenizer_reads_folders_and_files(hub: Path) -> None:
    tokenizer = attune.Tokenizer(hub / "gpt2")
    ids = tokenizer.encode("the dog sees")
    assert tokenizer.decode(ids) == "the dog sees"
    assert tokenizer.convert_ids_to_tokens(ids) == tokenizer.tokenize("the dog sees")
    assert tokenizer.token_to_id(tokenizer.tokenize("the dog sees")[0]) == ids[0]
    assert tokenizer.token_to_id("no such token") is None
    assert attune.Tokenizer(hub / "gpt2" / "tokenizer.json").encode("the dog sees") == ids
    bert = attune.Tokenizer(hub / "bert-classifier")
    framed, plain = bert.encode("the dog"), bert.encode("the dog", add_special_tokens=False)
    assert framed[1:-1] == plain
    assert len(bert.encode("the dog", max_length=3)) == 3
    assert bert.encode_batch(["the dog", "a"]) == [framed, bert.encode("a")]


def test_pipelines_give_what_those_of_transformers_give(hub: Path) -> None:
    translated = attune.pipeline("translation", hub / "marian")(["the dog"], num_beams=2)
    assert list(translated[0]) == ["translation_text"]
    generate = attune.pipeline("text-generation", hub / "gpt2")
    (text,) = generate("the dog", max_new_tokens=4, do_sample=False)
    assert text["generated_text"].startswith("the dog")
    assert len(generate(["the", "dog"], max_new_tokens=4, num_return_sequences=2)[1]) == 2
    more = text["generated_text"].removeprefix("the dog")
    (stopped,) = generate("the dog", max_new_tokens=4, do_sample=False, stop_strings=[more[0]], return_full_text=False)
    assert more.startswith(stopped["generated_text"]) and stopped["generated_text"]  # its first token, whole
    label = attune.pipeline("text-classification", hub / "bert-classifier")
    assert set(label("the dog")[0]) == {"label", "score"}
    best = label(["the dog", "a house"])
    assert [set(one) for one in best] == [{"label", "score"}] * 2
    assert label(["the dog", "a house"], top_k=1) == [[one] for one in best]
    both = label("the dog", top_k=None)
    assert len(both) > 1 and both[0] == best[0] and label("the dog", top_k=2) == both[:2]
    with pytest.raises(attune.ConfigError, match="unknown argument 'nonsense'"):
        generate("the dog", nonsense=1)
    with pytest.raises(attune.ConfigError, match="task"):
        attune.pipeline("fill-mask", hub / "bert-classifier")
