"""Every setting, where it comes from and what it may be: argument > ``GRAPHRUN_*`` variable > file > default.

It answers for reading and checking settings and for hiding the secrets in them. It opens no connection, makes no
directory, and loads neither Celery nor SQLAlchemy. What a setting is for is said once, in its ``description``;
``config/graphrun.toml`` and ``docs/operations.md`` are compared with it by tests.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from graphrun.errors import SettingsError

__all__ = ["CONFIG_VARIABLE", "Settings", "find_file", "masked"]

PREFIX = "GRAPHRUN_"
CONFIG_VARIABLE = "GRAPHRUN_CONFIG"
USUAL_FILES = ("graphrun.toml", "config/graphrun.toml")
DAY_SECONDS = 24 * 3600

_REDIS_SCHEMES = ("redis", "rediss", "redis+socket", "socket", "sentinel")
_BROKER_SCHEMES = (*_REDIS_SCHEMES, "amqp", "amqps", "pyamqp")
_DATABASES = ("sqlite", "postgresql")
_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.\-]*)://")
_USER_PASSWORD = re.compile(r"(://[^:/@;]*):[^;]*@")
_MEMORY = re.compile(r"^[^:]+:///?(?:$|\?)|:memory:|mode=memory")
_SECRET_PARAMETER = re.compile(r"([?&][^=&;]*(?:password|secret|token|key)[^=&;]*)=[^&;]*", re.IGNORECASE)

_QueueName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Settings(BaseSettings):
    """What a process of graphrun is told from outside; frozen.

    ``Settings()`` reads arguments, environment and defaults; :meth:`load` reads a file too. An optional setting is
    unset by an empty string.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid", validate_default=False)

    broker_url: str = Field("redis://127.0.0.1:6379/0", description="where Celery messages go: Redis or RabbitMQ")
    result_url: str | None = Field(
        None, description="Redis that counts chords; unset: the broker if that is Redis, else redis://127.0.0.1:6379/1"
    )
    database_url: str = Field(
        "sqlite:///.graphrun/graphrun.db", description="the ledger: sqlite:///FILE or postgresql+psycopg://…"
    )
    payload_url: str | None = Field(
        None, description="where large outputs go, any fsspec URL; unset: into the ledger's database"
    )
    tenant_id: str = Field("default", min_length=1, max_length=100, description="whose runs these are")
    queue: _QueueName = Field("graphrun", description="queue of nodes whose task names none")
    control_queue: _QueueName = Field("graphrun.control", description="queue of the gates")
    inline_limit_bytes: int = Field(65_536, ge=0, description="an output up to this size stands in its node's row")
    payload_limit_bytes: int = Field(
        256 * 1024 * 1024, ge=1, description="a larger output fails its node; nothing is ever cut"
    )
    error_limit_characters: int = Field(8_192, ge=100, description="messages and tracebacks are cut to this")
    sweep_interval_seconds: _Seconds = Field(5.0, description="pause between two passes of the sweeper")
    sweep_grace_seconds: float = Field(
        10.0, ge=0, allow_inf_nan=False, description="how long something stands still before it counts as lost"
    )
    claim_wait_seconds: float = Field(
        30.0, ge=0, allow_inf_nan=False, description="how long a message waits for its row to be committed"
    )
    hard_limit_grace_seconds: _Seconds = Field(
        5.0, description="from a node's soft time limit, which it can catch, to the hard one"
    )
    serve_gates: bool = Field(True, description="whether this worker serves the gates, whatever its -Q")
    allow_commands: bool = Field(False, description="whether this worker runs the verify commands of graphs")
    worker_concurrency: int = Field(2, ge=1, description="processes of one worker")
    result_chord_expires_seconds: int = Field(
        30 * DAY_SECONDS, ge=60, description="must be longer than the longest wave, or its gate is lost"
    )
    poll_seconds: _Seconds = Field(0.25, description="longest pause between two looks at a run that is waited for")

    @property
    def effective_result_url(self) -> str:
        """The result backend in use: ``result_url``, else the broker when it is Redis, else the local Redis."""
        if self.result_url is not None:
            return self.result_url
        return self.broker_url if _scheme(self.broker_url) in _REDIS_SCHEMES else "redis://127.0.0.1:6379/1"

    @classmethod
    def load(cls, path: str | Path | None = None, **overrides: Any) -> Self:
        """Return the settings of argument, environment, file and default, in this order of precedence.

        Args:
            path: the file; when None the one that ``find_file`` finds, if any.
            overrides: settings by name; None means not given.

        Raises:
            SettingsError: a file that is not there or is no TOML, an unknown name, a value that is refused; every
                fault is named with the place it came from.
        """
        file = find_file(path)
        arguments = {name: value for name, value in overrides.items() if value is not None}
        sources: list[tuple[str, Mapping[str, Any]]] = [("argument", arguments)]
        sources.append(("environment", EnvSettingsSource(cls)()))
        if file is not None:
            sources.append((str(file), _read(file)))
        _refuse_unknown(cls.model_fields, sources)
        values = {name: value for _, source in reversed(sources) for name, value in source.items()}
        try:
            return cls(**values)
        except ValidationError as error:
            raise SettingsError("; ".join(_faults(error, sources))) from None

    def safe(self) -> dict[str, Any]:
        """Return every setting with the secrets in its URLs replaced by ``***``."""
        return {name: masked(value) if isinstance(value, str) else value for name, value in self.model_dump().items()}

    def environment(self) -> dict[str, str]:
        """Return the ``GRAPHRUN_*`` variables that give another process exactly these settings."""
        given = self.model_dump()
        return {PREFIX + name.upper(): "" if value is None else str(value) for name, value in given.items()}

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return self.safe().items()

    @field_validator("result_url", "payload_url", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: Any) -> Any:
        return None if value == "" else value

    @field_validator("broker_url")
    @classmethod
    def _broker_is_known(cls, value: str) -> str:
        if all(_scheme(one) not in _BROKER_SCHEMES for one in value.split(";")):
            raise ValueError("not a broker such as redis://127.0.0.1:6379/0 or amqp://user:password@host:5672/vhost")
        return value

    @field_validator("database_url")
    @classmethod
    def _database_is_known_and_shared(cls, value: str) -> str:
        scheme = _scheme(value)
        if scheme is None or scheme.partition("+")[0] not in _DATABASES:
            raise ValueError("not a database such as sqlite:///file.db or postgresql+psycopg://user:password@host/name")
        if scheme.startswith("sqlite") and _MEMORY.search(value):
            raise ValueError("a database in memory is seen by one process alone: give a file, sqlite:///file.db")
        return value

    @field_validator("payload_url")
    @classmethod
    def _is_a_url(cls, value: str | None) -> str | None:
        if value is not None and _scheme(value) is None:
            raise ValueError("not a URL such as file:///var/lib/graphrun or s3://bucket/outputs")
        return value

    @field_validator("queue", "control_queue")
    @classmethod
    def _is_one_name(cls, value: str) -> str:
        if "," in value or value.split() != [value]:
            raise ValueError("a queue's name has neither spaces nor commas")
        return value

    @field_validator("result_url")
    @classmethod
    def _results_are_in_redis(cls, value: str | None) -> str | None:
        if value is not None and _scheme(value) not in _REDIS_SCHEMES:
            raise ValueError("chords are counted in Redis: give a redis:// URL")
        return value

    @model_validator(mode="after")
    def _limits_agree(self) -> Self:
        if self.inline_limit_bytes > self.payload_limit_bytes:
            raise ValueError("inline_limit_bytes is over payload_limit_bytes")
        return self


def find_file(path: str | Path | None = None) -> Path | None:
    """Return the settings file in use: the argument, ``GRAPHRUN_CONFIG``, or the first usual one that exists.

    Raises:
        SettingsError: the one that was named is not there.
    """
    named = path or os.environ.get(CONFIG_VARIABLE)
    if not named:
        return next((Path(name) for name in USUAL_FILES if Path(name).is_file()), None)
    if not Path(named).is_file():
        origin = "" if path else f", named by {CONFIG_VARIABLE}"
        raise SettingsError(f"no such settings file: {named}{origin}")
    return Path(named)


def masked(url: str) -> str:
    """Return a text with the passwords of the URLs in it replaced by ``***``."""
    return _SECRET_PARAMETER.sub(r"\1=***", _USER_PASSWORD.sub(r"\1:***@", url))


def _scheme(url: str) -> str | None:
    found = _SCHEME.match(url)
    return found.group(1).lower() if found else None


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{file} cannot be read as TOML: {error}") from error


def _refuse_unknown(known: Iterable[str], sources: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    names = sorted(known)
    faults = []
    for place, source in sources:
        for name in sorted(set(source) - set(names)):
            near = difflib.get_close_matches(name, names, n=1)
            faults.append(f"{place}: unknown setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    if faults:
        raise SettingsError("; ".join(faults))


def _faults(error: ValidationError, sources: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterable[str]:
    places = list(sources)
    for fault in error.errors(include_url=False):
        text = fault["msg"].removeprefix("Value error, ")
        if not fault["loc"]:
            yield text
            continue
        name = str(fault["loc"][0])
        place = next((place for place, source in places if name in source), "default")
        shown = f"{PREFIX}{name.upper()}" if place == "environment" else f"{place}: {name}"
        given = masked(fault["input"]) if isinstance(fault["input"], str) else fault["input"]
        yield f"{shown} = {given!r}: {text[:1].lower() + text[1:]}"
