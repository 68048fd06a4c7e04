"""Assign exchanges to a tenant: that of the client key, or "" for those shared by all."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column; earlier exchanges belong to all tenants."""
    op.add_column("exchanges", sa.Column("tenant", sa.Text(), server_default=sa.text("''"), nullable=False))
    op.create_index("ix_exchanges_tenant_subject_seq", "exchanges", ["tenant", "subject", "seq"])
