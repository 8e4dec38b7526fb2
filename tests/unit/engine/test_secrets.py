"""No password of a URL is in what an engine says when a server is not there."""

from __future__ import annotations

import pytest

from graphrun import Settings, TaskRegistry
from graphrun.cli.checks import examine
from graphrun.engine.app import make_app
from graphrun.errors import BrokerDownError, LedgerUnavailableError
from graphrun.storage.database import Database

PASSWORD = "hunter2"
NOBODY = "127.0.0.1:1"


def test_a_broker_that_is_down_is_named_without_its_password() -> None:
    url = f"redis://:{PASSWORD}@{NOBODY}/0"
    app = make_app(Settings(broker_url=url, result_url=url, database_url="sqlite:///unused.db"), TaskRegistry())
    with pytest.raises(BrokerDownError) as down:
        app.graphrun.dispatcher.require_broker()
    assert NOBODY in str(down.value)
    assert PASSWORD not in str(down.value)


def test_a_database_that_does_not_answer_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: None)
    database = Database(f"postgresql+psycopg://u:{PASSWORD}@{NOBODY}/d")
    with pytest.raises(LedgerUnavailableError) as away:
        database.run_read(lambda connection: connection.exec_driver_sql("SELECT 1"))
    assert "u:***@127.0.0.1" in str(away.value)
    assert PASSWORD not in str(away.value)


def test_doctor_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: None)
    monkeypatch.setenv("GRAPHRUN_BROKER_URL", f"redis://:{PASSWORD}@{NOBODY}/0")
    monkeypatch.setenv("GRAPHRUN_DATABASE_URL", f"postgresql+psycopg://u:{PASSWORD}@{NOBODY}/d")
    lines = "\n".join(check.line() for check in examine(None, (), None))
    assert "***" in lines
    assert PASSWORD not in lines
