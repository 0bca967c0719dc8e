"""Findings as an analyzer tells them, for tests of what people and the API get to see.

All begin so many minutes ago that ages are shown in whole minutes: for ``STILL_S`` the same.
"""

from __future__ import annotations

from dataclasses import replace

from reveal_contract.finding import (
    Confidence,
    Evidence,
    Finding,
    FindingKind,
    FindingScope,
    Hypothesis,
    Impact,
    Method,
    Peers,
    Pod,
    Severity,
    State,
    Subject,
    finding_id,
)
from reveal_contract.metric import Subsystem

MINUTE_NS = 60 * 10**9
STILL_S = 50
MARGIN_NS = 2 * 10**9


def findings(now_ns: int) -> list[Finding]:
    """What went on in a small cluster, newest first."""
    return [contention(now_ns), retransmission(now_ns), huge_pages(now_ns), drifted(now_ns)]


def contention(now_ns: int) -> Finding:
    """A neighbour takes a trainer's CPU time: everything is known of it."""
    first, last = _ago(now_ns, 15), _ago(now_ns, 12)
    return Finding(
        id=finding_id("gpu-07", Subsystem.CPU, _ago(0, 15)),
        node_name="gpu-07",
        subsystem=Subsystem.CPU,
        subsystems=(Subsystem.CPU, Subsystem.GPU),
        severity=Severity.HIGH,
        state=State.OPEN,
        first_seen_ns=first,
        last_seen_ns=last,
        claim="Tasks waited for a CPU 38 % of the time: more work is runnable than there are CPUs"
        " (batch/reindex-5d9f7)",
        hypothesis=Hypothesis(
            "CPUContention",
            93,
            "Move or limit the subject that grew, or give the job CPUs of its own (cpuset, CPU"
            " manager static).",
        ),
        methods=(
            Method("WindowZScore", True, 88),
            Method("Mahalanobis", True, 71),
            Method("IsolationForest", False, 43),
        ),
        evidence=(
            Evidence(
                "cpu.pressure.some", "mean", "", "384000000", "2100000", "ns/s", "up",
                "/proc/pressure/cpu some",
            ),
            Evidence("cpu.procs_running", "mean", "", "31", "9.2", "tasks", "up", "procs_running"),
        ),
        pods=(
            Pod(
                "batch", "reindex-5d9f7", "0d3b3a5e-9d7c-4c39-8f0e-5a4f6f1d2c11", "reindex", 61,
                58, Confidence.MEASURED,
            ),
        ),
        subjects=(Subject("Unit", "node-backup.service", 7, 6, Confidence.MEASURED),),
        victims=("training/llm-worker-3",),
        score_percent=100,
        confidence_percent=97,
        impact=Impact(
            "training/llm-worker-3", 11.4, 9.8, 13.1, 892.0, 801.0, first, 30,
            "cpu.subject.usage.fine", 88,
        ),
        notes=("seen too, as its symptom: GPUStarved",),
    )  # fmt: skip


def retransmission(now_ns: int) -> Finding:
    """No known cause fits, and it is over."""
    first, last = _ago(now_ns, 40), _ago(now_ns, 33)
    return Finding(
        id=finding_id("gpu-03", Subsystem.NETWORK, _ago(0, 40)),
        node_name="gpu-03",
        subsystem=Subsystem.NETWORK,
        subsystems=(Subsystem.NETWORK,),
        severity=Severity.MEDIUM,
        state=State.RESOLVED,
        first_seen_ns=first,
        last_seen_ns=last,
        resolved_ns=last,
        claim="network.tcp.retrans_segs (RetransSegs) at 2.1 k/s, usually 3 /s",
        methods=(
            Method("WindowZScore", True, 96),
            Method("Mahalanobis", True, 93),
            Method("IsolationForest", True, 90),
        ),
        evidence=(
            Evidence(
                "network.tcp.retrans_segs", "mean", "", "2110", "3.1", "segments/s", "up",
                "RetransSegs",
            ),
        ),
        pods=tuple(
            Pod(
                "training", f"llm-worker-{at}", f"6d1f8a0{at}-1c0b-4f5e-9a55-0b8f3f6f7e0{at}", "",
                24, 0, Confidence.CO_LOCATED,
            )
            for at in range(4)
        ),
        score_percent=74,
        confidence_percent=83,
    )  # fmt: skip


def huge_pages(now_ns: int) -> Finding:
    """A setting that costs: no windows, no methods."""
    first = _ago(now_ns, 59)
    return Finding(
        id=finding_id("gpu-01", Subsystem.MEMORY, _ago(0, 59)),
        node_name="gpu-01",
        kind=FindingKind.CONFIGURATION,
        subsystem=Subsystem.MEMORY,
        subsystems=(Subsystem.MEMORY,),
        severity=Severity.LOW,
        state=State.OPEN,
        first_seen_ns=first,
        last_seen_ns=_ago(now_ns, 14),
        claim="4 GiB are set aside as huge pages of 2 MiB and unused: no other program can have"
        " this memory",
        hypothesis=Hypothesis("IdleHugePages", 95, "Set vm.nr_hugepages to 0."),
        evidence=(
            Evidence(
                "fact.memory.hugepages.free",
                "fact",
                "2048kB",
                "4294967296",
                "0",
                "bytes",
                "up",
                "free_hugepages",
            ),
        ),
        score_percent=100,
        confidence_percent=95,
    )


def drifted(now_ns: int) -> Finding:
    """One node is odd among its peers."""
    return Finding(
        id=finding_id("gpu-09", Subsystem.GPU, _ago(0, 21)),
        node_name="gpu-09",
        scope=FindingScope.CROSS_NODE,
        subsystem=Subsystem.GPU,
        subsystems=(Subsystem.GPU,),
        severity=Severity.CRITICAL,
        state=State.OPEN,
        first_seen_ns=_ago(now_ns, 21),
        last_seen_ns=_ago(now_ns, 11),
        claim="gpu.clock.sm (clocks.sm) stands out on 1 of 9 nodes: 1.11 GHz on gpu-09, 1.98 GHz"
        " on the others",
        hypothesis=Hypothesis(
            "CrossNodeOutlier", 90, "Compare nvidia-smi -q of both: clocks, power limit, errors"
        ),
        evidence=(
            Evidence("gpu.clock.sm", "peers", "", "1110000000", "1980000000", "Hz", "down", ""),
        ),
        peers=Peers(9, "1980000000", "1110000000"),
        score_percent=96,
        confidence_percent=90,
    )


def whole(now_ns: int) -> Finding:
    """One with every field there is."""
    found = contention(now_ns)
    return replace(
        found,
        evidence=(replace(found.evidence[0], instance="3"), *found.evidence[1:]),
        state=State.RESOLVED,
        resolved_ns=_ago(now_ns, 11),
        peers=Peers(9, "0", "4294967296"),
    )


def _ago(now_ns: int, minutes: int) -> int:
    """A little more, so that it is as many minutes whoever's clock is a moment behind."""
    return now_ns - minutes * MINUTE_NS - MARGIN_NS
