"""Analysis of one node: takes slices, returns changes of findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.deriver import Deriver, Second, is_gap
from reveal_analyzer.episodes.context import changed_lines, warmup_load
from reveal_analyzer.episodes.episode import SecondVerdict
from reveal_analyzer.episodes.findings import FindingTracker
from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.fleet.minute import MinuteRecorder
from reveal_analyzer.gangs.recorder import RankRecorder
from reveal_analyzer.heartbeat.findings import JobMonitor
from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.hypotheses import loader
from reveal_analyzer.hypotheses.bound_signature import ConditionInputs
from reveal_analyzer.hypotheses.signature_matcher import Matches, SignatureMatcher
from reveal_analyzer.ledger.accounts import AccountReader, Accounts
from reveal_analyzer.ledger.announced_shares import ShareSource, equal_shares
from reveal_analyzer.ledger.cost_meter import CostMeter
from reveal_analyzer.ledger.gpu_time import GpuHours, GpuTime
from reveal_analyzer.ledger.job_losses import JobLosses
from reveal_analyzer.ledger.loss_watch import NOTHING, LossWatch
from reveal_analyzer.ledger.lost_time import LostTime, lost_time
from reveal_analyzer.ledger.stop_watch import StopWatch
from reveal_analyzer.ledger.totals import LedgerTotals
from reveal_analyzer.live.job_starts import JobStarts
from reveal_analyzer.live.score import OPTIONAL, LiveScore, Scored
from reveal_analyzer.live.settings import live_settings
from reveal_analyzer.live.unscored import Unscored
from reveal_analyzer.paper.fit_budget import FitBudget
from reveal_analyzer.paper.methods import PaperMethods, WindowSettings
from reveal_analyzer.paper.mode import PaperMode
from reveal_analyzer.selection.applied import NO_SELECTION, AppliedSelection
from reveal_analyzer.state.codec import SectionPath
from reveal_analyzer.state.tree import Stateful, StateTree, integer, number, octets, section
from reveal_analyzer.stream.clock_steps import ClockSteps
from reveal_analyzer.subjects.directory import SubjectSource, no_subjects
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_analyzer.verification.watch import VerificationWatch
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingUpdate, Method
from reveal_contract.metric import Subsystem
from reveal_contract.sensitivity import SENSITIVITIES
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

__all__ = ["OPTIONAL_STATE", "Announced", "NodeAnalyzer", "Status"]

# sections of the saved state that are left out, in this order, if it is too large
OPTIONAL_STATE: tuple[SectionPath, ...] = (
    ("minute",), *(("live", *path) for path in OPTIONAL), ("costs",), ("verification",),
    ("cases", "subjects"),
)  # fmt: skip
# how the node is when nothing is wrong; jobs may be others in another scan
_BASELINE = frozenset({"live", "job_starts"})


@dataclass(frozen=True)
class Status:
    """State of the analysis of a node, for a terminal and for metrics.

    ``warmup_load`` is the mean load during the warm-up: busy CPUs in cores, pressures 0 to 1.
    ``over`` is the score divided by its threshold, by subsystem.  ``changed`` are lines of
    context, never findings.  ``heartbeats`` is a line for each busy job: its step time, or why
    that cannot be read.
    """

    learning: bool
    seconds: int
    warmup_load: dict[str, float]
    over: Mapping[Subsystem, float] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    heartbeats: tuple[str, ...] = ()


class Announced(NamedTuple):
    """What the collector of a node says of its subjects, as it is now."""

    subjects: SubjectSource = no_subjects
    shares: ShareSource = equal_shares


NOTHING_ANNOUNCED = Announced()


class NodeAnalyzer:
    """Analyzes the slices of one node, in order.

    ``leave_out`` selects channels that detection must ignore (culprits are still searched among
    all): a benchmark leaves out the cgroup of the injected fault.  ``selection`` restricts the
    metrics of evidence and, if it asks for that, of scores.  ``fit_budget`` is shared by nodes that
    are analyzed together.  Two functions may be set.  They get nothing of silent seconds:
    ``on_accounts`` the ledger of each second, ``on_gpu_hours`` the GPU-hours of some seconds.
    """

    def __init__(
        self,
        node: str,
        settings: AnalyzerSettings,
        leave_out: Callable[[Channel], bool] | None = None,
        rules: Sequence[loader.HypothesisRule] | None = None,
        announced: Announced = NOTHING_ANNOUNCED,
        selection: AppliedSelection = NO_SELECTION,
        fit_budget: FitBudget | None = None,
    ) -> None:
        self.node = node
        self.minutes = MinuteRecorder(self._periods)
        rules = loader.load(settings.hypotheses) if rules is None else rules
        self._live = LiveScore(
            live_settings(settings.sensitivity, settings.warmup_seconds), crc32(node.encode())
        )
        self._deriver = Deriver(leave_out)
        self._signatures = SignatureMatcher(rules)
        self._account_reader = AccountReader()
        self._losses, self._lost = LossWatch(rules, announced.shares), LedgerTotals()
        self._stops = StopWatch(rules)
        self._accounts: Accounts | None = None
        self.on_accounts: Callable[[Accounts], None] = _ignore
        self._selection = selection
        ignored = selection.excludes(leave_out)
        windows = window_settings(settings)
        self._methods = PaperMethods(windows, ignored, fit_budget)
        self._history = SubjectHistory(announced.subjects)
        self.ranks = RankRecorder(node, self._history)
        self._job_losses = JobLosses(rules, self._history.name)
        self._job_starts = JobStarts()
        self._unscored = Unscored()
        self._findings = FindingTracker(
            node, rules, self._history, self._agreeing, selection, self._live
        )
        self._jobs = JobMonitor(node, rules, self._history, leave_out)
        self._costs = CostMeter(self._history.identity, self._jobs.has_recovered)
        self._verifications = VerificationWatch(
            lambda: self._history.listed, self._jobs.has_recovered
        )
        self._gpu_time = GpuTime(lambda: self._history.listed, self._costs.lost_gpus)
        self.on_gpu_hours: Callable[[Mapping[str, GpuHours]], None] = _ignore
        self._paper: PaperMode | None = None
        if settings.mode == "paper":
            self._paper = PaperMode(node, windows, rules, self._history)
        self._scored = Scored(ready=False)
        self._clock = ClockSteps()
        self._last: tuple[bytes, int] | None = None
        self._load: dict[str, float] = {}

    def analyze(
        self, message: Message, table: ChannelTable, *, data: bytes = b"", silent: bool = False
    ) -> list[FindingUpdate]:
        """Analyze one slice; ``silent`` learns from it and reports nothing.

        ``data`` is the encoded message, if it is available.
        """
        message = self._clock.adjust(message, finding_open=self._any_open)
        self._reset_after_gap(message)
        second = self._deriver.second(message, table)
        self._history.push(second)
        self.minutes.push(second)
        # the paper mode evaluates every window and needs the decoded values, not the bytes
        self._methods.push(message, table, b"" if self._paper else data)
        decided = self._decide(second)
        if self._accounts is not None:
            self._job_losses.push(second.start_ns, self._accounts)
            if not self._paper:
                self.ranks.push(second.start_ns, self._accounts, self._jobs.step_times)
            if not silent:
                self._lost.add(self._accounts)
                self.on_accounts(self._accounts)
        updates = self._job_losses.added(decided)
        if not self._paper:
            updates = self._jobs.update(message, table, self._findings.latest, updates)
        updates = self._costs.added(updates, self._now_ns)
        if not self._paper:
            updates += self._verifications.update(updates, self._jobs.step_times, self._now_ns)
        gpu_hours = self._gpu_time.push(self._now_ns)
        if silent:
            return []
        if gpu_hours:
            self.on_gpu_hours(gpu_hours)
        return updates

    def finish(self) -> list[FindingUpdate]:
        """Return the last state of the findings that are open when watching ends."""
        updates = self._job_losses.added((self._paper or self._findings).finish())
        updates = updates if self._paper else self._jobs.finish(updates)
        return self._costs.added(updates, self._now_ns)

    def note_changes(self, changes: Sequence[str]) -> None:
        """Note facts that changed lately, to see what they did for jobs that findings slow."""
        self._verifications.note(changes, self._now_ns)

    def save(self) -> StateTree:
        """Return what was learned, by part; it may be saved at any time between two slices."""
        boot, start_ns = self._last or (b"", 0)
        parts = {name: part.save() for name, part in self._stateful().items()}
        return {**parts, "boot": boot.hex(), "start": start_ns, "load": dict(self._load)}

    def restore(self, tree: StateTree) -> None:
        """Continue with what was learned before the first slice; raises ``StateError``.

        A part that is not saved, as by an earlier version, is learned again.
        """
        self._restore(tree, self._stateful())
        boot = octets(tree, "boot")
        self._last = (boot, integer(tree, "start", least=-(2**63))) if boot else None
        load = section(tree, "load")
        self._load = {name: number(load, name) for name in load}

    def restore_baseline(self, tree: StateTree) -> None:
        """Start from how the node was, without its open findings; raises ``StateError``."""
        self._restore(tree, {n: p for n, p in self._stateful().items() if n in _BASELINE})
        self._live.reset_recent()  # its last seconds are not those just before the next one
        if "live" in tree:  # learned, even if this analysis would warm up for longer
            self._live.age = max(self._live.age, self._live.settings.warmup + 1)

    @staticmethod
    def _restore(tree: StateTree, parts: Mapping[str, Stateful]) -> None:
        for name, part in parts.items():
            if name in tree:
                part.restore(section(tree, name))

    def _stateful(self) -> dict[str, Stateful]:
        """Return the parts whose state is saved, in the order in which they are restored."""
        parts: dict[str, Stateful] = {
            "clock": self._clock, "job_starts": self._job_starts, "job_losses": self._job_losses,
            "losses": self._losses, "costs": self._costs,
        }  # fmt: skip
        if self._paper:  # the others do not run: what they knew would be outdated later
            return {
                **parts,
                "live": self._live,
                "signatures": self._signatures,
                "paper": self._paper,
                "minute": self.minutes,
            }
        return {
            **parts,
            "jobs": self._jobs,
            "live": self._live,
            "signatures": self._signatures,
            "cases": self._findings,
            "verification": self._verifications,
            "minute": self.minutes,
        }

    @property
    def learning(self) -> bool:
        """Whether the warm-up lasts: only certain signatures open findings."""
        return not self._methods.ready if self._paper else self._live.learning

    def status(self) -> Status:
        """Return a snapshot."""
        second = self._findings.latest
        return Status(
            learning=self.learning,
            seconds=self._live.age,
            warmup_load=self._load,
            over=self._scored.over,
            changed=changed_lines(second) if second and self._scored.ready else (),
            heartbeats=self._jobs.lines(),
        )

    @property
    def step_times(self) -> Mapping[str, StepTime]:
        """The step times of the jobs in the last second, by subject."""
        return self._jobs.step_times

    def lost_time(self) -> tuple[LostTime, ...]:
        """Return what each busy subject lost, silent seconds left out; empty without a ledger."""
        return tuple(lost_time(self._lost.totals()))

    def _reset_after_gap(self, message: Message) -> None:
        """Reset state that must not span a reboot, a gap in the stream or a clock step."""
        last, self._last = self._last, (message.boot, message.start_ns)
        if last is None:
            return
        if message.boot != last[0] or is_gap(last[1], message.start_ns):
            self._deriver.reset()
            self._live.reset_recent()
            self._methods.reset()

    @property
    def _now_ns(self) -> int:
        """The end of the last slice, ns by the clock of the node; 0 before the first slice."""
        return self._last[1] + NS_PER_SECOND if self._last else 0

    @property
    def _any_open(self) -> bool:
        """Whether any source of findings has one open, or knows when one will have begun."""
        if self._paper:
            return self._paper.any_open
        return self._findings.any_open or self._jobs.any_open

    def _decide(self, second: Second) -> list[FindingUpdate]:
        live = self._live
        live.adopt_table(second)
        baseline = live.baseline()
        matches = self._match_signatures(second)
        suppressed = self._job_starts.push(second) | self._unscored.push(second)
        self._scored = scored = live.score(
            second,
            alarm=bool(matches.present)
            or self._jobs.slower
            or (self._paper or self._findings).any_open,
            alarmed={match.rule.subsystem for match in matches.present},
            opened=self._findings.opened,
            suppressed=suppressed,
            values=self._scorable(second),
        )
        if live.learning:
            self._load = warmup_load(self._load, live.age, second)
        if self._paper:
            judged = self._methods.verdict() if self._methods.window_ends else None
            this = observed(second, scored, baseline)
            return self._paper.update(second.start_ns, judged, matches, this, self._highest(second))
        over = scored.over if scored.ready else {}
        verdict = SecondVerdict(
            second.start_ns, over, matches.sustained, matches.present, self._has_ledger
        )
        return self._findings.update(verdict, observed(second, scored, baseline))

    def _match_signatures(self, second: Second) -> Matches:
        """Match the certain signatures; in the warm-up none compares with a baseline."""
        highest = self._highest(second)
        inputs = ConditionInputs(
            second.values, highest, self._live.cpus, second.channels, second.start_ns
        )
        findings = self._paper or self._findings
        kept = findings.kept_highest(second.plan, highest) if findings.any_open else {}
        measured = self._match_losses(second)
        harmless = self._losses.harmless_parts if self._has_ledger else ()
        matches = self._signatures.match(second.plan, inputs, kept, harmless)
        return measured.joined(matches)

    def _match_losses(self, second: Second) -> Matches:
        """Match the signatures of the ledger, on a node that has one."""
        self._accounts = accounts = self._account_reader.read(second)
        if accounts is None:
            return NOTHING
        losses = self._losses.match(accounts, self._live.cpus, second.start_ns)
        return losses.joined(self._stops.match(accounts, second.start_ns))

    def _scorable(self, second: Second) -> Floats:
        """Return the values of a second that the score may use."""
        values = self._selection.scorable(second.plan.columns, second.values)
        return self._unscored.scorable(second, values, self._highest(second))

    @property
    def _has_ledger(self) -> bool:
        return self._accounts is not None and bool(self._accounts.valid.any())

    def _highest(self, second: Second) -> Floats:
        """Return the highest level that was normal for each column; infinite in the warm-up."""
        if self._live.learning or self._live.ranges is None:
            return np.full(len(second.plan.columns), np.inf)
        return self._live.highest()

    def _periods(self) -> dict[str, float]:
        """Return the current step times of the jobs, in seconds, if they can be trusted."""
        steps = self.step_times.items()
        return {subject: step.period for subject, step in steps if step.readings}

    def _agreeing(self) -> tuple[Method, ...]:
        verdict = self._methods.verdict()
        return verdict.as_methods() if verdict else ()


def _ignore(_: object) -> None:
    """Do nothing with what was measured: nobody has asked for it."""


def window_settings(settings: AnalyzerSettings) -> WindowSettings:
    """Return the windows of the paper's detectors; only where they decide sensitivity counts."""
    sensitivity = settings.sensitivity if settings.mode == "paper" else "Low"
    return WindowSettings(
        settings.window_seconds,
        settings.stride_seconds,
        settings.warmup_seconds,
        round(1.0 - SENSITIVITIES[sensitivity].quantile, 9),
    )


def observed(second: Second, scored: Scored, baseline: Floats) -> ObservedSecond:
    """Return what a finding needs of a second; without a baseline nothing is in excess."""
    width = len(second.plan.columns)
    excess, weighted = scored.excess, scored.weighted
    if not scored.ready:
        excess, weighted = np.zeros((2, width), np.float32), np.zeros(width, np.float32)
    return ObservedSecond(
        second.start_ns, second.plan, second.values, excess, weighted, baseline, scored.unobserved
    )
