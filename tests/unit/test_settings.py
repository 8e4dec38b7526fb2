"""Settings: precedence, refusals that name their place, secrets that stay hidden, files that stay true."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from graphrun.errors import SettingsError
from graphrun.settings import Settings, find_file, masked

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _nothing_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAPHRUN_CONFIG", raising=False)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_anything_the_defaults_hold() -> None:
    settings = Settings.load()
    assert settings == Settings()
    assert settings.broker_url == "redis://127.0.0.1:6379/0"
    assert settings.database_url == "sqlite:///.graphrun/graphrun.db"


def test_an_argument_beats_the_environment_which_beats_the_file_which_beats_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path / "graphrun.toml", 'queue = "file"\ntenant_id = "file"\ncontrol_queue = "file"\n')
    monkeypatch.setenv("GRAPHRUN_QUEUE", "environment")
    monkeypatch.setenv("GRAPHRUN_TENANT_ID", "environment")
    settings = Settings.load(queue="argument")
    assert (settings.queue, settings.tenant_id, settings.control_queue) == ("argument", "environment", "file")
    assert settings.poll_seconds == 0.25


def test_an_argument_of_none_means_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRUN_QUEUE", "environment")
    assert Settings.load(queue=None).queue == "environment"


def test_the_file_is_the_argument_then_the_variable_then_the_usual_places(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert find_file() is None
    write(tmp_path / "config/graphrun.toml", 'queue = "in-config"')
    assert Settings.load().queue == "in-config"
    write(tmp_path / "graphrun.toml", 'queue = "beside"')
    assert Settings.load().queue == "beside"
    monkeypatch.setenv("GRAPHRUN_CONFIG", str(write(tmp_path / "named.toml", 'queue = "named"')))
    assert Settings.load().queue == "named"
    assert Settings.load(write(tmp_path / "given.toml", 'queue = "given"')).queue == "given"


def test_a_named_file_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"^no such settings file: nowhere\.toml$"):
        Settings.load("nowhere.toml")
    monkeypatch.setenv("GRAPHRUN_CONFIG", "gone.toml")
    with pytest.raises(SettingsError, match=r"^no such settings file: gone\.toml, named by GRAPHRUN_CONFIG$"):
        Settings.load()


def test_a_file_that_is_no_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    write(tmp_path / "graphrun.toml", "queue = \n")
    with pytest.raises(SettingsError, match=r"graphrun\.toml cannot be read as TOML: .*line 1"):
        Settings.load()


def test_unknown_names_are_refused_all_at_once_each_with_its_place(tmp_path: Path) -> None:
    write(tmp_path / "graphrun.toml", 'brokr_url = "redis://x"\n[celery]\nx = 1\n')
    with pytest.raises(SettingsError) as refused:
        Settings.load(pol_seconds=3)
    assert str(refused.value) == (
        "argument: unknown setting 'pol_seconds'; did you mean 'poll_seconds'?; "
        "graphrun.toml: unknown setting 'brokr_url'; did you mean 'broker_url'?; "
        "graphrun.toml: unknown setting 'celery'"
    )


def test_wrong_values_are_refused_all_at_once_each_with_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path / "graphrun.toml", "worker_concurrency = 0\n")
    monkeypatch.setenv("GRAPHRUN_POLL_SECONDS", "soon")
    with pytest.raises(SettingsError) as refused:
        Settings.load(queue="a,b")
    text = str(refused.value)
    assert "GRAPHRUN_POLL_SECONDS = 'soon': input should be a valid number" in text
    assert "graphrun.toml: worker_concurrency = 0: input should be greater than or equal to 1" in text
    assert "argument: queue = 'a,b': a queue's name has neither spaces nor commas" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("broker_url", "localhost:6379", "not a broker such as redis://"),
        ("broker_url", "foo://localhost", "not a broker such as redis://"),
        ("database_url", "graphrun.db", "not a database such as sqlite:///"),
        ("database_url", "mysql://h/d", "not a database such as sqlite:///"),
        ("payload_url", "bucket", "not a URL such as file:///"),
        ("result_url", "localhost", "chords are counted in Redis"),
    ],
)
def test_a_url_of_what_cannot_be_used_is_refused(name: str, value: str, why: str) -> None:
    with pytest.raises(SettingsError, match=f"argument: {name} = '{value}': {why}"):
        Settings.load(**{name: value})


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///file:x?mode=memory"])
def test_a_database_that_no_other_process_sees_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="a database in memory is seen by one process alone"):
        Settings.load(database_url=url)


def test_results_outside_redis_are_refused() -> None:
    with pytest.raises(SettingsError, match="chords are counted in Redis"):
        Settings.load(result_url="rpc://")


def test_limits_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(SettingsError, match="inline_limit_bytes is over payload_limit_bytes"):
        Settings.load(inline_limit_bytes=10, payload_limit_bytes=9)


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0"])
def test_a_length_of_time_is_finite_and_positive(value: str) -> None:
    with pytest.raises(SettingsError):
        Settings.load(poll_seconds=value)


def test_results_go_where_the_broker_is_when_that_is_redis() -> None:
    assert Settings(broker_url="rediss://h:1/3").effective_result_url == "rediss://h:1/3"
    assert Settings(broker_url="amqp://h//").effective_result_url == "redis://127.0.0.1:6379/1"
    assert Settings(broker_url="amqp://h//", result_url="redis://r/2").effective_result_url == "redis://r/2"


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().queue = "other"  # type: ignore[misc]


def test_the_environment_gives_another_process_the_same_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = Settings(broker_url="amqp://u:p@h//", poll_seconds=0.25, payload_limit_bytes=70_000)
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    write(tmp_path / "graphrun.toml", 'payload_url = "file:///elsewhere"\nqueue = "elsewhere"\n')
    assert Settings.load() == settings


SECRETS = [
    ("redis://:hunter2@h:1/0", "redis://:***@h:1/0"),
    ("postgresql+psycopg://me:hunter2@h/db", "postgresql+psycopg://me:***@h/db"),
    ("amqp://u:hunter2@a//;amqp://v:hunter2@b//", "amqp://u:***@a//;amqp://v:***@b//"),
    ("postgresql://h/db?user=me&password=hunter2&x=1", "postgresql://h/db?user=me&password=***&x=1"),
    ("s3://bucket/x?secret_key=hunter2", "s3://bucket/x?secret_key=***"),
    ("redis://:hunt@er2:/@h", "redis://:***@h"),
    ("sqlite:////tmp/a.db", "sqlite:////tmp/a.db"),
    ("redis://h:6379/0", "redis://h:6379/0"),
]


@pytest.mark.parametrize(("url", "shown"), SECRETS)
def test_a_password_in_a_url_is_masked(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_no_secret_is_in_what_settings_print_or_complain_about() -> None:
    settings = Settings(broker_url="redis://:hunter2@h/0", database_url="postgresql+psycopg://u:hunter2@h/d")
    for text in (repr(settings), str(settings), str(settings.safe())):
        assert "hunter2" not in text
        assert "***" in text
    with pytest.raises(SettingsError) as refused:
        Settings.load(result_url="amqp://u:hunter2@h")
    assert "hunter2" not in str(refused.value)


def test_the_shipped_file_names_every_setting_with_its_default_and_a_comment() -> None:
    text = (ROOT / "config/graphrun.toml").read_text(encoding="utf-8")
    values = tomllib.loads(text)
    assert set(values) == set(Settings.model_fields)
    assert Settings(**values) == Settings()
    lines = text.splitlines()
    for number, line in enumerate(lines):
        name = line.partition(" = ")[0]
        if name in values:
            assert lines[number - 1].startswith("# "), f"{name} has no comment above it"


def test_the_docker_file_is_accepted() -> None:
    settings = Settings.load(ROOT / "config/docker.toml")
    assert settings.broker_url.startswith("redis://redis:")
    assert "@postgres:" in settings.database_url


def test_the_table_of_settings_in_the_docs_is_complete_and_right() -> None:
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    for name, field in Settings.model_fields.items():
        default = "unset" if field.default is None else f"`{field.default}`"
        assert f"| `{name}` | {default} | {field.description} |" in text
