"""A sampler with a clock that is moved by hand, and sources that follow a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reveal_collector.readers.raw_slice import RawSlice
from reveal_collector.sampling.sampler import Sampler
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane

TICK = 100_000_000
SECOND = 10 * TICK


class HandClock:
    """Time passes only by sleeping, and where ``delay`` says so on top of it."""

    def __init__(self) -> None:
        self.now, self.epoch = 5 * SECOND, 1_700_000_000 * SECOND
        self.delay: Callable[[int], int] = lambda due: 0
        self.asleep = 3 * SECOND // 2  # before the collector began

    def monotonic(self) -> int:
        return self.now

    def wall(self) -> int:
        return self.epoch + self.now

    def suspended(self) -> int:
        return self.asleep

    def sleep_until(self, monotonic_ns: int) -> None:
        self.now = max(self.now, monotonic_ns + self.delay(monotonic_ns))


class FakeSource:
    """Counts its reads; ``script`` may change columns or raise."""

    def __init__(self, name: str, lane: Lane = Lane.FAST, columns: Sequence[str] = ("a",)) -> None:
        self.name, self.lane = name, lane
        self.reads = self.opened = self.closed = 0
        self.script: Callable[[int], None] = lambda reads: None
        self.name_columns(columns)

    def name_columns(self, columns: Sequence[str]) -> None:
        self.columns = list(columns)
        self.channels = tuple(
            Channel(f"{self.name}.x", column, Kind.COUNTER, 1.0, self.lane) for column in columns
        )

    def open(self) -> None:
        self.opened += 1

    def read(self) -> Sequence[int | None]:
        self.reads += 1
        self.script(self.reads)
        return [self.reads * 100 + ord(column) for column in self.columns]

    def close(self) -> None:
        self.closed += 1


class Bench:
    """A sampler driven slice by slice."""

    def __init__(self, *sources: FakeSource) -> None:
        self.clock = HandClock()
        self.slices: list[RawSlice] = []
        self.sampler = Sampler("n1", sources, self.slices.append, clock=self.clock)
        self.due = self.sampler.first_due()

    def slice(self) -> RawSlice:
        self.due = self.sampler.take_slice(self.due)
        return self.slices[-1]
