"""Events: what the API takes, names that are the same at a retry, series as client-go has them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.kube import events
from reveal_contract.kube.events import Event, EventBook
from reveal_contract.runtime.token_bucket import Buckets, TokenBucket
from reveal_contract.time_units import NS_PER_SECOND
from support.property_tests import examples

AT = 1_700_000_000_123_456_789
MINUTE = 60 * NS_PER_SECOND
SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\Z")
SAID = Event(
    events.ANOMALY_DETECTED,
    events.node("n1", "node-uid"),
    "CPU is slow",
    "reveal-analyzer",
    "reveal-analyzer-0",
    events.report("default-n1-cpu-1", "report-uid"),
)


def test_the_body_of_an_event() -> None:
    made = events.body(SAID, AT)
    assert made == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": events.event_name(SAID, AT), "namespace": "default"},
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
    told = replace(SAID, regarding=events.pod("team", "train-0", "u"))
    assert events.body(told, AT)["metadata"]["namespace"] == "team"
    told = replace(SAID, regarding=events.profile("gpu"))
    assert events.body(told, AT)["metadata"]["namespace"] == "default"


@given(st.text(max_size=2000), st.text(max_size=300), st.integers(0, 4 * 10**18))
@examples(200)
def test_any_words_make_an_event_that_the_api_takes(note: str, name: str, at: int) -> None:
    about = events.node("n" + "".join(c for c in name.lower() if c.isascii() and c.isalnum()))
    made = events.body(replace(SAID, note=note, instance=name, regarding=about), at)
    assert len(made["note"].encode()) <= 1024
    assert len(made["reportingInstance"].encode()) <= 128
    assert SUBDOMAIN.match(made["metadata"]["name"])
    assert len(made["metadata"]["name"]) <= 253


def test_a_long_note_says_that_it_was_cut() -> None:
    note = events.body(replace(SAID, note="größer " * 500), AT)["note"]
    assert note.endswith("…")
    assert 1010 < len(note.encode()) <= 1024


@pytest.mark.parametrize("reason", events.REASONS, ids=lambda reason: reason.name)
def test_the_name_is_the_same_at_a_retry_by_another_and_differs_by_subject_and_time(
    reason: events.Reason,
) -> None:
    """Time does not tell the openings of one report apart: it opens once."""
    said = replace(SAID, reason=reason)
    name = events.event_name(said, AT)
    other = replace(said, instance="another pod", note="other words")
    assert events.event_name(other, AT) == name
    assert events.event_name(replace(other, regarding=events.node("n1")), AT) == name
    assert events.event_name(replace(said, related=events.report("x")), AT) != name
    opening = reason in (events.ANOMALY_DETECTED, events.CROSS_NODE_OUTLIER)
    assert (events.event_name(said, AT + 1) == name) == opening


def test_reasons_are_unique_constants_that_the_api_takes() -> None:
    names = [reason.name for reason in events.REASONS]
    assert len(set(names)) == len(names)
    for reason in events.REASONS:
        assert reason.type in ("Normal", "Warning")
        assert reason.name.isalpha() and len(reason.name) <= 128
        assert reason.action.isalpha() and len(reason.action) <= 128


def test_the_first_is_created_the_second_patched_others_counted() -> None:
    book = EventBook()
    first = book.note(SAID, AT)
    assert first is not None and first.patch is None
    second = book.note(SAID, AT + MINUTE)
    assert second is not None
    assert second.name == first.name
    series = {"count": 2, "lastObservedTime": "2023-11-14T22:14:20.123456Z"}
    assert second.patch == {"series": series}
    assert second.body == {**first.body, "series": series}
    assert book.note(SAID, AT + 2 * MINUTE) is None
    assert book.due(AT + 3 * MINUTE) == []


def test_a_series_is_written_at_its_end_and_the_next_time_begins_anew() -> None:
    said = replace(SAID, reason=events.ANOMALY_ESCALATED)
    book = EventBook()
    first = book.note(said, AT)
    for minute in (1, 2, 3):
        book.note(said, AT + minute * MINUTE)
    assert book.due(AT + 8 * MINUTE) == []
    (ended,) = book.due(AT + 9 * MINUTE)
    assert ended.patch is not None and ended.patch["series"]["count"] == 4
    assert book.due(AT + 10 * MINUTE) == []
    anew = book.note(said, AT + 11 * MINUTE)
    assert anew is not None and anew.patch is None
    assert first is not None and anew.name != first.name


def test_one_event_alone_is_written_once() -> None:
    book = EventBook()
    book.note(SAID, AT)
    assert book.due(AT + 10 * MINUTE) == []
    assert book.rest() == []


def test_a_series_that_goes_on_is_refreshed_each_half_hour() -> None:
    book = EventBook()
    writes = []
    for minute in range(0, 121, 5):
        writes += [one] if (one := book.note(SAID, AT + minute * MINUTE)) else []
        writes += book.due(AT + minute * MINUTE)
    counts = [one.patch["series"]["count"] if one.patch else 1 for one in writes]
    assert counts == [1, 2, 8, 14, 20]


def test_what_the_server_has_not_heard_is_told_at_the_end() -> None:
    book = EventBook()
    for minute in range(4):
        book.note(SAID, AT + minute * MINUTE)
    (last,) = book.rest()
    assert last.patch is not None and last.patch["series"]["count"] == 4


def test_one_subject_cannot_flood_and_others_are_not_touched() -> None:
    book = EventBook()
    sent = 0
    for number in range(100):
        told = replace(SAID, related=events.report(f"r{number}"))
        sent += book.note(told, AT + number) is not None
    assert (sent, book.refused) == (events.BURST, 100 - events.BURST)
    assert book.note(replace(SAID, regarding=events.node("n2")), AT) is not None
    later = replace(SAID, related=events.report("later"))
    assert book.note(later, AT + 100 + 5 * MINUTE) is not None
    assert book.note(replace(SAID, related=events.report("more")), AT + 100 + 5 * MINUTE) is None


def test_the_book_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_SERIES", 10)
    book = EventBook()
    for number in range(40):
        book.note(replace(SAID, regarding=events.node(f"n{number}")), AT)
    assert book.note(replace(SAID, regarding=events.node("n39")), AT) is not None  # still known
    anew = book.note(replace(SAID, regarding=events.node("n0")), AT)
    assert anew is not None and anew.patch is None


def test_a_bucket_fills_with_time_and_keeps_a_reserve() -> None:
    bucket = TokenBucket(3, every_s=2.0)
    assert [bucket.take(AT, leave=1) for _ in range(3)] == [True, True, False]
    assert bucket.take(AT)
    assert not bucket.take(AT + NS_PER_SECOND)
    assert bucket.take(AT + 2 * NS_PER_SECOND)
    assert not bucket.take(AT - MINUTE)  # the clock stepped back
    assert [bucket.take(AT + 100 * MINUTE) for _ in range(4)] == [True, True, True, False]


def test_buckets_of_keys_unused_for_long_are_forgotten() -> None:
    buckets = Buckets(1, every_s=1e9, most=2)
    assert buckets.take("a", AT) and not buckets.take("a", AT)
    assert buckets.take("b", AT) and buckets.take("c", AT)
    assert buckets.take("a", AT)
