from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import update

from graphrun.execution.run import AttemptKind
from graphrun.execution.state import Awaiting, NodeState
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import Claim, ClaimAbsent, ClaimLost
from graphrun.storage.tables import node_runs, runs

TENANT = "acme"


def test_a_claim_gives_what_the_attempt_needs(driver: Any, ledger: Ledger) -> None:
    spec = driver.graph({"key": "a", "params": {"x": 1}}, failure_policy="fail_fast")
    run_id = driver.start(spec)
    claim = driver.claim(run_id, 0)
    assert isinstance(claim, Claim)
    assert claim.spec == spec.nodes[0]
    assert (claim.node.state, claim.node.attempt) == (NodeState.RUNNING, 1)
    assert (claim.run.run_id, claim.tenant_id, claim.failure_policy) == (run_id, TENANT, "fail_fast")
    node = ledger.nodes(run_id, tenant_id=TENANT)[0]
    assert (node.state, node.worker) == (NodeState.RUNNING, "worker-1")
    assert node.started_at is not None


def test_of_twenty_deliveries_one_wins(driver: Any) -> None:
    run_id = driver.start(driver.graph("a", "b"))
    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(lambda _: driver.claim(run_id, 0), range(20)))
    assert sum(isinstance(result, Claim) for result in results) == 1
    assert sum(isinstance(result, ClaimLost) for result in results) == 19


def test_a_claim_repeated_with_its_own_token_is_won_again(driver: Any) -> None:
    run_id = driver.start(driver.graph("a"))
    token = uuid4().hex
    first = driver.claim(run_id, 0, token=token)
    assert driver.claim(run_id, 0, token=token) == first


def test_a_row_that_is_not_there_is_absent_and_not_lost(driver: Any) -> None:
    run_id = driver.start(driver.graph("a"))
    assert driver.claim(str(uuid4()), 0) == ClaimAbsent()
    assert driver.claim(run_id, 7) == ClaimAbsent()


def test_a_node_of_a_created_run_is_not_claimed(driver: Any) -> None:
    run_id = driver.submit(driver.graph("a")).run_id
    assert driver.claim(run_id, 0) == ClaimLost(reason="the run is created")


@pytest.mark.parametrize("state", ["paused", "cancelling"])
def test_nothing_starts_in_a_run_that_is_not_running(driver: Any, ledger: Ledger, state: str) -> None:
    run_id = driver.start(driver.graph("a"))
    with ledger.database.write() as connection:
        connection.execute(update(runs).values(state=state))
    assert driver.claim(run_id, 0) == ClaimLost(reason=f"the run is {state}")


def test_another_attempt_revision_or_wave_is_not_claimed(driver: Any) -> None:
    run_id = driver.start(driver.graph("a", "b", edges=[("a", "b")]))
    assert driver.claim(run_id, 0, 2) == ClaimLost(reason="the node is at attempt 1")
    assert driver.claim(run_id, 0, revision=1) == ClaimLost(reason="the run is at revision 0")
    assert isinstance(driver.claim(run_id, 1), ClaimLost)
    assert isinstance(driver.claim(run_id, 0, kind=AttemptKind.VERIFY), ClaimLost)


def test_a_retry_is_not_claimed_before_its_time(driver: Any, ledger: Ledger) -> None:
    backoff = {"backoff": {"initial_seconds": 500.0, "jitter": 0.0}}
    run_id = driver.start(driver.graph({"key": "a", "policy": backoff}))
    driver.do(run_id, 0, status="failed", error="no")
    driver.gate(run_id)
    result = driver.claim(run_id, 0, 2)
    assert isinstance(result, ClaimLost)
    assert result.reason.startswith("not before ")
    with ledger.database.write() as connection:
        connection.execute(update(node_runs).values(not_before=datetime.now(UTC) - timedelta(seconds=1)))
    assert isinstance(driver.claim(run_id, 0, 2), Claim)


def test_inputs_come_in_declared_order_with_key_and_output(driver: Any, ledger: Ledger) -> None:
    params = {"parts": [{"$node": "b"}, {"$node": "a"}]}
    run_id = driver.start(driver.graph("a", "b", {"key": "c", "params": params}))
    driver.do(run_id, 0, output='"of a"')
    driver.do(run_id, 1, output='"of b"')
    driver.gate(run_id)
    inputs = ledger.inputs(run_id, 2)
    assert [item.head_key for item in inputs] == ["b", "a"]
    assert [ledger.load(item.output) for item in inputs if item.output] == ['"of b"', '"of a"']
    assert [item.edge.resolution for item in inputs] == ["delivered", "delivered"]


def test_outbound_edges_are_those_with_a_condition(driver: Any, ledger: Ledger) -> None:
    edges = [{"head": "a", "tail": "b", "when": "result > 0"}, ("a", "c")]
    run_id = driver.start(driver.graph("a", "b", "c", edges=edges))
    assert [(edge.tail, edge.when) for edge in ledger.outbound(run_id, 0)] == [(1, "result > 0")]


def test_a_verification_is_claimed_with_the_output_it_checks(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph({"key": "a", "verify": "check"}))
    driver.do(run_id, 0, output='{"rows":3}')
    assert driver.run(run_id).wave == 1
    driver.gate(run_id)
    (dispatch,) = ledger.dispatches(run_id, ledger.queued(run_id))
    assert (dispatch.task, dispatch.kind, dispatch.attempt) == ("check", AttemptKind.VERIFY, 1)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: driver.claim(run_id, 0, 1, AttemptKind.VERIFY), range(8)))
    (won,) = [result for result in results if isinstance(result, Claim)]
    assert won.node.awaiting is Awaiting.VERDICT
    assert won.node_output is not None
    assert ledger.load(won.node_output) == '{"rows":3}'
