"""Promise 1, §3.4: whatever a body hands back, its attempt ends: what cannot be recorded is a failed attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrun import Done, Evolved, Failed, Graph, Settings, TaskRegistry, task
from graphrun.storage.database import Database
from graphrun.storage.ledger import Ledger
from graphrun.storage.migrate import upgrade
from graphrun.storage.payloads import payload_store


@pytest.fixture
def registry() -> TaskRegistry:
    return TaskRegistry()


def _graph(registry: TaskRegistry, body: Callable[[], Any]) -> Graph:
    graph = Graph("unrecordable", registry=registry)
    graph.add(task(name="returns", registry=registry)(body), key="a", policy={"max_attempts": 1})
    graph.add(task(name="plain", registry=registry)(lambda: 1), key="b")
    return graph


@pytest.mark.parametrize(
    "body",
    [
        lambda: Done(1, summary=5),  # type: ignore[arg-type]
        lambda: Done(1, implemented=[{1}]),  # type: ignore[arg-type]
        lambda: Failed("no", kind=5),  # type: ignore[arg-type]
        lambda: Evolved(scope="more", reason=5),  # type: ignore[arg-type]
        lambda: Evolved(scope=ValueError("x")),  # type: ignore[arg-type]
    ],
    ids=["summary", "implemented", "kind", "reason", "scope"],
)
def test_a_return_whose_fields_are_no_text_fails_its_node_alone(
    registry: TaskRegistry, body: Callable[[], Any]
) -> None:
    run = _graph(registry, body).run()
    assert run.status == "failed"
    a, b = run.nodes()
    assert (a.state, a.attempt, b.state) == ("failed", 1, "succeeded")
    assert "is a text, not" in (a.error or "")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger whose payload store is under a file, where no directory can be made."""
    (tmp_path / "file").touch()
    database = Database(f"sqlite:///{tmp_path / 'graphrun.db'}")
    upgrade(database)
    settings = Settings(payload_url=f"file://{tmp_path / 'file' / 'store'}")
    yield Ledger(database, payload_store(settings.payload_url, database), inline_limit_bytes=10)
    database.dispose()


def test_an_output_whose_store_cannot_be_written_fails_its_node_and_says_so(
    registry: TaskRegistry, ledger: Ledger
) -> None:
    """Issue 2, bad input: an output that cannot be stored gets a clear error and nothing is lost."""
    run = _graph(registry, lambda: "x" * 100).run(ledger=ledger)
    assert run.status == "failed"
    a, b = run.nodes()
    assert (a.state, b.state) == ("failed", "succeeded")
    assert "output of node a cannot be stored" in (a.error or "")
