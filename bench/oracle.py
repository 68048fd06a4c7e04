"""Measure the ceiling of the pipeline: every label that it gives with a judge that is always right.

    python -m bench.oracle [--json OUT] [--errors]

The judge is an HTTP service that follows the contract of an external service and knows the labels of all our own
suites (suites/*.jsonl). Each text is an answer that `groundwire.pipeline.verify` verifies. Any remaining error is a
fault of the pipeline: claims cut or set aside wrongly, exact checks that decide wrongly, evidence that never reached
the judge. Advice that no source states may stay unchecked once the judge has read it. Takes about four minutes.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from bench.everyday import SUITES
from bench.report import heading, machine, markdown, write
from bench.suites.__main__ import heldout_cases, number_cases, quotation_cases
from bench.suites.case import read
from groundwire import Source
from groundwire.config import JudgeSettings, Settings
from groundwire.container.models import open_judge
from groundwire.domain import Choice
from groundwire.evidence.index import Context
from groundwire.judge import GRAVITY, Judge
from groundwire.pipeline import verify
from groundwire.verifiers.selection import plain_text

_ANSWERS = {"supported": (0.98, 0.01), "contradicted": (0.01, 0.98), "unsupported": (0.01, 0.01)}
"""The probability and the contradiction that the service returns for a label."""


class Text(NamedTuple):
    """A text with its context and its label, which applies to claims over `spans` of a wrong text ((): to all)."""

    suite: str
    id: str
    kind: str
    context: str
    text: str
    label: str
    spans: tuple[tuple[int, int], ...] = ()


class Outcome(NamedTuple):
    """The result of the pipeline for a text: the gravest label of its claims, its verifier and reason.

    The verifier is empty where none has read the claim.
    """

    text: Text
    label: str
    verifier: str
    reason: str

    @property
    def is_right(self) -> bool:
        return self.label == self.text.label or self._is_advice

    @property
    def _is_advice(self) -> bool:
        """Whether it is an instruction that no source states and that a verifier left unchecked: advice needs none."""
        is_advice = self.text.suite == "instructions" and self.text.label == "unsupported"
        return is_advice and self.label == "not_checked" and self.verifier != ""


def texts() -> Iterator[Text]:
    """Yield every text of the suites with the label that it should get."""
    for suite in SUITES:
        for row in read(f"{suite}.jsonl"):
            for place, each in enumerate(row["sentences"]):
                kind, label = each["phenomenon"], each["label"]
                yield Text(suite, f"{row['id']}-{place}", kind, row["document"], each["text"], label)
    for name in ("paraphrases", "edited", "paraphrases_heldout"):
        for row in read(f"{name}.jsonl"):
            kind = row["meta"]["kind"]
            label = "supported" if not row["label"] else "unsupported" if kind == "invented" else "contradicted"
            spans = tuple((span["start"], span["end"]) for span in row.get("spans", ()))
            yield Text("paraphrases", row["id"], kind, row["context"], row["answer"], label, spans)
    numbers = [*number_cases(read("numbers.jsonl"))]
    numbers += [each for name in ("numbers_heldout", "numbers_fresh") for each in heldout_cases(f"{name}.jsonl")]
    for case in numbers:
        label = "contradicted" if case.wrong else "supported"
        yield Text("numbers", case.id, case.kind, case.context, case.text, label)
    for case in quotation_cases():
        label = "unsupported" if case.wrong else "supported"
        yield Text("quotations", case.id, case.kind, case.context, case.text, label)


class Oracle:
    """Knows the label of every claim of the given texts. Any thread may ask it."""

    def __init__(self, known: Sequence[Text]) -> None:
        self._known: dict[str, list[tuple[str, Text]]] = defaultdict(list)
        for each in known:
            self._known[_plain(each.context)].append((_plain(each.text), each))
        self.unknown: list[str] = []

    def label(self, context: str, claim: str, said_before: str = "") -> str | None:
        """Return the label of a claim about a context; record the claim and return None where no text contains it."""
        wanted, before = _plain(claim), _plain(said_before)
        texts = [(plain, each) for plain, each in self._known.get(_plain(context), ()) if wanted in plain]
        whole = [each for each in texts if each[0] == wanted]
        led = [each for each in texts if before and before in each[0]]
        labels = {self._within(wanted, *each) for each in whole or led or texts}
        if len(labels) != 1:
            self.unknown.append(claim if not labels else f"{claim} ({', '.join(sorted(labels))})")
            return None
        return labels.pop()

    def _within(self, wanted: str, plain: str, text: Text) -> str:
        if text.label == "supported":
            return "supported"
        start = plain.find(wanted)
        wrong = [_plain(text.text[first:last]) for first, last in text.spans]
        if text.spans:
            places = [plain.find(each) for each in wrong]
            hit = any(
                at < start + len(wanted) and start < at + len(each) for at, each in zip(places, wrong, strict=True)
            )
            return text.label if hit else "supported"
        rights = (right for right, each in self._known[_plain(text.context)] if each.label == "supported")
        return "supported" if wanted != plain and any(wanted in right for right in rights) else text.label


def _plain(text: str) -> str:
    return " ".join(plain_text(text).split()).casefold().strip(" .,;:!?")


@contextmanager
def serving(oracle: Oracle) -> Iterator[str]:
    """Yield the address of a service that judges as the oracle does, by the contract of an external service."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            context = "\n\n".join(source["text"] for source in asked["context"])
            found = [
                _estimate(each, oracle.label(context, each["claim"], each.get("said_before", "")))
                for each in asked["claims"]
            ]
            body = json.dumps({"estimates": [each for each in found if each]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/judge"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _estimate(claim: Mapping[str, str], label: str | None) -> dict[str, Any] | None:
    if label is None:
        return None
    probability, contradiction = _ANSWERS[label]
    return {"id": claim["id"], "probability": probability, "contradiction": contradiction}


def measure(known: Sequence[Text], judge: Judge) -> list[Outcome]:
    """Return the pipeline's result for each text with this judge."""
    contexts: dict[str, Context] = {}
    found = []
    for text in known:
        if text.context not in contexts:
            contexts[text.context] = Context([Source("document", "source", text.context)])
        report = verify([Choice(0, text.text, "stop")], contexts[text.context], judge=judge)
        checked = [each for each in report.choices[0].judgements if each.claim.is_judged]
        if not checked:
            found.append(Outcome(text, "not_checked", "", "Every claim was set aside."))
            continue
        worst = max(checked, key=lambda each: GRAVITY[each.verdict.label])
        read_by = [each.verifier for each in (worst.verdict, *worst.verdicts) if each.verifier]
        found.append(Outcome(text, worst.verdict.label, read_by[0] if read_by else "", worst.verdict.reason))
    return found


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the shares of right labels, false alarms and misses, and how many "not mentioned" are contradicted."""
    right = [each for each in outcomes if each.text.label == "supported"]
    wrong = [each for each in outcomes if each.text.label != "supported"]
    silent = [each for each in outcomes if each.text.label == "unsupported"]
    alarms = ("unsupported", "contradicted")
    return {
        "texts": len(outcomes),
        "labels_right": _share([each.is_right for each in outcomes]),
        "faithful_flagged": _share([each.label in alarms for each in right]),
        "wrong_passed": _share([each.label not in alarms and not each.is_right for each in wrong]),
        "not_mentioned": len(silent),
        "not_mentioned_contradicted": sum(each.label == "contradicted" for each in silent),
        "not_checked": sum(each.label == "not_checked" for each in outcomes),
    }


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def run() -> tuple[list[Outcome], list[str]]:
    """Return the outcomes of all texts, and the claims that the oracle found in none of them."""
    known = list(texts())
    oracle = Oracle(known)
    with serving(oracle) as url:
        settings = Settings(judge=JudgeSettings(by="external", url=url))
        with open_judge(settings) as judge:
            return measure(known, judge), oracle.unknown


def main() -> None:
    """Print the table, and write the figures."""
    parser = argparse.ArgumentParser(description="Measures the pipeline with a judge that is always right.")
    parser.add_argument("--json", type=Path, help="write the figures here, and leave bench/results alone")
    parser.add_argument("--errors", action="store_true", help="print every text whose label is wrong")
    given = parser.parse_args()
    outcomes, unknown = run()
    suites = dict.fromkeys(each.text.suite for each in outcomes)
    found = {suite: figures([each for each in outcomes if each.text.suite == suite]) for suite in suites}
    found["all"] = figures(outcomes)
    wrong = [each for each in outcomes if not each.is_right]
    listed = [{**each.text._asdict(), "given": each.label, "by": each.verifier, "why": each.reason} for each in wrong]
    result = {"command": "python -m bench.oracle", "machine": machine(), "figures": found, "wrong": _short(listed)}
    head = ("suite", *next(iter(found.values())))
    rows = [(suite, *(_shown(value) for value in each.values())) for suite, each in found.items()]
    table = "\n".join(
        (
            heading("The ceiling: labels with a judge that is always right", result),
            "The judge is an external service that knows every label. Shares are of the texts of a suite; wrong twins",
            'whose error is an invention, and false quotations, count as "not mentioned". Advice that no source states',
            "may be not_checked.\n",
            markdown(head, rows),
            "\nWhat is still wrong:\n",
            *(f"- {each['suite']}, {each['label']} → {each['given']}: {each['text']!r}" for each in listed),
            *(f"- the judge was asked about no text of ours: {each!r}" for each in unknown),
        )
    )
    print(table)
    if given.errors:
        for each in wrong:
            print(f"{each.text.id} {each.text.kind}: {each.text.label} → {each.label}")
            print(f"  {each.text.text}\n  {each.reason}")
    if given.json:
        given.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        write("oracle", result, table)


def _short(listed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in each.items() if key not in ("context", "spans")} for each in listed]


def _shown(value: float) -> str:
    return f"{value:.2%}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
