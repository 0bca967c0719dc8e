"""The metrics of a node of a cluster, ranked for a span of time."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from reveal_cli.kubectl.cluster import Cluster
from reveal_cli.kubectl.node_history import recorded
from reveal_cli.kubectl.top import analyzers_of, stream_of
from reveal_cli.time_spans import Span, recent
from reveal_contract.finding import rfc3339
from reveal_contract.time_units import NS_PER_SECOND

if TYPE_CHECKING:
    from reveal_cli.ranking import SpanRanking

LATEST = Span("90", "120")  # seconds of the two minutes that the stream keeps
_STREAM_NS = 110 * NS_PER_SECOND
_BEFORE_NS, _AFTER_NS = 3600 * NS_PER_SECOND, 600 * NS_PER_SECOND  # the baseline of a span


class RankedNode:
    """A node of a profile, or of the first that has it; its stream is read once."""

    def __init__(self, cluster: Cluster, node: str, profile: str, namespace: str) -> None:
        self._cluster, self._name = cluster, node
        self._where = profile, namespace
        self._latest: bytes | None = None

    def ranking(self, asked: Span) -> SpanRanking:
        """Return the ranking of a span; raises ``CliError``.

        What is older than the stream comes from the history, with the hour before the span and the
        ten minutes after it as its baseline.
        """
        now_ns = time.time_ns()
        found = recent(asked, now_ns)
        if found is None or found[0] > now_ns - _STREAM_NS:
            return self._explained(self._stream(), asked)
        begin_ns, end_ns = found
        data = recorded(
            analyzers_of(self._cluster, *self._where), self._name,
            begin_ns - _BEFORE_NS, min(end_ns + _AFTER_NS, now_ns),
        )  # fmt: skip
        return self._explained(data, Span(rfc3339(begin_ns), rfc3339(end_ns)))

    def _stream(self) -> bytes:
        if self._latest is None:
            self._latest = stream_of(self._cluster, self._name, *self._where).recording()
        return self._latest

    def _explained(self, data: bytes, asked: Span) -> SpanRanking:
        from reveal_cli.ranking import explain_recording  # noqa: PLC0415 - heavy

        with tempfile.TemporaryDirectory(prefix="reveal-") as folder:
            recording = Path(folder) / f"{quote(self._name, safe='')}.rvl"
            recording.write_bytes(data)
            [ranking], _ = explain_recording(recording, [asked])
        return ranking
