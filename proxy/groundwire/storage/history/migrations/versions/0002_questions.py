"""Store the interrogative sentence of a question, and the confidence that an answer expresses in a flagged claim."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns; stored rows have neither value."""
    op.add_column("contents", sa.Column("asked", sa.Text(), nullable=True))
    op.add_column("findings", sa.Column("original_confidence", sa.Float(53), nullable=True))
