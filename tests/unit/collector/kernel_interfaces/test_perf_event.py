"""Scaling of multiplexed counter groups, and encoding of events into config words."""

from __future__ import annotations

import contextlib
import errno
import os
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import ParseError
from reveal_collector.kernel_interfaces.perf_event import (
    GroupReading,
    PerfEvent,
    PerfGroup,
    scaled_counts,
)
from reveal_collector.readers.perf_groups import explained
from reveal_collector.sources.pmu.device import encode, spread
from support.property_tests import examples

COUNTS = st.integers(0, 2**64 - 1)


def test_a_group_that_always_ran_counts_as_it_is() -> None:
    assert scaled_counts(GroupReading(100, 100, (5, 7)), GroupReading(300, 300, (9, 7))) == (4, 0)


def test_a_group_that_ran_a_third_counts_three_times() -> None:
    # earlier readings do not matter: it had run all the time until then
    before = GroupReading(1_000_000, 1_000_000, (10, 0))
    assert scaled_counts(before, GroupReading(1_000_300, 1_000_100, (20, 1))) == (30, 3)


def test_a_group_that_did_not_run_is_missing() -> None:
    assert scaled_counts(GroupReading(100, 50, (5,)), GroupReading(200, 50, (5,))) is None


def test_no_time_gone_by_is_no_count() -> None:
    """The enabled time of a sleeping cgroup stands still, and it counts nothing."""
    assert scaled_counts(GroupReading(100, 50, (5,)), GroupReading(100, 50, (5,))) == (0,)


def test_a_counter_beyond_64_bits_goes_on() -> None:
    assert scaled_counts(GroupReading(0, 0, (2**64 - 2,)), GroupReading(1, 1, (3,))) == (5,)


@examples(200)
@given(COUNTS, st.integers(0, 2**40), st.integers(1, 2**40), st.integers(1, 2**40))
def test_scaling_is_exact_and_never_below_the_raw_count(
    start: int, gained: int, first: int, second: int
) -> None:
    running, enabled = sorted((first, second))
    after = GroupReading(enabled, running, ((start + gained) % 2**64,))
    steps = scaled_counts(GroupReading(0, 0, (start,)), after)
    assert steps is not None
    assert steps[0] >= gained
    assert steps[0] * running <= gained * enabled < (steps[0] + 1) * running


X86 = {"event": "config:0-7,32-35", "umask": "config:8-15", "cmask": "config:24-31",
       "inv": "config:23", "ldlat": "config1:0-15"}  # fmt: skip


@pytest.mark.parametrize(
    ("terms", "config", "config1"),
    [
        ("event=0xd0,umask=0x81", 0x81D0, 0),
        ("event=0xa3,umask=0x06,cmask=0x06", 0x060006A3, 0),
        ("event=0x1a0,umask=0x1e", 0x1_0000_1EA0, 0),
        ("event=0xcd,umask=1,inv,ldlat=256", 0x008001CD, 256),
        ("config=0x3c", 0x3C, 0),
        ("event=0xc0\n", 0xC0, 0),
    ],
)
def test_terms_are_encoded_by_their_format(terms: str, config: int, config1: int) -> None:
    assert encode(4, terms, X86) == PerfEvent(4, config, config1)


@pytest.mark.parametrize(
    "terms", ["", "event", "umask=0x100", "frontend=1", "event=zz", "event=-1", "event=0x1000"]
)
def test_unknown_terms_are_refused(terms: str) -> None:
    if terms == "event":  # alone it is a switch that is on
        assert encode(4, terms, X86) == PerfEvent(4, 1)
        return
    with pytest.raises(ParseError):
        encode(4, terms, X86)


@examples(200)
@given(st.integers(0, 2**12 - 1))
def test_every_bit_of_a_value_has_its_position(value: int) -> None:
    config = spread(value, "0-7,32-35")
    assert config & 0xFF | (config >> 32) << 8 == value
    assert config & 0xFFFF_FF00 == 0


@examples(200)
@given(st.text(max_size=40))
def test_any_text_is_encoded_or_refused(terms: str) -> None:
    with contextlib.suppress(ParseError):
        assert encode(4, terms, X86).kind == 4


@pytest.mark.parametrize(
    ("code", "capable", "filtered", "text"),
    [
        (errno.EACCES, False, False, "perf_event_paranoid is 4"),
        (errno.EPERM, True, True, "seccomp profile refuses"),
        (errno.EPERM, True, False, "although the process has CAP_PERFMON"),
        (errno.ENOSYS, True, False, "has no perf_event_open"),
        (errno.EMFILE, True, False, "too few file descriptors"),
        (errno.ENOENT, True, False, "no such thing"),
    ],
)
def test_each_refusal_has_its_sentence(code: int, capable: bool, filtered: bool, text: str) -> None:
    missing = explained(OSError(code, "no such thing"), capable, filtered, "4")
    assert text in missing.reason
    assert missing.remedy or code == errno.ENOENT


def test_the_remedy_in_a_container_names_both_restrictions() -> None:
    missing = explained(OSError(errno.EPERM, ""), False, True, "2")
    assert "CAP_PERFMON" in missing.remedy
    assert "system call" in missing.remedy


class Recorded(PerfGroup):
    """A group over readings made beforehand: the descriptor is a file of them."""

    def __init__(self, readings: list[GroupReading]) -> None:
        self._readings = readings
        super().__init__(0, [PerfEvent(4, index) for index in range(len(readings[0].counts))])

    def _open(self, event: PerfEvent) -> int:
        fd = os.memfd_create("readings")
        for enabled, running, counts in self._readings:
            os.write(
                fd, struct.pack(f"={3 + len(counts)}Q", len(counts), enabled, running, *counts)
            )
        os.lseek(fd, 0, os.SEEK_SET)
        return fd


def test_totals_are_the_sum_of_scaled_steps() -> None:
    group = Recorded(
        [
            GroupReading(0, 0, (0, 0)),
            GroupReading(100, 100, (10, 1)),
            GroupReading(200, 150, (20, 2)),  # half the time: twice as much
            GroupReading(300, 150, (20, 2)),  # never
            GroupReading(400, 250, (40, 6)),  # half of the time since it last ran
            GroupReading(500, 350, (50, 7)),
        ]
    )
    try:
        totals = [group.read() for _ in range(5)]
        assert totals == [(10, 1), (30, 3), None, (70, 11), (80, 12)]
        assert group.last_increment == (100, (10, 1))
        assert group.read() is None  # nothing more to read: the CPU is offline
        assert group.read() is None
    finally:
        group.close()


@examples(100)
@given(st.lists(st.tuples(st.integers(1, 2**30), st.integers(0, 2**30), st.integers(0, 2**40)),
                min_size=1, max_size=20))  # fmt: skip
def test_totals_never_fall(parts: list[tuple[int, int, int]]) -> None:
    readings = [GroupReading(0, 0, (0,))]
    for enabled, running, count in parts:
        last = readings[-1]
        ran = min(running, enabled)
        counted = last.counts[0] + (count if ran else 0)
        readings.append(GroupReading(last.enabled + enabled, last.running + ran, (counted,)))
    group = Recorded(readings)
    try:
        totals = [total[0] for _ in parts if (total := group.read()) is not None]
    finally:
        group.close()
    assert totals == sorted(totals)
    if totals and all(ran >= enabled for enabled, ran, _ in parts):
        assert totals[-1] == readings[-1].counts[0]
