"""Lanes of sources whose reads take long: which are moved, and when they return."""

from __future__ import annotations

import pytest

from reveal_collector.sampling import feed as feeds
from reveal_collector.sampling.feed import LAST_RETURN_NS, RETURN_NS
from reveal_contract.metric import Lane
from support.sampler_bench import SECOND, Bench, FakeSource

LONG_NS, SLOW_NS = 9_000_000, 300_000
MINUTE = 60


class Host:
    """A bench whose sources take as long as a test wants, by the reads of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *sources: FakeSource) -> None:
        self.bench = Bench(*sources)
        monkeypatch.setattr(feeds, "monotonic_ns", lambda: self.bench.clock.now)

    def takes(self, source: FakeSource, ns: int, each: int = 1) -> None:
        """Let one of ``each`` reads of a source take so long."""

        def spend(reads: int) -> None:
            if reads % each == 0:
                self.bench.clock.now += ns

        source.script = spend

    def run(self, seconds: int) -> list[tuple[int, Lane]]:
        """Return when, in seconds, the first source came into which lane."""
        changes, feed = list[tuple[int, Lane]](), self.bench.sampler.feeds[0]
        for second in range(seconds):
            before = feed.lane
            self.bench.slice()
            if feed.lane is not before:
                changes.append((second, feed.lane))
        return changes


def test_a_source_that_was_too_slow_for_a_while_returns_to_its_lane(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = FakeSource("s")
    host = Host(monkeypatch, source, FakeSource("g"))
    host.takes(source, SLOW_NS)
    [(moved, lane)] = host.run(20)
    assert lane is Lane.SLOW
    host.takes(source, 0)
    [(returned, lane)] = host.run(2 * MINUTE)
    assert lane is Lane.FAST
    assert 20 + returned - moved == pytest.approx(RETURN_NS / SECOND, abs=2)
    assert host.bench.sampler.feeds[0].demoted == ""


def test_a_source_that_stays_too_slow_is_tried_more_and_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = FakeSource("s")
    host = Host(monkeypatch, source, FakeSource("g"))
    host.takes(source, SLOW_NS)
    changes = host.run(70 * MINUTE)
    moved = [second for second, lane in changes if lane is Lane.SLOW]
    returned = [second for second, lane in changes if lane is Lane.FAST]
    waits = [back - left for left, back in zip(moved, returned, strict=False)]
    assert waits[:5] == pytest.approx([MINUTE * 2**n for n in range(5)], abs=2)
    assert max(waits) <= LAST_RETURN_NS / SECOND + 2


def test_long_reads_of_several_sources_are_those_of_a_saturated_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever waits for a CPU while a source is read: it is not the source that is slow."""
    sources = [FakeSource(name) for name in ("a", "b", "c")]
    host = Host(monkeypatch, *sources)
    for source in sources:
        host.takes(source, LONG_NS, each=12)
    assert host.run(2 * MINUTE) == []


def test_long_reads_of_a_single_source_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    source = FakeSource("a")
    host = Host(monkeypatch, source, FakeSource("b"), FakeSource("c"))
    host.takes(source, LONG_NS, each=12)
    [(_, lane)] = host.run(20)
    assert lane is Lane.SLOW


def test_a_source_keeps_its_lane_if_it_is_of_no_use_in_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fine clocks that are read once a second have no rhythm."""
    source = FakeSource("fine")
    source.keeps_lane = True  # type: ignore[attr-defined]
    host = Host(monkeypatch, source)
    host.takes(source, SLOW_NS)
    assert host.run(MINUTE) == []
