"""Alembic's revisions of the schema, inside the package so that an installed wheel can upgrade a database."""
