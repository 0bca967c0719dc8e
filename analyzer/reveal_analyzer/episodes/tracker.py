"""Episodes: adjacent anomalous seconds of one node, opened once, resolved by themselves.

Two things open an episode: the live score over its cut in 5 of 10 seconds, or a certain
signature that holds as long as it asks.  A score over the cut in 2 of 3 seconds, or a
signature present but not yet held, is *suspected* only.  Anomalous seconds of other subsystems
near the opening are the same episode; later ones open one of their own.  An episode whose level
has become the node's new normal stays open while that level stays, and fades.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from reveal_analyzer.hypotheses.signatures import Hit
from reveal_contract.finding import FindingChange
from reveal_contract.metric import Subsystem
from reveal_contract.severity import ranks_lost_at
from reveal_contract.time_units import NS_PER_SECOND


@dataclass(frozen=True)
class EpisodeSettings:
    """All in seconds."""

    need: int = 5  # over the cut, of the last `of`: found
    of: int = 10
    suspect: int = 2  # of the last 3: suspected
    suspect_of: int = 3
    calm: int = 10  # without an anomalous second: resolved
    unseen: int = 60  # nobody saw the node: resolved; a collector that starts again takes less
    joins: int = 5  # after the opening other subsystems still belong to it


class Verdict(NamedTuple):
    """What one second says: scores over cuts (more than 1 is anomalous) and signatures.

    ``staying`` subsystems keep what is open there from ending, and open nothing.
    """

    start_ns: int
    over: Mapping[Subsystem, float]
    lasting: Sequence[Hit] = ()
    present: Sequence[Hit] = ()
    staying: frozenset[Subsystem] = frozenset()

    def scored(self) -> set[Subsystem]:
        """Subsystems over their cut this second."""
        return {s for s, score in self.over.items() if score > 1}

    def anomalous(self) -> set[Subsystem]:
        """Subsystems with anything to say this second: over the cut, or a signature present."""
        scored = self.scored()
        return scored | {hit.rule.subsystem for hit in self.present} if self.present else scored


@dataclass
class Episode:
    """One episode: its anomalous seconds and what spoke in them."""

    first_ns: int
    last_ns: int
    subsystem: Subsystem
    subsystems: list[Subsystem] = field(default_factory=list)
    weight: dict[Subsystem, float] = field(default_factory=dict)
    peak: float = 0.0
    hits: dict[str, Hit] = field(default_factory=dict)
    seconds: int = 0
    calm: int = 0
    opened_ns: int = 0
    stays: bool = False
    speaks: bool = True  # in the second it was last told of

    def add(self, verdict: Verdict, subsystems: Iterable[Subsystem]) -> None:
        """Count an anomalous second."""
        self.last_ns = verdict.start_ns + NS_PER_SECOND
        self.seconds += 1
        self.calm, self.speaks = 0, True
        mine = sorted(subsystems)
        for subsystem in mine:
            score = min(verdict.over.get(subsystem, 0.0), 10.0)
            self.weight[subsystem] = self.weight.get(subsystem, 0.0) + score
            self.peak = max(self.peak, score)
            if subsystem not in self.subsystems:
                self.subsystems.append(subsystem)
        for hit in verdict.lasting:
            if hit.rule.subsystem in mine:  # those of others are another episode's
                self.hits.setdefault(hit.rule.name, hit)

    def take(self, other: Episode) -> None:
        """What another one showed is part of this one."""
        self.subsystems += [s for s in other.subsystems if s not in self.subsystems]
        for subsystem, weight in other.weight.items():
            self.weight[subsystem] = self.weight.get(subsystem, 0.0) + weight
        self.peak = max(self.peak, other.peak)
        for name, hit in other.hits.items():
            self.hits.setdefault(name, hit)

    def stay(self, verdict: Verdict) -> None:
        """Its level is still there, and no news any more."""
        self.last_ns = verdict.start_ns + NS_PER_SECOND
        self.calm, self.stays, self.speaks = 0, True, False

    def rest(self) -> None:
        """Nothing of it is seen in this second."""
        self.calm += 1
        self.speaks = False

    @property
    def faded(self) -> int:
        """By how many ranks it counts for less, as it has stayed for so long."""
        age = (self.last_ns - self.first_ns) // NS_PER_SECOND
        return ranks_lost_at(age) if self.stays else 0

    @property
    def told(self) -> tuple[object, ...]:
        """What is worth an update when it changes."""
        return tuple(self.subsystems), tuple(self.hits), self.faded

    def primary(self) -> Subsystem:
        """The subsystem of the first certain signature, else the one whose scores weigh most."""
        for hit in self.hits.values():
            return hit.rule.subsystem
        return max(self.subsystems, key=lambda s: self.weight.get(s, 0.0))


class EpisodeTracker:
    """Merges the verdicts of one node into episodes."""

    def __init__(self, settings: EpisodeSettings | None = None) -> None:
        self.settings = settings or EpisodeSettings()
        self.open: list[Episode] = []
        self._recent: deque[Verdict] = deque(maxlen=self.settings.of)
        self._suspected = False

    def step(self, verdict: Verdict) -> list[tuple[FindingChange, Episode]]:
        """Take in one second; say what opened, grew or resolved."""
        changes = self._after_gap(verdict.start_ns)
        self._recent.append(verdict)
        free = verdict.anomalous()
        if not free and not self.open:  # nearly all seconds of nearly all nodes
            self._suspected = False
            return changes
        for episode in self.open:
            mine = self._belonging(episode, verdict, free)
            free -= mine
            before = episode.told
            if mine:
                episode.add(verdict, mine)
            elif not verdict.staying.isdisjoint(episode.subsystems):
                episode.stay(verdict)
            else:
                episode.rest()
            if episode.told != before:
                changes.append((FindingChange.CHANGED, episode))
        changes += self._resolved()
        changes += self._opened(verdict, free)
        return changes

    def join(self, episode: Episode, other: Episode) -> None:
        """Make one episode part of another: what it shows is the other's doing."""
        self.open.remove(episode)
        other.take(episode)

    def finish(self) -> list[tuple[FindingChange, Episode]]:
        """What is still open when the watch ends."""
        return [(FindingChange.CHANGED, episode) for episode in self.open]

    def _belonging(
        self, episode: Episode, verdict: Verdict, free: set[Subsystem]
    ) -> set[Subsystem]:
        young = verdict.start_ns - episode.opened_ns <= self.settings.joins * NS_PER_SECOND
        return {s for s in free if young or s in episode.subsystems}

    def _after_gap(self, now_ns: int) -> list[tuple[FindingChange, Episode]]:
        """A time that nobody saw is no calm one, but a long one ends what was open."""
        unseen = now_ns - self._recent[-1].start_ns - NS_PER_SECOND if self._recent else 0
        while (
            self._recent and now_ns - self._recent[0].start_ns >= self.settings.of * NS_PER_SECOND
        ):
            self._recent.popleft()
        for episode in self.open if unseen >= self.settings.unseen * NS_PER_SECOND else ():
            episode.calm = self.settings.calm
        return self._resolved() if self.open else []

    def _resolved(self) -> list[tuple[FindingChange, Episode]]:
        ended = [e for e in self.open if e.calm >= self.settings.calm]
        self.open = [e for e in self.open if e.calm < self.settings.calm]
        return [(FindingChange.RESOLVED, episode) for episode in ended]

    def _opened(
        self, verdict: Verdict, free: set[Subsystem]
    ) -> list[tuple[FindingChange, Episode]]:
        if not free:
            self._suspected = False
            return []
        recent = list(self._recent)
        span = [v for v in recent if v.anomalous() & free]
        scored = sum(1 for v in recent if v.scored() & free)
        if (
            any(hit.rule.subsystem in free for hit in verdict.lasting)
            or scored >= self.settings.need
        ):
            self._suspected = False
            self.open.append(self._start(span, verdict))
            return [(FindingChange.OPENED, self.open[-1])]
        lately = [v for v in recent[-self.settings.suspect_of :] if v.anomalous() & free]
        if not self._suspected and len(lately) >= self.settings.suspect:
            self._suspected = True
            return [(FindingChange.SUSPECTED, self._start(lately, verdict))]
        return []

    def _start(self, span: list[Verdict], verdict: Verdict) -> Episode:
        episode = Episode(
            first_ns=span[0].start_ns,
            last_ns=verdict.start_ns + NS_PER_SECOND,
            subsystem=Subsystem.CPU,
            opened_ns=verdict.start_ns,
        )
        taken = {s for e in self.open for s in e.subsystems}
        for earlier in span:
            episode.add(earlier, earlier.anomalous() - taken)
        episode.subsystem = episode.primary()
        return episode
