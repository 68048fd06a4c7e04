"""The entry point of Alembic. It is only run from `database.py`, which provides the connection."""

from alembic import context

with context.begin_transaction():
    context.run_migrations()
