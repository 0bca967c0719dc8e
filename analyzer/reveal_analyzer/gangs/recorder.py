"""Records the windows of the busy subjects of one node, from its ledger and its step times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reveal_analyzer.gangs.rank import MOST_RANKS, WINDOW_S, LostPart, Rank, window_of
from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.ledger.accounts import Accounts
from reveal_analyzer.ledger.lost_time import LostTime, lost_time
from reveal_analyzer.ledger.totals import LedgerTotals, Totals
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_analyzer.subjects.job_name import job_name
from reveal_analyzer.subjects.subject_kind import kind_of
from reveal_contract import ledger
from reveal_contract.subjects import Identity, SubjectKind
from reveal_contract.time_units import NS_PER_SECOND

_LEAST_DESIRED = 0.1  # CPUs: a rank that wants less does no work of its own
_OF_SERVICES = ("ReplicaSet", "ReplicationController", "DaemonSet", "Node")  # controllers of pods
_REMEMBERED_WINDOWS = 60
_LEAST_SECONDS = WINDOW_S // 2  # of a window: fewer do not show it


class RankRecorder:
    """Records one node; ``history`` knows the names of its subjects."""

    def __init__(self, node: str, history: SubjectHistory) -> None:
        self._node, self._history = node, history
        self._window = 0
        self._totals = LedgerTotals()
        self._ended: list[Rank] = []
        self._worked: dict[str, int] = {}  # subjects that did work of their own -> last window

    def push(self, start_ns: int, accounts: Accounts, steps: Mapping[str, StepTime]) -> None:
        """Add a second; the first one of a window ends the one before."""
        window = window_of(start_ns)
        if window != self._window:
            self._ended = list(self._ranks(steps))
            self._window, self._totals = window, LedgerTotals()
        self._totals.add(accounts)

    def pop_ended(self) -> list[Rank]:
        """Return the ranks of the window that ended, once."""
        ended, self._ended = self._ended, []
        return ended

    def _ranks(self, steps: Mapping[str, StepTime]) -> Iterator[Rank]:
        totals = self._totals.totals()
        if totals.seconds < _LEAST_SECONDS:
            return
        busy = {each.subject: each for each in lost_time(totals)}
        for subject, desired in self._workers(totals)[:MOST_RANKS]:
            lost = busy.get(subject) or LostTime(subject, desired, 0.0, ())
            yield from self._rank(lost, steps.get(subject))

    def _workers(self, totals: Totals) -> list[tuple[str, float]]:
        """Return the subjects that do work or did a short time ago, and what they desired (CPUs).

        A rank that waits for a slow one all the time desires nearly nothing.
        """
        whole_ns = totals.seconds * NS_PER_SECOND
        desired = {name: totals.desired(name) / whole_ns for name in totals.times}
        working = [name for name, cpus in desired.items() if cpus >= _LEAST_DESIRED]
        self._worked |= dict.fromkeys(working, self._window)
        since = self._window - _REMEMBERED_WINDOWS
        self._worked = {name: last for name, last in self._worked.items() if last > since}
        found = [
            (name, desired[name])
            for name in self._worked
            if name in desired and name not in ledger.NAMELESS
        ]
        return sorted(found, key=lambda each: -each[1])

    def _rank(self, lost: LostTime, step: StepTime | None) -> Iterator[Rank]:
        end_ns = (self._window + 1) * WINDOW_S * NS_PER_SECOND
        identity = self._history.identity(lost.subject, end_ns)
        if identity is not None and not _may_be_rank(identity):
            return
        name = identity.name if identity is not None and identity.namespace else lost.subject
        yield Rank(
            job_name(lost.subject, identity, self._node), self._node, self._window,
            kind_of(lost.subject, identity),
            identity.namespace if identity else "", name, identity.uid if identity else "",
            lost.desired, step.period if step else 0.0, _slower(step),
            tuple(LostPart(loss.part, loss.share, loss.culprit) for loss in lost.losses),
            identity.gpus if identity else 0,
        )  # fmt: skip


def _may_be_rank(identity: Identity) -> bool:
    """Return whether a subject may be a rank: replicas of services do not wait for each other."""
    if not identity.namespace:
        return True
    if identity.kind is SubjectKind.CONTAINER:  # it is counted with its pod
        return False
    return bool(identity.job) or identity.owner.partition("/")[0] not in _OF_SERVICES


def _slower(step: StepTime | None) -> float:
    """Return by how many percent steps are longer, over the shortest window that is read."""
    return step.readings[0].percent if step is not None and step.readings else 0.0
