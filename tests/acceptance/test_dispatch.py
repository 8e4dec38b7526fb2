"""What is on the broker: one wave at a time, readable in Flower, served by priority (O9, H10, H14, §3.2, §4)."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID, uuid4

import bodies
import pytest
import redis
from workers import Worker, wait_until

from graphrun import Graph, Settings

pytestmark = pytest.mark.redis


@pytest.fixture
def idle(settings: Settings, tmp_path: Path) -> Settings:
    """Settings that no worker serves yet, on a database of their own."""
    return Settings.load(
        **settings.model_dump()
        | {
            "database_url": f"sqlite:///{tmp_path / 'graphrun.db'}",
            "queue": f"idle-{uuid4().hex[:8]}",
            "control_queue": f"idle-control-{uuid4().hex[:8]}",
        }
    )


def _messages(settings: Settings) -> list[bytes]:
    server = redis.Redis.from_url(settings.broker_url)
    keys = [key for key in server.keys(f"{settings.queue}*") if server.type(key) == b"list"]
    return [message for key in keys for message in server.lrange(key, 0, -1)]


def test_o9_of_twenty_waves_of_fifty_only_the_first_is_sent_and_no_message_holds_the_rest(
    make_client, idle: Settings
) -> None:
    graph = Graph("layered")
    before: list = []
    for wave in range(20):
        before = [graph.add(bodies.const, value=1, key=f"w{wave}-{n}", after=before) for n in range(50)]
    make_client(idle).submit(graph)
    messages = _messages(idle)
    assert len(messages) == 50
    assert max(map(len, messages)) < 1500


def test_a_node_is_readable_in_flower_by_its_task_run_and_key(make_client, idle: Settings) -> None:
    """§4, O28: the function's own name, run and node key as its arguments, an id that is not made of the key."""
    graph = Graph("shown")
    graph.add(bodies.const, value="a secret of the graph", key="名前/#1")
    run = make_client(idle).submit(graph)
    (message,) = _messages(idle)
    headers = json.loads(message)["headers"]
    assert headers["task"] == "bodies.const"
    assert headers["argsrepr"] == f"{run.run_id[:8]} 名前/#1"
    assert headers["kwargsrepr"] == "{}"
    assert UUID(headers["id"]).version == 4
    assert b"secret" not in message


def test_h14_of_the_nodes_that_wait_the_one_with_the_highest_priority_runs_first(
    make_client, idle: Settings, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    graph = Graph("priorities")
    for priority in (0, 4, 9):
        name = f"p{priority}"
        graph.add(bodies.marked, path=str(marks), name=name, policy={"priority": priority}, key=name)
    run = make_client(idle).submit(graph)
    with Worker(idle, tmp_path, concurrency=1):
        assert run.wait(timeout=30) == "succeeded"
    assert marks.read_text().split() == ["p9", "p4", "p0"]


def test_a_node_goes_to_the_queue_that_its_policy_names(make_client, idle: Settings) -> None:
    graph = Graph("queues")
    graph.add(bodies.const, value=1, key="a", policy={"queue": f"{idle.queue}-io"})
    graph.add(bodies.const, value=2, key="b")
    make_client(idle).submit(graph)
    server = redis.Redis.from_url(idle.broker_url)
    assert (server.llen(f"{idle.queue}-io"), server.llen(idle.queue)) == (1, 1)


def test_a_worker_of_celery_s_own_command_refuses_a_database_without_a_schema(
    make_client, idle: Settings, tmp_path: Path
) -> None:
    """A database that is older than the code: not only ``graphrun worker`` looks (issue 2, bad input)."""
    import sqlite3

    with sqlite3.connect(tmp_path / "graphrun.db") as connection:
        connection.execute("CREATE TABLE somebody_elses (x INTEGER)")
    worker = Worker(idle, tmp_path, concurrency=1)
    with pytest.raises(AssertionError, match="graphrun db upgrade"):
        worker.start()
    wait_until(lambda: worker.process is None)
