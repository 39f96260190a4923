#!/usr/bin/env python3
"""Whether PEFT computes with the adapters that Attune trains what Attune computes.

  pip install peft -r bench/compare/requirements.txt
  bench/compare/adapter_check.py FOLDER...          # language models of the hub

Each model learns the first lines of a text with adapters of all projections of its layers, for 20 steps. PEFT then reads
RUN/model/adapter over the model, and transformers the folder that `attune export RUN/model` writes, in whose weights the
adapters are. Logits differ by at most --tolerance times the largest magnitude; those without the adapter by far more.
Ends with 1 where something differs.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import peft
import torch
import transformers

SETTINGS = [
    "data.text_unit=line",
    "train.steps=20",
    "train.batch_tokens=64",
    "schedule.kind=constant",
    "schedule.learning_rate=1e-2",
    "schedule.warmup_steps=0",
    "lora.rank=4",
    'lora.targets=["all"]',
]
TEXT = "The old dog sleeps in the garden.\nTwo children see a small house.\nA man rides a horse.\n"


def command(o: argparse.Namespace, *words: object) -> None:
    done = subprocess.run([o.attune, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])


def model_of(folder: Path):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def check(o: argparse.Namespace, folder: Path, work: Path) -> str:
    (work / "text").write_text(TEXT)
    settings = [*SETTINGS, f"train.initialize_from={folder}", f"data.train_files={work / 'text'}"]
    command(o, "train", "--out", work / "run", *[word for setting in settings for word in ("--set", setting)])
    command(o, "export", work / "run/model", "--out", work / "merged")
    model = model_of(folder)
    ids = torch.tensor([np.random.default_rng(1).integers(5, model.config.vocab_size, 12).tolist()])
    with torch.no_grad():
        before = model(ids).logits
        found = peft.PeftModel.from_pretrained(model, work / "run/model/adapter").eval()(ids).logits
        expected = model_of(work / "merged")(ids).logits
    largest = expected.abs().max().item()
    difference = (found - expected).abs().max().item() / largest
    changed = (before - expected).abs().max().item() / largest
    if not difference <= o.tolerance < changed:
        raise RuntimeError(f"logits differ by {difference:.1e} of the largest, without the adapter by {changed:.1e}")
    return f"{difference:.1e}, without the adapter {changed:.1e}"


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
