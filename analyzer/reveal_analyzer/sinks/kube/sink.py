"""The Kubernetes sink: a thread that writes what the report store says is due."""

from __future__ import annotations

import importlib.util
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from reveal_analyzer.sinks.kube import backoff
from reveal_analyzer.sinks.kube.api import SinkApi, connect
from reveal_analyzer.sinks.kube.cluster_nodes import ClusterNodes
from reveal_analyzer.sinks.kube.delivery import Delivery
from reveal_analyzer.sinks.kube.entry import ReportEntry
from reveal_analyzer.sinks.kube.node_conditions import NodeConditions
from reveal_analyzer.sinks.kube.pod_owners import PodOwners
from reveal_analyzer.sinks.kube.profile_telemetry import ProfileTelemetry
from reveal_analyzer.sinks.kube.report_store import ListedReport, ReportStore
from reveal_analyzer.sinks.kube.spool import Spool
from reveal_analyzer.sinks.kube.stopped import StoppedReports
from reveal_analyzer.sinks.kube.token_reviews import TokenReviews
from reveal_analyzer.stream.redis_connection import connect as connect_redis
from reveal_analyzer.telemetry.degraded import Degradation
from reveal_analyzer.telemetry.node_records import IsProven
from reveal_analyzer.telemetry.snapshot import Snapshot
from reveal_contract.finding import FindingUpdate
from reveal_contract.kube.anomaly_report import ReportOwner
from reveal_contract.kube.errors import (
    ApiError,
    ForbiddenError,
    InvalidObjectError,
    NotFoundError,
    UnavailableError,
)
from reveal_contract.kube.names import NAMESPACE_VARIABLE, POD_VARIABLE
from reveal_contract.kube.silence import silence_of
from reveal_contract.settings import AnalyzerSettings, SettingsError

log = logging.getLogger(__name__)

ROUND_SECONDS = 1.0
LIST_SECONDS = 600.0  # between two lists of the open reports
SERIES_SECONDS = 60.0
SILENCE_SECONDS = 30.0  # between two looks at who silenced what puts a condition on its node
MAX_FAILURES = 5  # reports that fail in one round: then the API fails, and not the reports
CLOSE_SECONDS = 3.0  # for the last reports; the spool keeps what is left


class Telemetry(Protocol):
    """Writes the telemetry of the profile; see ``profile_telemetry``."""

    def check_origin(self, is_proven: IsProven) -> None: ...

    def step(self, api: SinkApi, snapshot: Snapshot) -> None: ...

    def close(self) -> None: ...


def sink_of(
    settings: AnalyzerSettings, owner: str, kubeconfig: Path | None, folder: Path | None
) -> KubeSink | None:
    """Return the sink that ``settings.publish`` asks for; None for "none".

    Raises ``SettingsError`` where there is no way to the API.
    """
    if settings.publish == "none":
        if kubeconfig is not None:
            raise SettingsError("--kubeconfig: needs --publish observe or kubernetes")
        return None
    if importlib.util.find_spec("kubernetes") is None:
        raise SettingsError(
            f"publish: {settings.publish} needs the Kubernetes client:"
            " pip install 'kubernetes>=37,<38'"
        )
    telemetry = ProfileTelemetry(connect_redis(settings.redis_url), settings.profile, owner)
    instance = os.environ.get(POD_VARIABLE) or owner
    return KubeSink(settings, connect(kubeconfig), instance, folder, telemetry)


class KubeSink:
    """A sink whose ``write`` never blocks, and never fails because of the API.

    With ``settings.publish`` "observe" only ``telemetry`` is written; the leader resolves what an
    earlier run left open.  ``instance`` is the pod's name, ``folder`` is where pending reports
    survive a restart.
    """

    def __init__(
        self,
        settings: AnalyzerSettings,
        api: SinkApi,
        instance: str,
        folder: Path | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._profile, self._api, self._telemetry = settings.profile, api, telemetry
        self._writes_reports = settings.publish == "kubernetes"
        self._store = ReportStore(settings)
        self._spool = Spool(folder if self._writes_reports else None)
        self._delivery = Delivery(api, instance)
        self._conditions = NodeConditions(
            api,
            settings.profile,
            enabled=self._writes_reports and settings.node_conditions,
            most_percent=settings.max_node_conditions_percent,
        )
        self._stopped = StoppedReports(api, self._delivery, with_events=settings.events)
        self._nodes = ClusterNodes(api) if settings.cluster_nodes_only else None
        self.pods = PodOwners(api) if settings.join_pods else None
        self.tokens = TokenReviews(api, settings.profile, os.environ.get(NAMESPACE_VARIABLE, ""))
        self._backoff, self._telemetry_backoff = backoff.ApiBackoff(), backoff.ApiBackoff()
        self._nodes_backoff, self._tokens_backoff = backoff.ApiBackoff(), backoff.ApiBackoff()
        self._pods_backoff = backoff.ApiBackoff()
        self._changed = threading.Condition()
        self._spooling = threading.Lock()
        self._has_updates = self._closing = False
        self._is_broken = False  # a part of the last round failed by a defect
        self._snapshot: Snapshot | None = None
        self._observed: Snapshot | None = None
        self._listed_s: float | None = None
        self._series_s = self._silences_s = 0.0
        self._owner: ReportOwner | None = None
        self._spooled: list[tuple[str, int]] = []
        self._store.restore(self._spool.load())
        self._thread = threading.Thread(target=self._run, name="reveal-kubernetes", daemon=True)
        self._thread.start()

    def is_node(self, name: str) -> bool | None:
        """Return whether the cluster has a node; None where that is not known, or not asked."""
        return None if self._nodes is None else self._nodes.is_node(name)

    def check_origin(self, is_proven: IsProven) -> None:
        """Use only what proves its origin of what collectors report."""
        if self._telemetry is not None:
            self._telemetry.check_origin(is_proven)

    def write(self, update: FindingUpdate) -> None:
        """Take an update; the thread delivers it later."""
        if self._writes_reports:
            with self._changed:
                self._store.update(update, time.monotonic())
                self._has_updates = True
                self._changed.notify()

    def degradations(self) -> list[Degradation]:
        """Return what is withheld from the API."""
        return self._conditions.degradations()

    def forget(self, node: str, lost: str = "") -> None:
        """Do nothing: what ``observe`` takes says which reports are not observed any more."""

    def observe(self, snapshot: Snapshot) -> None:
        """Take what this analyzer watches now."""
        with self._changed:
            previous, self._snapshot = self._snapshot, snapshot
            if previous is None or _gained_nodes(previous, snapshot):
                self._listed_s = None
                self._store.forget_listed()

    def counts(self) -> dict[str, int]:
        """Return counts for ``sinks.metrics.KubeSinkMetrics``."""
        with self._changed:
            waiting, dropped = len(self._store.pending()), dict(self._store.counts)
        reports = dict(self._delivery.reports) | dropped
        return {
            "up": int(self._backoff.up and self._telemetry_backoff.up and not self._is_broken),
            "waiting": waiting,
            "corrupt": self._spool.corrupt,
            **{f"report {key}": value for key, value in reports.items()},
            **{f"event {key}": value for key, value in self._delivery.events.items()},
        }

    def close(self) -> None:
        """Deliver what can be delivered in ``CLOSE_SECONDS``, keep the rest on disk."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(CLOSE_SECONDS)
        if left := self._write_spool():
            log.warning("%d reports could not be delivered before the end", left)

    def _run(self) -> None:
        while not self._closing:
            self._round()
            with self._changed:
                if not (self._closing or self._has_updates or self._has_tokens):
                    self._changed.wait(ROUND_SECONDS)
                self._has_updates = False
        if self._backoff.ready(time.monotonic()):
            self._round()
            self._delivery.close()
        if self._telemetry is not None:
            self._telemetry.close()
        self._api.close()

    def _round(self) -> None:
        """Do one round; a defect costs that part of it only, and is logged."""
        parts = (self._review_tokens, self._write_telemetry, self._read_nodes, self._write_or_stop)
        done = [self._attempt(part) for part in parts]  # a defect of one does not stop the others
        self._is_broken = not all(done)

    def _attempt(self, part: Callable[[], None]) -> bool:
        """Do a part of a round; return False for a defect."""
        try:
            part()
        except Exception:
            log.exception("a round of the Kubernetes sink failed")
            return False
        return True

    def _write_or_stop(self) -> None:
        """Write what is due of the reports, or end them in a mode without reports."""
        if not self._writes_reports:
            _request(self._stop_reports, self._backoff)
            return
        self._observe_snapshot()
        _request(self._write_reports, self._backoff)
        self._write_spool()

    def _write_telemetry(self) -> None:
        snapshot = self._snapshot
        if self._telemetry is None or snapshot is None:
            return
        step, api = self._telemetry.step, self._api
        _request(lambda _: step(api, snapshot), self._telemetry_backoff)

    def _read_nodes(self) -> None:
        if self._nodes is not None:
            _request(self._nodes.step, self._nodes_backoff)
        if self.pods is not None:
            _request(self.pods.step, self._pods_backoff)

    @property
    def _has_tokens(self) -> bool:
        return self.tokens.waiting and self._tokens_backoff.ready(time.monotonic())

    def _review_tokens(self) -> None:
        _request(self.tokens.step, self._tokens_backoff)

    def _write_reports(self, now: float) -> None:
        self._list(now)
        self._deliver()
        self._read_silences(now)
        self._write_conditions()
        self._write_series(now)

    def _stop_reports(self, now: float) -> None:
        """Resolve the reports that are still open, and remove the node conditions; the leader does.

        It looks again from time to time: an analyzer with the earlier settings may end later.
        """
        snapshot = self._snapshot
        if snapshot is None or not snapshot.leads or not self._is_list_due(now):
            return
        for node in self._stopped.resolve_all(self._read_owner(), now, time.time_ns()):
            self._conditions.recheck([node])
        self._conditions.update({}, time.time_ns())
        self._listed_s = now

    def _observe_snapshot(self) -> None:
        with self._changed:
            if self._snapshot is not None and self._snapshot is not self._observed:
                self._store.observe(self._snapshot, time.time_ns())
                self._observed = self._snapshot

    def _list(self, now: float) -> None:
        """Read the profile and its open reports: at first, on new nodes, every ten minutes."""
        snapshot = self._snapshot
        if snapshot is None or not snapshot.shards:
            return  # which nodes are ours is not known yet
        if not self._is_list_due(now):
            return
        self._owner = self._read_owner()
        found = self._api.open_reports(self._profile)
        listed = [report for item in found if (report := ListedReport.parse(item))]
        with self._changed:
            # Nodes that were gained during the list may have reports that it misses: list again.
            if self._snapshot is snapshot or not _gained_nodes(snapshot, self._snapshot):
                self._store.set_listed(listed, now)
                self._listed_s = now
        nodes = self._conditions.nodes_of(each.report for each in listed)
        self._conditions.recheck(node for node in nodes if snapshot.owns(node))

    def _is_list_due(self, now: float) -> bool:
        return self._listed_s is None or now - self._listed_s >= LIST_SECONDS

    def _read_owner(self) -> ReportOwner:
        try:
            found = self._api.profile(self._profile)
        except NotFoundError as error:
            raise ForbiddenError(f"there is no RevealProfile {self._profile}: {error}") from None
        metadata = found["metadata"]
        return ReportOwner(self._profile, metadata["uid"], int(metadata.get("generation", 1)))

    def _deliver(self) -> None:
        with self._changed:
            now, now_ns = time.monotonic(), time.time_ns()
            self._store.admit(now, now_ns)
            due = self._store.due(now, now_ns)
            self._delivery.verified.extend(self._store.pop_verified())
        self._write_spool()
        self._deliver_all(due)
        self._delivery.write_verified()

    def _read_silences(self, now: float) -> None:
        """Read who silenced which urgent report, where such a report puts a condition on a node.

        For Events the response to each write is enough.
        """
        if not self._conditions.enabled or now < self._silences_s:
            return
        with self._changed:
            has_urgent = self._store.has_urgent
        if not has_urgent:
            return
        self._silences_s = now + SILENCE_SECONDS
        found = self._api.urgent_metadata(self._profile)
        silences = {item["metadata"]["name"]: silence_of(item) for item in found}
        with self._changed:
            self._store.set_silences(silences)

    def _write_conditions(self) -> None:
        """Follow the reports that the API has by now: what was just delivered is among them."""
        now_ns = time.time_ns()
        with self._changed:
            urgent = self._store.urgent_by_node(now_ns)
        self._conditions.update(urgent, now_ns)

    def _deliver_all(self, due: Sequence[ReportEntry]) -> None:
        """Deliver each report; one that the API fails for stops the others only after some."""
        failed = 0
        for entry in due:
            try:
                self._deliver_entry(entry)
            except UnavailableError as error:
                failed += 1
                if not error.concerns_object or failed == MAX_FAILURES:
                    raise
                entry.attempts += 1
                pause = backoff.pause_s(entry.attempts, backoff.FIRST_S)
                entry.retry_s = time.monotonic() + pause
                log.warning("report %s waits, others do not: %s", entry.report.name, error)

    def _deliver_entry(self, entry: ReportEntry) -> None:
        assert self._owner is not None
        try:
            written = self._delivery.deliver(entry, self._owner, time.monotonic(), time.time_ns())
        except InvalidObjectError as error:
            self._delivery.reports["invalid"] += 1
            name = entry.report.name
            log.error("the API rejects report %s, it is dropped: %s", name, error)
            with self._changed:
                self._store.drop_invalid(entry)
        else:
            with self._changed:
                self._store.delivered(entry, written, time.monotonic())

    def _write_series(self, now: float) -> None:
        if now >= self._series_s:
            self._series_s = now + SERIES_SECONDS
            self._delivery.write_due_series(time.time_ns())

    def _write_spool(self) -> int:
        """Write the pending reports to disk where they changed; return how many there are."""
        with self._spooling:  # not under the other lock: the analysis must not wait for a disk
            with self._changed:
                pending = self._store.pending()
            content = [
                (entry.report.name, hash((entry.report.core, len(entry.events))))
                for entry in pending
            ]
            if content != self._spooled:
                self._spooled = content
                self._spool.write(pending)
            return len(pending)


def _request(requests: Callable[[float], None], pauses: backoff.ApiBackoff) -> None:
    """Send requests if the API accepts them now; ``requests`` takes the time."""
    now = time.monotonic()
    if not pauses.ready(now):
        return
    try:
        requests(now)
    except ApiError as error:
        pauses.failed(error, time.monotonic())
    else:
        pauses.succeeded()


def _gained_nodes(before: Snapshot, now: Snapshot | None) -> bool:
    """Whether nodes are ours now that were another analyzer's."""
    if now is None:
        return False
    return not now.shards <= before.shards or (now.leads and not before.leads)
