"""Node bodies for tests with real workers; imported by the tests and by the workers that they start."""

from __future__ import annotations

import dataclasses
import enum
import math
import os
import pathlib
import signal
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from graphrun import Context, Evolved, Failed, task


def leave_mark(path: str, text: str) -> None:
    """Append a line in one write, so that lines of several processes never mix."""
    with pathlib.Path(path).open("ab", buffering=0) as file:
        file.write(f"{text}\n".encode())


@task
def const(value: Any = None) -> Any:
    return value


@task
def delayed(value: int, seconds: float) -> int:
    time.sleep(seconds)
    return value


@task
def waits_for(path: str, marks: str) -> str:
    """Say that it runs, then wait until a file is there."""
    leave_mark(marks, "started")
    while not pathlib.Path(path).exists():
        time.sleep(0.01)
    return "went"


@task
def collect(parts: list[Any]) -> list[Any]:
    return parts


@task
def length(value: list[Any]) -> int:
    return len(value)


@task
def kind_of(value: Any) -> str:
    return type(value).__name__


@task
def marked(path: str, name: str, parts: list[Any] | None = None) -> str:
    leave_mark(path, name)
    return name


@task
def marked_delayed(path: str, name: str, seconds: float) -> str:
    leave_mark(path, f"start {name}")
    time.sleep(seconds)
    leave_mark(path, f"end {name}")
    return name


@task
def fails(message: str = "as asked") -> int:
    raise RuntimeError(message)


@task
def fails_first(value: int, ctx: Context) -> int:
    if ctx.attempt == 1:
        raise RuntimeError("the first try fails")
    return value


@task(max_attempts=1)
def fails_once_and_for_all() -> None:
    raise RuntimeError("no retry was asked for")


@task
def proceeds(left: int = 0, right: int = 0, ctx: Context | None = None) -> dict[str, Any]:
    return {"left": left, "right": right, "missing": dict(ctx.missing_inputs) if ctx else {}}


@task
def pick(branch: str) -> str:
    return branch


@task
def passes_soft_limit() -> int:
    from celery.exceptions import SoftTimeLimitExceeded

    try:
        time.sleep(60)
    except SoftTimeLimitExceeded:
        return 1
    return 0


@task
def ignores_soft_limit(path: str) -> None:
    from celery.exceptions import SoftTimeLimitExceeded

    leave_mark(path, "started")
    while True:
        try:
            time.sleep(60)
        except SoftTimeLimitExceeded:
            continue


@task
def exits(code: int) -> None:
    sys.exit(code)


@task
def exits_hard(code: int) -> None:
    os._exit(code)


@task
def interrupts() -> None:
    raise KeyboardInterrupt


@task
def killed_first(path: str, value: int) -> int:
    """Be killed by a signal at the first delivery, succeed at the second."""
    leave_mark(path, "delivered")
    if pathlib.Path(path).read_text().count("delivered") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


@task
def killed_always(path: str) -> None:
    leave_mark(path, "delivered")
    os.kill(os.getpid(), signal.SIGKILL)


class TwoArguments(Exception):
    def __init__(self, message: str, extra: int) -> None:
        super().__init__(message)
        self.extra = extra


class HoldsALock(Exception):
    def __init__(self) -> None:
        super().__init__("holds a lock")
        self.lock = threading.Lock()


class BrokenText(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@task
def raises(kind: str) -> None:
    match kind:
        case "two-arguments":
            raise TwoArguments("needs two", 7)
        case "lock":
            raise HoldsALock
        case "broken-text":
            raise BrokenText
        case "huge":
            raise RuntimeError("x" * 5_000_000)


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Colour(enum.Enum):
    RED = "red"


@task
def unstorable(kind: str) -> Any:
    import numpy as np

    values: dict[str, Any] = {
        "set": {1, 2},
        "array": np.array([1, 2]),
        "dataclass": Point(1, 2),
        "enum": Colour.RED,
        "path": pathlib.Path("x"),
        "tuple-key": {(1, 2): 3},
        "tuple": (1, 2),
        "int-key": {1: "a"},
        "nested": {"rows": [1, {2}]},
    }
    return values[kind]


@task
def storable(kind: str) -> Any:
    return STORABLE[kind]


STORABLE: dict[str, Any] = {
    "none": None,
    "bytes": b"\x00\xff",
    "decimal": Decimal("1.10"),
    "uuid": UUID(int=7),
    "aware": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    "naive": datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001 - a naive one is the fact under test
    "timedelta": timedelta(days=1, microseconds=1),
    "trap": {"__type__": "datetime", "__value__": "x"},
}


@task
def annotated_tuple() -> tuple[int, str]:
    return (1, "a")


@task
def annotated_keys() -> dict[int, str]:
    return {1: "a"}


@task
def annotated_point() -> Point:
    return Point(1, 2)


@task
def same_tuple(value: tuple[int, str]) -> bool:
    return value == (1, "a") and type(value) is tuple


@task
def same_keys(value: dict[int, str]) -> bool:
    return value == {1: "a"} and type(next(iter(value))) is int


@task
def same_point(value: Point) -> bool:
    return value == Point(1, 2)


@task
def odd_floats() -> dict[str, float]:
    return {"loss": math.nan, "best": -math.inf}


@task
def checks_odd_floats(value: dict[str, float]) -> bool:
    return math.isnan(value["loss"]) and value["best"] == -math.inf


@task
def odd_text(kind: str) -> str:
    return {"nul": "a\x00b", "surrogate": "a\ud800b"}[kind]


@task
def text_code_points(value: str) -> list[int]:
    return [ord(char) for char in value]


@task
def big_text(megabytes: int) -> str:
    return "x" * (megabytes * 1024 * 1024)


@task
def text_length(value: str) -> int:
    return len(value)


@task
async def async_value(value: int) -> int:
    import asyncio

    await asyncio.sleep(0.01)
    return value


@task
def grows(ctx: Context, grown: bool = False) -> str:
    if not grown:
        return Evolved(  # type: ignore[return-value]  # stripped from the annotation by the registry
            params={"grown": True},
            scope="the larger job",
            reason="one part was missing",
            add=[{"key": "extra", "task": "bodies.const", "params": {"value": 5}}],
            edges=[("grow", "extra"), ("extra", "last")],
        )
    return "grown"


@task
def branches_late(ctx: Context, branched: bool = False) -> str:
    if not branched:
        return Evolved(  # type: ignore[return-value]  # stripped from the annotation by the registry
            params={"branched": True},
            add=[{"key": "yes", "task": "bodies.const"}, {"key": "no", "task": "bodies.const"}],
            edges=[
                {"head": "seed", "tail": "yes", "when": "result > 1"},
                {"head": "seed", "tail": "no", "when": "result < 1"},
            ],
        )
    return "branched"


@task
def binds_twice(ctx: Context) -> str:
    return Evolved(edges=[{"head": "seed", "tail": "last", "parameter": "value"}])  # type: ignore[return-value]  # as above


@task
def grows_wrongly(ctx: Context) -> str:
    return Evolved(edges=[("last", "grow")])  # type: ignore[return-value]  # refused: a cycle into a started node


@task
def says_failed() -> int:
    return Failed("not today")  # type: ignore[return-value]  # stripped from the annotation by the registry


@task
def is_even(value: int) -> bool:
    return value % 2 == 0


@task
def even_at_second_try(ctx: Context) -> int:
    return ctx.attempt


@task
def holds_a_slot(path: str, name: str, seconds: float) -> str:
    leave_mark(path, f"start {name}")
    time.sleep(seconds)
    leave_mark(path, f"end {name}")
    return name
