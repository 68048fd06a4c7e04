"""Export decisions from the review queue as labelled answers, for `calibrate --from-reviews`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groundwire.storage.history.database import Database
from groundwire.storage.history.exchange import Stored
from groundwire.storage.history.exchanges import Exchanges
from groundwire.storage.history.reviews import Finding, Reviews, Wanted


def write_reviewed(url: str, schema: str, out: Path) -> int:
    """Write every completely reviewed answer to a JSONL file in the format of `rows`, and return their number.

    Raises StoreUnavailable when the database cannot be read.
    """
    return asyncio.run(_write(Database(url, schema), out))


async def _write(database: Database, out: Path) -> int:
    exchanges, reviews = Exchanges(database), Reviews(database)
    seen: set[str] = set()
    count = 0
    try:
        with out.open("w", encoding="utf-8", errors="replace") as file:
            async for finding in reviews.export(Wanted("decided")):
                if finding.exchange in seen:
                    continue
                seen.add(finding.exchange)
                if (stored := await exchanges.get(finding.exchange)) is not None:
                    for row in _rows_of(stored, await reviews.of_exchange(finding.exchange)):
                        file.write(json.dumps(row) + "\n")
                        count += 1
    finally:
        await database.close()
    return count


def _rows_of(stored: Stored, findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return the choices of an exchange whose flagged claims are all decided on: labelled 1 if a claim is wrong.

    Wrong claims are marked, flagged and missed ones; everything else in such an answer counts as supported. An answer
    without flagged claims counts as supported only if all of its claims were found right. Choices with claims in
    arguments of tool calls are left out, since these are not part of the answer, and so are those without stored text.
    """
    rows = []
    claims = {each["index"]: len(each.get("claims", ())) for each in stored.report.get("choices", ())}
    for choice in stored.choices:
        of_choice = [finding for finding in findings if finding.claim is not None and finding.choice == choice.index]
        in_answer = all(not (finding.pointer or "").startswith("/tool_calls/") for finding in of_choice)
        if not (of_choice and in_answer and choice.text and all(finding.decided for finding in of_choice)):
            continue
        wrong = [each for each in of_choice if each.is_wrong]
        was_flagged = any(each.flags for each in of_choice)
        if not (wrong or was_flagged or len(of_choice) == claims.get(choice.index)):
            continue
        rows.append(
            {
                "id": f"{stored.summary.id}/{choice.index}",
                "context": [source.text for source in stored.sources],
                "answer": choice.text,
                "question": stored.summary.asked or stored.summary.question or "",
                "label": int(bool(wrong)),
                "spans": [{"start": each.start, "end": each.end} for each in wrong],
            }
        )
    return rows
