"""Events: valid bodies, names that stay the same on a retry, and series as in client-go."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.kube import events
from reveal_contract.kube.events import Event, EventRecorder
from reveal_contract.runtime.token_bucket import KeyedTokenBuckets, TokenBucket
from reveal_contract.time_units import NS_PER_SECOND
from support.property_tests import examples

NOW_NS = 1_700_000_000_123_456_789
MINUTE = 60 * NS_PER_SECOND
SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\Z")
EVENT = Event(
    events.ANOMALY_DETECTED,
    events.node("n1", "node-uid"),
    "CPU is slow",
    "reveal-analyzer",
    "reveal-analyzer-0",
    events.report("default-n1-cpu-1", "report-uid"),
)


def test_the_body_of_an_event() -> None:
    result = events.body(EVENT, NOW_NS)
    assert result == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": events.event_name(EVENT, NOW_NS), "namespace": "default"},
        "eventTime": "2023-11-14T22:13:20.123456Z",
        "type": "Warning",
        "reason": "AnomalyDetected",
        "action": "Detect",
        "note": "CPU is slow",
        "reportingController": "reveal-analyzer",
        "reportingInstance": "reveal-analyzer-0",
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-uid"},
        "related": {
            "apiVersion": "reveal.dev/v1alpha1", "kind": "AnomalyReport",
            "name": "default-n1-cpu-1", "uid": "report-uid",
        },
    }  # fmt: skip


def test_events_on_a_pod_belong_into_its_namespace_and_others_into_default() -> None:
    event = replace(EVENT, regarding=events.pod("team", "train-0", "u"))
    assert events.body(event, NOW_NS)["metadata"]["namespace"] == "team"
    event = replace(EVENT, regarding=events.profile("gpu"))
    assert events.body(event, NOW_NS)["metadata"]["namespace"] == "default"


@given(st.text(max_size=2000), st.text(max_size=300), st.integers(0, 4 * 10**18))
@examples(200)
def test_any_text_makes_a_valid_event(note: str, name: str, time_ns: int) -> None:
    about = events.node("n" + "".join(c for c in name.lower() if c.isascii() and c.isalnum()))
    result = events.body(replace(EVENT, note=note, instance=name, regarding=about), time_ns)
    assert len(result["note"].encode()) <= 1024
    assert len(result["reportingInstance"].encode()) <= 128
    assert SUBDOMAIN.match(result["metadata"]["name"])
    assert len(result["metadata"]["name"]) <= 253


def test_a_long_note_is_marked_as_truncated() -> None:
    note = events.body(replace(EVENT, note="größer " * 500), NOW_NS)["note"]
    assert note.endswith("…")
    assert 1010 < len(note.encode()) <= 1024


@pytest.mark.parametrize("reason", events.REASONS, ids=lambda reason: reason.name)
def test_the_name_is_the_same_on_a_retry_and_differs_by_subject_and_time(
    reason: events.EventReason,
) -> None:
    """The name of an opening Event has no time: a report opens once."""
    event = replace(EVENT, reason=reason)
    name = events.event_name(event, NOW_NS)
    other = replace(event, instance="another pod", note="other words")
    assert events.event_name(other, NOW_NS) == name
    assert events.event_name(replace(other, regarding=events.node("n1")), NOW_NS) == name
    assert events.event_name(replace(event, related=events.report("x")), NOW_NS) != name
    opening = reason in (events.ANOMALY_DETECTED, events.CROSS_NODE_OUTLIER)
    assert (events.event_name(event, NOW_NS + 1) == name) == opening


def test_reasons_are_unique_constants_that_the_api_takes() -> None:
    names = [reason.name for reason in events.REASONS]
    assert len(set(names)) == len(names)
    for reason in events.REASONS:
        assert reason.type in ("Normal", "Warning")
        assert reason.name.isalpha() and len(reason.name) <= 128
        assert reason.action.isalpha() and len(reason.action) <= 128


def test_the_first_is_created_the_second_patched_others_counted() -> None:
    recorder = EventRecorder()
    first = recorder.record(EVENT, NOW_NS)
    assert first is not None and first.patch is None
    second = recorder.record(EVENT, NOW_NS + MINUTE)
    assert second is not None
    assert second.name == first.name
    series = {"count": 2, "lastObservedTime": "2023-11-14T22:14:20.123456Z"}
    assert second.patch == {"series": series}
    assert second.body == {**first.body, "series": series}
    assert recorder.record(EVENT, NOW_NS + 2 * MINUTE) is None
    assert recorder.due(NOW_NS + 3 * MINUTE) == []


def test_a_series_is_written_when_it_ends_and_a_later_event_starts_a_new_series() -> None:
    event = replace(EVENT, reason=events.ANOMALY_ESCALATED)
    recorder = EventRecorder()
    first = recorder.record(event, NOW_NS)
    for minute in (1, 2, 3):
        recorder.record(event, NOW_NS + minute * MINUTE)
    assert recorder.due(NOW_NS + 8 * MINUTE) == []
    (ended,) = recorder.due(NOW_NS + 9 * MINUTE)
    assert ended.patch is not None and ended.patch["series"]["count"] == 4
    assert recorder.due(NOW_NS + 10 * MINUTE) == []
    again = recorder.record(event, NOW_NS + 11 * MINUTE)
    assert again is not None and again.patch is None
    assert first is not None and again.name != first.name


def test_a_single_event_is_written_once() -> None:
    recorder = EventRecorder()
    recorder.record(EVENT, NOW_NS)
    assert recorder.due(NOW_NS + 10 * MINUTE) == []
    assert recorder.rest() == []


def test_a_series_that_goes_on_is_refreshed_each_half_hour() -> None:
    recorder = EventRecorder()
    writes = []
    for minute in range(0, 121, 5):
        writes += [write] if (write := recorder.record(EVENT, NOW_NS + minute * MINUTE)) else []
        writes += recorder.due(NOW_NS + minute * MINUTE)
    counts = [write.patch["series"]["count"] if write.patch else 1 for write in writes]
    assert counts == [1, 2, 8, 14, 20]


def test_unsent_counts_are_written_on_shutdown() -> None:
    recorder = EventRecorder()
    for minute in range(4):
        recorder.record(EVENT, NOW_NS + minute * MINUTE)
    (last,) = recorder.rest()
    assert last.patch is not None and last.patch["series"]["count"] == 4


def test_the_rate_limit_of_a_subject_does_not_affect_others() -> None:
    recorder = EventRecorder()
    sent = 0
    for number in range(100):
        event = replace(EVENT, related=events.report(f"r{number}"))
        sent += recorder.record(event, NOW_NS + number) is not None
    assert (sent, recorder.refused) == (events.BURST, 100 - events.BURST)
    assert recorder.record(replace(EVENT, regarding=events.node("n2")), NOW_NS) is not None
    later = replace(EVENT, related=events.report("later"))
    assert recorder.record(later, NOW_NS + 100 + 5 * MINUTE) is not None
    assert (
        recorder.record(replace(EVENT, related=events.report("more")), NOW_NS + 100 + 5 * MINUTE)
        is None
    )


def test_the_book_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_SERIES", 10)
    recorder = EventRecorder()
    for number in range(40):
        recorder.record(replace(EVENT, regarding=events.node(f"n{number}")), NOW_NS)
    assert (
        recorder.record(replace(EVENT, regarding=events.node("n39")), NOW_NS) is not None
    )  # still known
    again = recorder.record(replace(EVENT, regarding=events.node("n0")), NOW_NS)
    assert again is not None and again.patch is None


def test_a_bucket_fills_with_time_and_keeps_a_reserve() -> None:
    bucket = TokenBucket(3, every_s=2.0)
    assert [bucket.take(NOW_NS, leave=1) for _ in range(3)] == [True, True, False]
    assert bucket.take(NOW_NS)
    assert not bucket.take(NOW_NS + NS_PER_SECOND)
    assert bucket.take(NOW_NS + 2 * NS_PER_SECOND)
    assert not bucket.take(NOW_NS - MINUTE)  # the clock stepped back
    assert [bucket.take(NOW_NS + 100 * MINUTE) for _ in range(4)] == [True, True, True, False]


def test_buckets_of_unused_keys_are_removed() -> None:
    buckets = KeyedTokenBuckets(1, every_s=1e9, most=2)
    assert buckets.take("a", NOW_NS) and not buckets.take("a", NOW_NS)
    assert buckets.take("b", NOW_NS) and buckets.take("c", NOW_NS)
    assert buckets.take("a", NOW_NS)
