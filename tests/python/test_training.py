"""Runs of training from iterables and files, with callbacks."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attune

SMALL = {"d_model": 16, "heads": 2, "layers": 1, "d_ff": 32, "dropout": 0.0}
PAIRS = [("a b c", "x y z"), ("b c", "y z"), ("c", "z"), ("a", "x")]


def config(**train: Any) -> dict[str, dict[str, Any]]:
    return {
        "model": SMALL,
        "data": {"tokenizer_type": "whitespace"},
        "schedule": {"kind": "constant", "learning_rate": 0.01, "warmup_steps": 5},
        "train": {"steps": 20, "batch_tokens": 64, "valid_every": 10, "log_every": 5, **train},
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> attune.Trainer:
    folder = tmp_path_factory.mktemp("run") / "en-de"
    trainer = attune.Trainer(config(steps=60), folder, train_data=PAIRS * 8, valid_data=PAIRS)
    trainer.train()
    return trainer


def test_a_run_learns_from_an_iterable(run: attune.Trainer) -> None:
    translator = attune.Translator(run.model_folder)
    assert translator.evaluate([s for s, _ in PAIRS], [t for _, t in PAIRS])["chrf"] > 80
    assert [m for m in run.metrics() if "valid_loss" in m]


def test_callbacks_are_called(tmp_path: Path) -> None:
    steps: list[int] = []
    validations: list[attune.ValidationReport] = []
    starts: list[attune.StartReport] = []

    def examples() -> Iterator[tuple[str, str]]:
        yield from PAIRS * 4

    result = attune.Trainer(config(), tmp_path / "run", train_data=examples(), valid_data=iter(PAIRS)).train(
        on_start=starts.append,
        on_step=lambda report: steps.append(report.step),
        on_validation=validations.append,
    )
    assert result.reason == "steps" and result.step == 20 and result.best_step is not None
    assert steps[-1] == 20 and starts[0].examples == 16 and starts[0].parameters > 0
    assert [v.step for v in validations] == [10, 20]
    assert validations[0].perplexity > 1 and validations[0].bleu is not None
    assert validations[0].samples[0][0] == "a b c"


def test_a_run_stops_and_goes_on(tmp_path: Path) -> None:
    trainer = attune.Trainer(config(), tmp_path / "run", train_data=PAIRS * 4)
    stopped = trainer.train(on_step=lambda report: trainer.stop() if report.step >= 7 else None)
    assert stopped.reason == "requested" and stopped.step < 20
    with pytest.raises(attune.ConfigError):
        trainer.train()
    assert trainer.train(resume=True).step == 20
    whole = attune.Trainer(config(), tmp_path / "whole", train_data=PAIRS * 4)
    whole.train()
    name = "model.safetensors"
    assert (trainer.model_folder / name).stat().st_size == (whole.model_folder / name).stat().st_size
    one, other = attune.Model(trainer.model_folder).parameters(), attune.Model(whole.model_folder).parameters()
    assert all(np.array_equal(np.asarray(one[n]), np.asarray(other[n])) for n in one)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_text_of_a_run_is_not_replaced(tmp_path: Path) -> None:
    trainer = attune.Trainer(config(), tmp_path / "run", train_data=PAIRS * 4, valid_data=PAIRS)
    assert not (tmp_path / "run.data").exists()  # before train()
    trainer.train(on_step=lambda report: trainer.stop() if report.step >= 7 else None)
    before = files_of(tmp_path / "run.data")
    assert before["train.source"].startswith(b"a b c\nb c\n")
    other = attune.Trainer(config(), tmp_path / "run", train_data=PAIRS)
    with pytest.raises(attune.ConfigError, match=r"use train\(resume=True\)"):
        other.train()
    with pytest.raises(attune.ConfigError, match="train_data is another one"):
        other.train(resume=True)
    del other
    assert files_of(tmp_path / "run.data") == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "run.data"]
    again = attune.Trainer(config(), tmp_path / "run", train_data=iter(PAIRS * 4), valid_data=PAIRS[:2])
    assert again.train(resume=True).step == 20
    after = files_of(tmp_path / "run.data")
    assert after["train.source"] == before["train.source"] and after["valid.source"] != before["valid.source"]


def test_the_text_of_a_run_that_has_saved_nothing_is_replaced(tmp_path: Path) -> None:
    def stop(report: attune.StartReport) -> None:
        raise KeyError("no more")

    with pytest.raises(KeyError):
        attune.Trainer(config(), tmp_path / "run", train_data=PAIRS).train(on_start=stop)
    attune.Trainer(config(steps=2), tmp_path / "run", train_data=PAIRS[:1]).train()
    assert (tmp_path / "run.data" / "train.source").read_text() == "a b c\n"


def test_files_of_a_user_are_not_replaced(tmp_path: Path) -> None:
    own = tmp_path / "run.data"
    own.mkdir()
    (own / "train.target").write_text("mine\n")
    trainer = attune.Trainer(config(steps=2), tmp_path / "run", train_data=PAIRS)
    with pytest.raises(attune.ConfigError, match="train.target: no run has written it"):
        trainer.train()
    assert files_of(own) == {"train.target": b"mine\n"} and not (tmp_path / "run").exists()
    (own / "train.target").rename(own / "mine")
    assert trainer.train().step == 2
    assert (own / "mine").read_text() == "mine\n"


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    program = f"""
import os, signal, attune

def examples():
    yield "a b", "x y"
    os.kill(os.getpid(), signal.SIGKILL)

attune.Trainer({{}}, {str(tmp_path / "run")!r}, train_data=examples())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (left,) = tmp_path.iterdir()
    other = attune.Trainer(config(), tmp_path / "other", train_data=PAIRS)
    assert left.exists()  # of another run
    at_work = [attune.Trainer(config(), tmp_path / "run", train_data=PAIRS) for _ in range(2)]
    assert not left.exists() and len(list(tmp_path.glob("run.data.*.tmp"))) == 2
    assert at_work[0].train().step == 20
    del other, at_work
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "run.data"]


def test_an_iterable_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def failing() -> Iterator[tuple[str, str]]:
        yield from PAIRS
        raise KeyError("broken")

    for automatic in (False, True):
        with pytest.raises(KeyError, match="broken"):
            attune.Trainer(config(), tmp_path / "run", train_data=failing(), automatic=automatic)
    trainer = attune.Trainer(config(), tmp_path / "run", train_data=PAIRS)
    assert list(tmp_path.iterdir())  # the new text
    del trainer
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_a_callback_ends_the_run(tmp_path: Path) -> None:
    def fail(report: attune.StepReport) -> None:
        raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        attune.Trainer(config(), tmp_path / "run", train_data=PAIRS).train(on_step=fail)


def test_a_bar_shows_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    attune.Trainer(config(steps=2), tmp_path / "run", train_data=PAIRS, valid_data=PAIRS).train(progress=True)
    assert "train" in capsys.readouterr().err


@pytest.mark.parametrize("limit", [{"epochs": 2}, {"max_minutes": 0.005}, {"epochs": 10**6, "max_minutes": 0.005}])
def test_a_bar_has_a_total_whatever_ends_the_run(
    limit: dict[str, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tqdm")
    trainer = attune.Trainer(config(steps=0, **limit), tmp_path / "run", train_data=PAIRS * 8)
    steps = trainer.train(progress=True).step
    assert re.search(rf"100%\|[^\r]*\| {steps}/{steps} \[", capsys.readouterr().err)


def test_classifiers_and_language_models(tmp_path: Path) -> None:
    labelled = [("letters", "a b c"), ("digits", "1 2\n3"), ("letters", "c b"), ("digits", "3 1")] * 4
    choices = config(steps=40)
    choices["model"] = SMALL | {"architecture": "encoder_classifier"}
    trainer = attune.Trainer(choices, tmp_path / "topics", train_data=labelled, valid_data=labelled)
    reports: list[attune.ValidationReport] = []
    trainer.train(on_validation=reports.append)
    assert reports[-1].macro_f1 is not None
    assert attune.Classifier(trainer.model_folder).classify("a b").label == "letters"

    rated = [(4.5, "a b c"), (-1, "1 2 3"), (3.5, "c b"), (0, "3 1")] * 4
    choices["model"] = SMALL | {"architecture": "encoder_classifier", "label_scores": "none"}
    trainer = attune.Trainer(choices, tmp_path / "ratings", train_data=rated, valid_data=rated)
    trainer.train(on_validation=reports.append)
    assert reports[-1].macro_f1 is None and reports[-1].pearson is not None
    scores = attune.Classifier(trainer.model_folder).evaluate([t for _, t in rated], [n for n, _ in rated])
    assert scores["pearson"] == pytest.approx(reports[-1].pearson, abs=0.05)
    assert len(scores["predictions"]) == len(rated)
    assert attune.regression_scores([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]) == pytest.approx((0.8, 0.8, 0.8))

    choices["model"] = SMALL | {"architecture": "decoder_lm"}
    choices["data"] = {"tokenizer_type": "characters", "text_unit": "line"}
    trainer = attune.Trainer(choices, tmp_path / "writer", train_data=["abcabc"] * 8)
    trainer.train()
    assert attune.TextGenerator(trainer.model_folder).generate("ab", temperature=0, max_tokens=1).text


def test_pairs_of_texts_for_classifiers(hub: Path, tmp_path: Path) -> None:
    """Of a model of the hub, whose tokenizer has a form for two texts."""
    pairs = [("LABEL_0", "the dog", "the dog"), ("LABEL_1", "the dog", "a house")] * 8
    choices: dict[str, dict[str, Any]] = {
        "model": {"architecture": "encoder_classifier"},
        "train": {"steps": 2, "batch_tokens": 64, "initialize_from": str(hub / "bert-classifier")},
    }
    trainer = attune.Trainer(choices, tmp_path / "pairs", train_data=pairs, valid_data=iter(pairs))
    assert trainer.config.to_dict()["data"]["second_text_field"] == "second_text"
    trainer.train()
    classifier = attune.Classifier(trainer.model_folder)
    assert classifier.classify([("the dog", "the dog")])[0].label.startswith("LABEL_")
    with pytest.raises(attune.DataError, match=r"\(label, text, second_text\) was expected"):
        attune.Trainer(choices, tmp_path / "mixed", train_data=[pairs[0], ("LABEL_0", "a b")])
    with pytest.raises(attune.DataError, match=r"\(label, text\) was expected"):
        attune.Trainer(choices, tmp_path / "mixed", train_data=["a b"])


def test_a_language_model_learns_answers(tmp_path: Path) -> None:
    questions = [("what is a?", "an a"), ("and what is a?", "an a")] * 8
    choices = config(steps=150)
    choices["model"] = SMALL | {"architecture": "decoder_lm"}
    choices["data"] = {"tokenizer_type": "characters"}
    trainer = attune.Trainer(choices, tmp_path / "answers", train_data=questions, valid_data=questions[:2])
    assert trainer.config.to_dict()["data"]["text_unit"] == "answer"
    reports: list[attune.ValidationReport] = []
    trainer.train(on_validation=reports.append)
    generator = attune.TextGenerator(trainer.model_folder)
    assert generator.evaluate(questions[:2])["nll"] == pytest.approx(reports[-1].nll, abs=0.05)
    assert generator.evaluate(questions[:2])["documents"] == 2
    assert generator.generate("what is a?", temperature=0, max_tokens=8).text == "an a"
    with pytest.raises(attune.DataError, match=r"\(prompt, answer\) was expected"):
        attune.Trainer(choices, tmp_path / "mixed", train_data=[questions[0], "a text"])


def test_paragraphs_are_documents(tmp_path: Path) -> None:
    choices = config(steps=1)
    choices["model"] = SMALL | {"architecture": "decoder_lm"}
    choices["data"] = {"tokenizer_type": "characters", "text_unit": "paragraph"}
    starts: list[attune.StartReport] = []
    attune.Trainer(choices, tmp_path / "run", train_data=["a b\nc", "d", "e f"]).train(on_start=starts.append)
    assert starts[0].examples == 3


def test_a_text_that_would_be_read_as_two_is_refused(tmp_path: Path) -> None:
    def train(text_unit: str, texts: list[str]) -> None:
        choices = config(steps=1)
        choices["model"] = SMALL | {"architecture": "decoder_lm"}
        choices["data"] = {"tokenizer_type": "characters", "text_unit": text_unit}
        attune.Trainer(choices, tmp_path / text_unit, train_data=texts)

    with pytest.raises(attune.DataError, match=r"'b\\nc': a text of one line was expected, as text_unit is 'line'"):
        train("line", ["a", "b\nc"])
    with pytest.raises(attune.DataError, match="a text without empty lines was expected, as text_unit is 'paragraph'"):
        train("paragraph", ["a", "b\n \nc"])
    train("line", ["a\n", "b"])  # as the lines of a file
    train("paragraph", ["\na\nb\n\n", "c"])
    train("stream", ["a\n\nb", "c"])


def test_a_configuration_is_chosen_for_the_text(tmp_path: Path) -> None:
    small = {"train": {"steps": 2}, "model": {"d_model": 16, "heads": 2}}
    trainer = attune.Trainer(small, tmp_path / "run", train_data=PAIRS * 40, automatic=True)
    chosen = {key: reason for key, value, reason in trainer.choices}
    assert "model.dropout" in chosen and all(chosen.values())
    assert "train.steps" not in chosen and "model.d_model" not in chosen and trainer.config.to_dict()["train"]["steps"] == 2
    assert trainer.train().step == 2

    labelled = [("letters", "a b c"), ("digits", "1 2 3")] * 40
    (tmp_path / "topics.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in labelled))
    sections: dict[str, dict[str, Any]] = {"model": {"architecture": "encoder_classifier"}}
    of_file = attune.Trainer(
        sections | {"data": {"train_files": [str(tmp_path / "topics.tsv")]}}, tmp_path / "file", automatic=True
    )
    of_iterable = attune.Trainer(sections, tmp_path / "iterable", train_data=labelled, automatic=True)
    assert of_file.choices == of_iterable.choices != []
    with pytest.raises(attune.ConfigError, match="a dict of sections"):
        attune.Trainer(tmp_path / "run.toml", tmp_path / "none", automatic=True)
    with pytest.raises(attune.ConfigError, match="names no file"):
        attune.Trainer({}, tmp_path / "none", automatic=True)


def test_an_adapter_is_trained_and_chosen(run: attune.Trainer, tmp_path: Path) -> None:
    choices = {
        "lora": {"rank": 2},
        "train": {"steps": 40, "initialize_from": str(run.model_folder), "batch_tokens": 64},
        "schedule": {"kind": "constant", "learning_rate": 0.05, "warmup_steps": 1},
    }
    tuned = attune.Trainer(choices, tmp_path / "tuned", train_data=[(s, "z") for s, _ in PAIRS] * 8)
    tuned.train()
    translator = attune.Translator(run.model_folder, adapters={"short": tuned.model_folder / "adapter"})
    assert translator.adapters == ["short"]
    own, short = (translator.translate("a b c", adapter=name).text for name in ("", "short"))
    assert own == attune.Translator(run.model_folder).translate("a b c").text
    assert short == attune.Translator(tuned.model_folder).translate("a b c").text
    assert short != own
    assert [t.text for t in translator.translate_iterable(["a b c"], adapter="short")] == [short]


def test_files_and_toml(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a b c\nb c d\n" * 4)
    file = tmp_path / "run.toml"
    choices = config()
    choices["model"] = SMALL | {"architecture": "decoder_lm"}
    choices["data"] = {"tokenizer_type": "characters", "train_files": [str(tmp_path / "text.txt")]}
    run = attune.Trainer(choices, tmp_path / "run")
    file.write_text(run.config.to_toml())
    again = attune.Trainer(file, tmp_path / "again")
    assert again.config.to_dict() == run.config.to_dict()
    assert again.train().step == 20


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(attune.ConfigError, match="^train.stepps"):
        attune.Trainer({"train": {"stepps": 1}}, tmp_path / "run")
    with pytest.raises(attune.ConfigError, match="train_source"):
        attune.Trainer(config(), tmp_path / "run").train()
    with pytest.raises(attune.DataError, match="a text was expected"):
        attune.Trainer(
            {"model": {"architecture": "decoder_lm"}}, tmp_path / "run", train_data=["a", ("a", "b")]
        )
    with pytest.raises(attune.DataError, match="line end"):
        attune.Trainer(config(), tmp_path / "run", train_data=[("a\nb", "c")])
    wrong: Any
    for wrong in ("ab", {"source": "a", "target": "b"}, {"a", "b"}, ("a", "b", "c"), ("a", None), 5):
        with pytest.raises(attune.DataError, match="was expected"):
            attune.Trainer(config(), tmp_path / "run", train_data=[wrong])
    for wrong in ({"label": "no", "text": "a b"}, 5):
        with pytest.raises(attune.DataError, match=r"\(label, text\) was expected"):
            attune.Trainer({"model": {"architecture": "encoder_classifier"}}, tmp_path / "run", train_data=[wrong])
    half = "\ud83d"  # of a surrogate pair
    for architecture, wrong in (
        ("encoder_decoder", ("a", half)),
        ("encoder_classifier", ("no", half)),
        ("decoder_lm", half),
        ("decoder_lm", ("a", half)),
    ):
        good = tuple("a" for _ in wrong) if isinstance(wrong, tuple) else "a"
        choices = {"model": {"architecture": architecture}}
        with pytest.raises(attune.DataError, match="example 2: character 1 is half of a surrogate pair"):
            attune.Trainer(choices, tmp_path / "run", train_data=[good, wrong])
    ratings = {"model": {"architecture": "encoder_classifier", "label_scores": "none"}}
    with pytest.raises(attune.DataError, match=r"\(nan, 'a'\): a number that is finite was expected"):
        attune.Trainer(ratings, tmp_path / "run", train_data=[(1.5, "a"), (float("nan"), "a")])


def test_a_line_of_metrics_that_is_not_whole_is_left_out(run: attune.Trainer) -> None:
    whole = run.metrics()
    file = run.folder / "metrics.jsonl"
    text = file.read_bytes()
    try:
        file.write_bytes(text + b'{"step": 61, "lo')
        assert run.metrics() == whole
        assert "<svg" in attune.training_curves(run.folder).svg
    finally:
        file.write_bytes(text)


def test_scores_are_those_of_doubles() -> None:
    near = [1, 1 + 1e-12, 1 + 2e-12, 1 + 3e-12]
    assert attune.regression_scores(near, [1, 2, 3, 4])[2] == 1
    assert attune.regression_scores([0.1], [0])[0] == pytest.approx(0.1 * 0.1, rel=1e-15)
    with pytest.raises(attune.DataError, match="there are -1 labels"):
        attune.classification_scores([0], [0], -1)


def test_a_model_that_was_changed_is_saved(run: attune.Trainer, tmp_path: Path) -> None:
    model = attune.Model(run.model_folder)
    assert model.tokenizer is not None and model.target_tokenizer is not None
    name, parameter = next(iter(model.parameters().items()))
    parameter.numpy()[:] += 1
    model.save(tmp_path / "changed")
    assert np.array_equal(np.asarray(attune.Model(tmp_path / "changed").parameters()[name]), np.asarray(parameter))
    with pytest.raises(attune.FileError):
        model.save(tmp_path / "changed" / "model.safetensors" / "model")  # in a file
    # The file that was mapped has not changed.
    assert not np.array_equal(np.asarray(attune.Model(run.model_folder).parameters()[name]), np.asarray(parameter))


def test_a_model_is_exported(hub: Path, tmp_path: Path) -> None:
    done = attune.export(hub / "gpt2", tmp_path / "out", precision="bfloat16")
    assert done.family == "gpt2" and done.class_name == "GPT2LMHeadModel" and done.left_out == []
    model, exported = attune.Model(hub / "gpt2"), attune.Model(tmp_path / "out")
    assert done.parameters > 0 and done.bytes > 0
    ids = [[1, 2, 3]]
    assert np.allclose(np.asarray(exported.logits(ids)), np.asarray(model.logits(ids)), atol=0.05)
    assert attune.TextGenerator(tmp_path / "out").generate("the dog", max_tokens=3).tokens


def test_what_has_no_equivalent_is_not_exported(run: attune.Trainer, tmp_path: Path) -> None:
    with pytest.raises(attune.ConfigError, match="has no equivalent on the hub"):
        attune.export(run.model_folder, tmp_path / "out", family="t5")
    with pytest.raises(attune.ConfigError, match="int3"):
        attune.export(run.model_folder, tmp_path / "out", precision="int3")
    assert not (tmp_path / "out").exists()


def test_a_model_is_quantized(run: attune.Trainer, tmp_path: Path) -> None:
    small = attune.quantize(run.model_folder, tmp_path / "int8")
    assert small.parameters > 0
    assert attune.Translator(tmp_path / "int8").translate("a b c").text
    with pytest.raises(attune.FileError):
        attune.quantize(run.model_folder, tmp_path / "int8")
    with pytest.raises(attune.ConfigError, match="int3"):
        attune.quantize(run.model_folder, tmp_path / "int3", weights="int3")
    with pytest.raises(attune.ConfigError, match="attune.Model"):
        attune.Model(tmp_path / "int8")


def test_pictures_for_notebooks(run: attune.Trainer, tmp_path: Path) -> None:
    curves = run.curves()
    assert curves._repr_svg_().startswith("<svg") or "<svg" in curves._repr_html_()
    curves.save(tmp_path / "curves.svg")
    page = attune.attention(run.model_folder, "a b c")
    assert "<iframe srcdoc=" in page._repr_html_()
    page.save(tmp_path / "attention.html")
    assert "Cross-attention" in (tmp_path / "attention.html").read_text()
    with pytest.raises(attune.DataError):
        attune.training_curves(run.folder, values=("nothing",))
