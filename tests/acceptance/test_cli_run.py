"""``graphrun run --local`` as a new user meets it: real Redis, real workers, a SQLite file, nothing left behind."""

from __future__ import annotations

import json
import os
import pty
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
from contextlib import closing
from fcntl import ioctl
from pathlib import Path

import pytest
from commands import REPOSITORY, CommandLine, read_until

pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="what is left is found through /proc"),
]

QUICKSTART = str(REPOSITORY / "examples" / "01_quickstart" / "graph.py") + ":graph"
POLICIES = str(REPOSITORY / "examples" / "04_failure_policies" / "policies.py")
GRAPHS = """
from graphrun import Graph
from graphrun.builtin import echo, fail, sleep

def slow():
    graph = Graph("slow")
    first = [graph.add(sleep, seconds=60, key=f"s{n}") for n in range(3)]
    graph.add(echo, value=first, key="end")
    return graph

def failing():
    graph = Graph("failing")
    bad = graph.add(fail, message="no such data", key="bad")
    graph.add(echo, value=bad, key="next")
    return graph

def wide():
    graph = Graph("wide")
    first = [graph.add(echo, value=n, key=f"n{n}") for n in range(80)]
    graph.add(echo, value=first, key="end")
    return graph
"""


@pytest.fixture
def cli(tmp_path):
    made = CommandLine(tmp_path)
    made.write("graphs.py", GRAPHS)
    yield made
    assert made.left() == []


def rows(path, sql):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def kept_file(cli):
    (found,) = (cli.directory / ".graphrun").glob("*.db")
    return found


def test_the_quickstart_prints_one_json_document(cli):
    done = cli("run", QUICKSTART, "--local", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    wanted = {"run_id", "status", "verdict", "waves", "nodes", "failures", "evolutions", "off_script", "gaps"}
    assert wanted <= document.keys()
    assert document["waves"] == [["north", "south"], ["total"]]
    total = document["nodes"]["total"]
    assert (total["status"], total["attempts"], total["wave"], total["output"]) == ("succeeded", 1, 2, 71)
    assert (document["status"], document["verdict"]) == ("succeeded", "matches")


def test_the_sql_file_alone_tells_what_ran(cli):
    assert cli("run", QUICKSTART, "--local").returncode == 0
    states = rows(kept_file(cli), "SELECT key, state, attempt FROM node_runs ORDER BY key")
    assert states == [("north", "succeeded", 1), ("south", "succeeded", 1), ("total", "succeeded", 1)]


def test_the_file_is_named_with_a_command_that_reads_it(cli):
    done = cli("run", QUICKSTART, "--local")
    command = done.stderr.splitlines()[-1].split()
    assert command[:2] == ["graphrun", "show"]
    assert "total" in cli(*command[1:]).stdout


def test_for_people_the_plan_stands_beside_the_report(cli):
    out = cli("run", QUICKSTART, "--local").stdout
    assert "PLANNED     : wave1[north∥south] → gate → wave2[total]" in out
    assert "IMPLEMENTED : wave1[north∥south] → gate → wave2[total]" in out
    assert "VERDICT    : matches" in out
    assert "OUTPUT of total: 71" in out


def test_what_did_not_run_is_not_shown_as_implemented(cli):
    out = cli("run", f"{POLICIES}:fail_fast", "--local").stdout
    assert "IMPLEMENTED : wave1[good∥bad] → gate → wave2[merge (cancelled)] → gate → wave3[announce (cancelled)]" in out
    assert "merge status=cancelled(fail_fast)" in out


def test_after_a_local_run_list_says_where_it_is(tmp_path):
    cli = CommandLine(tmp_path)
    cli("run", QUICKSTART, "--local", "--json")
    (file,) = (tmp_path / ".graphrun").glob("*.db")
    assert f"is kept in sqlite:///.graphrun/{file.name}: say --database with it" in cli("list").stderr


def test_a_run_that_failed_is_exit_code_1_and_still_one_document(cli):
    done = cli("run", "graphs.py:failing", "--local", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert (document["status"], document["failures"]) == ("failed", ["bad"])
    assert document["nodes"]["bad"]["attempts"] == 2
    assert "no such data" in document["nodes"]["bad"]["error"]


def test_the_failure_policy_can_be_chosen(cli):
    done = cli("run", "graphs.py:failing", "--local", "--json", "--failure-policy", "fail_fast")
    assert json.loads(done.stdout)["nodes"]["next"]["status"] == "cancelled"


def test_a_chosen_database_keeps_the_run(cli):
    url = f"sqlite:///{cli.directory / 'mine.db'}"
    assert cli("run", QUICKSTART, "--local", "--database", url).returncode == 0
    assert [row[1] for row in rows(cli.directory / "mine.db", "SELECT run_id, state FROM runs")] == ["succeeded"]
    assert not (cli.directory / ".graphrun").exists()


def test_an_imported_workflow_runs(cli):
    cli.write("list.json", '{"name": "abc", "nodes": ["a", "b", "c"], "edges": [[0, 1], [1, 2]]}')
    assert cli("import", "list.json", "--out", "own.json").returncode == 0
    document = json.loads(cli("run", "own.json", "--local", "--json").stdout)
    assert [document["nodes"][key]["output"] for key in "abc"] == [1, 2, 3]


def test_a_run_can_be_exported_and_run_again(cli):
    url = f"sqlite:///{cli.directory / 'mine.db'}"
    run_id = json.loads(cli("run", QUICKSTART, "--local", "--json", "--database", url).stdout)["run_id"]
    assert cli("export", run_id, "--out", "again.yaml", "--database", url).returncode == 0
    done = cli("run", "again.yaml", "--tasks", QUICKSTART.rpartition(":")[0], "--local", "--json")
    assert json.loads(done.stdout)["nodes"]["total"]["output"] == 71


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_everything_and_keeps_the_run(cli, number, code):
    process = cli.start("run", "graphs.py:slow", "--local")
    read_until(process.stderr, " queued")
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code, err
    assert out == ""
    assert "is kept in sqlite:///.graphrun/slow-" in err
    assert cli.left() == []
    assert rows(kept_file(cli), "SELECT state FROM runs") == [("running",)]


def test_after_sigkill_nothing_is_left_either(cli):
    process = cli.start("run", "graphs.py:slow", "--local")
    read_until(process.stderr, " queued")
    process.kill()
    process.communicate(timeout=30)
    cli.wait_until_nothing_is_left()


def test_a_timeout_is_one_line_and_exit_code_1(cli):
    done = cli("run", "graphs.py:slow", "--local", "--timeout", "0.5")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("is running after 0.5 s")


def test_a_graph_that_is_refused_starts_nothing(cli):
    cli.write("loop.json", '{"nodes": ["a", "b", "c"], "edges": [[0, 1], [1, 2], [2, 0]]}')
    done = cli("run", "loop.json", "--local")
    assert done.returncode == 1
    assert "cycle: a -> b -> c -> a" in done.stderr
    assert "starting" not in done.stderr
    assert not (cli.directory / ".graphrun").exists()


def test_a_worker_that_cannot_start_says_why_in_one_line(cli):
    cli.write(
        "odd.py",
        "import os\nfrom graphrun import Graph\nfrom graphrun.builtin import echo\n"
        "if 'GRAPHRUN_READY_FILE' in os.environ:\n    raise KeyError('only there')\n"
        "graph = Graph('odd')\ngraph.add(echo, value=1, key='a')\n",
    )
    done = cli("run", "odd.py", "--local")
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("graphrun: worker-1 ended with exit code 1: ")
    assert "KeyError: 'only there'" in last


@pytest.mark.parametrize(
    ("graph", "shown"),
    [
        (QUICKSTART, ["north", "succeeded", "3 of 3 nodes ended"]),
        ("graphs.py:wide", ["81 of 81 nodes ended", "80 suc"]),
    ],
)
def test_on_a_terminal_a_table_is_drawn(cli, graph, shown):
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "graphrun", "run", graph, "--local", "--json"],
        cwd=cli.directory,
        env=cli.environment | {"TERM": "xterm"},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    drawn = read_terminal(ours)
    out, _nothing = process.communicate(timeout=30)
    assert json.loads(out)["status"] == "succeeded"
    for text in shown:
        assert text in drawn


def read_terminal(descriptor):
    """Return all that is written to a terminal until its last writer is gone."""
    data = b""
    with closing(os.fdopen(descriptor, "rb", buffering=0)) as terminal:
        while True:
            try:
                chunk = terminal.read(65_536)
            except OSError:
                return data.decode()
            if not chunk:
                return data.decode()
            data += chunk


def test_a_local_run_serves_the_queues_that_tasks_and_nodes_name(tmp_path: Path) -> None:
    file = tmp_path / "queued.py"
    file.write_text(
        "from graphrun import Graph, task\n\n"
        "@task(queue='io')\ndef one() -> int:\n    return 1\n\n"
        "@task\ndef more(x: int) -> int:\n    return x + 1\n\n"
        "graph = Graph('queued')\n"
        "graph.add(more, x=graph.add(one, key='a'), key='b', policy={'queue': 'other'})\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "graphrun", "run", str(file), "--local", "--json", "--timeout", "60"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["nodes"]["b"]["output"] == 2
