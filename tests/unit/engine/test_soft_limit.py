"""X15: a soft limit cannot land inside a claim or a settle: its signal is held back there."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from graphrun import Graph, Settings, TaskRegistry, task
from graphrun.engine.app import Engine, make_app
from graphrun.engine.coordinator import Coordinator
from graphrun.engine.inline import InlineSender
from graphrun.engine.message import GateMessage, NodeMessage
from graphrun.engine.submitting import SubmitOptions, submit

NOBODY = "redis://127.0.0.1:1/0"


class LimitError(Exception):
    """What the signal's handler raises, as the pool's handler does."""


MARKS: list[float] = []


async def _goes_on() -> None:
    """Mark every moment until somebody ends it."""
    while True:
        MARKS.append(time.monotonic())
        await asyncio.sleep(0.001)


async def _waits() -> int:
    await asyncio.sleep(0.05)
    return 1


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    registry = TaskRegistry()
    task(name="limited", registry=registry)(lambda: 1)
    task(name="goes_on", registry=registry)(_goes_on)
    task(name="waits", registry=registry)(_waits)
    url = f"sqlite:///{tmp_path / 'graphrun.db'}"
    made: Engine = make_app(Settings(broker_url=NOBODY, result_url=NOBODY, database_url=url), registry).graphrun
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    def ends(_number: int, _frame: Any) -> None:
        raise LimitError

    before = signal.signal(signal.SIGUSR1, ends)
    yield
    signal.signal(signal.SIGUSR1, before)


def test_x15_x16_a_limit_reaches_the_verify_task_too(engine: Engine) -> None:
    """One that passes before it starts lands when it does: the verdict is a failure."""
    ledger = engine.checked_ledger()
    graph = Graph("verified", registry=engine.registry)
    graph.add("limited", key="a", verify="limited", policy={"max_attempts": 1})
    run_id = submit(graph.freeze(), engine.registry, ledger, SubmitOptions(tenant_id="default")).run_id
    sender = InlineSender()
    coordinator = Coordinator(ledger, sender)
    coordinator.launch(run_id)
    node_task = engine.app.tasks["limited"]
    body = sender.queue.popleft()
    assert isinstance(body, NodeMessage)
    node_task.push_request(id="body")
    node_task.run(*body.to_args())
    node_task.pop_request()
    coordinator.gate(GateMessage(run_id, 0, 1, 0))
    verify = next(message for message in sender.queue if isinstance(message, NodeMessage))
    passed: list[int] = []

    def passes(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.startswith("UPDATE node_runs") and not passed:
            passed.append(1)
            os.kill(os.getpid(), signal.SIGUSR1)

    event.listen(ledger.database.engine, "after_cursor_execute", passes)
    node_task.push_request(id="verify")
    node_task.run(*verify.to_args())
    node_task.pop_request()
    (node,) = ledger.nodes(run_id, tenant_id="default")
    assert node.state == "failed"
    assert (node.verify_result or "").startswith("fail: LimitError")


@pytest.mark.parametrize("moment", ["UPDATE node_runs", "INSERT INTO attempts"], ids=["claim", "settle"])
def test_x15_a_limit_that_passes_in_a_claim_or_settle_leaves_it_whole(engine: Engine, moment: str) -> None:
    ledger = engine.checked_ledger()
    graph = Graph("limited", registry=engine.registry)
    graph.add("limited", key="a", policy={"max_attempts": 1})
    run_id = submit(graph.freeze(), engine.registry, ledger, SubmitOptions(tenant_id="default")).run_id
    sender = InlineSender()
    Coordinator(ledger, sender).launch(run_id)
    message = sender.queue[0]
    assert isinstance(message, NodeMessage)
    passed: list[int] = []

    def passes(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.startswith(moment) and not passed:
            passed.append(1)
            os.kill(os.getpid(), signal.SIGUSR1)

    event.listen(ledger.database.engine, "after_cursor_execute", passes)
    node_task = engine.app.tasks["limited"]
    node_task.push_request(id="delivery")
    node_task.run(*message.to_args())  # a member of a chord never raises (H3)
    node_task.pop_request()
    (node,) = ledger.nodes(run_id, tenant_id="default")
    # A limit that passed in the claim meets the body; one that passed in the settle comes too late.
    assert node.state == ("failed" if moment.startswith("UPDATE") else "succeeded")
    assert len(ledger.attempts(run_id, tenant_id="default")) == 1


def test_x15_an_async_body_that_its_limit_ended_does_not_go_on_in_the_next_one(engine: Engine) -> None:
    ledger = engine.checked_ledger()
    for name, state in (("goes_on", "failed"), ("waits", "succeeded")):
        graph = Graph(name, registry=engine.registry)
        graph.add(name, key="a", policy={"max_attempts": 1})
        run_id = submit(graph.freeze(), engine.registry, ledger, SubmitOptions(tenant_id="default")).run_id
        sender = InlineSender()
        Coordinator(ledger, sender).launch(run_id)
        message = sender.queue[0]
        assert isinstance(message, NodeMessage)
        before = len(MARKS)
        node_task = engine.app.tasks[name]
        node_task.push_request(id=f"delivery-{name}")
        if name == "goes_on":
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        node_task.run(*message.to_args())
        node_task.pop_request()
        (node,) = ledger.nodes(run_id, tenant_id="default")
        assert node.state == state
    assert len(MARKS) == before
