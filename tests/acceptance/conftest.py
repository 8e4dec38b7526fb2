"""A real worker on a private Redis, for the tests that speak of workers. It serves one module, all its tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from graphrun import Client, Settings
from graphrun.engine.app import make_app
from graphrun.registry import default_registry

sys.path.insert(0, str(Path(__file__).parent))

import bodies
from workers import Worker

__all__ = ["bodies"]


@pytest.fixture(scope="module")
def settings(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a module's own database, on the tests' own Redis."""
    home = tmp_path_factory.mktemp("run")
    return Settings.load(
        broker_url=redis_url,
        result_url=redis_url,
        database_url=f"sqlite:///{home / 'graphrun.db'}",
        queue=f"nodes-{os.getpid()}-{home.name}",
        control_queue=f"control-{os.getpid()}-{home.name}",
        sweep_interval_seconds=0.5,
        sweep_grace_seconds=2.0,
        hard_limit_grace_seconds=1.0,
        allow_commands=True,
    )


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[Client]:
    with Client(settings, app=make_app(settings, default_registry())) as made:
        yield made


@pytest.fixture(scope="module")
def worker(client: Client, settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """One prefork worker with two processes; the client comes first, since it makes the SQLite file."""
    assert client.ledger
    with Worker(settings, tmp_path_factory.mktemp("worker"), concurrency=2) as started:
        yield started


@pytest.fixture
def make_client() -> Iterator[Callable[[Settings], Client]]:
    """Return clients for given settings, closed after the test."""
    with ExitStack() as stack:

        def make(settings: Settings) -> Client:
            return stack.enter_context(Client(settings, app=make_app(settings, default_registry())))

        yield make
