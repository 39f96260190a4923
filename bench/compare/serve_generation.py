#!/usr/bin/env python3
"""Streams of a language model for many clients: attune serve and llama.cpp's servers, in turn, with the same weights.

Prompts arrive at random; each is continued greedily by --tokens tokens, streamed, on one of --streams connections. A
prompt that finds all of them taken waits, and its time runs. The model is GPT-2's smallest with random weights, unless
--model is given.
"""

import argparse
import json
import platform
import random
import shutil
import sys
import tempfile
from pathlib import Path

from in_turn import (
    Failure,
    add_options,
    check_at_least_1,
    check_model_folders,
    check_options,
    leave_out,
    quantized,
    run,
    spread,
)
from served import Load, Server, add_server_options, environment, read_answers, send, tell

OF_ATTUNE = ("attune", "attune-int8")
OF_PYTHON = {"llama-cpp-python": "f32", "llama-cpp-python-q8": "q8_0"}
OF_SERVER = {"llama-server": "f32", "llama-server-q8": "q8_0"}
CONTENDERS = (*OF_ATTUNE, *OF_PYTHON, *OF_SERVER)
DEFAULT = ("attune", "llama-cpp-python", "attune-int8", "llama-cpp-python-q8")
RATE = "tokens_per_s"
CONTEXT = 1024  # of a stream


class Comparison:
    """The models and the prompts of a run, in `folder`."""

    def __init__(self, o: argparse.Namespace, folder: Path):
        self.o, self.folder = o, folder
        self.models: dict[str, Path] = {}
        self.make_models()
        self.prompts = folder / "prompts"
        self.prompts.write_text("".join(p + "\n" for p in self.draw_prompts()), encoding="utf-8")
        self.arrivals = o.rate or self.own_rate()

    def make_models(self) -> None:
        o, scripts = self.o, Path(__file__).parent
        model = o.model
        if model is None:
            model = self.folder / "random"
            script = str(scripts / "random_language_model.py")
            run([o.python, script, str(model), "--tokenizer", str(o.tokenizer)], {})
        self.models["attune"] = model
        if "attune-int8" in o.contenders:
            int8 = o.int8 or quantized(o.attune, model, self.folder / "int8")
            if int8 is None:
                leave_out(o, "attune-int8")
            else:
                self.models["attune-int8"] = int8
        for c, of_type in (OF_PYTHON | OF_SERVER).items():
            to = self.folder / f"{of_type}.gguf"
            if c in o.contenders and not to.exists():
                run([o.python, str(scripts / "to_gguf.py"), str(model), str(to), "--type", of_type], {})
            self.models[c] = to

    def draw_prompts(self) -> list[str]:
        o = self.o
        words = o.text.read_text(encoding="utf-8").split()
        if len(words) <= o.longest_prompt:
            raise Failure(f"{o.text}: expected more than {o.longest_prompt} words")
        draw, prompts = random.Random(o.seed), []
        for _ in range(o.requests):
            length = draw.randint(o.shortest_prompt, o.longest_prompt)
            begin = draw.randrange(len(words) - length)
            prompts.append(" ".join(words[begin : begin + length]))
        return prompts

    def own_rate(self) -> float:
        """The requests a second of the first contender when all are there at once."""
        c = self.o.contenders[0]
        with self.server(c) as server:
            return send(self.o.attune, server, self.load(c, 0))["requests_per_s"]

    def server(self, c: str) -> Server:
        o, model, threads = self.o, str(self.models[c]), str(self.o.threads)
        if c in OF_ATTUNE:
            command = [o.attune, "serve", f"lm={model}", "--port", "PORT", "--threads", threads]
            return Server(command, "/ready", environment(o))
        if c in OF_PYTHON:
            command = [o.python, "-m", "llama_cpp.server", "--model", model, "--port", "PORT", "--n_threads", threads]
            command += ["--n_threads_batch", threads, "--n_ctx", str(CONTEXT), "--interrupt_requests", "false"]
            return Server([*command, "--verbose", "false"], "/v1/models", environment(o))
        command = [o.llama_server, "--model", model, "--port", "PORT", "--threads", threads]
        command += ["--ctx-size", str(CONTEXT * o.streams), "--parallel", str(o.streams), "--no-webui"]
        return Server(command, "/health", environment(o))

    def load(self, c: str, rate: float) -> Load:
        o = self.o
        fields = {"max_tokens": o.tokens, "temperature": 0, "stream": True}
        if c not in OF_PYTHON:
            fields["stream_options"] = {"include_usage": True}
        return Load("/v1/completions", self.prompts, fields, o.streams, o.requests, rate, o.seed)

    def measure(self, c: str, number: int) -> dict:
        o, answers = self.o, self.folder / "answers"
        with self.server(c) as server:
            send(o.attune, server, self.load(c, 0)._replace(requests=2))  # so that what happens once has happened
            result = send(o.attune, server, self.load(c, self.arrivals)._replace(seed=o.seed + number), answers)
        texts = [self.text_of(c, body) for body in read_answers(answers)]
        tokens = o.tokens * o.requests  # all go on to the end
        return {
            RATE: tokens / result["seconds"],
            "tokens_per_processor_s": tokens / result["server"]["processor_s"],
            **{f"first_{name}": result["first_token_s"][name] for name in ("p50", "p90", "p99")},
            **{name: result["latency_s"][name] for name in ("p50", "p90", "p99")},
            "seconds": result["seconds"],
            "client_processor_s": result["client_processor_s"],
            "memory_mb": result["server"]["memory_bytes_at_end"] / 1e6,
            "texts": texts,
        }

    def text_of(self, c: str, body: str) -> str:
        """Throws Failure where a text has ended before it has all its tokens."""
        events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]
        choices = [choice for event in events for choice in event.get("choices", [])]
        if not choices or choices[-1].get("finish_reason") != "length":
            raise Failure(f"{c}: a text has ended early: {body[-200:]!r}")
        return "".join(choice["text"] for choice in choices)


def measure(o: argparse.Namespace, folder: Path) -> tuple[float, dict[str, list[dict]]]:
    """Requests a second, and the results by contender and round."""
    comparison = Comparison(o, folder)
    tell(f"{comparison.arrivals:.2f} requests a second")
    results: dict[str, list[dict]] = {c: [] for c in o.contenders}
    for number in range(1, o.rounds + 1):
        for c in o.contenders:
            r = comparison.measure(c, number)
            results[c].append(r)
            tell(f"round {number}/{o.rounds}  {c:20} {r[RATE]:8.1f} tokens/s, first token {r['first_p50']:.2f} s")
    return comparison.arrivals, results


def summarise(arrivals: float, results: dict[str, list[dict]]) -> dict:
    first = next(iter(results.values()))[0]["texts"]
    contenders = {}
    for c, rounds in results.items():
        same = sum(a == b for a, b in zip(first, rounds[0].pop("texts"))) / len(first)
        for r in rounds[1:]:
            del r["texts"]
        contenders[c] = {name: spread([r[name] for r in rounds]) for name in rounds[0]} | {"same": same}
    ratios = {}
    for a in (c for c in OF_ATTUNE if c in results):
        for b in (c for c in results if c not in OF_ATTUNE and c.endswith("q8") == a.endswith("int8")):
            pairs = [x[RATE] / y[RATE] for x, y in zip(results[a], results[b])]
            waits = [y["first_p50"] / x["first_p50"] for x, y in zip(results[a], results[b])]
            ratios[f"{a}/{b}"] = {RATE: spread(pairs), "first_p50": spread(waits)}
    return {"arrivals_per_s": arrivals, "contenders": contenders, "ratios": ratios, "runs": results}


def report(o: argparse.Namespace, summary: dict) -> str:
    def range_of(values: dict, digits: int) -> str:
        return f"{values['median']:.{digits}f} ({values['min']:.{digits}f} to {values['max']:.{digits}f})"

    lines = [
        f"{o.requests} prompts of {o.shortest_prompt} to {o.longest_prompt} words, {o.tokens} tokens each, "
        f"{summary['arrivals_per_s']:.2f} a second at random, {o.streams} streams, {o.threads} threads, {o.rounds} rounds; "
        "median (from least to most)",
        "",
        f"{'':20} {'tokens/s':>24} {'tokens / processor s':>24} {'first token, p50 s':>24} {'p99 s':>7} {'last, p50 s':>11} "
        f"{'same':>6} {'MB':>6}",
    ]
    for c, of in summary["contenders"].items():
        lines.append(
            f"{c:20} {range_of(of[RATE], 1):>24} {range_of(of['tokens_per_processor_s'], 1):>24} "
            f"{range_of(of['first_p50'], 3):>24} {of['first_p99']['median']:>7.2f} {of['p50']['median']:>11.2f} "
            f"{100 * of['same']:>5.1f}% {of['memory_mb']['median']:>6.0f}"
        )
    lines += ["", f"{'':34} {'tokens/s':>24} {'shorter wait for the first':>28}"]
    for pair, of in summary["ratios"].items():
        lines.append(f"{pair:34} {range_of(of[RATE], 2):>24} {range_of(of['first_p50'], 2):>28}")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(p, DEFAULT)
    p.add_argument("--tokenizer", type=Path, required=True, help="folder with GPT-2's tokenizer.json")
    p.add_argument("--text", type=Path, required=True, help="of which prompts are cut")
    p.add_argument("--model", type=Path, help="folder of a model like GPT-2 with that tokenizer")
    p.add_argument("--int8", type=Path, help="the same in int8; otherwise attune quantize makes it")
    p.add_argument("--llama-server", default="llama-server", help="llama.cpp's program, for the contenders of that name")
    p.add_argument("--streams", type=int, default=16)
    p.add_argument("--requests", type=int, default=64)
    p.add_argument("--rate", type=float, default=0.0, help="requests a second; 0: what the first contender can do")
    p.add_argument("--tokens", type=int, default=64, help="of each continuation")
    p.add_argument("--shortest-prompt", type=int, default=16, help="words")
    p.add_argument("--longest-prompt", type=int, default=200, help="words")
    p.add_argument("--seed", type=int, default=1, help="of prompts and arrivals")
    add_server_options(p)
    o = p.parse_args()
    check_at_least_1(p, o, ("streams", "requests", "tokens", "shortest_prompt", "rounds", "threads"))
    if o.longest_prompt < o.shortest_prompt:
        p.error("--longest-prompt: is below --shortest-prompt")
    if not (o.tokenizer / "tokenizer.json").is_file():
        p.error(f"--tokenizer {o.tokenizer}: has no tokenizer.json")
    if not o.text.is_file():
        p.error(f"--text {o.text}: no such file")
    check_model_folders(p, o, ("model", "int8"))
    check_options(p, o, needs_attune=True, known=CONTENDERS)
    if set(OF_SERVER) & set(o.contenders) and shutil.which(o.llama_server) is None:
        p.error(f"--llama-server {o.llama_server}: no such program")
    return o


def main() -> int:
    o = parse_options()
    try:
        with tempfile.TemporaryDirectory() as folder:
            summary = summarise(*measure(o, Path(folder)))
    except Failure as failure:
        print(f"serve_generation: {failure}", file=sys.stderr)
        return 1
    summary |= {"machine": platform.platform(), "threads": o.threads, "streams": o.streams, "tokens": o.tokens}
    print(json.dumps(summary, indent=2) if o.json else report(o, summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
