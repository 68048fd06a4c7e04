"""Convert an exchange to rows of the tables, leaving out texts if no content may be stored."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b, sha256
from typing import Any

from groundwire.dialects.jsonbytes import dumps, loads
from groundwire.domain import Choice, Citation, Judgement, Source, restored
from groundwire.report import Contradiction, Report
from groundwire.scoring.aggregate import FLAGS
from groundwire.storage.history.exchange import HISTORY, Content, Entry, PromptMessage, Stored, Summary
from groundwire.storage.history.tables import LABELS

_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")  # PostgreSQL rejects NUL, and every database lone surrogates
_LABEL_FLAGS = {"unsupported": "unsupported_claims", "contradicted": "contradicted_claims"}
_OPERATIONAL = ("verifier_degraded", "answer_truncated", "context_truncated")
"""Flags about the check itself, not about errors in the answer; they need no review."""

_SUMMED = ("quotes_all_rejected", "low_confidence", "high_risk")
"""Flags that summarise others; reviewing the claims covers them."""

_NAMES = ("title", "label", "url")
"""The names that a request gives a source: texts of the request, stored only together with the other texts."""

Row = dict[str, Any]

_NO_CLAIM: Row = dict.fromkeys(
    "choice claim text start end pointer label verifier method score confidence original_confidence "
    "reason citations".split()
)
"""The columns of a finding that only claims have."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one exchange, before the database assigns numbers."""

    exchange: Row
    content: Row
    flags: tuple[str, ...]
    findings: tuple[Row, ...]

    @property
    def id(self) -> str:
        """The id of the report."""
        id_: str = self.exchange["id"]
        return id_


def rows_of(entry: Entry, content: Content) -> Rows:
    """Convert an exchange to rows; with `hashes`, texts are replaced by their lengths and digests."""
    texts = (text for choice in entry.choices for text in (choice.text, *choice.arguments) if text)
    question, answer = _clean(entry.question), _clean("\n\n".join(texts))
    report, keeps = entry.report, content == "full"
    labels: list[str] = [judgement.verdict.label for choice in report.choices for judgement in choice.judgements]
    exchange = {
        "id": report.id,
        "at": entry.at,
        "subject": _clean(entry.subject) if entry.subject else None,
        "session": _clean(entry.session) if entry.session else None,
        "intent": entry.intent,
        "model": _clean(entry.model),
        "status": report.status,
        "verdict": report.verdict,
        "score": report.score,
        "confidence": report.confidence.score if report.confidence else None,
        "consistency": report.consistency.score if report.consistency else None,
        "risk": report.risk.score if report.risk else None,
        "quality": report.quality,
        "flags": ",".join(report.flags),
        "claims": len(labels),
        "checked": len(labels) - labels.count("not_checked"),
        **{label: labels.count(label) for label in LABELS},
        "total_ms": dict(report.timing_ms).get("total", 0.0),
        "cache_hits": report.cache.hits,
        "cache_misses": report.cache.misses,
        "question_chars": len(question),
        "answer_chars": len(answer),
        "question_sha256": _sha256(question),
        "answer_sha256": _sha256(answer),
        "tenant": _clean(entry.tenant),
        "upstream_ms": entry.upstream_ms,
    }
    for name in ("input_tokens", "output_tokens"):  # model servers may report any number, columns hold 32 bits
        tokens = getattr(entry, name)
        exchange[name] = None if tokens is None else min(tokens, 2**31 - 1)
    contents = {
        "question": question if keeps else None,
        "answer": answer if keeps else None,
        "keys": " ".join(keys_of(exchange, report.flags)),
        "packed": _packed(entry, keeps),
        "asked": _clean(entry.asked) if keeps else None,
    }
    whose = {name: exchange[name] for name in ("model", "subject")}
    return Rows(exchange, contents, report.flags, tuple(whose | row for row in _findings(report, keeps)))


def keys_of(exchange: Mapping[str, Any], flags: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of an exchange, from its row and its flags."""
    named = [(name, exchange[name]) for name in ("subject", "session", "model") if exchange[name]]
    return tuple(key(name, value) for name, value in (*named, *(("flag", flag) for flag in flags)))


def key(name: str, value: str) -> str:
    """Return the key of a subject, session, model or flag: a word that is unlikely to occur in texts."""
    return "k" + blake2b(f"{name}={value}".encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


def summary_of(row: Mapping[Any, Any]) -> Summary:
    """Convert a row of exchanges, joined with question and answer, to a list item."""
    fields = {name: row[name] for name in Summary.__slots__ if name != "flags"}
    return Summary(**fields, flags=flags_of(row["flags"]))


def stored_of(row: Mapping[Any, Any]) -> Stored:
    """Convert the same row, including its packed content."""
    unpacked = loads(zlib.decompress(row["packed"]))
    choices = tuple(restored(Choice, each) for each in unpacked["choices"])
    sources = tuple(restored(Source, each) for each in unpacked["sources"])
    prompt = tuple(restored(PromptMessage, each) for each in unpacked.get("prompt", ()))  # earlier versions have none
    return Stored(summary_of(row), unpacked["report"], choices, sources, prompt)


def claim_row(stored: Stored, choice: int, id_: str) -> Row | None:
    """Return the row of a claim without a flag, for a decision on it; None if the exchange has no such claim."""
    found = (each for each in stored.report.get("choices", ()) if each["index"] == choice)
    claims = {claim["id"]: claim for each in found for claim in each.get("claims", ())}
    if (claim := claims.get(id_)) is None:
        return None
    _, start, end = stored.place(choice, claim)
    names = ("text", "pointer", "label", "verifier", "method", "score", "confidence", "reason")
    return {name: claim.get(name) for name in names} | {
        "seq": stored.summary.seq,
        "place": f"{choice}/{id_}",
        "model": stored.summary.model,
        "subject": stored.summary.subject,
        "choice": choice,
        "claim": id_,
        "start": start,
        "end": end,
        "original_confidence": claim.get("stated_confidence"),
        "citations": dumps(claim.get("citations", [])).decode(),
        "flags": "",
    }


def flags_of(joined: str) -> tuple[str, ...]:
    """Return the flags in a column, in their order."""
    return tuple(joined.split(",")) if joined else ()


def without_texts(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report in its wire form without texts of answer or sources: claims keep their length and digest."""
    bare = {
        **report,
        "sources": [_without(each, *_NAMES) for each in report.get("sources", ())],
        "choices": [
            {**choice, "claims": [_claim_without_text(claim) for claim in choice.get("claims", ())]}
            for choice in report.get("choices", ())
        ],
    }
    if consistency := report.get("consistency"):
        found = [_without(each, "statement", "earlier", "reason") for each in consistency["contradictions"]]
        bare["consistency"] = {**consistency, "contradictions": found}
    return bare


def _without(values: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in keys}


def _claim_without_text(claim: Mapping[str, Any]) -> dict[str, Any]:
    citations = [_without(each, "text") for each in claim["citations"]]
    digest = {"chars": len(claim["text"]), "sha256": _sha256(claim["text"])}
    return {**_without(claim, "text", "reason"), **digest, "citations": citations}


def _packed(entry: Entry, keeps: bool) -> bytes:
    report, sources = loads(entry.kept), [_cleaned(source) for source in entry.report.sources]
    if keeps:
        content = {
            "report": report,
            "choices": [_cleaned(choice) for choice in entry.choices],
            "sources": [source | {name: source[name] or None for name in _NAMES} for source in sources],
            "prompt": [_cleaned(message) for message in entry.prompt],
        }
    else:
        removed = {**dict.fromkeys(_NAMES), "text": "", "labels": ()}
        report = without_texts(report)
        content = {"report": report, "choices": [], "sources": [each | removed for each in sources], "prompt": []}
    return zlib.compress(dumps(content), 1)


def _cleaned(value: Citation | Choice | PromptMessage | Source) -> Row:
    """Return the fields of a value with clean texts."""
    row = {each.name: getattr(value, each.name) for each in fields(value)}
    for name, field in row.items():
        if isinstance(field, str):
            row[name] = _clean(field)
        elif isinstance(field, tuple):
            row[name] = tuple(map(_clean, field))
    return row


def _findings(report: Report, keeps: bool) -> Iterator[Row]:
    """Yield a row for each flagged claim, and one for each flag on the answer that no claim raises.

    A flag that only summarises others has a row if it is the only one.
    """
    found = report.consistency.contradictions if report.consistency else ()
    raised: set[str] = set()
    taken: Counter[str] = Counter()
    for choice in report.choices:
        for judgement in choice.judgements:
            claim = judgement.claim
            contradictions = [each for each in found if (each.choice, each.claim) == (choice.index, claim.id)]
            if flags := _claim_flags(judgement, report.flags, is_inconsistent=bool(contradictions)):
                raised.update(flags)
                place = f"{choice.index}/{claim.pointer or ''}#{claim.start}-{claim.end}"
                taken[place] += 1
                number = f"+{taken[place]}" if taken[place] > 1 else ""
                row = _claim_finding(choice.index, judgement, flags, contradictions, keeps)
                yield row | {"place": _clean(place + number)}
    others = [flag for flag in report.flags if flag not in raised and flag not in _OPERATIONAL]
    telling = [flag for flag in others if flag not in _SUMMED]
    for flag in telling if raised or telling else others:
        yield {**_NO_CLAIM, "place": flag, "flags": flag}


def _claim_flags(judgement: Judgement, flags: Sequence[str], *, is_inconsistent: bool) -> tuple[str, ...]:
    """Return the flags of a report that one of its claims raises."""
    raised = {flag for verdict in judgement.verdicts for flag in verdict.flags}
    if judgement.verdict.label in _LABEL_FLAGS:
        raised.add(_LABEL_FLAGS[judgement.verdict.label])
    if judgement.budget and (judgement.budget.budget_gap or 0.0) > 0.0:
        raised.add("budget_gap")
    if is_inconsistent:
        raised.add("inconsistent_with_history")
    return tuple(flag for flag in FLAGS if flag in raised and flag in flags)


def _claim_finding(
    choice: int, judgement: Judgement, flags: Sequence[str], contradictions: Sequence[Contradiction], keeps: bool
) -> Row:
    """Return the row of a flagged claim; its evidence is its citations and the earlier statements that it
    contradicts.
    """
    claim, verdict = judgement.claim, judgement.verdict
    citations = [_cleaned(each) for each in verdict.citations]
    for each in contradictions:
        text = _clean(each.earlier)
        earlier = {"source": each.exchange, "start": 0, "end": len(text), "text": text, "score": 0.0, "match": HISTORY}
        citations.append(earlier)
    is_flagged_itself = any(flag != "inconsistent_with_history" for flag in flags)
    reasons = [verdict.reason] if is_flagged_itself and verdict.reason else []
    reasons += [f"An earlier answer contradicts it: {each.reason}" for each in contradictions]
    return {
        "choice": choice,
        "claim": claim.id,
        "text": _clean(claim.text) if keeps else None,
        "start": claim.start,
        "end": claim.end,
        "pointer": _clean(claim.pointer) if claim.pointer else None,
        "label": verdict.label,
        "verifier": (verdict.verifier or None) if is_flagged_itself else "consistency",
        "method": verdict.method,
        "score": verdict.score,
        "confidence": judgement.confidence,
        "original_confidence": claim.stated_confidence,
        "reason": _clean(" ".join(reasons)) if keeps else None,
        "citations": dumps(citations if keeps else [_without(each, "text") for each in citations]).decode(),
        "flags": ",".join(flags),
    }


def _clean(text: str) -> str:
    """Replace characters that databases reject, keeping the length."""
    return _UNSTORABLE.sub("\ufffd", text)


def _sha256(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
