"""Nodes made of measurements: the built-in task that takes as long as a node of the imported graph took."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from graphrun.model.spec import NodeSpec

TASK = "graphrun.builtin.measured"

Mode = Literal["sleep", "burn"]


def measured_node(key: str, heads: Iterable[str], *, seconds: float = 0.0, mode: Mode = "sleep") -> NodeSpec:
    """Return a node that takes ``seconds`` and returns one more than the largest of its heads' values.

    Args:
        key: the node's key.
        heads: keys of the nodes it reads, in declared order.
        seconds: how long it takes.
        mode: ``sleep``, or ``burn`` CPU time.
    """
    params: dict[str, Any] = {"seconds": seconds}
    if mode != "sleep":
        params["mode"] = mode
    inputs = [{"$node": head} for head in heads]
    if inputs:
        params["inputs"] = inputs
    return NodeSpec(key=key, task=TASK, params=params)
