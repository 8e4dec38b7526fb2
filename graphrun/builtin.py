"""Small ready-made tasks for demos, examples, tests and imported workflows, named ``graphrun.builtin.*``.

It answers for bodies with known behaviour; importing it fills the default registry. It must not use Celery, SQL, files
or the network. All durations are in seconds.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from pydantic import Field

from graphrun.registry import Context, Evolved, task

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@task
def echo(**arguments: Any) -> Any:
    """Return what it was given.

    Returns:
        The value itself if the only argument is called ``value``, else the dict of all arguments by name.
    """
    return arguments["value"] if list(arguments) == ["value"] else arguments


@task
def add(a: int | float, b: int | float) -> int | float:  # noqa: PYI041 - an int stays an int
    """Return ``a + b``; an int if both are."""
    return a + b


@task
def sleep(seconds: Seconds, value: Any = None, after: list[Any] | tuple[Any, ...] = ()) -> Any:  # noqa: ARG001 - bound, not used
    """Wait without using the processor.

    Args:
        seconds: how long, in seconds of wall clock.
        value: what to return.
        after: outputs to wait for; they are not looked at.

    Returns:
        `value`, or `seconds` if there is none.
    """
    time.sleep(seconds)
    return seconds if value is None else value


@task
def burn(seconds: Seconds, value: Any = None, after: list[Any] | tuple[Any, ...] = ()) -> Any:  # noqa: ARG001 - bound, not used
    """Use the processor.

    Args:
        seconds: how long, in seconds of processor time of this process.
        value: what to return.
        after: outputs to wait for; they are not looked at.

    Returns:
        `value`, or `seconds` if there is none.
    """
    _spin(seconds)
    return seconds if value is None else value


@task
def fail(message: str = "failed on purpose") -> None:
    """Fail on every attempt.

    Raises:
        RuntimeError: always, with `message`.
    """
    raise RuntimeError(message)


@task
def fail_once(ctx: Context, value: Any = None) -> Any:
    """Fail on the first attempt and return `value` on every later one.

    Raises:
        RuntimeError: on attempt 1.
    """
    if ctx.attempt == 1:
        raise RuntimeError(f"{ctx.key}: failed once on purpose; the retry succeeds")
    return value


@task
def evolve_once(
    value: Any = None,
    scope: str = "the evolved scope",
    evolved: bool = False,  # noqa: FBT001, FBT002 - given by name
) -> Any | Evolved:
    """Ask for an evolution the first time, and return `value` when it runs as evolved.

    Args:
        value: what to return in the end.
        scope: the scope that the node evolves to.
        evolved: set by the evolution itself.
    """
    if evolved:
        return value
    return Evolved(scope=scope, params={"evolved": True}, reason="evolves once on purpose")


@task
def measured(seconds: Seconds, mode: Literal["sleep", "burn"] = "sleep", inputs: list[Any] | None = None) -> int:
    """Stand for a node of a measured workflow: take its time, return its depth, so that values prove the order.

    Args:
        seconds: of wall clock for ``sleep``, of processor time for ``burn``.
        mode: how to take the time.
        inputs: outputs of the nodes before it; what is not an int counts as 0.

    Returns:
        1 for a root, else 1 + the largest input.
    """
    if mode == "sleep":
        time.sleep(seconds)
    else:
        _spin(seconds)
    return 1 + max((one for one in inputs or () if isinstance(one, int)), default=0)


def _spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
