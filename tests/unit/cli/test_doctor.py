"""What doctor thinks of Celery's settings, and how a finding reads."""

from __future__ import annotations

import pytest
from celery import Celery

from graphrun.cli.checks import Check, Level, _queued, _unsafe
from graphrun.engine.app import make_app
from graphrun.registry import TaskRegistry
from graphrun.settings import Settings


def levels(app):
    return {check.text.split()[0]: check.level for check in _unsafe(app.conf)}


def test_the_ready_made_app_is_safe():
    assert levels(make_app(Settings(), TaskRegistry())) == {}


def test_a_bare_app_is_told_what_is_unsafe():
    found = levels(Celery("bare", broker="redis://127.0.0.1:1/0", set_as_current=False))
    assert found["visibility_timeout"] is Level.WARN
    assert found["result_chord_expires"] is Level.WARN
    assert found["worker_prefetch_multiplier"] is Level.WARN
    assert Level.FAIL not in found.values()


@pytest.mark.parametrize("setting", ["task_always_eager", "worker_deduplicate_successful_tasks", "task_ignore_result"])
def test_what_breaks_runs_is_a_failure(setting):
    app = make_app(Settings(), TaskRegistry())
    app.conf[setting] = True
    assert levels(app) == {setting: Level.FAIL}


def test_a_finding_is_one_line_with_its_remedy():
    assert Check(Level.FAIL, "broker", "down\nand out", "start it").line() == (
        "fail broker           down and out -> start it"
    )


def test_what_is_asked_of_queued_nodes_makes_no_database(tmp_path):
    settings = Settings(database_url=f"sqlite:///{tmp_path / 'none.db'}")
    assert _queued(settings) == []
    assert list(tmp_path.iterdir()) == []
