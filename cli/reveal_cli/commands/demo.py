"""``reveal demo``: a steady real job, a real fault on this host, and the finding.

Nothing is simulated: the job computes, the fault takes real resources, and the scan is the one of
``reveal scan``.  The fault is bounded and undoes itself, also when the demo is interrupted or
killed.  One that other programs notice is injected only with a flag that permits it.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType

from reveal_cli.collector_process import host_flags
from reveal_cli.commands.scan import coverage
from reveal_cli.errors import DONE, ERROR, USAGE, CliError
from reveal_cli.faults import (
    FAULTS,
    Fault,
    FaultError,
    FaultTarget,
    Injection,
    LedgerError,
    UnknownFaultError,
    find,
    sweep,
)
from reveal_cli.faults.guard import guarded
from reveal_cli.findings_table import claim_text
from reveal_cli.interrupt import Interrupt
from reveal_cli.live_session import ScanPlan, ScanState
from reveal_cli.options import (
    add_host,
    analyzer_settings,
    duration,
    format_duration,
    sensitivity,
)
from reveal_cli.progress import Progress, open_progress
from reveal_cli.summary_text import summary_blocks
from reveal_cli.terminal import grid, show, table
from reveal_cli.workloads import Workload, WorkloadError
from reveal_contract.finding import Finding
from reveal_contract.metric import Subsystem

_QUIET_S, _FAULT_S, _AFTER_S = 10.0, 20.0, 12.0  # after the warm-up
# a finding that begins outside of these has another cause; one slice is a second long
_EARLY_NS, _LATE_NS = 1_500_000_000, 5_000_000_000


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "demo",
        help="put a real fault on this host for a moment and show that it is found",
        description="Starts a steady job, learns the baseline, puts a real fault on this host for"
        f" {_FAULT_S:.0f} s, undoes it, and prints what was expected and what was found. Takes"
        " about a minute and a half. Many of the faults need no root.",
        epilog="Example: reveal demo --fault cpu_quota. Exit codes: 0 the fault was found, 1 it was"
        " not found (or an error), 2 wrong usage.",
    )
    parser.add_argument(
        "--fault", metavar="NAME", default="cpu_contend",
        help="the fault to inject (default cpu_contend; see --list)",
    )  # fmt: skip
    parser.add_argument(
        "--list", action="store_true", help="list the faults and whether they work on this host"
    )
    parser.add_argument(
        "--host-wide", action="store_true",
        help="permit a fault that other programs of this host notice (see --list)",
    )  # fmt: skip
    parser.add_argument(
        "--warmup", metavar="TIME", type=duration, default=duration("45s"),
        help="how long to learn the baseline first (default 45s)",
    )  # fmt: skip
    parser.add_argument(
        "--output", metavar="DIR", type=Path,
        help="write findings.jsonl, recording.rvl, summary.json, state.rvs, evidence/ and"
        " report.html to this directory",
    )  # fmt: skip
    parser.set_defaults(run=run, mode="online", redis="", hypotheses=[])
    parser.add_argument(
        "--sensitivity", metavar="LEVEL", type=sensitivity, default="Low",
        help="low (default), medium or high",
    )  # fmt: skip
    add_host(parser)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """List the faults, or inject one and print whether it was found."""
    from reveal_cli.scan_runner import run_scan  # noqa: PLC0415 - numpy, for --help too

    if arguments.list:
        show(fault_list(FAULTS))
        return DONE
    plan = _plan(arguments)
    with contextlib.ExitStack() as stack:
        progress = open_progress()
        schedule = FaultSchedule(_fault(arguments), plan.settings.warmup_seconds, progress)
        _prepare(stack, schedule)
        result = run_scan(plan, arguments.output, progress, interrupt, schedule.on_tick)
    show(*summary_blocks(result.findings, coverage(plan, result.state)))
    show("", *schedule.verdict(result.findings))
    return DONE if schedule.matching(result.findings) else ERROR


def fault_list(faults: Sequence[Fault]) -> RenderableType:
    """Return a table of the faults, with the reason where one does not work on this host."""
    rows = table("NAME", "SUBSYSTEM", "STRENGTH", "HERE", "FAULT")
    for fault in faults:
        # the demo's job cannot be examined before it runs: this process stands for it
        reason = fault.unsupported_reason(
            FaultTarget(process_group=os.getpid(), scratch=_scratch())
        )
        rows.add_row(
            fault.name,
            ", ".join(sorted(subsystem.value for subsystem in fault.subsystems)),
            "weak" if fault.weak else "strong",
            "no" if reason else "yes",
            "\n".join(_about(fault, reason)),
        )
    return rows


def _about(fault: Fault, reason: str) -> Iterator[str]:
    yield fault.about
    if fault.host_wide:
        yield f"Needs --host-wide: {fault.host_wide}"
    if reason:
        yield f"Not here: {reason}"


@dataclass
class FaultSchedule:
    """Starts and ends the fault within a scan, and decides whether it was found."""

    fault: Fault
    warmup: float
    progress: Progress
    injection: Injection | None = None
    subject: str | None = None
    onset_ns: int = 0
    end_ns: int = 0
    found_after: float | None = None

    @property
    def job(self) -> str:
        """Return the job that suffers from the fault: network faults need a server."""
        if Subsystem.GPU in self.fault.subsystems:
            return "gpu"
        return "server" if Subsystem.NETWORK in self.fault.subsystems else "train"

    def on_tick(self, elapsed: float, state: ScanState) -> None:
        """Start the fault when it is due, and end it with its time or with the scan."""
        start = self.warmup + _QUIET_S
        if self.injection is None:
            return
        if not self.onset_ns and start <= elapsed < math.inf:
            self._start(self.injection)
        if self.onset_ns and not self.end_ns and elapsed >= start + _FAULT_S:
            self.injection.stop()
            self.end_ns = time.time_ns()
            self.progress.event(f"the fault {self.fault.name} has ended")
        not_found_yet = self.onset_ns and self.found_after is None
        if not_found_yet and self.matching(state.finding_log.findings):
            self.found_after = (time.time_ns() - self.onset_ns) / 1e9

    def matching(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings of the fault's subsystems that began while it was active."""
        if not self.onset_ns:
            return []
        until = (self.end_ns or time.time_ns()) + _LATE_NS
        return [
            finding
            for finding in findings
            if finding.subsystem in self.fault.subsystems
            and self.onset_ns - _EARLY_NS <= finding.first_observed_ns <= until
        ]

    def is_part_of_another(self, findings: Sequence[Finding]) -> bool:
        """Return whether a finding of another cause was open, which then includes the fault."""
        return any(
            finding.first_observed_ns <= (self.end_ns or time.time_ns())
            and finding.last_observed_ns >= self.onset_ns
            and self.fault.subsystems.intersection(finding.subsystems)
            for finding in findings
        )

    def verdict(self, findings: Sequence[Finding]) -> list[RenderableType]:
        """Return what was expected and what was found."""
        subsystems = " or ".join(sorted(subsystem.value for subsystem in self.fault.subsystems))
        culprit = f", by {self.subject}" if self.subject else ""
        expected = f"{subsystems}: {self.fault.kind} ({self.fault.about}){culprit}"
        return [grid([("expected", expected), ("found", self._found(findings))])]

    def _found(self, findings: Sequence[Finding]) -> str:
        if not self.onset_ns:
            return "the demo ended before the fault began"
        matching = self.matching(findings)
        if not matching:
            if self.is_part_of_another(findings):
                return "only as part of another fault of this host (see above)"
            return "nothing: the demo failed"
        first = matching[0]
        delay = "in the recording"
        if self.found_after:
            delay = f"after {format_duration(self.found_after)}"
        return f"{first.subsystem.value} {delay}: {claim_text(first)}"

    def _start(self, injection: Injection) -> None:
        try:
            injection.start()
        except FaultError as error:
            raise CliError(f"the fault could not be injected: {error}") from None
        self.onset_ns, self.subject = time.time_ns(), injection.subject
        self.progress.event(f"the fault {self.fault.name} begins: {self.fault.about}")


def _plan(arguments: argparse.Namespace) -> ScanPlan:
    settings = analyzer_settings(arguments)
    return ScanPlan(
        node=arguments.node,
        duration=settings.warmup_seconds + _QUIET_S + _FAULT_S + _AFTER_S,
        settings=settings,
        host_flags=tuple(host_flags(arguments)),
    )


def _fault(arguments: argparse.Namespace) -> Fault:
    try:
        fault = find(arguments.fault)
    except UnknownFaultError as error:
        raise CliError(f"{error}; `reveal demo --list` describes them", USAGE) from None
    if fault.host_wide and not arguments.host_wide:
        raise CliError(
            f"{fault.name}: {fault.host_wide} for {_FAULT_S:.0f} s; add --host-wide to inject it"
            " all the same",
            USAGE,
        )
    return fault


def _prepare(stack: contextlib.ExitStack, schedule: FaultSchedule) -> None:
    """Clean up after a killed demo, start the job, and check that the fault works here."""
    try:
        sweep()
        stack.enter_context(guarded())
        job = stack.enter_context(Workload(schedule.job, _scratch()))
        if reason := schedule.fault.unsupported_reason(job.target):
            raise CliError(
                f"{schedule.fault.name} does not work here: {reason}; see `reveal demo --list`"
            )
        schedule.fault.prepare(job.target)
        schedule.injection = schedule.fault.on(job.target)
    except (FaultError, LedgerError, WorkloadError) as error:
        raise CliError(f"the demo cannot start: {error}") from None
    stack.callback(schedule.injection.stop)


def _scratch() -> Path:
    """Return a directory on a disk: /tmp is often in memory."""
    on_disk = Path("/var/tmp")  # noqa: S108 - files in it get names of their own
    return on_disk if os.access(on_disk, os.W_OK) else Path(tempfile.gettempdir())
