"""Episodes: adjacent anomalous seconds of one node, opened once and resolved automatically.

Two things open an episode: a live score above its threshold in 5 of 10 seconds, or a certain
signature that matches for as long as it asks.  A score above the threshold in 2 of 3 seconds, or a
signature that matches but not yet for long enough, is only *suspected*.  Anomalous seconds of
other subsystems close to the opening belong to the same episode; later ones open another.  An
episode whose level has become the node's new normal stays open while that level lasts, and its
severity fades.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from reveal_analyzer.hypotheses.signatures import SignatureMatch
from reveal_contract.finding import FindingChange
from reveal_contract.metric import Subsystem
from reveal_contract.severity import ranks_lost_by_age
from reveal_contract.time_units import NS_PER_SECOND

_MOST_RATIO = 10.0  # one extreme second must not decide the weight of its subsystem alone


@dataclass(frozen=True)
class EpisodeSettings:
    """Durations of the life of an episode, all in seconds."""

    need: int = 5  # above the threshold, of the last `of`: opened
    of: int = 10
    suspect: int = 2  # of the last `suspect_of`: suspected
    suspect_of: int = 3
    calm: int = 10  # without an anomalous second: resolved
    unobserved: int = 60  # without any slice: resolved; a restart of the collector is shorter
    joins: int = 5  # after the opening, other subsystems still belong to it


class SecondVerdict(NamedTuple):
    """Result of one second.

    ``score_ratios`` are scores divided by their thresholds: above 1 is anomalous.  ``sustained``
    signatures have matched long enough to open an episode, ``present`` ones match in this second.
    Subsystems at their ``new_normal`` keep an open episode from resolving, and open none.
    """

    start_ns: int
    score_ratios: Mapping[Subsystem, float]
    sustained: Sequence[SignatureMatch] = ()
    present: Sequence[SignatureMatch] = ()
    new_normal: frozenset[Subsystem] = frozenset()

    def above_threshold(self) -> set[Subsystem]:
        """Return the subsystems whose score is above its threshold."""
        return {s for s, ratio in self.score_ratios.items() if ratio > 1}

    def anomalous(self) -> set[Subsystem]:
        """Return the subsystems with a score above its threshold or a signature present."""
        above = self.above_threshold()
        return above | {match.rule.subsystem for match in self.present} if self.present else above


@dataclass
class Episode:
    """One episode: its anomalous seconds, and the scores and signatures in them."""

    first_ns: int
    last_ns: int
    subsystem: Subsystem
    subsystems: list[Subsystem] = field(default_factory=list)
    weights: dict[Subsystem, float] = field(default_factory=dict)
    peak: float = 0.0  # highest score ratio
    matches: dict[str, SignatureMatch] = field(default_factory=dict)
    seconds: int = 0
    calm: int = 0
    opened_ns: int = 0
    in_new_normal: bool = False
    anomalous: bool = True  # in its last second

    def add(self, verdict: SecondVerdict, subsystems: Iterable[Subsystem]) -> None:
        """Count an anomalous second."""
        self.last_ns = verdict.start_ns + NS_PER_SECOND
        self.seconds += 1
        self.calm, self.anomalous = 0, True
        own = sorted(subsystems)
        for subsystem in own:
            ratio = min(verdict.score_ratios.get(subsystem, 0.0), _MOST_RATIO)
            self.weights[subsystem] = self.weights.get(subsystem, 0.0) + ratio
            self.peak = max(self.peak, ratio)
            if subsystem not in self.subsystems:
                self.subsystems.append(subsystem)
        for match in verdict.sustained:
            if match.rule.subsystem in own:  # those of others belong to another episode
                self.matches.setdefault(match.rule.name, match)

    def absorb(self, other: Episode) -> None:
        """Take over the subsystems, scores and signatures of another episode."""
        self.subsystems += [s for s in other.subsystems if s not in self.subsystems]
        for subsystem, weight in other.weights.items():
            self.weights[subsystem] = self.weights.get(subsystem, 0.0) + weight
        self.peak = max(self.peak, other.peak)
        for name, match in other.matches.items():
            self.matches.setdefault(name, match)

    def add_new_normal(self, verdict: SecondVerdict) -> None:
        """Count a second in which its level lasts, but has become the node's new normal."""
        self.last_ns = verdict.start_ns + NS_PER_SECOND
        self.calm, self.in_new_normal, self.anomalous = 0, True, False

    def add_calm(self) -> None:
        """Count a second that shows nothing of the episode."""
        self.calm += 1
        self.anomalous = False

    @property
    def ranks_lost(self) -> int:
        """By how many ranks its severity has faded, because its level has lasted so long."""
        age_s = (self.last_ns - self.first_ns) // NS_PER_SECOND
        return ranks_lost_by_age(age_s) if self.in_new_normal else 0

    @property
    def reported_state(self) -> tuple[object, ...]:
        """The part of its state whose change is worth an update."""
        return tuple(self.subsystems), tuple(self.matches), self.ranks_lost

    def primary_subsystem(self) -> Subsystem:
        """Return the subsystem of the first certain signature, else the one of most weight."""
        for match in self.matches.values():
            return match.rule.subsystem
        return max(self.subsystems, key=lambda s: self.weights.get(s, 0.0))


EpisodeChange = tuple[FindingChange, Episode]


class EpisodeTracker:
    """Merges the verdicts on the seconds of one node into episodes."""

    def __init__(self, settings: EpisodeSettings | None = None) -> None:
        self.settings = settings or EpisodeSettings()
        self.open: list[Episode] = []
        self._recent: deque[SecondVerdict] = deque(maxlen=self.settings.of)
        self._suspected = False

    def update(self, verdict: SecondVerdict) -> list[EpisodeChange]:
        """Add one second; return the episodes that opened, changed or resolved."""
        changes = self._close_gap(verdict.start_ns)
        self._recent.append(verdict)
        unassigned = verdict.anomalous()
        if not unassigned and not self.open:  # nearly all seconds of nearly all nodes
            self._suspected = False
            return changes
        for episode in self.open:
            own = self._belonging(episode, verdict, unassigned)
            unassigned -= own
            before = episode.reported_state
            if own:
                episode.add(verdict, own)
            elif not verdict.new_normal.isdisjoint(episode.subsystems):
                # the score has adapted, but the fault is not over
                episode.add_new_normal(verdict)
            else:
                episode.add_calm()
            if episode.reported_state != before:
                changes.append((FindingChange.CHANGED, episode))
        changes += self._resolve()
        changes += self._open_or_suspect(verdict, unassigned)
        return changes

    def merge(self, episode: Episode, into: Episode) -> None:
        """Make one open episode part of another."""
        self.open.remove(episode)
        into.absorb(episode)

    def finish(self) -> list[EpisodeChange]:
        """Return the last state of the episodes that are open when watching ends."""
        return [(FindingChange.CHANGED, episode) for episode in self.open]

    def _belonging(
        self, episode: Episode, verdict: SecondVerdict, unassigned: set[Subsystem]
    ) -> set[Subsystem]:
        """Return the subsystems of this second that belong to an open episode."""
        # consequences of a fault reach other subsystems within seconds
        young = verdict.start_ns - episode.opened_ns <= self.settings.joins * NS_PER_SECOND
        return {s for s in unassigned if young or s in episode.subsystems}

    def _close_gap(self, now_ns: int) -> list[EpisodeChange]:
        """Resolve what was open before a long gap; a short gap does not count as calm."""
        gap_ns = now_ns - self._recent[-1].start_ns - NS_PER_SECOND if self._recent else 0
        span_ns = self.settings.of * NS_PER_SECOND
        while self._recent and now_ns - self._recent[0].start_ns >= span_ns:
            self._recent.popleft()
        for episode in self.open if gap_ns >= self.settings.unobserved * NS_PER_SECOND else ():
            episode.calm = self.settings.calm
        return self._resolve() if self.open else []

    def _resolve(self) -> list[EpisodeChange]:
        ended = [episode for episode in self.open if episode.calm >= self.settings.calm]
        self.open = [episode for episode in self.open if episode.calm < self.settings.calm]
        return [(FindingChange.RESOLVED, episode) for episode in ended]

    def _open_or_suspect(
        self, verdict: SecondVerdict, unassigned: set[Subsystem]
    ) -> list[EpisodeChange]:
        """Open or suspect an episode of subsystems that belong to no open one."""
        if not unassigned:
            self._suspected = False
            return []
        recent = list(self._recent)
        above = sum(1 for v in recent if v.above_threshold() & unassigned)
        certain = any(match.rule.subsystem in unassigned for match in verdict.sustained)
        if certain or above >= self.settings.need:
            self._suspected = False
            self.open.append(self._start(_anomalous_in(recent, unassigned), verdict))
            return [(FindingChange.OPENED, self.open[-1])]
        lately = _anomalous_in(recent[-self.settings.suspect_of :], unassigned)
        # a suspicion is reported once, until a second passes without any
        if not self._suspected and len(lately) >= self.settings.suspect:
            self._suspected = True
            return [(FindingChange.SUSPECTED, self._start(lately, verdict))]
        return []

    def _start(self, span: Sequence[SecondVerdict], verdict: SecondVerdict) -> Episode:
        """Return an episode that begins with the first anomalous second of ``span``."""
        episode = Episode(
            first_ns=span[0].start_ns,
            last_ns=verdict.start_ns + NS_PER_SECOND,
            subsystem=Subsystem.CPU,
            opened_ns=verdict.start_ns,
        )
        assigned = {s for other in self.open for s in other.subsystems}
        for earlier in span:
            episode.add(earlier, earlier.anomalous() - assigned)
        episode.subsystem = episode.primary_subsystem()
        return episode


def _anomalous_in(
    verdicts: Iterable[SecondVerdict], subsystems: set[Subsystem]
) -> list[SecondVerdict]:
    return [verdict for verdict in verdicts if verdict.anomalous() & subsystems]
