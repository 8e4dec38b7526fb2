"""Node bodies whose outputs take a while to be made into text; imported by tests and by the workers they start."""

from __future__ import annotations

import time
from typing import Annotated

from pydantic import BaseModel, PlainSerializer

from graphrun import task


def _slowly(seconds: float) -> float:
    """Take as long as the value says, and return it as it is."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(0.01)
    return seconds


class Slow(BaseModel):
    """A value that is written slowly."""

    seconds: Annotated[float, PlainSerializer(_slowly)]


@task
def slow_to_store(seconds: float) -> Slow:
    return Slow(seconds=seconds)
