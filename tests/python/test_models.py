"""Models with their parameters, and training loops in Python."""

from __future__ import annotations

import gc
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import TINY_CLASSIFIER, TINY_LANGUAGE_MODEL, TINY_TRANSLATOR

import attune


def test_parameters_are_the_model_s_own_memory() -> None:
    model = attune.Model.build(TINY_LANGUAGE_MODEL, seed=3)
    parameters = model.parameters()
    assert sum(p.size for p in parameters.values()) == model.parameter_count
    assert model.architecture == "decoder_lm" and model.config["d_model"] == 16
    before = np.asarray(model.logits([[1, 2, 3]])).copy()
    next(iter(parameters.values())).numpy()[:] *= 2
    assert not np.array_equal(np.asarray(model.logits([[1, 2, 3]])), before)


def test_rows_of_sequences_stand_one_after_another() -> None:
    model = attune.Model.build(TINY_LANGUAGE_MODEL)
    both = model.decode([[1, 2, 3], [4, 5]], attention=True)
    assert both.states.shape == (5, 16) and both.offsets == [0, 3, 5]
    assert [w.shape for w in both.attention] == [(2, 2, 3, 3)] * 2
    weights = np.asarray(both.attention[0])
    assert np.allclose(weights[0].sum(axis=-1), 1, atol=1e-5)
    alone = model.decode([[4, 5]])
    assert np.array_equal(np.asarray(both.states)[3:], np.asarray(alone.states))


def test_an_encoder_decoder_has_three_kinds_of_weights() -> None:
    model = attune.Model.build(TINY_TRANSLATOR)
    memory = model.encode([[1, 2, 3]], attention=True)
    decoded = model.decode([[2, 4]], memory, attention=True)
    assert memory.attention[0].shape == (1, 2, 3, 3)
    assert decoded.cross_attention[0].shape == (1, 2, 2, 3)
    logits = model.project(decoded.states)
    assert logits.shape == (2, 24)
    assert np.allclose(np.asarray(logits), np.asarray(model.logits([[1, 2, 3]], [[2, 4]])), atol=1e-6)
    with pytest.raises(attune.ConfigError, match="memory"):
        model.decode([[2, 4]])


def test_a_loop_in_python_learns() -> None:
    model = attune.Model.build(TINY_LANGUAGE_MODEL)
    adam = attune.Adam(model, clip_norm=1.0)
    text = [[2, 5, 6, 7, 8], [2, 9, 10]]
    labels = [5, 6, 7, 8, 3, 9, 10, 3]
    losses = []
    for step in range(1, 61):
        adam.clear_gradients()
        with attune.dropout(seed=1, step=step):
            loss = model.loss(text, labels)
        loss.backward()
        norm = adam.step(attune.learning_rate(step, kind="constant", peak=0.01, warmup_steps=5))
        assert norm > 0
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
    assert loss.labels == 8 and 0 <= loss.correct <= 8


def test_gradients_reach_parameters_that_were_taken_before() -> None:
    model = attune.Model.build(TINY_LANGUAGE_MODEL)
    parameters = model.parameters()
    some = {name: p for name, p in parameters.items() if "embedding" in name}
    assert some
    with pytest.raises(attune.ConfigError, match="require_gradients"):
        attune.Adam(some)
    model.require_gradients()
    adam = attune.Adam(some)
    model.loss([[2, 5, 6]], [5, 6, 3]).backward()
    model.require_gradients()  # gradients stay
    attune.Adam(model)
    assert all(p.grad is not None for p in some.values())
    before = {name: np.asarray(p).copy() for name, p in parameters.items()}
    assert adam.step(0.1) > 0
    for name, p in parameters.items():
        assert np.array_equal(np.asarray(p), before[name]) == (name not in some), name


def test_parameters_keep_their_model() -> None:
    weight = attune.Model.build(TINY_LANGUAGE_MODEL).parameters()
    gc.collect()
    assert all(np.isfinite(np.asarray(p)).all() for p in weight.values())


def test_a_computation_between_two_parts_of_a_model_has_gradients() -> None:
    """With a scale of NumPy between decoder and projection, gradients are those of finite differences."""
    model = attune.Model.build(TINY_LANGUAGE_MODEL)
    model.require_gradients()
    ids, labels, scale = [[2, 5, 6]], [5, 6, 3], 1.5

    def between(states: attune.Tensor) -> attune.Tensor:
        return attune.ops.record(
            "scale",
            [states],
            attune.Tensor(scale * np.asarray(states)),
            lambda dy: [attune.Tensor(np.float32(scale) * np.asarray(dy))],
        )

    def loss() -> attune.Loss:
        return attune.ops.cross_entropy(model.project(between(model.decode(ids).states)), labels)

    loss().backward()
    name, parameter = next((n, p) for n, p in model.parameters().items() if "linear_1.weight" in n)
    assert parameter.grad is not None, name
    grad = np.asarray(parameter.grad)
    place = np.unravel_index(np.abs(grad).argmax(), grad.shape)
    values = parameter.numpy()
    found = []
    for sign in (1, -1):
        values[place] += sign * 1e-2
        found.append(loss().item())
        values[place] -= sign * 1e-2
    assert grad[place] == pytest.approx((found[0] - found[1]) / 2e-2, rel=0.05)


def test_a_classifier_and_its_loss() -> None:
    model = attune.Model.build(TINY_CLASSIFIER)
    assert model.logits([[2, 5, 3], [2, 3]]).shape == (2, 2)
    adam = attune.Adam(model)
    for _ in range(80):
        adam.clear_gradients()
        loss = model.loss([[2, 5, 3], [2, 6, 3]], [0, 1])
        loss.backward()
        adam.step(0.01)
    assert loss.correct == 2


def test_inputs_that_do_not_fit_are_named() -> None:
    model = attune.Model.build({**TINY_CLASSIFIER, "token_types": 2})
    ids = [[1, 2, 3], [4]]
    assert model.encode(ids, type_ids=[[0, 0, 1], [0]]).states.shape == (4, 16)
    for types in ([[0], [0, 0, 0]], [[0, 0, 0]], [[0, 0, 0], [0, 0]]):
        with pytest.raises(attune.ShapeError, match="type_ids: expected"):
            model.encode(ids, type_ids=types)
    with pytest.raises(attune.DataError, match="type_ids: sequence 0 has type 7, the model has types 0 to 1"):
        model.encode(ids, type_ids=[[0, 0, 7], [0]])
    masked = {name: value for name, value in TINY_CLASSIFIER.items() if name != "labels"}
    model = attune.Model.build({**masked, "architecture": "encoder_masked_lm"})
    assert model.loss([[1, 2, 3]], [1], rows=[2]).item() > 0
    for row in (-1, 3):
        with pytest.raises(attune.DataError, match=f"rows: row {row} is not one of the 3 tokens"):
            model.loss([[1, 2, 3]], [1], rows=[row])


def test_a_folder_of_the_hub_opens_with_its_tokenizer(hub: Path) -> None:
    model = attune.Model(hub / "gpt2")
    assert model.tokenizer is not None
    ids = model.tokenizer.encode("the dog")
    logits = np.asarray(model.logits([ids]))
    assert logits.shape == (len(ids), model.config["vocab"])
    generator = attune.TextGenerator(hub / "gpt2")
    likeliest = generator.generate("the dog", temperature=0, max_tokens=1, special_tokens=True).tokens[0]
    assert generator.encode_prompt("the dog") == ids
    assert logits[-1].argmax() == likeliest


def test_a_changed_model_of_the_hub_is_saved(hub: Path, tmp_path: Path) -> None:
    model = attune.Model(hub / "gpt2")
    before = attune.TextGenerator(hub / "gpt2").generate("the dog", temperature=0, max_tokens=6)
    model.save(tmp_path / "same")
    saved = attune.TextGenerator(tmp_path / "same")
    assert saved.generate("the dog", temperature=0, max_tokens=6).tokens == before.tokens
    assert model.tokenizer is not None and saved.encode_prompt("the dog") == model.tokenizer.encode("the dog")
    name, parameter = next(iter(model.parameters().items()))
    parameter.numpy()[:] += 1
    model.save(tmp_path / "changed")
    assert np.array_equal(np.asarray(attune.Model(tmp_path / "changed").parameters()[name]), np.asarray(parameter))

    words = ["<pad>", "<unk>", "<s>", "</s>", *(f"w{i}" for i in range(4, model.config["vocab"]))]
    (tmp_path / "words.json").write_text(json.dumps({"type": "whitespace", "pieces": words}))
    others = {"words": attune.Tokenizer(tmp_path / "words.json"), "hub": attune.Tokenizer(hub / "gpt2")}
    for name, tokenizer in others.items():
        model.tokenizer = tokenizer
        model.save(tmp_path / name)
        settings = json.loads((tmp_path / name / "generation_config.json").read_text())
        assert settings.get("tokenizer_frames_texts", False) == (name == "hub")

    attune.Model(hub / "bert-classifier").save(tmp_path / "classifier")
    found = attune.Classifier(tmp_path / "classifier").classify("the dog").scores
    assert found == pytest.approx(attune.Classifier(hub / "bert-classifier").classify("the dog").scores)


def test_a_saved_model_writes_chats_as_the_loaded_one(hub: Path, tmp_path: Path) -> None:
    template = "{% for m in messages %}[{{ m.role }}: {{ m.content }}]{{ eos_token }}{% endfor %}"
    for name in ("with-file", "with-key"):
        shutil.copytree(hub / "gpt2", tmp_path / name)
    (tmp_path / "with-file" / "chat_template.jinja").write_text(template)
    (tmp_path / "with-file" / "additional_chat_templates").mkdir()
    (tmp_path / "with-file" / "additional_chat_templates" / "tool_use.jinja").write_text("{{ tools | length }} tools")
    settings = json.loads((tmp_path / "with-key" / "tokenizer_config.json").read_text())
    (tmp_path / "with-key" / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": template}))

    model = attune.Model.build(TINY_LANGUAGE_MODEL)
    words = ["<pad>", "<unk>", "<s>", "</s>", *(f"w{i}" for i in range(4, 20))]
    (tmp_path / "words.json").write_text(json.dumps({"type": "whitespace", "pieces": words}))
    model.tokenizer = attune.Tokenizer(tmp_path / "words.json")
    model.save(tmp_path / "own")
    (tmp_path / "own" / "chat_template.jinja").write_text(template)
    (tmp_path / "own" / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>"}))

    for name, end in (("with-file", "<|endoftext|>"), ("with-key", "<|endoftext|>"), ("own", "</s>")):
        attune.Model(tmp_path / name).save(tmp_path / "saved" / name)
        attune.quantize(tmp_path / name, tmp_path / "quantized" / name)
        for folder in (tmp_path, tmp_path / "saved", tmp_path / "quantized"):
            generator = attune.TextGenerator(folder / name)
            assert generator.apply_chat_template([{"role": "user", "content": "Hello"}]) == f"[user: Hello]{end}"
            with_tools = generator.apply_chat_template([{"role": "user", "content": "Hello"}], tools=[])
            assert with_tools == ("0 tools" if name == "with-file" else f"[user: Hello]{end}")


def test_what_an_architecture_lacks_is_refused() -> None:
    model = attune.Model.build(TINY_CLASSIFIER)
    with pytest.raises(attune.ConfigError, match="encoder_classifier"):
        model.decode([[1, 2]])
    with pytest.raises(attune.ConfigError, match="tokenizer"):
        model.save("nowhere")
    with pytest.raises(attune.ConfigError, match="d_modle"):
        attune.Model.build(TINY_CLASSIFIER | {"d_modle": 3})
