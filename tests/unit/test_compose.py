"""docker-compose.yml against the real command line and the real settings; no Docker is needed to be wrong."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer
import yaml

from graphrun.cli.entry import app
from graphrun.engine.app import make_app
from graphrun.engine.dispatcher import GATE_TASK
from graphrun.settings import CONFIG_VARIABLE, Settings

ROOT = Path(__file__).parents[2]
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("graphrun:")}
DEFAULT_PASSWORD = "${POSTGRES_PASSWORD:-graphrun}"


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """What a service of the compose file is told."""
    for name, value in OURS["worker"]["environment"].items():
        monkeypatch.setenv(name, value.replace(DEFAULT_PASSWORD, "graphrun"))
    monkeypatch.delenv(CONFIG_VARIABLE)
    return Settings.load(ROOT / "config/docker.toml")


def parsed(service: str) -> tuple[str, dict[str, object]]:
    """Return the command of a service, as the real command line reads it; an unknown option is an error."""
    program, *arguments = OURS[service]["command"]
    assert program == "graphrun"
    command: Any = typer.main.get_command(app)
    path = []
    while hasattr(command, "commands"):
        name, *arguments = arguments
        path.append(name)
        command = command.commands[name]
    return " ".join(path), command.make_context(name, arguments).params


def test_there_are_the_services_of_the_house() -> None:
    assert set(SERVICES) == {"redis", "postgres", "migrate", "worker", "control", "flower"}


def test_the_commands_are_those_of_the_command_line() -> None:
    assert parsed("migrate")[0] == "db upgrade"
    assert parsed("worker")[0] == parsed("control")[0] == "worker"
    assert parsed("flower") == ("flower", {"address": "0.0.0.0", "port": 5555})


def test_workers_and_control_together_consume_the_queues_of_the_settings(settings: Settings) -> None:
    assert parsed("worker")[1]["queues"] == settings.queue
    assert parsed("control")[1]["queues"] == settings.control_queue


def test_every_variable_is_known_and_the_file_it_names_is_mounted() -> None:
    known = set(Settings().environment()) | {CONFIG_VARIABLE, "REMAP_SIGTERM"}
    for service in OURS.values():
        assert set(service["environment"]) <= known
        assert f"./config/docker.toml:{service['environment'][CONFIG_VARIABLE]}:ro" in service["volumes"]
        assert service["environment"]["REMAP_SIGTERM"] == "SIGQUIT"


def test_the_settings_point_at_the_services_and_their_passwords(settings: Settings) -> None:
    database, postgres = urlsplit(settings.database_url), SERVICES["postgres"]["environment"]
    assert database.hostname == "postgres"
    assert database.username == postgres["POSTGRES_USER"]
    assert database.password == postgres["POSTGRES_PASSWORD"].replace(DEFAULT_PASSWORD, "graphrun")
    assert database.path == f"/{postgres['POSTGRES_DB']}"
    assert urlsplit(settings.broker_url).hostname == urlsplit(settings.effective_result_url).hostname == "redis"
    file = tomllib.loads((ROOT / "config/docker.toml").read_text(encoding="utf-8"))
    assert settings.database_url == file["database_url"]


def test_a_worker_scales_and_nothing_is_open_to_the_network() -> None:
    for name, service in SERVICES.items():
        assert "container_name" not in service
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
    assert "ports" not in SERVICES["worker"]


def test_every_lasting_service_has_a_health_check_and_workers_wait_for_the_schema() -> None:
    for name, service in SERVICES.items():
        assert name == "migrate" or service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    for name in ("worker", "control", "flower"):
        assert SERVICES[name]["depends_on"] == {
            "migrate": {"condition": "service_completed_successfully"},
            "redis": {"condition": "service_healthy"},
        }


@pytest.mark.parametrize("name", ["worker", "control"])
def test_a_health_check_asks_for_the_name_that_the_worker_has(name: str) -> None:
    hostname = str(parsed(name)[1]["hostname"])
    assert hostname.replace("%h", "$$HOSTNAME") in OURS[name]["healthcheck"]["test"][1]


def test_flower_is_published_and_checked_on_the_port_that_it_has() -> None:
    port = parsed("flower")[1]["port"]
    assert OURS["flower"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f"127.0.0.1:{port}/healthcheck" in OURS["flower"]["healthcheck"]["test"][-1]


def test_a_stop_leaves_more_time_than_the_soft_shutdown_takes(settings: Settings) -> None:
    celery = make_app(settings)
    assert GATE_TASK in celery.tasks
    for name in ("worker", "control"):
        assert float(SERVICES[name]["stop_grace_period"].rstrip("s")) > celery.conf.worker_soft_shutdown_timeout


def test_the_image_holds_what_the_commands_name() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = {line.split()[1] for line in text.splitlines() if line.startswith("COPY") and len(line.split()) == 3}
    assert {"graphrun", "config", "tasks", "examples"} <= copied
    assert parsed("worker")[1]["tasks"] == ["tasks"]
    for extra in ("postgres", "flower"):
        assert extra in text
        assert extra in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
