from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest

from graphrun.errors import RunNotFoundError
from graphrun.execution.command import Decision, GoOn, SendWave
from graphrun.execution.event import (
    EdgeResolved,
    GateReached,
    NodeClaimed,
    NodeQueued,
    NodeSucceeded,
    RunFinished,
    RunStarted,
    WaveOpened,
)
from graphrun.execution.fold import fold
from graphrun.execution.run import RunView, Truth
from graphrun.execution.state import NodeState, RunState
from graphrun.storage.ledger import Ledger
from graphrun.storage.tables import RUN_STREAM

TENANT = "acme"


def test_the_gate_of_wave_zero_starts_the_run(driver: Any, ledger: Ledger) -> None:
    run_id = driver.submit(driver.graph("a", "b")).run_id
    decision = driver.gate(run_id)
    assert decision.commands == (SendWave(wave=1, round=0, nodes=(0, 1)),)
    row = ledger.run(run_id, tenant_id=TENANT)
    assert (row.state, row.run, row.sent) == (RunState.RUNNING, decision.run, False)
    assert row.started_at is not None
    assert [node.state for node in ledger.nodes(run_id, tenant_id=TENANT)] == [NodeState.QUEUED] * 2


def test_a_diamond_runs_to_its_end(driver: Any, ledger: Ledger) -> None:
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    run_id = driver.start(driver.graph("a", "b", "c", "d", edges=edges))
    assert driver.finish(run_id) is RunState.SUCCEEDED
    row = ledger.run(run_id, tenant_id=TENANT)
    assert row.finished_at is not None
    assert {node.state for node in ledger.nodes(run_id, tenant_id=TENANT)} == {NodeState.SUCCEEDED}
    assert {edge.resolution for edge in ledger.edges(run_id, tenant_id=TENANT)} == {"delivered"}


def test_of_twenty_gates_at_once_one_decides(driver: Any, ledger: Ledger) -> None:
    run_id = driver.submit(driver.graph("a", "b")).run_id
    with ThreadPoolExecutor(20) as pool:
        decisions = list(pool.map(lambda _: driver.gate(run_id), range(20)))
    assert sum(bool(decision.events) for decision in decisions) == 1
    assert ledger.run(run_id, tenant_id=TENANT).row_version == 1


def test_a_decision_without_events_writes_nothing(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    before = ledger.run(run_id, tenant_id=TENANT)
    assert driver.gate(run_id).events == ()
    assert ledger.run(run_id, tenant_id=TENANT) == before


def test_a_gate_of_an_unknown_run_is_an_error(ledger: Ledger) -> None:
    with pytest.raises(RunNotFoundError):
        ledger.gate(str(uuid4()), lambda view, _now: Decision(run=view.run), token="t")


def test_a_planner_that_raises_leaves_the_run_as_it_was(driver: Any, ledger: Ledger) -> None:
    run_id = driver.submit(driver.graph("a")).run_id

    def decide(_view: RunView, _now: datetime) -> Decision:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.gate(run_id, decide, token="t")
    assert driver.run(run_id).state is RunState.CREATED


def test_a_view_holds_two_waves_their_inbound_edges_and_their_heads(driver: Any, ledger: Ledger) -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("a", "e")]
    run_id = driver.start(driver.graph("a", "b", "c", "d", "e", "lone", edges=edges))
    for node_id in (0, 5):
        driver.do(run_id, node_id)
    driver.gate(run_id)
    views: list[RunView] = []
    ledger.gate(run_id, lambda view, _now: views.append(view) or Decision(run=view.run), token="t")  # type: ignore[func-returns-value]
    (view,) = views
    assert view.run.wave == 2
    assert sorted(view.nodes) == [0, 1, 2, 4]  # a as a head of c; not d, not the lone node of wave 1
    assert {tail: [edge.head for edge in inbound] for tail, inbound in view.inbound.items()} == {2: [1, 0]}
    assert view.structure is None


def test_a_condition_on_status_sees_the_parameters_of_its_head(driver: Any, ledger: Ledger) -> None:
    when = "status == 'failed' and params.level > 2"
    nodes = [
        {"key": key, "params": {"level": level}, "policy": {"max_attempts": 1}} for key, level in (("a", 3), ("b", 1))
    ]
    edges = [{"head": "a", "tail": "x", "when": when}, {"head": "b", "tail": "y", "when": when}]
    run_id = driver.start(driver.graph(*nodes, "x", "y", edges=edges))
    for node_id in (0, 1):
        driver.do(run_id, node_id, status="failed", output=None, error="no")
    driver.gate(run_id)
    states = {node.key: node.state for node in ledger.nodes(run_id, tenant_id=TENANT)}
    assert (states["x"], states["y"]) == (NodeState.QUEUED, NodeState.SKIPPED)


def test_a_wave_that_is_skipped_goes_on_at_once(driver: Any) -> None:
    edges = [{"head": "a", "tail": "b", "when": "result > 1"}]
    run_id = driver.start(driver.graph("a", "b", edges=edges))
    driver.do(run_id, 0, truths={0: Truth.FALSE})
    decision = driver.gate(run_id)
    assert decision.commands == (GoOn(wave=2, round=0),)
    driver.gate(run_id)
    assert driver.run(run_id).state is RunState.SUCCEEDED


def test_fail_fast_cancels_what_was_queued(driver: Any, ledger: Ledger) -> None:
    node = {"key": "a", "policy": {"max_attempts": 1}}
    run_id = driver.start(driver.graph(node, "b", "c", failure_policy="fail_fast"))
    driver.claim(run_id, 1)
    driver.do(run_id, 0, status="failed", output=None, error="no")
    driver.gate(run_id)
    assert [node.state for node in ledger.nodes(run_id, tenant_id=TENANT)] == [
        NodeState.FAILED,
        NodeState.RUNNING,
        NodeState.CANCELLED,
    ]
    assert driver.settle(run_id, 1, output="1").gate_due is True
    driver.gate(run_id)
    assert driver.run(run_id).state is RunState.FAILED


def test_events_are_numbered_by_stream_and_ordered_in_time(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a", "b", edges=[("a", "b")]))
    driver.finish(run_id)
    rows = ledger.events(run_id, tenant_id=TENANT)
    streams: dict[int, list[int]] = {}
    for row in rows:
        streams.setdefault(row.node_id, []).append(row.n)
    assert streams == {stream: list(range(1, len(numbers) + 1)) for stream, numbers in streams.items()}
    assert [row.event for row in rows if row.node_id == RUN_STREAM] == [
        RunStarted(),
        WaveOpened(wave=1),
        WaveOpened(wave=2),
        RunFinished(state=RunState.SUCCEEDED),
    ]
    delivered = (EdgeResolved(edge_id=0, resolution="delivered"),)  # type: ignore[arg-type]
    assert [row.event for row in rows if row.node_id == 1] == [
        NodeQueued(node_id=1, attempt=1, round=0, reason="first", edges=delivered),
        NodeClaimed(node_id=1, attempt=1, kind="body", worker="worker-1"),  # type: ignore[arg-type]
        NodeSucceeded(node_id=1, attempt=1),
    ]


def test_the_rows_of_a_run_are_the_fold_of_its_log(driver: Any, ledger: Ledger) -> None:
    nodes = ["a", {"key": "b", "policy": {"max_attempts": 1}}, "c", "d"]
    edges = [("a", "c"), {"head": "b", "tail": "c", "required": False}, ("b", "d")]
    submission = driver.submission(driver.graph(*nodes, edges=edges))
    run_id = ledger.submit(submission).run_id
    created = driver.run(run_id)
    driver.gate(run_id)
    driver.do(run_id, 0, status="failed", output=None, error="no")
    driver.do(run_id, 1, status="failed", output=None, error="never")
    driver.gate(run_id)
    driver.finish(run_id)
    log = [row.event for row in ledger.events(run_id, tenant_id=TENANT)]
    rows = fold(created, submission.nodes, submission.edges, log)
    assert rows.run == driver.run(run_id)
    assert list(rows.nodes.values()) == [node.node for node in ledger.nodes(run_id, tenant_id=TENANT)]
    assert list(rows.edges.values()) == list(ledger.edges(run_id, tenant_id=TENANT))
    assert rows.nodes[3].cause == "upstream_failed"


def test_a_reader_that_keeps_its_place_sees_each_event_once(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a", "b", edges=[("a", "b")]))
    after: dict[int, int] = {}
    seen = []
    while True:
        for row in ledger.events(run_id, after, tenant_id=TENANT):
            seen.append((row.node_id, row.n))
            after[row.node_id] = row.n
        nodes = ledger.queued(run_id)
        if not nodes and driver.run(run_id).state is RunState.SUCCEEDED:
            break
        for dispatch in ledger.dispatches(run_id, nodes):
            driver.do(run_id, dispatch.node_id, dispatch.attempt)
        driver.gate(run_id)
    assert len(seen) == len(set(seen))
    assert sorted(seen) == sorted((row.node_id, row.n) for row in ledger.events(run_id, tenant_id=TENANT))


def test_a_late_gate_does_nothing(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    driver.do(run_id, 0)
    driver.gate(run_id)
    before = ledger.run(run_id, tenant_id=TENANT)
    from datetime import UTC, datetime

    from graphrun.execution.planner import advance

    late = GateReached(revision=0, wave=1, round=0, now=datetime.now(UTC))
    assert ledger.gate(run_id, lambda view, _now: advance(view, late), token="t").events == ()
    assert ledger.run(run_id, tenant_id=TENANT) == before
