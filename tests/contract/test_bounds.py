"""Bounds of levels: what a reading can be, and what means "unknown"."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract import catalogue
from reveal_contract.bounds import BY_UNIT, UNBOUNDED, Bounds
from reveal_contract.catalogue import find
from reveal_contract.metric import Kind, Lane

INT64 = st.integers(-(2**63), 2**63 - 1)
NO_READING = -(2**63)


def known(metric: str, reading: int, scale: float = 1.0) -> int | None:
    return find(metric).limits.raw(scale).known(reading)


def as_int64(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


@pytest.mark.parametrize(
    ("metric", "scale", "reading"),
    [
        ("network.nic.speed", 1e6, -1),
        ("network.nic.speed", 1e6, 4_294_967_295),
        ("network.nic.speed", 1e6, 65_535),
        ("network.nic.speed", 1e6, 0),
        ("network.pcie.width", 1.0, 63),
        ("network.pcie.width", 1.0, 255),
        ("gpu.pcie.width", 1.0, 0),
        ("cpu.frequency", 1e3, 0),
        ("cpu.temperature.board", 1e-3, 3_892_313_987),
        ("cpu.temperature.board", 1e-3, -128_000),
        ("cpu.power", 1e-6, 4_294_967_295_000),
        ("memory.swap_free", 1024.0, as_int64(18_446_744_073_709_551_488)),
        ("memory.huge_pages_rsvd", 1.0, -1),
        ("memory.vm.nr_anon_pages", 4096.0, as_int64(18_446_744_073_709_551_614)),
        ("network.sockets.tcp.inuse", 1.0, -1),
    ],
)
def test_a_value_that_means_unknown_is_none(metric: str, scale: float, reading: int) -> None:
    assert known(metric, reading, scale) is None


@pytest.mark.parametrize(
    ("metric", "scale", "reading"),
    [
        ("network.nic.speed", 1e6, 10),
        ("network.nic.speed", 1e6, 1_600_000),
        ("network.pcie.width", 1.0, 32),
        ("cpu.frequency", 1e3, 800_000),
        ("cpu.temperature.board", 1e-3, -12_500),
        ("cpu.temperature.package", 1e-3, 105_000),
        ("memory.swap_free", 1024.0, 0),
        ("memory.swap.priority", 1.0, -2),
        ("cpu.user", 1e7, -1),  # a counter keeps all its 64 bits
    ],
)
def test_other_values_are_kept(metric: str, scale: float, reading: int) -> None:
    assert known(metric, reading, scale) == reading


def test_every_level_of_this_project_states_its_lowest_value() -> None:
    levels = [
        row
        for row in catalogue.rows()
        if row.kind in (Kind.GAUGE, Kind.STATE) and row.lane is not Lane.DERIVED
    ]
    free = {row.name for row in levels if row.limits.lowest < 0 and row.unit != "celsius"}
    times = {row.name for row in levels if row.unit == "ns"}
    assert free - times == {"memory.swap.priority"}


def test_the_default_follows_from_the_unit() -> None:
    for row in catalogue.rows():
        if row.kind is Kind.COUNTER:
            assert row.limits is UNBOUNDED, row.name
        elif row.bounds is None:
            assert row.limits == BY_UNIT.get(row.unit, UNBOUNDED), row.name


@given(INT64, st.sampled_from([1.0, 1e-3, 1024.0, 4096.0, 1e6]))
def test_without_bounds_only_the_mark_of_a_missing_reading_is_none(
    reading: int, scale: float
) -> None:
    assert UNBOUNDED.raw(scale).known(reading) == (None if reading == NO_READING else reading)


@given(INT64, st.integers(-100, 100), st.integers(0, 1000), st.sampled_from([1.0, 0.5, 1024.0]))
def test_a_reading_is_kept_if_its_value_is_within(
    reading: int, lowest: int, width: int, scale: float
) -> None:
    bounds = Bounds(lowest, lowest + width, unknown=lowest + width // 2)
    value = reading * scale
    within = lowest <= value <= lowest + width and reading != round(bounds.unknown / scale)  # type: ignore[operator]
    assert (bounds.raw(scale).known(reading) is not None) == within
