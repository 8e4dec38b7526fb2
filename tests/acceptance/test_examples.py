"""Every example runs, as its README says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import REPOSITORY, CommandLine, read_until

from graphrun.engine.local_server import LocalServer

EXAMPLES = REPOSITORY / "examples"
POLICIES = "04_failure_policies/policies.py"

pytestmark = pytest.mark.redis


@pytest.fixture
def cli(tmp_path):
    made = CommandLine(tmp_path)
    yield made
    made.wait_until_nothing_is_left()


def run(cli, name, code=0):
    """Run an example locally; return its document."""
    done = cli("run", str(EXAMPLES / name), "--local", "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def statuses(document):
    return {key: node["status"] for key, node in document["nodes"].items()}


def test_quickstart_adds_up(cli):
    document = run(cli, "01_quickstart/graph.py:graph")
    assert document["nodes"]["total"]["output"] == 71


def test_quickstart_is_fifteen_lines_of_code():
    lines = (EXAMPLES / "01_quickstart" / "graph.py").read_text().splitlines()
    assert sum(bool(line) and not line.startswith('"""') for line in lines) <= 15


def test_plain_celery_tasks_are_nodes(cli):
    document = run(cli, "02_existing_celery_app/shop.py")
    assert document["nodes"]["invoice"]["output"] == "Ada pays 8.00"


def test_the_existing_app_runs_its_graph_on_its_own_worker(cli):
    """As the README says: Celery's own worker on the user's app, and the file run as a script."""
    home = EXAMPLES / "02_existing_celery_app"
    database = f"sqlite:///{cli.directory / 'shop.db'}"
    assert cli("db", "upgrade", "--database", database).returncode == 0
    with LocalServer() as server:
        environment = cli.environment | {
            "GRAPHRUN_BROKER_URL": server.broker_url,
            "GRAPHRUN_RESULT_URL": server.result_url,
            "GRAPHRUN_DATABASE_URL": database,
        }
        celery = [sys.executable, "-m", "celery", "-A", "shop", "worker"]
        worker = subprocess.Popen(
            [*celery, "--concurrency", "2", "--loglevel", "INFO"],
            cwd=home,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        read_until(worker.stderr, " ready.")
        script = [sys.executable, "shop.py"]
        done = subprocess.run(
            script, cwd=home, env=environment, capture_output=True, text=True, timeout=90, check=False
        )
        os.kill(worker.pid, signal.SIGTERM)
        worker.communicate(timeout=30)
    assert done.stdout == "Ada pays 8.00\n", done.stderr


def test_one_node_is_retried_and_one_evolves(cli):
    document = run(cli, "03_retry_and_evolution/survey.py")
    assert document["nodes"]["download"]["attempts"] == 2
    assert [one["node"] for one in document["evolutions"]] == ["screen"]
    assert document["waves"] == [["download"], ["screen"], ["recheck"], ["publish"]]
    assert document["nodes"]["publish"]["output"] == "mean 16.2, 1 rechecked by hand"
    assert document["verdict"] == "matches"


@pytest.mark.parametrize(
    ("policy", "merge", "announce"),
    [
        ("proceed", "succeeded", "succeeded"),
        ("skip_dependents", "skipped", "skipped"),
        ("fail_fast", "cancelled", "cancelled"),
    ],
)
def test_the_policies_differ(cli, policy, merge, announce):
    document = run(cli, f"{POLICIES}:{policy}", code=1)
    assert statuses(document) == {"good": "succeeded", "bad": "failed", "merge": merge, "announce": announce}
    if policy == "proceed":
        assert document["nodes"]["merge"]["output"] == "7, without bad"
        assert document["nodes"]["merge"]["missing_inputs"].keys() == {"bad"}


def test_the_policies_stand_side_by_side_without_a_broker(cli):
    script = [sys.executable, str(EXAMPLES / POLICIES)]
    done = subprocess.run(
        script, cwd=cli.directory, env=cli.environment, capture_output=True, text=True, timeout=60, check=False
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[0] for row in rows if len(row) == 1] == ["proceed", "skip_dependents", "fail_fast"]
    assert ["merge", "cancelled", "fail_fast"] in rows


@pytest.mark.parametrize("readme", sorted(EXAMPLES.glob("0[1-4]_*/README.md")), ids=lambda path: path.parent.name)
def test_a_readme_is_short_and_names_files_that_are_there(readme):
    text = readme.read_text()
    assert len(text.splitlines()) <= 15
    for name in re.findall(r"examples/[\w/]+\.py", text):
        assert (REPOSITORY / Path(name)).is_file()
