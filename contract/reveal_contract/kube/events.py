"""Events of operator and analyzer: pure; the caller sends them.

An Event is written when a state changes, once for each change.  What happens again within minutes
is a *series* of the first Event: its count grows, and is written at the second time, then every
half hour and at the end.  The rules are those of the API (validation of ``events.k8s.io/v1``) and
of the recorder of client-go (``tools/events``).

``EventRecorder.record`` returns the ``Posting`` to send now, or nothing.  ``EventRecorder.due``,
called once a minute, returns the series to write.  A posting that is lost is lost: Events are for
people.  What the Events on findings say is in the analyzer, ``sinks.kube.event_texts``.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from reveal_contract.kube.names import API_VERSION, PROFILE_KIND, REPORT_KIND, clipped
from reveal_contract.runtime.token_bucket import KeyedTokenBuckets
from reveal_contract.time_units import NS_PER_MINUTE, NS_PER_SECOND

EVENTS_API = "events.k8s.io/v1"
NORMAL, WARNING = "Normal", "Warning"
DEFAULT_NAMESPACE = "default"  # of Events on objects that have none: the API takes no other

MAX_NOTE = 1024  # bytes
MAX_INSTANCE = 128

FINISH_NS = 6 * NS_PER_MINUTE  # a series without news for so long has ended
REFRESH_NS = 30 * NS_PER_MINUTE  # between two writes of a series that goes on
MAX_SERIES = 4096
BURST, EVERY_S = 25, 300.0  # of one object: so many at once, then one in so many seconds
_MAX_NAME = 253


@dataclass(frozen=True, slots=True)
class EventReason:
    """Reason, action and type of an Event: constants that people filter by.

    ``once``: a pair of objects has one such Event, whichever process writes it.
    """

    name: str
    action: str
    type: str
    once: bool = False


ANOMALY_DETECTED = EventReason("AnomalyDetected", "Detect", WARNING, once=True)
ANOMALY_ESCALATED = EventReason("AnomalyEscalated", "Escalate", WARNING)
ANOMALY_CONTINUES = EventReason("AnomalyContinues", "Remind", WARNING)
ANOMALY_RESOLVED = EventReason("AnomalyResolved", "Resolve", NORMAL)
ANOMALY_UNOBSERVED = EventReason("AnomalyUnobserved", "Resolve", NORMAL)
REPORTING_STOPPED = EventReason("ReportingStopped", "Resolve", NORMAL)
CROSS_NODE_OUTLIER = EventReason("CrossNodeOutlier", "Compare", WARNING, once=True)
PROFILE_REJECTED = EventReason("ProfileRejected", "Validate", WARNING)
COLLECTOR_DEGRADED = EventReason("CollectorDegraded", "Collect", WARNING)
COLLECTOR_RECOVERED = EventReason("CollectorRecovered", "Collect", NORMAL)
REASONS = (
    ANOMALY_DETECTED,
    ANOMALY_ESCALATED,
    ANOMALY_CONTINUES,
    ANOMALY_RESOLVED,
    ANOMALY_UNOBSERVED,
    REPORTING_STOPPED,
    CROSS_NODE_OUTLIER,
    PROFILE_REJECTED,
    COLLECTOR_DEGRADED,
    COLLECTOR_RECOVERED,
)


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """An object of the API; without ``namespace`` it belongs to the cluster."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the fields of an ObjectReference that are known."""
        given = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
        }
        return {key: value for key, value in given.items() if value}

    @property
    def event_namespace(self) -> str:
        """The namespace of Events on this object."""
        return self.namespace or DEFAULT_NAMESPACE


def node(name: str, uid: str = "") -> ObjectReference:
    """Return a reference to a Node."""
    return ObjectReference("v1", "Node", name, uid=uid)


def pod(namespace: str, name: str, uid: str = "") -> ObjectReference:
    """Return a reference to a Pod."""
    return ObjectReference("v1", "Pod", name, namespace, uid)


def report(name: str, uid: str = "") -> ObjectReference:
    """Return a reference to an AnomalyReport."""
    return ObjectReference(API_VERSION, REPORT_KIND, name, uid=uid)


def profile(name: str, uid: str = "") -> ObjectReference:
    """Return a reference to a RevealProfile."""
    return ObjectReference(API_VERSION, PROFILE_KIND, name, uid=uid)


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to ``regarding``; ``controller`` is the component, ``instance`` its pod."""

    reason: EventReason
    regarding: ObjectReference
    note: str
    controller: str
    instance: str
    related: ObjectReference | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """Events of one key are one series; a uid that becomes known later changes nothing."""
        objects = [self.regarding] + ([self.related] if self.related else [])
        about = [part for o in objects for part in (o.api_version, o.kind, o.namespace, o.name)]
        return self.controller, self.reason.name, self.reason.action, self.reason.type, *about


@dataclass(frozen=True, slots=True)
class Posting:
    """One write: of ``body`` as a new Event, or of its series alone.

    Where the Event to patch is gone (Events live for an hour), ``body`` is created instead.  An
    Event that exists already was written before: its name is the same at every retry.
    """

    namespace: str
    name: str
    body: dict[str, Any]

    @property
    def patch(self) -> dict[str, Any] | None:
        """The merge patch; None where the Event is to be created."""
        series = self.body.get("series")
        return {"series": series} if series else None


def event_name(event: Event, start_ns: int) -> str:
    """Return a name that is the same for the same Event, whichever process writes it."""
    when = "" if event.reason.once else str(start_ns)
    seed = "\0".join((*event.key, when)).encode(errors="replace")
    digest = hashlib.blake2b(seed, digest_size=8).hexdigest()
    about = event.regarding.name.lower()[: _MAX_NAME - len(digest) - 1].rstrip(".-")
    return f"{about}.{digest}"


def body(event: Event, start_ns: int, count: int = 1, last_ns: int = 0) -> dict[str, Any]:
    """Return the object to create; from the second time on it has a ``series``."""
    found: dict[str, Any] = {
        "apiVersion": EVENTS_API,
        "kind": "Event",
        "metadata": {
            "name": event_name(event, start_ns),
            "namespace": event.regarding.event_namespace,
        },
        "eventTime": micro_time(start_ns),
        "type": event.reason.type,
        "reason": event.reason.name,
        "action": event.reason.action,
        "note": clipped(event.note, MAX_NOTE),
        "reportingController": event.controller,
        "reportingInstance": clipped(event.instance, MAX_INSTANCE),
        "regarding": event.regarding.to_dict(),
    }
    if event.related is not None:
        found["related"] = event.related.to_dict()
    if count > 1:
        found["series"] = {"count": count, "lastObservedTime": micro_time(last_ns)}
    return found


def micro_time(ns: int) -> str:
    """Return nanoseconds since the epoch as a MicroTime of the API, in UTC."""
    moment = datetime.fromtimestamp(ns // NS_PER_SECOND, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns // 1000 % 1_000_000:06d}Z"


@dataclass(frozen=True, slots=True)
class _Series:
    """An Event, how often it happened, and what the server knows of that."""

    event: Event
    start_ns: int
    count: int
    last_ns: int
    written_ns: int
    written_count: int

    def posting(self) -> Posting:
        found = body(self.event, self.start_ns, self.count, self.last_ns)
        return Posting(found["metadata"]["namespace"], found["metadata"]["name"], found)


class EventRecorder:
    """Recent Events; one thread.  Times are nanoseconds since the epoch, of one clock.

    ``refused`` counts Events over the rate limit of their object.
    """

    def __init__(self) -> None:
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self._allowed = KeyedTokenBuckets(BURST, EVERY_S)
        self.refused = 0

    def record(self, event: Event, now_ns: int) -> Posting | None:
        """Return what to send; None where the Event was only counted, or refused."""
        series = self._series.get(event.key)
        if series is not None and now_ns - series.last_ns < FINISH_NS:
            return self._count(series, now_ns)
        if not self._allowed.take(event.regarding, now_ns):
            self.refused += 1
            return None
        series = _Series(event, now_ns, 1, now_ns, now_ns, 1)
        self._keep(series)
        return series.posting()

    def due(self, now_ns: int) -> list[Posting]:
        """Return series that ended, or that were not written for half an hour."""
        postings = []
        for key, series in list(self._series.items()):
            ended = now_ns - series.last_ns >= FINISH_NS
            unwritten = series.count > series.written_count
            if unwritten and (ended or now_ns - series.written_ns >= REFRESH_NS):
                postings.append(series.posting())
                self._series[key] = replace(series, written_ns=now_ns, written_count=series.count)
            if ended:
                del self._series[key]
        return postings

    def rest(self) -> list[Posting]:
        """Return what the server does not know yet, when the process ends."""
        unwritten = [each for each in self._series.values() if each.count > each.written_count]
        self._series.clear()
        return [series.posting() for series in unwritten]

    def _count(self, series: _Series, now_ns: int) -> Posting | None:
        series = replace(series, count=series.count + 1, last_ns=max(now_ns, series.last_ns))
        second = series.count == 2
        if second:
            series = replace(series, written_ns=now_ns, written_count=2)
        self._keep(series)
        return series.posting() if second else None

    def _keep(self, series: _Series) -> None:
        self._series[series.event.key] = series
        self._series.move_to_end(series.event.key)
        if len(self._series) > MAX_SERIES:
            self._series.popitem(last=False)
