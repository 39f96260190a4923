"""Signals beside calls that compute: handlers have a stack of their own, workers take no signals."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

PROLOGUE = """
import ctypes, faulthandler, os, signal, sys, threading
from pathlib import Path

class Stack(ctypes.Structure):
    _fields_ = [("memory", ctypes.c_void_p), ("flags", ctypes.c_int), ("bytes", ctypes.c_size_t)]

def stack():  # of the handlers of signals of this thread; None: it has none
    found = Stack()
    assert ctypes.CDLL(None).sigaltstack(None, ctypes.byref(found)) == 0
    return None if found.flags & 2 else found.memory  # 2: SS_DISABLE

def on_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()

found = []
"""


def found_by(program: str, *arguments: str) -> object:
    """What a program of its own leaves in `found`. Python gives it no stack for handlers."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONFAULTHANDLER", "PYTHONDEVMODE")}
    done = subprocess.run(
        [sys.executable, "-c", PROLOGUE + program + "print(found)", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stdout)


def test_every_thread_that_calls_has_a_stack_for_handlers() -> None:
    found = found_by("""
def load():
    import attune
on_a_thread(load)
import attune
def call():
    found.append(stack() is not None)
    attune.ops.relu(attune.Tensor.zeros([2]))
    found.append(stack() is not None)
call()
on_a_thread(call)
on_a_thread(call)  # in the memory, perhaps, of the one that ended
""")
    assert found == [False, True] * 3


def test_a_stack_that_a_thread_has_stays() -> None:
    found = found_by("""
import attune
faulthandler.enable()
found.append(stack())
attune.ops.relu(attune.Tensor.zeros([2]))
found.append(stack())
""")
    assert isinstance(found, list) and found[0] is not None and found[0] == found[1]


def test_only_the_main_thread_and_functions_of_python_take_signals(hub: Path) -> None:
    found = found_by(
        """
import attune
def report(done, total):
    found.append((threading.get_native_id() == os.getpid(), signal.SIGTERM in signal.pthread_sigmask(0, [])))
attune.Translator(sys.argv[1]).translate(["the dog"], progress=report)
for thread in Path("/proc/self/task").iterdir():
    line = next(l for l in (thread / "status").read_text().splitlines() if l.startswith("SigBlk:"))
    blocked = int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1
    found.append((int(thread.name) == os.getpid(), bool(blocked)))
""",
        str(hub / "marian"),
    )
    assert isinstance(found, list)
    in_python, threads = found[0], found[1:]
    assert in_python == (False, False)  # a process that it starts can be ended
    assert len(threads) >= 2  # the worker of the call is at rest
    assert all(blocked == (not main) for main, blocked in threads), threads
