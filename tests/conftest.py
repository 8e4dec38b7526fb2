"""Real services for the tests: a private Redis, a PostgreSQL database and a RabbitMQ vhost of this run's own.

A service that is absent skips the tests that need it, loudly, and fails them where GRAPHRUN_REQUIRE_SERVICES=1.
"""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import NoReturn
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pytest

from graphrun.engine.local_server import LocalServer
from graphrun.errors import LocalServerError

POSTGRES = "postgresql+psycopg://postgres@127.0.0.1:5432/test"
RABBITMQ = "amqp://guest:guest@127.0.0.1:5672//"
MANAGEMENT_PORT = 15672

_absent = pytest.StashKey[dict[str, str]]()


@pytest.fixture(autouse=True, scope="session")
def _settings_of_the_tests_alone() -> Iterator[None]:
    """Keep the settings of whoever runs the tests out of them; workers are given theirs by name."""
    kept = ("GRAPHRUN_TEST_", "GRAPHRUN_REQUIRE_SERVICES")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("GRAPHRUN_") and not name.startswith(kept)]:
            patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def redis_url(pytestconfig: pytest.Config) -> Iterator[str]:
    """A Redis server of this test run alone."""
    try:
        server = LocalServer().__enter__()
    except LocalServerError as error:
        absent(pytestconfig, "redis", str(error))
    yield server.broker_url
    server.close()


@pytest.fixture(scope="session")
def postgres_url(pytestconfig: pytest.Config) -> Iterator[str]:
    """An empty PostgreSQL database, dropped afterwards."""
    psycopg = pytest.importorskip("psycopg")
    url = os.environ.get("GRAPHRUN_TEST_POSTGRES", POSTGRES)
    plain = url.replace("postgresql+psycopg://", "postgresql://")
    name = f"graphrun_test_{uuid4().hex[:12]}"
    try:
        admin = psycopg.connect(plain, autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        absent(pytestconfig, "postgres", f"set GRAPHRUN_TEST_POSTGRES: {first_line(error)}")
    with admin:
        admin.execute(f"CREATE DATABASE {name}")
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def rabbitmq_queues() -> list[str]:
    """Queues to delete at the end, for tests that must share a vhost with others."""
    return []


@pytest.fixture(scope="session")
def rabbitmq_url(pytestconfig: pytest.Config, rabbitmq_queues: list[str]) -> Iterator[str]:
    """A RabbitMQ vhost of this run alone; where none can be made, the given one, with ``rabbitmq_queues`` deleted."""
    url = os.environ.get("GRAPHRUN_TEST_RABBITMQ", RABBITMQ)
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 5672), timeout=3).close()
    except OSError as error:
        absent(pytestconfig, "rabbitmq", f"set GRAPHRUN_TEST_RABBITMQ: {first_line(error)}")
    vhost = f"graphrun-test-{uuid4().hex[:12]}"
    for make in (_VhostByCommand, _VhostByHttp):
        maker = make(url, vhost)
        if maker.create():
            yield parts._replace(path=f"/{vhost}").geturl()
            maker.delete()
            return
    yield url
    _delete_queues(url, rabbitmq_queues)


def absent(config: pytest.Config, service: str, reason: str) -> NoReturn:
    """Skip a test for want of a service, or fail it where services are required."""
    config.stash.setdefault(_absent, {})[service] = reason
    if os.environ.get("GRAPHRUN_REQUIRE_SERVICES") == "1":
        pytest.fail(f"{service} is required here: {reason}", pytrace=False)
    pytest.skip(f"no {service}: {reason}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for service, reason in config.stash.get(_absent, {}).items():
        terminalreporter.section(f"SERVICES ABSENT: {service}", red=True, bold=True)
        terminalreporter.write_line(f"SERVICES ABSENT: {service}: its tests did not run: {reason}", red=True)


def first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


class _VhostByCommand:
    """``rabbitmqctl``, for a local server that this user may administer."""

    def __init__(self, url: str, vhost: str) -> None:
        parts = urlsplit(url)
        self._local = parts.hostname in ("127.0.0.1", "localhost")
        self._user = unquote(parts.username or "guest")
        self._vhost = vhost

    def create(self) -> bool:
        if not self._local or shutil.which("rabbitmqctl") is None or not self._call("add_vhost", self._vhost):
            return False
        if self._call("set_permissions", "-p", self._vhost, self._user, ".*", ".*", ".*"):
            return True
        self.delete()
        return False

    def delete(self) -> None:
        self._call("delete_vhost", self._vhost)

    def _call(self, *arguments: str) -> bool:
        command = ["rabbitmqctl", "--quiet", *arguments]
        try:
            return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


class _VhostByHttp:
    """The management plugin, for a server elsewhere or in a container."""

    def __init__(self, url: str, vhost: str) -> None:
        parts = urlsplit(url)
        self._home = f"http://{parts.hostname}:{MANAGEMENT_PORT}/api"
        self._user = parts.username or "guest"
        secret = f"{unquote(self._user)}:{unquote(parts.password or 'guest')}"
        self._authorization = "Basic " + base64.b64encode(secret.encode()).decode()
        self._vhost = vhost

    def create(self) -> bool:
        everything = b'{"configure": ".*", "write": ".*", "read": ".*"}'
        return self._call("PUT", f"/vhosts/{self._vhost}") and self._call(
            "PUT", f"/permissions/{self._vhost}/{self._user}", everything
        )

    def delete(self) -> None:
        self._call("DELETE", f"/vhosts/{self._vhost}")

    def _call(self, method: str, path: str, body: bytes = b"{}") -> bool:
        headers = {"Authorization": self._authorization, "Content-Type": "application/json"}
        request = urllib.request.Request(self._home + path, data=body, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=5):
                return True
        except OSError:
            return False


def _delete_queues(url: str, names: list[str]) -> None:
    from kombu import Connection

    with Connection(url) as connection:
        for name in names:
            connection.default_channel.queue_delete(name)
