"""``graphrun sweep``: one pass of the sweeper, for cron jobs and for a person who does not want to wait."""
# ruff: noqa: PLC0415 - a command imports what it needs when it runs, so that `graphrun --help` stays quick

from __future__ import annotations

from dataclasses import asdict

from graphrun.cli.options import AsJson, DatabaseUrl


def sweep(*, database: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Repair once what was lost between database and broker; every worker does the same all the time."""
    from graphrun.cli.console import show, show_json
    from graphrun.cli.session import open_client

    with open_client(database) as client:
        client.ledger  # noqa: B018 - refuses a database of another version before anything is sent
        swept = client.engine.sweeper().sweep()
    if as_json:
        show_json(asdict(swept))
    else:
        show(", ".join(f"{count} {name}" for name, count in asdict(swept).items()))
