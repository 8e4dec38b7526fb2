"""§3.7, §3.9: what a worker does besides nodes: it serves gates unless told not to, and its sweeper never gives up."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from celery import Celery

from graphrun import Settings, TaskRegistry
from graphrun.engine.app import _serve_queues, install
from graphrun.engine.node_task import GateTask
from graphrun.engine.sweeper import Sweeper, SweeperThread

URL = "redis://127.0.0.1:1/0"


@pytest.mark.parametrize(("serve_gates", "served"), [(True, {"images", "gates"}), (False, {"images"})])
def test_a_worker_with_queues_of_its_own_serves_the_gates_unless_it_is_told_not_to(
    serve_gates: bool, served: set[str]
) -> None:
    settings = Settings(
        broker_url=URL,
        result_url=URL,
        database_url="sqlite:///unused.db",
        queue="nodes",
        control_queue="gates",
        serve_gates=serve_gates,
    )
    app = Celery("theirs", broker=URL, set_as_current=False)
    engine = install(app, settings, TaskRegistry())
    app.amqp.queues.select(["images"])
    _serve_queues(engine, instance=SimpleNamespace(app=app))
    assert set(app.amqp.queues.consume_from) == served
    if serve_gates:
        # Redis is asked in this order: a gate behind nodes would hold its whole run.
        assert next(iter(app.amqp.queues.consume_from)) == "gates"


def test_a_worker_without_queues_of_its_own_serves_the_nodes_default_queue_too() -> None:
    settings = Settings(
        broker_url=URL, result_url=URL, database_url="sqlite:///unused.db", queue="nodes", control_queue="gates"
    )
    app = Celery("theirs", broker=URL, set_as_current=False)
    engine = install(app, settings, TaskRegistry())
    _serve_queues(engine, instance=SimpleNamespace(app=app))
    assert {"nodes", "gates"} <= set(app.amqp.queues.consume_from)


@pytest.mark.parametrize(
    ("option", "value"),
    [("acks_late", True), ("reject_on_worker_lost", True), ("ignore_result", False), ("max_retries", 0)],
)
def test_a_gate_whose_worker_dies_is_delivered_again(option: str, value: object) -> None:
    """A gate may run twice and decides once, so its message is given up only when it has ended."""
    assert getattr(GateTask, option) == value


def test_a_pass_of_the_sweeper_that_fails_is_followed_by_another() -> None:
    """Neither a fault nor a broker that is down ends the thread: it is the last to give up (§3.7)."""
    passes: list[int] = []
    third = threading.Event()

    def make() -> Sweeper:
        passes.append(1)
        if len(passes) == 3:
            third.set()
        raise RuntimeError("the database is gone")

    thread = SweeperThread(make, interval_seconds=0.001)
    thread.start()
    try:
        assert third.wait(20)
    finally:
        thread.stop()
