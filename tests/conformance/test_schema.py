from __future__ import annotations

from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text, update
from sqlalchemy.exc import IntegrityError

from graphrun.storage.database import Database
from graphrun.storage.ledger import Ledger
from graphrun.storage.migrate import current, head
from graphrun.storage.tables import attempts, edge_runs, metadata, node_runs, runs

BAD_RUNS: list[dict[str, Any]] = [
    {"state": "done"},
    {"wave": -1},
    {"wave": 3},
    {"round": -1},
    {"state": "succeeded"},
    {"sent": False, "sent_token": None},
    {"failure_policy": "hope"},
]
BAD_NODES: list[dict[str, Any]] = [
    {"state": "done"},
    {"state": "running"},
    {"state": "waiting"},
    {"awaiting": "retry"},
    {"claim_token": "t", "claim_task_id": "t"},
    {"state": "running", "claim_token": "t"},
    {"state": "skipped", "finished_at": "now"},
    {"cause": "condition"},
    {"state": "failed", "finished_at": "now"},
    {"state": "succeeded"},
    {"pre_done": True},
    {"wave": 0},
    {"tries": 2},
    {"evolution": -1},
    {"join_rule": "some"},
]


@pytest.mark.parametrize("values", BAD_RUNS, ids=str)
def test_a_run_that_cannot_be_is_refused_by_the_schema(driver: Any, ledger: Ledger, values: dict[str, Any]) -> None:
    driver.start(driver.graph("a"))
    with pytest.raises(IntegrityError), ledger.database.write() as connection:
        connection.execute(update(runs).values(values))


@pytest.mark.parametrize("values", BAD_NODES, ids=str)
def test_a_node_that_cannot_be_is_refused_by_the_schema(driver: Any, ledger: Ledger, values: dict[str, Any]) -> None:
    driver.start(driver.graph("a"))
    row = {name: node_runs.c.changed_at if value == "now" else value for name, value in values.items()}
    with pytest.raises(IntegrityError), ledger.database.write() as connection:
        connection.execute(update(node_runs).values(row))


def test_an_outcome_of_an_attempt_is_recorded_once(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a"))
    driver.do(run_id, 0)
    again = text(
        "INSERT INTO attempts (run_id, node_id, attempt, kind, writer, status, delivery, settled_at)"
        " SELECT run_id, node_id, attempt, kind, 'another', 'failed', 0, settled_at FROM attempts"
    )
    with pytest.raises(IntegrityError), ledger.database.write() as connection:
        connection.execute(again)


@pytest.mark.parametrize("values", [{"truth": "maybe"}, {"resolution": "lost"}, {"head": 1}, {"head": 9}], ids=str)
def test_an_edge_that_cannot_be_is_refused_by_the_schema(driver: Any, ledger: Ledger, values: dict[str, Any]) -> None:
    driver.start(driver.graph("a", "b", edges=[("a", "b")]))
    with pytest.raises(IntegrityError), ledger.database.write() as connection:
        connection.execute(update(edge_runs).values(values))


def test_deleting_a_run_takes_all_of_it(driver: Any, ledger: Ledger) -> None:
    run_id = driver.start(driver.graph("a", "b", edges=[("a", "b")]))
    driver.do(run_id, 0)
    with ledger.database.write() as connection:
        connection.execute(runs.delete())
        for table in (node_runs, edge_runs, attempts):
            assert connection.execute(table.select()).first() is None


def test_the_migrations_equal_the_tables(database: Database) -> None:
    assert current(database) == head()
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_the_migrations_make_the_constraints_of_the_tables(database: Database) -> None:
    with database.read() as connection:
        inspector = inspect(connection)
        for table in metadata.sorted_tables:
            wanted = {constraint.name for constraint in table.constraints if constraint.name}
            found = {item["name"] for item in inspector.get_check_constraints(table.name)}
            found |= {item["name"] for item in inspector.get_foreign_keys(table.name)}
            found |= {item["name"] for item in inspector.get_unique_constraints(table.name)}
            found.add(inspector.get_pk_constraint(table.name)["name"])
            assert {str(name) for name in found} == {str(name) for name in wanted}, table.name
