#!/usr/bin/env python3
"""Target tokens per second of translating a text: Attune, CTranslate2 and PyTorch in turn, with the same weights.

Attune runs as the program and as its Python package.
What is timed is encoding and searching, and reading tokens from text in Attune; loading is not. All search alike: the
log probability divided by length^alpha, until as many outputs as the beam are finished. Attune's own rule is --search
own.
"""

import argparse
import itertools
import json
import platform
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from in_turn import (
    Failure,
    add_options,
    check_at_least_1,
    check_model_folders,
    check_options,
    environments,
    leave_out,
    numbers,
    quantized,
    result_of,
    run,
    spread,
)

RATE = "target_tokens_per_s"
OF_ATTUNE = ("attune", "attune-int8")
OF_PYTHON = ("attune-python", "attune-python-int8")
OF_PYTORCH = ("pytorch", "pytorch-tuned")
OF_CTRANSLATE2 = ("ctranslate2", "ctranslate2-workers", "ctranslate2-int8", "ctranslate2-workers-int8")
CONTENDERS = (*OF_ATTUNE, *OF_PYTHON, *OF_CTRANSLATE2, *OF_PYTORCH)
DEFAULT = ("attune", "ctranslate2", "attune-int8", "ctranslate2-int8", "pytorch-tuned")
# Which of the others each of Attune's is compared with; attune-int8 with attune as well.
RIVALS = {
    "attune": ("ctranslate2", "ctranslate2-workers", *OF_PYTORCH),
    "attune-int8": ("ctranslate2-int8", "ctranslate2-workers-int8", "ctranslate2", "attune"),
    "attune-python": ("attune", "ctranslate2"),
    "attune-python-int8": ("attune-int8", "ctranslate2-int8"),
}
MATCHED_SEARCH = {  # as CTranslate2 searches
    "length_normalization": "power",
    "early_stopping": "first",
    "max_length_ratio": 0,
    "coverage_penalty": 0,
    "beam_groups": 1,
    "min_length": 0,
    "no_repeat_ngram_size": 0,
    "repetition_penalty": 1,
}


class Setting(NamedTuple):
    threads: int
    batch: int
    beam: int

    def title(self) -> str:
        return f"{self.threads} threads, batch {self.batch}, {'greedy' if self.beam == 1 else f'beam {self.beam}'}"


def settings_of(o: argparse.Namespace) -> list[Setting]:
    return [Setting(*s) for s in itertools.product(o.threads, o.batch_sizes, o.beam_sizes)]


def with_search(o: argparse.Namespace, model: Path, to: Path) -> Path:
    """The folder with links to the model's files, and a search of its own."""
    to.mkdir()
    for file in model.iterdir():
        if file.name != "generation_config.json":
            (to / file.name).symlink_to(file.resolve())
    given = model / "generation_config.json"
    search = json.loads(given.read_text(encoding="utf-8")) if given.exists() else {}
    if o.search == "matched":
        search |= MATCHED_SEARCH
    search |= {"max_length": o.max_length, "length_penalty": o.length_penalty}
    (to / "generation_config.json").write_text(json.dumps(search), encoding="utf-8")
    return to


class Comparison:
    """The models and texts of a run, in `folder`."""

    def __init__(self, o: argparse.Namespace, folder: Path):
        self.o, self.folder = o, folder
        self.models: dict[str, Path] = {}
        self.make_models()
        self.environment = environments(argparse.Namespace(threads=1, device="cpu", contenders=o.contenders), folder)
        self.texts = {batch: self.text(batch) for batch in o.batch_sizes}

    def make_models(self) -> None:
        o = self.o
        self.models["attune"] = with_search(o, o.model, self.folder / "attune")
        if "attune-int8" in o.contenders or "attune-python-int8" in o.contenders:
            int8 = o.int8 or quantized(o.attune, o.model, self.folder / "quantized")
            if int8 is None:
                for contender in {"attune-int8", "attune-python-int8"}.intersection(o.contenders):
                    leave_out(o, contender)
            else:
                self.models["attune-int8"] = with_search(o, int8, self.folder / "attune-int8")
        self.models |= {c: self.models[c.replace("-python", "")] for c in OF_PYTHON if c in o.contenders}
        script = str(Path(__file__).with_name("to_ctranslate2.py"))
        for quantization in ("float32", "int8"):
            of_type = [c for c in o.contenders if c in OF_CTRANSLATE2 and c.endswith("int8") == (quantization == "int8")]
            if of_type:
                to = self.folder / f"ctranslate2-{quantization}"
                run([o.python, script, str(o.model), str(to), "--quantization", quantization], {})
                self.models |= dict.fromkeys(of_type, to)

    def text(self, batch: int) -> tuple[Path, Path]:
        """Source and reference; a batch of one gets fewer sentences."""
        sentences = self.o.sentences if batch > 1 else self.o.sentences_alone
        files = []
        for name, path in (("source", self.o.source), ("reference", self.o.reference)):
            lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
            files.append(self.folder / f"{name}.{batch}")
            files[-1].write_text("".join(line + "\n" for line in lines[:sentences]), encoding="utf-8")
        return files[0], files[1]

    def command(self, contender: str, s: Setting, output: Path) -> list[str]:
        o, (source, reference) = self.o, self.texts[s.batch]
        size = ["--beam-size", str(s.beam), "--batch-size", str(s.batch), "--threads", str(s.threads)]
        if contender in OF_ATTUNE:
            text = ["--source", str(source), "--reference", str(reference), "--output", str(output)]
            tokenizer = ["--bleu-tokenizer", o.bleu_tokenizer] if o.bleu_tokenizer else []
            return [o.attune, "evaluate", str(self.models[contender]), *text, *size, *tokenizer, "--json"]
        work = ["--model", str(o.model), "--source", str(source), "--output", str(output), *size]
        if contender in OF_PYTHON:
            script = str(Path(__file__).with_name("attune_decode.py"))
            return [o.python, script, "--weights", str(self.models[contender]), *work]
        work += ["--length-penalty", str(o.length_penalty), "--max-length", str(o.max_length)]
        if contender in OF_PYTORCH:
            return [o.python, str(Path(__file__).with_name("pytorch_decode.py")), *work]
        of_type = ["--compute-type", "int8" if contender.endswith("int8") else "float32"]
        of_type += ["--workers"] if "workers" in contender else []
        script = str(Path(__file__).with_name("ctranslate2_decode.py"))
        return [o.python, script, "--converted", str(self.models[contender]), *of_type, *work]

    def measure(self, contender: str, s: Setting) -> dict:
        output = self.folder / f"{contender}.txt"
        threads = 1 if "workers" in contender else s.threads
        environment = self.environment[contender] | {"OMP_NUM_THREADS": str(threads)}
        finished = run(self.command(contender, s, output), environment)
        if contender in OF_ATTUNE:
            result = result_of(contender, finished.output, "tokens_per_second")
            result[RATE], result["seconds"] = result["tokens_per_second"], result["translation_seconds"]
        else:
            result = result_of(contender, finished.output, RATE)
        return result

    def once(self, contender: str, s: Setting) -> dict:
        """What is the same in every round: the last one's text, its BLEU, and Attune's memory without a reference."""
        source, reference = self.texts[s.batch]
        output = self.folder / f"{contender}.txt"
        score = [self.o.attune, "evaluate", "--hypotheses", str(output), "--reference", str(reference), "--json"]
        if self.o.bleu_tokenizer:
            score += ["--bleu-tokenizer", self.o.bleu_tokenizer]
        bleu = json.loads(run(score, {}).output)["bleu"]
        found = {"bleu": bleu, "translations": output.read_text(encoding="utf-8").split("\n")[:-1]}
        if contender in OF_ATTUNE:
            again = [self.o.attune, "translate", str(self.models[contender]), "--file", str(source)]
            size = ["--beam-size", str(s.beam), "--batch-size", str(s.batch), "--threads", str(s.threads)]
            finished = run([*again, *size, "--output", str(self.folder / "again")], {})
            if (self.folder / "again").read_bytes() != output.read_bytes():
                raise Failure(f"{contender}: attune translate and attune evaluate differ for {s.title()}")
            found["peak_memory_mb"] = finished.peak_memory_mb
        return found


def measure(o: argparse.Namespace, folder: Path) -> dict[Setting, dict[str, dict]]:
    """By setting and contender."""
    comparison = Comparison(o, folder)
    results = {}
    for s in settings_of(o):
        runs: dict[str, list[dict]] = {c: [] for c in o.contenders}
        for number in range(1, o.rounds + 1):
            for c in o.contenders:
                runs[c].append(comparison.measure(c, s))
                rate = runs[c][-1][RATE]
                print(f"{s.title()}  round {number}/{o.rounds}  {c:16} {rate:10.0f} tokens/s", file=sys.stderr)
        results[s] = {c: {"runs": runs[c], **comparison.once(c, s)} for c in o.contenders}
    return results


def summarise(results: dict[Setting, dict[str, dict]]) -> list[dict]:
    rows = []
    for s, of_setting in results.items():
        first = of_setting[next(iter(of_setting))]["translations"]
        row = {**s._asdict(), "contenders": {}, "ratios": {}}
        for c, found in of_setting.items():
            same = sum(a == b for a, b in zip(first, found["translations"])) / len(first)
            memory = found.get("peak_memory_mb") or statistics.median(r["peak_memory_mb"] for r in found["runs"])
            imports = statistics.median(r.get("import_memory_mb", 0) for r in found["runs"])
            row["contenders"][c] = {
                RATE: spread([r[RATE] for r in found["runs"]]),
                "output_tokens": found["runs"][-1]["output_tokens"],
                "bleu": found["bleu"],
                "same_as_first": same,
                "peak_memory_mb": memory,
                "import_memory_mb": imports,
                "runs": found["runs"],
            }
        for c in (c for c in RIVALS if c in of_setting):
            for rival in (r for r in RIVALS[c] if r in of_setting):
                pairs = [a[RATE] / b[RATE] for a, b in zip(of_setting[c]["runs"], of_setting[rival]["runs"])]
                row["ratios"][f"{c}/{rival}"] = {**spread(pairs), "pairs": pairs}
        rows.append(row)
    return rows


def report(o: argparse.Namespace, rows: list[dict]) -> str:
    texts = f"{o.sentences} sentences, {o.sentences_alone} where the batch is 1"
    lines = [f"{o.rounds} rounds, {texts}; target tokens/s: median (from least to most)"]
    for row in rows:
        setting = Setting(row["threads"], row["batch"], row["beam"])
        lines.append("")
        lines.append(f"{setting.title():34} {'tokens/s':>24} {'BLEU':>6} {'same':>6} {'peak MB':>8} {'import MB':>9}")
        for c, of in row["contenders"].items():
            rate = of[RATE]
            speed = f"{rate['median']:.0f} ({rate['min']:.0f} to {rate['max']:.0f})"
            lines.append(
                f"{c:34} {speed:>24} {of['bleu']:>6.2f} {100 * of['same_as_first']:>5.1f}% "
                f"{of['peak_memory_mb']:>8.0f} {of['import_memory_mb']:>9.0f}"
            )
        for pair, ratio in row["ratios"].items():
            lines.append(f"{pair:34} {ratio['median']:>8.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--model", type=Path, required=True, help="folder of an encoder-decoder")
    p.add_argument("--int8", type=Path, help="the same in int8; otherwise attune quantize makes it")
    p.add_argument("--source", type=Path, required=True, help="text, as the model reads it")
    p.add_argument("--reference", type=Path, required=True, help="its translation, line by line")
    add_options(p, DEFAULT, thread_counts="1,2")
    p.add_argument("--batch-sizes", default="1,64")
    p.add_argument("--beam-sizes", default="1,5", help="1: greedy")
    p.add_argument("--sentences", type=int, default=500, help="the first ones of the text")
    p.add_argument("--sentences-alone", type=int, default=100, help="the same where the batch is 1")
    p.add_argument("--length-penalty", type=float, default=1.0)
    p.add_argument("--max-length", type=int, default=256, help="most tokens of a translation")
    p.add_argument("--search", choices=["matched", "own"], default="matched", help="Attune's rules; own: the model's")
    p.add_argument("--bleu-tokenizer", choices=["none", "13a"], default="none")
    p.add_argument("--rounds", type=int, default=7)
    o = p.parse_args()
    for name in ("threads", "batch_sizes", "beam_sizes"):
        setattr(o, name, numbers(p, o, name))
    check_at_least_1(p, o, ("sentences", "sentences_alone", "rounds", "max_length"))
    for name in ("source", "reference"):
        if not getattr(o, name).is_file():
            p.error(f"--{name} {getattr(o, name)}: no such file")
    check_model_folders(p, o, ("model", "int8"))
    check_options(p, o, needs_attune=True, known=CONTENDERS)
    return o


def main() -> int:
    o = parse_options()
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = summarise(measure(o, Path(folder)))
    except Failure as failure:
        print(f"translate: {failure}", file=sys.stderr)
        return 1
    names = ("rounds", "sentences", "sentences_alone", "length_penalty", "max_length", "search")
    settings = {name: getattr(o, name) for name in names} | {"machine": platform.platform()}
    print(json.dumps(settings | {"settings": rows}, indent=2) if o.json else report(o, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
