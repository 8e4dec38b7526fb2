"""X6 and X16: retries, lost deliveries, verification. Also O8 and what becomes of late and doubled facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from graphrun.execution.command import SendNode, SendWave
from graphrun.execution.event import (
    ChordBroken,
    Claimed,
    DeliveryLost,
    GateReached,
    NodeClaimed,
    NodeQueued,
    NodeSucceeded,
    Settled,
)
from graphrun.execution.planner import advance
from graphrun.execution.retry import may_retry
from graphrun.execution.run import AttemptKind, NodeRun
from graphrun.execution.state import Awaiting, NodeState, RunState
from graphrun.model.spec import Policy

from .cases import Case, EdgeCase, NodeCase, Step
from .driver import MIDNIGHT, Driver, finished, opened

A, B = NodeCase(key="a"), NodeCase(key="b")


# --- retry


def test_x6_a_failed_attempt_waits_for_the_gate_and_is_tried_once_more():
    driver = opened(A)
    node = driver.play("a", "failed", error="no")
    assert (node.state, node.awaiting, node.error) == (NodeState.WAITING, Awaiting.RETRY, "no")
    decision = driver.next_gate()
    assert decision.commands == (SendWave(wave=1, round=1, nodes=(0,)),)
    assert (driver.node("a").attempt, driver.node("a").tries) == (2, 2)
    node = driver.play("a", "failed", error="no again")
    assert (node.state, node.error) == (NodeState.FAILED, "no again")


def test_x6_a_retry_that_succeeds_forgets_the_error():
    driver = opened(A)
    driver.play("a", "failed", error="no")
    driver.next_gate()
    node = driver.play("a")
    assert (node.state, node.attempt, node.error) == (NodeState.SUCCEEDED, 2, None)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_x6_max_attempts_counts_the_first_one(most):
    driver = finished(Case(nodes=(NodeCase(key="a", steps=(Step(kind="fail"),), max_attempts=most),)))
    assert driver.node("a").attempt == most


def test_x6_retry_on_names_the_errors_that_are_worth_a_retry():
    node = NodeRun(node_id=0, key="a", wave=1, tries=1, policy=Policy(retry_on=("Boom",)))
    assert may_retry(node, error_type="Boom", final=False)
    assert not may_retry(node, error_type="Bang", final=False)
    assert not may_retry(node, error_type=None, final=False)
    driver = finished(Case(nodes=(NodeCase(key="a", steps=(Step(kind="fail", error="Bang"),), retry_on=("Boom",)),)))
    assert driver.node("a").attempt == 1


def test_x6_a_final_failure_is_not_retried():
    node = opened(A).play("a", "failed", error="no", final=True)
    assert (node.state, node.attempt) == (NodeState.FAILED, 1)


def test_x6_a_failure_without_a_word_still_has_an_error():
    assert opened(replace(A, max_attempts=1)).play("a", "failed").error == "failed"
    assert opened(replace(A, max_attempts=1)).play("a", "failed", error_type="Boom").error == "Boom"


def test_x6_backoff_is_a_not_before_that_is_not_sent_with_its_round():
    driver = opened(replace(A, backoff=True), B)
    driver.play("a", "failed")
    driver.play("b", "failed")
    (which,) = driver.gates_due
    driver.gates_due.clear()
    decision = advance(driver.gate_view(), GateReached(revision=0, wave=1, round=0, now=MIDNIGHT, jitter=0.5))
    queued = {event.node_id: event.not_before for event in decision.events if isinstance(event, NodeQueued)}
    assert queued == {0: MIDNIGHT + timedelta(seconds=10 * 1.25), 1: None}
    assert decision.commands == (SendWave(wave=1, round=1, nodes=(1,), direct=True),)
    assert decision.run.direct_gate, "no chord can count a member that comes later"
    driver.gate(which)
    driver.finish()
    assert driver.now > MIDNIGHT


def test_x6_backoff_grows_with_each_try():
    case = Case(nodes=(replace(A, steps=(Step(kind="fail"),), backoff=True, max_attempts=3),))
    first, second = (event.not_before for event in finished(case).events_of(NodeQueued) if event.not_before)
    assert timedelta(seconds=10) <= first - MIDNIGHT < timedelta(seconds=15)
    assert timedelta(seconds=20) <= second - first < timedelta(seconds=30)


def test_o8_a_member_that_retries_is_waited_for_and_its_sibling_is_not_run_again():
    case = Case(
        nodes=(replace(A, steps=(Step(kind="fail"), Step())), B, NodeCase(key="join")),
        edges=(EdgeCase(head="a", tail="join"), EdgeCase(head="b", tail="join")),
    )
    driver = finished(case)
    assert [driver.node(key).attempt for key in ("a", "b", "join")] == [2, 1, 1]
    (join,) = [event for event in driver.events_of(NodeQueued) if event.node_id == 2]
    done = [event for event in driver.events_of(NodeSucceeded) if event.node_id < 2]
    assert all(driver.log.events.index(event) < driver.log.events.index(join) for event in done)


# --- lost deliveries


def test_x6_a_lost_delivery_sends_the_same_attempt_again_outside_the_chord():
    driver = opened(A, B)
    execution = driver.begin("a")
    driver.lose(execution)
    node = driver.node("a")
    assert (node.state, node.attempt, node.tries, node.deliveries) == (NodeState.QUEUED, 1, 1, 1)
    assert driver.log.commands[-1] == SendNode(node_id=0)
    assert driver.inbox[-1].chord is None
    assert driver.run.direct_gate
    assert driver.events_of(ChordBroken) == [ChordBroken(wave=1, round=0)]


def test_x6_a_lost_delivery_does_not_use_the_retry():
    driver = finished(Case(nodes=(replace(A, steps=(Step(kind="fail", lost=2), Step(lost=2))),)))
    assert (driver.node("a").state, driver.node("a").attempt) == (NodeState.SUCCEEDED, 2)


def test_x6_a_node_that_is_lost_too_often_fails_for_good_and_says_why():
    driver = finished(Case(nodes=(replace(A, steps=(Step(lost=3),)),)))
    node = driver.node("a")
    assert (node.state, node.attempt) == (NodeState.FAILED, 1)
    assert node.error == "worker lost 3 times: likely out of memory or a crash in native code"
    assert driver.run.state is RunState.FAILED


def test_x6_the_settle_that_leaves_no_open_node_sends_the_gate_of_a_broken_chord():
    driver = opened(A, B)
    driver.lose(driver.begin("a"))
    driver.play("b")
    assert driver.gates_due == []
    driver.play("a")
    assert driver.gates_due == [(0, 1, 0)]


def test_x6_a_new_round_has_a_chord_of_its_own():
    driver = opened(A)
    driver.lose(driver.begin("a"))
    driver.play("a", "failed")
    driver.next_gate()
    assert not driver.run.direct_gate


def test_x15_an_attempt_that_its_parent_settles_breaks_the_chord():
    driver = opened(A, B)
    driver.play("a", "failed", error="running time limit of 5 s exceeded", outside=True)
    assert driver.run.direct_gate
    driver.play("b")
    assert driver.gates_due == [(0, 1, 0)]


def test_x15_a_queue_time_limit_fails_a_node_that_nobody_claimed():
    driver = opened(A, B)
    fact = Settled(
        node_id=0,
        attempt=1,
        kind=AttemptKind.BODY,
        status="failed",
        error="too long in queue",
        final=True,
        outside=True,
    )
    driver.feed(fact)
    assert (driver.node("a").state, driver.node("a").error) == (NodeState.FAILED, "too long in queue")
    assert driver.run.direct_gate
    late = Claimed(node_id=0, attempt=1, kind=AttemptKind.BODY, worker="late")
    assert not driver.feed(late).events


# --- verification


VERIFIED = NodeCase(key="a", verified=True)


def test_x16_a_done_body_waits_for_its_verification_which_the_gate_sends():
    driver = opened(VERIFIED)
    assert driver.play("a").awaiting is Awaiting.VERIFICATION
    assert driver.next_gate().commands == (SendWave(wave=1, round=1, nodes=(0,)),)
    node = driver.node("a")
    assert (node.state, node.awaiting, node.attempt) == (NodeState.WAITING, Awaiting.VERDICT, 1)
    execution = driver.begin("a")
    assert execution.message.kind is AttemptKind.VERIFY
    assert driver.events_of(NodeClaimed)[-1].kind is AttemptKind.VERIFY
    assert driver.node("a").state is NodeState.WAITING
    driver.end(execution)
    assert (driver.node("a").state, driver.node("a").awaiting) == (NodeState.SUCCEEDED, None)


def test_x16_the_gate_waits_for_a_verdict():
    driver = opened(VERIFIED)
    driver.play("a")
    driver.next_gate()
    assert not driver.gate((0, 1, 1)).events


def test_x16_a_failed_verify_is_a_failed_attempt_and_gets_the_retry():
    driver = opened(VERIFIED)
    driver.play("a")
    driver.next_gate()
    node = driver.play("a", "failed", error_type="VerifyFailed", error="verify failed")
    assert (node.awaiting, node.error) == (Awaiting.RETRY, "verify failed")
    driver.next_gate()
    assert (driver.node("a").state, driver.node("a").attempt) == (NodeState.QUEUED, 2)
    driver.play("a")
    driver.next_gate()
    node = driver.play("a", "failed", error_type="VerifyFailed", error="verify failed again")
    assert (node.state, node.attempt, node.error) == (NodeState.FAILED, 2, "verify failed again")


def test_x16_a_lost_verify_is_sent_again_while_the_node_waits():
    driver = opened(VERIFIED)
    driver.play("a")
    driver.next_gate()
    driver.lose(driver.begin("a"))
    node = driver.node("a")
    assert (node.awaiting, node.attempt, node.deliveries) == (Awaiting.VERDICT, 1, 1)
    assert driver.run.direct_gate
    assert driver.play("a").state is NodeState.SUCCEEDED


def test_x16_deliveries_of_the_verify_task_are_counted_apart_from_those_of_the_body():
    driver = finished(Case(nodes=(replace(VERIFIED, steps=(Step(lost=2, verdict_lost=2),)),)))
    assert driver.node("a").state is NodeState.SUCCEEDED
    driver = finished(Case(nodes=(replace(VERIFIED, steps=(Step(lost=2, verdict_lost=3),)),)))
    assert driver.node("a").error == "worker lost 3 times: likely out of memory or a crash in native code"


def test_x16_a_pre_done_node_is_not_verified():
    driver = finished(Case(nodes=(replace(VERIFIED, pre_done=True),)))
    assert (driver.node("a").state, driver.events_of(NodeClaimed)) == (NodeState.SUCCEEDED, [])


# --- late, doubled and strange facts


def test_promise_2_an_outcome_is_recorded_once():
    driver = opened(A)
    execution = driver.begin("a")
    driver.end(execution)
    for status in ("done", "failed", "evolved"):
        fact = Settled(node_id=0, attempt=1, kind=AttemptKind.BODY, status=status)
        assert not driver.feed(fact).events
    assert driver.node("a").state is NodeState.SUCCEEDED


def test_promise_2_an_outcome_of_an_earlier_attempt_changes_nothing():
    driver = opened(A)
    driver.play("a", "failed")
    driver.next_gate()
    driver.begin("a")
    assert not driver.feed(Settled(node_id=0, attempt=1, kind=AttemptKind.BODY, status="done")).events
    assert not driver.feed(DeliveryLost(node_id=0, attempt=1, reason="late")).events
    assert driver.node("a").state is NodeState.RUNNING


def test_promise_2_an_outcome_of_the_other_kind_changes_nothing():
    driver = opened(VERIFIED)
    driver.begin("a")
    assert not driver.feed(Settled(node_id=0, attempt=1, kind=AttemptKind.VERIFY, status="done")).events


def test_promise_4_only_a_queued_attempt_of_a_running_run_can_be_claimed():
    driver = opened(A)
    claim = Claimed(node_id=0, attempt=1, kind=AttemptKind.BODY, worker="w")
    assert not driver.feed(replace(claim, attempt=2)).events
    assert not driver.feed(replace(claim, kind=AttemptKind.VERIFY)).events
    for state in set(RunState) - {RunState.RUNNING}:
        view = replace(driver.node_view(0), run=replace(driver.run, state=state))
        assert not advance(view, claim).events, state
    assert driver.feed(claim).events
    assert not driver.feed(claim).events


def test_a_delivery_that_is_not_running_cannot_be_lost():
    driver = opened(A)
    assert not driver.feed(DeliveryLost(node_id=0, attempt=1, reason="signal 9")).events
    driver.play("a")
    assert not driver.feed(DeliveryLost(node_id=0, attempt=1, reason="signal 9")).events


def test_a_pair_of_losses_of_one_delivery_counts_once():
    driver = opened(A)
    driver.lose(driver.begin("a"))  # feed() hands every fact in twice
    assert driver.node("a").deliveries == 1


def test_a_driver_by_hand_ends_like_one_by_chance():
    driver = opened(A)
    driver.play("a")
    driver.next_gate()
    assert isinstance(driver, Driver)
    assert driver.run.state is RunState.SUCCEEDED
