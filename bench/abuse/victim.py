"""The server that is attacked: a process of its own, what it says of itself, and requests whose answers are known."""

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

# Short, so that clients who keep the server waiting are seen to go. Multiplied by the patience.
CONFIG = {
    "": {"drain_seconds": 5},
    "http": {"header_seconds": 2, "body_seconds": 2, "idle_seconds": 5, "write_seconds": 2},
    "limits": {"request_seconds": 30},
}
SENTENCE = "The old dog sleeps in the garden . A small child reads a book ."
AT_REST = (
    "attune_queue_requests",
    "attune_running_requests",
    "attune_open_requests",
    "attune_cache_slots_in_use",
    "attune_cache_reserved_bytes",
)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def config_text(patience: float) -> str:
    lines = []
    for table, fields in CONFIG.items():
        lines += [f"[{table}]"] if table else []
        lines += [f"{name} = {value * patience}" for name, value in fields.items()]
    return "\n".join(lines) + "\n"


class Victim:
    def __init__(self, attune: str, models: dict[str, Path], folder: Path, patience: float):
        """`models`: folders by name. `patience`: a factor for all waiting, for builds that are slow."""
        self.attune, self.models, self.folder, self.patience = attune, models, folder, patience
        self.port = free_port()
        self.log = folder / "log"
        self.config = folder / "serve.toml"
        self.config.write_text(config_text(patience), encoding="utf-8")
        self.process: subprocess.Popen | None = None

    def start(self) -> float:
        """Seconds until it is ready. Throws RuntimeError."""
        begin = time.monotonic()
        command = [self.attune, "serve", "--config", str(self.config), "--port", str(self.port)]
        command += [f"{name}={folder}" for name, folder in self.models.items()]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        while time.monotonic() < begin + 60 * self.patience:
            if not self.alive():
                break
            try:
                if self.get("/ready")[0] == 200:
                    return time.monotonic() - begin
            except OSError:
                pass
            time.sleep(0.02)
        raise RuntimeError(f"the server does not become ready; its log ends with {self.log_lines()[-3:]}")

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Its exit status after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30 * self.patience)
        except subprocess.TimeoutExpired:
            self.kill()
            return -1

    def request(self, method: str, path: str, body: str | None = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * self.patience)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except http.client.HTTPException as error:
            raise OSError(f"{method} {path}: {error!r}") from None
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, str]:
        return self.request("GET", path)

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory_mb(self) -> float:
        for line in Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024 / 1e6
        return 0

    def metrics(self) -> dict[str, float]:
        """The sum over the models, by name."""
        found: dict[str, float] = {}
        for line in self.get("/metrics")[1].splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                name = name.split("{")[0]
                found[name] = found.get(name, 0) + float(value)
        return found

    def what_does_not_rest(self, seconds: float) -> dict[str, float]:
        """What is not 0 among the gauges of work after at most so many seconds."""
        end = time.monotonic() + seconds * self.patience
        while True:
            metrics = self.metrics()
            busy = {name: metrics[name] for name in AT_REST if metrics[name] != 0}
            if not busy or time.monotonic() > end:
                return busy
            time.sleep(0.05)

    def log_lines(self) -> list[str]:
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()


class Known:
    """A request whose answer is always the same."""

    def __init__(self, path: str, body: dict):
        self.path, self.body = path, json.dumps(body)

    def answer(self, victim: Victim) -> object:
        return self.core(*victim.request("POST", self.path, self.body))

    @staticmethod
    def core(status: int, text: str) -> object:
        """Without what is different each time."""
        try:
            answer = json.loads(text)
        except json.JSONDecodeError:
            return [status, text]
        if isinstance(answer, dict):
            answer = {name: value for name, value in answer.items() if name not in ("id", "created")}
        return [status, answer]


def names_by_kind(victim: Victim) -> dict[str, str]:
    """The name of one model of each kind that is served."""
    found = {}
    for model in json.loads(victim.get("/info")[1])["models"]:
        of_type = model["model_type"]
        found.setdefault(of_type if isinstance(of_type, str) else next(iter(of_type)), model["model_id"])
    return found


def known_requests(kinds: dict[str, str]) -> dict[str, Known]:
    """By the name of the model."""
    known = {}
    for kind, name in kinds.items():
        if kind == "translation":
            known[name] = Known("/v1/translate", {"model": name, "text": SENTENCE, "n_best": 2})
        elif kind == "language_model":
            body = {"model": name, "prompt": "The ", "max_tokens": 24, "temperature": 0, "seed": 1, "logprobs": 2}
            known[name] = Known("/v1/completions", body)
        elif kind == "embedding":
            known[name] = Known("/v1/embeddings", {"model": name, "input": SENTENCE})
        elif kind == "classifier":
            known[name] = Known("/predict", {"model": name, "inputs": SENTENCE})
    return known
