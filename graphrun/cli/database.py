"""``graphrun db upgrade`` and ``graphrun db current``: the schema of the ledger."""
# ruff: noqa: PLC0415 - a command imports what it needs when it runs, so that `graphrun --help` stays quick

from __future__ import annotations

import typer

from graphrun.cli.options import AsJson, DatabaseUrl

app = typer.Typer(help="The database of the ledger: make or renew its tables.", no_args_is_help=True)


@app.command("upgrade")
def upgrade(*, database: DatabaseUrl = None) -> None:
    """Make the tables, or bring them up to this version of graphrun."""
    from graphrun.cli.console import show
    from graphrun.cli.session import open_database
    from graphrun.storage import migrate

    opened = open_database(database)
    before = None if opened.is_new_file() else migrate.current(opened)
    migrate.upgrade(opened)
    after = migrate.current(opened)
    show(f"schema {after}: nothing to do" if before == after else f"schema {before or 'none'} -> {after}")


@app.command("current")
def current(*, database: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Print the schema's version, and the one that this graphrun needs."""
    from graphrun.cli.console import show, show_json
    from graphrun.cli.session import open_database
    from graphrun.storage import migrate

    opened = open_database(database)
    stands = None if opened.is_new_file() else migrate.current(opened)  # looking makes no file
    needed = migrate.head()
    if as_json:
        show_json({"current": stands, "head": needed, "is_current": stands == needed})
        return
    remedy = "" if stands == needed else f"; this graphrun needs {needed}: graphrun db upgrade"
    if not migrate.is_known(stands):
        remedy = f"; this graphrun needs {needed} and does not know that one: it is newer, or another program's"
    show(f"schema {stands or 'none'}{remedy}")
