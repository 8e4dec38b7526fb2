"""§3.3, §3.4: one delivery of an attempt, in this process, on a real ledger: who waits, who loses, what is recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event

from graphrun import Graph, Settings, TaskRegistry, task
from graphrun.engine.attempt import AttemptRunner, ClaimLostError
from graphrun.engine.coordinator import Coordinator
from graphrun.engine.inline import InlineSender
from graphrun.engine.message import NodeMessage
from graphrun.engine.submitting import SubmitOptions, submit
from graphrun.execution.event import DeliveryLost
from graphrun.execution.run import AttemptKind
from graphrun.storage.database import Database
from graphrun.storage.ledger import Ledger
from graphrun.storage.migrate import upgrade

TENANT = "default"


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    database = Database(f"sqlite:///{tmp_path / 'graphrun.db'}")
    upgrade(database)
    yield Ledger(database)
    database.dispose()


@pytest.fixture
def registry() -> TaskRegistry:
    return TaskRegistry()


def _runner(ledger: Ledger, registry: TaskRegistry, **settings: Any) -> AttemptRunner:
    return AttemptRunner(ledger, registry, Settings(**settings), worker="w")


def _submitted(graph: Graph, ledger: Ledger, registry: TaskRegistry) -> NodeMessage:
    """Submit a graph of one node and open its wave; return the message of that node."""
    run_id = submit(graph.freeze(), registry, ledger, SubmitOptions(tenant_id=TENANT)).run_id
    sender = InlineSender()
    Coordinator(ledger, sender).launch(run_id)
    message = sender.queue[0]
    assert isinstance(message, NodeMessage)
    return message


def test_o25_a_message_that_comes_before_its_row_is_committed_waits_for_it(
    ledger: Ledger, registry: TaskRegistry
) -> None:
    ran: list[int] = []
    graph = Graph("early", registry=registry)
    graph.add(task(name="marks", registry=registry)(lambda: ran.append(1)), key="a")
    looked = threading.Event()

    def seen(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if "FROM runs" in statement:
            looked.set()

    run_id = str(uuid4())
    early = NodeMessage(run_id, 0, 1, AttemptKind.BODY, 0, 1, 0)
    event.listen(ledger.database.engine, "after_cursor_execute", seen)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_runner(ledger, registry).run, early, task_id="t")
        assert looked.wait(20)
        assert not waiting.done()
        _submit_as(run_id, graph, ledger, registry)
        Coordinator(ledger, InlineSender()).launch(run_id)
        assert waiting.result(timeout=20).status == "done"
    assert ran == [1]


def _submit_as(run_id: str, graph: Graph, ledger: Ledger, registry: TaskRegistry) -> None:
    """Submit a graph under a run id that was told beforehand."""
    from graphrun.engine.compiling import compile_graph
    from graphrun.storage.records import Submission

    compiled = compile_graph(graph.freeze(), registry)
    ledger.submit(
        Submission(
            run_id=run_id,
            tenant_id=TENANT,
            spec=compiled.spec,
            nodes=compiled.nodes,
            edges=compiled.edges,
            waves=compiled.depth,
            content_hash=compiled.spec.content_hash,
            token=uuid4().hex,
        )
    )


def test_o25_a_message_whose_row_never_comes_is_dropped_and_never_called_done(
    ledger: Ledger, registry: TaskRegistry
) -> None:
    message = NodeMessage(str(uuid4()), 0, 1, AttemptKind.BODY, 0, 1, 0)
    with pytest.raises(ClaimLostError, match="no such row"):
        _runner(ledger, registry, claim_wait_seconds=0.0).run(message, task_id="t")


def test_promise_2_an_owner_that_was_displaced_while_it_ran_does_not_count_in_its_chord(
    ledger: Ledger, registry: TaskRegistry
) -> None:
    """Its outcome is refused, and it leaves as a loser does: counted, it would fire the gate before the new owner."""

    def displaced() -> int:
        fact = DeliveryLost(node_id=0, attempt=1, reason="signal 9")
        assert ledger.lose_delivery(message.run_id, 0, task_id="t", fact=fact).accepted
        return 1

    graph = Graph("displaced", registry=registry)
    graph.add(task(name="displaced", registry=registry)(displaced), key="a")
    message = _submitted(graph, ledger, registry)
    with pytest.raises(ClaimLostError):
        _runner(ledger, registry).run(message, task_id="t")
    (node,) = ledger.nodes(message.run_id, tenant_id=TENANT)
    assert (node.state, node.attempt, node.output) == ("queued", 1, None)


def test_x15_an_exit_that_was_asked_for_from_outside_goes_on_as_it_came_and_settles_nothing(
    ledger: Ledger, registry: TaskRegistry
) -> None:
    def ends() -> None:
        raise SystemExit(0)

    graph = Graph("revoked", registry=registry)
    graph.add(task(name="ends", registry=registry)(ends), key="a")
    message = _submitted(graph, ledger, registry)
    asked: Callable[[BaseException], bool] = lambda error: isinstance(error, SystemExit)  # noqa: E731 - one line is all
    runner = AttemptRunner(ledger, registry, Settings(), worker="w", reraise=asked)
    with pytest.raises(SystemExit):
        runner.run(message, task_id="t")
    (node,) = ledger.nodes(message.run_id, tenant_id=TENANT)
    assert node.state == "running"
    assert ledger.attempts(message.run_id, tenant_id=TENANT) == ()


def test_o24_an_output_over_the_limit_fails_its_node_with_size_and_limit(
    ledger: Ledger, registry: TaskRegistry
) -> None:
    graph = Graph("over", registry=registry)
    graph.add(task(name="big", registry=registry)(lambda: "x" * 100), key="a")
    message = _submitted(graph, ledger, registry)
    runner = _runner(ledger, registry, inline_limit_bytes=10, payload_limit_bytes=50)
    assert runner.run(message, task_id="t").status == "failed"
    (node,) = ledger.nodes(message.run_id, tenant_id=TENANT)
    assert node.error == "output of node a cannot be stored: 102 bytes, the limit is 50"


def test_o21_a_long_error_is_cut_to_the_limit_and_says_by_how_much(ledger: Ledger, registry: TaskRegistry) -> None:
    def fails() -> None:
        raise RuntimeError("x" * 1_000)

    graph = Graph("long", registry=registry)
    graph.add(task(name="fails", registry=registry)(fails), key="a")
    message = _submitted(graph, ledger, registry)
    assert _runner(ledger, registry, error_limit_characters=100).run(message, task_id="t").status == "failed"
    (attempt,) = ledger.attempts(message.run_id, tenant_id=TENANT)
    assert attempt.error == "RuntimeError: " + "x" * 86 + "… [914 more characters]"


def test_x6_what_an_attempt_is_asked_is_hashed_with_its_inputs(ledger: Ledger, registry: TaskRegistry) -> None:
    """Equal in a retry, other where an upstream gave another value."""
    hashes = []
    for value in (1, 2, 2):
        graph = Graph("asked", registry=registry)
        head = graph.add(task(name=f"gives-{len(hashes)}", registry=registry)(lambda value=value: value), key="head")
        graph.add(_reads(registry), key="reads", x=head, policy={"max_attempts": 2})
        run = graph.run(ledger=ledger)
        asked = [one.subgraph_hash for one in ledger.attempts(run.run_id, tenant_id="inline", key="reads")]
        assert len(asked) == 2
        assert len(set(asked)) == 1
        hashes.append(asked[0])
    assert hashes[0] != hashes[1] == hashes[2]


def _reads(registry: TaskRegistry) -> Any:
    def reads(x: int) -> int:
        raise RuntimeError(str(x))

    return registry.get("reads") if "reads" in registry else task(name="reads", registry=registry)(reads)
