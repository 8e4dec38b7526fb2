"""What the engine promises beside the cases: lost sends and gates, plain Celery tasks, other brokers and databases."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import bodies
import pytest
import redis
from celery import Celery
from proxy import Proxy
from sqlalchemy import make_url
from workers import Worker, wait_until

from graphrun import Client, Graph, Settings
from graphrun.engine.app import install
from graphrun.engine.message import GateMessage
from graphrun.errors import EngineError, GraphrunError, IdempotencyConflictError, ValidationFailedError
from graphrun.registry import TaskRegistry, default_registry
from graphrun.storage.database import Database
from graphrun.storage.migrate import upgrade


def _simple(name: str = "simple") -> Graph:
    graph = Graph(name)
    a = graph.add(bodies.const, value=1, key="a")
    b = graph.add(bodies.const, value=2, key="b")
    graph.add(bodies.collect, parts=[a, b], key="join")
    return graph


def _queued_messages(settings: Settings) -> list[bytes]:
    server = redis.Redis.from_url(settings.broker_url)
    keys = [key for key in server.keys(f"{settings.queue}*") if server.type(key) == b"list"]
    return [message for key in keys for message in server.lrange(key, 0, -1)]


@pytest.fixture
def idle(settings: Settings, tmp_path: Path) -> Settings:
    """Settings that no worker serves yet, on a database of their own."""
    return Settings.load(
        **settings.model_dump()
        | {
            "database_url": f"sqlite:///{tmp_path / 'graphrun.db'}",
            "queue": f"idle-{uuid4().hex[:8]}",
            "control_queue": f"idle-control-{uuid4().hex[:8]}",
            "sweep_interval_seconds": 0.2,
            "sweep_grace_seconds": 0.5,
        }
    )


# --- bad input: refused with one clear error, nothing written, nothing sent


@pytest.mark.parametrize(
    ("edges", "named"),
    [
        ([("foo", "foo")], "foo -> foo"),
        ([("a", "b"), ("b", "c"), ("c", "a"), ("foo", "a")], "a -> b -> c -> a"),
        ([("ghost", "foo")], "'ghost'"),
    ],
    ids=["O1", "O3", "O4"],
)
def test_o1_o3_o4_a_graph_that_may_not_run_writes_and_sends_nothing(make_client, idle: Settings, edges, named) -> None:
    from graphrun.model.spec import GraphSpec

    document = {
        "nodes": [{"key": key, "task": "bodies.const"} for key in ("foo", "a", "b", "c")],
        "edges": [{"head": head, "tail": tail} for head, tail in edges],
    }
    client = make_client(idle)
    with pytest.raises(ValidationFailedError, match=named):
        client.submit(GraphSpec.from_document(document))
    assert client.runs() == ()
    assert _queued_messages(idle) == []


def test_o2_a_key_used_twice_is_refused_and_a_repeated_edge_counts_once(
    client: Client, worker: Worker, tmp_path: Path
) -> None:
    from graphrun.model.spec import GraphSpec

    twice = {"nodes": [{"key": "t1", "task": "bodies.const"}] * 2}
    with pytest.raises(ValidationFailedError, match="'t1'"):
        client.submit(GraphSpec.from_document(twice))
    marks = tmp_path / "marks"
    node = {"task": "bodies.marked"}
    repeated = {
        "nodes": [{"key": key, "params": {"path": str(marks), "name": key}, **node} for key in ("a", "b")],
        "edges": [{"head": "a", "tail": "b"}, {"head": "a", "tail": "b"}],
    }
    run = client.submit(GraphSpec.from_document(repeated))
    assert run.wait(timeout=30) == "succeeded"
    assert marks.read_text().split() == ["a", "b"]


def test_an_unknown_task_and_bad_parameters_are_all_named_together(make_client, idle: Settings) -> None:
    from graphrun.model.spec import GraphSpec

    document = {
        "nodes": [
            {"key": "x", "task": "bodies.nothing"},
            {"key": "y", "task": "bodies.delayed", "params": {"value": "many", "second": 1}},
        ]
    }
    with pytest.raises(ValidationFailedError) as refused:
        make_client(idle).submit(GraphSpec.from_document(document))
    text = str(refused.value)
    assert "bodies.nothing" in text
    assert "'value'" in text or "value" in text
    assert "seconds" in text


# --- submit


def test_x17_the_same_idempotency_key_gives_the_same_run_and_another_graph_is_a_conflict(
    make_client, idle: Settings
) -> None:
    client = make_client(idle)
    first = client.submit(_simple(), idempotency_key="k")
    assert client.submit(_simple(), idempotency_key="k").run_id == first.run_id
    with pytest.raises(IdempotencyConflictError):
        client.submit(_simple("other"), idempotency_key="k")
    assert client.submit(_simple(), idempotency_key="k", tenant_id="another").run_id != first.run_id


def test_o25_a_submit_inside_a_transaction_that_is_rolled_back_leaves_nothing(make_client, idle: Settings) -> None:
    client = make_client(idle)
    database = client.ledger.database
    with pytest.raises(RuntimeError), database.write() as connection:
        client.submit(_simple(), connection=connection)
        raise RuntimeError("the caller changes its mind")
    assert client.runs() == ()
    assert _queued_messages(idle) == []


def test_a_submit_inside_a_transaction_is_sent_by_the_sweeper_after_the_commit(
    make_client, idle: Settings, tmp_path: Path
) -> None:
    client = make_client(idle)
    with client.ledger.database.write() as connection:
        run = client.submit(_simple(), connection=connection)
    assert run.status == "created"
    with Worker(idle, tmp_path, concurrency=2):
        assert run.wait(timeout=30) == "succeeded"


def test_a_run_is_kept_when_the_broker_is_down_and_starts_when_it_is_back(
    make_client, idle: Settings, tmp_path: Path
) -> None:
    down = Settings.load(**idle.model_dump() | {"broker_url": "redis://127.0.0.1:1/0", "result_url": idle.broker_url})
    run = make_client(down).submit(_simple())
    assert run.status == "created"
    assert run.warning is not None
    assert "127.0.0.1:1" in run.warning
    with Worker(idle, tmp_path, concurrency=2):
        assert run.wait(timeout=30) == "succeeded"


def test_x10_a_node_whose_output_is_given_does_not_run_and_says_so(client: Client, worker: Worker) -> None:
    graph = Graph("given")
    a = graph.add(bodies.fails, key="a")
    graph.add(bodies.const, value=a, key="b")
    run = client.submit(graph, outputs={"a": 7})
    assert run.wait(timeout=30) == "succeeded"
    assert run.output("b") == 7
    assert run.report().to_document()["nodes"]["a"] | {"task": ""} == {
        "status": "pre_done",
        "attempts": 0,
        "wave": 1,
        "output": 7,
        "task": "",
    } | {k: v for k, v in run.report().to_document()["nodes"]["a"].items() if k == "finished_at"}


# --- the sweeper


def test_what_was_committed_and_not_sent_is_sent_by_the_sweeper(make_client, idle: Settings, tmp_path: Path) -> None:
    client = make_client(idle)
    run = client.submit(_simple())
    server = redis.Redis.from_url(idle.broker_url)
    for key in server.keys(f"{idle.queue}*"):
        server.delete(key)  # the messages are gone as if the sender had died before it sent them
    ledger = client.ledger
    with ledger.database.write() as connection:
        connection.exec_driver_sql("UPDATE runs SET sent = 0")
    with Worker(idle, tmp_path, concurrency=2):
        assert run.wait(timeout=30) == "succeeded"
    assert {node.key: node.attempt for node in run.nodes()} == {"a": 1, "b": 1, "join": 1}


def test_h1_a_gate_that_did_not_fire_is_fired_by_the_sweeper(make_client, idle: Settings, tmp_path: Path) -> None:
    client = make_client(idle)
    server = redis.Redis.from_url(idle.result_url or idle.broker_url)
    with Worker(idle, tmp_path, concurrency=2):
        graph = Graph("lost-gate")
        slow = [graph.add(bodies.delayed, value=n, seconds=1.0, key=f"s{n}") for n in range(2)]
        graph.add(bodies.collect, parts=slow, key="join")
        run = client.submit(graph)
        wait_until(lambda: any(node.state == "running" for node in run.nodes()))
        for key in server.keys("celery-taskset-meta-*"):
            server.delete(key)  # the chord's counter is gone, as after a crash between result and count
        assert run.wait(timeout=30) == "succeeded"
    assert {node.key: node.attempt for node in run.nodes()} == {"s0": 1, "s1": 1, "join": 1}


def test_h2_a_node_whose_task_a_worker_does_not_know_runs_when_one_comes_that_does(
    make_client, idle: Settings, tmp_path: Path
) -> None:
    graph = _simple()
    graph.add(bodies.const, value=4, key="checked", verify=bodies.is_even)
    client = make_client(idle)
    handle = client.submit(graph)
    (tmp_path / "stranger").mkdir()
    (tmp_path / "knows").mkdir()
    with Worker(idle, tmp_path / "stranger", concurrency=1, tasks="theirs") as stranger:
        wait_until(lambda: "this worker has no task" in stranger.log.read_text())
        assert handle.status.value == "running"
    with Worker(idle, tmp_path / "knows", concurrency=1):
        assert handle.wait(timeout=60).value == "succeeded"
    assert {node.attempt for node in handle.nodes()} == {1}
    assert handle.output("join") == [1, 2]


def test_an_attempt_whose_child_died_before_it_took_it_comes_again(make_client, idle: Settings, tmp_path: Path) -> None:
    """§3.6: the child is killed while it waits for the database; Celery drops the message then."""
    client = make_client(idle)
    handle = client.submit(_simple())
    database = sqlite3.connect(make_url(idle.database_url).database or "", isolation_level=None)
    with closing(database):
        database.execute("BEGIN IMMEDIATE")
        (tmp_path / "killed").mkdir()
        with Worker(idle, tmp_path / "killed", concurrency=1) as worker:
            wait_until(lambda: "received" in worker.log.read_text())
            found = subprocess.run(["pgrep", "-P", str(worker.pid)], capture_output=True, text=True, check=True)
            for child in found.stdout.split():
                os.kill(int(child), signal.SIGKILL)
            database.execute("ROLLBACK")
            assert handle.wait(timeout=60).value == "succeeded"
    assert {node.attempt for node in handle.nodes()} == {1}


def test_a_run_that_cannot_be_sent_is_kept_and_keeps_no_other_back(make_client, idle: Settings) -> None:
    client = make_client(idle)
    client.engine.app.conf.task_create_missing_queues = False
    graph = Graph("nowhere")
    graph.add(bodies.const, value=1, policy={"queue": "nowhere"}, key="a")
    poisoned = client.submit(graph)
    assert "is kept and not sent yet" in (poisoned.warning or "")
    with client.ledger.database.write() as connection:
        good = client.submit(_simple(), connection=connection)
    swept = client.engine.sweeper().sweep(grace_seconds=0.0)
    assert (swept.started, swept.resent) == (1, 0)
    assert (poisoned.status, good.status) == ("running", "running")
    assert len(_queued_messages(idle)) == 2


def test_x8_a_gate_called_many_times_decides_once(client: Client, worker: Worker) -> None:
    run = client.submit(_simple())
    for _ in range(5):
        client.engine.dispatcher.send_gate(GateMessage(run.run_id, 0, 1, 0))
    assert run.wait(timeout=30) == "succeeded"
    opened = [event.event for event in run.events() if type(event.event).__name__ == "WaveOpened"]
    assert [event.wave for event in opened] == [1, 2]


def test_o18_a_message_sent_twice_runs_the_node_once(client: Client, worker: Worker, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    graph = Graph("twice")
    a = graph.add(bodies.marked_delayed, path=str(marks), name="a", seconds=0.5, key="a")
    graph.add(bodies.const, value=a, key="b")
    run = client.submit(graph)
    ledger = client.ledger
    row = ledger.run(run.run_id, tenant_id="default").run
    for dispatch in ledger.dispatches(run.run_id, (0,)) * 3:
        client.engine.dispatcher.send_node(row, dispatch)
    assert run.wait(timeout=30) == "succeeded"
    assert marks.read_text().splitlines() == ["start a", "end a"]
    assert [item.status for item in run.attempts()] == ["done", "done"]


def test_promise_7_the_rows_equal_the_fold_of_the_event_log(client: Client, worker: Worker) -> None:
    from graphrun.engine.compiling import compile_graph
    from graphrun.execution.fold import fold
    from graphrun.execution.run import Run

    graph = Graph("fold")
    grow = graph.add(bodies.grows, key="grow")
    flaky = graph.add(bodies.fails_first, value=1, key="flaky")
    graph.add(bodies.const, value=flaky, key="last", after=grow)
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    compiled = compile_graph(graph.freeze(), default_registry())
    events = sorted(run.events(), key=lambda row: (row.at, row.node_id, row.n))
    start = Run(run_id=run.run_id, waves=compiled.depth)
    folded = fold(start, compiled.nodes, compiled.edges, [row.event for row in events])
    assert folded.nodes == {row.node.node_id: row.node for row in run.nodes()}
    assert folded.run.state == run.status


# --- other people's apps


def test_a_plain_celery_task_is_a_node_without_any_change(idle: Settings, tmp_path: Path) -> None:
    app = Celery("mine", broker=idle.broker_url, backend=idle.broker_url)

    @app.task(name="mine.resize", bind=True)
    def resize(self: object, path: str, width: int = 10) -> str:
        return f"{path}@{width}"

    before = dict(app.conf)
    engine = install(app, idle, TaskRegistry())
    assert dict(app.conf) == before
    assert "graphrun:mine.resize" in app.tasks
    graph = Graph("theirs", registry=engine.registry)
    handle = graph.add(app.tasks["mine.resize"], path="a.png", key="resize")
    assert graph[handle.key].task == "graphrun:mine.resize"
    assert graph.run().output("resize") == "a.png@10"
    with pytest.raises(GraphrunError, match="widht"):
        graph.add(app.tasks["mine.resize"], path="a.png", widht=3)


def test_plain_celery_tasks_run_as_nodes_on_the_workers_of_their_own_app(
    idle: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in idle.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GRAPHRUN_RESULT_URL", idle.broker_url)
    import theirs

    with (
        Client(app=theirs.app) as client,
        Worker(
            idle, tmp_path, concurrency=2, app="theirs", queues=f"{idle.queue},{idle.queue}-own,{idle.queue}-images"
        ),
    ):
        graph = Graph("theirs", registry=client.registry)
        small = graph.add(theirs.resize, path="a.png", width=3, key="small")
        graph.add(theirs.resize, path=small, key="again")
        graph.add(theirs.asks_for_a_retry, value=1, key="retry")
        graph.add(theirs.replaces_itself, key="replace")
        run = client.submit(graph)
        assert run.wait(timeout=60) == "failed"
        assert theirs.resize.delay("own").get(timeout=30) == "own@10"
    states = {node.key: (node.state.value, node.attempt) for node in run.nodes()}
    assert states == {
        "small": ("succeeded", 1),
        "again": ("succeeded", 1),
        "retry": ("failed", 2),
        "replace": ("failed", 2),
    }
    assert run.output("again") == "a.png@3@10"
    assert client.registry.get("graphrun:theirs.resize").defaults.queue == f"{idle.queue}-images"
    assert "raised Retry" in (run.attempts("retry")[0].error or "")
    assert "replace() is refused" in (run.attempts("replace")[0].error or "")


def test_an_eager_app_is_refused(idle: Settings) -> None:
    app = Celery("eager")
    app.conf.task_always_eager = True
    with pytest.raises(EngineError, match="task_always_eager"):
        install(app, idle)


def test_o26_waiting_for_a_run_inside_a_node_is_refused(make_client, idle: Settings) -> None:
    registry = TaskRegistry()
    client = make_client(idle)

    def waits() -> str:
        try:
            client.submit(_simple()).wait(timeout=1)
        except EngineError as error:
            return str(error)
        return "waited"

    from graphrun import task

    graph = Graph("waits", registry=registry)
    graph.add(task(name="waits", registry=registry)(waits), key="w")
    assert "hold the slot" in graph.run().output("w")


# --- other brokers and databases


def test_rabbitmq_as_broker_with_redis_as_backend(
    make_client, idle: Settings, rabbitmq_url: str, tmp_path: Path
) -> None:
    settings = Settings.load(**idle.model_dump() | {"broker_url": rabbitmq_url, "result_url": idle.broker_url})
    client = make_client(settings)
    assert client.ledger
    with Worker(settings, tmp_path, concurrency=2):
        graph = _simple()
        flaky = graph.add(bodies.fails_first, value=3, key="flaky")
        graph.add(bodies.const, value=flaky, key="end")
        run = client.submit(graph)
        assert run.wait(timeout=60) == "succeeded"
    assert {node.key: node.attempt for node in run.nodes()} == {"a": 1, "b": 1, "join": 1, "flaky": 2, "end": 1}


def test_postgresql_as_ledger(make_client, idle: Settings, postgres_url: str, tmp_path: Path) -> None:
    settings = Settings.load(**idle.model_dump() | {"database_url": postgres_url})
    database = Database(postgres_url)
    upgrade(database)
    database.dispose()
    client = make_client(settings)
    with Worker(settings, tmp_path, concurrency=2):
        graph = _simple()
        grow = graph.add(bodies.grows, key="grow")
        graph.add(bodies.const, value=1, key="last", after=grow)
        graph.add(bodies.killed_first, path=str(tmp_path / "marks"), value=1, key="killed")
        graph.add(bodies.checks_odd_floats, value=graph.add(bodies.odd_floats), key="floats")
        run = client.submit(graph)
        assert run.wait(timeout=60) == "succeeded"
    assert run.report().verdict == "matches"


def test_what_a_node_did_while_the_database_was_away_is_recorded_when_it_is_back(
    make_client, idle: Settings, postgres_url: str, tmp_path: Path
) -> None:
    url = make_url(postgres_url)
    with Proxy(url.host or "127.0.0.1", url.port or 5432) as proxy:
        through = url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        settings = Settings.load(**idle.model_dump() | {"database_url": through})
        database = Database(postgres_url)
        upgrade(database)
        database.dispose()
        client = make_client(settings)
        marks = tmp_path / "marks"
        graph = Graph("away")
        a = graph.add(bodies.waits_for, path=str(tmp_path / "go"), marks=str(marks), key="a")
        graph.add(bodies.const, value=a, key="b")
        with Worker(settings, tmp_path, concurrency=2) as worker:
            run = client.submit(graph)
            wait_until(marks.exists)
            proxy.cut()
            (tmp_path / "go").touch()
            wait_until(lambda: "asking again" in worker.log.read_text(), seconds=60)
            proxy.restore()
            assert run.wait(timeout=60) == "succeeded"
        assert {node.key: node.attempt for node in run.nodes()} == {"a": 1, "b": 1}
        assert marks.read_text().split() == ["started"]
        client.close()


# --- scale


def test_o9_messages_are_under_1_5_kb_for_any_node_of_a_graph_of_5000(make_client, idle: Settings) -> None:
    graph = Graph("wide")
    for number in range(5000):
        graph.add(bodies.marked, path="p", name="n" * 200, key=f"名前 {number} " + "k" * 200)
    client = make_client(idle)
    client.submit(graph)
    messages = _queued_messages(idle)
    assert len(messages) == 5000
    assert max(map(len, messages)) < 1500


def test_o24_a_join_of_2000_gets_2000_values(client: Client, worker: Worker) -> None:
    graph = Graph("fan-in")
    parts = [graph.add(bodies.const, value=n, key=f"n{n}") for n in range(2000)]
    graph.add(bodies.collect, parts=parts, key="join")
    run = client.submit(graph)
    assert run.wait(timeout=240) == "succeeded"
    assert run.output("join") == list(range(2000))


def test_o27_a_chain_of_10000_is_checked_planned_stored_and_listed(make_client, idle: Settings) -> None:
    graph = Graph("deep")
    before = graph.add(bodies.const, value=0)
    for _ in range(9_999):
        before = graph.add(bodies.const, value=before)
    client = make_client(idle)
    assert len(client.plan(graph).waves) == 10_000
    run = client.submit(graph)
    assert len(run.nodes()) == 10_000
    assert run.spec() == graph.freeze()
    assert len(run.report().waves) == 10_000
