"""``privilege: Capabilities``: what is lost, and that faults are found all the same."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

from reveal_contract.kube.names import LABEL_COMPONENT
from reveal_operator.manifests.privileges import NEEDS, NeedKind, names_of
from reveal_operator.profile import CollectorSpec, Privilege
from support.api_server import wait_for
from support.cluster_release import COMPUTING, Release
from support.fault_run import fault_run, throttled_run
from support.faulty_pods import THROTTLED, Expected, forgetful, namespace_of_jobs
from support.helm_chart import NAMESPACE
from support.pod_processes import main_process
from support.published_sources import PublishedSources, evaluation_redis, published_by

pytestmark = pytest.mark.timeout(900)

NODE = "node1"
_PUBLISHED_S = 60.0
_SETTLED_S = 15.0  # sources that ask in the background have answered, subjects have their columns
_COLLECTORS = f"{LABEL_COMPONENT}=collector"


def published_by_collector(watched: Release) -> PublishedSources:
    """By the collector that runs now, beside a busy pod: some columns are of busy pods only."""
    client = evaluation_redis(watched)
    with namespace_of_jobs(watched) as jobs, watched.pod(jobs, NODE, "busy", **COMPUTING):
        since = time.time_ns() + round(_SETTLED_S * 1e9)
        return wait_for(
            lambda: published_by(client, NODE, since), _PUBLISHED_S, f"{NODE} says how it is"
        )


@pytest.fixture(scope="module")
def privileged(three_nodes: Release) -> PublishedSources:
    """What a privileged collector gives here; asked before ``capabilities`` changes it."""
    return published_by_collector(three_nodes)


@pytest.fixture
def single_node_guarded(capabilities: Release) -> Iterator[Release]:
    capabilities.watch(NODE)
    yield capabilities
    capabilities.watch(*capabilities.cluster.nodes)


def test_capabilities_lose_exactly_the_documented_sources(
    privileged: PublishedSources, capabilities: Release
) -> None:
    """docs/reference/privileges.md: on this kernel only GPUs, and this host has none."""
    now = published_by_collector(capabilities)
    rows = [_row(source, privileged, now) for source in sorted(privileged.sources)]
    sys.stdout.write("\n| source | Privileged | Capabilities | why |\n|---|---|---|---|\n")
    sys.stdout.writelines(rows)
    paused = _paused(privileged) | _paused(now)
    assert now.sources - paused == privileged.sources - _promised() - paused
    for source in now.sources - paused:
        # columns of subjects come when one of them first has such a thing, as reads of a disk
        assert now.metrics[source] >= privileged.metrics[source], source
    assert _lasting(now) == _lasting(privileged)


def _promised() -> frozenset[str]:
    """What the page says is lost although the capabilities are given."""
    return frozenset(
        source for need in NEEDS if need.kind is NeedKind.VARIABLE for source in need.gone
    )


def _paused(published: PublishedSources) -> set[str]:
    """Return the sources that the CPU budget pauses now, which follows the load of the machine."""
    phrases = [phrase for phrase in published.degraded if "paused" in phrase]
    return {word.strip(",:") for phrase in phrases for word in phrase.split()}


def _lasting(published: PublishedSources) -> list[str]:
    """Fallbacks without those of the CPU budget, which follow the load of the machine."""
    return [phrase for phrase in published.degraded if not phrase.startswith("CPU budget of ")]


def _row(source: str, privileged: PublishedSources, now: PublishedSources) -> str:
    before, after = (len(item.metrics.get(source, ())) for item in (privileged, now))
    return f"| {source} | {before} | {after} | {now.missing.get(source, '')} |\n"


def test_collectors_have_exactly_the_documented_capabilities(capabilities: Release) -> None:
    expected = names_of(CollectorSpec(privilege=Privilege.CAPABILITIES), NeedKind.CAPABILITY)
    pods = capabilities.kube.items("v1", "Pod", NAMESPACE, _COLLECTORS)
    assert len(pods) == len(capabilities.cluster.nodes)
    for process in map(main_process, pods):
        assert set(process.capabilities) == set(expected)
        assert process.status("NoNewPrivs") == "1"
        assert process.read_only_root


def test_a_pod_throttled_by_its_quota_is_reported(capabilities: Release, jobs: str) -> None:
    with throttled_run("quota, Capabilities", capabilities, jobs, "node2") as story:
        story.start_in(jobs, THROTTLED)


def test_a_pod_killed_for_its_memory_is_reported(single_node_guarded: Release, jobs: str) -> None:
    expected = Expected(NODE, "Memory", "OOMKill", f"{jobs}/forgetful")
    with (
        fault_run("OOM, Capabilities", single_node_guarded, expected) as story,
        forgetful(single_node_guarded, jobs, NODE),
    ):
        story.start_in(jobs, "forgetful")
