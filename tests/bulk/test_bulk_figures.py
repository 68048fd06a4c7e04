"""The benchmark of batches: its rows, a run, and its arithmetic."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import bulk


def test_rows_are_distinct_and_always_the_same() -> None:
    rows = bulk.rows(40)
    assert rows == bulk.rows(40)
    assert len({row["sources"][0] for row in rows}) == 40
    assert len({row["answer"] for row in rows}) == 40


def test_a_run_verifies_every_row(tmp_path: Path) -> None:
    cpu, seconds = bulk.run(3, 1, "off", "local", tmp_path)
    assert cpu > 0
    assert seconds > 0
    assert len((tmp_path / "3-local-reports.jsonl").read_text(encoding="utf-8").splitlines()) == 3


def test_the_costs_follow_from_the_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "run", lambda count, workers, *_: (count / 20, count / (20 * workers)))
    found = bulk.measure("off", "local", 10, 3, tmp_path)
    assert found["rows_per_cpu_second"] == {"1": pytest.approx(20), "2": pytest.approx(20)}
    assert found["ratio_wall"] == pytest.approx(2)
    assert found["core_hours"] == pytest.approx(10**9 / 20 / 3600)
