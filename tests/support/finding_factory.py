"""Findings for tests: small ones, the largest one, realistic examples, and arbitrary ones.

The realistic examples begin a whole number of minutes before ``now_ns``, so that their printed age
stays the same for ``STILL_S`` seconds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from reveal_contract.costs import Cost, PodCost
from reveal_contract.finding import (
    Confidence,
    DelayedJob,
    Evidence,
    EvidenceRef,
    Finding,
    FindingChange,
    FindingKind,
    FindingScope,
    FindingUpdate,
    Hypothesis,
    Impact,
    JobLoss,
    Method,
    Peers,
    Pod,
    Resolution,
    Severity,
    State,
    Subject,
    finding_id,
)
from reveal_contract.metric import Subsystem
from reveal_contract.verification import Effect, Verdict, Verification

START_NS = 1_700_000_000_123_456_789
ONSET_NS = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
MINUTE_NS = 60 * 10**9
STILL_S = 50
MARGIN_NS = 2 * 10**9


def finding(identity: str = "cpu-1", **other: Any) -> Finding:
    given: dict[str, Any] = {
        "node_name": "n1", "subsystem": Subsystem.CPU, "severity": Severity.MEDIUM,
        "state": State.OPEN,
        "first_observed_ns": START_NS, "last_observed_ns": START_NS + 5 * SECOND,
        "claim": "CPU is slow", "subsystems": (Subsystem.CPU,), **other,
    }  # fmt: skip
    return Finding(id=identity, **given)


def opened(identity: str = "cpu-1", **other: Any) -> FindingUpdate:
    return FindingUpdate(FindingChange.OPENED, finding(identity, **other))


def changed(identity: str = "cpu-1", **other: Any) -> FindingUpdate:
    return FindingUpdate(FindingChange.CHANGED, finding(identity, **other))


def resolved(identity: str = "cpu-1", **other: Any) -> FindingUpdate:
    over = {"state": State.RESOLVED, "resolved_ns": START_NS + 60 * SECOND, **other}
    return FindingUpdate(FindingChange.RESOLVED, finding(identity, **over))


def largest() -> Finding:
    """More than any analysis tells, all of it as long as it may be."""
    words = 'größer als <usual> & "quoted" \u0001 '
    return replace(
        finding(node_name="n" * 253, claim=words * 60),
        subsystems=tuple(Subsystem),
        hypothesis=Hypothesis("H" * 99, 300, words * 60),
        methods=tuple(Method(f"m{n}" * 40, True, 101) for n in range(9)),
        evidence=tuple(
            Evidence("m" * 200, "f" * 200, words * 20, "1" * 200, "2" * 200, "ns/s", "up", "k" * 99)
            for _ in range(30)
        ),
        pods=tuple(
            Pod("s" * 63, "p" * 253, "u" * 36, "c" * 63, 150, -150, Confidence.MEASURED)
            for _ in range(30)
        ),
        subjects=tuple(
            Subject("ProcessGroup", words * 20, 60, 55, Confidence.INFERRED) for _ in range(30)
        ),
        notes=(words * 20,) * 30,
        victims=(f"{'v' * 63}/{'w' * 253}",) * 30,
        lost_time=(JobLoss("j" * 400, 100.0, 60),) * 30,
        share_metric="s" * 200,
        peers=Peers(9, "0" * 200, "1" * 200),
        impact=Impact("j" * 400, 9.14, 8.04, 10.24, 1716.4, 1572.7, START_NS, 30, "c" * 200, 188),
        cost=Cost(10**6, 83_713.9, 12_345_678.9, 1.0, 98_765_432.1),
        pod_costs=(PodCost("j" * 400, 12_345_678.9),) * 30,
        score_percent=1000,
        confidence_percent=-4,
    )


def scan_finding(
    claim: str = "waiting for CPU rose", subject: str = "/a.slice/b.service"
) -> Finding:
    """Return an open finding of a scan, with evidence, subject and hypothesis."""
    return Finding(
        id="cpu-1", node_name="n", subsystem=Subsystem.CPU, severity=Severity.HIGH,
        state=State.OPEN, first_observed_ns=ONSET_NS, last_observed_ns=ONSET_NS + 9 * SECOND,
        claim=claim,
        evidence=(Evidence("cpu.pressure.some", "mean", "", "930000000", "5e7", "ns/s", "up"),),
        subjects=(Subject("Cgroup", subject, 87, 60, Confidence.MEASURED),),
        hypothesis=Hypothesis("cpu-contention", 80, "give the job CPUs of its own"),
    )  # fmt: skip


def example_findings(now_ns: int) -> list[Finding]:
    """What went on in a small cluster, newest first."""
    return [
        cpu_contention(now_ns),
        tcp_retransmission(now_ns),
        idle_huge_pages(now_ns),
        gpu_clock_outlier(now_ns),
    ]


def cpu_contention(now_ns: int) -> Finding:
    """A neighbour takes a trainer's CPU time: everything is known of it."""
    first, last = _minutes_ago(now_ns, 15), _minutes_ago(now_ns, 12)
    return Finding(
        id=finding_id("gpu-07", Subsystem.CPU, _minutes_ago(0, 15)),
        node_name="gpu-07",
        subsystem=Subsystem.CPU,
        subsystems=(Subsystem.CPU, Subsystem.GPU),
        severity=Severity.HIGH,
        state=State.OPEN,
        first_observed_ns=first,
        last_observed_ns=last,
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
        share_metric="cpu.subject.usage",
        victims=("training/llm-worker-3",),
        lost_time=(JobLoss("training/llm-worker-3", 38.2, 60),),
        score_percent=100,
        confidence_percent=97,
        impact=Impact(
            "training/llm-worker-3", 11.4, 9.8, 13.1, 892.0, 801.0, first, 30,
            "cpu.subject.usage.fine", 88,
        ),
        notes=("also observed, as its symptom: GPUStarved",),
    )  # fmt: skip


def tcp_retransmission(now_ns: int) -> Finding:
    """No known cause fits, and it is over."""
    first, last = _minutes_ago(now_ns, 40), _minutes_ago(now_ns, 33)
    return Finding(
        id=finding_id("gpu-03", Subsystem.NETWORK, _minutes_ago(0, 40)),
        node_name="gpu-03",
        subsystem=Subsystem.NETWORK,
        subsystems=(Subsystem.NETWORK,),
        severity=Severity.MEDIUM,
        state=State.RESOLVED,
        first_observed_ns=first,
        last_observed_ns=last,
        resolved_ns=last,
        resolution=Resolution.ENDED,
        claim="network.tcp.retrans_segs (RetransSegs) at 2.1 k/s, baseline 3 /s",
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
                "training", f"llm-worker-{index}",
                f"6d1f8a0{index}-1c0b-4f5e-9a55-0b8f3f6f7e0{index}", "",
                24, 0, Confidence.CO_LOCATED,
            )
            for index in range(4)
        ),
        score_percent=74,
        confidence_percent=83,
    )  # fmt: skip


def idle_huge_pages(now_ns: int) -> Finding:
    """A setting that costs: no windows, no methods."""
    first = _minutes_ago(now_ns, 59)
    return Finding(
        id=finding_id("gpu-01", Subsystem.MEMORY, _minutes_ago(0, 59)),
        node_name="gpu-01",
        kind=FindingKind.CONFIGURATION,
        subsystem=Subsystem.MEMORY,
        subsystems=(Subsystem.MEMORY,),
        severity=Severity.LOW,
        state=State.OPEN,
        first_observed_ns=first,
        last_observed_ns=_minutes_ago(now_ns, 14),
        claim="4 GiB are reserved as huge pages of 2 MiB and unused: no other program can use"
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


def gpu_clock_outlier(now_ns: int) -> Finding:
    """One node is odd among its peers."""
    return Finding(
        id=finding_id("gpu-09", Subsystem.GPU, _minutes_ago(0, 21)),
        node_name="gpu-09",
        scope=FindingScope.CROSS_NODE,
        subsystem=Subsystem.GPU,
        subsystems=(Subsystem.GPU,),
        severity=Severity.CRITICAL,
        state=State.OPEN,
        first_observed_ns=_minutes_ago(now_ns, 21),
        last_observed_ns=_minutes_ago(now_ns, 11),
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


def finding_with_all_fields(now_ns: int) -> Finding:
    """One with every field there is."""
    found = cpu_contention(now_ns)
    return replace(
        found,
        evidence=(replace(found.evidence[0], instance="3"), *found.evidence[1:]),
        state=State.RESOLVED,
        resolved_ns=_minutes_ago(now_ns, 11),
        resolution=Resolution.ENDED,
        peers=Peers(9, "0", "4294967296"),
        evidence_ref=EvidenceRef("Redis", found.id),
        delayed_job=DelayedJob("ml/Job/train", 8, 12.0, 9.5, 14.0),
        cost=Cost(8, 0.818, 1.8004, 1.25, 2.4, "2.50 USD"),
        pod_costs=(PodCost("training/llm-0", 1.8004),),
        verification=Verification(
            Verdict.IMPROVED, "cpu smt: on -> off", "training/llm-worker-3",
            _minutes_ago(now_ns, 11), Effect(10.2, 8.8, 11.6),
        ),
    )  # fmt: skip


def _minutes_ago(now_ns: int, minutes: int) -> int:
    """A little more, so that it is as many minutes whoever's clock is a moment behind."""
    return now_ns - minutes * MINUTE_NS - MARGIN_NS


_TEXT = st.text(max_size=300)
_WORD = st.text(min_size=1, max_size=300)
_PERCENT = st.integers(-1000, 1000)
_TENTHS = st.integers(0, 1000).map(lambda tenths: tenths / 10)
_HOURS = st.integers(0, 10**12).map(lambda thousandths: thousandths / 1000)
_TIME = st.integers(0, 4 * 10**18)
_SURE = st.sampled_from(Confidence)


def _many(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(item, max_size=14).map(tuple)


ANY_FINDING = st.builds(
    Finding,
    id=st.from_regex(r"[a-z]{1,10}-[0-9a-f]{10}", fullmatch=True),
    node_name=st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", fullmatch=True),
    subsystem=st.sampled_from(Subsystem),
    severity=st.sampled_from(Severity),
    state=st.sampled_from(State),
    first_observed_ns=_TIME,
    last_observed_ns=_TIME,
    claim=_TEXT,
    scope=st.sampled_from(FindingScope),
    subsystems=_many(st.sampled_from(Subsystem)),
    hypothesis=st.none() | st.builds(Hypothesis, _WORD, _PERCENT, _TEXT),
    methods=_many(st.builds(Method, _WORD, st.booleans(), _PERCENT)),
    evidence=_many(
        st.builds(
            Evidence,
            _WORD,
            _TEXT,
            _TEXT,
            _TEXT,
            _TEXT,
            _TEXT,
            st.sampled_from(["up", "down"]),
            _TEXT,
        )
    ),
    pods=_many(st.builds(Pod, _TEXT, _TEXT, _TEXT, _TEXT, _PERCENT, _PERCENT, _SURE)),
    subjects=_many(st.builds(Subject, _TEXT, _TEXT, _PERCENT, _PERCENT, _SURE)),
    score_percent=_PERCENT,
    confidence_percent=_PERCENT,
    resolved_ns=st.none() | _TIME,
    notes=_many(_TEXT),
    kind=st.sampled_from(FindingKind),
    peers=st.none() | st.builds(Peers, st.integers(0, 10**6), _TEXT, _TEXT),
    victims=_many(_TEXT),
    share_metric=_TEXT,
    lost_time=_many(st.builds(JobLoss, _TEXT, _TENTHS, st.integers(0, 60))),
    cost=st.none() | st.builds(Cost, st.integers(0, 10**6), _HOURS, _HOURS, _HOURS, _HOURS),
    pod_costs=_many(st.builds(PodCost, _WORD, _HOURS)),
    verification=st.none()
    | st.builds(
        Verification,
        st.sampled_from(Verdict),
        _WORD,
        _WORD,
        _TIME,
        st.none() | st.builds(Effect, _TENTHS, _TENTHS, _TENTHS),
    ),
    resolution=st.sampled_from(Resolution),
)
