"""The collector of one node: sources, tick thread, slices, sinks, put together."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from reveal_collector import registry
from reveal_collector.facts.device_queries import queries_for
from reveal_collector.facts.inventory import FactsReader
from reveal_collector.facts.publisher import FactsPublisher
from reveal_collector.kernel.scheduling import prefer_real_time, raise_file_limit
from reveal_collector.readers.raw_slice import RawSlice, SliceOrigin
from reveal_collector.readers.source import (
    AdaptiveSource,
    PausableSource,
    Roots,
    Source,
    SubjectSource,
    ThrottledSource,
)
from reveal_collector.readers.sysfs_attributes import read_text
from reveal_collector.registry import MissingSource
from reveal_collector.sampling.cpu_budget import CpuBudget, SourceCost
from reveal_collector.sampling.feed import Feed
from reveal_collector.sampling.native_sampler import NativeSampler, make_sampler
from reveal_collector.sampling.sampler import Sampler
from reveal_collector.sampling.self_metrics import NAME, SelfMetrics, SelfMetricsSource
from reveal_collector.shipping.native_encoder import encoder_of
from reveal_collector.shipping.sinks import EncodedSlice, Sink, SinkHealth
from reveal_contract import VERSION
from reveal_contract.catalogue import find
from reveal_contract.envelope import WireError
from reveal_contract.metric import Lane, Scope
from reveal_contract.runtime.liveness import Pulse
from reveal_contract.settings import CollectorSettings
from reveal_contract.subjects import Identity, to_rows

log = logging.getLogger(__name__)

# Slices between tick thread and encoder: some when the encoder is starved, never without end.
QUEUE = 10
_READS = {Lane.FAST: 10.0, Lane.SLOW: 1.0, Lane.RARE: 0.1}  # a second


class FeedState(NamedTuple):
    """How one source is read: its lane now, what its last read took."""

    source: str
    lane: Lane
    read_ns: int
    broken: bool


@dataclass(frozen=True)
class CollectorStatus:
    """How a collector is doing."""

    node: str
    boot: str
    sequence: int
    table: str
    channels: int
    feeds: tuple[FeedState, ...]
    missing: tuple[MissingSource, ...]
    degraded: tuple[str, ...]
    late_ticks: int
    missed_ticks: int
    skipped_slices: int
    delivered: int
    buffered: int
    dropped: int
    subjects: tuple[Identity, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources that are read."""
        return tuple(feed.source for feed in self.feeds)

    def to_report(self) -> dict[str, Any]:
        """What stands in ``names.NODES_KEY``, the subjects in a key of their own: JSON values."""
        return {
            "boot": self.boot,
            "table": self.table,
            "sequence": self.sequence,
            "version": VERSION,
            "time": time.time_ns(),
            "channels": self.channels,
            "missing": [lacking._asdict() for lacking in self.missing],
            "degraded": list(self.degraded),
            "dropped": self.dropped,
            "buffered": self.buffered,
            "subjects": to_rows(self.subjects),
        }


class Collector:
    """Samples this host from ``start`` to ``stop`` and gives every slice to all ``sinks``."""

    def __init__(
        self,
        settings: CollectorSettings,
        sinks: Sequence[Sink],
        sources: Sequence[Source] | None = None,
        pulse: Pulse | None = None,
    ) -> None:
        self.settings = settings
        self.pulse = pulse or Pulse()
        self.last: RawSlice | None = None  # the last tick shipped, to be looked at
        self._sinks = tuple(sinks)
        self._given = sources
        self._missing: tuple[MissingSource, ...] = ()
        self._absent: list[Source] = []
        self._boot = boot_id(registry.roots_of(settings))
        self._facts: FactsPublisher | None = None
        self._sampler: Sampler | None = None
        self._raw: queue.SimpleQueue[RawSlice | None] = queue.SimpleQueue()
        self._unencoded = 0
        self._knowing: list[SubjectSource] = []
        self._adaptive: list[AdaptiveSource] = []
        self._thrifty: list[ThrottledSource] = []
        self._spare: dict[str, PausableSource] = {}
        self._governor = CpuBudget(settings.cpu_budget_millicores)
        self._encoder = encoder_of(
            SliceOrigin(settings.node, self._boot, settings.sample_period_milliseconds * 1000)
        )
        self._thread: threading.Thread | None = None  # ships where the tick thread must not

    def start(self) -> None:
        """Open the sources and begin; raises ``SettingsError`` for an unknown source name."""
        raise_file_limit()
        sampler = make_sampler(
            self.settings.node,
            [*self._open(), self._own()],
            self._take,
            self.settings.sample_period_milliseconds * 1_000_000,
            self._absent,
        )
        self._sampler = sampler
        self._sort_out([*(self._given or ()), *self._absent])
        for lacking in self._missing:
            log.info("no source %s: %s", lacking.source, lacking.reason)
        for sink in self._sinks:
            sink.start(lambda: self.status().to_report())
        self._facts = self._watch_facts()
        prompt = all(sink.prompt for sink in self._sinks)
        if not (prompt and isinstance(sampler, NativeSampler)):
            self._thread = threading.Thread(target=self._ship, name="reveal-ship", daemon=True)
            self._thread.start()
        sampler.start()

    def stop(self, timeout: float = 1.0) -> None:
        """Ship what the current slice holds, deliver what waits, close all: within ``timeout``."""
        end = time.monotonic() + timeout
        if self._facts is not None:
            self._facts.stop(timeout / 10)
        if self._sampler is not None:
            self._sampler.stop(timeout / 2)
            if self._thread is not None:
                self._raw.put(None)
                self._thread.join(max(0.1, end - time.monotonic()))
        for sink in self._sinks:
            sink.close(max(0.1, end - time.monotonic()))
        if self._sampler is not None:
            for feed in self._sampler.feeds:
                feed.source.close()

    def status(self) -> CollectorStatus:
        sampler = self._running()
        health = self._health()
        return CollectorStatus(
            node=self.settings.node, boot=self._boot.hex(), sequence=sampler.counts.sequence,
            table=sampler.table.key.hex(), channels=sampler.counts.channels,
            feeds=tuple(
                FeedState(feed.name, feed.lane, feed.read_ns, feed.broken)
                for feed in sampler.feeds if not feed.absent
            ),
            missing=self._still_missing(),
            degraded=tuple(self._degraded(health)), late_ticks=sampler.counts.late_ticks,
            missed_ticks=sampler.counts.missed_ticks,
            skipped_slices=sampler.counts.skipped_slices,
            delivered=max((one.delivered for one in health), default=0),
            buffered=sum(one.buffered for one in health),
            dropped=self._unencoded + sum(one.dropped for one in health),
            subjects=tuple(who for one in self._knowing for who in one.subjects),
        )  # fmt: skip

    def _open(self) -> Sequence[Source]:
        if self._given is not None:
            return self._given
        probed = registry.probe_all(registry.roots_of(self.settings), self.settings)
        self._missing, self._absent = tuple(probed.missing), probed.absent
        self._given = probed.sources
        return probed.sources

    def _sort_out(self, sources: Sequence[Source]) -> None:
        """Who can do more than be read; asked once, as such questions are slow."""
        self._knowing = [one for one in sources if isinstance(one, SubjectSource)]
        self._adaptive = [one for one in sources if isinstance(one, AdaptiveSource)]
        self._thrifty = [one for one in sources if isinstance(one, ThrottledSource)]
        self._spare = {one.name: one for one in sources if isinstance(one, PausableSource)}

    def _watch_facts(self) -> FactsPublisher:
        roots = registry.roots_of(self.settings)
        asks = queries_for(roots, self._given or ())
        watch = FactsPublisher(FactsReader(self.settings.node, roots, asks))
        watch.start()
        return watch

    def _still_missing(self) -> tuple[MissingSource, ...]:
        absent = {feed.name for feed in self._running().feeds if feed.absent}
        return tuple(lacking for lacking in self._missing if lacking.source in absent)

    def _own(self) -> SelfMetricsSource:
        return SelfMetricsSource([source.name for source in self._given or ()], self._figures)

    def _running(self) -> Sampler:
        if self._sampler is None:
            raise RuntimeError("the collector has not been started")
        return self._sampler

    def _health(self) -> list[SinkHealth]:
        return [sink.health() for sink in self._sinks]

    def _degraded(self, health: Sequence[SinkHealth]) -> list[str]:
        sampler = self._running()
        found = [said for said in (sampler.not_real_time, sampler.not_native) if said]
        for feed in sampler.feeds:
            if feed.demoted:
                found.append(feed.demoted)
            if feed.broken and not feed.absent:
                found.append(f"{feed.name}: cannot be read, is tried again")
        found += [one.health_error for one in self._knowing if one.health_error]
        for adaptive in self._adaptive:
            found += adaptive.degraded
        found += self._governor.said
        return found + [one.health_error for one in health if one.health_error]

    def _figures(self) -> SelfMetrics:
        sampler, health = self._sampler, self._health()
        if sampler is None:
            return SelfMetrics([0] * len(self._given or ()), 0, 0, 0, 0, 0)
        return SelfMetrics(
            # in the order given to ``OwnSource``, which itself comes next, and then late ones
            read_ns=[feed.read_ns for feed in sampler.feeds[: len(self._given or ())]],
            late_ticks=sampler.counts.late_ticks,
            missed_ticks=sampler.counts.missed_ticks,
            dropped_slices=self._unencoded + sum(one.dropped for one in health),
            buffered_slices=sum(one.buffered for one in health),
            fallbacks=len(self._degraded(health)),
        )

    def _take(self, raw: RawSlice) -> None:
        """Ship, unless this thread ticks: then hand over, never wait.

        Where C ticks, and no sink may meet a slow disk, to wake another thread costs more.
        """
        if self._thread is None:
            self._ship_safely(raw)
        elif self._raw.qsize() < QUEUE:
            self._raw.put(raw.copy())
        else:
            self._unencoded += 1

    def _ship(self) -> None:
        prefer_real_time()
        while (raw := self._raw.get()) is not None:
            self._ship_safely(raw)

    def _ship_safely(self, raw: RawSlice) -> None:
        try:
            self._ship_one(raw)
        except (WireError, ValueError) as error:
            self._unencoded += 1
            log.error("slice %d cannot be encoded: %s", raw.sequence, error)
        self._keep_budget()

    def _ship_one(self, raw: RawSlice) -> None:
        shipment = EncodedSlice(
            self.settings.node, self._boot, raw.sequence, raw.start_ns, raw.table,
            self._encoder.encode(raw), self._facts.latest if self._facts else None,
        )  # fmt: skip
        for sink in self._sinks:
            sink.put(shipment)
        self.last = raw.last_tick()
        self._show_life()

    def _show_life(self) -> None:
        """Ticks come, slices are made; the first one that a sink acknowledged makes it ready."""
        self.pulse.beat()
        if not self.pulse.is_ready and any(one.delivered for one in self._health()):
            self.pulse.ready()

    def _keep_budget(self) -> None:
        """Take or take back a step where the CPU used says so; done by the sampler at its time."""
        was_exhausted = self._governor.exhausted
        step = self._governor.look(time.monotonic_ns(), time.process_time_ns(), self._costs)
        if self._governor.exhausted and not was_exhausted:
            log.warning("%s", self._governor.said[-1])
        if step is None:
            return
        use = f"{self._governor.use:.0%} of the CPU budget was used"
        taken = step in self._governor.steps
        log.log(
            logging.WARNING if taken else logging.INFO,
            "%s: %s", use, step.said if taken else f"taken back: {step.said}",
        )  # fmt: skip
        for source in self._thrifty:
            source.slowdown_factor = self._governor.slowdown_factor
        for name, spare in self._spare.items():
            spare.paused = name in self._governor.paused
        self._running().grant(self._governor.lanes)

    def _costs(self) -> list[SourceCost]:
        """What each source but this process's own takes of a second, ns."""
        return [
            self._cost(feed) for feed in self._running().feeds
            if not feed.absent and feed.name != NAME
        ]  # fmt: skip

    def _cost(self, feed: Feed) -> SourceCost:
        ns = int(feed.read_ns * _READS[feed.lane])
        return SourceCost(feed.name, feed.lane, ns, _scope(feed), feed.name in self._spare)


def _scope(feed: Feed) -> Scope:
    return find(feed.shown[0].metric).scope if feed.shown else Scope.NODE


def boot_id(roots: Roots) -> bytes:
    """16 bytes that change with every boot (proc(5), random/boot_id); random where unknown."""
    try:
        text = read_text(roots.proc / "sys/kernel/random/boot_id")
        known = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        known = b""
    return known if len(known) == 16 else os.urandom(16)
