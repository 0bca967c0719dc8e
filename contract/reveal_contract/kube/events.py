"""Events as operator and analyzer tell them: pure; whoever sends them has the client.

An Event is told on a change of state and once a change; what happens again within minutes is a
*series* of the first one: its count grows, on the server at the second time, then every half
hour and at its end.  The rules are those of the API (validation of ``events.k8s.io/v1``) and of
the recorder of client-go (``tools/events``).

``EventBook.note`` gives the ``Posting`` to send now, or nothing; ``EventBook.due`` gives, asked
once a minute, what series have to say.  A posting that is lost is lost: Events are for people.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from reveal_contract.kube.names import API_VERSION, PROFILE_KIND, REPORT_KIND, clipped
from reveal_contract.runtime.token_bucket import Buckets
from reveal_contract.time_units import NS_PER_MINUTE, NS_PER_SECOND

EVENTS_API = "events.k8s.io/v1"
NORMAL, WARNING = "Normal", "Warning"
DEFAULT_NAMESPACE = "default"  # of Events on objects that have none: the API takes no other

MAX_NOTE = 1024  # bytes
MAX_INSTANCE = 128

FINISH_NS = 6 * NS_PER_MINUTE  # a series that rested for so long is over
REFRESH_NS = 30 * NS_PER_MINUTE  # between two writes of a series that goes on
MAX_SERIES = 4096
BURST, EVERY_S = 25, 300.0  # of one subject: so many at once, then one in so many seconds
_MAX_NAME = 253


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an Event is told: constants that people filter by.

    ``once``: of one pair of objects it is told once, whoever tells it and whenever.
    """

    name: str
    action: str
    type: str
    once: bool = False


ANOMALY_DETECTED = Reason("AnomalyDetected", "Detect", WARNING, once=True)
ANOMALY_ESCALATED = Reason("AnomalyEscalated", "Escalate", WARNING)
ANOMALY_RESOLVED = Reason("AnomalyResolved", "Resolve", NORMAL)
CROSS_NODE_OUTLIER = Reason("CrossNodeOutlier", "Compare", WARNING, once=True)
PROFILE_REJECTED = Reason("ProfileRejected", "Validate", WARNING)
COLLECTOR_DEGRADED = Reason("CollectorDegraded", "Collect", WARNING)
COLLECTOR_RECOVERED = Reason("CollectorRecovered", "Collect", NORMAL)
REASONS = (
    ANOMALY_DETECTED,
    ANOMALY_ESCALATED,
    ANOMALY_RESOLVED,
    CROSS_NODE_OUTLIER,
    PROFILE_REJECTED,
    COLLECTOR_DEGRADED,
    COLLECTOR_RECOVERED,
)


@dataclass(frozen=True, slots=True)
class Reference:
    """An object of the API; without ``namespace`` it belongs to the cluster."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    def to_dict(self) -> dict[str, str]:
        """The fields of an ObjectReference that are known."""
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
        """Where Events on this object belong."""
        return self.namespace or DEFAULT_NAMESPACE


def node(name: str, uid: str = "") -> Reference:
    return Reference("v1", "Node", name, uid=uid)


def pod(namespace: str, name: str, uid: str = "") -> Reference:
    return Reference("v1", "Pod", name, namespace, uid)


def report(name: str, uid: str = "") -> Reference:
    return Reference(API_VERSION, REPORT_KIND, name, uid=uid)


def profile(name: str, uid: str = "") -> Reference:
    return Reference(API_VERSION, PROFILE_KIND, name, uid=uid)


@dataclass(frozen=True, slots=True)
class Event:
    """What is told; ``controller`` and ``instance`` are the component and its pod."""

    reason: Reason
    regarding: Reference
    note: str
    controller: str
    instance: str
    related: Reference | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """Events of one key are one series; a uid learned later makes no other one."""
        objects = [self.regarding] + ([self.related] if self.related else [])
        about = [part for o in objects for part in (o.api_version, o.kind, o.namespace, o.name)]
        return self.controller, self.reason.name, self.reason.action, self.reason.type, *about


@dataclass(frozen=True, slots=True)
class Posting:
    """One write: of ``body`` as a new Event, or of its series alone.

    Where the Event to patch is gone (Events live for an hour), ``body`` is created instead.
    A new one that exists already has been told: names are the same at every retry.
    """

    namespace: str
    name: str
    body: dict[str, Any]

    @property
    def patch(self) -> dict[str, Any] | None:
        """A merge patch; None where the Event is to be created."""
        series = self.body.get("series")
        return {"series": series} if series else None


def event_name(event: Event, start_ns: int) -> str:
    """The same for the same thing told at the same time, by whomever."""
    when = "" if event.reason.once else str(start_ns)
    seed = "\0".join((*event.key, when)).encode(errors="replace")
    digest = hashlib.blake2b(seed, digest_size=8).hexdigest()
    about = event.regarding.name.lower()[: _MAX_NAME - len(digest) - 1].rstrip(".-")
    return f"{about}.{digest}"


def body(event: Event, start_ns: int, count: int = 1, last_ns: int = 0) -> dict[str, Any]:
    """The object to create; from the second time on it has a ``series``."""
    made: dict[str, Any] = {
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
        made["related"] = event.related.to_dict()
    if count > 1:
        made["series"] = {"count": count, "lastObservedTime": micro_time(last_ns)}
    return made


def micro_time(ns: int) -> str:
    """Nanoseconds since the epoch as a MicroTime of the API, in UTC."""
    moment = datetime.fromtimestamp(ns // NS_PER_SECOND, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns // 1000 % 1_000_000:06d}Z"


@dataclass(frozen=True, slots=True)
class _Told:
    event: Event
    start_ns: int
    count: int
    last_ns: int
    told_ns: int  # when the server heard of it last
    told: int  # and of how many

    def posting(self) -> Posting:
        made = body(self.event, self.start_ns, self.count, self.last_ns)
        return Posting(made["metadata"]["namespace"], made["metadata"]["name"], made)


class EventBook:
    """What was told lately; one thread.  Times are nanoseconds since the epoch, of one clock.

    ``refused`` counts what a subject's token bucket did not let pass.
    """

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, ...], _Told] = OrderedDict()
        self._allowed = Buckets(BURST, EVERY_S)
        self.refused = 0

    def note(self, event: Event, now_ns: int) -> Posting | None:
        """It happened; gives what to send, or None where it was counted or refused."""
        before = self._told.get(event.key)
        if before is not None and now_ns - before.last_ns < FINISH_NS:
            return self._again(before, now_ns)
        if not self._allowed.take(event.regarding, now_ns):
            self.refused += 1
            return None
        told = _Told(event, now_ns, 1, now_ns, now_ns, 1)
        self._keep(told)
        return told.posting()

    def due(self, now_ns: int) -> list[Posting]:
        """Series that ended since, or that the server has not heard of for half an hour."""
        postings = []
        for key, told in list(self._told.items()):
            over = now_ns - told.last_ns >= FINISH_NS
            news = told.count > told.told
            if news and (over or now_ns - told.told_ns >= REFRESH_NS):
                postings.append(told.posting())
                self._told[key] = replace(told, told_ns=now_ns, told=told.count)
            if over:
                del self._told[key]
        return postings

    def rest(self) -> list[Posting]:
        """What the server has not heard of yet, when the recorder ends."""
        news = [told for told in self._told.values() if told.count > told.told]
        self._told.clear()
        return [told.posting() for told in news]

    def _again(self, before: _Told, now_ns: int) -> Posting | None:
        told = replace(before, count=before.count + 1, last_ns=max(now_ns, before.last_ns))
        if told.count == 2:
            told = replace(told, told_ns=now_ns, told=2)
        self._keep(told)
        return told.posting() if told.count == 2 else None

    def _keep(self, told: _Told) -> None:
        self._told[told.event.key] = told
        self._told.move_to_end(told.event.key)
        if len(self._told) > MAX_SERIES:
            self._told.popitem(last=False)
