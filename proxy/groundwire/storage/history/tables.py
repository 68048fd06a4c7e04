"""The tables of the history in SQLAlchemy. Migrations create them; a test keeps both consistent.

Times are Unix seconds, days are in UTC. `seq` numbers exchanges in the order in which they were stored.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Date,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR

SCORES = ("score", "confidence", "consistency", "risk", "quality")
LATENCIES_MS = (5, 10, 25, 50, 100, 250, 500, 1000, 2500)
"""Upper bounds of the latency histogram; one more step counts all above."""

VERDICTS = ("grounded", "partially_grounded", "ungrounded", "not_applicable", "not_checked")
LABELS = ("supported", "contradicted", "unsupported")
LATER_COUNTERS = ("input_tokens", "output_tokens", "tokens_count", "upstream_us_sum", "upstream_count")
"""Counters that earlier versions did not have; they count from then on."""

COUNTERS = (
    "exchanges",
    "flagged",
    *(f"verdict_{verdict}" for verdict in VERDICTS),
    "claims",
    "checked",
    *LABELS,
    "cache_hits",
    "cache_misses",
    *(f"{score}_{what}" for score in SCORES for what in ("sum", "count")),
    "us_sum",
    *(f"ms_{ms}" for ms in LATENCIES_MS),
    "ms_over",
    *LATER_COUNTERS,
)
"""The counters of roll-ups, all integers: scores are summed in ten-thousandths, latencies in microseconds."""

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_NUMBER = BigInteger().with_variant(Integer, "sqlite")  # only an INTEGER is SQLite's row number


def _of_exchange(*, is_key: bool = False, index: bool = False) -> Column[int]:
    exchange = ForeignKey("exchanges.seq", ondelete="CASCADE")
    return Column("seq", _NUMBER, exchange, primary_key=is_key, autoincrement=False, nullable=False, index=index)


EXCHANGES = Table(
    "exchanges",
    METADATA,
    Column("seq", _NUMBER, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("at", Float(53), nullable=False),
    Column("subject", Text),
    Column("session", Text),
    Column("intent", Text),
    Column("model", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    *(Column(score, Float(53)) for score in SCORES),
    Column("flags", Text, nullable=False),
    *(Column(name, Integer, nullable=False) for name in ("claims", "checked", *LABELS)),
    Column("total_ms", Float(53), nullable=False),
    *(Column(name, Integer, nullable=False) for name in ("cache_hits", "cache_misses")),
    *(Column(f"{what}_chars", Integer, nullable=False) for what in ("question", "answer")),
    *(Column(f"{what}_sha256", Text, nullable=False) for what in ("question", "answer")),
    Column("tenant", Text, nullable=False, server_default=text("''")),
    *(Column(name, Integer) for name in ("input_tokens", "output_tokens")),
    Column("upstream_ms", Float(53)),
    Index("ix_exchanges_at_seq", "at", "seq"),
    Index("ix_exchanges_subject_seq", "subject", "seq"),
    Index("ix_exchanges_session_seq", "session", "seq"),
    Index("ix_exchanges_tenant_subject_seq", "tenant", "subject", "seq"),
    Index("ix_exchanges_model_seq", "model", "seq"),
    Index("ix_exchanges_verdict_seq", "verdict", "seq"),
    Index("ix_exchanges_risk_seq", "risk", "seq"),
    sqlite_autoincrement=True,
)

CONTENTS = Table(
    "contents",
    METADATA,
    _of_exchange(is_key=True),
    Column("question", Text),
    Column("answer", Text),
    Column("keys", Text, nullable=False),
    Column("packed", LargeBinary, nullable=False),
    Column("asked", Text),
)
"""`asked` is the interrogative sentence of the question; `keys` are words for finding exchanges (see `exchanges`).

`packed` holds report, choices, sources and prompt: JSON compressed with zlib.
"""

WORDS = Table("words", MetaData(), Column("seq", _NUMBER), Column("vector", TSVECTOR))
"""The full-text index: this table on PostgreSQL, on SQLite an FTS5 table of the same name updated by triggers."""

EXCHANGE_FLAGS = Table(
    "exchange_flags",
    METADATA,
    Column("flag", Text, primary_key=True),
    _of_exchange(is_key=True, index=True),
)

FINDINGS = Table(
    "findings",
    METADATA,
    Column("id", _NUMBER, primary_key=True, autoincrement=True),
    _of_exchange(),
    Column("place", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("subject", Text),
    Column("choice", Integer),
    Column("claim", Text),
    Column("text", Text),
    Column("start", Integer),
    Column("end", Integer),
    Column("pointer", Text),
    Column("label", Text),
    Column("verifier", Text),
    Column("method", Text),
    Column("score", Float(53)),
    Column("confidence", Float(53)),
    Column("reason", Text),
    Column("citations", Text),
    Column("flags", Text, nullable=False),
    Column("decision", Text),
    Column("version", Integer, nullable=False, server_default="0"),
    Column("who", Text),
    Column("decided_at", Float(53)),
    Column("note", Text),
    Column("original_confidence", Float(53)),
    UniqueConstraint("seq", "place"),
    Index("ix_findings_model_id", "model", "id"),
    Index("ix_findings_subject_id", "subject", "id"),
    Index("ix_findings_verifier_seq", "verifier", "seq"),
    Index("ix_findings_open", "id", sqlite_where=text("decision IS NULL"), postgresql_where=text("decision IS NULL")),
    Index(
        "ix_findings_decided",
        "decided_at",
        "id",
        sqlite_where=text("decision IS NOT NULL"),
        postgresql_where=text("decision IS NOT NULL"),
    ),
    sqlite_autoincrement=True,
)
"""Subjects of review with the last decision: flagged claims, flags on whole answers, and other claims decided on."""

FINDING_FLAGS = Table(
    "finding_flags",
    METADATA,
    Column("flag", Text, primary_key=True),
    Column("finding", _NUMBER, ForeignKey("findings.id", ondelete="CASCADE"), primary_key=True, index=True),
)

DECISIONS = Table(
    "decisions",
    METADATA,
    Column("finding", _NUMBER, ForeignKey("findings.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("decision", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("at", Float(53), nullable=False),
    Column("note", Text, nullable=False),
)
"""All decisions; `findings` repeats the last one."""

ROLLUPS = Table(
    "rollups",
    METADATA,
    Column("grain", Text, primary_key=True),
    Column("day", Date, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("flag", Text, primary_key=True),
    *(
        Column(name, BigInteger, nullable=False, server_default=text("0") if name in LATER_COUNTERS else None)
        for name in COUNTERS
    ),
    Index("ix_rollups_subject_grain_day", "subject", "grain", "day"),
)

AUDIT = Table(
    "audit",
    METADATA,
    Column("id", _NUMBER, primary_key=True, autoincrement=True),
    Column("at", Float(53), nullable=False, index=True),
    Column("who", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("subject", Text, index=True),
    sqlite_autoincrement=True,
)


def answered_between(since: float | None, until: float | None) -> list[ColumnElement[bool]]:
    """Return the condition that an exchange was answered at or after `since` and before `until` (Unix seconds)."""
    first = [] if since is None else [EXCHANGES.c.at >= since]
    return first if until is None else [*first, EXCHANGES.c.at < until]
