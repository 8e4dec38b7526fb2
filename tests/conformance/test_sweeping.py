from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Table, update

from graphrun.execution.command import Decision
from graphrun.execution.event import DeliveryLost, GateReached
from graphrun.execution.planner import advance
from graphrun.execution.run import AttemptKind, RunView
from graphrun.storage.ledger import Ledger
from graphrun.storage.records import Dispatch, Unsent
from graphrun.storage.tables import node_runs, runs


def _age(ledger: Ledger, table: Table, seconds: float, **columns: Any) -> None:
    """Move the last change of every row back in time."""
    with ledger.database.write() as connection:
        then = datetime.now(UTC) - timedelta(seconds=seconds)
        connection.execute(update(table).values(changed_at=then, **columns))


def test_a_dispatch_says_what_a_message_needs(driver: Any, ledger: Ledger) -> None:
    policy = {"queue": "io", "priority": 9, "timeout_seconds": 60.0, "soft_timeout_seconds": 50.0}
    run_id = driver.start(driver.graph({"key": "a", "task": "fetch", "policy": policy}, "b"))
    assert ledger.dispatches(run_id, (1, 0)) == (
        Dispatch(
            node_id=1,
            key="b",
            task="work",
            kind=AttemptKind.BODY,
            attempt=1,
            queue=None,
            priority=None,
            timeout_seconds=3600.0,
            soft_timeout_seconds=None,
        ),
        Dispatch(
            node_id=0,
            key="a",
            task="fetch",
            kind=AttemptKind.BODY,
            attempt=1,
            queue="io",
            priority=9,
            timeout_seconds=60.0,
            soft_timeout_seconds=50.0,
        ),
    )


def test_a_node_that_was_claimed_is_not_dispatched(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a", "b"))
    driver.claim(run_id, 0)
    assert [item.node_id for item in ledger.dispatches(run_id, (0, 1))] == [1]
    assert ledger.queued(run_id) == (1,)


def test_more_nodes_than_one_statement_takes_are_dispatched(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph(*(f"n{number}" for number in range(1_200))))
    assert len(ledger.dispatches(run_id, range(1_200))) == 1_200


def test_a_round_is_unsent_until_its_own_token_says_so(driver: Any, ledger: Ledger) -> None:
    run_id = driver.submit(driver.graph("a")).run_id
    driver.gate(run_id, token="first")
    assert ledger.unsent(0, 10) == (Unsent(run=driver.run(run_id), token="first"),)
    ledger.mark_sent(run_id, "other")
    assert len(ledger.unsent(0, 10)) == 1
    ledger.mark_sent(run_id, "first")
    assert ledger.unsent(0, 10) == ()


def test_marking_an_earlier_round_leaves_a_later_one_unsent(driver: Any, ledger: Ledger) -> None:
    run_id = driver.submit(driver.graph("a", "b", edges=[("a", "b")])).run_id
    driver.gate(run_id, token="first")
    driver.do(run_id, 0)
    driver.gate(run_id, token="second")
    ledger.mark_sent(run_id, "first")
    assert [item.token for item in ledger.unsent(0, 10)] == ["second"]


def test_a_finished_run_has_nothing_to_send(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    driver.finish(run_id)
    assert ledger.unsent(0, 10) == ()


def test_only_what_is_old_enough_counts_as_lost(driver: Any, ledger: Ledger) -> None:
    waiting = driver.submit(driver.graph("a")).run_id
    assert ledger.created(60, 10) == ()
    _age(ledger, runs, 61)
    assert [run.run_id for run in ledger.created(60, 10)] == [waiting]
    driver.gate(waiting)
    assert ledger.created(0, 10) == ()
    assert ledger.unsent(60, 10) == ()
    _age(ledger, runs, 61)
    assert len(ledger.unsent(60, 10)) == 1


def test_a_gate_that_did_not_fire_is_stalled(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    driver.claim(run_id, 0)
    _age(ledger, runs, 61)
    _age(ledger, node_runs, 61)
    assert ledger.stalled_gates(60, 10) == ()  # a node is open
    driver.settle(run_id, 0, output="1")
    assert ledger.stalled_gates(60, 10) == ()  # its settle is young: the gate is on its way
    _age(ledger, node_runs, 61)
    assert ledger.stalled_gates(60, 10) == ((run_id, 0, 1, 0),)
    # Handed out once: a queue that is slow is not filled with one gate at every sweep.
    assert ledger.stalled_gates(60, 10) == ()
    _age(ledger, runs, 600, gate_sent_at=datetime.now(UTC) - timedelta(seconds=120))
    assert ledger.stalled_gates(60, 10) == ((run_id, 0, 1, 0),)  # that one was lost too
    driver.gate(run_id)
    assert ledger.stalled_gates(0, 10) == ()


def test_a_retry_is_due_when_its_time_has_come_and_is_handed_out_once(driver: Any, ledger: Ledger) -> None:
    node = {"key": "a", "policy": {"backoff": {"initial_seconds": 500.0, "jitter": 0.0}}}
    run_id = driver.start(driver.graph(node))
    driver.do(run_id, 0, status="failed", output=None, error="no")
    driver.gate(run_id)
    assert ledger.due_nodes(10) == ()
    assert ledger.queued(run_id) == ()
    _age(ledger, node_runs, 0, not_before=datetime.now(UTC) - timedelta(seconds=1))
    assert ledger.due_nodes(10) == ((driver.run(run_id), 0),)
    assert ledger.due_nodes(10) == ()
    assert ledger.queued(run_id) == (0,)
    _age(ledger, node_runs, 0, sent_at=datetime.now(UTC) - timedelta(seconds=61))
    assert len(ledger.due_nodes(10)) == 1  # nobody claimed it for a minute
    driver.claim(run_id, 0, 2)
    _age(ledger, node_runs, 0, sent_at=None)
    assert ledger.due_nodes(10) == ()


def test_h2_an_attempt_that_is_handed_back_is_due_again_and_one_that_was_taken_is_not(
    driver: Any, ledger: Ledger
) -> None:
    run_id = driver.start(driver.graph("a", "b"))
    driver.claim(run_id, 1)
    assert ledger.hand_back(run_id, 0, 1, after_seconds=0.0) is True
    assert ledger.hand_back(run_id, 0, 2, after_seconds=0.0) is False  # there is no such attempt
    assert ledger.hand_back(run_id, 1, 1, after_seconds=0.0) is False  # somebody has it
    assert [node_id for _run, node_id in ledger.due_nodes(10)] == [0]
    assert ledger.due_nodes(10) == ()
    assert ledger.hand_back(run_id, 0, 1, after_seconds=60.0) is True
    assert ledger.due_nodes(10) == ()
    assert ledger.queued(run_id) == ()


def test_h2_a_verification_that_is_handed_back_is_due_again(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph({"key": "a", "verify": "check"}))
    driver.do(run_id, 0)
    driver.gate(run_id)
    assert ledger.hand_back(run_id, 0, 1, after_seconds=0.0) is True
    ((_run, node_id),) = ledger.due_nodes(10)
    (dispatch,) = ledger.dispatches(run_id, (node_id,))
    assert (dispatch.kind, dispatch.task) == (AttemptKind.VERIFY, "check")


def test_a_redelivery_whose_send_was_lost_is_sent_again(driver: Any, ledger: Ledger) -> None:
    """§3.7: the parent writes the redelivery and then sends it; in between it may end."""
    run_id = driver.start(driver.graph("a"))
    driver.claim(run_id, 0, task_id="t1")
    ledger.lose_delivery(run_id, 0, task_id="t1", fact=DeliveryLost(node_id=0, attempt=1, reason="SIGKILL"))
    assert ledger.due_nodes(10) == ()  # it was sent a moment ago
    _age(ledger, node_runs, 0, sent_at=datetime.now(UTC) - timedelta(seconds=120))
    assert [node_id for _run, node_id in ledger.due_nodes(10)] == [0]


def test_a_gate_is_given_the_clock_of_the_database(driver: Any, ledger: Ledger) -> None:
    """§3.10: what is not to start before a time is compared with this clock, and so it is counted from it."""
    run_id = driver.submit(driver.graph("a")).run_id
    clocks: list[datetime] = []

    def decide(view: RunView, now: datetime) -> Decision:
        clocks.append(now)
        return advance(view, GateReached(revision=0, wave=0, round=0, now=now))

    ledger.gate(run_id, decide, token="t")
    assert ledger.run(run_id, tenant_id="acme").changed_at == clocks[0]
