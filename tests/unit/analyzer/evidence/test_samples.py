"""Samples of a finding: to a recording and back, within a number of bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveal_analyzer.evidence.samples import KeptSlice, Samples, fitted
from reveal_analyzer.evidence.timing import span_of
from reveal_contract.recording import RecordingError
from support.evidence_samples import FIRST_NS, finding, slices

NOTES = ({"finding": {"id": "x"}},)


def samples(seconds: int) -> Samples:
    return Samples(tuple(KeptSlice.of(*each) for each in slices(seconds)))


def second(each: KeptSlice) -> int:
    return (each.start_ns - FIRST_NS) // 10**9


def test_a_recording_gives_the_same_samples_back() -> None:
    kept = samples(5)
    assert Samples.from_recording(kept.to_recording(NOTES)) == kept
    assert Samples().newest_ns is None


def test_what_is_no_recording_is_refused() -> None:
    with pytest.raises(RecordingError):
        Samples.from_recording(b"no recording")


def test_newer_slices_replace_what_follows_a_moment() -> None:
    old = samples(6)
    newer = [replace(each, ticks=1) for each in old.slices]
    merged = old.since_replaced(FIRST_NS + 2 * 10**9, newer)
    assert [each.ticks for each in merged.slices] == [10, 10, 10, 1, 1, 1]
    assert [second(each) for each in merged.slices] == list(range(6))


def test_between_the_minutes_around_onset_and_end_a_sample_a_second_is_kept() -> None:
    kept = samples(500).thinned(span_of(finding(100, end=300)))
    ticks = {second(each): each.ticks for each in kept.slices}
    assert set(ticks) == set(range(40, 361))
    assert {each for each, count in ticks.items() if count == 1} == set(range(161, 240))


def test_a_bound_makes_the_middle_sparser_before_it_touches_onset_and_end() -> None:
    of = finding(100, end=700)
    whole, data = fitted(samples(800), span_of(of), NOTES, bytes, 10**7)
    smaller, fits = fitted(samples(800), span_of(of), NOTES, bytes, len(data) * 7 // 10)
    assert len(fits) <= len(data) * 7 // 10
    fine = [second(each) for each in smaller.slices if each.ticks > 1]
    assert fine == [second(each) for each in whole.slices if each.ticks > 1]
    assert len(smaller.slices) < len(whole.slices)
    assert Samples.from_recording(fits) == smaller


def test_a_small_bound_holds_with_less_around_onset_and_end() -> None:
    kept, data = fitted(samples(800), span_of(finding(100, end=700)), NOTES, bytes, 50_000)
    assert len(data) <= 50_000
    fine = {second(each) for each in kept.slices if each.ticks > 1}
    assert {100, 700} <= fine
    assert not fine & {40, 160, 640, 760}
