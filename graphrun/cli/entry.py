"""The way in: the list of commands, and what an error looks like.

An error that graphrun raises on purpose is one line on stderr and exit code 1, bad usage exit code 2, Ctrl-C 130. A
traceback is shown only where it is asked for, by ``--debug`` or ``GRAPHRUN_DEBUG=1``.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from graphrun import __version__
from graphrun.cli import convert, database, demo, doctor, plan, run, runs, serve, sweep, up
from graphrun.errors import GraphrunError, ValidationFailedError

DEBUG_VARIABLE = "GRAPHRUN_DEBUG"
INTERRUPTED = 130

app = typer.Typer(
    name="graphrun",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
# In the order in which a newcomer meets them.
_COMMANDS: tuple[tuple[str, Callable[..., None], str], ...] = (
    ("demo", demo.demo, "Run a small graph on servers of its own."),
    ("plan", plan.plan, "Check a graph and print how it would run."),
    ("run", run.run, "Run a graph, watch it, report."),
    ("submit", run.submit, "Start a run without waiting for it."),
    ("list", runs.list_runs, "List runs."),
    ("show", runs.show, "Show a run and its nodes."),
    ("report", runs.report, "Print what really ran beside the plan."),
    ("import", convert.import_graph, "Make a graph of a foreign file."),
    ("export", convert.export_graph, "Write a graph or a run's plan to a file."),
    ("worker", serve.worker, "Serve runs."),
    ("up", up.up, "Redis, workers and Flower in one terminal."),
    ("flower", serve.flower, "Watch nodes in Flower."),
    ("sweep", sweep.sweep, "Repair once what was lost."),
    ("doctor", doctor.doctor, "Look for what is missing or unsafe."),
)
for _name, _function, _short in _COMMANDS:
    app.command(_name, short_help=_short)(_function)
app.add_typer(database.app, name="db", short_help="Make or renew the ledger's tables.")


def _print_version(asked: bool) -> None:  # noqa: FBT001 - Typer calls it so
    if asked:
        typer.echo(f"graphrun {__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; also GRAPHRUN_DEBUG=1.")
    ] = False,
) -> None:
    """Run a graph of tasks on Celery, wave by wave, and keep what really ran beside what was asked.

    Try `graphrun demo`, which needs nothing but this package.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code.

    Args:
        arguments: what follows the program's name; that of the process when None.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")
    given = [argument for argument in given if argument != "--debug"]
    _have_streams()
    _never_fail_to_print()
    # What the library warns of is said by the command itself; a worker sets up its own log.
    logging.getLogger("graphrun").addHandler(logging.NullHandler())
    try:
        app(args=given, prog_name="graphrun")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except GraphrunError as error:
        return _tell(_lines(error), debug=debug)
    except Exception as error:  # noqa: BLE001 - whatever it was, a person reads one line and not a traceback
        hint = "" if debug else " (--debug shows where)"
        first = str(error).strip().partition("\n")[0]
        return _tell([f"{type(error).__name__}: {first}{hint}"], debug=debug)
    return 0


def _tell(lines: Sequence[str], *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    typer.echo("graphrun: " + "\n".join(lines), err=True)
    return 1


def _lines(error: GraphrunError) -> list[str]:
    """Return one line; of a refused graph one a fault, under a line that names the graph."""
    if not isinstance(error, ValidationFailedError):
        return [_one_line(str(error))]
    head = str(error).partition("fault(s)")
    return [head[0] + head[1], *(f"  {_one_line(str(issue))}" for issue in error.issues)]


def _one_line(text: str) -> str:
    """Return a message on one line; where it quotes the end of a log, of that the last line."""
    head, ends, quoted = text.strip().partition(":\n")
    return " ".join(f"{head}: {quoted.splitlines()[-1]}".split() if ends else text.split())


def _have_streams() -> None:
    """Let what is printed to a stream that was closed before the start go nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process
            atexit.register(nowhere.close)
            setattr(sys, name, nowhere)


def _never_fail_to_print() -> None:
    """Let a terminal that lacks a character show its escape: a report is not lost for a wave sign."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(ValueError):
                stream.reconfigure(errors="backslashreplace")
