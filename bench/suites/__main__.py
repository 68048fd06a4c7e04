"""Run the suites of paraphrases, perturbed numbers and edited quotations through the verifier.

    python -m bench.suites [--data DIR] [--only WORD] [--json OUT]

DIR is a folder with tatqa_gold.jsonl; its gold answers join the suite of numbers. Takes about a minute without it.
WORD chooses the suites whose names hold it, such as "Numbers". No rule may be fitted to the suite that is held out.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report import heading, machine, markdown, write
from bench.suites import numbers, quotations, reports
from bench.suites.case import Case, Rate, Result, alarms, precision, read
from groundwire import check_numbers, check_quotes, verify_claims

SEED = 20
TWIN = "-edited"
_STATED, _COMPUTED = 150, 120
_PAIRS, _HELD_OUT = ("paraphrases.jsonl", "edited.jsonl"), ("paraphrases_heldout.jsonl",)
_ALARMS = ("unsupported", "contradicted")


def paraphrase_cases(files: Sequence[str] = _PAIRS) -> Iterator[Case]:
    """Yield every faithful paraphrase, and every twin with one error."""
    for name in files:
        for row in read(name):
            meta = row["meta"]
            yield Case(
                row["id"], meta["kind"], bool(row["label"]), row["answer"], row["context"], meta["level"], meta["asks"]
            )


def number_cases(rows: Iterable[Mapping[str, Any]]) -> Iterator[Case]:
    """Yield the cases made from claims with numbers; the changes to a claim depend on nothing but the claim."""
    for row in rows:
        yield from numbers.cases_of(row, random.Random(f"{SEED} {row['id']}"))


def heldout_cases(name: str) -> Iterator[Case]:
    """Yield claims with numbers as they were written before any verdict on them was seen, right and wrong."""
    for row in read(name):
        yield Case(row["id"], row["kind"], row["wrong"], row["claim"], row["context"])


def quotation_cases() -> Iterator[Case]:
    """Yield every edit of every quotation, and every typography."""
    for number, row in enumerate(read("quotations.jsonl")):
        yield from quotations.cases_of(row, number)


def numbers_alone(case: Case) -> bool:
    """Return whether the check of numbers flags the text."""
    return bool(check_numbers(case.text, case.context).flagged)


def quotes_alone(case: Case) -> bool:
    """Return whether the check of quotations rejects one. A quotation that it does not see is not rejected."""
    return check_quotes(case.text, case.context).counts.rejected > 0


def examine(cases: Iterable[Case], alone: Callable[[Case], bool] | None = None) -> list[Result]:
    """Return the results of the whole report, and of one check alone, by case."""
    return [_examined(case, alone) for case in cases]


def _examined(case: Case, alone: Callable[[Case], bool] | None) -> Result:
    judgements = verify_claims(case.text, case.context).choices[0].judgements
    flagged = [each.verdict for each in judgements if each.verdict.label in _ALARMS]
    return Result(
        case,
        flagged=bool(flagged),
        flagged_alone=alone(case) if alone else None,
        checked=any(each.verdict.label != "not_checked" for each in judgements),
        why=f"{flagged[0].verifier}: {flagged[0].reason}" if flagged else "",
    )


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Return recall, precision and false alarms of a suite, in numbers, for the report and for the check alone."""
    found: dict[str, Any] = {}
    for name, alone in (("report", False), ("check alone", True)):
        if alone and results[0].flagged_alone is None:
            continue
        caught, false = alarms(results, wrong=True, alone=alone), alarms(results, wrong=False, alone=alone)
        found[name] = {
            "recall": _figure(caught),
            "false_alarms": _figure(false),
            "precision": _figure(precision(results, alone=alone)),
            "balanced_accuracy": ((caught.value or 0) + 1 - (false.value or 0)) / 2,
        }
    return found


def _figure(rate: Rate) -> dict[str, Any]:
    return {"value": rate.value, "interval": list(rate.interval), "hits": rate.hits, "of": rate.of}


def grouped(results: Iterable[Result], key: Callable[[Result], str]) -> dict[str, list[Result]]:
    """Group the results by key, in the order in which the keys first come."""
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        groups[key(result)].append(result)
    return dict(groups)


def run(data: Path | None, only: str = "") -> dict[str, list[Result]]:
    """Run all suites whose names hold `only`; return results by name."""
    own = read("numbers.jsonl")
    suites = {
        "Paraphrases": (paraphrase_cases(), None),
        "Paraphrases, held out": (paraphrase_cases(_HELD_OUT), None),
        "Numbers, our own sentences": (number_cases(own), numbers_alone),
        "Numbers, held out": (heldout_cases("numbers_heldout.jsonl"), numbers_alone),
        "Numbers, held out later": (heldout_cases("numbers_fresh.jsonl"), numbers_alone),
        "Quotations": (quotation_cases(), quotes_alone),
    }
    from_reports = reports.rows_in(data, stated=_STATED, computed=_COMPUTED, seed=SEED) if data else []
    if from_reports:
        suites["Numbers, annual reports"] = (number_cases(from_reports), numbers_alone)
    results = {}
    for name, (cases, alone) in suites.items():
        if only not in name:
            continue
        results[name] = examine(cases, alone)
        print(f"{name}: {len(results[name])} texts", file=sys.stderr, flush=True)
    return results


def as_table(result: Mapping[str, Any], suites: Mapping[str, Sequence[Result]]) -> str:
    """Return the figures as Markdown."""
    parts = [
        heading("Paraphrases, numbers and quotations", result),
        "A text is flagged when any of its claims is found unsupported or contradicted. 95 % intervals (Wilson).",
        "Recall is the share of wrong texts that are flagged, false alarms the share of right ones.\n",
    ]
    for name, results in suites.items():
        parts += [
            f"## {name}\n",
            _overall(results),
            "",
            _blame(results),
            "",
            _by(results, lambda found: found.case.kind, "kind"),
            "",
        ]
        if name.startswith("Paraphrases"):
            parts += [_by(results, lambda found: found.case.asks, "what it takes to see it"), ""]
            parts += [_by(results, lambda found: found.case.level, "level"), "", _pairs(results), ""]
    return "\n".join(parts).rstrip()


def _overall(results: Sequence[Result]) -> str:
    rows = []
    for name, alone in (("whole report", False), ("this check alone", True)):
        if alone and results[0].flagged_alone is None:
            continue
        caught, false = alarms(results, wrong=True, alone=alone), alarms(results, wrong=False, alone=alone)
        balanced = ((caught.value or 0) + 1 - (false.value or 0)) / 2
        rows.append((name, caught, false, precision(results, alone=alone), f"{balanced:.1%}"))
    return markdown(("judged by", "recall", "false alarms", "precision", "balanced accuracy"), rows)


def _blame(results: Sequence[Result]) -> str:
    """Return the verifiers that raised the false alarms."""
    false = Counter(found.why.partition(":")[0] for found in results if found.flagged and not found.case.wrong)
    told = ", ".join(f"{name} {count}" for name, count in false.most_common()) or "none"
    return f"False alarms by the verifier that raised them: {told}."


def _pairs(results: Sequence[Result]) -> str:
    """Return how many twins are distinguished from their paraphrase: one passes, the other is flagged."""
    flagged = {found.case.id: found.flagged for found in results}
    twins = [name for name in flagged if name.endswith(TWIN)]
    apart = sum(flagged[name] and not flagged[name.removesuffix(TWIN)] for name in twins)
    return f"Pairs told apart (the paraphrase passes, its wrong twin is flagged): {Rate(apart, len(twins))}."


def _by(results: Sequence[Result], key: Callable[[Result], str], title: str) -> str:
    rows = [
        (name, alarms(group, wrong=True), alarms(group, wrong=False)) for name, group in grouped(results, key).items()
    ]
    return markdown((title, "wrong texts flagged", "right texts flagged"), rows)


def _errors(results: Sequence[Result]) -> list[dict[str, Any]]:
    return [
        {"id": found.case.id, "kind": found.case.kind, "wrong": found.case.wrong, "text": found.case.text}
        | {"checked": found.checked, "why": found.why}
        for found in results
        if found.flagged is not found.case.wrong
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with tatqa_gold.jsonl")
    parser.add_argument("--only", default="", help="run the suites whose names hold this word, and write no results")
    parser.add_argument("--json", type=Path, help="write figures and errors here, and leave bench/results alone")
    given = parser.parse_args()
    suites = run(given.data, given.only)
    command = "python -m bench.suites" + (" --data DIR" if given.data else "")
    result = {
        "command": command,
        "machine": machine(),
        "suites": {
            name: summary(results)
            | {"kinds": {k: summary(g) for k, g in grouped(results, lambda r: r.case.kind).items()}}
            for name, results in suites.items()
        },
    }
    table = as_table(result, suites)
    print(table)
    if given.json:
        errors = {name: _errors(results) for name, results in suites.items()}
        given.json.write_text(json.dumps(result | {"errors": errors}, indent=1))
    elif not given.only:
        write("suites", result, table)


if __name__ == "__main__":
    main()
