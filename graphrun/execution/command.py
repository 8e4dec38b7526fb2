"""Commands: what the planner wants done outside. The engine does them after the commit, never before."""

from __future__ import annotations

from dataclasses import dataclass

from graphrun.execution.event import Event
from graphrun.execution.run import EdgeRun, NewNode, NodeRun, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class SendWave:
    """Send these attempts as one chord whose body is the gate of (wave, round); ``direct`` means without a chord."""

    wave: int
    round: int
    nodes: tuple[int, ...]
    direct: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SendNode:
    """Send one attempt again, alone, under a fresh task id and outside any chord (§3.3)."""

    node_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn:
    """The opened wave has nothing to run: call its gate at once (X8)."""

    wave: int
    round: int


Command = SendWave | SendNode | GoOn


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the planner decided.

    Attributes:
        run: the run row after it.
        nodes: changed and added node rows.
        edges: changed and added edge rows.
        removed_edges: ids of edges that an evolution took away.
        added: specs of added nodes, by id.
        events: what to append to the log, in order.
        commands: what to do after the commit.
    """

    run: Run
    nodes: tuple[NodeRun, ...] = ()
    edges: tuple[EdgeRun, ...] = ()
    removed_edges: tuple[int, ...] = ()
    added: tuple[tuple[int, NewNode], ...] = ()
    events: tuple[Event, ...] = ()
    commands: tuple[Command, ...] = ()
