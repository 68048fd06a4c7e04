"""Decisions from the review queue become labelled answers, and weights can be fitted on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from groundwire.evaluation.calibrate import calibrate
from groundwire.evaluation.reviewed import write_reviewed
from groundwire.evaluation.rows import SAMPLE, Row, read_rows
from groundwire.storage.history.reviews import Finding, Wanted
from tests.servers.review_site import ANSWER, SOURCE, Site, exchange, visit

WRONG = "Profit rose to $900K."


async def decide(site: Site, finding: Finding) -> None:
    """Decide as a person who knows that only the rise of profits is wrong."""
    await site.history.reviews.decide(finding.id, 0, "confirmed" if finding.text == WRONG else "rejected", "ann")


def reviewed(folder: Path) -> list[Row]:
    out = folder / "reviewed.jsonl"
    count = write_reviewed(f"sqlite:///{folder}/history.db", "unused", out)
    rows, problems = read_rows(out.read_text().splitlines())
    assert problems == []
    assert len(rows) == count
    return rows


def test_answers_reviewed_as_a_whole_are_labelled_and_the_others_left_out(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        for finding in (await site.history.reviews.page(Wanted(), limit=200)).items:
            if finding.exchange != "gw-half" or finding.text == WRONG:
                await decide(site, finding)

    fine = exchange("gw-fine", answer="Revenue was $4.2M in 2023. Nobody lives on the moon of Titan.")
    visit(tmp_path, work, exchange("gw-wrong"), fine, exchange("gw-half"), exchange("gw-supported", answer=SOURCE))
    wrong, right = sorted(reviewed(tmp_path), key=lambda row: row.id, reverse=True)
    assert (wrong.id, wrong.label, wrong.context) == ("gw-wrong/0", 1, (SOURCE,))
    start = ANSWER.index(WRONG)
    assert wrong.spans == ((start, start + len(WRONG)),)
    assert (right.id, right.label, right.spans) == ("gw-fine/0", 0, ())


def test_missed_errors_and_answers_found_right_as_a_whole_are_learned_from(tmp_path: Path) -> None:
    right = "Revenue was $4.2M in 2023. The board met in Oslo."

    async def work(site: Site) -> None:
        reviews = site.history.reviews
        for id_, claims, decision in (
            ("gw-missed", ("c2",), "rejected"),
            ("gw-right", ("c1", "c2"), "confirmed"),
            ("gw-half", ("c1",), "confirmed"),
        ):
            stored = await site.history.exchanges.get(id_)
            assert stored is not None
            for claim in claims:
                assert await reviews.decide_on_claim(stored, 0, claim, 0, decision, "ann")

    visit(tmp_path, work, *(exchange(id_, answer=right) for id_ in ("gw-missed", "gw-right", "gw-half")))
    found = {row.id: (row.label, row.spans) for row in reviewed(tmp_path)}
    start = right.index("The board")
    assert found == {"gw-missed/0": (1, ((start, len(right)),)), "gw-right/0": (0, ())}


def test_without_stored_content_there_is_nothing_to_learn_from(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        for finding in (await site.history.reviews.page(Wanted(), limit=200)).items:
            await decide(site, finding)

    visit(tmp_path, work, exchange(), content="hashes")
    assert reviewed(tmp_path) == []


@pytest.mark.timeout(180)
def test_weights_are_fitted_on_reviewed_answers_and_on_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work(site: Site) -> None:
        for finding in (await site.history.reviews.page(Wanted(), limit=200)).items:
            await decide(site, finding)

    visit(tmp_path, work, exchange("gw-1"), exchange("gw-2", source=f"{SOURCE} That was all."))
    assert len(reviewed(tmp_path)) == 2
    data = tmp_path / "data"
    data.mkdir()
    rows = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    many = [{**row, "id": f"{row['id']}-{copy}"} for copy in range(-(-150 // len(rows))) for row in rows]
    (data / "sample.jsonl").write_text("\n".join(map(json.dumps, many)), encoding="utf-8")
    calibrate(data, None, tmp_path / "weights.json", [tmp_path / "reviewed.jsonl"])
    assert '"reviewed"' in capsys.readouterr().out
    assert json.loads((tmp_path / "weights.json").read_text())["weights"]


@pytest.mark.parametrize(
    ("arguments", "environ", "said"),
    [
        (["--from-reviews"], {}, "store.url: it must be set"),
        ([], {}, "--data or --from-reviews is needed"),
        (["--from-reviews"], {"GROUNDWIRE_STORE__URL": "sqlite:///{folder}/history.db"}, "1 reviewed answers"),
    ],
    ids=["no store", "nothing to fit on", "too few"],
)
def test_the_command_reports_missing_input(
    tmp_path: Path, arguments: list[str], environ: dict[str, str], said: str
) -> None:
    async def work(site: Site) -> None:
        for finding in (await site.history.reviews.page(Wanted(), limit=200)).items:
            await decide(site, finding)

    visit(tmp_path, work, exchange())
    given = {name: value.format(folder=tmp_path) for name, value in environ.items()}
    code = "from groundwire.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "calibrate", *arguments],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert said in done.stderr
