#!/usr/bin/env python3
"""Ten thousand sentences through `attune translate`, with kills, closed pipes and malformed lines.

Every line has one translation, in its place, that depends on nothing else: some hundred lines, translated first, are
repeated in random order, so that every output is known. Ends with 1 if anything is lost, moved or otherwise, or if
memory grows with the number of lines.
"""

import argparse
import json
import os
import random
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, NamedTuple

from in_turn import Failure, check_at_least_1, check_model_folders, end, wait

PATIENCE_S = 600
SOME = 1000  # lines, about twice as many as are read ahead
LONG_WORDS = 1500  # above the most tokens of a source
LONG_LINE = b"a" * ((1 << 20) + 1)  # above the most bytes of a line


class Finished(NamedTuple):
    status: int  # -9: killed
    output: bytes
    messages: str
    seconds: float
    peak_memory_mb: float


class Wrong(Exception):
    """What was expected and what was found."""


def check(condition: bool, message: str) -> None:
    if not condition:
        raise Wrong(message)


class Stream:
    """`attune translate` with what it is fed and what it should say."""

    def __init__(self, o: argparse.Namespace, folder: Path):
        self.o, self.folder, self.random = o, folder, random.Random(o.seed)
        self.command = [o.attune, "translate", str(o.model), "--beam-size", str(o.beam_size)]
        self.command += ["--threads", str(o.threads)]
        lines = [line for line in o.source.read_bytes().split(b"\n") if line.strip()]
        self.distinct = list(dict.fromkeys(lines))[: o.distinct]
        if len(self.distinct) < 2:
            raise Failure(f"{o.source}: expected two different lines at least")
        found = self.run(b"".join(line + b"\n" for line in self.distinct))
        translations = found.output.split(b"\n")[:-1]
        if found.status != 0 or len(translations) != len(self.distinct):
            said = (found.messages.strip() or "no message").splitlines()[-1]
            raise Failure(f"{o.attune} translate: status {found.status}, {len(translations)} lines: {said}")
        self.known = dict(zip(self.distinct, translations))
        self.seconds_per_line = found.seconds / len(self.distinct)

    def text(self, lines: int) -> list[bytes]:
        return self.random.choices(self.distinct, k=lines)

    def expected(self, lines: list[bytes]) -> list[bytes]:
        """Of what cannot be translated an empty line."""
        return [self.known.get(line, b"") for line in lines]

    def run(self, text: bytes, *options: str, kill_after_s: float | None = None, by: int = signal.SIGKILL) -> Finished:
        """With the text as standard input."""
        with (
            tempfile.TemporaryFile(dir=self.folder) as source,
            tempfile.TemporaryFile(dir=self.folder) as output,
            tempfile.TemporaryFile(dir=self.folder) as messages,
        ):
            source.write(text)
            source.seek(0)
            start = time.perf_counter()
            process = subprocess.Popen([*self.command, *options], stdin=source, stdout=output, stderr=messages)
            if kill_after_s is not None:
                time.sleep(kill_after_s)
                os.kill(process.pid, by)  # send_signal() would also take the exit status, see end()
            peak_mb, late = wait(process, PATIENCE_S)
            seconds = time.perf_counter() - start
            check(not late, f"not finished after {PATIENCE_S} s")
            output.seek(0)
            messages.seek(0)
            said = messages.read().decode(errors="replace")
            return Finished(process.returncode, output.read(), said, seconds, peak_mb)

    def compare(self, lines: list[bytes], output: bytes) -> None:
        check(output.endswith(b"\n") or not output, f"the output ends within a line: {output[-40:]!r}")
        found, expected = output.split(b"\n")[:-1], self.expected(lines)
        for number, (a, b) in enumerate(zip(expected, found), 1):
            check(a == b, f"line {number}: expected {a[:60]!r}, found {b[:60]!r}")
        check(len(found) == len(expected), f"expected {len(expected)} lines, found {len(found)}")

    def with_malformed(self, lines: int, before: int = 0) -> tuple[list[bytes], list[int]]:
        """The text and the numbers of the lines that cannot be used, after `before` that can; some others are empty."""
        text, bad = self.text(lines), []
        kinds = [b"\xff\xfe not UTF-8", b"cut off \xe2\x82", b"a " * LONG_WORDS, LONG_LINE, b"", b"   "]
        for number in sorted(self.random.sample(range(before + 1, lines + 1), 10 * len(kinds))):
            kind = kinds[number % len(kinds)]
            text[number - 1] = kind
            if kind.strip():
                bad.append(number)
        return text, bad


def joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def memory(stream: Stream) -> dict:
    """Some of the lines, then all of them."""
    peaks, seconds = [], 0.0
    for lines in (SOME, stream.o.lines):
        text = stream.text(lines)
        found = stream.run(joined(text))
        check(found.status == 0, f"status {found.status}: {found.messages[-200:]}")
        stream.compare(text, found.output)
        peaks.append(found.peak_memory_mb)
        seconds = found.seconds
    most = stream.o.growth * peaks[0]
    check(peaks[1] <= most, f"{peaks[0]:.0f} MB for {SOME} lines, {peaks[1]:.0f} MB for {stream.o.lines}")
    return {
        "lines": stream.o.lines,
        "seconds": seconds,
        "peak_memory_mb": peaks[1],
        "note": f"{peaks[0]:.0f} MB for {SOME}",
    }


def killed(stream: Stream) -> dict:
    """Killed at random places and started again with the lines that have no translation yet."""
    o, text, output, kills, peak_mb, seconds = stream.o, stream.text(stream.o.lines), b"", 0, 0.0, 0.0
    while output.count(b"\n") < len(text):
        left = text[output.count(b"\n") :]
        expected_s = stream.seconds_per_line * len(left)
        after_s = stream.random.uniform(0, 2 * expected_s / (o.kills - kills + 1)) if kills < o.kills else None
        found = stream.run(joined(left), kill_after_s=after_s)
        output, seconds = output + found.output, seconds + found.seconds
        peak_mb = max(peak_mb, found.peak_memory_mb)
        check(output.endswith(b"\n") or not output, f"killed within a line: {output[-40:]!r}")
        if after_s is None:
            check(found.status == 0, f"status {found.status}: {found.messages[-200:]}")
        kills += found.status == -signal.SIGKILL
    stream.compare(text, output)
    return {"lines": o.lines, "seconds": seconds, "peak_memory_mb": peak_mb, "note": f"killed {kills} times"}


def killed_with_file(stream: Stream) -> dict:
    """A file of --output is written whole or not at all."""
    lines = SOME
    text = stream.text(lines)
    source, output = stream.folder / "source.txt", stream.folder / "output.txt"
    source.write_bytes(joined(text))
    options = ("--file", str(source), "--output", str(output))
    before = b"what was there before\n"
    output.write_bytes(before)
    stopped = 0
    for by in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        after_s = stream.random.uniform(0, stream.seconds_per_line * lines)
        found = stream.run(b"", *options, kill_after_s=after_s, by=by)
        if found.status == 0:  # it was faster
            stream.compare(text, output.read_bytes())
            output.write_bytes(before)
            continue
        stopped += 1
        check(output.read_bytes() == before, f"ended by {by.name}, and the file was changed")
    found = stream.run(b"", *options)
    check(found.status == 0, f"status {found.status}: {found.messages[-200:]}")
    stream.compare(text, output.read_bytes())
    return {"lines": lines, "seconds": found.seconds, "peak_memory_mb": found.peak_memory_mb, "note": f"{stopped} ends"}


def closed_pipe(stream: Stream) -> dict:
    """Who reads goes after some lines."""
    lines = 2 * SOME
    text = stream.text(lines)
    source = stream.folder / "source.txt"
    source.write_bytes(joined(text))
    start, most_mb = time.perf_counter(), 0.0
    for wanted in (0, 1, stream.random.randint(2, SOME // 2)):
        with open(source, "rb") as file:
            process = subprocess.Popen(stream.command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        output = b"".join(process.stdout.readline() for _ in range(wanted))
        process.stdout.close()
        peak_mb, late = wait(process, PATIENCE_S)
        messages = process.stderr.read()
        process.stderr.close()
        most_mb = max(most_mb, peak_mb)
        check(not late, f"did not end within {PATIENCE_S} s of its reader")
        status = process.returncode
        check(status == 128 + signal.SIGPIPE, f"expected status 141, found {status}: {messages[-200:]!r}")
        check(not messages.strip(), f"expected a quiet end, found {messages[-200:]!r}")
        stream.compare(text[:wanted], output)
    seconds = time.perf_counter() - start
    return {"lines": lines, "seconds": seconds, "peak_memory_mb": most_mb, "note": "after 0, 1 and some lines"}


def malformed_skipped(stream: Stream) -> dict:
    text, bad = stream.with_malformed(stream.o.lines)
    found = stream.run(joined(text), "--on-error", "skip")
    check(found.status == 0, f"status {found.status}: {found.messages[-200:]}")
    stream.compare(text, found.output)
    missing = [n for n in bad if f":{n}:" not in found.messages]
    check(not missing, f"no message about line {missing[:1]}: {found.messages[:200]}")
    messages = found.messages.splitlines()
    check(len(messages) == len(bad) + 1, f"expected {len(bad)} messages and how many there are, found {len(messages)}")
    check(f"{len(bad)} of {len(text)} lines were skipped" in messages[-1], f"expected their number: {messages[-1]}")
    return {
        "lines": stream.o.lines,
        "seconds": found.seconds,
        "peak_memory_mb": found.peak_memory_mb,
        "note": f"{len(bad)} cannot be read",
    }


def malformed_stops(stream: Stream) -> dict:
    """What stands before the line is translated, nothing behind it."""
    lines = SOME
    text, bad = stream.with_malformed(lines, before=lines // 2)
    found = stream.run(joined(text))
    check(found.status not in (0, -signal.SIGSEGV), f"expected an error, found status {found.status}")
    check(f":{bad[0]}:" in found.messages, f"expected a message about line {bad[0]}, found {found.messages[:200]}")
    stream.compare(text[: bad[0] - 1], found.output)
    seconds, peak_mb = found.seconds, found.peak_memory_mb
    return {"lines": lines, "seconds": seconds, "peak_memory_mb": peak_mb, "note": f"stops at line {bad[0]}"}


def conversation(stream: Stream) -> dict:
    """Who waits for an answer gets it before the next line."""
    lines = 20
    text = stream.text(lines)
    start = time.perf_counter()
    process = subprocess.Popen(stream.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    answers = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        for number, line in enumerate(text, 1):
            process.stdin.write(line + b"\n")
            while answers.count(b"\n") < number:
                ready = selector.select(PATIENCE_S)
                chunk = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
                if not chunk:
                    end(process)
                    wait(process, PATIENCE_S)
                    raise Wrong(f"line {number} had no answer")
                answers += chunk
    process.stdin.close()
    peak_mb, _ = wait(process, PATIENCE_S)
    process.stdout.close()
    check(process.returncode == 0, f"status {process.returncode}")
    stream.compare(text, answers)
    seconds = time.perf_counter() - start
    return {"lines": lines, "seconds": seconds, "peak_memory_mb": peak_mb, "note": "one at a time"}


CASES: dict[str, Callable[[Stream], dict]] = {
    "memory": memory,
    "killed": killed,
    "killed with a file": killed_with_file,
    "closed pipe": closed_pipe,
    "malformed, skipped": malformed_skipped,
    "malformed, stops": malformed_stops,
    "conversation": conversation,
}


def measure(o: argparse.Namespace, folder: Path) -> list[dict]:
    stream = Stream(o, folder)
    rows = []
    for name, case in CASES.items():
        try:
            rows.append({"case": name, "right": True, **case(stream)})
        except Wrong as wrong:
            rows.append({"case": name, "right": False, "note": str(wrong)})
        print(f"{name}: {'right' if rows[-1]['right'] else 'WRONG'}", file=sys.stderr)
    return rows


def report(rows: list[dict]) -> str:
    def cell(row: dict, name: str, width: int) -> str:
        return f"{row[name]:>{width}.0f}" if name in row else f"{'-':>{width}}"

    lines = [f"{'':20} {'':6} {'lines':>7} {'seconds':>8} {'peak MB':>8}"]
    for row in rows:
        figures = f"{cell(row, 'lines', 7)} {cell(row, 'seconds', 8)} {cell(row, 'peak_memory_mb', 8)}"
        lines.append(f"{row['case']:20} {'right' if row['right'] else 'WRONG':6} {figures}  {row['note']}")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--attune", default="build/release/attune", help="the binary")
    p.add_argument("--model", type=Path, required=True, help="folder of an encoder-decoder")
    p.add_argument("--source", type=Path, required=True, help="text, as the model reads it")
    p.add_argument("--lines", type=int, default=10000)
    p.add_argument("--distinct", type=int, default=500, help="different lines among them")
    p.add_argument("--kills", type=int, default=5)
    p.add_argument("--beam-size", type=int, default=1)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--growth", type=float, default=1.2, help=f"most memory for all lines, {SOME} of them being 1")
    p.add_argument("--seed", type=int, default=1, help="of the order of the lines, and of when it is killed")
    p.add_argument("--json", action="store_true", help="print everything measured as one JSON object")
    o = p.parse_args()
    check_at_least_1(p, o, ("lines", "distinct", "kills", "beam_size", "threads"))
    if o.lines < 2 * SOME:
        p.error(f"--lines {o.lines}: expected at least {2 * SOME}")
    if not o.source.is_file():
        p.error(f"--source {o.source}: no such file")
    check_model_folders(p, o, ["model"])
    return o


def main() -> int:
    o = parse_options()
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = measure(o, Path(folder))
    except (Failure, Wrong, OSError) as failure:
        print(f"stream: {failure}", file=sys.stderr)
        return 1
    print(json.dumps({"lines": o.lines, "cases": rows}, indent=2) if o.json else report(rows))
    return 0 if all(row["right"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
