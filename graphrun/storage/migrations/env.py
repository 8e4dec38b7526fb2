"""What Alembic runs for a migration: on the connection that ``migrate`` opened, inside its transaction."""

from __future__ import annotations

from alembic import context

from graphrun.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite has DDL in transactions too, once the driver's own BEGIN is off (``database``).
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
