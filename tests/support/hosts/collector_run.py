"""The whole collector over a made-up host: from its files to decoded messages, as text.

Every tick the host's time goes on, the sources are read, and what comes out of the wire is
written one channel a line, so that a difference between two runs shows what changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reveal_collector.readers.background import BackgroundSource
from reveal_collector.readers.raw_slice import RawSlice, SliceOrigin
from reveal_collector.registry import MissingSource, probe_all
from reveal_collector.sampling.sampler import Sampler
from reveal_collector.shipping.native_encoder import encoder_of
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.settings import CollectorSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message, decode, gauges
from support.hosts.pods import POD_LIST
from support.hosts.tree import Tree

NODE = "made-up"
SLICES = 3
# instances of a metric shown one by one; of more their sum, range and a digest
MAX_LISTED = 12
# ask this machine itself: what they give is no property of the tree
LIVE_ONLY = ("perf", "tracepoints", "qdisc", "tcpdiag")


class TreeClock:
    """Time passes by sleeping, and the tree moves with it once all threads have read it."""

    def __init__(self, tree: Tree, threads: Sequence[BackgroundSource]) -> None:
        self._tree, self._threads = tree, threads
        self._begun = tree.now.time
        self.now = 3600 * NS_PER_SECOND

    def monotonic(self) -> int:
        return self.now

    def wall(self) -> int:
        return 1_760_000_000 * NS_PER_SECOND + self.now

    def suspended(self) -> int:
        return 0

    def sleep_until(self, monotonic_ns: int) -> None:
        self.now = max(self.now, monotonic_ns)
        passed = self.now // 1_000_000 - 3_600_000 - (self._tree.now.time - self._begun)
        if passed > 0:
            for thread in self._threads:
                assert thread.settle(20), f"{thread.name} does not come back"
            self._tree.advance(passed / 1000)


@dataclass
class Outcome:
    """What came out: decoded messages with their tables, and what did not open."""

    missing: Sequence[MissingSource]
    messages: list[tuple[ChannelTable, Message]] = field(default_factory=list)

    def values(self) -> dict[str, list[str]]:
        """Channel label -> its value in each slice, in base units, as text."""
        return {channel.label: texts for channel, texts in self._rows()}

    def _rows(self) -> Iterator[tuple[Channel, list[str]]]:
        by_channel: dict[Channel, list[str]] = {}
        for index, (table, message) in enumerate(self.messages):
            for channel, text in _slice_rows(table, message):
                by_channel.setdefault(channel, ["absent"] * len(self.messages))[index] = text
        yield from sorted(by_channel.items(), key=lambda item: _order(item[0]))

    def text(self, root: str) -> str:
        """The golden: channels, then what is missing and why; ``root`` is left out of paths."""
        lines = []
        metrics: dict[str, list[tuple[Channel, list[str]]]] = {}
        for channel, texts in self._rows():
            metrics.setdefault(channel.metric, []).append((channel, texts))
        for metric, rows in metrics.items():
            lines += _lines(metric, rows)
        lines += ["", "missing:"]
        lines += sorted(
            f"  {item.source}: {item.reason}".replace(root, "") for item in self.missing
        )
        return "\n".join([*lines, ""])


def run(tree: Tree, settings: CollectorSettings | None = None, slices: int = SLICES) -> Outcome:
    """Sample the host for some seconds with every source that reads files."""
    settings = settings or settings_of(tree)
    probed = probe_all(tree.roots, settings)
    outcome = Outcome(probed.missing)
    encoder = encoder_of(SliceOrigin(NODE, bytes(16), 100_000))

    def deliver(raw: RawSlice) -> None:
        message = decode(encoder.encode(raw), gauges(raw.table))
        outcome.messages.append((ChannelTable.from_json(raw.table.to_json()), message))

    tree.pace("sys", 1.0)  # nothing there is read more often,
    for disk in (tree.root / "sys/block").glob("*/stat"):  # but the disks
        tree.pace(f"sys/block/{disk.parent.name}", 0.0)
    threads = [source for source in probed.sources if isinstance(source, BackgroundSource)]
    clock = TreeClock(tree, threads)
    sampler = Sampler(NODE, probed.sources, deliver, clock=clock)
    try:
        due = sampler.first_due()
        for _ in range(slices):
            sampler.rare_lane.run_due(clock.now)
            due = sampler.take_slice(due)
    finally:
        for feed in sampler.feeds:
            feed.source.close()
    return outcome


def settings_of(tree: Tree, **changed: object) -> CollectorSettings:
    # the fine lane samples in a thread of its own, whatever the tree's clock says
    given = {
        "node": NODE, "redisUrl": "", "procRoot": str(tree.roots.proc),
        "sysRoot": str(tree.roots.sys), "cgroupRoot": str(tree.roots.cgroup), "fineLane": "off",
    }  # fmt: skip
    if (pods := tree.root / POD_LIST).exists():
        given |= {"podSource": "file", "podFile": str(pods)}
    return CollectorSettings.from_mapping(given | changed)


def _order(channel: Channel) -> tuple[str, list[tuple[int, str]]]:
    """By metric, then by instance as people count: cpu2 before cpu10."""
    parts = re.split(r"(\d+)", channel.instance)
    return channel.metric, [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _slice_rows(table: ChannelTable, message: Message) -> Iterator[tuple[Channel, str]]:
    for index, channel in enumerate(table.fast):
        present = [int(v) for v in message.fast[~message.fast_missing[:, index], index]]
        yield channel, _formatted(channel, present, len(message.fast))
    for index, channel in enumerate(table.slow):
        present = [] if message.slow_missing[index] else [int(message.slow[index])]
        yield channel, _formatted(channel, present, 1)


def _formatted(channel: Channel, present: list[int], ticks: int) -> str:
    """A counter's sum, a level's mean over the ticks; what was not read is counted after ``?``."""
    lost = f"?{ticks - len(present)}" if len(present) < ticks else ""
    if not present:
        return "missing"
    value = sum(present) * channel.scale
    if channel.kind is not Kind.COUNTER:
        value /= len(present)
    return f"{value:.6g}{lost}"


def _lines(metric: str, rows: Sequence[tuple[Channel, list[str]]]) -> Iterator[str]:
    facts = f"[{rows[0][0].kind.value}, {find(metric).unit}, {rows[0][0].lane.value}]"
    singles = [row for row in rows if not row[0].instance]
    parts = [row for row in rows if row[0].instance]
    if len(parts) <= MAX_LISTED:
        singles += parts
        parts = []
    yield from (f"{channel.label} {' '.join(texts)} {facts}" for channel, texts in singles)
    if parts:
        yield f"{metric}{{*}} {_summary(parts)} {facts}"


def _summary(rows: Sequence[tuple[Channel, list[str]]]) -> str:
    """Many instances as one line: what the last slice held, and a digest of all of it."""
    text = "\n".join(f"{channel.label} {' '.join(texts)}" for channel, texts in rows)
    last = [texts[-1].partition("?")[0] for _, texts in rows]
    numbers = sorted(float(word) for word in last if word not in ("missing", "absent"))
    parts = [f"{len(rows)} instances {rows[0][0].instance} ... {rows[-1][0].instance}"]
    if numbers:
        parts.append(f"sum {sum(numbers):.6g} min {numbers[0]:.6g} max {numbers[-1]:.6g}")
    if len(numbers) < len(last):
        parts.append(f"{len(last) - len(numbers)} missing")
    return ", ".join([*parts, hashlib.sha256(text.encode()).hexdigest()[:8]])
