"""Faults told by what the kernel counts for the machine: nodes that share it all show them.

So one node is watched, the one whose pod does it; which of several nodes it is can be seen only
where each has a kernel of its own. Huge pages that one node of three reserves are of that kind
(``vm.nr_hugepages`` is the machine's here), and are no case.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clusterfaults import FORGETFUL, KNOWN_S, Expected
from clusterwatch import Watched
from faultstory import fault
from workloads import command

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Culprit:
    """A pod of one container that does harm ``KNOWN_S`` after its start."""

    fault: str
    subsystem: str
    hypothesis: str
    command: list[str]
    resources: dict[str, Any] = field(default_factory=dict)


CULPRITS = (
    Culprit(
        "one CPU overloaded by interrupts", "CPU", "InterruptPressure",
        command("timers", str(KNOWN_S)),
    ),
    Culprit(
        "context-switch storm", "CPU", "ContextSwitchStorm", command("switching", str(KNOWN_S))
    ),
    Culprit(
        "memory limit with page cache thrash", "Memory", "MemoryPressure",
        command("reading", "/data", str(KNOWN_S)), {"limits": {"memory": "96Mi"}},
    ),
    Culprit(
        "killed for its memory again and again", "Memory", "OOMKill",
        ["sh", "-c", FORGETFUL], {"limits": {"memory": "64Mi"}},
    ),
    Culprit(
        "writeback storm", "Storage", "WritebackBurst",
        command("writing", "/checkpoint", "600", str(KNOWN_S)),
    ),
)  # fmt: skip


@pytest.mark.parametrize("culprit", CULPRITS, ids=lambda one: str(one.hypothesis))
def test_a_pod_that_does_harm(
    one_node: Watched, jobs: str, data_file: Path, culprit: Culprit
) -> None:
    expected = Expected("node1", culprit.subsystem, culprit.hypothesis, f"{jobs}/culprit")
    container = {"command": culprit.command, "resources": culprit.resources}
    with (
        fault(culprit.fault, one_node, expected) as story,
        one_node.pod(jobs, "node1", "culprit", {"/data": data_file}, **container),
    ):
        story.begins_in(jobs, "culprit")
