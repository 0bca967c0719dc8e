"""One step of keeping the samples of a finding: read what is new, add it to what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from reveal_analyzer.evidence.channels import MOST_CHANNELS, channels_of, named_identities
from reveal_analyzer.evidence.excerpt import ChannelName, Excerpt
from reveal_analyzer.evidence.observed import ObservedChannels
from reveal_analyzer.evidence.samples import KeptSlice, Samples, fitted
from reveal_analyzer.evidence.store import EvidenceStore
from reveal_analyzer.evidence.timing import span_of
from reveal_analyzer.state.records import save_record
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import Finding
from reveal_contract.recording import RecordingError
from reveal_contract.subjects import Identity, to_rows
from reveal_contract.wire import Message, WireError

Slice = tuple[Message, ChannelTable]
_MOST_TABLES = 4


class SliceSource(Protocol):
    """Where slices come from, and the names of subjects."""

    def since(self, node: str, since_ns: int) -> Sequence[Slice]:
        """Return the slices of a node after a moment, in the order of time."""

    def subjects(self, node: str) -> Iterable[Identity]:
        """Return the node's subjects."""

    def close(self) -> None:
        """Release what is open."""


class Step(NamedTuple):
    """Whether samples of a finding are kept, and whether nothing more is to come."""

    kept: bool
    complete: bool


@dataclass(frozen=True)
class EvidenceWriter:
    """Keeps the samples of findings in ``store``, at most ``most_bytes`` of each."""

    source: SliceSource
    store: EvidenceStore
    most_bytes: int

    def step(self, finding: Finding, *, whole: bool, late: bool) -> Step:
        """Add what is new.

        ``whole`` reads the window from its begin, with the channels that show the finding now.
        ``late`` means that nothing more is expected.
        """
        span = span_of(finding)
        kept = self._kept(finding.id)
        newest_ns = kept.newest_ns
        since_ns = span.first_ns - 1 if whole or newest_ns is None else newest_ns
        slices = self.source.since(finding.node_name, since_ns)
        identities = list(self.source.subjects(finding.node_name))
        samples = kept
        if slices:
            fresh = _excerpts(slices, None if whole else kept, finding, identities)
            # the stream may have dropped what was kept of the begin
            since_ns = max(since_ns, slices[0][0].start_ns - 1)
            samples = kept.since_replaced(since_ns, fresh)
        complete = late or _is_after(samples.newest_ns, span.last_ns)
        if samples.slices:
            notes = notes_of(finding, identities)
            encoded, most = self.store.encoded, self.most_bytes
            _, data = fitted(samples, span, notes, encoded, most)
            unfinished = None if complete else {"finding": save_record(finding)}
            self.store.put(finding.id, data, unfinished)
        return Step(bool(samples.slices), complete)

    def close(self) -> None:
        """Release the connections."""
        self.source.close()
        self.store.close()

    def _kept(self, name: str) -> Samples:
        """Return what is kept so far; nothing where it cannot be read."""
        try:
            data = self.store.get(name)
            return Samples.from_recording(data) if data is not None else Samples()
        except (RecordingError, WireError):
            return Samples()


def notes_of(finding: Finding, identities: Iterable[Identity]) -> tuple[Mapping[str, Any], ...]:
    """Return the notes of a recording of the finding."""
    subjects = to_rows(named_identities(finding, identities))
    return (
        {"finding": finding.to_dict()},
        {"node": finding.node_name, "subjects": subjects},
    )


class Excerpts:
    """Takes slices with the named channels only; each table is searched once."""

    def __init__(self, names: Iterable[ChannelName]) -> None:
        self._names = frozenset(names)
        self._by_table: dict[bytes, Excerpt] = {}

    def of(self, slices: Iterable[Slice]) -> list[KeptSlice]:
        """Return the slices that have any of the channels."""
        found = []
        for message, table in slices:
            if table.key not in self._by_table:
                self._by_table[table.key] = Excerpt.of(table, self._names)
            excerpt = self._by_table[table.key]
            if excerpt.fast.size or excerpt.slow.size:
                found.append(KeptSlice.of(excerpt.apply(message), excerpt.table))
        return found


def chosen_channels(
    slices: Sequence[Slice], finding: Finding, identities: Iterable[Identity]
) -> tuple[ChannelName, ...]:
    """Return the channels that show the finding in any of the last tables since its onset.

    A subject that ended is in the earlier tables only.
    """
    known = list(identities)
    since = [table for message, table in slices if message.start_ns >= finding.first_observed_ns]
    recent = {table.key: table for table in reversed(since or [slices[-1][1]])}
    names: dict[ChannelName, None] = {}
    for table in [*recent.values()][:_MOST_TABLES]:
        names |= dict.fromkeys(channels_of(finding, ObservedChannels.of(slices, table), known))
    return tuple(names)[:MOST_CHANNELS]


def _excerpts(
    slices: Sequence[Slice], kept: Samples | None, finding: Finding, identities: Iterable[Identity]
) -> list[KeptSlice]:
    """Return the slices with the channels that are kept already, else with those that show it."""
    if kept is not None and kept.slices:
        tables = {each.table.key: each.table for each in kept.slices}.values()
        names = [
            (channel.metric, channel.instance)
            for table in tables
            for channel in (*table.fast, *table.slow)
        ]
        return Excerpts(names).of(slices)
    return Excerpts(chosen_channels(slices, finding, identities)).of(slices)


def _is_after(newest_ns: int | None, last_ns: int | None) -> bool:
    return newest_ns is not None and last_ns is not None and newest_ns >= last_ns - 10**9
