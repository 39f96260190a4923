#!/usr/bin/env python3
"""Whether transformers computes with the folders of `attune export` what Attune computes.

  pip install ./python -r bench/compare/requirements.txt
  bench/compare/export_check.py                              # models that are trained here for a few steps
  bench/compare/export_check.py --models FOLDER              # and each folder of the hub in FOLDER

A preset, or one with experts or with latent attention, is trained by the command line with a tokenizer of its own, and
exported; logits are Attune's. A folder of the hub is exported in two ways, and logits are transformers' of the folder itself:

  copy      attune export FOLDER: the same tensors to the bit
  anew      attune export FOLDER --family ITS_OWN: by way of Attune's configuration and table of names

Logits differ by at most --tolerance times the largest magnitude. Ends with 1 where something differs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import attune
import numpy as np
import torch
import transformers
from safetensors import safe_open

SIZES = ["model.layers=2", "model.d_model=64", "model.heads=4", "model.d_ff=128"]
STEPS = ["train.steps=3", "schedule.warmup_steps=1", "train.batch_tokens=400", "train.accumulate=1"]
TEXTS = ["The old dog sleeps in the garden.", "  Two children see  a small house", "a", "Zürich, 24 Menschen & <b>"]


class Wrong(Exception):
    """What differs, in one line."""


def command(o: argparse.Namespace, *words: object) -> str:
    done = subprocess.run([o.attune, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Wrong(done.stderr.strip().splitlines()[-1])
    return done.stdout


def model_of(folder: Path):
    """The class that config.json names, in float32."""
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    model, info = getattr(transformers, name).from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    unloaded = [key for key in info["missing_keys"] if "embed_positions" not in key and "pooler" not in key]
    if unloaded or info["unexpected_keys"] or info["mismatched_keys"]:
        raise Wrong(f"transformers loads it differently: {info}")
    return model.eval()


def sequences(vocab: int) -> list[list[int]]:
    random = np.random.default_rng(1)
    return [random.integers(5, vocab, n).tolist() for n in (9, 1, 14)]


def logits_of(model, ids: list[list[int]]) -> np.ndarray:
    """Of all positions of each sequence, without padding; a model without a head has states."""
    rows = []
    with torch.no_grad():
        for one in ids:
            inputs = {"input_ids": torch.tensor([one])}
            if model.config.is_encoder_decoder:
                inputs["decoder_input_ids"] = inputs["input_ids"]
            output = model(**inputs)
            result = output["logits"] if "logits" in output else output["last_hidden_state"]
            rows.append(result[0].reshape(-1, result.shape[-1]).numpy())
    return np.concatenate(rows)


def logits_of_attune(folder: Path, ids: list[list[int]]) -> np.ndarray:
    model = attune.Model(folder)
    if model.architecture == "encoder_decoder":
        return np.asarray(model.logits(ids, ids))
    if model.architecture == "encoder":
        return np.asarray(model.encode(ids).states)
    return np.asarray(model.logits(ids))


def compare(found: np.ndarray, expected: np.ndarray, tolerance: float) -> str:
    if found.shape != expected.shape:
        raise Wrong(f"logits have the shape {found.shape}, expected {expected.shape}")
    difference = float(np.abs(found - expected).max() / np.abs(expected).max())
    if not difference <= tolerance:
        raise Wrong(f"logits differ by {difference:.1e} of the largest")
    return f"{difference:.1e}"


def tensors_of(folder: Path) -> dict[str, torch.Tensor]:
    tensors = {}
    for file in sorted(folder.glob("model*.safetensors")):
        with safe_open(file, "pt") as opened:
            tensors.update({name: opened.get_tensor(name) for name in opened.keys()})
    return tensors


def check_same_tensors(found: Path, expected: Path) -> None:
    ours, theirs = tensors_of(found), tensors_of(expected)
    if ours.keys() != theirs.keys():
        raise Wrong(f"other tensors: {sorted(ours.keys() ^ theirs.keys())[:3]}")
    for name, tensor in theirs.items():
        if tensor.dtype != ours[name].dtype or not torch.equal(tensor, ours[name]):
            raise Wrong(f"tensor {name} differs")


def check_tokenizer(folder: Path, own: Path) -> str:
    """The ids of texts: AutoTokenizer of the folder against Attune's own tokenizer."""
    theirs, ours = transformers.AutoTokenizer.from_pretrained(folder), attune.Tokenizer(own)
    for text in TEXTS:
        found = theirs(text, add_special_tokens=False)["input_ids"]
        expected = ours.encode(text)
        if list(found) != list(expected):
            raise Wrong(f"{type(theirs).__name__}: {text!r} is {found}, expected {list(expected)}")
    return type(theirs).__name__


def check_hub_folder(o: argparse.Namespace, folder: Path, work: Path) -> str:
    family = json.loads((folder / "config.json").read_text())["model_type"]
    original = model_of(folder)
    ids = sequences(original.config.vocab_size)
    expected = logits_of(original, ids)
    ways = {"copy": [folder], "anew": [folder, "--family", family]}
    results = []
    for way, words in ways.items():
        try:
            command(o, "export", *words, "--out", work / way)
            if way == "copy":
                check_same_tensors(work / way, folder)
            results.append(f"{way} {compare(logits_of(model_of(work / way), ids), expected, o.tolerance)}")
        except Wrong as wrong:
            raise Wrong(f"{way}: {wrong}") from None
    return ", ".join(results)


class Trained(NamedTuple):
    preset: str
    tokenizer: str
    settings: list[str] = []  # beside SIZES and STEPS


EXPERTS = "kind='experts',experts=6,experts_per_token=2,d_ff=48"
LATENT = "kind='latent',latent_dim=24,query_latent_dim=32,latent_norm=true,head_dim=16,value_dim=16,rotary_dim=8"
MODELS = {
    "llama-style-small": Trained("llama-style-small", "bpe"),
    "gpt2-124m": Trained("gpt2-124m", "unigram"),
    "gpt-char": Trained("gpt-char", "characters", ["model.context_length=256", "data.text_unit=line"]),
    "bert-tiny": Trained("bert-tiny", "unigram"),
    "bert-base": Trained("bert-base", "unigram"),
    "marian-base": Trained("marian-base", "unigram"),
    "experts": Trained("llama-style-small", "bpe", [f"model.feed_forward={{{EXPERTS}}}"]),
    "latent": Trained("llama-style-small", "bpe", [f"model.attention={{{LATENT}}}"]),
    "latent-experts": Trained(
        "llama-style-small",
        "bpe",
        [
            "model.layers=3",
            f"model.attention={{{LATENT}}}",
            f"model.feed_forward={{{EXPERTS},dense_layers=[0],shared_experts=1,scores='sigmoid',groups=3,top_groups=2,"
            "group_score='sum_of_two',choice_bias=true,weight_scale=2.5,balance_loss=0,bias_rate=0.1}",
        ],
    ),
}


def trained(o: argparse.Namespace, model: str, data: Path, out: Path) -> Path:
    preset, kind, more = MODELS[model]
    settings = [*SIZES, *STEPS, *more, f"data.tokenizer_type={kind}", *data_settings(preset, data)]
    if kind in ("bpe", "unigram"):
        settings.append("data.vocab_size=300")
    words = [word for setting in settings for word in ("--set", setting)]
    command(o, "train", "--preset", preset, "--out", out, *words)
    return out / "model"


def data_settings(preset: str, data: Path) -> list[str]:
    if preset.startswith("bert"):
        return [f"data.train_files={data / 'labelled.tsv'}"]
    if preset.startswith("marian"):
        return [f"data.train_source={data / 'text.en'}", f"data.train_target={data / 'text.de'}"]
    return [f"data.train_files={data / 'text.en'}"]


def make_data(o: argparse.Namespace, folder: Path) -> None:
    command(o, "demo-corpus", "--out", folder / "demo", "--train", "400")
    for side in ("en", "de"):
        (folder / f"text.{side}").write_text((folder / "demo" / f"train.{side}").read_text())
    lines = (folder / "text.en").read_text().splitlines()
    (folder / "labelled.tsv").write_text("".join(f"{'ab'[i % 2]}\t{line}\n" for i, line in enumerate(lines)))


def check_trained(o: argparse.Namespace, name: str, data: Path, work: Path) -> str:
    own = trained(o, name, data, work / "run")
    said = json.loads(command(o, "export", own, "--out", work / "out", "--json"))
    model = model_of(work / "out")
    ids = sequences(model.config.vocab_size)
    result = compare(logits_of(model, ids), logits_of_attune(own, ids), o.tolerance)
    tokenizer = check_tokenizer(work / "out", own)
    left_out = "; left out: " + ", ".join(said["left_out"]) if said["left_out"] else ""
    return f"{said['class']} {result}, {tokenizer}{left_out}"


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--models", type=Path, help="a folder of folders of the hub")
    p.add_argument("--trained", action="append", help=f"of {', '.join(MODELS)}; may be given several times [all]")
    p.add_argument("--tolerance", type=float, default=1e-4)
    p.add_argument("--attune", default="build/release/attune", help="the binary")
    return p.parse_args()


def main() -> int:
    o = parse_options()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folders = sorted(p.parent for p in o.models.glob("*/config.json")) if o.models else []
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        temporary = Path(name)
        make_data(o, temporary)
        checks = [(name, lambda work, n=name: check_trained(o, n, temporary, work)) for name in o.trained or MODELS]
        checks += [(folder.name, lambda work, f=folder: check_hub_folder(o, f, work)) for folder in folders]
        for i, (what, check) in enumerate(checks):
            work = temporary / str(i)
            work.mkdir()
            try:
                print(f"{what:<24} ok    {check(work)}", flush=True)
            except Exception as wrong:  # transformers has many
                failed += 1
                print(f"{what:<24} WRONG {str(wrong).splitlines()[0][:300]}", flush=True)
    print(f"{len(checks) - failed} of {len(checks)} are the same")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
