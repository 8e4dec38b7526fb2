from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select

from graphrun.errors import IdempotencyConflictError, LedgerError, RunNotFoundError
from graphrun.execution.state import NodeState, RunState
from graphrun.model.spec import EdgeSpec, GraphSpec, NodeSpec, Policy
from graphrun.storage.ledger import Ledger
from graphrun.storage.tables import runs

TENANT = "acme"
ODD_KEYS = ["a/b", "x#33", "lire données", "名前", "('sum', 0)", "rule\nds: 552", "k" * 300, "A", "a", " a", "%_'\";--"]


def test_a_submitted_run_is_created_and_stands_before_its_first_wave(driver: Any, ledger: Ledger) -> None:
    spec = driver.graph("a", "b", edges=[("a", "b")])
    submitted = driver.submit(spec, submitted_by="ada@host")
    row = ledger.run(submitted.run_id, tenant_id=TENANT)
    assert submitted.created
    assert (row.state, row.run.wave, row.run.round, row.run.waves) == (RunState.CREATED, 0, 0, 2)
    assert (row.graph, row.submitted_by, row.content_hash) == ("g", "ada@host", spec.content_hash)
    assert row.started_at is None
    assert row.created_at.tzinfo is not None
    assert [(node.key, node.wave, node.planned_wave) for node in ledger.nodes(row.run_id, tenant_id=TENANT)] == [
        ("a", 1, 1),
        ("b", 2, 2),
    ]


def test_the_delegated_graph_reads_back_equal(driver: Any, ledger: Ledger) -> None:
    node = NodeSpec(
        key="b",
        task="work",
        params={"x": {"$node": "a", "path": "items[0]"}, "nan": {"$float": "nan"}, "lone": "\ud800", "nul": "\x00"},
        policy=Policy(max_attempts=5, queue="io", priority=9, timeout_seconds=None, retry_on=("OSError",)),
        join="all",
        resources=("gpu", "disk"),
        owner="ada",
        verify="check",
        scope="do it\nwell",
        subgraph=("one", "two"),
    )
    edges = (
        EdgeSpec(head="a", tail="b", kind="data", parameter="x", when="result > 0", required=False),
        EdgeSpec(head="a", tail="c", enabled=False),
        EdgeSpec(head="b", tail="c"),
    )
    names = (NodeSpec(key="a", task="work"), node, NodeSpec(key="c", task="work"))
    spec = GraphSpec(name="naïve\x00 \ud800", nodes=names, edges=edges).with_settings(failure_policy="fail_fast")
    run_id = driver.submit(spec).run_id
    assert ledger.spec(run_id, tenant_id=TENANT) == spec


def test_odd_keys_come_back_byte_for_byte(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph(*ODD_KEYS))
    for node_id, key in enumerate(ODD_KEYS):
        driver.do(run_id, node_id, output=json.dumps(key))
    assert [node.key for node in ledger.nodes(run_id, tenant_id=TENANT)] == ODD_KEYS
    assert [ledger.output(run_id, key, tenant_id=TENANT) for key in ODD_KEYS] == [json.dumps(key) for key in ODD_KEYS]


def test_a_key_of_a_thousand_wide_characters_is_kept(driver: Any, ledger: Ledger) -> None:
    keys = ["".join(chr(0x4E00 + (number * 7 + shift) % 20_000) for number in range(1_000)) for shift in (0, 1)]
    run_id = driver.submit(driver.graph(*keys)).run_id
    assert [node.key for node in ledger.nodes(run_id, tenant_id=TENANT)] == keys


def test_a_pre_done_node_is_succeeded_with_its_output_before_the_run_starts(driver: Any, ledger: Ledger) -> None:
    submission = driver.submission(driver.graph("a", "b", edges=[("a", "b")]))
    done = replace(submission.nodes[0], state=NodeState.SUCCEEDED, pre_done=True)
    ledger.submit(replace(submission, nodes=(done, submission.nodes[1]), outputs={0: '{"rows":3}'}))
    node = ledger.nodes(submission.run_id, tenant_id=TENANT)[0]
    assert (node.state, node.pre_done, node.attempt) == (NodeState.SUCCEEDED, True, 0)
    assert ledger.output(submission.run_id, "a", tenant_id=TENANT) == '{"rows":3}'
    assert [type(row.event).__name__ for row in ledger.events(submission.run_id, tenant_id=TENANT)] == ["NodeSucceeded"]


def test_without_a_key_every_submit_is_a_run_of_its_own(driver: Any, ledger: Ledger) -> None:
    spec = driver.graph("a")
    assert len({driver.submit(spec).run_id for _ in range(20)}) == 20


def test_twenty_callers_with_one_key_get_one_run(driver: Any, ledger: Ledger) -> None:
    spec = driver.graph("a", "b")
    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(lambda _: driver.submit(spec, idempotency_key="nightly"), range(20)))
    assert len({result.run_id for result in results}) == 1
    assert sum(result.created for result in results) == 1
    assert len(ledger.runs(tenant_id=TENANT)) == 1


def test_the_same_key_with_another_graph_is_a_conflict(driver: Any, ledger: Ledger) -> None:
    first = driver.submit(driver.graph("a"), idempotency_key="nightly")
    with pytest.raises(IdempotencyConflictError, match=f"'nightly' was used for run {first.run_id}"):
        driver.submit(driver.graph("b"), idempotency_key="nightly")
    assert len(ledger.runs(tenant_id=TENANT)) == 1


def test_an_idempotency_key_belongs_to_its_tenant(driver: Any) -> None:
    spec = driver.graph("a")
    first = driver.submit(spec, idempotency_key="nightly")
    second = driver.submit(spec, idempotency_key="nightly", tenant_id="other")
    assert second.created
    assert second.run_id != first.run_id


def test_a_submission_that_is_written_twice_is_one_run(driver: Any, ledger: Ledger) -> None:
    submission = driver.submission(driver.graph("a"))
    assert ledger.submit(submission) == ledger.submit(submission)
    assert len(ledger.runs(tenant_id=TENANT)) == 1


def test_a_taken_run_id_is_refused(driver: Any, ledger: Ledger) -> None:
    submission = driver.submission(driver.graph("a"))
    ledger.submit(submission)
    with pytest.raises(LedgerError, match="is taken"):
        ledger.submit(replace(submission, token=uuid4().hex))


@pytest.mark.parametrize("key", ["", "x" * 501, "a\x00b", "\ud800"])
def test_an_idempotency_key_that_cannot_be_stored_is_refused(driver: Any, key: str) -> None:
    with pytest.raises(LedgerError, match="the idempotency key"):
        driver.submit(driver.graph("a"), idempotency_key=key)


def test_a_callers_transaction_that_is_rolled_back_leaves_nothing(driver: Any, ledger: Ledger) -> None:
    submission = driver.submission(driver.graph("a", "b", edges=[("a", "b")]), outputs={0: json.dumps("x" * 100_000)})
    done = replace(submission.nodes[0], state=NodeState.SUCCEEDED, pre_done=True)
    with ledger.database.engine.connect() as connection:
        ledger.submit(replace(submission, nodes=(done, submission.nodes[1])), connection=connection)
        connection.rollback()
    with pytest.raises(RunNotFoundError):
        ledger.run(submission.run_id, tenant_id=TENANT)
    with ledger.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(runs)).scalar_one() == 0


def test_a_callers_transaction_that_commits_keeps_the_run(driver: Any, ledger: Ledger) -> None:
    submission = driver.submission(driver.graph("a"))
    with ledger.database.engine.begin() as connection:
        assert ledger.submit(submission, connection=connection).created
    assert ledger.run(submission.run_id, tenant_id=TENANT).state is RunState.CREATED


def test_an_empty_graph_is_a_run(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(GraphSpec(name="nothing"))
    assert ledger.run(run_id, tenant_id=TENANT).state is RunState.SUCCEEDED


def test_a_thousand_nodes_are_written_in_bulk(driver: Any, ledger: Ledger) -> None:
    keys = [f"n{number}" for number in range(1_000)]
    submission = driver.submission(driver.graph(*keys, edges=[(keys[0], key) for key in keys[1:]]))
    started = time.perf_counter()
    ledger.submit(submission)
    # An alarm ten times over what it takes: one statement a row would be far beyond it.
    assert time.perf_counter() - started < 3
    assert len(ledger.edges(submission.run_id, tenant_id=TENANT)) == 999


def test_more_rows_than_one_statement_takes_are_written(driver: Any, ledger: Ledger) -> None:
    run_id = driver.submit(driver.graph(*(f"n{number}" for number in range(5_500)))).run_id
    assert len(ledger.nodes(run_id, tenant_id=TENANT)) == 5_500
