"""X8: a gate fires once, wave by wave. Also X5 (fail fast), X10, X19, O5, O6, O10, O14 and promises 5 and 7."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphrun.execution.command import GoOn, SendWave
from graphrun.execution.event import (
    ChordBroken,
    GateReached,
    NodeCancelled,
    NodeClaimed,
    NodeQueued,
    NodeSucceeded,
    RoundOpened,
    RunFinished,
    RunStarted,
    RunTripped,
    SendLost,
    WaveOpened,
)
from graphrun.execution.fold import fold
from graphrun.execution.planner import advance
from graphrun.execution.state import Cause, NodeState, RunState

from .cases import Case, EdgeCase, NodeCase, Step, Wish
from .driver import MIDNIGHT, Driver, finished, opened

A, B, C = (NodeCase(key=key) for key in "abc")
FAILS = (Step(kind="fail"),)
CHAIN = (EdgeCase(head="a", tail="b"), EdgeCase(head="b", tail="c"))


# --- X8


def test_x8_the_gate_of_wave_0_starts_the_run():
    driver = Driver(Case(nodes=(A, B)))
    decision = driver.next_gate()
    assert [type(event) for event in decision.events] == [RunStarted, WaveOpened, NodeQueued, NodeQueued]
    assert decision.commands == (SendWave(wave=1, round=0, nodes=(0, 1)),)


def test_x8_a_gate_of_a_round_with_open_nodes_does_nothing():
    driver = opened(A, B)
    assert not driver.gate((0, 1, 0)).events
    driver.play("a")
    assert not driver.gate((0, 1, 0)).events
    driver.play("b")
    assert driver.gate((0, 1, 0)).run.state is RunState.SUCCEEDED


@pytest.mark.parametrize("which", [(1, 1, 0), (0, 0, 0), (0, 2, 0), (0, 1, 1)])
def test_x8_a_gate_of_another_revision_wave_or_round_does_nothing(which):
    driver = opened(A)
    driver.play("a")
    assert not driver.gate(which).events
    assert driver.run.state is RunState.RUNNING


@pytest.mark.parametrize("state", sorted(set(RunState) - {RunState.CREATED, RunState.RUNNING}))
def test_promise_4_a_gate_of_a_run_that_does_not_run_does_nothing(state):
    driver = opened(A)
    driver.play("a")
    view = driver.gate_view()
    fact = GateReached(revision=0, wave=1, round=0, now=MIDNIGHT)
    assert not advance(replace(view, run=replace(view.run, state=state)), fact).events


def test_promise_5_each_gate_fires_once():
    case = Case(nodes=(replace(A, steps=(Step(kind="fail"), Step())), replace(B, verified=True), C), edges=CHAIN)
    assert finished(case).log.gates == [(0, 0, 0), (0, 1, 0), (0, 1, 1), (0, 2, 0), (0, 2, 1), (0, 3, 0)]


def test_x8_no_node_of_a_wave_is_queued_before_the_wave_before_has_ended():
    case = Case(nodes=(A, B, C), edges=(EdgeCase(head="a", tail="c"),))
    driver = finished(case)
    (queued,) = [event for event in driver.events_of(NodeQueued) if event.node_id == 2]
    ends = [event for event in driver.events_of(NodeSucceeded) if event.node_id < 2]
    assert all(driver.log.events.index(end) < driver.log.events.index(queued) for end in ends)


def test_x8_retries_verifications_and_evolutions_of_a_wave_share_one_round():
    nodes = (A, replace(B, verified=True), C)
    driver = opened(*nodes)
    driver.play("a", "failed")
    driver.play("b")
    execution = driver.begin("c")
    driver.requests[2] = driver.request(driver.node("c"), Wish())
    driver.end(execution, "evolved")
    decision = driver.next_gate()
    assert [event for event in decision.events if isinstance(event, RoundOpened)] == [RoundOpened(wave=1, round=1)]
    assert decision.commands == (SendWave(wave=1, round=1, nodes=(0, 1, 2)),)
    reasons = [event.reason for event in decision.events if isinstance(event, NodeQueued)]
    assert reasons == ["retry", "evolved"]


def test_o6_a_wave_of_one_is_a_round_like_any_other():
    driver = opened(A, B, edges=CHAIN[:1])
    driver.play("a")
    assert driver.next_gate().commands == (SendWave(wave=2, round=0, nodes=(1,)),)


def test_o10_a_join_behind_two_fans_runs_exactly_once():
    heads = [NodeCase(key=f"b{number}") for number in range(4)]
    case = Case(
        nodes=(A, B, *heads, NodeCase(key="join")),
        edges=(
            *(EdgeCase(head="ab"[number // 2], tail=head.key) for number, head in enumerate(heads)),
            *(EdgeCase(head=head.key, tail="join") for head in heads),
        ),
    )
    driver = finished(case, early_gates=True)
    assert len([event for event in driver.events_of(NodeClaimed) if event.node_id == 6]) == 1


# --- O5, X10


def test_o5_the_empty_graph_succeeds_at_once():
    decision = Driver(Case()).next_gate()
    assert decision.events == (RunStarted(), RunFinished(state=RunState.SUCCEEDED))
    assert decision.commands == ()


def test_o5_a_wave_in_which_every_node_is_skipped_goes_straight_to_its_gate():
    driver = opened(replace(A, value=-1), B, C, edges=(EdgeCase(head="a", tail="b", when="result > 0"), CHAIN[1]))
    driver.play("a")
    decision = driver.next_gate()
    assert decision.commands == (GoOn(wave=2, round=0),)
    assert driver.next_gate().commands == (GoOn(wave=3, round=0),)
    assert driver.next_gate().run.state is RunState.SUCCEEDED


def test_x10_a_pre_done_node_is_not_dispatched_and_counts_as_done():
    driver = finished(Case(nodes=(replace(A, pre_done=True), B), edges=CHAIN[:1]))
    node = driver.node("a")
    assert (node.state, node.pre_done, node.attempt) == (NodeState.SUCCEEDED, True, 0)
    assert [event.node_id for event in driver.events_of(NodeQueued)] == [1]


def test_x10_a_pre_done_node_is_done_whatever_its_upstream_comes_to():
    driver = finished(Case(nodes=(replace(A, steps=FAILS), replace(B, pre_done=True), C), edges=CHAIN))
    assert [driver.node(key).state.value for key in "abc"] == ["failed", "succeeded", "succeeded"]


def test_x10_a_node_that_ran_is_not_called_pre_done():
    assert not finished(Case(nodes=(A,))).node("a").pre_done


# --- X19


@pytest.mark.parametrize(
    ("nodes", "edges", "state"),
    [
        ((A,), (), RunState.SUCCEEDED),
        ((replace(A, steps=FAILS),), (), RunState.FAILED),
        ((replace(A, steps=FAILS), B), (EdgeCase(head="a", tail="b", required=False),), RunState.FAILED),
        ((A, B), (EdgeCase(head="a", tail="b", when="1 / 0 > 0"),), RunState.FAILED),
        ((replace(A, value=-1), B), (EdgeCase(head="a", tail="b", when="result > 0"),), RunState.SUCCEEDED),
    ],
)
def test_x19_a_run_fails_with_a_failed_node_or_a_skip_because_of_a_failure(nodes, edges, state):
    assert finished(Case(nodes=nodes, edges=edges)).run.state is state


# --- chords


def test_a_round_that_was_not_sent_whole_ends_without_its_chord():
    driver = opened(A, B)
    driver.feed(SendLost(revision=0, wave=1, round=0))
    assert driver.run.direct_gate
    driver.play("a")
    driver.play("b")
    assert (0, 1, 0) in driver.gates_due


@pytest.mark.parametrize("which", [(1, 1, 0), (0, 2, 0), (0, 1, 1)])
def test_a_lost_send_of_another_round_changes_nothing(which):
    revision, wave, number = which
    assert not opened(A).feed(SendLost(revision=revision, wave=wave, round=number)).events


# --- X5: fail fast


def test_x5_fail_fast_lets_nothing_start_after_a_node_failed_for_good():
    nodes = (replace(A, steps=FAILS), B, C, NodeCase(key="d"))
    driver = finished(
        Case(nodes=nodes, edges=(EdgeCase(head="b", tail="c"), EdgeCase(head="c", tail="d")), policy="fail_fast"),
        lockstep=True,
    )
    assert [driver.node(key).state.value for key in "abcd"] == ["failed", "succeeded", "cancelled", "cancelled"]
    assert [driver.node(key).cause for key in "cd"] == [Cause.FAIL_FAST, Cause.FAIL_FAST]
    assert driver.node("a").attempt == 2
    assert driver.events_of(RunTripped) == [RunTripped(key="a")]
    assert driver.run.state is RunState.FAILED


def test_x5_fail_fast_waits_for_the_retry():
    case = Case(nodes=(replace(A, steps=(Step(kind="fail"), Step())), B), edges=CHAIN[:1], policy="fail_fast")
    driver = finished(case)
    assert driver.run.state is RunState.SUCCEEDED
    assert driver.events_of(RunTripped) == []


def test_x5_fail_fast_does_not_take_the_retry_of_another_node():
    driver = opened(replace(A, max_attempts=1), B, policy="fail_fast")
    driver.play("b", "failed", error="first time")
    driver.play("a", "failed", error="for good")
    driver.gate((0, 1, 0))
    node = driver.node("b")
    assert (node.state, node.attempt, node.error) == (NodeState.FAILED, 1, "first time")


def test_x5_fail_fast_cancels_what_waits_for_its_verification():
    driver = opened(replace(A, max_attempts=1), replace(B, verified=True), policy="fail_fast")
    driver.play("b")
    driver.play("a", "failed")
    driver.gate((0, 1, 0))
    assert (driver.node("b").state, driver.node("b").cause) == (NodeState.CANCELLED, Cause.FAIL_FAST)


def test_x5_fail_fast_lets_a_tripped_run_evolve_no_more():
    driver = opened(replace(A, max_attempts=1), B, policy="fail_fast")
    execution = driver.begin("b")
    driver.requests[1] = driver.request(driver.node("b"), Wish(add=(C,)))
    driver.end(execution, "evolved")
    driver.play("a", "failed")
    driver.gate((0, 1, 0))
    assert driver.node("b").state is NodeState.CANCELLED
    assert len(driver.nodes) == 2


def test_x5_a_refused_evolution_trips_before_its_round_is_sent():
    driver = opened(A, B, policy="fail_fast")
    execution = driver.begin("b")
    driver.requests[1] = driver.request(driver.node("b"), Wish(refusal="no"))
    driver.end(execution, "evolved")
    driver.play("a", "failed")
    decision = driver.gate((0, 1, 0))
    assert [driver.node(key).state for key in "ab"] == [NodeState.FAILED, NodeState.FAILED]
    assert decision.commands == ()
    assert decision.run.state is RunState.FAILED


def test_x5_fail_fast_keeps_what_was_done_before_the_run():
    case = Case(nodes=(replace(A, steps=FAILS), replace(B, pre_done=True)), edges=CHAIN[:1], policy="fail_fast")
    assert finished(case).node("b").state is NodeState.SUCCEEDED


def test_o14_every_row_is_final_when_a_wave_of_three_fails_fast():
    driver = opened(replace(A, max_attempts=1), B, C, policy="fail_fast")
    running = driver.begin("b")
    driver.play("a", "failed")
    assert driver.gates_due == [(0, 1, 0)], "the gate is told at once"
    decision = driver.next_gate()
    assert decision.events == (
        RunTripped(key="a"),
        ChordBroken(wave=1, round=0),
        NodeCancelled(node_id=2, cause=Cause.FAIL_FAST),
    )
    driver.end(running)
    assert driver.next_gate().run.state is RunState.FAILED
    driver.finish()
    assert [driver.node(key).state.value for key in "abc"] == ["failed", "succeeded", "cancelled"]


def test_o14_a_failed_node_does_not_stop_its_siblings_under_proceed():
    driver = opened(replace(A, max_attempts=1), B, C)
    driver.play("a", "failed")
    assert driver.gates_due == []
    driver.finish()
    assert [driver.node(key).state.value for key in "abc"] == ["failed", "succeeded", "succeeded"]


# --- promise 7


def test_promise_7_the_rows_are_the_fold_of_the_log():
    case = Case(
        nodes=(replace(A, steps=(Step(kind="fail", lost=1), Step())), replace(B, verified=True), C), edges=CHAIN
    )
    driver = finished(case)
    run, nodes, edges = driver.submitted
    rows = fold(run, nodes.values(), edges.values(), driver.log.events)
    assert (rows.run, rows.nodes) == (driver.run, driver.nodes)
    assert [edge.resolution for edge in rows.edges.values()] == [edge.resolution for edge in driver.edges.values()]
    shorter = fold(run, nodes.values(), edges.values(), driver.log.events[:-1])
    assert shorter.run.state is RunState.RUNNING


def test_a_wave_opens_with_round_0_and_a_whole_chord():
    driver = opened(A, B, edges=CHAIN[:1])
    driver.lose(driver.begin("a"))
    driver.play("a")
    assert driver.run.direct_gate
    driver.next_gate()
    assert (driver.run.wave, driver.run.round, driver.run.direct_gate) == (2, 0, False)
    driver.play("b")
    assert driver.gates_due == [(0, 2, 0)], "its chord sends the gate, and nobody else does"
