"""Commands on a broker and a worker that stay: submit, list, show, report, doctor, sweep, worker, up, flower."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from commands import REPOSITORY, CommandLine, read_until

from graphrun.engine.local_server import LocalServer

pytestmark = pytest.mark.redis

SURVEY = str(REPOSITORY / "examples" / "03_retry_and_evolution" / "survey.py")
POLICIES = str(REPOSITORY / "examples" / "04_failure_policies" / "policies.py")
ELSEWHERE = """
from graphrun import Graph, task


@task(name="elsewhere.io", queue="io")
def io() -> int:
    return 1


@task(name="elsewhere.here")
def here() -> int:
    return 1


graph = Graph("elsewhere")
graph.add(io, key="a")
graph.add(here, key="b")
"""


@pytest.fixture(scope="module")
def cli(tmp_path_factory):
    """A command line with a Redis of its own and one worker that knows two of the examples."""
    home = tmp_path_factory.mktemp("services")
    with LocalServer() as server:
        made = CommandLine(
            home,
            GRAPHRUN_BROKER_URL=server.broker_url,
            GRAPHRUN_RESULT_URL=server.result_url,
            GRAPHRUN_READY_FILE=str(home / "ready"),
            GRAPHRUN_SWEEP_INTERVAL_SECONDS="0.5",
            GRAPHRUN_SWEEP_GRACE_SECONDS="0.5",
        )
        worker = made.start("worker", "--tasks", SURVEY, "--tasks", POLICIES, "--concurrency", "2", "-n", "w@%h")
        read_until(worker.stderr, " ready.")
        yield made
        os.kill(worker.pid, signal.SIGTERM)
        worker.communicate(timeout=30)
        assert worker.returncode == 0
        made.wait_until_nothing_is_left()


def submitted(cli, *arguments):
    done = cli("submit", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def ended(cli, run_id, seconds=30.0):
    """Poll until a run has ended; return its report."""
    deadline = time.monotonic() + seconds
    while True:
        document = json.loads(cli("report", run_id, "--json").stdout)
        if document["status"] in ("succeeded", "failed"):
            return document
        assert time.monotonic() < deadline, document


@pytest.fixture(scope="module")
def survey(cli):
    """A run of the survey that has ended."""
    run_id = submitted(cli, SURVEY)
    ended(cli, run_id)
    return run_id


@pytest.fixture(scope="module")
def failed(cli):
    """A run that has failed."""
    run_id = submitted(cli, f"{POLICIES}:skip_dependents")
    ended(cli, run_id)
    return run_id


def test_a_submitted_run_is_reported(cli, survey):
    document = ended(cli, survey)
    assert (document["status"], document["verdict"]) == ("succeeded", "matches")
    assert document["nodes"]["download"]["attempts"] == 2
    assert document["evolutions"][0]["added"] == ["recheck"]
    assert "VERDICT    : matches" in cli("report", survey).stdout


def test_run_watches_and_reports_on_the_same_services(cli):
    done = cli("run", SURVEY, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["nodes"]["publish"]["output"] == "mean 16.2, 1 rechecked by hand"


def test_runs_are_listed_newest_first_and_chosen_by_state_and_graph(cli, survey, failed):
    everything = [run["run_id"] for run in json.loads(cli("list", "--json").stdout)["runs"]]
    assert everything.index(failed) < everything.index(survey)
    chosen = json.loads(cli("list", "--state", "failed", "--json").stdout)["runs"]
    assert {run["status"] for run in chosen} == {"failed"}
    named = json.loads(cli("list", "--graph", "survey", "--json").stdout)["runs"]
    assert {run["graph"] for run in named} == {"survey"}
    assert failed[:8] in cli("list").stdout


def test_a_run_is_shown_by_the_first_characters_of_its_id(cli, failed):
    text = cli("show", failed[:8]).stdout
    assert failed in text
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert any(row.startswith("1 bad failed 2 ") and "OSError: the source is down" in row for row in rows)
    assert "2 merge skipped (upstream_failed) because of bad" in rows


def test_show_as_json_has_every_attempt(cli, failed):
    document = json.loads(cli("show", failed, "--json").stdout)
    bad = next(node for node in document["nodes"] if node["key"] == "bad")
    assert [(one["attempt"], one["status"]) for one in bad["attempts"]] == [(1, "failed"), (2, "failed")]
    assert bad["attempts"][0]["worker"]
    assert document["failure_policy"] == "skip_dependents"


def test_a_run_that_is_not_there_is_one_line(cli, survey):
    done = cli("show", "ffffffff")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "ffffffff" in done.stderr


def test_a_key_makes_two_submits_one_run(cli):
    first = submitted(cli, SURVEY, "--idempotency-key", "monday")
    assert submitted(cli, SURVEY, "--idempotency-key", "monday") == first
    other = cli("submit", f"{POLICIES}:proceed", "--idempotency-key", "monday")
    assert other.returncode == 1
    assert "monday" in other.stderr


def test_doctor_is_content_and_names_the_worker(cli, survey):
    done = cli("doctor", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 0, document
    assert document["ok"] is True
    found = {check["name"]: check["level"] for check in document["checks"]}
    assert found["workers"] == found["database"] == found["broker"] == found["result backend"] == "ok"
    assert "w@" in done.stdout


def test_doctor_fails_for_a_queue_that_nobody_serves(cli):
    other = CommandLine(cli.directory)
    other.environment = cli.environment | {"GRAPHRUN_QUEUE": "elsewhere"}
    done = other("doctor")
    assert done.returncode == 1
    assert "no worker serves elsewhere -> graphrun worker --queues elsewhere" in done.stdout


def test_a_queue_that_nobody_serves_and_a_task_that_nobody_knows_are_named(tmp_path):
    with LocalServer() as server:
        cli = CommandLine(tmp_path, GRAPHRUN_BROKER_URL=server.broker_url, GRAPHRUN_RESULT_URL=server.result_url)
        cli.write("elsewhere.py", ELSEWHERE)
        worker = cli.start("worker", "--tasks", POLICIES, "--concurrency", "1")
        read_until(worker.stderr, " ready.")
        done = cli("run", "elsewhere.py", "--timeout", "12")
        doctor = cli("doctor")
        os.kill(worker.pid, signal.SIGTERM)
        worker.communicate(timeout=30)
    assert done.returncode == 1
    assert "no worker serves queue io: graphrun worker --queues io" in done.stderr
    assert "no worker knows task elsewhere.here: start a worker with the module" in done.stderr
    assert "goes on: graphrun show" in done.stderr
    assert doctor.returncode == 1
    assert "no worker serves queue io -> graphrun worker --queues io" in doctor.stdout
    assert "no worker knows task elsewhere.here" in doctor.stdout


def test_a_pass_of_the_sweeper_says_what_it_did(cli, survey):
    document = json.loads(cli("sweep", "--json").stdout)
    assert document.keys() >= {"started", "gates", "resent", "due"}


def test_a_broker_that_is_down_keeps_the_run_and_says_so(tmp_path):
    cli = CommandLine(tmp_path, GRAPHRUN_BROKER_URL=f"redis://127.0.0.1:{free_port()}/0")
    done = cli("run", SURVEY)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "is kept and starts when a worker" in done.stderr
    (run,) = json.loads(cli("list", "--json").stdout)["runs"]
    assert run["status"] == "created"
    assert cli("doctor").returncode == 1


def test_a_run_that_nobody_serves_says_how_to_start_a_worker(tmp_path):
    with LocalServer() as server:
        cli = CommandLine(tmp_path, GRAPHRUN_BROKER_URL=server.broker_url)
        done = cli("run", SURVEY, "--timeout", "7")
    assert done.returncode == 1
    assert "no worker answers; start one in another terminal: graphrun worker" in done.stderr


@pytest.mark.rabbitmq
def test_a_broker_that_refuses_the_password_keeps_the_run_and_says_so(tmp_path, rabbitmq_url):
    url = urlsplit(rabbitmq_url)
    wrong = f"amqp://{url.username}:wrong@{url.hostname}:{url.port or 5672}{url.path}"
    cli = CommandLine(tmp_path, GRAPHRUN_BROKER_URL=wrong)
    done = cli("submit", SURVEY)
    assert (done.returncode, len(done.stdout.split())) == (0, 1)
    assert "is kept and starts when a worker" in done.stderr
    assert "wrong" not in done.stderr
    assert "is it up, and the URL right?" in cli("doctor").stdout


def test_a_broker_of_no_kind_that_there_is_writes_nothing(tmp_path):
    cli = CommandLine(tmp_path, GRAPHRUN_BROKER_URL="foo://127.0.0.1")
    done = cli("submit", SURVEY)
    assert done.returncode == 1
    assert "GRAPHRUN_BROKER_URL = 'foo://127.0.0.1': not a broker" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_closed_stdout_is_no_error(tmp_path):
    cli = CommandLine(tmp_path)
    done = subprocess.run(
        f"{shlex.join(cli.command('plan', SURVEY))} >&-",
        shell=True,
        cwd=tmp_path,
        env=cli.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_reading_makes_no_database(tmp_path):
    cli = CommandLine(tmp_path)
    for command in (["list"], ["show", "0123456789"], ["report", "0123456789"], ["db", "current"]):
        cli(*command)
    assert list(tmp_path.iterdir()) == []
    assert "no database at sqlite:///.graphrun/graphrun.db" in cli("list").stderr


def test_a_database_of_another_version_is_refused_with_the_remedy(tmp_path):
    cli = CommandLine(tmp_path)
    assert cli("db", "upgrade").stdout.startswith("schema none -> ")
    assert cli("db", "upgrade").stdout.endswith("nothing to do\n")
    with closing(sqlite3.connect(tmp_path / ".graphrun" / "graphrun.db")) as connection:
        connection.execute("DROP TABLE alembic_version")
        connection.commit()
    for command in (["list"], ["submit", SURVEY], ["worker"]):
        done = cli(*command)
        assert done.returncode == 1, command
        assert "graphrun db upgrade" in done.stderr


def test_a_database_of_an_unknown_version_is_not_told_to_be_upgraded(tmp_path):
    cli = CommandLine(tmp_path)
    cli("db", "upgrade")
    with closing(sqlite3.connect(tmp_path / ".graphrun" / "graphrun.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    for command in (["list"], ["db", "upgrade"], ["db", "current"], ["doctor"]):
        done = cli(*command)
        said = done.stdout + done.stderr
        assert "9999" in said, command
        assert "db upgrade" not in said, command


def test_up_brings_redis_workers_and_flower_and_ends_with_ctrl_c(tmp_path):
    redis, flower = free_port(), free_port()
    cli = CommandLine(tmp_path, GRAPHRUN_BROKER_URL=f"redis://127.0.0.1:{redis}/0")
    up = cli.start("up", "--tasks", SURVEY, "--port", str(flower))
    read_until(up.stderr, " ready.")
    assert cli("run", SURVEY).returncode == 0
    assert answers(f"http://127.0.0.1:{flower}/")
    os.kill(up.pid, signal.SIGINT)
    _out, err = up.communicate(timeout=60)
    assert up.returncode == 130, err
    assert "worker-1 | " in err
    assert cli.left() == []


def test_up_tells_a_mistake_in_the_tasks_before_anything_starts(tmp_path):
    cli = CommandLine(tmp_path)
    cli.write("broken.py", "1 / 0\n")
    done = cli("up", "--tasks", "broken.py")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.endswith("broken.py cannot be imported: ZeroDivisionError: division by zero\n")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(url, seconds=30.0):
    """Poll until a page is there."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=2) as page:
                return page.status == 200
        except OSError:
            time.sleep(0.1)
    return False
