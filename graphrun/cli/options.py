"""The arguments and options that several commands share, each said once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

import typer


class FailurePolicyName(StrEnum):
    """What a failed node does to the rest of the run (X5)."""

    PROCEED = "proceed"
    SKIP_DEPENDENTS = "skip_dependents"
    FAIL_FAST = "fail_fast"

    @property
    def policy(self) -> Literal["proceed", "skip_dependents", "fail_fast"]:
        """The name as graphs know it."""
        return self.value


FILE_HELP = "module:graph_or_function, file.py[:name], .json, .yaml or another graph file."

File: TypeAlias = Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP, show_default=False)]
RunId: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, or its first characters.", show_default=False)
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
DatabaseUrl: TypeAlias = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help="SQLAlchemy URL of the ledger.", show_default="from settings"),
]
Tasks: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--tasks", metavar="MODULE", help="Module or .py file with tasks; may be repeated.", show_default=False
    ),
]
Policy: TypeAlias = Annotated[
    FailurePolicyName | None,
    typer.Option(
        "--failure-policy",
        metavar="POLICY",
        help="proceed, skip_dependents or fail_fast.",
        show_default="from the graph",
    ),
]
IdempotencyKey: TypeAlias = Annotated[
    str | None,
    typer.Option("--idempotency-key", metavar="KEY", help="A second submit under it is the same run."),
]
Port: TypeAlias = Annotated[int, typer.Option("--port", metavar="N", min=1, max=65535, help="Flower's port.")]


class LogLevelName(StrEnum):
    """How much a worker logs."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


LogLevel: TypeAlias = Annotated[
    LogLevelName,
    typer.Option("--loglevel", case_sensitive=False, metavar="LEVEL", help="debug, info, warning, error or critical."),
]
