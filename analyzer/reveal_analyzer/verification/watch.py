"""Follows jobs that findings slow through changes of their node, and says what each change did.

A change is noticed when a finding ends, and when facts of the node differ.  Facts are read once a
minute, so such a change is up to ``FACTS_AGE_S`` older than its notice.  The step time before it is
that of a window that ended before; the step time after it is that of the longest window that began
when the change was over and had settled.

Nothing is known of a change (``Unknown``) if the step time could not be read long enough, or if
another finding slows the same job meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import StateTree, named_sections
from reveal_analyzer.verification.effect import Pace, effect, pace_of, paces, verdict
from reveal_contract.finding import (
    Finding,
    FindingChange,
    FindingUpdate,
    Impact,
    Pod,
    Resolution,
    State,
)
from reveal_contract.subjects import Identity
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.verification import Effect, Verdict, Verification

FACTS_AGE_S = 120  # read each minute, published, and read by the analyzer twice a minute
SETTLED_S = 5  # after a change
MEASURED_S = 60  # after that: the longest window of a step time
MOST_S = 150  # after a change; then it cannot be measured
_MOST_FINDINGS = 32  # of each kind; those that were updated last
_MOST_CHANGES = 8
_ENDED = "the cause ended"
_AWAITED = "awaited"  # in a saved state


@dataclass(frozen=True)
class _Awaited:
    """A change whose effect is not known yet: the finding, and the step time before it.

    ``change`` is empty for the end of the finding; ``spoiled``: another finding slows the job.
    """

    finding: Finding
    before: Pace
    slowdown_percent: float
    since_ns: int
    change: str = ""
    spoiled: bool = False

    @property
    def subject(self) -> str:
        return self.finding.impact.subject if self.finding.impact else ""

    def after(self, step: StepTime | None, now_ns: int) -> Pace | None:
        """Return the step time over the longest window after the change; None if there is none."""
        settled_ns = self.since_ns + SETTLED_S * NS_PER_SECOND
        fitting = (
            [] if step is None else [p for p in paces(step, now_ns) if p.start_ns >= settled_ns]
        )
        return max(fitting, key=lambda pace: pace.window_s, default=None)


class VerificationWatch:
    """The changes of one node.

    ``listed`` returns its subjects.  ``has_recovered`` returns whether the job of a finding's
    impact was at its baseline before the finding ended, by the id of the finding.
    """

    def __init__(
        self, listed: Callable[[], Iterable[Identity]], has_recovered: Callable[[str], bool]
    ) -> None:
        self._listed, self._has_recovered = listed, has_recovered
        self._open: dict[str, Finding] = {}  # with an impact
        self._paces: dict[str, deque[Pace]] = {}  # of the last minutes, by job
        self._awaited: dict[str, _Awaited] = {}  # by the id of the finding
        self._facts: deque[tuple[int, str]] = deque(maxlen=_MOST_CHANGES)  # when they were noticed

    def note(self, changes: Sequence[str], now_ns: int) -> None:
        """Note facts that changed within the last ``FACTS_AGE_S``."""
        if not changes:
            return
        self._facts.append((now_ns, "; ".join(changes)))
        for id_, finding in self._open.items():
            before = self._before(finding, now_ns - FACTS_AGE_S * NS_PER_SECOND)
            if before is not None and finding.impact is not None:
                slowdown = finding.impact.slowdown_percent
                awaited = _Awaited(finding, before, slowdown, now_ns, self._facts[-1][1])
                self._await(id_, awaited)

    def update(
        self,
        updates: Iterable[FindingUpdate],
        step_times: Mapping[str, StepTime],
        now_ns: int,
    ) -> list[FindingUpdate]:
        """Add one second with its updates of findings; return those of verified changes."""
        for update in updates:
            self._follow(update)
        if not (self._open or self._awaited):
            return []  # nearly all seconds
        self._read(step_times, now_ns)
        found = [self._verified(id_, step_times, now_ns) for id_ in list(self._awaited)]
        return [update for update in found if update is not None]

    def save(self) -> StateTree:
        """Return the changes whose effect is not known yet."""
        return {_AWAITED: {id_: save_record(each) for id_, each in self._awaited.items()}}

    def restore(self, tree: StateTree) -> None:
        """Continue from a saved state; raises ``StateError``."""
        rows = named_sections(tree, _AWAITED)
        self._awaited = {id_: restore_record(_Awaited, row) for id_, row in rows.items()}

    def _follow(self, update: FindingUpdate) -> None:
        finding, impact = update.finding, update.finding.impact
        if update.change is FindingChange.SUSPECTED:
            return
        self._open.pop(finding.id, None)
        if impact is None:
            return
        if finding.state is State.OPEN:
            self._open[finding.id] = finding
            _limit(self._open)
            self._spoil(impact, finding.id)
        elif finding.resolution is Resolution.ENDED and not self._has_recovered(finding.id):
            self._await_end(finding, impact)

    def _await_end(self, finding: Finding, impact: Impact) -> None:
        end_ns = finding.last_observed_ns
        before = pace_of(impact, end_ns)
        if before.period_ms > 0:
            self._await(finding.id, _Awaited(finding, before, impact.slowdown_percent, end_ns))

    def _await(self, id_: str, awaited: _Awaited) -> None:
        """Wait for the effect of a change; with one that is awaited already it is a single one."""
        if (earlier := self._awaited.pop(id_, None)) is not None:
            change = "; ".join(filter(None, (earlier.change, awaited.change)))
            awaited = replace(awaited, before=earlier.before, change=change)
        self._awaited[id_] = awaited
        _limit(self._awaited)

    def _spoil(self, impact: Impact, id_: str) -> None:
        """Note that a job is slowed by a finding that began after a change, or with it."""
        for other, each in self._awaited.items():
            if other != id_ and each.subject == impact.subject and impact.since_ns >= each.since_ns:
                self._awaited[other] = replace(each, spoiled=True)

    def _read(self, step_times: Mapping[str, StepTime], now_ns: int) -> None:
        """Keep the step times of the jobs that findings slow."""
        subjects = {each.impact.subject for each in self._open.values() if each.impact}
        self._paces = {name: self._paces.get(name, deque(maxlen=MOST_S)) for name in subjects}
        for name, kept in self._paces.items():
            if (step := step_times.get(name)) is not None:
                kept.extend(list(paces(step, now_ns))[-1:])

    def _before(self, finding: Finding, until_ns: int) -> Pace | None:
        """Return the last step time of a slowed job that ended by then, if it was slowed then."""
        impact = finding.impact
        if impact is None:
            return None
        known = self._paces.get(impact.subject, ())
        fitting = (p for p in known if p.end_ns <= until_ns and p.start_ns >= impact.since_ns)
        return max(fitting, key=lambda pace: pace.end_ns, default=None)

    def _verified(
        self, id_: str, step_times: Mapping[str, StepTime], now_ns: int
    ) -> FindingUpdate | None:
        awaited = self._awaited[id_]
        elapsed_s = (now_ns - awaited.since_ns) / NS_PER_SECOND
        if elapsed_s < SETTLED_S + MEASURED_S:
            return None
        after = awaited.after(step_times.get(awaited.subject), now_ns)
        if after is None and elapsed_s < MOST_S:
            return None
        del self._awaited[id_]
        finding = self._open.get(id_, awaited.finding)
        found = self._verification(awaited, after, now_ns)
        return FindingUpdate(FindingChange.VERIFIED, replace(finding, verification=found))

    def _verification(self, awaited: _Awaited, after: Pace | None, now_ns: int) -> Verification:
        found: Effect | None = None
        decided = Verdict.UNKNOWN
        if after is not None and not awaited.spoiled:
            found = effect(awaited.before, after)
            decided = verdict(found, awaited.slowdown_percent)
        change = awaited.change or self._end_of(awaited, now_ns)
        return Verification(decided, change, awaited.subject, awaited.since_ns, found)

    def _end_of(self, awaited: _Awaited, now_ns: int) -> str:
        """Return what may have ended a finding: changes of facts, or the end of a subject."""
        since_ns = awaited.since_ns
        latest_ns = since_ns + FACTS_AGE_S * NS_PER_SECOND
        facts = [text for noticed_ns, text in self._facts if since_ns <= noticed_ns <= latest_ns]
        if facts:
            return "; ".join(facts)
        ended = _ended_culprit(awaited.finding, self._listed(), now_ns)
        return f"{ended} ended" if ended else _ENDED


def _ended_culprit(finding: Finding, listed: Iterable[Identity], now_ns: int) -> str:
    """Return the name of the culprit if it has ended, else ""."""
    culprit = finding.foremost
    if culprit is None:
        return ""
    if isinstance(culprit, Pod):
        name = f"{culprit.namespace}/{culprit.name}"
        same = [each for each in listed if each.uid == culprit.uid]
    else:
        name = culprit.name
        same = [each for each in listed if name in (each.instance, each.name)]
    return name if same and not any(each.is_alive(now_ns) for each in same) else ""


def _limit(entries: dict[str, Finding] | dict[str, _Awaited]) -> None:
    """Drop the oldest entries over the limit."""
    while len(entries) > _MOST_FINDINGS:
        del entries[next(iter(entries))]
