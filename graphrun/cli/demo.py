"""``graphrun demo``: everything at work on this machine for a few seconds, in a directory that is gone afterwards."""
# ruff: noqa: PLC0415 - a command imports what it needs when it runs, so that `graphrun --help` stays quick

from __future__ import annotations

import typer


def demo() -> None:
    """Run a small graph with a private Redis and two worker processes; one node fails once, one evolves.

    It prints the plan, the progress, the implemented graph beside the plan, and the verdict. Nothing is left behind.
    """
    from graphrun.cli.demo_run import run_demo

    raise typer.Exit(run_demo())
