"""Reports are stored in process, up to a limit in bytes."""

from hypothesis import given
from hypothesis import strategies as st

from groundwire.storage.memory import Reports


def test_a_report_is_found_under_its_id() -> None:
    reports = Reports(100)
    reports.put("a", b"{}")
    assert reports.get("a") == b"{}"
    assert reports.get("b") is None


def test_a_later_report_takes_the_place_of_a_pending_one() -> None:
    reports = Reports(100)
    reports.put("a", b'{"status":"pending"}')
    reports.put("a", b'{"status":"complete"}')
    assert reports.get("a") == b'{"status":"complete"}'


def test_the_oldest_go_first() -> None:
    reports = Reports(10)
    for id_ in "abc":
        reports.put(id_, b"12345")
    assert [reports.get(id_) for id_ in "abc"] == [None, b"12345", b"12345"]


def test_a_report_larger_than_the_limit_is_not_stored_and_evicts_nothing() -> None:
    reports = Reports(10)
    reports.put("a", b"12345")
    reports.put("b", b"12345678901")
    assert (reports.get("a"), reports.get("b")) == (b"12345", None)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.binary(max_size=40)), max_size=40))
def test_there_are_never_more_bytes_than_allowed(puts: list[tuple[str, bytes]]) -> None:
    reports = Reports(60)
    for id_, report in puts:
        reports.put(id_, report)
        assert reports.get(id_) == report
        assert sum(len(reports.get(each) or b"") for each in "abcdef") <= 60


def test_a_pending_report_is_dropped_if_the_final_one_is_too_large() -> None:
    """Otherwise the report would be pending for ever."""
    reports = Reports(10)
    reports.put("a", b"pending")
    reports.put("a", b"a report that is too large")
    assert reports.get("a") is None


def test_a_report_is_there_for_its_tenant_alone() -> None:
    reports = Reports(1000)
    reports.put("a", b"alices", "alice")
    reports.put("b", b"everybodys")
    assert [reports.get("a", tenant) for tenant in ("alice", "bob", "")] == [b"alices", None, None]
    assert [reports.get("b", tenant) for tenant in ("alice", "")] == [None, b"everybodys"]
    reports.resize(900)
    assert (reports.get("a", "alice"), reports.get("a", "bob")) == (b"alices", None)
    reports.drop("a")
    assert reports.get("a", "alice") is None
