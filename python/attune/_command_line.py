"""The program `attune` of the package."""

import os
import signal
import sys

from ._core import run_command_line


def main() -> None:
    """Runs the command line with the process's arguments, and ends the process with its exit status. Ctrl-C does what it
    does to the program without Python: a command that has nothing to save is ended by the signal. A signal that is
    ignored stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run_command_line([os.fsencode(word) for word in ("attune", *sys.argv[1:])]))
