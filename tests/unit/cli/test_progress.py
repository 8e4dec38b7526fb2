"""What is seen of a run while it goes on."""

from __future__ import annotations

import io

from rich.console import Console
from rows import node_row, progress

from graphrun.cli.progress import drawing, line
from graphrun.execution.state import Awaiting, Cause, NodeState


def drawn(shown, width=80):
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(drawing(shown))
    return console.file.getvalue()


def test_the_line_counts_what_ended_and_names_each_state():
    nodes = [
        node_row(0, "a"),
        node_row(1, "b", NodeState.FAILED),
        node_row(2, "c", NodeState.RUNNING, wave=2),
        node_row(3, "d", NodeState.PENDING, wave=2),
    ]
    assert line(progress(nodes, wave=2, waves=2)) == (
        "[3.0 s] run 3fa9c2d1 running, wave 2 of 2, 2 of 4 nodes ended: 1 running, 1 succeeded, 1 failed"
    )


def test_few_nodes_have_a_row_each_with_the_time_of_the_running_one():
    nodes = [node_row(0, "a"), node_row(1, "b", NodeState.RUNNING, wave=2, attempt=2)]
    rows = [text.split() for text in drawn(progress(nodes, waves=2)).splitlines()]
    assert ["1", "a", "succeeded", "1", "2.0", "s"] in rows
    assert ["2", "b", "running", "2", "10.0", "s"] in rows


def test_a_waiting_node_says_what_for_and_a_skipped_one_why():
    nodes = [
        node_row(0, "a", NodeState.WAITING, awaiting=Awaiting.RETRY),
        node_row(1, "b", NodeState.SKIPPED, cause=Cause.UPSTREAM_FAILED),
    ]
    text = drawn(progress(nodes))
    assert "waiting for retry" in text
    assert "skipped (upstream_failed)" in text


def test_many_nodes_are_counted_by_wave():
    nodes = [node_row(n, f"a{n}") for n in range(40)] + [
        node_row(n, f"b{n}", NodeState.RUNNING, wave=2) for n in range(40, 50)
    ]
    text = drawn(progress(nodes, wave=2, waves=2))
    assert "40 of 50 nodes ended" in text
    assert ["2", "10", "10", "running"] in [row.split() for row in text.splitlines()]
    assert "a0" not in text


def test_of_many_waves_those_around_the_open_one_are_shown():
    nodes = [node_row(n, f"n{n}", wave=n + 1) for n in range(100)]
    rows = [row.split() for row in drawn(progress(nodes, wave=50, waves=100)).splitlines()]
    assert ["50", "1", "1", "succeeded"] in rows
    assert next(row for row in rows if "more" in row)[1:] == ["88", "more", "waves"]


def test_everything_fits_eighty_columns():
    nodes = [node_row(n, "a-key-of-a-node-with-a-very-long-name-" * 3, NodeState.RUNNING) for n in range(5)]
    assert max(len(text) for text in drawn(progress(nodes)).splitlines()) <= 80


def test_an_empty_graph_is_drawn_too():
    assert "0 of 0 nodes ended" in drawn(progress([]))
