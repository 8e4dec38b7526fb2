"""The command line: one function a command, one file a command or a small group of them.

This package answers for what a person types and reads. It decides nothing about graphs and runs: it calls the client
and prints what the client says. Only ``main`` is public.
"""

from graphrun.cli.entry import main

__all__ = ["main"]
