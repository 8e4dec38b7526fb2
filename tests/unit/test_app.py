"""The ready-made Celery app and ``install``: settings that the hazards ask for, on graphrun's own tasks only."""

from __future__ import annotations

import pytest
from celery import Celery

from graphrun import Settings, TaskRegistry, task
from graphrun.engine.app import install, make_app
from graphrun.engine.node_task import GateTask, NodeTask
from graphrun.errors import EngineError

SETTINGS = Settings(
    broker_url="redis://127.0.0.1:1/0", result_url="redis://127.0.0.1:1/0", database_url="sqlite:///unused.db"
)

# engine.md §4, "Settings that follow".
SAFE = {
    "task_acks_late": True,
    "task_reject_on_worker_lost": False,
    "worker_prefetch_multiplier": 1,
    "worker_deduplicate_successful_tasks": False,
    "task_track_started": True,
    "result_extended": True,
    "worker_send_task_events": True,
    "task_send_sent_event": True,
    "result_backend_always_retry": True,
    "result_chord_expires": 30 * 24 * 3600,
    "accept_content": ["json"],
    "broker_connection_retry_on_startup": True,
    "worker_soft_shutdown_timeout": 30,
}


@pytest.mark.parametrize(("name", "value"), SAFE.items())
def test_the_ready_made_app_has_the_settings_that_the_hazards_ask_for(name: str, value: object) -> None:
    assert make_app(SETTINGS, TaskRegistry()).conf[name] == value


def test_a_registered_function_is_a_celery_task_under_its_own_name() -> None:
    registry = TaskRegistry()

    @task(name="shop.price", registry=registry)
    def price() -> int:
        return 1

    app = make_app(SETTINGS, registry)
    assert price.name == "shop.price"
    assert isinstance(app.tasks["shop.price"], NodeTask)
    assert isinstance(app.tasks["graphrun.gate"], GateTask)


@pytest.mark.parametrize(
    ("option", "value"),
    [("acks_late", True), ("reject_on_worker_lost", False), ("max_retries", 0), ("ignore_result", False)],
)
def test_install_sets_options_on_its_own_tasks_and_changes_no_setting_of_the_app(option: str, value: object) -> None:
    registry = TaskRegistry()
    task(name=f"option.{option}", registry=registry)(lambda: None)
    app = Celery("theirs", broker="memory://", set_as_current=False)
    app.conf.task_acks_late = False
    before = dict(app.conf)
    install(app, SETTINGS, registry)
    assert dict(app.conf) == before
    assert getattr(app.tasks[f"option.{option}"], option) == value


def test_installing_twice_gives_the_same_engine() -> None:
    app = Celery("twice", broker="memory://", set_as_current=False)
    assert install(app, SETTINGS, TaskRegistry()) is install(app)


def test_a_function_and_a_plain_celery_task_of_one_name_are_refused() -> None:
    app = Celery("clash", broker="memory://", set_as_current=False)
    registry = TaskRegistry()

    def work() -> None:
        """Do nothing; only the name matters."""

    app.task(name="clash.work", shared=False)(work)
    task(name="clash.work", registry=registry)(work)
    with pytest.raises(EngineError, match=r"'clash\.work' of its own"):
        install(app, SETTINGS, registry)
