#!/usr/bin/env python3
"""Sentences from many clients at once: attune serve and servers of FastAPI with CTranslate2, in turn, with the same weights.

Each client sends one sentence, waits for its translation, and sends the next one. What counts is tokens for a second of
the server's processor time; `translate` is attune translate on the same text, in batches. Times of requests are told for
every number of clients.
"""

import argparse
import json
import platform
import resource
import sys
import tempfile
from pathlib import Path

from in_turn import (
    Failure,
    add_options,
    check_at_least_1,
    check_model_folders,
    check_options,
    numbers,
    quantized,
    run,
    spread,
)
from served import Load, Server, add_server_options, environment, read_answers, send, tell
from translate import with_search

OF_SERVE = ("attune", "attune-int8")
OF_TRANSLATE = ("translate", "translate-int8")
OF_FASTAPI = tuple(c + i for c in ("ctranslate2", "ctranslate2-workers", "one-by-one") for i in ("", "-int8"))
CONTENDERS = (*OF_SERVE, *OF_TRANSLATE, *OF_FASTAPI)
DEFAULT = ("attune", "translate", "ctranslate2", "ctranslate2-workers", "one-by-one")
RATE = "tokens_per_processor_s"
MOST_LINES = 1000


def is_int8(contender: str) -> bool:
    return contender.endswith("int8")


class Comparison:
    """The models and the text of a run, in `folder`."""

    def __init__(self, o: argparse.Namespace, folder: Path):
        self.o, self.folder = o, folder
        lines = [line for line in o.source.read_text(encoding="utf-8").splitlines() if line.strip()][: o.sentences]
        self.source, self.first = folder / "source", folder / "first"
        self.source.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        self.first.write_text(lines[0] + "\n", encoding="utf-8")
        self.lines = len(lines)
        self.models: dict[str, Path] = {}
        self.make_models()
        # A line has as many tokens as Attune's translation of it in the same precision.
        self.texts: dict[bool, list[str]] = {}
        self.tokens: dict[bool, list[int]] = {}
        for int8 in sorted({is_int8(c) for c in o.contenders}):
            self.translate_once(int8)

    def make_models(self) -> None:
        o, folder = self.o, self.folder
        self.models["attune"] = self.with_beam(o.model, folder / "attune")
        if any(is_int8(c) for c in o.contenders):
            int8 = o.int8 or quantized(o.attune, o.model, folder / "quantized")
            if int8 is None:
                raise Failure("--contenders: those in int8 need a build that quantizes")
            self.models["attune-int8"] = self.with_beam(int8, folder / "attune-int8")
        script = str(Path(__file__).with_name("to_ctranslate2.py"))
        for quantization in ("float32", "int8"):
            if any(c in OF_FASTAPI and is_int8(c) == (quantization == "int8") for c in o.contenders):
                to = folder / f"ctranslate2-{quantization}"
                run([o.python, script, str(o.model), str(to), "--quantization", quantization], {})
                self.models[f"ctranslate2-{quantization}"] = to

    def with_beam(self, model: Path, to: Path) -> Path:
        """The model with the search of this comparison as its own, for /translate has no fields for it."""
        path = with_search(self.o, model, to) / "generation_config.json"
        search = json.loads(path.read_text(encoding="utf-8")) | {"beam_size": self.o.beam_size}
        path.write_text(json.dumps(search), encoding="utf-8")
        return to

    def translate_once(self, int8: bool) -> None:
        contender, answers = "attune-int8" if int8 else "attune", self.folder / "once"
        with self.server(contender) as server:
            send(self.o.attune, server, Load("/v1/translate", self.source, {}, 64, 0), answers)
        found = [json.loads(body)["translations"][0] for body in read_answers(answers)]
        self.texts[int8] = [t["text"] for t in found]
        self.tokens[int8] = [sum(len(s["n_best"][0]["tokens"]) for s in t["sentences"]) for t in found]

    def server(self, contender: str) -> Server:
        o = self.o
        if contender in OF_SERVE:
            command = [o.attune, "serve", f"en-de={self.models[contender]}", "--port", "PORT"]
            return Server([*command, "--threads", str(o.threads)], "/ready", environment(o))
        of_type = "int8" if is_int8(contender) else "float32"
        script = str(Path(__file__).with_name("fastapi_translation.py"))
        command = [o.python, script, "--model", str(o.model), "--converted", str(self.models[f"ctranslate2-{of_type}"])]
        command += ["--compute-type", of_type, "--beam-size", str(o.beam_size), "--threads", str(o.threads)]
        command += ["--length-penalty", str(o.length_penalty), "--max-length", str(o.max_length), "--port", "PORT"]
        command += ["--one-by-one"] if contender.startswith("one-by-one") else []
        command += ["--workers"] if "workers" in contender else []
        return Server([*command, "--wait-ms", str(o.wait_ms)], "/health", environment(o))

    def measure(self, contender: str) -> dict[int, dict]:
        """By number of clients; of `translate` as if there were the one that is compared."""
        if contender in OF_TRANSLATE:
            return {self.o.compared: self.translate(contender)}
        with self.server(contender) as server:
            send(self.o.attune, server, self.load(min(64, self.o.compared), 64))  # so that what happens once has happened
            return {clients: self.serve(contender, server, clients) for clients in self.o.clients}

    def load(self, clients: int, requests: int) -> Load:
        return Load("/translate", self.source, {"source": "en", "target": "de"}, clients, requests)

    def serve(self, contender: str, server: Server, clients: int) -> dict:
        o = self.o
        requests = o.requests_alone if clients == 1 else max(self.lines, 8 * clients)
        answers = self.folder / "answers"
        result = send(o.attune, server, self.load(clients, requests), answers)
        texts = [json.loads(body)["translatedText"] for body in read_answers(answers)]
        tokens, same = self.compare(is_int8(contender), texts)
        processor_s = result["server"]["processor_s"]
        return {
            RATE: tokens / processor_s,
            "tokens_per_s": tokens / result["seconds"],
            "same": same,
            **{name: result["latency_s"][name] for name in ("p50", "p90", "p99")},
            "processor_s": processor_s,
            "client_processor_s": result["client_processor_s"],
            "seconds": result["seconds"],
            "requests": requests,
            "memory_mb": result["server"]["memory_bytes_at_end"] / 1e6,
        }

    def translate(self, contender: str) -> dict:
        """The processor time of the whole text less that of one line, in which loading is."""
        output = self.folder / "translated"
        whole = self.processor_s_of_translate(contender, self.source, output)
        start = self.processor_s_of_translate(contender, self.first, self.folder / "unused")
        texts = output.read_text(encoding="utf-8").splitlines()
        tokens, same = self.compare(is_int8(contender), texts)
        tokens -= self.tokens[is_int8(contender)][0]
        return {RATE: tokens / (whole - start), "same": same, "processor_s": whole - start, "start_s": start}

    def processor_s_of_translate(self, contender: str, source: Path, output: Path) -> float:
        o, model = self.o, self.models["attune-int8" if is_int8(contender) else "attune"]
        command = [o.attune, "translate", str(model), "--file", str(source), "--output", str(output)]
        command += ["--beam-size", str(o.beam_size), "--batch-size", "64", "--threads", str(o.threads)]

        def of_children() -> float:
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            return usage.ru_utime + usage.ru_stime

        before = of_children()
        run(command, environment(o))
        return of_children() - before

    def compare(self, int8: bool, texts: list[str]) -> tuple[int, float]:
        """Tokens, and the share that are Attune's translations."""
        tokens = sum(self.tokens[int8][i % self.lines] for i in range(len(texts)))
        same = sum(text == self.texts[int8][i % self.lines] for i, text in enumerate(texts))
        return tokens, same / len(texts)


def measure(o: argparse.Namespace, folder: Path) -> dict[str, list[dict[int, dict]]]:
    """By contender and round."""
    comparison = Comparison(o, folder)
    results: dict[str, list[dict[int, dict]]] = {c: [] for c in o.contenders}
    for number in range(1, o.rounds + 1):
        for c in o.contenders:
            results[c].append(comparison.measure(c))
            rate = results[c][-1][o.compared][RATE]
            tell(f"round {number}/{o.rounds}  {c:16} {rate:10.0f} tokens for a second of the processor")
    return results


def summarise(o: argparse.Namespace, results: dict[str, list[dict[int, dict]]]) -> dict:
    contenders = {}
    for c, rounds in results.items():
        contenders[c] = {}
        for clients in rounds[0]:
            names = rounds[0][clients].keys()
            contenders[c][clients] = {name: spread([r[clients][name] for r in rounds]) for name in names}
    ratios = {}
    for a in (c for c in OF_SERVE if c in results):
        for b in (c for c in o.contenders if c != a and is_int8(c) == is_int8(a)):
            pairs = [x[o.compared][RATE] / y[o.compared][RATE] for x, y in zip(results[a], results[b])]
            ratios[f"{a}/{b}"] = {**spread(pairs), "pairs": pairs}
    return {"contenders": contenders, "ratios": ratios, "runs": results}


def report(o: argparse.Namespace, summary: dict) -> str:
    def range_of(values: dict, digits: int) -> str:
        return f"{values['median']:.{digits}f} ({values['min']:.{digits}f} to {values['max']:.{digits}f})"

    lines = [f"{o.rounds} rounds, {o.threads} threads, beam {o.beam_size}; median (from least to most)", ""]
    lines.append(
        f"{'':18} {'clients':>7} {'tokens / processor s':>26} {'tokens / s':>24} {'p50 ms':>8} {'p99 ms':>8} {'same':>6} "
        f"{'MB':>6}"
    )
    for c, by_clients in summary["contenders"].items():
        for clients, of in by_clients.items():
            rate = range_of(of[RATE], 0)
            if c in OF_TRANSLATE:
                lines.append(f"{c:18} {'-':>7} {rate:>26} {'':24} {'':8} {'':8} {100 * of['same']['median']:>5.1f}%")
                continue
            p50, p99 = (1000 * of[name]["median"] for name in ("p50", "p99"))
            lines.append(
                f"{c:18} {clients:>7} {rate:>26} {range_of(of['tokens_per_s'], 0):>24} {p50:>8.1f} {p99:>8.1f} "
                f"{100 * of['same']['median']:>5.1f}% {of['memory_mb']['median']:>6.0f}"
            )
    lines += ["", f"tokens for a second of the processor, with {o.compared} clients:"]
    for pair, ratio in summary["ratios"].items():
        lines.append(f"{pair:34} {range_of(ratio, 2)}")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--model", type=Path, required=True, help="folder of an encoder-decoder")
    p.add_argument("--int8", type=Path, help="the same in int8; otherwise attune quantize makes it")
    p.add_argument("--source", type=Path, required=True, help="text, as the model reads it, a sentence a line")
    add_options(p, DEFAULT)
    p.add_argument("--clients", default="1,8,64,512", help="one after the other")
    p.add_argument("--compared", type=int, default=64, help="the number of clients of the ratios")
    p.add_argument("--sentences", type=int, default=MOST_LINES, help="the first ones of the text")
    p.add_argument("--requests-alone", type=int, default=100, help="of one client")
    p.add_argument("--beam-size", type=int, default=5)
    p.add_argument("--length-penalty", type=float, default=1.0)
    p.add_argument("--max-length", type=int, default=256, help="most tokens of a translation")
    p.add_argument("--wait-ms", type=float, default=5, help="of the queue before CTranslate2")
    add_server_options(p)
    o = p.parse_args()
    o.search = "matched"
    o.clients = numbers(p, o, "clients")
    if o.compared not in o.clients:
        p.error(f"--compared {o.compared}: is not one of --clients")
    check_at_least_1(p, o, ("sentences", "requests_alone", "rounds", "beam_size", "max_length", "threads"))
    if not o.source.is_file():
        p.error(f"--source {o.source}: no such file")
    check_model_folders(p, o, ("model", "int8"))
    check_options(p, o, needs_attune=True, known=CONTENDERS)
    return o


def main() -> int:
    o = parse_options()
    try:
        with tempfile.TemporaryDirectory() as folder:
            summary = summarise(o, measure(o, Path(folder)))
    except Failure as failure:
        print(f"serve_translation: {failure}", file=sys.stderr)
        return 1
    summary |= {"machine": platform.platform(), "threads": o.threads, "rounds": o.rounds, "beam_size": o.beam_size}
    print(json.dumps(summary, indent=2) if o.json else report(o, summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
