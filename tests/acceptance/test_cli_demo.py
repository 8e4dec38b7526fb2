"""``graphrun demo``: what a newcomer sees first."""

from __future__ import annotations

import pytest
from commands import CommandLine

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo, run once in an empty directory: (what it printed, how it ended, that directory)."""
    cli = CommandLine(tmp_path_factory.mktemp("demo"))
    done = cli("demo")
    cli.wait_until_nothing_is_left(seconds=1.0)
    return done, cli


def test_it_succeeds(demo):
    done, _cli = demo
    assert done.returncode == 0, done.stderr


def test_it_shows_plan_progress_report_and_verdict_in_this_order(demo):
    out = demo[0].stdout
    parts = ["DELEGATED GRAPH: demo", "IMPLEMENTED GRAPH: demo", "VERDICT    : matches", "THE PLAN BESIDE WHAT RAN"]
    places = [out.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert "nodes ended" in demo[0].stderr


def test_one_node_is_retried_and_one_evolves(demo):
    lines = [" ".join(line.split()) for line in demo[0].stdout.splitlines()]
    assert "south wave 1 wave 1 2 failed once, then done" in lines
    assert "check wave 2 wave 2 2 evolved: count orders, refunds apart" in lines
    assert "refunds - wave 3 1 added by the evolution of check" in lines


def test_its_tables_fit_eighty_columns(demo):
    table = demo[0].stdout.partition("THE PLAN BESIDE WHAT RAN")[2]
    assert max(map(len, table.splitlines())) <= 80


def test_it_leaves_neither_files_nor_processes(demo):
    _done, cli = demo
    assert list(cli.directory.iterdir()) == []
    assert cli.left() == []
