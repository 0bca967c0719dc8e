"""What jobs lost by the cause of a finding, as the ledger measured it while the finding was active.

Jobs lose what the culprits of a finding took from them, and the part of lost time that the cause
takes by itself, such as waits for memory.  Time that is lost to anything else does not count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.ledger.accounts import Accounts
from reveal_analyzer.ledger.totals import LEAST_DESIRED, Totals, summed
from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import StateTree, named_sections
from reveal_contract import ledger
from reveal_contract.finding import Confidence, Finding, FindingChange, FindingUpdate, JobLoss
from reveal_contract.time_units import NS_PER_SECOND

SPAN_S = 60  # the latest seconds of a finding count
_LEAST_SHARE = 0.01  # of the wanted time
_MOST_JOBS = 5
_FINDINGS = "findings"  # in a saved state
# parts that only the subjects of a finding lose by it
_OWN_LIMITS = (ledger.THROTTLED, ledger.STOPPED)
_OWN_WORK = (ledger.IRQ,)  # parts that they do not lose: of packets that they send and receive


@dataclass(frozen=True)
class _Saved:
    losses: tuple[JobLoss, ...]


class JobLosses:
    """The last seconds of one node's ledger, and what was lost by each open finding.

    ``name`` returns the name that people use for a subject at a time.
    """

    def __init__(self, rules: Sequence[HypothesisRule], name: Callable[[str, int], str]) -> None:
        self._parts = {rule.name: rule.lost_part for rule in rules if rule.lost_part}
        self._name = name
        self._seconds: deque[tuple[int, Accounts]] = deque(maxlen=SPAN_S)
        self._known: dict[str, tuple[JobLoss, ...]] = {}  # by the id of an open finding

    def push(self, start_ns: int, accounts: Accounts) -> None:
        """Keep one second."""
        self._seconds.append((start_ns, accounts))

    def added(self, updates: Iterable[FindingUpdate]) -> list[FindingUpdate]:
        """Return the updates with what jobs lost by their findings."""
        return [self._with_losses(update) for update in updates]

    def save(self) -> StateTree:
        """Return what is known of open findings."""
        known = {id_: save_record(_Saved(losses)) for id_, losses in self._known.items()}
        return {_FINDINGS: known}

    def restore(self, tree: StateTree) -> None:
        """Continue from a saved state; raises ``StateError``."""
        rows = named_sections(tree, _FINDINGS)
        self._known = {id_: restore_record(_Saved, row).losses for id_, row in rows.items()}

    def _with_losses(self, update: FindingUpdate) -> FindingUpdate:
        if update.change is FindingChange.SUSPECTED:
            return update
        id_, losses = update.finding.id, self._losses(update.finding)
        if losses:
            self._known[id_] = losses
        # its last seconds may no longer be in memory, as after a restart
        losses = losses or self._known.get(id_, ())
        if update.change is FindingChange.RESOLVED:
            self._known.pop(id_, None)
        return replace(update, finding=replace(update.finding, lost_time=losses))

    def _losses(self, finding: Finding) -> tuple[JobLoss, ...]:
        totals = self._totals(finding)
        if not totals.seconds:
            return ()
        lost = self._lost(finding, totals)
        ranked = sorted(lost, key=lambda name: (-lost[name], name))
        found = (
            self._job_loss(name, lost[name], totals, finding.last_observed_ns) for name in ranked
        )
        return tuple(each for each in found if each is not None)[:_MOST_JOBS]

    def _totals(self, finding: Finding) -> Totals:
        """Return the sums over the seconds in which the finding was active, the latest ones."""
        latest_ns = finding.last_observed_ns
        earliest_ns = max(finding.first_observed_ns, latest_ns - SPAN_S * NS_PER_SECOND)
        return summed(
            accounts for start_ns, accounts in self._seconds if earliest_ns <= start_ns <= latest_ns
        )

    def _lost(self, finding: Finding, totals: Totals) -> Mapping[str, float]:
        """Return the time (ns) that each subject lost by the cause of the finding."""
        part = self._parts.get(finding.hypothesis.name, "") if finding.hypothesis else ""
        lost = {} if part in _OWN_LIMITS else self._taken(finding, totals)
        for subject in self._losers(part, finding, totals) if part else ():
            lost[subject] = lost.get(subject, 0.0) + totals.time(subject, part)
        return lost

    def _losers(self, part: str, finding: Finding, totals: Totals) -> list[str]:
        """Return the subjects that lose this part by the cause of the finding."""
        named, time_ns = _named(finding), finding.last_observed_ns
        if part not in _OWN_LIMITS + _OWN_WORK:
            return list(totals.times)
        by_own = part in _OWN_LIMITS
        return [name for name in totals.times if self._is_named(named, name, time_ns) is by_own]

    def _taken(self, finding: Finding, totals: Totals) -> dict[str, float]:
        """Return the time (ns) that the culprits of a finding took, by victim."""
        named, time_ns = _named(finding), finding.last_observed_ns
        taken: dict[str, float] = {}
        for by_victim in totals.taken.values():
            for victim, by_culprit in by_victim.items():
                for culprit, time in by_culprit.items():
                    if victim != culprit and self._is_named(named, culprit, time_ns):
                        taken[victim] = taken.get(victim, 0.0) + time
        return taken

    def _is_named(self, names: frozenset[str], subject: str, time_ns: int) -> bool:
        if not names or subject in ledger.NAMELESS:
            return False
        return subject in names or self._name(subject, time_ns) in names

    def _job_loss(
        self, subject: str, lost_ns: float, totals: Totals, time_ns: int
    ) -> JobLoss | None:
        desired_ns = totals.desired(subject)
        busy = desired_ns >= LEAST_DESIRED * totals.seconds * NS_PER_SECOND
        if subject in ledger.NAMELESS or not busy or lost_ns < _LEAST_SHARE * desired_ns:
            return None
        return JobLoss(
            self._name(subject, time_ns), min(100.0, 100 * lost_ns / desired_ns), totals.seconds
        )


def _named(finding: Finding) -> frozenset[str]:
    """Return the names of the pods and subjects that cause a finding."""
    pods = (
        f"{pod.namespace}/{pod.name}"
        for pod in finding.pods
        if pod.confidence is not Confidence.CO_LOCATED
    )
    others = (
        subject.name
        for subject in finding.subjects
        if subject.confidence is not Confidence.CO_LOCATED
    )
    return frozenset((*pods, *others))
