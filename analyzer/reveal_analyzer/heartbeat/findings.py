"""What a slowdown of a job makes of a node's findings: one of its own, or the impact of others.

A slowdown that lasts is a finding by itself, unless one was found at its onset: then it is what
that one cost.  Whatever else is open meanwhile carries it too; and what is open for a minute
while every job keeps its step is said to have slowed none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.heartbeat.recent_excess import Glimpses
from reveal_analyzer.heartbeat.slowdown import Context, opened, told
from reveal_analyzer.heartbeat.slowdown_state import STEADY_S, Course
from reveal_analyzer.heartbeat.tracker import Beat
from reveal_analyzer.heartbeat.watch import HeartbeatWatch
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Impact
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

_COVERS_S = 15  # a finding this long before the onset, or later, has the slowdown for its cost
_COVERED_S = 60  # after its end what still lasts is a finding by itself
_ALARM_S = 60  # of a finding that is open: what lasts longer is the new normal


@dataclass
class _Open:
    """A finding of others that is open, as it was told last."""

    finding: Finding
    resolved_ns: int | None = None


@dataclass
class _Own:
    """A slowdown told as a finding: as it stood when it was opened, as it was told last, is now."""

    base: Finding
    said: Impact
    impact: Impact

    @property
    def is_news(self) -> bool:
        """Whether it is known better, or costs clearly more or less than was said."""
        now, said = self.impact, self.said
        apart = now.low_percent > said.high_percent or now.high_percent < said.low_percent
        return now.window_s > said.window_s or apart


class Heart:
    """The heartbeats of one node and what they add to its findings."""

    def __init__(
        self,
        node: str,
        rules: Sequence[HypothesisRule],
        history: SubjectHistory,
        leave_out: Callable[[Channel], bool] | None = None,
    ) -> None:
        self._node, self._rules, self._history = node, rules, history
        self._watch = HeartbeatWatch(leave_out)
        self._courses: dict[str, Course] = {}
        self._glimpses = Glimpses()
        self._others: dict[str, _Open] = {}
        self._own: dict[str, _Own] = {}

    @property
    def slower(self) -> bool:
        """Whether a job is slower now: nothing is to be learned meanwhile."""
        return any(course.since_ns is not None for course in self._courses.values())

    @property
    def beats(self) -> Mapping[str, Beat]:
        """The heartbeats that were followed in the last second, by subject."""
        return self._watch.beats

    def lines(self) -> tuple[str, ...]:
        """How each job that is watched steps, or why that cannot be read."""
        return self._watch.lines()

    def step(
        self,
        message: Message,
        table: ChannelTable,
        seen: ObservedSecond | None,
        updates: Sequence[FindingUpdate],
    ) -> list[FindingUpdate]:
        """One second: what was told of it already, with impacts, and what is told besides."""
        end_ns = message.start_ns + len(message.fast) * message.tick_us * 1000
        self._follow(message, table, seen, end_ns)
        made = [self._decorated(update, end_ns) for update in updates]
        said = {update.finding.id for update in updates}
        made += self._news(said, end_ns)
        made += self._slowdowns(end_ns)
        return made

    def finish(self, updates: Sequence[FindingUpdate]) -> list[FindingUpdate]:
        """The last state of what is still open when watching ends."""
        made = [self._decorated(update, update.finding.last_seen_ns) for update in updates]
        return made + [
            FindingUpdate(FindingChange.CHANGED, told(own.base, own.impact))
            for own in self._own.values()
        ]

    def _follow(
        self, message: Message, table: ChannelTable, seen: ObservedSecond | None, end_ns: int
    ) -> None:
        beats = self._watch.step(message, table, learn=not self._alarm(end_ns))
        for subject in beats:
            self._courses.setdefault(subject, Course(subject))
        for subject, course in list(self._courses.items()):
            course.step(beats.get(subject), end_ns)
            if course.silent and subject not in self._own:
                del self._courses[subject]
        if seen is None or not self._courses:
            self._glimpses.clear()
        else:
            self._glimpses.take(seen)

    def _alarm(self, now_ns: int) -> bool:
        young = now_ns - _ALARM_S * NS_PER_SECOND
        return self.slower or any(
            one.resolved_ns is None and one.finding.first_seen_ns > young
            for one in self._others.values()
        )

    def _decorated(self, update: FindingUpdate, now_ns: int) -> FindingUpdate:
        """An update of another finding with what is known of its cost."""
        if update.change is FindingChange.SUSPECTED:
            return update
        before = self._others.get(update.finding.id)
        finding = self._with_cost(update.finding, before.finding if before else None, now_ns)
        resolved = now_ns if update.change is FindingChange.RESOLVED else None
        self._others[finding.id] = _Open(finding, resolved)
        return FindingUpdate(update.change, finding)

    def _with_cost(self, finding: Finding, before: Finding | None, now_ns: int) -> Finding:
        """With the impact of the job that loses most, or the note that none lost anything."""
        impact = self._worst() or (before.impact if before else None)
        if impact is not None:
            return replace(finding, impact=impact)
        if now_ns - finding.first_seen_ns < STEADY_S * NS_PER_SECOND:
            return finding
        note = self._steady_note() or _kept_note(before)
        return replace(finding, notes=(*finding.notes, note)) if note else finding

    def _news(self, said: set[str], now_ns: int) -> list[FindingUpdate]:
        """Open findings whose cost became known, or is now told by a longer window."""
        made = []
        for name, one in list(self._others.items()):
            if one.resolved_ns is not None:
                if now_ns - one.resolved_ns > _COVERED_S * NS_PER_SECOND:
                    del self._others[name]
                continue
            bare = replace(one.finding, notes=_without_note(one.finding.notes))
            finding = self._with_cost(bare, one.finding, now_ns)
            if name not in said and _is_news(one.finding, finding):
                one.finding = finding
                made.append(FindingUpdate(FindingChange.CHANGED, finding))
        return made

    def _worst(self) -> Impact | None:
        impacts = [course.impact for course in self._courses.values() if course.impact]
        return max(impacts, key=lambda impact: impact.slowdown_percent, default=None)

    def _steady_note(self) -> str:
        """Said only where every job whose steps are read kept them."""
        courses = list(self._courses.values())
        if not courses or any(course.steady < STEADY_S for course in courses):
            return ""
        names = ", ".join(sorted(course.subject for course in courses))
        return f"{_STEADY}: for {STEADY_S} s {names} kept the usual step time"

    def _slowdowns(self, now_ns: int) -> list[FindingUpdate]:
        """Slowdowns that are findings by themselves: opened, told better, or over."""
        made = []
        for subject, course in list(self._courses.items()):
            own = self._own.get(subject)
            if own is None and course.impact and not self._covered(course.impact.since_ns):
                made.append(self._opened(course.impact, now_ns))
            elif own is not None and course.impact is None:
                del self._own[subject]
                made.append(
                    FindingUpdate(
                        FindingChange.RESOLVED, told(own.base, own.impact, resolved_ns=now_ns)
                    )
                )
            elif own is not None and course.impact is not None:
                own.base = replace(own.base, last_seen_ns=now_ns)
                own.impact = course.impact
                if own.is_news:
                    own.said = own.impact
                    made.append(FindingUpdate(FindingChange.CHANGED, told(own.base, own.impact)))
        return made

    def _covered(self, since_ns: int) -> bool:
        first = since_ns - _COVERS_S * NS_PER_SECOND
        return any(one.finding.first_seen_ns >= first for one in self._others.values())

    def _opened(self, impact: Impact, now_ns: int) -> FindingUpdate:
        trace = self._glimpses.around(impact.since_ns)
        base = opened(self._node, impact, Context(trace, self._rules, self._history), now_ns)
        self._own[impact.subject] = _Own(base, impact, impact)
        return FindingUpdate(FindingChange.OPENED, told(base, impact))


_STEADY = "changed, job not slowed"


def _kept_note(before: Finding | None) -> str:
    notes = before.notes if before else ()
    return next((note for note in notes if note.startswith(_STEADY)), "")


def _without_note(notes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(note for note in notes if not note.startswith(_STEADY))


def _is_news(before: Finding, now: Finding) -> bool:
    if before.impact is None or now.impact is None:
        return (before.impact, before.notes) != (now.impact, now.notes)
    return before.impact.subject == now.impact.subject and (
        now.impact.window_s > before.impact.window_s
    )
