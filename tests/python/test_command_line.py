"""The program `attune` of the package."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = "import signal; signal.signal(signal.SIGINT, signal.{}); from attune._command_line import main; main()"


def start(handler: str, hub: Path) -> subprocess.Popen[str]:
    """A translator that waits for the second line of its input."""
    arguments = [sys.executable, "-c", PROGRAM.format(handler), "translate", str(hub / "marian")]
    pipe = subprocess.PIPE
    process = subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("the dog\n")
    process.stdin.flush()
    process.stdout.readline()
    return process


def test_ctrl_c_ends_a_command(hub: Path) -> None:
    process = start("default_int_handler", hub)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert "Traceback" not in errors


def test_an_ignored_ctrl_c_stays_ignored(hub: Path) -> None:
    process = start("SIG_IGN", hub)
    os.kill(process.pid, signal.SIGINT)
    translations, errors = process.communicate("the dog\n", timeout=60)
    assert process.returncode == 0, errors
    assert len(translations.splitlines()) == 1


def test_words_need_not_be_utf_8(hub: Path) -> None:
    program: list[str | bytes] = [sys.executable, "-c", PROGRAM.format("SIG_IGN"), "translate", str(hub / "marian")]
    done = subprocess.run([*program, b"--file", b"\xff"], capture_output=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == b"attune: cannot open \xff: No such file or directory\n"
