"""``reveal demo``: a steady real job, a real fault put on this host, and the finding.

Nothing is played: the job computes, the fault takes what it takes, and the scan is the one of
``reveal scan``.  The fault is bounded and undoes itself, also when the demo is interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reveal_cli.collector_process import host_flags
from reveal_cli.commands.scan import seen
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
from reveal_cli.findings_table import claim_text
from reveal_cli.interrupt import Interrupt
from reveal_cli.live_session import Plan, Watched
from reveal_cli.options import add_host, analyzer_settings, clock, duration, sensitivity
from reveal_cli.progress import Progress, open_progress
from reveal_cli.scan_runner import scan
from reveal_cli.summary_text import closing, width
from reveal_cli.workloads import Workload, WorkloadError
from reveal_contract.finding import Finding
from reveal_contract.metric import Subsystem

_QUIET, _FAULT, _AFTER = 10.0, 20.0, 12.0  # after the warm-up, s
# a finding that begins outside of these is not the fault's; one slice is a second long
_EARLY_NS, _LATE_NS = 1_500_000_000, 5_000_000_000


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="put a real, harmless fault on this host and show that it is found",
        description="Starts a steady job, learns what is normal, puts a real fault on this host"
        f" for {_FAULT:.0f} s, undoes it, and shows what was expected and what was found. Takes"
        " about a minute and a half. Needs no root for many of the faults.",
        epilog="Exit codes: 0 the fault was found, 1 it was not (or an error), 2 wrong usage.",
    )
    parser.add_argument(
        "--fault", metavar="NAME", default="cpu_contend",
        help="which fault (default cpu_contend; see --list)",
    )  # fmt: skip
    parser.add_argument(
        "--list", action="store_true", help="list the faults and which of them work here, and end"
    )
    parser.add_argument(
        "--warmup", metavar="TIME", type=duration, default=duration("45s"),
        help="how long to learn what is normal first (default 45s)",
    )  # fmt: skip
    parser.add_argument(
        "--output", metavar="DIR", type=Path, help="keep findings, recording and summary here"
    )
    parser.set_defaults(run=run, mode="online", redis="", hypotheses=[])
    parser.add_argument(
        "--sensitivity", metavar="LEVEL", type=sensitivity, default="Low",
        help="low (default), medium or high",
    )  # fmt: skip
    add_host(parser)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    if arguments.list:
        print("\n".join(menu(FAULTS)))
        return DONE
    plan = _plan(arguments)
    with contextlib.ExitStack() as stack:
        progress = open_progress()
        turn = FaultTurn(_fault(arguments.fault), plan.settings.warmup_seconds, progress)
        _set_up(stack, turn)
        result = scan(plan, arguments.output, progress, interrupt, turn.act)
    print("\n".join(closing(result.findings, seen(plan, result.watched), width())))
    print("\n".join(["", *turn.verdict(result.findings)]))
    return DONE if turn.caught(result.findings) else ERROR


def menu(faults: Sequence[Fault]) -> list[str]:
    """The faults with what they do and why one cannot be had here."""
    lines = [f"{'NAME':<18}{'AREA':<17}{'STRENGTH':<10}{'HERE':<6}WHAT IT IS"]
    for fault in faults:
        # the job that is there in the demo cannot be asked before it runs
        why = fault.unsupported_reason(FaultTarget(process_group=os.getpid(), scratch=_scratch()))
        area = ", ".join(sorted(subsystem.value for subsystem in fault.subsystems))
        strength = "weak" if fault.weak else "full"
        here = "no" if why else "yes"
        tail = f"{fault.about} ({why})" if why else fault.about
        lines.append(f"{fault.name:<18}{area:<17}{strength:<10}{here:<6}{tail}")
    return lines


@dataclass
class FaultTurn:
    """The fault within a scan: when it comes and goes, and whether it was found."""

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
        """The job that the fault can be felt by: packets matter to a server."""
        return "server" if Subsystem.NETWORK in self.fault.subsystems else "train"

    def act(self, elapsed: float, watched: Watched) -> None:
        """Start the fault after the quiet stretch, end it when its time or the scan is over."""
        begin = self.warmup + _QUIET
        if self.injection is None:
            return
        if not self.onset_ns and begin <= elapsed < math.inf:
            self._start(self.injection)
        if self.onset_ns and not self.end_ns and elapsed >= begin + _FAULT:
            self.injection.stop()
            self.end_ns = time.time_ns()
            self.progress.event(f"the fault {self.fault.name} is over")
        if self.onset_ns and self.found_after is None and self.caught(watched.finding_log.findings):
            self.found_after = (time.time_ns() - self.onset_ns) / 1e9

    def caught(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings of the fault's areas that began in its time."""
        if not self.onset_ns:
            return []
        until = (self.end_ns or time.time_ns()) + _LATE_NS
        return [
            finding
            for finding in findings
            if finding.subsystem in self.fault.subsystems
            and self.onset_ns - _EARLY_NS <= finding.first_seen_ns <= until
        ]

    def hidden(self, findings: Sequence[Finding]) -> bool:
        """Whether another trouble of this host was going on, of which the fault became a part."""
        return any(
            finding.first_seen_ns <= (self.end_ns or time.time_ns())
            and finding.last_seen_ns >= self.onset_ns
            and self.fault.subsystems.intersection(finding.subsystems)
            for finding in findings
        )

    def verdict(self, findings: Sequence[Finding]) -> list[str]:
        """Expected beside found, in words."""
        areas = " or ".join(sorted(subsystem.value for subsystem in self.fault.subsystems))
        whom = f", by {self.subject}" if self.subject else ""
        lines = [f"expected  {areas}: {self.fault.kind} ({self.fault.about}){whom}"]
        if not self.onset_ns:
            return [*lines, "found     the demo ended before the fault began"]
        caught = self.caught(findings)
        if not caught and self.hidden(findings):
            return [*lines, "found     only as part of another trouble of this host (see above)"]
        if not caught:
            return [*lines, "found     nothing of it: the demo failed"]
        delay = f" after {clock(self.found_after)}" if self.found_after else " in the recording"
        for finding in caught[:1]:
            lines.append(f"found     {finding.subsystem.value}{delay}: {claim_text(finding)}")
        return lines

    def _start(self, injection: Injection) -> None:
        try:
            injection.start()
        except FaultError as error:
            raise CliError(f"the fault could not be injected: {error}") from None
        self.onset_ns, self.subject = time.time_ns(), injection.subject
        self.progress.event(f"the fault {self.fault.name} begins: {self.fault.about}")


def _plan(arguments: argparse.Namespace) -> Plan:
    settings = analyzer_settings(arguments)
    return Plan(
        node=arguments.node,
        duration=settings.warmup_seconds + _QUIET + _FAULT + _AFTER,
        settings=settings,
        host_flags=tuple(host_flags(arguments)),
    )


def _fault(name: str) -> Fault:
    try:
        return find(name)
    except UnknownFaultError as error:
        raise CliError(f"{error}; `reveal demo --list` explains them", USAGE) from None


def _set_up(stack: contextlib.ExitStack, turn: FaultTurn) -> None:
    """Clear what a killed demo left, start the job, and see that the fault can be had."""
    try:
        sweep()
        job = stack.enter_context(Workload(turn.job, _scratch()))
        if why := turn.fault.unsupported_reason(job.target):
            raise CliError(f"{turn.fault.name} cannot be had here: {why}; see `reveal demo --list`")
        turn.fault.prepare(job.target)
        turn.injection = turn.fault.on(job.target)
    except (FaultError, LedgerError, WorkloadError) as error:
        raise CliError(f"the demo cannot begin: {error}") from None
    stack.callback(turn.injection.stop)


def _scratch() -> Path:
    """A directory on a disk: /tmp is often in memory."""
    lasting = Path("/var/tmp")  # noqa: S108 - files in it get names of their own
    return lasting if os.access(lasting, os.W_OK) else Path(tempfile.gettempdir())
