"""The table of privileges tried out: the collector with all of it, and without each row."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from reveal_collector.sources import energy
from reveal_contract import ledger
from reveal_operator.manifests.privileges import NEEDS, NeedKind, names_of
from reveal_operator.profile import CollectorSpec
from support import capability_probe

ASKED = names_of(CollectorSpec(perf_cgroups=True), NeedKind.CAPABILITY)
NOBODY = 65_534
# what cannot be done without each: see what others read and wrote, their root and network; tick in
# real time
LOST = {
    "PERFMON": set[str](),
    "BPF": set[str](),
    "SYS_PTRACE": {"io", "root", "ns"},
    "DAC_READ_SEARCH": {"io"},
    "SYS_NICE": {"real_time"},
}
# their channels follow what runs on the host at the moment
RESTLESS = {
    "cgroups", "cgroup-cpu", "process-groups", "subject-network", "subject-storage", "subject-perf",
    "subject-starts",
    "ledger",
    "nic",
}  # fmt: skip

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts and capabilities"),
]


@pytest.fixture(scope="module")
def other() -> Iterator[int]:
    """A process of another user."""
    process = subprocess.Popen(["sleep", "600"], user=NOBODY, group=NOBODY)
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def look(other: int) -> Iterator[capability_probe.Probe]:
    if missing := set(ASKED) - capability_probe.bounding_capabilities():
        pytest.skip(f"this process has no {', '.join(sorted(missing))} to give")
    folder = Path(mkdtemp(prefix="reveal-host-"))

    @cache
    def looked(keep: tuple[str, ...]) -> capability_probe.ProbeReport:
        return capability_probe.probe(folder, keep, other)

    yield looked
    folder.rmdir()


def test_the_documented_capabilities_open_the_same_sources_as_root(
    look: capability_probe.Probe,
) -> None:
    everything, asked = look((capability_probe.ALL,)), look(ASKED)
    assert asked.missing.keys() == everything.missing.keys()
    assert asked.channels.keys() == everything.channels.keys()
    for source in asked.channels.keys() - RESTLESS:
        assert asked.channels[source] == everything.channels[source], source
    assert all(asked.facts[name] for name in ("io", "root", "ns", "real_time"))


@pytest.mark.parametrize("capability", ASKED)
def test_a_missing_capability_loses_exactly_the_documented_sources(
    capability: str, look: capability_probe.Probe
) -> None:
    (need,) = (
        need for need in NEEDS if need.kind is NeedKind.CAPABILITY and need.what == capability
    )
    asked = look(ASKED)
    less = look(tuple(name for name in ASKED if name != capability))
    # one that follows subjects opens without any, when the host has none
    given = {source for source, channels in asked.channels.items() if channels}
    gone = set(need.gone) | (set(need.less) & without_another_way())
    assert given - less.channels.keys() == gone & given
    instead = less.channels.keys() - asked.channels.keys()
    assert instead == ({ledger.THREADS_SOURCE} if ledger.SOURCE in gone else set())
    for source in less.channels.keys() - RESTLESS - set(need.less) - instead:
        assert less.channels[source] == asked.channels[source], source
    lost = {name for name in ("io", "root", "ns", "real_time") if not less.facts[name]}
    assert lost == LOST[capability]


def without_another_way() -> set[str]:
    """Sources that read the same values from another place, on a host that has none."""
    return set() if any(energy.zones(Path("/sys/class/powercap"))) else {"energy"}


def test_a_pid_namespace_hides_the_processes_of_cgroups(other: int, tmp_path: Path) -> None:
    """cgroup.procs shows processes outside the reader's PID namespace as 0."""
    observed = capability_probe.probe(tmp_path, ASKED, other, ("--pid", "--fork"))
    assert observed.facts["strangers"] > 0
