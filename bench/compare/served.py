"""Servers that answer the same requests, in turn: each is started, loaded by `attune bench serve`, and stopped."""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

from in_turn import Failure, run

START_S = 300


def add_server_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--wait-policy", choices=["passive", "active"], default="passive", help="of idle threads, for all")
    p.add_argument("--rounds", type=int, default=5)


def environment(o: argparse.Namespace) -> dict[str, str]:
    """Of every contender."""
    return {"OMP_NUM_THREADS": str(o.threads), "OMP_WAIT_POLICY": o.wait_policy}


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A program that listens on a port of this machine, until the end of a `with`. In `command`, PORT is replaced by the
    port; it is ready when a GET of `ready` brings 200."""

    def __init__(self, command: list[str], ready: str, environment: dict[str, str]):
        self.port = free_port()
        self.ready = ready
        self.errors = tempfile.TemporaryFile("w+")
        command = [str(self.port) if word == "PORT" else word for word in command]
        environment = {**os.environ, **environment}
        try:
            self.process = subprocess.Popen(command, env=environment, stdout=self.errors, stderr=self.errors)
        except OSError as error:
            raise Failure(f"{command[0]}: {error.strerror}") from None

    def __enter__(self) -> "Server":
        end = time.monotonic() + START_S
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                self.errors.seek(0)
                complaint = (self.errors.read().strip() or "no message").splitlines()[-1]
                self.__exit__()
                raise Failure(f"{' '.join(self.process.args[:4])} ... does not serve: {complaint}")
            time.sleep(0.1)
        return self

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{self.ready}", timeout=10) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.errors.close()


class Load(NamedTuple):
    """What `attune bench serve` sends."""

    path: str
    lines: Path
    fields: dict
    clients: int
    requests: int  # 0: one for each line
    rate: float = 0.0  # requests a second at random; 0: closed loop
    seed: int = 1


def send(attune: str, server: Server, load: Load, answers: Path | None = None) -> dict:
    """What was measured. Throws Failure where a request was not answered with 200."""
    command = [attune, "bench", "serve", str(load.lines), "--port", str(server.port), "--path", load.path]
    command += ["--fields", json.dumps(load.fields), "--connections", str(load.clients)]
    command += ["--requests", str(load.requests), "--rate", str(load.rate), "--seed", str(load.seed)]
    command += ["--process", str(server.process.pid), "--timeout", "1800"]
    command += ["--answers", str(answers)] if answers else []
    result = json.loads(run(command, {}).output)
    if set(result["statuses"]) != {"200"} or result["failures"]:
        raise Failure(f"{load.path}: not all was answered: {result['statuses']} {result['failures']}")
    return result


def read_answers(path: Path) -> list[str]:
    """The bodies, in the order of the requests."""
    with open(path, encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    return [a["body"] for a in sorted(found, key=lambda a: a["request"])]


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
