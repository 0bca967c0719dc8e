"""The one report that stands for all that were too many: pure.

A report like others, of the node of the worst of them; its cause is ``TooManyFindings``.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from reveal_contract.finding import Finding, Hypothesis, Severity, State
from reveal_contract.kube.anomaly_report import Report

CAUSE = "TooManyFindings"
_NOTED = 10


def summary(summed: Sequence[Report], limit: int, first_ns: int, now_ns: int) -> Finding:
    """What these open reports amount to, as one finding; at least one is needed."""
    worst = max(summed, key=lambda one: one.severity.rank)
    subsystem = worst.finding.subsystem
    nodes = Counter(one.node for one in summed)
    return Finding(
        id=_identity(worst.name, first_ns),
        node_name=worst.node,
        subsystem=subsystem,
        subsystems=tuple(sorted({one.finding.subsystem for one in summed})),
        severity=worst.severity,
        state=State.OPEN,
        first_seen_ns=first_ns,
        last_seen_ns=now_ns,
        claim=_claim(summed, nodes, limit, worst),
        hypothesis=Hypothesis(
            CAUSE,
            100,
            "look for what these nodes have in common; reporting.reportsPerMinute and"
            " minSeverity of the profile say how many are reported one by one",
        ),
        notes=tuple(f"{count} on {node}" for node, count in nodes.most_common(_NOTED)),
        score_percent=100,
        confidence_percent=100,
    )


def _identity(name: str, first_ns: int) -> str:
    digest = hashlib.blake2b(f"{name}\0{first_ns}".encode(), digest_size=5)
    return f"overflow-{digest.hexdigest()}"


def _claim(summed: Sequence[Report], nodes: Counter[str], limit: int, worst: Report) -> str:
    severities = Counter(one.severity for one in summed)
    kinds = ", ".join(f"{severities[s]} {s}" for s in reversed(Severity) if severities[s])
    what = f"{_many(len(summed), 'more finding')} on {_many(len(nodes), 'node')}"
    over = f"over {limit} new reports a minute"
    return f"{what}, {over} ({kinds}); the worst on {worst.node}: {worst.finding.claim}"


def _many(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
