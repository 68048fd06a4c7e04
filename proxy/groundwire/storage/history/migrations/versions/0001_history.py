"""Create the tables: exchanges, findings and decisions, roll-ups, the audit log, and the index of words."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TSVECTOR

revision = "0001"
down_revision = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_SCORES = ("score", "confidence", "consistency", "risk", "quality")
_LABELS = ("supported", "contradicted", "unsupported")
_COUNTERS = (
    *("exchanges", "flagged"),
    *("verdict_grounded", "verdict_partially_grounded", "verdict_ungrounded"),
    *("verdict_not_applicable", "verdict_not_checked"),
    *("claims", "checked", *_LABELS, "cache_hits", "cache_misses"),
    *(f"{score}_{what}" for score in _SCORES for what in ("sum", "count")),
    *("us_sum", "ms_5", "ms_10", "ms_25", "ms_50", "ms_100", "ms_250", "ms_500", "ms_1000", "ms_2500", "ms_over"),
)
_DECIDED, _OPEN = sa.text("decision IS NOT NULL"), sa.text("decision IS NULL")

_FTS5 = (
    "CREATE VIRTUAL TABLE words USING fts5(question, answer, keys, content='contents', content_rowid='seq',"
    " tokenize='unicode61 remove_diacritics 0')",
    "CREATE TRIGGER contents_inserted AFTER INSERT ON contents BEGIN"
    " INSERT INTO words (rowid, question, answer, keys) VALUES (new.seq, new.question, new.answer, new.keys); END",
    "CREATE TRIGGER contents_deleted AFTER DELETE ON contents BEGIN"
    " INSERT INTO words (words, rowid, question, answer, keys)"
    " VALUES ('delete', old.seq, old.question, old.answer, old.keys); END",
)


def upgrade() -> None:
    """Create the tables."""
    _exchanges()
    _findings()
    _figures()
    _words()


def _exchanges() -> None:
    op.create_table(
        "exchanges",
        _numbered("seq"),
        *_texts("id"),
        _float("at"),
        *_texts("subject", "session", "intent", nullable=True),
        *_texts("model", "status", "verdict"),
        *(_float(score, nullable=True) for score in _SCORES),
        *_texts("flags"),
        *_integers("claims", "checked", *_LABELS),
        _float("total_ms"),
        *_integers("cache_hits", "cache_misses", "question_chars", "answer_chars"),
        *_texts("question_sha256", "answer_sha256"),
        sa.PrimaryKeyConstraint("seq", name="pk_exchanges"),
        sa.UniqueConstraint("id", name="uq_exchanges_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_exchanges_at_seq", "exchanges", ["at", "seq"])
    for column in ("subject", "session", "model"):
        op.create_index(f"ix_exchanges_{column}_seq", "exchanges", [column, "seq"])
    op.create_table(
        "contents",
        _number("seq"),
        *_texts("question", "answer", nullable=True),
        *_texts("keys"),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        _belongs_to("exchanges.seq", "contents", "seq"),
        sa.PrimaryKeyConstraint("seq", name="pk_contents"),
    )
    op.create_table(
        "exchange_flags",
        *_texts("flag"),
        _number("seq"),
        _belongs_to("exchanges.seq", "exchange_flags", "seq"),
        sa.PrimaryKeyConstraint("flag", "seq", name="pk_exchange_flags"),
    )
    op.create_index("ix_exchange_flags_seq", "exchange_flags", ["seq"])


def _findings() -> None:
    op.create_table(
        "findings",
        _numbered("id"),
        _number("seq"),
        *_texts("place", "model"),
        *_texts("subject", nullable=True),
        *_integers("choice", nullable=True),
        *_texts("claim", "text", nullable=True),
        *_integers("start", "end", nullable=True),
        *_texts("pointer", "label", "verifier", "method", nullable=True),
        _float("score", nullable=True),
        _float("confidence", nullable=True),
        *_texts("reason", "citations", nullable=True),
        *_texts("flags"),
        *_texts("decision", nullable=True),
        sa.Column("version", sa.Integer(), server_default="0", nullable=False),
        *_texts("who", nullable=True),
        _float("decided_at", nullable=True),
        *_texts("note", nullable=True),
        _belongs_to("exchanges.seq", "findings", "seq"),
        sa.PrimaryKeyConstraint("id", name="pk_findings"),
        sa.UniqueConstraint("seq", "place", name="uq_findings_seq_place"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_findings_open", "findings", ["id"], sqlite_where=_OPEN, postgresql_where=_OPEN)
    for column in ("model", "subject"):
        op.create_index(f"ix_findings_{column}_id", "findings", [column, "id"])
    decided = "ix_findings_decided"
    op.create_index(decided, "findings", ["decided_at", "id"], sqlite_where=_DECIDED, postgresql_where=_DECIDED)
    op.create_table(
        "finding_flags",
        *_texts("flag"),
        _number("finding"),
        _belongs_to("findings.id", "finding_flags", "finding"),
        sa.PrimaryKeyConstraint("flag", "finding", name="pk_finding_flags"),
    )
    op.create_index("ix_finding_flags_finding", "finding_flags", ["finding"])
    op.create_table(
        "decisions",
        _number("finding"),
        *_integers("version"),
        *_texts("decision", "who"),
        _float("at"),
        *_texts("note"),
        _belongs_to("findings.id", "decisions", "finding"),
        sa.PrimaryKeyConstraint("finding", "version", name="pk_decisions"),
    )


def _figures() -> None:
    op.create_table(
        "rollups",
        *_texts("grain"),
        sa.Column("day", sa.Date(), nullable=False),
        *_texts("model", "subject", "flag"),
        *(sa.Column(counter, sa.BigInteger(), nullable=False) for counter in _COUNTERS),
        sa.PrimaryKeyConstraint("grain", "day", "model", "subject", "flag", name="pk_rollups"),
    )
    op.create_index("ix_rollups_subject_grain_day", "rollups", ["subject", "grain", "day"])
    op.create_table(
        "audit",
        _numbered("id"),
        _float("at"),
        *_texts("who", "action", "what"),
        *_texts("subject", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    for column in ("at", "subject"):
        op.create_index(f"ix_audit_{column}", "audit", [column])


def _words() -> None:
    if op.get_context().dialect.name == "sqlite":
        for statement in _FTS5:
            op.execute(statement)
        return
    vector = sa.Column("vector", TSVECTOR(), nullable=False)
    content = _belongs_to("contents.seq", "words", "seq")
    op.create_table("words", _number("seq"), vector, content, sa.PrimaryKeyConstraint("seq", name="pk_words"))
    pending = {"gin_pending_list_limit": 256}  # kB; every search reads that list completely
    op.create_index("ix_words_vector", "words", ["vector"], postgresql_using="gin", postgresql_with=pending)
    # With the default of 100 a word without occurrences counts as frequent, and the whole table is read for it.
    op.execute("ALTER TABLE words ALTER COLUMN vector SET STATISTICS 1000")


def _numbered(name: str) -> sa.Column[Any]:
    return sa.Column(name, _NUMBER, autoincrement=True, nullable=False)


def _number(name: str) -> sa.Column[Any]:
    return sa.Column(name, _NUMBER, autoincrement=False, nullable=False)


def _float(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Float(53), nullable=nullable)


def _texts(*names: str, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text(), nullable=nullable) for name in names]


def _integers(*names: str, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Integer(), autoincrement=False, nullable=nullable) for name in names]


def _belongs_to(parent: str, table: str, column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [parent], name=f"fk_{table}_{column}", ondelete="CASCADE")
