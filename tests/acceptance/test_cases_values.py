"""Cases about what bodies raise and return, with real prefork workers: O15, O20 to O25, O28 of the public reports."""

from __future__ import annotations

from pathlib import Path

import bodies
import pytest
from workers import Worker, wait_until

from graphrun import Client, Graph


def test_o20_soft_and_hard_limits_are_each_counted_once(client: Client, worker: Worker, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    graph = Graph("limits")
    soft = graph.add(bodies.passes_soft_limit, policy={"timeout_seconds": 1.0}, key="soft")
    hard = graph.add(bodies.ignores_soft_limit, path=str(marks), policy={"timeout_seconds": 1.0}, key="hard")
    plain = graph.add(bodies.const, value=3, key="plain")
    graph.add(bodies.collect, parts=[soft, plain], after=hard, key="join")
    run = client.submit(graph)
    assert run.wait(timeout=60) == "failed"
    states = {node.key: (node.state.value, node.attempt) for node in run.nodes()}
    assert states["soft"] == ("succeeded", 1)
    assert states["plain"] == ("succeeded", 1)
    assert states["hard"] == ("failed", 2)
    assert states["join"][0] == "skipped"
    assert run.output("soft") == 1
    assert marks.read_text().split() == ["started", "started"]
    assert all("running time limit of 1 s exceeded" in (item.error or "") for item in run.attempts("hard"))


def test_x15_a_body_that_runs_over_its_limit_fails_and_says_so(client: Client, worker: Worker) -> None:
    graph = Graph("over")
    graph.add(bodies.delayed, value=1, seconds=30.0, policy={"timeout_seconds": 0.5, "max_attempts": 1}, key="slow")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "failed"
    assert "running time limit of 0.5 s exceeded" in (run.attempts("slow")[0].error or "")


@pytest.mark.parametrize(
    ("body", "params"),
    [
        (bodies.exits, {"code": 0}),
        (bodies.exits, {"code": 1}),
        (bodies.exits_hard, {"code": 0}),
        (bodies.interrupts, {}),
    ],
    ids=["sys.exit(0)", "sys.exit(1)", "os._exit(0)", "KeyboardInterrupt"],
)
def test_x15_a_body_that_leaves_fails_that_node_only(client: Client, worker: Worker, body, params) -> None:
    graph = Graph("leaves")
    graph.add(body, key="a", **params)
    graph.add(bodies.const, value=2, key="b")
    run = client.submit(graph)
    assert run.wait(timeout=60) == "failed"
    states = {node.key: (node.state.value, node.attempt) for node in run.nodes()}
    assert states == {"a": ("failed", 2), "b": ("succeeded", 1)}


def test_x6_a_child_killed_by_a_signal_is_delivered_again_and_uses_up_no_retry(
    client: Client, worker: Worker, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    graph = Graph("killed")
    a = graph.add(bodies.killed_first, path=str(marks), value=5, key="a")
    b = graph.add(bodies.const, value=1, key="b")
    graph.add(bodies.collect, parts=[a, b], key="join")
    run = client.submit(graph)
    assert run.wait(timeout=60) == "succeeded"
    assert {node.key: node.attempt for node in run.nodes()} == {"a": 1, "b": 1, "join": 1}
    assert run.output("join") == [5, 1]
    assert marks.read_text().split() == ["delivered", "delivered"]


def test_x6_a_node_that_always_kills_its_process_fails_for_good_after_three_deliveries(
    client: Client, worker: Worker, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    graph = Graph("poison")
    graph.add(bodies.killed_always, path=str(marks), key="poison")
    graph.add(bodies.const, value=1, key="healthy")
    run = client.submit(graph)
    assert run.wait(timeout=60) == "failed"
    states = {node.key: node.state.value for node in run.nodes()}
    assert states == {"poison": "failed", "healthy": "succeeded"}
    assert marks.read_text().split() == ["delivered"] * 3
    assert "worker lost 3 times" in (run.nodes()[0].error or "")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("two-arguments", "TwoArguments: needs two"),
        ("lock", "HoldsALock: holds a lock"),
        ("broken-text", "BrokenText"),
        ("huge", "more characters"),
    ],
)
def test_o21_an_exception_that_cannot_be_rebuilt_is_kept_as_text(
    client: Client, worker: Worker, kind: str, text: str
) -> None:
    graph = Graph("raises")
    graph.add(bodies.raises, kind=kind, key="a")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "failed"
    attempts = run.attempts("a")
    assert len(attempts) == 2
    assert text in (attempts[0].error or "")
    assert len(attempts[0].error or "") < 20_000
    assert attempts[0].traceback


@pytest.mark.parametrize(
    ("kind", "type_name", "path"),
    [
        ("set", "set", "$"),
        ("array", "ndarray", "$"),
        ("dataclass", "Point", "$"),
        ("enum", "Colour", "$"),
        ("path", "PosixPath", "$"),
        ("tuple-key", "tuple", "$"),
        ("tuple", "tuple", "$"),
        ("int-key", "int", "$"),
        ("nested", "set", "$.rows[1]"),
    ],
)
def test_o22_what_cannot_be_stored_fails_that_node_and_names_type_and_path(
    client: Client, worker: Worker, kind: str, type_name: str, path: str
) -> None:
    graph = Graph("unstorable")
    graph.add(bodies.unstorable, kind=kind, key="a", policy={"max_attempts": 1})
    graph.add(bodies.const, value=1, key="b")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "failed"
    a, b = run.nodes()
    assert b.state == "succeeded"
    assert "output of node a cannot be stored" in (a.error or "")
    assert type_name in (a.error or "")
    assert path in (a.error or "")


def test_o22_what_is_stored_comes_back_equal_and_of_equal_type(client: Client, worker: Worker) -> None:
    graph = Graph("storable")
    for kind in bodies.STORABLE:
        handle = graph.add(bodies.storable, kind=kind, key=kind)
        graph.add(bodies.kind_of, value=handle, key=f"kind of {kind}")
    run = client.submit(graph)
    assert run.wait(timeout=60) == "succeeded"
    for kind, value in bodies.STORABLE.items():
        assert run.output(kind) == value
        assert run.output(f"kind of {kind}") == type(value).__name__


def test_o22_annotated_tuples_keys_and_dataclasses_come_back_as_they_were(client: Client, worker: Worker) -> None:
    graph = Graph("annotated")
    graph.add(bodies.same_tuple, value=graph.add(bodies.annotated_tuple), key="tuple")
    graph.add(bodies.same_keys, value=graph.add(bodies.annotated_keys), key="keys")
    graph.add(bodies.same_point, value=graph.add(bodies.annotated_point), key="point")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    assert [run.output(key) for key in ("tuple", "keys", "point")] == [True, True, True]


def test_o23_nan_infinity_nul_and_lone_surrogates_arrive(client: Client, worker: Worker) -> None:
    graph = Graph("odd-values")
    graph.add(bodies.checks_odd_floats, value=graph.add(bodies.odd_floats), key="floats")
    for kind in ("nul", "surrogate"):
        graph.add(bodies.text_code_points, value=graph.add(bodies.odd_text, kind=kind), key=kind)
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    assert run.output("floats") is True
    assert run.output("nul") == [97, 0, 98]
    assert run.output("surrogate") == [97, 0xD800, 98]


def test_o24_a_result_of_20_mb_is_stored_whole_and_read_by_three(client: Client, worker: Worker) -> None:
    graph = Graph("big")
    big = graph.add(bodies.big_text, megabytes=20, key="big")
    children = [graph.add(bodies.text_length, value=big, key=f"child-{n}") for n in range(3)]
    graph.add(bodies.collect, parts=children, key="join")
    run = client.submit(graph)
    assert run.wait(timeout=120) == "succeeded"
    assert run.output("join") == [20 * 1024 * 1024] * 3
    assert len(run.output("big")) == 20 * 1024 * 1024


def test_o25_a_node_never_finds_its_run_missing(client: Client, worker: Worker) -> None:
    graph = Graph("race")
    graph.add(bodies.const, value=1, key="a")
    spec = graph.freeze()
    runs = [client.submit(spec) for _ in range(500)]
    assert {run.wait(timeout=120) for run in runs} == {"succeeded"}
    assert "no such row" not in worker.log.read_text()


def test_o28_odd_keys_are_kept_byte_for_byte(client: Client, worker: Worker) -> None:
    keys = ["a/b", "x#33", "lire données", "名前", '("sum", 0)', "rule\nds: 552", "k" * 300, "A", "a", " a"]
    graph = Graph("odd-keys")
    for number, key in enumerate(keys):
        graph.add(bodies.const, value=number, key=key)
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    assert [node.key for node in run.nodes()] == keys
    assert [run.output(key) for key in keys] == list(range(len(keys)))


def test_x7_an_evolved_node_runs_again_with_new_parts_of_the_graph(client: Client, worker: Worker) -> None:
    graph = Graph("evolution")
    grow = graph.add(bodies.grows, key="grow")
    graph.add(bodies.const, value=1, key="last", after=grow)
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    states = {node.key: (node.state.value, node.wave, node.planned_wave) for node in run.nodes()}
    assert states == {
        "grow": ("succeeded", 1, 1),
        "last": ("succeeded", 3, 2),
        "extra": ("succeeded", 2, None),
    }
    report = run.report()
    assert report.verdict == "matches"
    assert [item.node for item in report.evolutions] == ["grow"]
    assert report.evolutions[0].evolved_scope == "the larger job"
    assert [node.key for node in run.spec().nodes] == ["grow", "last"]


def test_x7_a_condition_on_a_node_that_had_ended_is_evaluated_when_its_edge_is_added(
    client: Client, worker: Worker
) -> None:
    graph = Graph("late-branch")
    seed = graph.add(bodies.const, value=2, key="seed")
    graph.add(bodies.branches_late, key="branch", after=seed)
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    states = {node.key: (node.state.value, node.cause) for node in run.nodes()}
    assert states["yes"] == ("succeeded", None)
    assert states["no"] == ("skipped", "condition")


def test_x7_an_edge_onto_a_parameter_that_has_a_value_is_refused(client: Client, worker: Worker) -> None:
    graph = Graph("bound-twice")
    graph.add(bodies.const, value=2, key="seed")
    asks = graph.add(bodies.binds_twice, key="asks")
    graph.add(bodies.const, value=1, key="last", after=asks)
    run = client.submit(graph)
    assert run.wait(timeout=30) == "failed"
    assert "parameter 'value' of node 'last' has a value already" in (run.nodes()[1].error or "")


def test_x7_a_refused_evolution_fails_the_node_and_says_why(client: Client, worker: Worker) -> None:
    graph = Graph("refused")
    grow = graph.add(bodies.grows_wrongly, key="grow")
    graph.add(bodies.const, value=1, key="last", after=grow)
    run = client.submit(graph)
    assert run.wait(timeout=30) == "failed"
    assert "evolution refused" in (run.nodes()[0].error or "")
    assert run.nodes()[1].cause == "upstream_failed"


def test_x16_the_engine_runs_verify_itself_and_a_failed_one_is_a_failed_attempt(client: Client, worker: Worker) -> None:
    graph = Graph("verify")
    graph.add(bodies.even_at_second_try, verify=bodies.is_even, key="a")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    (node,) = run.nodes()
    assert (node.attempt, node.verify_result) == (2, "pass")
    assert [(item.kind, item.status) for item in run.attempts("a")] == [
        ("body", "done"),
        ("verify", "failed"),
        ("body", "done"),
        ("verify", "done"),
    ]


def test_x16_a_verify_command_gets_the_output_and_its_exit_code_decides(client: Client, worker: Worker) -> None:
    graph = Graph("verify-command")
    graph.add(bodies.const, value="good", verify="$ grep -q good", key="passes")
    graph.add(bodies.const, value="bad", verify="$ grep good", key="fails")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "failed"
    passes, fails = run.nodes()
    assert (passes.state, passes.verify_result) == ("succeeded", "pass")
    assert (fails.state, fails.attempt) == ("failed", 2)
    assert "exit code 1" in (fails.error or "")


def test_async_functions_are_nodes(client: Client, worker: Worker) -> None:
    graph = Graph("async")
    graph.add(bodies.async_value, value=4, key="a")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    assert run.output("a") == 4


def test_a_retry_with_backoff_waits_and_is_sent_by_the_sweeper(client: Client, worker: Worker) -> None:
    graph = Graph("backoff")
    policy = {"backoff": {"initial_seconds": 1.0, "jitter": 0.0}}
    graph.add(bodies.fails_first, value=1, policy=policy, key="a")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    first, second = run.attempts("a")
    assert (second.claimed_at - first.settled_at).total_seconds() >= 1.0


def test_the_worker_served_everything_above_with_the_processes_it_started_with(worker: Worker) -> None:
    wait_until(lambda: worker.process is not None and worker.process.poll() is None)
