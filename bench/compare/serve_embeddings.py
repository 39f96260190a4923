#!/usr/bin/env python3
"""Embeddings of texts from many clients at once: attune serve and servers of FastAPI with ONNX Runtime, in turn.

All have the same weights in float32, those of a sentence embedder of the Hugging Face hub like all-MiniLM-L6-v2. Each
client sends one text to /v1/embeddings, waits for its vector, and sends the next one.
"""

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path

import numpy as np

from in_turn import Failure, add_options, check_at_least_1, check_model_folders, check_options, numbers, run, spread
from model_folder import read_json
from served import Load, Server, add_server_options, environment, read_answers, send, tell

CONTENDERS = ("attune", "onnxruntime", "one-by-one")
RATE = "texts_per_s"
PROCESSOR_RATE = "texts_per_processor_s"


class Comparison:
    def __init__(self, o: argparse.Namespace, folder: Path):
        self.o, self.folder = o, folder
        self.source = folder / "source"
        lines = [line for line in o.text.read_text(encoding="utf-8").splitlines() if line.strip()][: o.texts]
        self.source.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        self.lines = len(lines)
        self.onnx = folder / "model.onnx"
        if set(o.contenders) - {"attune"}:
            run([o.python, str(Path(__file__).with_name("to_onnx.py")), str(o.model), str(self.onnx)], {})
        settings = o.model / "sentence_bert_config.json"
        self.max_tokens = read_json(settings).get("max_seq_length", 512) if settings.is_file() else 512

    def server(self, contender: str) -> Server:
        o = self.o
        if contender == "attune":
            command = [o.attune, "serve", f"embed={o.model}", "--port", "PORT", "--threads", str(o.threads)]
            return Server(command, "/ready", environment(o))
        script = str(Path(__file__).with_name("fastapi_embeddings.py"))
        command = [o.python, script, "--onnx", str(self.onnx), "--tokenizer", str(o.model / "tokenizer.json")]
        command += ["--max-tokens", str(self.max_tokens), "--threads", str(o.threads), "--wait-ms", str(o.wait_ms)]
        command += ["--one-by-one"] if contender == "one-by-one" else []
        command += ["--spinning"] if o.wait_policy == "active" else []
        return Server([*command, "--port", "PORT"], "/health", environment(o))

    def measure(self, contender: str) -> dict[int, dict]:
        """By number of clients."""
        with self.server(contender) as server:
            self.send(server, min(64, max(self.o.clients)), 64)  # so that what happens once has happened
            return {clients: self.with_clients(server, clients) for clients in self.o.clients}

    def send(self, server: Server, clients: int, requests: int) -> dict:
        load = Load("/v1/embeddings", self.source, {}, clients, requests)
        return send(self.o.attune, server, load, self.folder / "answers")

    def with_clients(self, server: Server, clients: int) -> dict:
        requests = self.o.requests_alone if clients == 1 else max(self.lines, 8 * clients)
        result = self.send(server, clients, requests)
        processor_s = result["server"]["processor_s"]
        return {
            RATE: requests / result["seconds"],
            PROCESSOR_RATE: requests / processor_s,
            **{name: result["latency_s"][name] for name in ("p50", "p90", "p99")},
            "processor_s": processor_s,
            "client_processor_s": result["client_processor_s"],
            "memory_mb": result["server"]["memory_bytes_at_end"] / 1e6,
            "vectors": self.vectors(requests),
        }

    def vectors(self, requests: int) -> np.ndarray:
        """[texts, dimension], of the first answer to each text."""
        bodies = read_answers(self.folder / "answers")[: min(requests, self.lines)]
        return np.array([json.loads(body)["data"][0]["embedding"] for body in bodies], dtype=np.float32)


def measure(o: argparse.Namespace, folder: Path) -> dict[str, list[dict[int, dict]]]:
    comparison = Comparison(o, folder)
    results: dict[str, list[dict[int, dict]]] = {c: [] for c in o.contenders}
    for number in range(1, o.rounds + 1):
        for c in o.contenders:
            results[c].append(comparison.measure(c))
            tell(f"round {number}/{o.rounds}  {c:16} {results[c][-1][o.compared][RATE]:10.0f} texts/s")
    return results


def summarise(o: argparse.Namespace, results: dict[str, list[dict[int, dict]]]) -> dict:
    """Least cosine: of a vector with the first contender's of the same text."""
    contenders, first = {}, {}
    for c, rounds in results.items():
        contenders[c] = {}
        for clients in o.clients:
            vectors = [r[clients].pop("vectors") for r in rounds][0]
            names = rounds[0][clients].keys()
            of = {name: spread([r[clients][name] for r in rounds]) for name in names}
            cosines = (vectors * first.setdefault(clients, vectors)).sum(axis=1)
            contenders[c][clients] = of | {"least_cosine": float(cosines.min())}
    ratios = {}
    for c in (c for c in o.contenders if c != o.contenders[0]):
        pairs = zip(results[o.contenders[0]], results[c])
        both = [(a[o.compared], b[o.compared]) for a, b in pairs]
        ratios[f"{o.contenders[0]}/{c}"] = {n: spread([a[n] / b[n] for a, b in both]) for n in (RATE, PROCESSOR_RATE)}
    return {"contenders": contenders, "ratios": ratios, "runs": results}


def report(o: argparse.Namespace, summary: dict) -> str:
    def range_of(values: dict, digits: int) -> str:
        return f"{values['median']:.{digits}f} ({values['min']:.{digits}f} to {values['max']:.{digits}f})"

    lines = [f"{o.rounds} rounds, {o.threads} threads; median (from least to most)", ""]
    titles = f"{'texts/s':>24} {'texts / processor s':>24} {'p50 ms':>8} {'p99 ms':>8} {'cosine':>8} {'MB':>6}"
    lines.append(f"{'':16} {'clients':>7} {titles}")
    for c, by_clients in summary["contenders"].items():
        for clients, of in by_clients.items():
            p50, p99 = (1000 * of[name]["median"] for name in ("p50", "p99"))
            lines.append(
                f"{c:16} {clients:>7} {range_of(of[RATE], 0):>24} {range_of(of[PROCESSOR_RATE], 0):>24} "
                f"{p50:>8.1f} {p99:>8.1f} {of['least_cosine']:>8.5f} {of['memory_mb']['median']:>6.0f}"
            )
    lines.append("")
    for pair, of in summary["ratios"].items():
        by_time, by_processor = range_of(of[RATE], 2), range_of(of[PROCESSOR_RATE], 2)
        lines.append(f"{pair:24} {o.compared} clients: texts/s {by_time}, for a second of the processor {by_processor}")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--model", type=Path, required=True, help="folder of a BERT with mean pooling, such as all-MiniLM-L6-v2")
    p.add_argument("--text", type=Path, required=True, help="a text a line")
    add_options(p, CONTENDERS)
    p.add_argument("--clients", default="1,8,64,512", help="one after the other")
    p.add_argument("--compared", type=int, default=64, help="the number of clients of the ratios")
    p.add_argument("--texts", type=int, default=2000, help="the first ones of the text")
    p.add_argument("--requests-alone", type=int, default=200, help="of one client")
    p.add_argument("--wait-ms", type=float, default=5, help="of the queue before ONNX Runtime")
    add_server_options(p)
    o = p.parse_args()
    o.clients = numbers(p, o, "clients")
    if o.compared not in o.clients:
        p.error(f"--compared {o.compared}: is not one of --clients")
    check_at_least_1(p, o, ("texts", "requests_alone", "rounds", "threads"))
    if not o.text.is_file():
        p.error(f"--text {o.text}: no such file")
    check_model_folders(p, o, ("model",))
    check_options(p, o, needs_attune=True, known=CONTENDERS)
    return o


def main() -> int:
    o = parse_options()
    try:
        with tempfile.TemporaryDirectory() as folder:
            summary = summarise(o, measure(o, Path(folder)))
    except Failure as failure:
        print(f"serve_embeddings: {failure}", file=sys.stderr)
        return 1
    summary |= {"machine": platform.platform(), "threads": o.threads, "rounds": o.rounds}
    print(json.dumps(summary, indent=2) if o.json else report(o, summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
