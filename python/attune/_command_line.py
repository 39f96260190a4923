"""The program `attune` of the package."""

import sys

from ._core import run_command_line


def main() -> None:
    """Runs the command line with the process's arguments, and ends the process with its exit status."""
    sys.exit(run_command_line(["attune", *sys.argv[1:]]))
