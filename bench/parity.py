"""Compare the reports of two versions on the same answers, byte by byte.

    python -m bench.parity FILE... --write BEFORE        on the old version, FILEs as for `groundwire eval`
    python -m bench.parity FILE... --against BEFORE      on the new one; exits with 1 if a report differs

BEFORE holds one line per answer: its set, its id and its report in the wire format. `--reasons` compares the texts of
reasons and warnings too. The suites of the project (bench/suites) come along unless `--no-suites` is given; `--limit`
is the number of answers per file. Differing answers are counted by the first change: verdict, flags, labels of
claims, or anything else.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bench.suites.case import read
from groundwire.backends.loading import load_judge
from groundwire.config import JudgeSettings
from groundwire.domain import Choice, Source
from groundwire.evaluation.rows import context_of, read_rows
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.pipeline import Ask, verify
from groundwire.policy import Policy

_WORDS = ("reason", "reasons", "recommendation", "warnings")


def reports(files: list[Path], limit: int, judge: Judge, with_suites: bool) -> Iterator[tuple[str, str, Any]]:
    """Yield the set, the id and the report of every answer."""
    for path in files:
        with path.open(encoding="utf-8") as lines:
            rows, _ = read_rows(islice(lines, limit))
        for row in rows:
            yield path.stem, row.id, _report(row.answer, context_of(row), row.question, judge)
    if with_suites:
        for number, row in enumerate(read("everyday.jsonl")):
            context = Context([Source("document", "source", row["document"])])
            for each in row["sentences"]:
                yield "everyday", f"{number}: {each['text']}", _report(each["text"], context, "", judge)


def _report(answer: str, context: Context, question: str, judge: Judge) -> Any:
    return verify([Choice(0, answer, "stop")], context, Policy(), Ask(question=question), judge).to_dict()


def without_words(value: Any) -> Any:
    """Return a report without its texts for people."""
    if isinstance(value, dict):
        return {name: without_words(each) for name, each in value.items() if name not in _WORDS}
    return [without_words(each) for each in value] if isinstance(value, list) else value


def difference(before: Any, after: Any) -> str:
    """Name the first of verdict, flags and claims that differs, or "other"."""
    for name in ("verdict", "flags"):
        if before.get(name) != after.get(name):
            return name
    return "claims" if _labels(before) != _labels(after) else "other"


def _labels(report: Any) -> list[str]:
    return [claim["label"] for choice in report["choices"] for claim in choice["claims"]]


def main() -> int:
    """Write the reports of this version, or compare them with those of another."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--by", choices=("encoder", "off"), default="encoder", help="the judge")
    parser.add_argument("--no-suites", action="store_true")
    parser.add_argument("--reasons", action="store_true")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--write", type=Path)
    which.add_argument("--against", type=Path)
    options = parser.parse_args()
    judge = load_judge(JudgeSettings(by=options.by))
    found = reports(options.files, options.limit, judge, not options.no_suites)
    if options.write:
        with options.write.open("w", encoding="utf-8") as out:
            out.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in found)
        return 0
    before = {(name, id_): report for name, id_, report in map(json.loads, options.against.open(encoding="utf-8"))}
    plain = (lambda report: report) if options.reasons else without_words
    differing, total = Counter[str](), 0
    for name, id_, report in found:
        total += 1
        old, new = plain(before[name, id_]), plain(json.loads(json.dumps(report)))
        if json.dumps(old) != json.dumps(new):
            what = difference(old, new)
            differing[what] += 1
            print(f"{what}: {name} {id_}", file=sys.stderr)
    print(f"{total} answers, {sum(differing.values())} reports differ", dict(differing) or "")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
