"""Edits, deletions and crashes in random order: it always comes to rest as it was meant.

``REVEAL_SEED`` tries others, ``REVEAL_SEQUENCES`` more or fewer; a failure names its seed and
what was done.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cluster.daemons import Daemon, free_ports
from reveal_contract.kube.names import (
    API_VERSION,
    LABEL_MANAGED_BY,
    LABEL_PROFILE,
    OPERATOR_MANAGER,
    PROFILE_KIND,
)
from reveal_operator import manifests, spec
from reveal_operator.__main__ import options_of, parser
from reveal_operator.spec import Defaults
from support.api_server import ApiError, Kube, Launcher, Object, condition, wait_for
from support.chart_releases import Cluster
from support.helm_chart import NAMESPACE, program

SEED = int(os.environ.get("REVEAL_SEED", "1"))
SEQUENCES = int(os.environ.get("REVEAL_SEQUENCES", "100"))
NAMES = ("gpu-pool", "training", "storage.nodes")
# the operator takes seconds; after an API server's crash the garbage collector of Kubernetes pauses
# for up to half a minute, and twice where the kinds that it watches change
CONVERGED_S = 150
# What deleted profiles owned is deleted by the garbage collector alone.  After a crash it can fail
# for minutes to learn which kinds there are ("failed to discover preferred resources").
COLLECTED_S = 600
STOPPED_S = 10
# kind -> apiVersion
CHILDREN = {
    "ConfigMap": "v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "PodDisruptionBudget": "policy/v1",
}
EDITS: tuple[dict[str, Any], ...] = (
    {"collector": {"maxSubjects": 32}},
    {"collector": {"maxSubjects": 64, "privilege": "Capabilities"}},
    {"collector": {"privilege": "Privileged", "metricsPort": 9500}},
    {"collector": {"metricsPort": None, "image": "mirror.example/collector:2"}},
    {"collector": {"image": None}},
    {"analyzer": {"replicas": 3, "sensitivity": "High"}},
    {"analyzer": {"replicas": 1}},
    {"analyzer": {"windowSeconds": 6, "strideSeconds": 2}},
    {"redis": {"url": "redis://other.example:6379/1"}},
    {"redis": None},
    {"nodeSelector": {"pool": "gpu"}},
    {"nodeSelector": None},
    {"mode": "Observe"},
    {"mode": "Report", "reporting": {"minSeverity": "High"}},
    {"paused": True},
    {"paused": False},
    {"collector": {"sources": {"include": ["no-such-source"]}}},
    {"collector": {"sources": None}},
)
# of fields that the operator means, by kind
TAMPERINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "ConfigMap": ({"data": {"collector.json": "{}"}}, {"data": None}),
    "DaemonSet": (
        {"spec": {"template": {"spec": {"hostPID": None, "hostNetwork": None}}}},
        {"metadata": {"labels": {LABEL_MANAGED_BY: None}}},
    ),
    "Deployment": (
        {"spec": {"replicas": 0}},
        {"metadata": {"labels": {LABEL_PROFILE: "someone-else"}}},
        {"metadata": {"ownerReferences": None}},
    ),
    "PodDisruptionBudget": ({"metadata": {"labels": {LABEL_PROFILE: None}}},),
}


@dataclass
class World:
    """The cluster, what was done to it, and the dice."""

    cluster: Cluster
    operator: Daemon
    defaults: Defaults
    dice: Random = field(default_factory=Random)
    done: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def kube(self) -> Kube:
        return self.cluster.kube

    def step(self) -> None:
        act = self.dice.choices([item for item, _ in STEPS], [weight for _, weight in STEPS])[0]
        self.counts[act.__name__] += 1
        self.done.append(f"{act.__name__}{act(self) or ''}")
        # long enough for a visit to begin, sometimes to end
        time.sleep(self.dice.choice((0, 0, 0.02, 0.1, 0.5)))

    def some_child(self) -> Object | None:
        labels = f"{LABEL_MANAGED_BY}={OPERATOR_MANAGER}"
        found = [
            child
            for kind, api_version in CHILDREN.items()
            for child in self.kube.items(api_version, kind, NAMESPACE, labels)
        ]
        return self.dice.choice(found) if found else None


def make_profile(world: World) -> str:
    name = world.dice.choice(NAMES)
    body = world.dice.choice([edit for edit in EDITS if not _has_null(edit)])
    try:
        world.kube.create(_profile(name, body))
    except ApiError as error:
        assert error.status == 409, error
        return f" {name}: there"
    return f" {name} {body}"


def edit_profile(world: World) -> str:
    name, edit = world.dice.choice(NAMES), world.dice.choice(EDITS)
    return f" {name} {edit}{_patch(world.kube, _profile(name), {'spec': edit})}"


def delete_profile(world: World) -> str:
    name = world.dice.choice(NAMES)
    how = world.dice.choice(("Background", "Foreground"))
    return f" {name} {how}{'' if world.kube.delete(_profile(name), how) else ': none'}"


def delete_child(world: World) -> str:
    child = world.some_child()
    if child is None:
        return ": none"
    world.kube.delete(child)
    return f" {child['kind']} {child['metadata']['name']}"


def tamper_with_child(world: World) -> str:
    child = world.some_child()
    if child is None:
        return ": none"
    change = world.dice.choice(TAMPERINGS[child["kind"]])
    answer = _patch(world.kube, child, change)
    return f" {child['kind']} {child['metadata']['name']} {change}{answer}"


def kill_operator(world: World) -> None:
    world.operator.kill()


def stop_operator(world: World) -> None:
    began = time.monotonic()
    world.operator.stop(STOPPED_S)
    assert time.monotonic() - began < STOPPED_S, "the operator did not end at SIGTERM"


def start_operator(world: World) -> None:
    world.operator.start()


def crash_api_server(world: World) -> None:
    world.cluster.plane.kill()
    world.dice.choice((start_operator, kill_operator, lambda _: None))(world)
    time.sleep(world.dice.random())
    world.cluster.plane.resume()


def restart_api_server(world: World) -> None:
    world.cluster.plane.restart()


STEPS: tuple[tuple[Callable[[World], str | None], int], ...] = (
    (make_profile, 24),
    (edit_profile, 24),
    (delete_profile, 10),
    (delete_child, 14),
    (tamper_with_child, 14),
    (kill_operator, 4),
    (stop_operator, 4),
    (start_operator, 10),
    (crash_api_server, 1),
    (restart_api_server, 1),
)


@pytest.fixture
def world(launch_control_plane: Launcher, tmp_path: Path) -> Iterator[World]:
    cluster = Cluster(launch_control_plane(), program(), tmp_path)
    metrics, health = free_ports(2)
    cluster.upgrade(
        "--set", "redis.url=redis://redis.example:6379/0",
        "--set", f"operator.metricsPort={metrics},operator.healthPort={health}",
    )  # fmt: skip
    given = options_of(parser().parse_args(cluster.operator_flags()), {}).defaults
    minor = int(cluster.kube.request("GET", "/version")["minor"])
    with cluster.operator() as operator:
        yield World(cluster, operator, replace(given, kubernetes_minor=minor))


@pytest.mark.timeout(1800)
def test_random_operations_converge(world: World) -> None:
    began, settled = time.monotonic(), []
    for number in range(SEQUENCES):
        world.dice, world.done = Random(f"{SEED}.{number}"), []
        try:
            for _ in range(world.dice.randint(3, 8)):
                world.step()
            settled.append((*_settle(world), number, world.done))
        except BaseException:
            print(f"\nseed {SEED}, sequence {number}:", *world.done, sep="\n  ")
            print(world.operator.tail())
            if (controllers := world.cluster.plane.controllers) is not None:
                print(controllers.tail())  # the garbage collector of Kubernetes is one of them
            raise
    settled.sort(reverse=True)
    print(
        f"\nseed {SEED}: {SEQUENCES} sequences in {time.monotonic() - began:.0f} s,"
        f" {dict(world.counts)}; converged within {settled[SEQUENCES // 2][0]:.1f} s (median),"
        f" {settled[SEQUENCES // 20][0]:.1f} s (95 %), {settled[0][0]:.1f} s (all), the slowest:"
    )
    for seconds, missing, number, done in settled[:3]:
        print(f"sequence {number}, {seconds:.1f} s for: {missing}", *done, sep="\n  ")


def _settle(world: World) -> tuple[float, str]:
    """Seconds until all is as it was meant, once nobody disturbs any more; what came last."""
    for name in NAMES:
        _patch(world.kube, _profile(name), {"spec": {"paused": False}})
    began, missing = time.monotonic(), "nothing"
    world.operator.start()

    def holds(check: Callable[[], None]) -> bool:
        nonlocal missing
        try:
            check()
        except AssertionError as error:
            missing = str(error).split("\n", 1)[0]
            raise
        return True

    def check_profiles() -> None:
        for name in NAMES:
            _check_profile(world, name)

    wait_for(lambda: holds(check_profiles), CONVERGED_S, "everything as it was meant")
    wait_for(lambda: holds(lambda: _check_no_orphans(world.kube)), COLLECTED_S, "no orphans")
    check_profiles()
    return time.monotonic() - began, missing


def _check_profile(world: World, name: str) -> None:
    profile = world.kube.get(API_VERSION, PROFILE_KIND, name)
    if profile is None:
        return  # its children are orphans then
    assert "deletionTimestamp" not in profile["metadata"], f"{name} hangs in deletion"
    accepted = condition(profile, "SpecAccepted")
    assert accepted.get("observedGeneration") == profile["metadata"]["generation"], accepted
    try:
        expected = manifests.owned_manifests(spec.parse(profile, world.defaults), world.defaults)
    except spec.SpecError:
        assert accepted["status"] == "False", f"{name} was not refused: {accepted}"
        return
    assert accepted["status"] == "True", f"{name} was refused: {accepted}"
    live = _owned(world.kube, profile["metadata"]["uid"])
    assert set(live) == {_key(manifest) for manifest in expected}
    for manifest in expected:
        # the server's own judgement: applied once more, would it change anything?
        meant = world.kube.apply(manifest, manager=OPERATOR_MANAGER, dry_run=True)[0]
        differences = [*_differences(_essence(meant), _essence(live[_key(manifest)]))]
        assert not differences, f"{_key(manifest)} is not as it was meant: {differences}"


def _owned(kube: Kube, uid: str) -> dict[tuple[str, str], Object]:
    return {_key(child): child for child, owner in _with_owners(kube) if owner["uid"] == uid}


def _check_no_orphans(kube: Kube) -> None:
    # profiles after children: one that is made in between must not make orphans of its own
    owned = [(_key(child), owner["uid"]) for child, owner in _with_owners(kube)]
    there = {profile["metadata"]["uid"] for profile in kube.items(API_VERSION, PROFILE_KIND)}
    orphans = [key for key, owner in owned if owner not in there]
    assert not orphans, f"orphans: {orphans}"


def _with_owners(kube: Kube) -> Iterator[tuple[Object, Object]]:
    """Whatever belongs to a profile by its owner, whatever its labels say."""
    for kind, api_version in CHILDREN.items():
        for child in kube.items(api_version, kind, NAMESPACE):
            for owner in child["metadata"].get("ownerReferences", ()):
                if owner["kind"] == PROFILE_KIND:
                    yield child, owner


def _essence(thing: Object) -> dict[str, Any]:
    about = thing["metadata"]
    fields = {key: thing[key] for key in thing if key not in ("metadata", "status")}
    return fields | {key: about.get(key) for key in ("labels", "ownerReferences")}


def _differences(meant: Any, live: Any, path: str = "") -> Iterator[str]:
    if isinstance(meant, dict) and isinstance(live, dict):
        for key in sorted({*meant, *live}):
            yield from _differences(meant.get(key), live.get(key), f"{path}.{key}")
    elif isinstance(meant, list) and isinstance(live, list) and len(meant) == len(live):
        for index, pair in enumerate(zip(meant, live, strict=True)):
            yield from _differences(*pair, f"{path}[{index}]")
    elif meant != live:
        yield f"{path.lstrip('.')}: {live!r} and not {meant!r}"


def _key(manifest: Any) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def _profile(name: str, body: dict[str, Any] | None = None) -> Object:
    about = {"name": name}
    return {
        "apiVersion": API_VERSION,
        "kind": PROFILE_KIND,
        "metadata": about,
        "spec": body or {},
    }


def _patch(kube: Kube, target: Object, change: dict[str, Any]) -> str:
    """As somebody would by hand; that it is gone already, or refused, is one of the cases."""
    try:
        kube.patch(target, change)
    except ApiError as error:
        assert error.status in (404, 409, 422), error
        return f": {error.reason}"
    return ""


def _has_null(value: Any) -> bool:
    """A merge patch takes fields away with nulls; a new object has none."""
    if isinstance(value, dict):
        return any(_has_null(item) for item in value.values())
    return value is None
