"""Cases about waves and gates, with real prefork workers: O5 to O12, O14 of the public reports."""

from __future__ import annotations

from pathlib import Path

import bodies
from workers import Worker

from graphrun import Client, Graph


def test_o5_an_empty_graph_succeeds_at_once_without_a_worker(client: Client) -> None:
    run = client.submit(Graph("empty"))
    assert run.wait(timeout=5) == "succeeded"
    assert run.report().nodes == ()
    assert run.report().verdict == "matches"


def test_o5_a_wave_in_which_everything_was_skipped_goes_straight_to_its_gate(client: Client, worker: Worker) -> None:
    graph = Graph("skipped-wave")
    first = graph.add(bodies.const, value=1, key="first")
    middle = graph.add(bodies.const, value=2, key="middle", after=first)
    graph.connect(first, middle, when="result > 1")
    graph.add(bodies.const, value=3, key="last", after=middle)
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    assert {node.key: (node.state, node.cause) for node in run.nodes()} == {
        "first": ("succeeded", None),
        "middle": ("skipped", "condition"),
        "last": ("skipped", "condition"),
    }


def test_o6_a_chain_hands_on_a_list_as_it_is(client: Client, worker: Worker) -> None:
    graph = Graph("chain")
    a = graph.add(bodies.const, value=[1, 2], key="a")
    b = graph.add(bodies.const, value=a, key="b")
    graph.add(bodies.length, value=b, key="c")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    assert run.output("b") == [1, 2]
    assert run.output("c") == 2


def test_o7_inputs_are_bound_by_declared_order_and_not_by_completion(client: Client, worker: Worker) -> None:
    graph = Graph("order")
    parts = [graph.add(bodies.delayed, value=i, seconds=(9 - i) * 0.05, key=f"p{i}") for i in range(10)]
    graph.add(bodies.collect, parts=parts, key="join")
    run = client.submit(graph)
    assert run.wait(timeout=60) == "succeeded"
    assert run.output("join") == list(range(10))


def test_o8_only_the_failed_node_is_retried_and_the_join_runs_once(
    client: Client, worker: Worker, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    graph = Graph("retry")
    a = graph.add(bodies.fails_first, value=1, key="a")
    b = graph.add(bodies.marked, path=str(marks), name="b", key="b")
    join = graph.add(bodies.marked, path=str(marks), name="join", parts=[a, b], key="join")
    assert join.key == "join"
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    assert {node.key: node.attempt for node in run.nodes()} == {"a": 2, "b": 1, "join": 1}
    assert marks.read_text().split() == ["b", "join"]
    first, second = run.attempts("a")
    assert (first.status, second.status) == ("failed", "done")
    assert first.subgraph_hash is not None
    assert first.subgraph_hash == second.subgraph_hash  # the identical subgraph (X6, D11)
    assert "the first try fails" in (first.error or "")


def test_o10_a_join_of_parallel_pipelines_runs_exactly_once(client: Client, worker: Worker, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    graph = Graph("pipelines")
    ends = []
    for side in ("1", "2"):
        head = graph.add(bodies.const, value=side, key=f"a{side}")
        ends += [graph.add(bodies.marked, path=str(marks), name=f"b{side}{n}", parts=[head]) for n in (1, 2)]
    graph.add(bodies.marked, path=str(marks), name="join", parts=ends, key="join")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "succeeded"
    lines = marks.read_text().split()
    assert lines.count("join") == 1
    assert lines[-1] == "join"


def test_o11_a_failing_branch_leaves_the_other_alone(client: Client, worker: Worker) -> None:
    graph = Graph("one-branch-fails")
    a = graph.add(bodies.const, value=1, key="A")
    b = graph.add(bodies.const, value=a, key="B")
    graph.add(bodies.fails, after=a, key="C")
    d = graph.add(bodies.const, value=b, key="D")
    graph.add(bodies.const, value=d, key="E")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "failed"
    assert {node.key: node.state.value for node in run.nodes()} == {
        "A": "succeeded",
        "B": "succeeded",
        "C": "failed",
        "D": "succeeded",
        "E": "succeeded",
    }
    assert {node.key: node.attempt for node in run.nodes()}["C"] == 2
    assert run.report().failures == ("C",)


def test_o11_in_a_diamond_the_join_of_a_failed_branch_is_upstream_failed(client: Client, worker: Worker) -> None:
    graph = Graph("diamond")
    a = graph.add(bodies.const, value=1, key="A")
    b = graph.add(bodies.const, value=a, key="B")
    c = graph.add(bodies.fails, after=a, key="C")
    graph.add(bodies.collect, parts=[b, c], key="D")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "failed"
    last = run.nodes()[-1]
    assert (last.state, last.cause, last.roots, last.attempt) == ("skipped", "upstream_failed", ("C",), 0)
    assert run.report().gaps == ("D",)


def _branches(join: str) -> Graph:
    graph = Graph(f"branches-{join}")
    chosen = graph.add(bodies.pick, branch="left", key="pick")
    left = graph.add(bodies.delayed, value=1, seconds=0.2, key="left", after=chosen)
    right = graph.add(bodies.delayed, value=2, seconds=0.0, key="right", after=chosen)
    graph.connect(chosen, left, when="result == 'left'")
    graph.connect(chosen, right, when="result == 'right'")
    both = graph.add(bodies.proceeds, left=left, right=right, key="join", join=join)
    graph.add(bodies.const, value=both, key="after")
    return graph


def test_o12_with_join_any_the_join_runs_after_the_branch_that_was_taken(client: Client, worker: Worker) -> None:
    run = client.submit(_branches("any"))
    assert run.wait(timeout=30) == "succeeded"
    assert run.output("join") == {"left": 1, "right": 0, "missing": {"right": "condition"}}
    assert run.output("after") == run.output("join")


def test_o12_with_join_all_the_join_is_skipped_visibly_because_of_the_other_branch(
    client: Client, worker: Worker
) -> None:
    run = client.submit(_branches("all"))
    assert run.wait(timeout=30) == "succeeded"
    states = {node.key: (node.state.value, node.cause, node.roots) for node in run.nodes()}
    assert states["left"] == ("succeeded", None, ())
    assert states["join"] == ("skipped", "condition", ("pick",))
    assert states["after"] == ("skipped", "condition", ("pick",))


def test_o14_fail_fast_leaves_every_row_in_a_final_state(client: Client, worker: Worker, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    graph = Graph("fail-fast", failure_policy="fail_fast")
    graph.add(bodies.fails_once_and_for_all, key="first")
    graph.add(bodies.marked_delayed, path=str(marks), name="second", seconds=1.0, key="second")
    thirds = [graph.add(bodies.const, value=n, key=f"third-{n}") for n in range(20)]
    graph.add(bodies.collect, parts=thirds, key="after")
    run = client.submit(graph)
    assert run.wait(timeout=30) == "failed"
    states = {node.key: node.state.value for node in run.nodes()}
    assert states["first"] == "failed"
    assert states["second"] == "succeeded"
    assert states["after"] == "cancelled"
    assert set(states.values()) <= {"failed", "succeeded", "cancelled"}
    assert "end second" in marks.read_text()
