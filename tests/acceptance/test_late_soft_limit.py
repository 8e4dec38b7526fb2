"""X15, H3: a soft limit that passes when the body has ended ends nothing, and makes no member of a chord raise."""

from __future__ import annotations

from collections.abc import Iterator

import bodies_storing
import pytest
from workers import Worker, unswept

from graphrun import Client, Graph, Settings
from graphrun.engine.app import make_app
from graphrun.registry import default_registry

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def alone(settings: Settings) -> Settings:
    return unswept(settings, hard_limit_grace_seconds=20.0)


@pytest.fixture(scope="module")
def client(alone: Settings) -> Iterator[Client]:
    with Client(alone, app=make_app(alone, default_registry())) as made:
        yield made


@pytest.fixture(scope="module")
def worker(client: Client, alone: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    assert client.ledger
    with Worker(alone, tmp_path_factory.mktemp("soft"), concurrency=2, tasks="bodies_storing") as started:
        yield started


def test_x15_a_soft_limit_never_lands_outside_the_body(client: Client, worker: Worker) -> None:
    """The output is made into text after the body has ended: a limit that passes meanwhile ends nothing."""
    graph = Graph("slow-to-store")
    graph.add(bodies_storing.slow_to_store, seconds=1.0, policy={"timeout_seconds": 0.5, "max_attempts": 1}, key="a")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    assert run.nodes()[0].attempt == 1
