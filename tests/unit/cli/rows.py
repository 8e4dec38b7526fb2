"""Rows of runs and nodes for the tests of what is printed about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from graphrun.cli.progress import Progress
from graphrun.execution.run import NodeRun
from graphrun.execution.state import NodeState, RunState
from graphrun.storage.records import NodeRow

NOON = datetime(2025, 6, 1, 12, 0, tzinfo=UTC)


def node_row(number, key, state=NodeState.SUCCEEDED, *, wave=1, planned_wave=1, seconds=2.0, **node):
    """Return a node's row that was started at noon."""
    begun = None if state in (NodeState.PENDING, NodeState.QUEUED) else NOON
    ended = begun + timedelta(seconds=seconds) if begun and state is not NodeState.RUNNING else None
    extra = {name: node.pop(name) for name in ("worker", "missing_inputs") if name in node}
    return NodeRow(
        node=NodeRun(node_id=number, key=key, wave=wave, state=state, **({"attempt": int(begun is not None)} | node)),
        task="t",
        verify=None,
        owner=None,
        queue=None,
        planned_wave=planned_wave,
        output=None,
        summary=None,
        verify_result=None,
        implemented=(),
        not_before=None,
        queued_at=None,
        claimed_at=begun,
        started_at=begun,
        changed_at=NOON,
        finished_at=ended,
        **({"worker": None, "missing_inputs": {}} | extra),
    )


def progress(nodes, *, wave=1, waves=1, state=RunState.RUNNING, seconds=3.0):
    """Return a run's progress ten seconds after noon."""
    return Progress(
        run_id="3fa9c2d1-0000-4000-8000-000000000000",
        graph="daily",
        state=state,
        wave=wave,
        waves=waves,
        nodes=tuple(nodes),
        now=NOON + timedelta(seconds=10),
        seconds=seconds,
    )
