"""The OpenTelemetry sink: a thread that sends findings at once, and ``hw.status`` by the minute."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Protocol

from reveal_analyzer.sinks.otlp.client import OtlpClient, OtlpError
from reveal_analyzer.sinks.otlp.messages import Json, log_record, logs_message, status_message
from reveal_analyzer.telemetry.degraded import Degradation
from reveal_analyzer.telemetry.snapshot import SILENT_SECONDS, Snapshot
from reveal_contract.finding import FindingChange, FindingKind, FindingUpdate, Severity, State
from reveal_contract.metric import Subsystem
from reveal_contract.runtime.backoff import HALF_JITTER, Backoff
from reveal_contract.settings import AnalyzerSettings

log = logging.getLogger(__name__)

REASON = "OtlpNotSent"
OBSERVE = "observe"  # a mode in which findings are only counted
LOGS, METRICS = "/v1/logs", "/v1/metrics"
MOST_KEPT = 4096  # records while the receiver does not answer; the oldest are dropped
BATCH = 256
STATUS_SECONDS = 60.0
CLOSE_SECONDS = 3.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


class Client(Protocol):
    """Sends a message; raises ``OtlpError``."""

    endpoint: str

    def send(self, path: str, message: Mapping[str, Any]) -> None: ...


class OtlpSink:
    """A sink whose ``write`` never blocks, and never fails because of the receiver.

    Findings below ``least`` are not sent, unless they were above it before.  ``counts`` are records
    by result: sent, refused (the receiver does not take them) and dropped.
    """

    def __init__(
        self,
        client: Client,
        profile: str,
        least: Severity = Severity.LOW,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._profile = client, profile
        self._least, self._clock = least, clock
        self.counts = dict.fromkeys(("sent", "refused", "dropped"), 0)
        self._changed = threading.Condition()
        self._records: deque[tuple[str, Json]] = deque()
        self._open: dict[str, tuple[str, Subsystem]] = {}  # finding -> node, subsystem
        self._nodes: frozenset[str] = frozenset()
        self._problem = ""
        self._closing = False
        self._since_ns, self._status_s = time.time_ns(), clock()
        self._backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, HALF_JITTER)
        self._thread = threading.Thread(target=self._run, name="reveal-otlp", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def write(self, update: FindingUpdate) -> None:
        """Take an update; the thread sends it later."""
        finding = update.finding
        is_minor = finding.severity.rank < self._least.rank and finding.id not in self._open
        if update.change is FindingChange.SUSPECTED or is_minor:
            return
        record = log_record(update, self._profile, time.time_ns())
        with self._changed:
            self._open.pop(finding.id, None)
            if finding.state is State.OPEN and finding.kind is FindingKind.ANOMALY:
                self._open[finding.id] = finding.node_name, finding.subsystem
            self._records.append((finding.node_name, record))
            while len(self._records) > MOST_KEPT:
                self._records.popleft()
                self.counts["dropped"] += 1
            self._changed.notify()

    def forget(self, node: str, lost: str = "") -> None:
        """Forget the open findings of a node: another analyzer says how it is."""
        with self._changed:
            self._open = {id_: found for id_, found in self._open.items() if found[0] != node}

    def observe(self, snapshot: Snapshot) -> None:
        """Take which nodes are watched now."""
        heard = frozenset(
            name
            for name, node in snapshot.nodes.items()
            if snapshot.time_s - node.last_slice_s < SILENT_SECONDS
        )
        with self._changed:
            self._nodes = heard

    def degradations(self) -> Iterable[Degradation]:
        """Return why findings are not sent now, if that is so."""
        problem = self._problem
        return [Degradation(REASON, max(1, len(self._nodes)), problem)] if problem else []

    def close(self) -> None:
        """Send what is left, for a few seconds."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        pause = 0.0
        while True:
            closing = self._wait(pause)
            pause = 0.0 if self.step() else self._backoff.next()
            if closing and (pause or not self._records):
                return

    def _wait(self, pause: float) -> bool:
        """Wait until something is due, during an outage for ``pause`` s; return whether to end."""
        with self._changed:
            if pause:
                self._changed.wait_for(lambda: self._closing, pause)
            else:
                rest_s = max(0.0, self._status_s - self._clock())
                self._changed.wait_for(lambda: self._closing or bool(self._records), rest_s)
            return self._closing

    def step(self) -> bool:
        """Send what is due; return False for an outage."""
        try:
            while self._records:
                self._send_records()
            if self._clock() >= self._status_s and not self._closing:
                self._send_status()
        except OtlpError as error:
            self._note(f"{self._client.endpoint}: {error}")
            return False
        self._note("")
        self._backoff.reset()
        return True

    def _send_records(self) -> None:
        """Send a batch; the records stay while the receiver may take them later."""
        with self._changed:
            batch = list(islice(self._records, BATCH))
        result = "sent"
        try:
            self._client.send(LOGS, logs_message(batch))
        except OtlpError as error:
            if not error.is_final:
                raise
            result = "refused"
            log.warning("findings were not taken by %s: %s", self._client.endpoint, error)
        with self._changed:
            for record in batch:  # the oldest may have been dropped meanwhile
                if self._records and self._records[0] is record:
                    self._records.popleft()
            self.counts[result] += len(batch)

    def _send_status(self) -> None:
        with self._changed:
            degraded: dict[str, set[Subsystem]] = {node: set() for node in sorted(self._nodes)}
            for node, subsystem in self._open.values():
                if node in degraded:
                    degraded[node].add(subsystem)
        self._status_s = self._clock() + STATUS_SECONDS
        if degraded:
            message = status_message(degraded, self._since_ns, time.time_ns())
            self._client.send(METRICS, message)

    def _note(self, problem: str) -> None:
        """Keep what is wrong, and log a change of that."""
        if problem and not self._problem:
            log.warning("findings wait for the OpenTelemetry receiver: %s", problem)
        if self._problem and not problem:
            log.info("the OpenTelemetry receiver takes findings again")
        self._problem = problem


def sink_of(settings: AnalyzerSettings) -> OtlpSink | None:
    """Return the sink of the endpoint, whose thread runs; None without one."""
    if not settings.otlp_endpoint or settings.publish == OBSERVE:
        return None
    least = Severity(settings.min_severity)
    sink = OtlpSink(OtlpClient(settings.otlp_endpoint), settings.profile, least)
    sink.start()
    return sink
