"""Measure verdicts on twenty everyday documents by sentence, against words alone and a word-overlap baseline.

    python -m bench.everyday [--suite SUITE] [--model MODEL] [--json OUT] [--errors]

The documents and sentences of the suites (in suites/) were written by people who saw neither code nor training data,
and nothing was fitted to them. All but everyday_later were seen when weights were chosen (training/EXPERIMENTS.md); it
was measured afterwards. In everyday_balanced, half of the right, of the contradicted and of the unsupported
sentences each are in free words, the others near the document's; everyday_mixed, everyday_open and everyday_later have
both kinds too, and a second person who did not see their labels gave the same ones. MODEL is shipped, a folder or a hub
id. A right sentence that is flagged is a false alarm, a wrong one that is not is a miss.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.report import markdown
from bench.suites.case import read
from groundwire import Policy, Source
from groundwire.backends.loading import load_judge
from groundwire.claims.answer import find_claims
from groundwire.config import JudgeSettings
from groundwire.evaluation.figures import auroc
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.scoring.aggregate import answer_support
from groundwire.text.words import content_stems

EVERYDAY = (
    "everyday",
    "everyday_fresh",
    "everyday_balanced",
    "everyday_mixed",
    "everyday_open",
    "everyday_later",
)
SUITES = (*EVERYDAY, "instructions")
_ALARMS = ("unsupported", "contradicted")


class Outcome(NamedTuple):
    """One sentence: its label and phenomenon, whether it was flagged, its support (0–1), the label given and why."""

    label: str
    phenomenon: str
    flagged: bool
    support: float
    given: str
    text: str
    reason: str


Examine = Callable[[str, Context], tuple[str, float, str]]


def by_judge(judge: Judge) -> Examine:
    """Return a function that gives the label, the support and the reason of a sentence."""

    def examine(text: str, context: Context) -> tuple[str, float, str]:
        claims = find_claims(text, Policy()).claims
        judged = judge([claim for claim in claims if claim.is_judged], context, Policy())
        if not judged:
            return "not_checked", 1.0, ""
        worst = min(judged, key=lambda each: (each.verdict.label not in _ALARMS, each.verdict.score))
        return worst.verdict.label, answer_support(judged) or 0.0, worst.verdict.reason

    return examine


def by_overlap(text: str, context: Context) -> tuple[str, float, str]:
    """Return label and support from the share of a sentence's content words that the document has."""
    stems, known = content_stems(text), frozenset[str]().union(*(each.stems for each in context.passages))
    share = len(stems & known) / len(stems) if stems else 1.0
    return "supported" if share >= 0.5 else "unsupported", share, ""


def measure(examine: Examine, suite: str = "everyday") -> list[Outcome]:
    """Return the outcome of every sentence of a suite."""
    found = []
    for row in read(f"{suite}.jsonl"):
        context = Context([Source("document", "source", row["document"])])
        for each in row["sentences"]:
            label, support, reason = examine(each["text"], context)
            flagged = label in _ALARMS
            found.append(Outcome(each["label"], each["phenomenon"], flagged, support, label, each["text"], reason))
    return found


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the rates of false alarms and misses, accuracy over three labels, and AUROC of support."""
    right = [each for each in outcomes if each.label == "supported"]
    wrong = [each for each in outcomes if each.label != "supported"]
    return {
        "false_alarms": _share([each.flagged for each in right]),
        "misses": _share([not each.flagged for each in wrong]),
        "accuracy": _share([each.given == each.label for each in outcomes]),
        "auroc": round(auroc([(1 - each.support, int(each.label != "supported")) for each in outcomes]) or 0.0, 3),
    }


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / max(1, len(values)), 3)


def phenomena(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the share of errors by label and phenomenon."""
    groups: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for each in outcomes:
        groups[each.label, each.phenomenon].append(each.flagged == (each.label == "supported"))
    return {f"{label}: {name}": [sum(errors), len(errors)] for (label, name), errors in sorted(groups.items())}


def main() -> None:
    """Print the table, and write the figures."""
    parser = argparse.ArgumentParser(description="Measures verdicts on twenty everyday documents.")
    parser.add_argument("--suite", default="everyday", choices=SUITES)
    parser.add_argument("--model", default="shipped")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--errors", action="store_true", help="print every sentence that was judged wrongly")
    given = parser.parse_args()
    judges: dict[str, Examine] = {
        "entailment model": by_judge(load_judge(JudgeSettings(model=given.model))),
        "words alone (judge.by: off)": by_judge(Judge()),
        "word overlap, fifteen lines": by_overlap,
    }
    outcomes = {name: measure(examine, given.suite) for name, examine in judges.items()}
    found = {name: figures(each) for name, each in outcomes.items()}
    head = ("judged by", *next(iter(found.values())))
    print(markdown(head, [(name, *map(str, each.values())) for name, each in found.items()]))
    if given.errors:
        for each in outcomes["entailment model"]:
            if each.flagged == (each.label == "supported"):
                print(f"{each.label:12} {each.phenomenon:18} {each.support:.2f} {each.text}\n    {each.reason}")
    if given.json:
        stored = {"figures": found, "errors": phenomena(outcomes["entailment model"])}
        given.json.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
