"""Which reports are deleted by age and by number, and how reports are counted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.kube.names import ANALYZER_MANAGER
from reveal_operator.metrics import OperatorMetrics
from reveal_operator.report_records import ReportCounts, ReportIndex, ReportRecord, report_of
from reveal_operator.retention import Retention, RetentionLimits, expendable
from support.fake_operator_api import FakeOperatorApi

NOW = 1_000_000.0


def report(name: str, resolved_ago: float | None = None, profile: str = "p") -> ReportRecord:
    since = 0.0 if resolved_ago is None else NOW - resolved_ago
    return ReportRecord(name, f"uid-{name}", "1", profile, resolved_ago is None, since)


def names(reports: list[ReportRecord], limits: RetentionLimits) -> list[str]:
    return [each.name for each in expendable(reports, limits, NOW)]


def test_resolved_reports_are_deleted_after_their_retention() -> None:
    reports = [report("open"), report("old", 101), report("just", 100), report("young", 99)]
    assert names(reports, RetentionLimits(100, 1000)) == ["old", "just"]


def test_over_the_cap_the_oldest_resolved_reports_are_deleted() -> None:
    reports = [report("a", 10), report("b", 30), report("c", 20), report("open"), report("d", 5)]
    assert names(reports, RetentionLimits(100, 3)) == ["b", "c"]


def test_open_reports_are_never_deleted() -> None:
    reports = [report(f"open-{n}") for n in range(5)] + [report("done", 1)]
    assert names(reports, RetentionLimits(100, 2)) == ["done"]


def test_a_cap_of_zero_keeps_open_reports() -> None:
    assert names([report("open"), report("done", 1)], RetentionLimits(10**9, 0)) == ["done"]


many = st.lists(
    st.tuples(st.none() | st.integers(0, 200), st.text("abc", min_size=1, max_size=6)),
    max_size=60,
    unique_by=lambda entry: entry[1],
)


@given(many, st.integers(0, 250), st.integers(0, 70))
def test_deleted_reports_are_resolved_and_older_than_kept_reports(
    drawn: list[tuple[int | None, str]], ttl: int, most: int
) -> None:
    reports = [report(name, ago) for ago, name in drawn]
    going = expendable(reports, RetentionLimits(ttl, most), NOW)
    staying = [each for each in reports if each not in going]
    assert not any(each.is_open for each in going)
    assert len(staying) <= most or all(each.is_open for each in staying)
    for each in staying:
        assert each.is_open or each.resolved + ttl > NOW
    resolved = [each.resolved for each in staying if not each.is_open]
    assert max((each.resolved for each in going), default=0) <= min(resolved, default=NOW)


def body(name: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "5",
            "creationTimestamp": "1970-01-01T00:00:10Z",
        },
        "spec": {"profileRef": {"name": "p"}},
        "status": status,
    }


@pytest.mark.parametrize(
    ("status", "is_open", "resolved"),
    [
        ({}, True, 0.0),
        ({"state": "Open", "lastSeenTime": "1970-01-01T00:01:00Z"}, True, 0.0),
        ({"state": "Resolved", "resolvedTime": "1970-01-01T00:01:00.250Z"}, False, 60.25),
        ({"state": "Resolved", "lastSeenTime": "1970-01-01T00:02:00Z"}, False, 120.0),
        ({"state": "Resolved"}, False, 10.0),
        ({"state": "Resolved", "resolvedTime": "soon"}, False, 10.0),
    ],
)
def test_the_summary_of_a_report(status: dict[str, Any], is_open: bool, resolved: float) -> None:
    assert report_of(body("r", **status)) == ReportRecord("r", "uid-r", "5", "p", is_open, resolved)


def written(manager: str, moment: str, subresource: str = "status") -> dict[str, str]:
    return {"manager": manager, "subresource": subresource, "operation": "Apply", "time": moment}


@pytest.mark.parametrize("clock", ["1969-12-01T00:00:00Z", "1971-01-01T00:00:00Z"])
def test_the_age_of_a_report_is_by_the_api_server_whatever_the_clock_of_its_node(
    clock: str,
) -> None:
    found = body("r", state="Resolved", resolvedTime=clock, lastSeenTime=clock)
    found["metadata"]["managedFields"] = [
        written("kubectl", "1970-01-01T00:09:00Z"),
        written(ANALYZER_MANAGER, "1970-01-01T00:00:20Z", subresource=""),
        written(ANALYZER_MANAGER, "1970-01-01T00:05:00Z"),
    ]
    assert report_of(found).resolved == 300.0


@pytest.mark.parametrize(("now_s", "kept"), [(1099.0, 1), (1100.0, 0)])
def test_a_sweep_takes_the_time_from_the_api_server(now_s: float, kept: int) -> None:
    api = FakeOperatorApi()
    api.now_s = now_s
    reports = ReportIndex(lambda profile: None)
    reports.put(ReportRecord("r", "uid", "1", "p", False, 1000.0))
    limits = {"p": RetentionLimits(100, 1000)}
    sweep = Retention(api, reports, lambda: limits, OperatorMetrics())
    asyncio.run(sweep.sweep())
    assert len([verb for verb, _, _ in api.requests if verb == "delete"]) == 1 - kept


def test_reports_are_counted_by_profile_and_changes_are_signaled() -> None:
    changes: list[str] = []
    reports = ReportIndex(changes.append)
    reports.put(report("early"))
    assert reports.counts("p") is None  # there may be more
    reports.replace([report("a"), report("b", 5), report("c", profile="q")])
    assert reports.counts("p") == ReportCounts(2, 1)
    assert reports.counts("q") == ReportCounts(1, 1)
    assert reports.counts("nobody") == ReportCounts(0, 0)
    assert reports.total == ReportCounts(3, 2)
    changes.clear()
    reports.put(report("a", 1))
    assert (reports.counts("p"), changes) == (ReportCounts(2, 0), ["p"])
    reports.drop(report("a"))
    reports.drop(report("a"))
    assert (reports.counts("p"), changes) == (ReportCounts(1, 0), ["p", "p"])
    changes.clear()
    reports.replace([report("c", profile="q")])
    assert sorted(changes) == ["p", "q"]
    assert reports.counts("p") == ReportCounts(0, 0)
