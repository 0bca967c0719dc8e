"""Plays timelines to the analyzers of several checkouts at once, at full speed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import redis

from reveal_contract import names
from reveal_contract.time_units import NS_PER_SECOND
from scenariobench.analyzers import Analyzer, Analyzers, Checkout
from scenariobench.findings_file import FindingsFile, HeardRow
from scenariobench.playback import Arm, Playback
from scenariobench.stream import NodeStream
from scenariobench.timeline import AnalyzerChange, Timeline
from scenariobench.truth import TrueValues

_PER_SECOND = 200  # slices, that are played at least in a second of real time
_SETTLE_S = 31  # until an analyzer that has just taken a shard hands it over
_DAY_S = 86_400
_DAYS = 1000


@dataclass
class Played:
    """What the analyzers of one checkout reported, and the clock it is on."""

    checkout: str
    start_ns: int
    rows: list[HeardRow]
    failures: list[str] = field(default_factory=list)  # errors in the logs of the analyzers


@dataclass
class PlayedTimeline:
    timeline: Timeline
    played: list[Played]
    values: dict[str, TrueValues]  # by the name of the truth


@dataclass
class Player:
    """Plays timelines.  Those that do not change the analyzer share one of each checkout."""

    client: redis.Redis
    url: str
    folder: Path
    checkouts: Sequence[Checkout]
    start_s: int = 12  # of real time that may pass until an analyzer is changed, beside its slices
    _shared: dict[str, tuple[Analyzers, Analyzer]] = field(default_factory=dict)
    _days: int = 0

    def play(self, timeline: Timeline) -> PlayedTimeline:
        """Play one timeline; raises ``AnalyzerError`` or ``StreamError``."""
        with contextlib.ExitStack() as stack:
            arms = [self._arm(timeline, checkout, stack) for checkout in self.checkouts]
            start_ns = self._start_s(timeline) * NS_PER_SECOND
            playback = Playback(self.client, timeline, arms, start_ns)
            stack.callback(playback.clear)
            values = playback.run()
            played = [
                Played(
                    arm.analyzers.checkout.name, start_ns, arm.findings.rows,
                    arm.analyzers.failures(),
                )
                for arm in arms
            ]  # fmt: skip
        return PlayedTimeline(timeline, played, values)

    def close(self) -> None:
        for analyzers, _ in self._shared.values():
            analyzers.close()
        self._shared.clear()

    def _arm(self, timeline: Timeline, checkout: Checkout, stack: contextlib.ExitStack) -> Arm:
        if timeline.events:
            profile = f"{timeline.node}.{checkout.name}"
            analyzers = self._analyzers(checkout, profile, names.shard(timeline.node))
            stack.callback(analyzers.close)
            active = analyzers.start()
            analyzers.wait_owner(active)
        else:
            analyzers, active = self._pool(checkout)
        stream = NodeStream(self.client, analyzers.profile, timeline.node)
        return Arm(analyzers, stream, FindingsFile(analyzers.findings, timeline.node), active)

    def _pool(self, checkout: Checkout) -> tuple[Analyzers, Analyzer]:
        if checkout.name not in self._shared:
            analyzers = self._analyzers(checkout, f"shared.{checkout.name}", 0)
            active = analyzers.start()
            analyzers.wait_owner(active)
            self._shared[checkout.name] = analyzers, active
        analyzers, active = self._shared[checkout.name]
        if active.process.poll() is not None:
            del self._shared[checkout.name]  # the next timeline gets another one
        active.require_alive()
        return analyzers, active

    def _analyzers(self, checkout: Checkout, profile: str, shard: int) -> Analyzers:
        return Analyzers(checkout, profile, shard, self.client, self.url, self.folder / profile)

    def _start_s(self, timeline: Timeline) -> int:
        """Return the node's clock at the first second.

        Where the analyzer changes, that happens now by the clock of the node, too.  Others are
        played on days of their own: nodes of one minute would be compared with each other.
        """
        now_s = int(time.time())
        if not timeline.events:
            self._days += 1
            return now_s - (_DAYS - self._days) * _DAY_S
        event = timeline.events[0]
        takes = event.second // _PER_SECOND + self.start_s
        if event.change is AnalyzerChange.SCALE:
            takes = max(takes, _SETTLE_S)
        return now_s + takes - event.second
