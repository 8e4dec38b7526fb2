from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from graphrun.errors import LedgerError, RunNotFoundError
from graphrun.execution.event import DeliveryLost, Settled
from graphrun.execution.run import AttemptKind, Truth
from graphrun.execution.state import Awaiting, NodeState, RunState
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import AttemptRecord, Claim

TENANT = "acme"
ODD_OUTPUTS = ['{"loss":{"$float":"nan"},"best":{"$float":"-inf"}}', json.dumps("a\x00b"), json.dumps("\ud800 lone")]


def test_an_outcome_is_recorded_with_all_it_left(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    result = driver.do(
        run_id,
        0,
        output="[1,2]",
        summary="two",
        missing_inputs={"x": "condition"},
        implemented=("one", "two"),
    )
    assert (result.accepted, result.state, result.gate_due) == (True, NodeState.SUCCEEDED, False)
    node = ledger.nodes(run_id, tenant_id=TENANT)[0]
    assert (node.state, node.summary, node.missing_inputs, node.implemented) == (
        NodeState.SUCCEEDED,
        "two",
        {"x": "condition"},
        ("one", "two"),
    )
    assert node.finished_at is not None
    (attempt,) = ledger.attempts(run_id, "a", tenant_id=TENANT)
    assert (attempt.attempt, attempt.status, attempt.worker, attempt.delivery) == (1, "done", "worker-1", 0)
    assert attempt.output == node.output
    assert ledger.output(run_id, "a", tenant_id=TENANT) == "[1,2]"


@pytest.mark.parametrize("output", ODD_OUTPUTS)
def test_an_output_is_stored_byte_for_byte(driver: Any, ledger: Ledger, output: str) -> None:
    run_id = driver.start(driver.graph("a"))
    driver.do(run_id, 0, output=output)
    assert ledger.output(run_id, "a", tenant_id=TENANT) == output


def test_text_for_people_is_stored_with_escapes_for_what_no_database_takes(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph({"key": "a", "policy": {"max_attempts": 1}}))
    driver.do(run_id, 0, status="failed", output=None, error="bad \x00 \ud800", traceback="\x00", summary="\udfff")
    (attempt,) = ledger.attempts(run_id, tenant_id=TENANT)
    assert (attempt.error, attempt.traceback, attempt.summary) == ("bad \\x00 \\ud800", "\\x00", "\\udfff")
    assert ledger.nodes(run_id, tenant_id=TENANT)[0].error == "bad \\x00 \\ud800"
    assert ledger.events(run_id, tenant_id=TENANT)[-1].event.error == "bad \\x00 \\ud800"


def test_a_settle_repeated_with_its_token_counts_once(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    first = driver.do(run_id, 0)
    assert driver.settle(run_id, 0, output="1") == first
    assert len(ledger.attempts(run_id, tenant_id=TENANT)) == 1


def test_a_stale_token_is_refused_kept_and_logged(
    driver: Any, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = driver.start(driver.graph("a"))
    driver.claim(run_id, 0, token="late", task_id="t1")
    ledger.lose_delivery(run_id, 0, task_id="t1", fact=DeliveryLost(node_id=0, attempt=1, reason="SIGKILL"))
    driver.claim(run_id, 0, token="second")
    with caplog.at_level(logging.WARNING, "graphrun.ledger"):
        result = driver.settle(run_id, 0, token="late", output='"late"')
    assert (result.accepted, result.state, result.gate_due) == (False, NodeState.RUNNING, False)
    assert "was refused" in caplog.text
    assert driver.settle(run_id, 0, token="late", output='"late"').accepted is False
    assert driver.settle(run_id, 0, token="second", output='"mine"').accepted is True
    assert ledger.output(run_id, "a", tenant_id=TENANT) == '"mine"'
    assert [row.status for row in ledger.attempts(run_id, tenant_id=TENANT)] == ["lost", "refused", "done"]


def test_of_many_writers_of_one_attempt_one_is_accepted(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    driver.claim(run_id, 0, task_id="t1")
    fact = Settled(node_id=0, attempt=1, kind=AttemptKind.BODY, status="failed", error="limit", outside=True)

    def end(number: int) -> bool:
        if number % 2:
            return bool(driver.settle(run_id, 0, output="1").accepted)
        return ledger.settle_for(run_id, 0, task_id="t1", fact=fact, record=AttemptRecord(error="limit")).accepted

    with ThreadPoolExecutor(2) as pool:
        accepted = list(pool.map(end, range(2)))
    assert sum(accepted) == 1
    outcomes = [row for row in ledger.attempts(run_id, tenant_id=TENANT) if row.status != "refused"]
    assert len(outcomes) == 1


def test_a_failed_attempt_waits_for_its_gate_and_is_retried(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    result = driver.do(run_id, 0, status="failed", output=None, error="no", error_type="ValueError")
    assert result.state is NodeState.WAITING
    assert ledger.nodes(run_id, tenant_id=TENANT)[0].node.awaiting is Awaiting.RETRY
    driver.gate(run_id)
    assert driver.run(run_id).round == 1
    driver.do(run_id, 0, 2)
    driver.gate(run_id)
    assert driver.run(run_id).state is RunState.SUCCEEDED
    assert [(row.attempt, row.status) for row in ledger.attempts(run_id, tenant_id=TENANT)] == [
        (1, "failed"),
        (2, "done"),
    ]


def test_a_failure_for_good_is_noted_on_the_run(driver: Any) -> None:
    run_id = driver.start(driver.graph({"key": "a", "policy": {"max_attempts": 1}}, "b"))
    assert driver.run(run_id).failed is False
    driver.do(run_id, 0, status="failed", output=None, error="no")
    assert driver.run(run_id).failed is True


def test_under_fail_fast_a_failure_for_good_makes_the_gate_due(driver: Any) -> None:
    node = {"key": "a", "policy": {"max_attempts": 1}}
    run_id = driver.start(driver.graph(node, "b", failure_policy="fail_fast"))
    assert driver.do(run_id, 0, status="failed", output=None, error="no").gate_due is True


def test_truths_are_stored_with_their_edges(driver: Any, ledger: Ledger) -> None:
    edges = [{"head": "a", "tail": "b", "when": "result > 0"}, {"head": "a", "tail": "c", "when": "result < 0"}]
    run_id = driver.start(driver.graph("a", "b", "c", edges=edges))
    driver.do(run_id, 0, truths={0: Truth.TRUE, 1: Truth.FALSE})
    assert [edge.truth for edge in ledger.edges(run_id, tenant_id=TENANT)] == [Truth.TRUE, Truth.FALSE]
    driver.gate(run_id)
    states = {node.key: node.state for node in ledger.nodes(run_id, tenant_id=TENANT)}
    assert states == {"a": NodeState.SUCCEEDED, "b": NodeState.QUEUED, "c": NodeState.SKIPPED}


def test_the_last_settle_of_a_round_with_a_lost_delivery_sends_the_gate(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a", "b"))
    driver.claim(run_id, 0, task_id="t1")
    lost = ledger.lose_delivery(run_id, 0, task_id="t1", fact=DeliveryLost(node_id=0, attempt=1, reason="SIGKILL"))
    assert (lost.accepted, lost.state, lost.attempt, lost.gate_due) == (True, NodeState.QUEUED, 1, False)
    assert lost.run.direct_gate is True
    assert driver.do(run_id, 1).gate_due is False
    assert driver.do(run_id, 0).gate_due is True


def test_of_last_settles_at_once_at_least_one_sends_the_gate(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph(*(f"n{number}" for number in range(8))))
    driver.claim(run_id, 0, task_id="t1")
    ledger.lose_delivery(run_id, 0, task_id="t1", fact=DeliveryLost(node_id=0, attempt=1, reason="SIGKILL"))
    for node_id in range(8):
        driver.claim(run_id, node_id)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda node_id: driver.settle(run_id, node_id, output="1"), range(8)))
    assert any(result.gate_due for result in results)


def test_a_delivery_lost_too_often_fails_the_node_and_makes_the_gate_due(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    for number in range(3):
        driver.claim(run_id, 0, task_id=f"t{number}")
        fact = DeliveryLost(node_id=0, attempt=1, reason="SIGKILL")
        lost = ledger.lose_delivery(run_id, 0, task_id=f"t{number}", fact=fact)
    assert (lost.state, lost.gate_due) == (NodeState.FAILED, True)
    assert [(row.status, row.delivery) for row in ledger.attempts(run_id, tenant_id=TENANT)] == [
        ("lost", 0),
        ("lost", 1),
        ("lost", 2),
    ]


def test_a_delivery_that_does_not_hold_the_claim_loses_nothing(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    driver.claim(run_id, 0, task_id="t1")
    fact = DeliveryLost(node_id=0, attempt=1, reason="SIGKILL")
    assert ledger.lose_delivery(run_id, 0, task_id="other", fact=fact).accepted is False
    assert ledger.nodes(run_id, tenant_id=TENANT)[0].state is NodeState.RUNNING


def test_a_parent_settles_for_the_delivery_that_it_knows(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a", "b"))
    driver.claim(run_id, 0, task_id="t1")
    fact = Settled(node_id=0, attempt=1, kind=AttemptKind.BODY, status="failed", error="limit", outside=True)
    record = AttemptRecord(error_type="TimeLimitExceeded", error="limit")
    assert ledger.settle_for(run_id, 0, task_id="other", fact=fact, record=record).accepted is False
    result = ledger.settle_for(run_id, 0, task_id="t1", fact=fact, record=record)
    assert (result.accepted, result.state, result.run.direct_gate) == (True, NodeState.WAITING, True)
    assert ledger.settle_for(run_id, 0, task_id="t1", fact=fact, record=record).accepted is False
    assert driver.settle(run_id, 0, output="1").accepted is False


def test_a_verified_node_succeeds_by_its_verdict_alone(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph({"key": "a", "verify": "check"}))
    assert driver.do(run_id, 0, output="[1]").state is NodeState.WAITING
    with pytest.raises(LedgerError, match="has no output: it is waiting"):
        ledger.output(run_id, "a", tenant_id=TENANT)
    driver.gate(run_id)
    assert isinstance(driver.claim(run_id, 0, 1, AttemptKind.VERIFY), Claim)
    result = driver.settle(run_id, 0, kind=AttemptKind.VERIFY, verify_result="pass")
    assert result.state is NodeState.SUCCEEDED
    node = ledger.nodes(run_id, tenant_id=TENANT)[0]
    assert node.verify_result == "pass"
    assert ledger.output(run_id, "a", tenant_id=TENANT) == "[1]"
    assert [row.kind for row in ledger.attempts(run_id, tenant_id=TENANT)] == [AttemptKind.BODY, AttemptKind.VERIFY]


def test_a_lost_verification_is_delivered_again(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph({"key": "a", "verify": "check"}))
    driver.do(run_id, 0)
    driver.gate(run_id)
    driver.claim(run_id, 0, 1, AttemptKind.VERIFY, task_id="t1")
    assert ledger.queued(run_id) == ()
    lost = ledger.lose_delivery(run_id, 0, task_id="t1", fact=DeliveryLost(node_id=0, attempt=1, reason="SIGKILL"))
    assert lost.state is NodeState.WAITING
    assert ledger.queued(run_id) == (0,)
    assert isinstance(driver.claim(run_id, 0, 1, AttemptKind.VERIFY), Claim)
    assert driver.settle(run_id, 0, kind=AttemptKind.VERIFY).gate_due is True


def test_what_a_failed_verification_saw_is_delivered_to_nobody(driver: Any, ledger: Ledger) -> None:
    node = {"key": "a", "verify": "check", "policy": {"max_attempts": 1}}
    edge = {"head": "a", "tail": "b", "when": "status == 'failed'"}
    run_id = driver.start(driver.graph(node, "b", edges=[edge]))
    driver.do(run_id, 0, output='"bad"')
    driver.gate(run_id)
    driver.claim(run_id, 0, 1, AttemptKind.VERIFY)
    driver.settle(run_id, 0, kind=AttemptKind.VERIFY, status="failed", error="verify failed", verify_result="fail")
    driver.gate(run_id)
    assert isinstance(driver.claim(run_id, 1), Claim)
    (item,) = ledger.inputs(run_id, 1)
    assert item.output is None


def test_settling_a_node_that_is_not_there_is_an_error(driver: Any) -> None:
    with pytest.raises(RunNotFoundError):
        driver.settle(str(uuid4()), 0, token="t", output="1")
