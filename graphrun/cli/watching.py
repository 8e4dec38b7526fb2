"""Following a run until it ends, and showing it: a live table on a terminal, now and then a line elsewhere.

Everything goes to stderr, so that stdout holds the result alone. It must not print reports or choose exit codes.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live

from graphrun.cli.console import err, say
from graphrun.cli.progress import Progress, drawing, line
from graphrun.client import RunHandle
from graphrun.errors import WaitTimeoutError
from graphrun.execution.state import TERMINAL_RUN, RunState

_REDRAW_SECONDS = 0.15
_LINE_SECONDS = 3.0
_READING_SHARE = 10  # reading all nodes may cost a tenth of the time at most


def follow(
    handle: RunHandle,
    *,
    timeout: float | None = None,
    check: Callable[[], None] | None = None,
    line_seconds: float = _LINE_SECONDS,
) -> RunState:
    """Show a run until it has ended.

    Args:
        handle: the run.
        timeout: seconds; None waits as long as it takes.
        check: called often; it raises when there is no point in waiting any longer.
        line_seconds: the shortest time between two lines where there is no terminal.

    Raises:
        WaitTimeoutError: the run has not ended in time; it goes on.
    """
    console = err()
    view: _View = _Table(handle, console) if console.is_terminal else _Lines(handle, line_seconds)
    with view:
        for state in handle.states(timeout):
            if check is not None:
                check()
            if state in TERMINAL_RUN:
                return state
            view.refresh()
    raise WaitTimeoutError(f"run {handle.run_id} is {state.value} after {timeout:g} s")


class _View(ABC):
    """Reads the run's progress now and then, more rarely the longer reading takes."""

    def __init__(self, handle: RunHandle, every: float) -> None:
        self._handle = handle
        self._every = every
        self._next = 0.0

    def __enter__(self) -> None:
        """Begin to count the time."""
        self._begun = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Show how it ended; after an error there may be nobody left to ask."""
        if kind is None:
            self.refresh(last=True)

    def refresh(self, *, last: bool = False) -> None:
        """Show the run if it is time to."""
        before = time.monotonic()
        if before < self._next and not last:
            return
        self.draw(self._progress())
        after = time.monotonic()
        self._next = after + max(self._every, (after - before) * _READING_SHARE)

    @abstractmethod
    def draw(self, progress: Progress) -> None:
        """Show it."""

    def _progress(self) -> Progress:
        row = self._handle.row
        return Progress(
            run_id=row.run_id,
            graph=row.graph,
            state=row.state,
            wave=row.run.wave,
            waves=row.run.waves,
            nodes=self._handle.nodes(),
            now=datetime.now(UTC),
            seconds=time.monotonic() - self._begun,
        )


class _Table(_View):
    """A table that is drawn again in place and stays as it was last."""

    def __init__(self, handle: RunHandle, console: Console) -> None:
        super().__init__(handle, _REDRAW_SECONDS)
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="ellipsis")

    def __enter__(self) -> None:
        super().__enter__()
        self._live.start()

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        try:
            super().__exit__(kind)
        finally:
            self._live.stop()
            say("")

    def draw(self, progress: Progress) -> None:
        self._live.update(drawing(progress), refresh=True)


class _Lines(_View):
    """A line when something has changed, and not too often."""

    def __init__(self, handle: RunHandle, every: float) -> None:
        super().__init__(handle, every)
        self._last: object = None

    def draw(self, progress: Progress) -> None:
        seen = (progress.state, progress.wave, progress.counts)
        if seen != self._last:
            say(line(progress))
        self._last = seen
