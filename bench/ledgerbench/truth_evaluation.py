"""Compares the ledger of recorded sessions with the steps of their jobs, and judges findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from faultbench.evaluation import TimedUpdate
from faultbench.recording_index import SUFFIX, read_index
from faultbench.sessions import Case, Session
from ledgerbench.host_states import STATES
from ledgerbench.judged_faults import (
    JUDGES,
    Verdict,
    cause_of,
    culprit_of,
    others,
    updates,
    verdict,
)
from ledgerbench.recorded_shares import RecordedShares
from ledgerbench.step_truth import Span, StepLog, Work, cost, read_steps
from ledgerbench.stepping_job import COMPANIONS, log_path, parts_of
from ledgerbench.truth_faults import EXPECTED
from ledgerbench.window_accounts import Account, RecordedLedger
from reveal_cli.workloads import CGROUP_PREFIX

_BEGIN_S = 1.5  # until the programs of a fault run and the ledger has been read once more
_END_S = 2.0  # until what a fault did is over
_WITHOUT_OWN_WAITS = ("train1", "server")  # one thread, without I/O


@dataclass(frozen=True)
class Around:
    """A fault, and the time without one next to it: what the job did and what the ledger says."""

    truth: float
    account: Account
    work: Work


@dataclass(frozen=True)
class CaseResult:
    """One fault in one session."""

    job: str
    state: str
    case: Case
    before: Around
    during: Around
    verdicts: Mapping[str, Verdict]

    @property
    def cost(self) -> float:
        """The part of its rate that this fault cost the job."""
        return cost(self.before.truth, self.during.truth)

    @property
    def accounted_cost(self) -> float:
        """The same by the ledger: how much less of its time the job ran."""
        return cost(self.before.account.waited, self.during.account.waited)

    @property
    def slowdown(self) -> float:
        """The part of its steps a second that the job lost, for whatever reason."""
        before, during = (each.work for each in (self.before, self.during))
        if not before.duration or not before.steps:
            return 0.0
        rates = [work.steps / work.duration for work in (before, during) if work.duration]
        return 1 - rates[-1] / rates[0]

    @property
    def error(self) -> float:
        """The lost share by the ledger less that by the steps."""
        return self.during.account.lost - self.during.truth

    @property
    def has_ledger(self) -> bool:
        """Whether the ledger counted: its cost can have switched it off."""
        return bool(self.before.account.parts) and bool(self.during.account.parts)

    @property
    def is_comparable(self) -> bool:
        """Whether the log can say what was lost: not if the fault made its own waits longer."""
        return self.job in _WITHOUT_OWN_WAITS or not EXPECTED[self.case.fault].alters_own_waits


@dataclass(frozen=True)
class SessionResult:
    """What a session gave; ``others`` are findings without a fault, by judge.

    ``busy_cores`` are the CPUs that everything but job and faults used.
    """

    name: str
    seconds: float
    skipped: Mapping[str, str]
    cases: tuple[CaseResult, ...] = ()
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    busy_cores: float = 0.0


@dataclass(frozen=True)
class Evaluation:
    """Sessions to evaluate: their own waits a step (s) by job, and how long an analyzer learns."""

    directory: Path
    own_waits: Mapping[str, float]
    warmup_s: int

    def of(self, session: Session) -> SessionResult:
        job, state = parts_of(session.workload)
        index = read_index(self.directory / f"{session.path.stem}{SUFFIX}")
        steps = read_steps(log_path(self.directory, session.workload))
        slices = list(session.read())
        recorded = RecordedLedger(slices)
        shares = RecordedShares(session.path)
        heard = {name: updates(name, slices, self.warmup_s, shares) for name in JUDGES}
        epoch, own = index.start_ns / 1e9, self.own_waits.get(job, 0.0)
        subject = f"/{CGROUP_PREFIX}{session.workload}"

        def around(spans: Sequence[Span], cpu: float | None = None) -> Around:
            seconds = [each for span in spans for each in recorded.spans(*span)]
            work = steps.work(seconds)
            return Around(work.lost(own, cpu), recorded.account(subject, seconds), work)

        def result(case: Case) -> CaseResult:
            before, expected = around(quiet_spans(case, epoch)), EXPECTED[case.fault]
            cpu = before.work.cpu_per_step if expected.adds_cpu else None
            verdicts = {name: verdict(case, expected, heard[name]) for name in JUDGES}
            during = around([fault_span(case, epoch)], cpu)
            return CaseResult(job, state, case, before, during, verdicts)

        cases = tuple(result(case) for case in session.cases if case.fault in EXPECTED)
        guilty = [f"/{CGROUP_PREFIX}{name}" for name in (*STATES[state], *COMPANIONS.values())]
        false = {
            name: tuple(
                _line(each) for each in others(session.cases, heard[name], guilty, self.warmup_s)
            )
            for name in JUDGES
        }
        busy = fmean(case.neighbour_cores for case in session.cases)
        return SessionResult(session.name, len(slices), index.skipped, cases, false, busy)


def _line(update: TimedUpdate) -> str:
    finding = update.finding
    cause, culprit = cause_of(finding) or "score", culprit_of(finding) or "nobody"
    return f"{update.seconds:.0f} s: {finding.subsystem} {cause} by {culprit}: {finding.claim}"


def fault_span(case: Case, epoch: float) -> Span:
    """Return the time in which a fault was there, since the epoch."""
    return epoch + case.onset + _BEGIN_S, epoch + case.offset


def quiet_spans(case: Case, epoch: float) -> list[Span]:
    """Return the times without a fault next to it."""
    before = epoch + case.begin, epoch + case.onset
    return [before, (epoch + case.offset + _END_S, epoch + case.end)]


def own_waits(directory: Path, sessions: Sequence[Session]) -> dict[str, float]:
    """Return how long (s) each job waits for itself in a step: its waits on a quiet host.

    A job without a quiet session gets those of the sessions that it has.
    """
    found: dict[str, dict[str, list[Work]]] = defaultdict(lambda: defaultdict(list))
    for session in sessions:
        job, state = parts_of(session.workload)
        if job not in _WITHOUT_OWN_WAITS:
            steps = read_steps(log_path(directory, session.workload))
            found[job][state].append(_quiet_work(directory, session, steps))
    chosen = {
        job: by_state.get("quiet") or [work for works in by_state.values() for work in works]
        for job, by_state in found.items()
    }
    return {job: _total(works).waits_per_step for job, works in chosen.items()}


def _quiet_work(directory: Path, session: Session, steps: StepLog) -> Work:
    epoch = read_index(directory / f"{session.path.stem}{SUFFIX}").start_ns / 1e9
    return steps.work(span for case in session.cases for span in quiet_spans(case, epoch))


def _total(works: Sequence[Work]) -> Work:
    return Work(*(float(sum(column)) for column in zip(*works, strict=True)))
