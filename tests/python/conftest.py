"""Models for the tests: small folders of the hub, and small models that are trained here within seconds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("ATTUNE_THREADS", "2")

import attune

HUB = Path(__file__).parent.parent / "hub" / "models"


@pytest.fixture(scope="session")
def hub() -> Path:
    return HUB


@pytest.fixture(scope="session")
def translator() -> attune.Translator:
    return attune.Translator(HUB / "marian")


@pytest.fixture(scope="session")
def generator() -> attune.TextGenerator:
    return attune.TextGenerator(HUB / "gpt2")


@pytest.fixture(scope="session")
def classifier() -> attune.Classifier:
    return attune.Classifier(HUB / "bert-classifier")


TINY_LANGUAGE_MODEL = {
    "architecture": "decoder_lm",
    "vocab": 20,
    "d_model": 16,
    "heads": 2,
    "layers": 2,
    "d_ff": 32,
    "context_length": 32,
    "dropout": 0.0,
}

TINY_TRANSLATOR = {
    "architecture": "encoder_decoder",
    "source_vocab": 20,
    "target_vocab": 24,
    "d_model": 16,
    "heads": 2,
    "layers": 1,
    "d_ff": 32,
    "dropout": 0.0,
}

TINY_CLASSIFIER = {
    "architecture": "encoder_classifier",
    "vocab": 20,
    "d_model": 16,
    "heads": 2,
    "layers": 1,
    "d_ff": 32,
    "labels": ["no", "yes"],
    "dropout": 0.0,
}
