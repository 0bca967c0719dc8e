"""A finding as the tests of the command line print it."""

from __future__ import annotations

from reveal_contract.finding import (
    Confidence,
    Evidence,
    Finding,
    Hypothesis,
    Severity,
    State,
    Subject,
)
from reveal_contract.metric import Subsystem

ONSET_NS = 1_700_000_000_000_000_000


def finding(claim: str = "waiting for CPU rose", subject: str = "/a.slice/b.service") -> Finding:
    """Return an open finding of nine seconds, with evidence, subject and hypothesis."""
    return Finding(
        id="cpu-1", node_name="n", subsystem=Subsystem.CPU, severity=Severity.HIGH,
        state=State.OPEN, first_observed_ns=ONSET_NS, last_observed_ns=ONSET_NS + 9 * 10**9,
        claim=claim,
        evidence=(Evidence("cpu.pressure.some", "mean", "", "930000000", "5e7", "ns/s", "up"),),
        subjects=(Subject("Cgroup", subject, 87, 60, Confidence.MEASURED),),
        hypothesis=Hypothesis("cpu-contention", 80, "give the job CPUs of its own"),
    )  # fmt: skip
