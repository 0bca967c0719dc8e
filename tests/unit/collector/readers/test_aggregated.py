"""Parts of a column that are outside of the bounds of its metric do not count."""

from __future__ import annotations

from collections.abc import Sequence

from reveal_collector.readers.aggregated import AggregatedSource
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane


class Parts:
    """A source of given values."""

    name, lane = "parts", Lane.RARE

    def __init__(self, channels: Sequence[Channel], values: Sequence[int | None]) -> None:
        self.channels = tuple(channels)
        self.values = values

    def open(self) -> None:
        """Nothing to open."""

    def read(self) -> Sequence[int | None]:
        return self.values

    def close(self) -> None:
        """Nothing to close."""


CORE = channel("cpu.temperature.core", "0", 1e-3)


def test_a_broken_sensor_does_not_hide_the_hottest_core() -> None:
    source = AggregatedSource(Parts([CORE] * 3, [61_000, 3_892_313_987, 55_000]))
    source.open()
    assert list(source.read()) == [61_000]


def test_a_clock_of_zero_is_not_the_lowest_limit() -> None:
    limit = channel("cpu.frequency.maximum", "0", 1e3)
    source = AggregatedSource(Parts([limit] * 2, [0, 3_600_000]), min)
    source.open()
    assert list(source.read()) == [3_600_000]


def test_a_column_without_a_good_part_is_missing() -> None:
    source = AggregatedSource(Parts([CORE], [-128_000]))
    source.open()
    assert list(source.read()) == [None]


def test_a_sum_of_counters_has_no_bounds() -> None:
    counter = channel("cpu.thermal_throttle.core", "0")
    parts = Parts([counter], [2**63])
    source = AggregatedSource(parts)
    source.open()
    parts.values = [2**63 + 5]
    assert list(source.read()) == [5]


def test_it_states_what_its_source_states() -> None:
    class Stating(Parts):
        degraded = ("parts: numbers are missing",)

    assert AggregatedSource(Parts([CORE], [1])).degraded == ()
    assert AggregatedSource(Stating([CORE], [None])).degraded == ("parts: numbers are missing",)
