"""Measure the contribution of each family of rules: `groundwire eval` on the same answers without it.

    python -m bench.ablation FILES... [--limit 100] [--only WORD] [--words-only]

Each family is switched off by itself, once where words alone decide and once with the shipped model. A verdict has
changed when an answer is flagged with the family and not without it, or the other way about. The same is measured on
the texts of bench/suites. Balanced accuracy and AUROC are means over the files, before and after, on the same answers.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any
from unittest.mock import patch

from bench.overlap import sentence_rows
from bench.report import FOLDER, heading, machine, markdown
from bench.suites import __main__ as suites
from bench.suites.case import plain_claims, read
from groundwire.backends.loading import load_judge
from groundwire.evaluation.figures import balanced_accuracy, risk_auroc
from groundwire.evaluation.rows import Outcome, Row, context_of, draw, examine, read_rows
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.policy import Policy
from groundwire.verifiers import signals, vetoes
from groundwire.verifiers.entailment import Entailment, Question
from groundwire.verifiers.numbers import (
    arithmetic,
    attribution,
    candidates,
    derivation,
    durations,
    numeric,
    worded_arithmetic,
)

_SUITE = "suite: "


@dataclass(frozen=True, slots=True)
class Family:
    """Rules that are switched off together: replacements by place, and the code that could go with them."""

    name: str
    off: tuple[tuple[ModuleType, str, object], ...]
    code: tuple[Any, ...]

    @property
    def lines(self) -> int:
        """Count the lines of its modules and functions."""
        return sum(len(inspect.getsource(each).splitlines()) for each in self.code)


def _none(*_: object, **__: object) -> None:
    return None


def _empty(*_: object, **__: object) -> tuple[()]:
    return ()


def _false(*_: object) -> bool:
    return False


def _first(value: object, *_: object) -> object:
    return value


def _second(_: object, value: object) -> object:
    return value


def _veto(name: str, *code: FunctionType) -> Family:
    return Family(f"veto: {name}", ((vetoes, f"_{name}", _empty),), (getattr(vetoes, f"_{name}"), *code))


def _attribution(name: str, *code: FunctionType) -> Family:
    off = ((attribution, f"_{name}", _none),)
    return Family(f"attribution: {name.replace('_', ' ')}", off, (getattr(attribution, f"_{name}"), *code))


def _operation(name: str) -> Family:
    rest = {other: each for other, each in arithmetic._OPERATIONS.items() if other != name}
    return Family(f"derivations: {name}", ((arithmetic, "_OPERATIONS", rest),), (arithmetic._OPERATIONS[name],))


def _worded(operation: Any) -> Family:
    rest = tuple(each for each in worded_arithmetic._OPERATIONS if each is not operation)
    name = f"derivations: worded: {operation.__name__.strip('_').replace('_', ' ')}"
    return Family(name, ((worded_arithmetic, "_OPERATIONS", rest),), (operation,))


FAMILIES = (
    Family("vetoes, all", ((signals, "_find_veto", _none),), (vetoes, signals._find_veto)),
    _veto("negation"),
    _veto("direction"),
    _veto("quantifier", vetoes._quantified),
    _veto("name", vetoes._unknown_names, vetoes._is_unknown_name, vetoes._replaces),
    _veto("role", vetoes._actions, vetoes._name_around),
    Family("attribution, all", ((numeric, "find_objection", _none),), (attribution,)),
    _attribution("opposite"),
    _attribution("for_other_period"),
    _attribution("is_main"),
    _attribution("fits_words_better", attribution._is_in_closer_sentence, attribution._is_labelled),
    Family(
        "derivations, all",
        ((numeric, "derive_number", _none), (numeric, "apply_limit", _none)),
        (derivation, arithmetic, worded_arithmetic, durations),
    ),
    Family(
        "derivations: change, sum, share",
        ((derivation, "_derive_value", _none),),
        (derivation._derive_value, arithmetic),
    ),
    *(_operation(name) for name in arithmetic._OPERATIONS),
    Family(
        "derivations: worded",
        ((derivation, "_derive_from_wording", _none),),
        (worded_arithmetic, derivation._derive_from_wording),
    ),
    *(_worded(operation) for operation in worded_arithmetic._OPERATIONS),
    Family("derivations: lapses", ((derivation, "_derive_duration", _none),), (durations, derivation._derive_duration)),
    Family(
        "derivations: limits",
        tuple((module, "apply_limit", _none) for module in (numeric, derivation)),
        (durations.explain_limit, derivation.apply_limit),
    ),
    Family("money of a source", ((candidates, "in_money", _first),), (candidates.in_money, candidates._currencies_of)),
    Family("one as a count", ((candidates, "_with_ones", _second),), (candidates._with_ones,)),
    Family("rates of amounts", ((candidates, "_lower_for_rates", _first),), (candidates._lower_for_rates,)),
    Family("asides", ((numeric, "_is_incidental", _false),), (numeric._is_incidental,)),
    Family(
        "frequencies",
        ((numeric, "compare_frequencies", _empty), (numeric, "find_frequencies", _empty)),
        (durations.compare_frequencies, durations.find_frequencies),
    ),
)


class _Remembered:
    """A model that is asked each question once."""

    def __init__(self, judge: Judge) -> None:
        self._model = judge.model
        self._known: dict[Question, Entailment] = {}
        self.state = judge.model.state

    def entail(self, questions: Sequence[Question]) -> list[Entailment]:
        new = [each for each in dict.fromkeys(questions) if each not in self._known]
        if new:
            self._known.update(zip(new, self._model.entail(new), strict=True))
        return [self._known[each] for each in questions]


@contextmanager
def without(family: Family) -> Iterator[None]:
    """Switch a family off."""
    with ExitStack() as stack:
        for module, name, other in family.off:
            stack.enter_context(patch.object(module, name, other))
        yield


@cache
def _context_of(row: Row) -> Context:
    """Return the context of a row, read once for all runs: no family that is switched off has a part in reading it."""
    return context_of(row)


def examined(rows: Sequence[Row], judge: Judge) -> list[Outcome]:
    """Run the code of `groundwire eval` over rows with this judge."""
    with (
        patch("groundwire.evaluation.rows.load_judge", lambda _settings: judge),
        patch("groundwire.evaluation.rows.context_of", _context_of),
    ):
        return [examine(row, Policy()) for row in rows]


def suite_rows() -> dict[str, list[Row]]:
    """Return the texts of the suites that use no third-party data, by suite."""
    cases = {
        "paraphrases": [*suites.paraphrase_cases(), *suites.paraphrase_cases(suites._HELD_OUT)],
        "numbers": list(suites.number_cases(read("numbers.jsonl"))),
        "numbers, held out": [
            each for name in ("numbers_heldout", "numbers_fresh") for each in suites.heldout_cases(f"{name}.jsonl")
        ],
        "quotations": list(suites.quotation_cases()),
    }
    found = {
        _SUITE + name: [Row(each.id, (each.context,), each.text, int(each.wrong)) for each in given]
        for name, given in cases.items()
    }
    plain = [Row(text, (context,), text, int("supported" not in labels)) for labels, context, text in plain_claims()]
    return found | {_SUITE + "everyday": sentence_rows("everyday"), _SUITE + "plain claims": plain}


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a family on some sets: answers flagged differently, all answers, and means before and after."""

    changed: int
    of: int
    accuracy: tuple[float, float]
    auroc: tuple[float, float]


def effect(before: Mapping[str, list[Outcome]], after: Mapping[str, list[Outcome]], names: Sequence[str]) -> Effect:
    """Compare two runs over the same rows of the named sets."""
    pairs = [pair for name in names for pair in zip(before[name], after[name], strict=True)]
    changed = sum(old.flagged != new.flagged for old, new in pairs)
    means = [
        tuple(sum(figure(run[name]) or 0.0 for name in names) / len(names) for run in (before, after))
        for figure in (balanced_accuracy, risk_auroc)
    ]
    return Effect(changed, len(pairs), means[0], means[1])  # type: ignore[arg-type]


def table(sets: Mapping[str, Sequence[Row]], judge: Judge, families: Sequence[Family]) -> str:
    """Measure each family with one judge, and return the figures as a Markdown table."""
    public = [name for name in sets if not name.startswith(_SUITE)]
    own = [name for name in sets if name.startswith(_SUITE)]
    before = {name: examined(rows, judge) for name, rows in sets.items()}
    gc.collect()
    gc.freeze()
    lines = []
    for family in families:
        with without(family):
            after = {name: examined(rows, judge) for name, rows in sets.items()}
        cells: list[object] = [family.name, family.lines]
        for names in filter(None, (public, own)):
            cells += _cells(effect(before, after, names))
        cells.append(_moved(before, after))
        lines.append(cells)
        print(*cells, sep="\t", file=sys.stderr, flush=True)
    columns = ["without", "lines"]
    for name in [name for name, given in (("answers", public), ("suite texts", own)) if given]:
        columns += [f"{name} flagged otherwise", "balanced accuracy", "AUROC"]
    return markdown([*columns, "sets that move by more than .01 (balanced accuracy, AUROC)"], lines)


def _cells(found: Effect) -> Iterator[str]:
    yield f"{found.changed} of {found.of} ({found.changed / found.of:.1%})"
    for old, new in (found.accuracy, found.auroc):
        yield f"{old:.3f} → {new:.3f}"


def _moved(before: Mapping[str, list[Outcome]], after: Mapping[str, list[Outcome]]) -> str:
    shifts = {
        name: [
            (figure(after[name]) or 0.0) - (figure(before[name]) or 0.0) for figure in (balanced_accuracy, risk_auroc)
        ]
        for name in before
    }
    told = [
        f"{name.removesuffix('_report')} {accuracy:+.3f} {auroc:+.3f}"
        for name, (accuracy, auroc) in shifts.items()
        if max(abs(accuracy), abs(auroc)) > 0.01
    ]
    return "; ".join(told) or "none"


def main() -> None:
    """Measure, and write bench/results/ablation.md unless `--only` chooses families."""
    parser = argparse.ArgumentParser(description="Measures what each family of rules contributes.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--limit", type=int, default=100, help="answers of each file, and texts of each suite")
    parser.add_argument("--only", default="", help="families whose names hold this word")
    parser.add_argument("--words-only", action="store_true", help="leave the model out")
    given = parser.parse_args()
    sets = {path.stem: _rows(path, given.limit) for path in given.files}
    sets |= {name: draw(rows, given.limit) for name, rows in suite_rows().items()}
    families = [family for family in FAMILIES if given.only in family.name]
    command = f"python -m bench.ablation FILES --limit {given.limit}"
    parts = [heading("What each family of rules contributes", {"machine": machine(), "command": command})]
    parts.append(f"Files: {', '.join(path.stem for path in given.files)}.\n")
    judges = [("Words alone", Judge())]
    if not given.words_only:
        shipped = load_judge()
        judges.append(("With the shipped model", replace(shipped, model=_Remembered(shipped))))
    for name, judge in judges:
        parts += [f"## {name}\n", table(sets, judge, families), ""]
    result = "\n".join(parts)
    print(result)
    if not given.only:
        (FOLDER / "ablation.md").write_text(result, encoding="utf-8")


def _rows(path: Path, limit: int) -> list[Row]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        return draw(read_rows(lines)[0], limit)


if __name__ == "__main__":
    main()
