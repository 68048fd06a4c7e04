"""The entry point of Alembic. It is only run from `database.py`, which provides the connection."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
