"""One node's analysis: slices in, changes of findings out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.episodes.context import changed_lines, warmup_load
from reveal_analyzer.episodes.findings import Casebook
from reveal_analyzer.episodes.trace import Observed
from reveal_analyzer.episodes.tracker import Verdict
from reveal_analyzer.fleet.minute import Minutes
from reveal_analyzer.heartbeat.findings import Heart
from reveal_analyzer.hypotheses import loader
from reveal_analyzer.hypotheses.signatures import Hit, Now, Signatures
from reveal_analyzer.live.discards import Discards
from reveal_analyzer.live.job_starts import Newcomers
from reveal_analyzer.live.score import LiveScore, Scored
from reveal_analyzer.live.settings import live_settings
from reveal_analyzer.paper.fit_budget import Fits
from reveal_analyzer.paper.methods import Methods
from reveal_analyzer.paper.mode import PaperMode
from reveal_analyzer.selection.shown import EVERYTHING, Shown
from reveal_analyzer.stream.clock_steps import ClockSteps
from reveal_analyzer.subjects.directory import Subjects, nobody
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingUpdate, Method
from reveal_contract.metric import Subsystem
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

__all__ = ["NodeAnalyzer", "Status"]

_LASTING = (
    "it lasts: after {0} s its level was taken as this node's new normal, for other faults to show;"
    " this one stays open until the levels from before return"
)


@dataclass(frozen=True)
class Status:
    """Where the analysis of a node stands, for a terminal and for metrics.

    ``warmup_load`` is the mean load while learning: busy CPUs in cores, pressures 0 to 1;
    ``over`` score / cut by subsystem; ``changed`` lines of context, never findings;
    ``heartbeats`` how each busy job steps, or why that cannot be read.
    """

    learning: bool
    seconds: int
    warmup_load: dict[str, float]
    over: Mapping[Subsystem, float] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    heartbeats: tuple[str, ...] = ()


class NodeAnalyzer:
    """Judges the slices of one node, in order.

    ``leave_out`` names channels that detection must not see (subjects are still named from
    all): a bench leaves the injected fault's own cgroup out.  ``subjects`` gives the node's
    subject table as it is now.  ``shown`` is a selection of metrics for evidence and, where it
    asks for that, for scores.  ``fits`` is what nodes that are judged together share.
    """

    def __init__(
        self,
        node: str,
        settings: AnalyzerSettings,
        leave_out: Callable[[Channel], bool] | None = None,
        rules: Sequence[loader.Rule] | None = None,
        subjects: Subjects = nobody,
        shown: Shown = EVERYTHING,
        fits: Fits | None = None,
    ) -> None:
        self.node = node
        self.minutes = Minutes(self._periods)
        rules = loader.load(settings.hypotheses) if rules is None else rules
        self._live = LiveScore(
            live_settings(settings.sensitivity, settings.warmup_seconds), crc32(node.encode())
        )
        self._deriver = Deriver(leave_out)
        self._signatures = Signatures(rules)
        self._shown = shown
        unseen = shown.leaves_out(leave_out)
        self._methods = Methods(settings.window_seconds, settings.warmup_seconds, unseen, fits)
        self._history = SubjectHistory(subjects)
        self._newcomers = Newcomers()
        self._discards = Discards()
        self._cases = Casebook(node, rules, self._history, self._agreeing, shown)
        self._heart = Heart(node, rules, self._history, leave_out)
        self._paper = PaperMode(node) if settings.mode == "paper" else None
        self._scored = Scored(ready=False)
        self._clock = ClockSteps()
        self._last: tuple[bytes, int] | None = None
        self._load: dict[str, float] = {}

    def step(
        self, message: Message, table: ChannelTable, *, data: bytes = b"", silent: bool = False
    ) -> list[FindingUpdate]:
        """Judge one slice; ``silent`` learns from it and reports nothing.

        ``data`` are the bytes the message was decoded from, where they are at hand.
        """
        message = self._clock.follow(message, holds=self._cases.any_open)
        self._follow_time(message)
        second = self._deriver.second(message, table)
        self._history.push(second)
        self.minutes.push(second)
        # who looks at each window keeps the numbers
        self._methods.push(message, table, b"" if self._paper else data)
        updates = self._decide(second)
        if not self._paper:
            updates = self._heart.step(message, table, self._cases.latest, updates)
        return [] if silent else updates

    def finish(self) -> list[FindingUpdate]:
        """The last state of what is still open when watching ends."""
        if self._paper:
            return self._paper.finish()
        return self._heart.finish(self._cases.finish())

    @property
    def learning(self) -> bool:
        """Whether the node is still learned: only certain signatures speak."""
        return self._live.learning

    def status(self) -> Status:
        """A snapshot."""
        seen = self._cases.latest
        return Status(
            learning=self.learning,
            seconds=self._live.age,
            warmup_load=self._load,
            over=self._scored.over,
            changed=changed_lines(seen) if seen and self._scored.ready else (),
            heartbeats=self._heart.lines(),
        )

    def _follow_time(self, message: Message) -> None:
        """Nothing may span a restart of the host, a gap in the stream or a clock step."""
        last, self._last = self._last, (message.boot, message.start_ns)
        if last is None:
            return
        if message.boot != last[0] or not 0 < message.start_ns - last[1] < 2 * NS_PER_SECOND:
            self._deriver.forget()
            self._live.forget_recent()
            self._methods.reset()

    def _decide(self, second: Second) -> list[FindingUpdate]:
        live = self._live
        live.follow(second)
        baseline = live.baseline()
        lasting, present = self._certain(second)
        excused = self._newcomers.push(second) | self._discards.push(second)
        alarm = bool(present) or self._heart.slower
        told = self._cases.opened_within(live.settings.give_up)
        self._scored = scored = live.step(
            self._scorable(second), alarm=alarm, told=told, excused=excused
        )
        if live.learning:
            self._load = warmup_load(self._load, live.age, second)
        if self._paper:
            return self._paper.step(second.start_ns, self._methods.verdict())
        seen = observed(second, scored, baseline)
        over = scored.over if scored.ready else {}
        verdict = Verdict(second.start_ns, over, lasting, present, scored.staying)
        lasts = live.alarm_seconds == live.settings.give_up
        note = _LASTING.format(live.settings.give_up) if lasts else ""
        return self._cases.step(verdict, seen, note)

    def _scorable(self, second: Second) -> Second:
        """The second as the live score may see it."""
        values = self._shown.scores(second.plan.columns, second.values)
        return second if values is second.values else second._replace(values=values)

    def _certain(self, second: Second) -> tuple[list[Hit], list[Hit]]:
        """Signatures that hold; while learning none may compare with a past."""
        live = self._live
        if live.learning or live.ranges is None:
            highest = np.full(len(second.plan.columns), np.inf)
        else:
            highest = live.highest()
        return self._signatures.step(second.plan, Now(second.values, highest, live.cpus))

    def _periods(self) -> dict[str, float]:
        """Step times of the jobs as they are now, in seconds; of those that can be trusted."""
        beats = self._heart.beats.items()
        return {subject: beat.period for subject, beat in beats if beat.readings}

    def _agreeing(self) -> tuple[Method, ...]:
        verdict = self._methods.verdict()
        return verdict.as_methods() if verdict else ()


def observed(second: Second, scored: Scored, baseline: Floats) -> Observed:
    """What a case remembers of a second; without a reference nothing is in excess."""
    width = len(second.plan.columns)
    if not scored.ready:
        scored = Scored(False, {}, np.zeros((2, width), np.float32), np.zeros(width, np.float32))
    return Observed(
        second.start_ns, second.plan, second.values, scored.excess, scored.shown, baseline
    )
