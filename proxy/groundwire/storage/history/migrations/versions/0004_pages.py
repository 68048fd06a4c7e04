"""Index exchanges by verdict and risk and findings by verifier, and store tokens and the time of the model server."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_COUNTERS = ("input_tokens", "output_tokens", "tokens_count", "upstream_us_sum", "upstream_count")


def upgrade() -> None:
    """Add indexes and columns; earlier exchanges have no tokens and no time of the model server."""
    op.create_index("ix_exchanges_verdict_seq", "exchanges", ["verdict", "seq"])
    op.create_index("ix_exchanges_risk_seq", "exchanges", ["risk", "seq"])
    op.create_index("ix_findings_verifier_seq", "findings", ["verifier", "seq"])
    for name in ("input_tokens", "output_tokens"):
        op.add_column("exchanges", sa.Column(name, sa.Integer(), nullable=True))
    op.add_column("exchanges", sa.Column("upstream_ms", sa.Float(53), nullable=True))
    for name in _COUNTERS:
        op.add_column("rollups", sa.Column(name, sa.BigInteger(), server_default=sa.text("0"), nullable=False))
