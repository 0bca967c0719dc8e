"""The open cases of one node: episodes with what they showed, told as findings."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from reveal_analyzer.episodes import attribution
from reveal_analyzer.episodes.attribution import Case
from reveal_analyzer.episodes.trace import Observed, Trace
from reveal_analyzer.episodes.tracker import Episode, EpisodeTracker, Verdict
from reveal_analyzer.hypotheses.loader import Rule
from reveal_analyzer.selection.shown import EVERYTHING, Shown
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Method, State
from reveal_contract.time_units import NS_PER_SECOND

_SEEN = 12  # seconds kept for the trace of an episode that opens
# seconds after its opening at which a case is looked at anew: who does harm from its start on is
# named by its cgroup or not at all until the node has learned whose that is
_LOOKS_S = frozenset((1, 2, 3, 5, 8, 13, 21, 34, 55))

Methods = tuple[Method, ...]


@dataclass
class _Open:
    trace: Trace
    methods: Methods
    notes: tuple[str, ...] = ()
    pods: tuple[object, ...] = ()  # those that were told of last


class Casebook:
    """Turns verdicts into updates; ``methods`` says which of the paper's detectors agree now."""

    def __init__(
        self,
        node: str,
        rules: Sequence[Rule],
        history: SubjectHistory,
        methods: Callable[[], Methods],
        shown: Shown = EVERYTHING,
    ) -> None:
        self._node, self._rules, self._history = node, rules, history
        self._methods, self._shown = methods, shown
        self._episodes = EpisodeTracker()
        self._seen: deque[Observed] = deque(maxlen=_SEEN)
        self._open: dict[int, _Open] = {}

    @property
    def latest(self) -> Observed | None:
        """What was observed last."""
        return self._seen[-1] if self._seen else None

    @property
    def any_open(self) -> bool:
        """Whether a finding goes on."""
        return bool(self._episodes.open)

    def opened_within(self, seconds: int) -> bool:
        """Whether a finding goes on that opened so many seconds ago at most."""
        return any(
            self._seen[-1].start_ns - episode.opened_ns < seconds * NS_PER_SECOND
            for episode in self._episodes.open
        )

    def step(self, verdict: Verdict, seen: Observed, note: str = "") -> list[FindingUpdate]:
        """Take in one second; ``note`` is written on every case that is open in it."""
        self._seen.append(seen)
        changes = self._episodes.step(verdict)
        if not changes and not self._episodes.open:  # nearly all seconds of nearly all nodes
            return []
        for episode in self._episodes.open:
            self._gather(episode, verdict, note)
        changes = [self._joined(change, episode) for change, episode in changes]
        told = [self._told(change, episode) for change, episode in changes]
        known = {id(episode) for _, episode in changes}
        rest = [episode for episode in self._episodes.open if id(episode) not in known]
        return told + self._looked_at(rest, verdict.start_ns)

    def finish(self) -> list[FindingUpdate]:
        """The last state of what is still open when watching ends."""
        return [self._told(change, episode) for change, episode in self._episodes.finish()]

    def _looked_at(self, episodes: Sequence[Episode], now_ns: int) -> list[FindingUpdate]:
        """Cases that opened a while ago, where other pods are named by now.

        Of other subjects it is not told: as time goes by, what a fault did is found with its
        neighbours, too (a parent is charged with what its child wrote, when that ends).
        """
        updates = []
        for episode in episodes:
            if (now_ns - episode.opened_ns) // NS_PER_SECOND in _LOOKS_S:
                pods = self._about(episode).pods
                update = self._told(FindingChange.CHANGED, episode)
                if self._about(episode).pods != pods:
                    updates.append(update)
        return updates

    def _gather(self, episode: Episode, verdict: Verdict, note: str) -> None:
        """Add this second to what an open episode showed."""
        about = self._about(episode)
        if not episode.speaks:
            return
        if episode.opened_ns != verdict.start_ns:
            about.trace.add(self._seen[-1])
        about.methods = max(about.methods, self._methods(), key=_strength)
        if note and note not in about.notes:
            about.notes += (note,)

    def _joined(self, change: FindingChange, episode: Episode) -> tuple[FindingChange, Episode]:
        """An episode that opens on symptoms of one that is open is no second finding."""
        if change is not FindingChange.OPENED:
            return change, episode
        case = self._case(episode)
        for other in self._episodes.open:
            if other is episode or not other.speaks:
                continue
            if attribution.only_symptoms(case, self._case(other), self._rules):
                self._episodes.join(episode, other)
                del self._open[id(episode)]
                return FindingChange.CHANGED, other
        return change, episode

    def _about(self, episode: Episode) -> _Open:
        if id(episode) not in self._open:
            trace = Trace()
            for seen in self._seen:
                if episode.first_ns <= seen.start_ns:
                    trace.add(seen)
            self._open[id(episode)] = _Open(trace, self._methods())
        return self._open[id(episode)]

    def _case(self, episode: Episode, *, resolved: bool = False) -> Case:
        about = self._about(episode)
        return Case(
            node=self._node,
            episode=episode,
            trace=about.trace,
            methods=about.methods,
            state=State.RESOLVED if resolved else State.OPEN,
            resolved_ns=episode.last_ns if resolved else None,
            notes=about.notes,
        )

    def _told(self, change: FindingChange, episode: Episode) -> FindingUpdate:
        about = self._about(episode)
        case = self._case(episode, resolved=change is FindingChange.RESOLVED)
        if change in (FindingChange.SUSPECTED, FindingChange.RESOLVED):
            del self._open[id(episode)]
        found = attribution.finding(case, self._rules, self._history)
        about.pods = _pods(found)
        row = partial(attribution.evidence, about.trace)
        return FindingUpdate(change, self._shown.told(found, about.trace.evidence.columns, row))


def _pods(found: Finding) -> tuple[object, ...]:
    """Whom people would go to: who is named first, and everybody who is."""
    pods = tuple((pod.namespace, pod.name, pod.uid) for pod in found.pods)
    return pods[:1], frozenset(pods)


def _strength(methods: Methods) -> tuple[int, int, int]:
    """The verdict of the window most of the three agreed on is the one to keep, any over none."""
    return len(methods), sum(m.agrees for m in methods), sum(m.score_percent for m in methods)
