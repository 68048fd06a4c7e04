"""Where Alembic begins. It is only ever run from `database.py`, which brings the connection."""

from alembic import context

with context.begin_transaction():
    context.run_migrations()
