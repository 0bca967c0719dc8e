"""The collector of one node: connects sources, sampler, encoder, sinks and CPU budget."""

from __future__ import annotations

import logging
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
from reveal_collector.kernel_interfaces.scheduling import prefer_real_time, raise_file_limit
from reveal_collector.readers.boot_id import boot_id
from reveal_collector.readers.host_constants import host_constants
from reveal_collector.readers.opening import Opening
from reveal_collector.readers.raw_slice import RawSlice, SliceOrigin
from reveal_collector.readers.source import (
    HUNG_NS,
    AdaptiveSource,
    DriverSource,
    PausableSource,
    ShareSource,
    Source,
    SubjectSource,
    ThrottledSource,
)
from reveal_collector.registry import MissingSource
from reveal_collector.sampling.cpu_budget import CpuBudget, SourceCost
from reveal_collector.sampling.feed import Feed
from reveal_collector.sampling.native_sampler import NativeSampler, make_sampler
from reveal_collector.sampling.outages import FailingSource, OutageTexts
from reveal_collector.sampling.sampler import Sampler
from reveal_collector.sampling.self_metrics import NAME, SelfMetrics, SelfMetricsSource
from reveal_collector.shipping.native_encoder import encoder_of
from reveal_collector.shipping.sinks import EncodedSlice, Sink, SinkHealth
from reveal_collector.sources.nvml import DRIVER as NVML_DRIVER
from reveal_contract import VERSION
from reveal_contract.catalogue import find
from reveal_contract.cpu_shares import EQUAL_SHARES, CpuShares
from reveal_contract.envelope import WireError
from reveal_contract.foreign_names import printable
from reveal_contract.metric import Lane, Scope
from reveal_contract.names import CPU_SHARES, SUBJECTS
from reveal_contract.runtime.liveness import LivenessFiles
from reveal_contract.settings import CollectorSettings
from reveal_contract.subjects import Identity, to_rows

log = logging.getLogger(__name__)

# Slices that may wait for the encoder: a few while it gets no CPU, but never an endless queue.
MAX_QUEUED_SLICES = 10
_READS_PER_SECOND = {Lane.FAST: 10.0, Lane.SLOW: 1.0, Lane.RARE: 0.1}


class FeedState(NamedTuple):
    """State of one source: its current lane, how long its last read took, whether it answers."""

    source: str
    lane: Lane
    read_ns: int
    up: bool


@dataclass(frozen=True)
class CollectorStatus:
    """Health of one collector."""

    node: str
    boot: str
    sequence: int
    table: str
    channels: int
    feeds: tuple[FeedState, ...]
    missing: tuple[MissingSource, ...]
    degraded: tuple[str, ...]
    failing: tuple[FailingSource, ...]
    late_ticks: int
    missed_ticks: int
    skipped_slices: int
    delivered: int
    buffered: int
    dropped: int
    subjects: tuple[Identity, ...] = ()
    shares: CpuShares = EQUAL_SHARES

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources that are read."""
        return tuple(feed.source for feed in self.feeds)

    def to_node_status(self) -> dict[str, Any]:
        """Return the JSON values of the status in ``names.node_key``.

        The sink writes ``SUBJECTS`` and ``CPU_SHARES`` to fields of their own.
        """
        return {
            "boot": self.boot,
            "table": self.table,
            "sequence": self.sequence,
            "version": VERSION,
            "time": time.time_ns(),
            "channels": self.channels,
            "missing": [source._asdict() for source in self.missing],
            "degraded": list(self.degraded),
            "failing": [source._asdict() for source in self.failing],
            "dropped": self.dropped,
            "buffered": self.buffered,
            SUBJECTS: to_rows(self.subjects),
            CPU_SHARES: self.shares.to_rows(),
        }


class Collector:
    """Samples this host from ``start`` to ``stop`` and passes every slice to all ``sinks``."""

    def __init__(
        self,
        settings: CollectorSettings,
        sinks: Sequence[Sink],
        sources: Sequence[Source] | None = None,
        pulse: LivenessFiles | None = None,
    ) -> None:
        self.settings = settings
        self.pulse = pulse or LivenessFiles()
        self._last_tick: tuple[RawSlice, int] | None = None  # the last one shipped, and when
        self._sinks = tuple(sinks)
        self._sources = sources
        self._missing: tuple[MissingSource, ...] = ()
        self._absent: list[Source] = []
        self._hung: dict[str, Opening] = {}
        self._boot = boot_id(roots := registry.roots_of(settings))
        self._assumed = host_constants(roots).assumed
        self._facts: FactsPublisher | None = None
        self._sampler: Sampler | None = None
        self._queue: queue.SimpleQueue[RawSlice | None] = queue.SimpleQueue()
        self._unencoded = 0
        self._subject_sources: list[SubjectSource] = []
        self._share_sources: list[ShareSource] = []
        self._adaptive: list[AdaptiveSource] = []
        self._drivers: list[DriverSource] = []
        self._throttled: list[ThrottledSource] = []
        self._pausable: dict[str, PausableSource] = {}
        self._budget = CpuBudget(settings.cpu_budget_millicores)
        self._outages = OutageTexts()
        self._encoder = encoder_of(
            SliceOrigin(settings.node, self._boot, settings.sample_period_milliseconds * 1000)
        )
        # the thread that encodes and ships; None where the tick thread's caller does it itself
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Open the sources and start sampling.

        Raises ``SettingsError`` for an unknown source name.
        """
        raise_file_limit()
        sampler = make_sampler(
            self.settings.node,
            [*self._open_sources(), self._self_metrics_source()],
            self._receive,
            self.settings.sample_period_milliseconds * 1_000_000,
            self._absent,
        )
        self._sampler = sampler
        for feed in sampler.feeds:
            if (opening := self._hung.get(feed.name)) is not None:
                feed.await_opening(opening)
        self._sort_by_capability([*(self._sources or ()), *self._absent])
        for missing in self._missing:
            log.info("source %s is not available: %s", missing.source, missing.reason)
        for sink in self._sinks:
            sink.start(lambda: self.status().to_node_status())
        self._facts = self._start_facts()
        nonblocking = all(sink.nonblocking for sink in self._sinks)
        if not (nonblocking and isinstance(sampler, NativeSampler)):
            self._thread = threading.Thread(target=self._ship, name="reveal-ship", daemon=True)
            self._thread.start()
        sampler.start()

    def stop(self, timeout: float = 1.0) -> None:
        """Ship the current slice, deliver the buffered slices and close all within ``timeout``."""
        end = time.monotonic() + timeout
        if self._facts is not None:
            self._facts.stop(timeout / 10)
        if self._sampler is not None:
            self._sampler.stop(timeout / 2)
            if self._thread is not None:
                self._queue.put(None)
                self._thread.join(max(0.1, end - time.monotonic()))
        for sink in self._sinks:
            sink.close(max(0.1, end - time.monotonic()))
        if self._sampler is not None:
            for feed in self._sampler.feeds:
                feed.source.close()

    def status(self) -> CollectorStatus:
        """Return the current health; raises ``RuntimeError`` before ``start``."""
        sampler, health = self._running(), self._health()
        failing, now_ns = self._failing(), time.monotonic_ns()
        return CollectorStatus(
            node=self.settings.node, boot=self._boot.hex(), sequence=sampler.counts.sequence,
            table=sampler.table.key.hex(), channels=sampler.counts.channels,
            feeds=tuple(
                FeedState(feed.name, feed.lane, feed.read_ns, _is_up(feed, now_ns))
                for feed in sampler.feeds if not feed.absent
            ),
            missing=self._still_missing(),
            degraded=tuple(map(printable, self._degraded(health, failing))),
            failing=tuple(failing), skipped_slices=sampler.counts.skipped_slices,
            late_ticks=sampler.counts.late_ticks, missed_ticks=sampler.counts.missed_ticks,
            delivered=max((sink.delivered for sink in health), default=0),
            buffered=sum(sink.buffered for sink in health), dropped=self._dropped(health),
            subjects=tuple(
                subject for source in self._subject_sources for subject in source.subjects
            ),
            shares=next((source.shares for source in self._share_sources), EQUAL_SHARES),
        )  # fmt: skip

    def recent_tick(self) -> RawSlice | None:
        """Return the last tick for the exporter; None where ticks have stopped."""
        if self._last_tick is None or time.monotonic_ns() - self._last_tick[1] > HUNG_NS:
            return None
        return self._last_tick[0]

    def _open_sources(self) -> Sequence[Source]:
        if self._sources is not None:
            return self._sources
        probed = registry.probe_all(registry.roots_of(self.settings), self.settings)
        self._missing, self._absent = tuple(probed.missing), probed.absent
        self._hung = probed.hung
        self._sources = probed.sources
        return probed.sources

    def _sort_by_capability(self, sources: Sequence[Source]) -> None:
        """Find the sources that implement optional protocols; once, as these checks are slow."""
        self._subject_sources = [each for each in sources if isinstance(each, SubjectSource)]
        self._share_sources = [each for each in sources if isinstance(each, ShareSource)]
        self._adaptive = [each for each in sources if isinstance(each, AdaptiveSource)]
        self._drivers = [each for each in sources if isinstance(each, DriverSource)]
        self._throttled = [each for each in sources if isinstance(each, ThrottledSource)]
        self._pausable = {each.name: each for each in sources if isinstance(each, PausableSource)}

    def _start_facts(self) -> FactsPublisher:
        roots = registry.roots_of(self.settings)
        queries = queries_for(roots, self._nvml_answers)
        publisher = FactsPublisher(FactsReader(self.settings.node, roots, queries))
        publisher.start()
        return publisher

    def _nvml_answers(self) -> bool:
        now_ns, feeds = time.monotonic_ns(), self._running().feeds
        return any(feed.driver == NVML_DRIVER and _is_up(feed, now_ns) for feed in feeds)

    def _still_missing(self) -> tuple[MissingSource, ...]:
        absent = {feed.name for feed in self._running().feeds if feed.absent}
        return tuple(missing for missing in self._missing if missing.source in absent)

    def _self_metrics_source(self) -> SelfMetricsSource:
        return SelfMetricsSource(
            [source.name for source in self._sources or ()], self._self_metrics
        )

    def _running(self) -> Sampler:
        if self._sampler is None:
            raise RuntimeError("the collector has not been started")
        return self._sampler

    def _dropped(self, health: Sequence[SinkHealth]) -> int:
        return self._unencoded + sum(sink.dropped for sink in health)

    def _health(self) -> list[SinkHealth]:
        return [sink.health() for sink in self._sinks]

    def _failing(self) -> list[FailingSource]:
        """Return what cannot be read at the moment, although it is on this host."""
        found = self._outages.failing(self._running().feeds)
        if self._facts is not None:
            found += self._outages.of_thread("facts", self._facts.hung_since_ns)
        return found

    def _degraded(
        self, health: Sequence[SinkHealth], failing: Sequence[FailingSource]
    ) -> list[str]:
        """Return one phrase for each fallback in use, each failing source and each failing sink."""
        sampler = self._running()
        found = [reason for reason in (sampler.not_real_time, sampler.not_native) if reason]
        found += [feed.demoted for feed in sampler.feeds if feed.demoted]
        found += map(str, failing)
        found += [each.health_error for each in self._subject_sources if each.health_error]
        for adaptive in self._adaptive:
            found += adaptive.degraded
        found += [*self._budget.messages, *self._assumed]
        return found + [sink.health_error for sink in health if sink.health_error]

    def _self_metrics(self) -> SelfMetrics:
        sampler, health = self._sampler, self._health()
        count = len(self._sources or ())
        if sampler is None:
            return SelfMetrics([0] * count, 0, 0, 0, 0, 0)
        failing = self._failing()
        down = {each.source for each in failing}
        return SelfMetrics(
            # the given sources come first; the self metrics and absent sources follow them
            read_ns=[
                None if feed.driver in down else feed.read_ns for feed in sampler.feeds[:count]
            ],
            late_ticks=sampler.counts.late_ticks, missed_ticks=sampler.counts.missed_ticks,
            dropped_slices=self._dropped(health),
            buffered_slices=sum(sink.buffered for sink in health),
            fallbacks=len(self._degraded(health, failing)),
        )  # fmt: skip

    def _receive(self, raw: RawSlice) -> None:
        """Accept a slice of the sampler without blocking its thread for long.

        Encode it here where C samples and no sink may block: waking another thread costs more.
        Queue it otherwise, so that the tick thread never waits.
        """
        if self._thread is None:
            self._ship_safely(raw)
        elif self._queue.qsize() < MAX_QUEUED_SLICES:
            self._queue.put(raw.copy())
        else:
            self._unencoded += 1

    def _ship(self) -> None:
        prefer_real_time()
        while (raw := self._queue.get()) is not None:
            self._ship_safely(raw)

    def _ship_safely(self, raw: RawSlice) -> None:
        try:
            self._encode_and_ship(raw)
        except (WireError, ValueError) as error:
            self._unencoded += 1
            log.error("slice %d cannot be encoded: %s", raw.sequence, error)
        self._keep_budget()

    def _encode_and_ship(self, raw: RawSlice) -> None:
        encoded = EncodedSlice(
            self.settings.node, self._boot, raw.sequence, raw.start_ns, raw.table,
            self._encoder.encode(raw), self._facts.latest if self._facts else None,
        )  # fmt: skip
        for sink in self._sinks:
            sink.put(encoded)
        self._last_tick = raw.last_tick(), time.monotonic_ns()
        self._update_probes()

    def _update_probes(self) -> None:
        """Report liveness for each slice; report readiness once a sink delivered one."""
        self.pulse.beat()
        if not self.pulse.is_ready and any(sink.delivered for sink in self._health()):
            self.pulse.ready()

    def _keep_budget(self) -> None:
        """Update the CPU budget and apply the saving that it takes or reverts."""
        was_exhausted = self._budget.exhausted
        cpu_ns = time.process_time_ns() - sum(each.driver_cpu_ns for each in self._drivers)
        saving = self._budget.update(time.monotonic_ns(), cpu_ns, self._costs)
        if self._budget.exhausted and not was_exhausted:
            log.warning("%s", self._budget.messages[-1])
        if saving is None:
            return
        use = f"{self._budget.use:.0%} of the CPU budget was used"
        taken = saving in self._budget.savings
        log.log(
            logging.WARNING if taken else logging.INFO,
            "%s: %s", use, saving.message if taken else f"reverted: {saving.message}",
        )  # fmt: skip
        for source in self._throttled:
            source.slowdown_factor = self._budget.slowdown_factor
        for name, pausable in self._pausable.items():
            pausable.paused = name in self._budget.paused
        self._running().limit_lanes(self._budget.lanes)  # from the next slice on

    def _costs(self) -> list[SourceCost]:
        """Return the cost of each source but the self metrics."""
        return [
            self._cost(feed) for feed in self._running().feeds
            if not feed.absent and feed.name != NAME
        ]  # fmt: skip

    def _cost(self, feed: Feed) -> SourceCost:
        ns = int(feed.read_ns * _READS_PER_SECOND[feed.lane])
        return SourceCost(feed.name, feed.lane, ns, _scope(feed), feed.name in self._pausable)


def _is_up(feed: Feed, now_ns: int) -> bool:
    return not feed.broken and feed.outage(now_ns) is None


def _scope(feed: Feed) -> Scope:
    return find(feed.table_columns[0].metric).scope if feed.table_columns else Scope.NODE
