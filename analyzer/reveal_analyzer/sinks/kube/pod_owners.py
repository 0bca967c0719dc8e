"""Controllers and jobs of pods, for collectors that know pods by the folders of their logs."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

from reveal_analyzer.sinks.kube.api import SinkApi
from reveal_contract.kube.errors import ForbiddenError
from reveal_contract.kube.pod_metadata import controller_of, job_of, text_of
from reveal_contract.subjects import Identity, SubjectKind

log = logging.getLogger(__name__)

NODES_A_STEP = 10  # whose pods are listed
REFUSED_SECONDS = 600.0  # until the next attempt after a refusal
ABSENT_SECONDS = 60.0  # after which a name without a pod is looked for again
MOST_NODES = 16_384  # whose pods are known
MOST_PODS = 1024  # of a node, with those that are gone

_Name = tuple[str, str]  # namespace and name of a pod


class PodOwner(NamedTuple):
    """The controller and the job of a pod as ``Kind/name``; "" for none."""

    owner: str = ""
    job: str = ""


@dataclass
class _NodePods:
    """The pods of a node as listed last, and names that were not among them."""

    pods: Mapping[_Name, PodOwner] = field(default_factory=dict)
    absent: frozenset[_Name] = frozenset()
    listed_s: float = 0.0


class PodOwners:
    """Answers from what ``step`` listed; see ``ClusterNodes`` for who calls what.

    The pods of a node are listed when one of its subjects is a pod that is not known.
    """

    def __init__(self, api: SinkApi) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _NodePods] = OrderedDict()  # those used last are at the end
        self._missing: dict[str, set[_Name]] = {}
        self._refused_s = 0.0

    def completed(self, node: str, subjects: Iterable[Identity]) -> tuple[Identity, ...]:
        """Return the subjects of a node with the controllers and jobs of its pods."""
        with self._lock:
            known = self._known.get(node, _NodePods())
            if node in self._known:
                self._known.move_to_end(node)
            found = tuple(_completed(each, known.pods) for each in subjects)
            alive = (each for each in found if _is_of_pod(each) and not each.until_ns)
            if missing := {_name(each) for each in alive} - known.pods.keys():
                self._missing.setdefault(node, set()).update(missing)
        return found

    def step(self, now: float) -> None:
        """List the pods of some nodes; raises ``ApiError``.  ``now`` is monotonic."""
        if now < self._refused_s:
            return
        with self._lock:
            due = {node: names for node, names in self._missing.items() if self._is_due(node, now)}
            self._missing.clear()  # a subject that is still unknown is missed again
        for node in islice(due, NODES_A_STEP):
            try:
                pods = dict(map(_row, self._api.pod_metadata(node)))
            except ForbiddenError as error:
                log.warning("controllers and jobs of pods are not known: %s", error)
                self._refused_s = now + REFUSED_SECONDS
                return
            self._note(node, _NodePods(pods, frozenset(due[node] - pods.keys()), now))

    def _note(self, node: str, listed: _NodePods) -> None:
        """Take a list; pods that are gone stay known for a while, as findings about them do."""
        with self._lock:
            earlier = self._known.get(node, _NodePods()).pods
            if len(earlier) < MOST_PODS:
                listed.pods = {**earlier, **listed.pods}
            self._known[node] = listed
            while len(self._known) > MOST_NODES:
                self._known.popitem(last=False)

    def _is_due(self, node: str, now: float) -> bool:
        known = self._known.get(node)
        if known is None or now - known.listed_s >= ABSENT_SECONDS:
            return True
        return not self._missing[node] <= known.absent


def _completed(subject: Identity, pods: Mapping[_Name, PodOwner]) -> Identity:
    known = pods.get(_name(subject))
    if known is None or not _is_of_pod(subject) or subject.owner or subject.job:
        return subject
    return replace(subject, owner=known.owner, job=known.job)


def _name(subject: Identity) -> _Name:
    return subject.namespace, subject.name


def _is_of_pod(subject: Identity) -> bool:
    return subject.kind in (SubjectKind.POD, SubjectKind.CONTAINER) and subject.namespace != ""


def _row(pod: Mapping[str, Any]) -> tuple[_Name, PodOwner]:
    metadata = pod["metadata"]
    name = text_of(metadata, "namespace"), text_of(metadata, "name")
    return name, PodOwner(controller_of(metadata), job_of(metadata))
