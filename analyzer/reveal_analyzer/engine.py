"""One node's analysis: slices in, changes of findings out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from reveal_analyzer import attribution
from reveal_analyzer.attribution import Case
from reveal_analyzer.context import changed_lines, warmup_load
from reveal_analyzer.episodes import Change, Episode, EpisodeTracker, Verdict
from reveal_analyzer.hypotheses import schema
from reveal_analyzer.hypotheses.rules import Now, Signatures
from reveal_analyzer.live.score import LiveScore, Scored
from reveal_analyzer.live.settings import live_settings
from reveal_analyzer.methods import Methods
from reveal_analyzer.paper_mode import PaperMode
from reveal_analyzer.seconds import SECOND_NS, Deriver, Second
from reveal_analyzer.subjects import SubjectHistory
from reveal_analyzer.trace import Observed, Trace
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Finding, Method, State
from reveal_contract.metric import Subsystem
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.wire import Message

_SEEN = 12  # seconds kept for the trace of an episode that opens
_LASTING = "it lasts: since {0} s this level is taken as this node's new normal"


@dataclass(frozen=True)
class Update:
    """What became of a finding: ``Suspected``, ``Opened``, ``Changed`` or ``Resolved``."""

    change: Change
    finding: Finding


@dataclass(frozen=True)
class Status:
    """Where the analysis of a node stands, for a terminal and for metrics."""

    learning: bool
    seconds: int
    warmup_load: dict[str, float]
    over: dict[Subsystem, float] = field(default_factory=dict)
    changed: tuple[str, ...] = ()


@dataclass
class _Open:
    """An open episode with what it showed so far."""

    trace: Trace
    methods: tuple[Method, ...]
    notes: tuple[str, ...] = ()


class NodeAnalyzer:
    """Judges the slices of one node, in order.

    ``leave_out`` names channels that detection must not see (subjects are still named from
    all): a bench leaves the injected fault's own cgroup out.
    """

    def __init__(
        self,
        node: str,
        settings: AnalyzerSettings,
        leave_out: Callable[[Channel], bool] | None = None,
        rules: Sequence[schema.Rule] | None = None,
    ) -> None:
        self.node = node
        self._rules = schema.load(settings.hypotheses) if rules is None else tuple(rules)
        self._live = LiveScore(live_settings(settings.sensitivity, settings.warmup_seconds))
        self._deriver = Deriver(leave_out)
        self._signatures = Signatures(self._rules)
        self._episodes = EpisodeTracker()
        self._methods = Methods(settings.window_seconds, settings.warmup_seconds, leave_out)
        self._paper = PaperMode(node) if settings.mode == "paper" else None
        self._history = SubjectHistory()
        self._seen: deque[Observed] = deque(maxlen=_SEEN)
        self._open: dict[int, _Open] = {}
        self._last: tuple[bytes, int] | None = None
        self._load: dict[str, float] = {}
        self._scored = Scored(ready=False)

    def step(self, message: Message, table: ChannelTable, *, silent: bool = False) -> list[Update]:
        """Judge one slice; ``silent`` learns from it and reports nothing."""
        self._follow_time(message)
        second = self._deriver.second(message, table)
        self._history.push(second)
        self._methods.push(message, table)
        updates = self._decide(second)
        return [] if silent else updates

    def finish(self) -> list[Update]:
        """The last state of what is still open when watching ends."""
        if self._paper:
            return [Update(change, made) for change, made in self._paper.finish()]
        return [self._update(change, episode) for change, episode in self._episodes.finish()]

    def status(self) -> Status:
        """A snapshot; ``over`` is score / cut by subsystem, above 1 is anomalous."""
        seen = self._seen[-1] if self._seen else None
        return Status(
            learning=self._live.learning,
            seconds=self._live.age,
            warmup_load=self._load,
            over=self._scored.over,
            changed=changed_lines(seen) if seen and self._scored.ready else (),
        )

    def _follow_time(self, message: Message) -> None:
        """Nothing may span a restart of the host or a gap in the stream."""
        last, self._last = self._last, (message.boot, message.start_ns)
        if last is None:
            return
        gap = message.start_ns - last[1]
        if message.boot != last[0] or not 0 < gap < 2 * SECOND_NS:
            self._deriver.forget()
            self._live.forget_recent()
            self._methods.reset()

    def _decide(self, second: Second) -> list[Update]:
        live = self._live
        baseline, highest = self._reference(second)
        cpus = sum(1 for c in second.plan.channels if c.metric == "cpu.user" and c.instance)
        now = Now(second.values, highest, max(cpus, 1))
        lasting, present = self._signatures.step(second.plan, now)
        self._scored = scored = live.step(second, alarm=bool(present))
        if live.learning:
            self._load = warmup_load(self._load, live.age, second)
        excess = scored.excess if scored.ready else np.zeros((2, len(second.plan.columns)))
        shown = scored.shown if scored.ready else np.zeros(len(second.plan.columns))
        self._seen.append(
            Observed(second.start_ns, second.plan, second.values, excess, shown, baseline)
        )
        if self._paper:
            verdict = self._methods.verdict()
            return [Update(*made) for made in self._paper.step(second.start_ns, verdict)]
        over = scored.over if scored.ready else {}
        return self._follow(Verdict(second.start_ns, over, lasting, present))

    def _reference(self, second: Second) -> tuple[np.ndarray, np.ndarray]:
        """What each column usually and at most was; unknown while learning."""
        width = len(second.plan.columns)
        self._live.follow(second)
        if self._live.ranges is None:
            return np.full(width, np.nan), np.full(width, np.inf)
        highest = np.full(width, np.inf) if self._live.learning else self._live.highest()
        return self._live.baseline(), highest

    def _follow(self, verdict: Verdict) -> list[Update]:
        updates = []
        changes = self._episodes.step(verdict)
        for episode in self._episodes.open:
            self._gather(episode, verdict)
        for change, episode in changes:
            updates.append(self._update(change, episode))
            if change is Change.RESOLVED:
                self._open.pop(id(episode), None)
        return updates

    def _gather(self, episode: Episode, verdict: Verdict) -> None:
        """Add this second to what an open episode showed."""
        about = self._about(episode)
        if episode.calm:
            return
        if episode.opened_ns != verdict.start_ns:
            about.trace.add(self._seen[-1])
        about.methods = _stronger(about.methods, self._agreeing())
        if self._live.alarm_seconds == self._live.settings.give_up and not about.notes:
            about.notes = (_LASTING.format(self._live.settings.give_up),)

    def _about(self, episode: Episode) -> _Open:
        if id(episode) not in self._open:
            trace = Trace()
            for seen in self._seen:
                if episode.first_ns <= seen.start_ns:
                    trace.add(seen)
            self._open[id(episode)] = _Open(trace, self._agreeing())
        return self._open[id(episode)]

    def _agreeing(self) -> tuple[Method, ...]:
        verdict = self._methods.verdict()
        return verdict.as_methods() if verdict else ()

    def _update(self, change: Change, episode: Episode) -> Update:
        about = self._about(episode)
        resolved = change is Change.RESOLVED
        case = Case(
            node=self.node,
            episode=episode,
            trace=about.trace,
            methods=about.methods,
            state=State.RESOLVED if resolved else State.OPEN,
            resolved_ns=episode.last_ns if resolved else None,
            notes=about.notes,
        )
        if change is Change.SUSPECTED:
            self._open.pop(id(episode), None)
        return Update(change, attribution.finding(case, self._rules, self._history))


def _stronger(before: tuple[Method, ...], now: tuple[Method, ...]) -> tuple[Method, ...]:
    """The verdict of the window most of the three agreed on."""

    def strength(methods: tuple[Method, ...]) -> tuple[int, int]:
        return sum(m.agrees for m in methods), sum(m.score_percent for m in methods)

    return max(before, now, key=strength)
