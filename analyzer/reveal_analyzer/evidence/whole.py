"""The samples of a finding from slices that are all there, as in the recording of a scan: pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from reveal_analyzer.evidence.piece import Slice, chosen_channels, excerpts, notes_of
from reveal_analyzer.evidence.samples import Samples, fitted
from reveal_analyzer.evidence.timing import AROUND_S, span_of
from reveal_contract.finding import Finding
from reveal_contract.subjects import Identity
from reveal_contract.time_units import NS_PER_SECOND


def evidence_of(
    finding: Finding, slices: Iterable[Slice], identities: Iterable[Identity], most_bytes: int
) -> bytes:
    """Return the recording of a finding; ``slices`` of its node are read once, in order.

    It is empty where there is no slice of the finding's time, or no channel that shows it.
    """
    span, known = span_of(finding), list(identities)
    rest = iter(slices)
    onset_end_ns = finding.first_observed_ns + AROUND_S * NS_PER_SECOND
    first, following = _until(rest, span.first_ns, onset_end_ns)
    if not first:
        return b""
    names = chosen_channels(first, finding, known)
    kept = excerpts(first, names)
    last_ns = span.last_ns
    for each in chain(following, rest):
        if last_ns is not None and each[0].start_ns > last_ns:
            break
        kept += excerpts([each], names)
    if not kept:
        return b""
    _, data = fitted(Samples(tuple(kept)), span, notes_of(finding, known), bytes, most_bytes)
    return data


def _until(slices: Iterator[Slice], first_ns: int, last_ns: int) -> tuple[list[Slice], list[Slice]]:
    """Return the slices of a span, and the slice after it that was read."""
    found: list[Slice] = []
    for each in slices:
        if each[0].start_ns > last_ns:
            return found, [each]
        if each[0].start_ns >= first_ns:
            found.append(each)
    return found, []
