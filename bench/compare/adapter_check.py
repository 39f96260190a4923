#!/usr/bin/env python3
"""Whether PEFT computes with the adapters that Attune trains what Attune computes.

  pip install peft -r bench/compare/requirements.txt
  bench/compare/adapter_check.py FOLDER...          # models of the hub

Language models learn the first lines of a text, encoder-decoders its translation and classifiers two labels that they did
not have, whose head is new: 20 steps, with adapters of all projections of the layers. PEFT then reads RUN/model/adapter
over the model, in the class that its config.json names, and transformers the folder that `attune export RUN/model` writes,
in whose weights the adapters are. Logits differ by at most --tolerance times the largest magnitude; those without the
adapter by far more. Ends with 1 where something differs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import peft
import torch
import transformers

SETTINGS = [
    "train.steps=20",
    "train.batch_tokens=64",
    "schedule.kind=constant",
    "schedule.learning_rate=1e-2",
    "schedule.warmup_steps=0",
    "lora.rank=4",
    'lora.targets=["all"]',
]
TEXT = "The old dog sleeps in the garden.\nTwo children see a small house.\nA man rides a horse.\n"
TRANSLATION = "Der alte Hund schläft im Garten.\nZwei Kinder sehen ein kleines Haus.\nEin Mann reitet ein Pferd.\n"
LABELS = ["yes", "no"]


def command(o: argparse.Namespace, *words: object) -> None:
    done = subprocess.run([o.attune, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])


def class_of(folder: Path):
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    return getattr(transformers, name)


def is_classifier(folder: Path) -> bool:
    return class_of(folder).__name__.endswith("ForSequenceClassification")


def model_of(folder: Path):
    """In float32; a classifier has as many labels as are learned, with a new head where its own has others."""
    options = {"num_labels": len(LABELS), "ignore_mismatched_sizes": True} if is_classifier(folder) else {}
    return class_of(folder).from_pretrained(folder, dtype=torch.float32, **options).eval()


def data_settings(folder: Path, work: Path) -> list[str]:
    if is_classifier(folder):
        lines = [f"{LABELS[i % 2]}\t{line}\n" for i, line in enumerate(TEXT.splitlines())]
        (work / "train.tsv").write_text("".join(lines))
        return [f"data.train_files={work / 'train.tsv'}", f"model.labels={json.dumps(LABELS)}"]
    (work / "text.txt").write_text(TEXT)
    if class_of(folder).config_class().is_encoder_decoder:
        (work / "translation.txt").write_text(TRANSLATION)
        return [f"data.train_source={work / 'text.txt'}", f"data.train_target={work / 'translation.txt'}"]
    return [f"data.train_files={work / 'text.txt'}", "data.text_unit=line"]


def logits_of(model) -> torch.Tensor:
    ids = torch.tensor([np.random.default_rng(1).integers(5, model.config.vocab_size, 12).tolist()])
    inputs = {"input_ids": ids, "decoder_input_ids": ids} if model.config.is_encoder_decoder else {"input_ids": ids}
    with torch.no_grad():
        return model(**inputs).logits


def check(o: argparse.Namespace, folder: Path, work: Path) -> str:
    settings = [*SETTINGS, *data_settings(folder, work), f"train.initialize_from={folder}"]
    command(o, "train", "--out", work / "run", *[word for setting in settings for word in ("--set", setting)])
    command(o, "export", work / "run/model", "--out", work / "merged")
    model = model_of(folder)
    before = logits_of(model)
    found = logits_of(peft.PeftModel.from_pretrained(model, work / "run/model/adapter").eval())
    expected = logits_of(model_of(work / "merged"))
    kept = expected > -1e3  # Marian's final_logits_bias keeps a token out
    before, found, expected = before[kept], found[kept], expected[kept]
    largest = expected.abs().max().item()
    difference = (found - expected).abs().max().item() / largest
    changed = (before - expected).abs().max().item() / largest
    if not difference <= o.tolerance < changed:
        raise RuntimeError(f"logits differ by {difference:.1e} of the largest, without the adapter by {changed:.1e}")
    task = json.loads((work / "run/model/adapter/adapter_config.json").read_text())["task_type"]
    return f"{task:<12} {difference:.1e}, without the adapter {changed:.1e}"


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folders", type=Path, nargs="+", help="folders of the hub")
    p.add_argument("--tolerance", type=float, default=1e-5)
    p.add_argument("--attune", default="build/release/attune", help="the binary")
    o = p.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    failed = 0
    for folder in o.folders:
        with tempfile.TemporaryDirectory() as work:
            try:
                print(f"{folder.name:<24} ok    {check(o, folder, Path(work))}", flush=True)
            except Exception as wrong:  # transformers has many
                failed += 1
                print(f"{folder.name:<24} WRONG {str(wrong).splitlines()[0][:300]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
