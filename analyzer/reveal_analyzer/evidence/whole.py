"""The samples of a finding from slices that are all there, as in the recording of a scan: pure."""

from __future__ import annotations

from collections.abc import Iterable

from reveal_analyzer.evidence.piece import Excerpts, Slice, chosen_channels, notes_of
from reveal_analyzer.evidence.samples import KeptSlice, Samples, fitted
from reveal_analyzer.evidence.timing import AROUND_S, span_of
from reveal_contract.finding import Finding
from reveal_contract.subjects import Identity
from reveal_contract.time_units import NS_PER_SECOND


class WholeEvidence:
    """Takes the slices of a node in their order, and keeps those that show one finding.

    The channels are chosen when the minute after the onset is over.
    """

    def __init__(self, finding: Finding, identities: Iterable[Identity], most_bytes: int) -> None:
        self.finding = finding
        self._identities, self._most_bytes = list(identities), most_bytes
        self._span = span_of(finding)
        self._onset_end_ns = finding.first_observed_ns + AROUND_S * NS_PER_SECOND
        self._first: list[Slice] = []  # until the channels are chosen
        self._excerpts: Excerpts | None = None
        self._kept: list[KeptSlice] = []

    def add(self, each: Slice) -> None:
        """Take the next slice of the node."""
        start_ns, last_ns = each[0].start_ns, self._span.last_ns
        if start_ns < self._span.first_ns or (last_ns is not None and start_ns > last_ns):
            return
        if self._excerpts is None and start_ns <= self._onset_end_ns:
            self._first.append(each)
            return
        excerpts = self._chosen()  # keeps the first ones
        self._kept += excerpts.of([each])

    def recording(self) -> bytes:
        """Return the recording.

        It is empty where there is no slice around the onset, or no channel that shows the finding.
        """
        self._chosen()
        if not self._kept:
            return b""
        notes = notes_of(self.finding, self._identities)
        samples = Samples(tuple(self._kept))
        _, data = fitted(samples, self._span, notes, bytes, self._most_bytes)
        return data

    def _chosen(self) -> Excerpts:
        """Return the channels, which the slices around the onset choose once."""
        if self._excerpts is not None:
            return self._excerpts
        first, self._first = self._first, []
        chosen = chosen_channels(first, self.finding, self._identities) if first else ()
        self._excerpts = Excerpts(chosen)
        self._kept = self._excerpts.of(first)
        return self._excerpts
