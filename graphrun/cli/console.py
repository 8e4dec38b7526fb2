"""Where the command line writes: results to stdout, everything else to stderr, JSON as one document.

It answers for streams, colours and dates as people read them. It must not know what a run or a graph is.
"""

from __future__ import annotations

import json
import shutil
import sys
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table


def out() -> Console:
    """Return the console of results; colours only on a terminal."""
    return Console(file=sys.stdout, highlight=False, soft_wrap=not sys.stdout.isatty())


def err() -> Console:
    """Return the console of progress and remarks."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=not sys.stderr.isatty())


def say(text: str) -> None:
    """Print a remark for people on stderr, as it stands."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - this is the command line's own output


def show(text: str) -> None:
    """Print a result on stdout, as it stands."""
    print(text, flush=True)  # noqa: T201 - this is the command line's own output


def show_json(document: Any) -> None:
    """Print exactly one JSON document on stdout; a stream that is not UTF-8 gets escapes."""
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    show(json.dumps(document, indent=2, ensure_ascii=ascii_only, allow_nan=False))


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return a table without lines, whose last column takes what room there is.

    Args:
        columns: their headings.
        right: the headings of those that hold numbers.
    """
    made = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return made


def print_table(made: Table) -> None:
    """Print a table; where nobody watches it is as wide as it needs to be, so that nothing is cut for ``grep``."""
    console = out()
    if not console.is_terminal:
        console.width = 400
    console.print(made, soft_wrap=False)


def width() -> int | None:
    """Return the columns of the terminal that results go to; None where it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def local_time(at: datetime | None) -> str:
    """Return a moment in the reader's own time zone, to the second."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def duration(seconds: float | None) -> str:
    """Return a length of time as people say it."""
    minute, hour = 60, 3600
    if seconds is None:
        return ""
    if seconds < minute:
        return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
    if seconds < hour:
        return f"{int(seconds // minute)} min {int(seconds % minute):02d} s"
    return f"{int(seconds // hour)} h {int(seconds % hour // minute):02d} min"
