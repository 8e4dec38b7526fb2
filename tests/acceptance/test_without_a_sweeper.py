"""What the chord and the last settle do by themselves: here no sweeper mends what they leave undone (§3.3, §3.4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import bodies
import pytest
import redis
from workers import Worker, unswept, wait_until

from graphrun import Client, Graph, Settings
from graphrun.engine.app import make_app
from graphrun.registry import default_registry

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def alone(settings: Settings) -> Settings:
    return unswept(settings)


@pytest.fixture(scope="module")
def client(alone: Settings) -> Iterator[Client]:
    with Client(alone, app=make_app(alone, default_registry())) as made:
        yield made


@pytest.fixture(scope="module")
def worker(client: Client, alone: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    assert client.ledger
    with Worker(alone, tmp_path_factory.mktemp("alone"), concurrency=2) as started:
        yield started


def test_h2_a_delivery_that_lost_its_claim_is_not_counted_by_the_chord(settings: Settings, tmp_path: Path) -> None:
    """§3.3: counted, it would fire the gate while the owner runs, and the gate that matters would never come."""
    idle = unswept(settings)
    marks = tmp_path / "marks"
    graph = Graph("twice-in-its-chord")
    slow = graph.add(bodies.waits_for, path=str(tmp_path / "go"), marks=str(marks), key="slow")
    quick = graph.add(bodies.const, value=2, key="quick")
    graph.add(bodies.collect, parts=[slow, quick], key="join")
    with Client(idle, app=make_app(idle, default_registry())) as client:
        run = client.submit(graph)
        server = redis.Redis.from_url(idle.broker_url)
        for message in server.lrange(idle.queue, 0, -1):
            server.lpush(idle.queue, message)  # the broker delivers every member of the chord once more
        with Worker(idle, tmp_path, concurrency=2) as worker:
            wait_until(lambda: worker.log.read_text().count("not claimed") == 2)
            wait_until(lambda: run.nodes()[1].state == "succeeded")
            (tmp_path / "go").touch()
            assert run.wait(timeout=20) == "succeeded"
        assert run.output("join") == ["went", 2]
    assert marks.read_text().split() == ["started"]


def test_x6_the_settle_that_leaves_no_open_node_sends_the_gate_of_a_broken_chord(
    client: Client, worker: Worker, tmp_path: Path
) -> None:
    """§3.4: a member that was delivered again is in no chord, so its settle sends the gate itself."""
    graph = Graph("killed-without-a-sweeper")
    a = graph.add(bodies.killed_first, path=str(tmp_path / "marks"), value=5, key="a")
    b = graph.add(bodies.const, value=1, key="b")
    graph.add(bodies.collect, parts=[a, b], key="join")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    assert run.output("join") == [5, 1]


@pytest.mark.parametrize(
    ("body", "params", "policy"),
    [
        (bodies.exits_hard, {"code": 0}, {}),
        (bodies.ignores_soft_limit, {"path": "marks"}, {"timeout_seconds": 0.5}),
    ],
    ids=["os._exit", "hard limit"],
)
def test_x15_what_the_parent_process_settles_goes_on_without_a_sweeper(
    client: Client, worker: Worker, tmp_path: Path, body, params, policy
) -> None:
    """§3.6: the parent that settles for a dead child sends the gate where no node is left open."""
    if "path" in params:
        params = {"path": str(tmp_path / "marks")}
    graph = Graph("dead-child-without-a-sweeper")
    a = graph.add(body, policy={"max_attempts": 1, **policy}, key="a", **params)
    graph.add(bodies.const, value=1, key="b", after=a)
    run = client.submit(graph)
    assert run.wait(timeout=30) == "failed"
    assert [(node.key, node.state.value) for node in run.nodes()] == [("a", "failed"), ("b", "skipped")]
