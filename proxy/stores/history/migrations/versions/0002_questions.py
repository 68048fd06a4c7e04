"""Keep the sentence of a question that asks, and the confidence with which an answer states a flagged claim."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns; what is stored already has neither."""
    op.add_column("contents", sa.Column("asked", sa.Text(), nullable=True))
    op.add_column("findings", sa.Column("original_confidence", sa.Float(53), nullable=True))
