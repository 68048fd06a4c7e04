"""Exchanges belong to a tenant: the client key that they came with, or "" for those that are everybody's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Adds the column; what was stored before is everybody's."""
    op.add_column("exchanges", sa.Column("tenant", sa.Text(), server_default=sa.text("''"), nullable=False))
    op.create_index("ix_exchanges_tenant_subject_seq", "exchanges", ["tenant", "subject", "seq"])
