"""Somebody writes to Redis, or names things, to mislead: a fault is found as without them.

One condition says what is wrong.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import redis

from reveal_analyzer.stream.channel_tables import ChannelTables
from reveal_contract import names, wire
from reveal_contract.origin import key_of, prove
from support.api_server import Object, condition, wait_for
from support.cluster_outages import COLLECTOR, Pods, restarts
from support.cluster_release import PROFILE, Release
from support.fault_run import throttled_run
from support.published_sources import COLLECTOR_SECRET, evaluation_redis

pytestmark = pytest.mark.timeout(900)

NODE, COMPROMISED = "node2", "node3"
_REPORTED_S = 60.0
_LARGE_PODS, _VALUES = 40, 900
_RESTARTS_S = 120.0
_VIEW_S = 10.0  # the longest time over which the live score looks
_AGAIN_S = 0.3  # between two attacks
_STREAM = names.samples_key(PROFILE, names.shard(NODE))
_NODE_KEY = names.node_key(PROFILE, NODE)


def test_forged_slices(pods: Pods, jobs: str) -> None:
    """With the login of collectors, and all that the collector of another node has."""
    forger = Forger(pods.watched)
    with _attacked(forger.forge), throttled_run("slices forged", pods.watched, jobs, NODE) as story:
        story.start()
        _expect_degraded(pods.watched, "do not prove", NODE)
    assert forger.written > len(forger.proofs)


def test_squatted_leases(pods: Pods, jobs: str) -> None:
    client = evaluation_redis(pods.watched)

    def squat() -> None:
        for number in range(names.SHARDS):
            client.set(names.owner_key(PROFILE, number), "nobody")

    squat()
    with throttled_run("leases squatted", pods.watched, jobs, NODE) as story:
        squat()
        story.start()
    assert client.get(names.owner_key(PROFILE, names.shard(NODE))) != b"nobody"


def test_a_key_of_another_type(pods: Pods, jobs: str) -> None:
    client, key = evaluation_redis(pods.watched), names.fleet_key(PROFILE)
    client.delete(key)
    client.set(key, "x")
    try:
        with throttled_run("key of another type", pods.watched, jobs, NODE) as story:
            story.start()
            _expect_degraded(pods.watched, key)
    finally:
        client.delete(key)


def test_a_cgroup_whose_name_is_no_text(pods: Pods, jobs: str) -> None:
    [collector] = pods.of(COLLECTOR, NODE)
    before = restarts(collector)
    with (
        _cgroup(pods, NODE, "printf '\\377.scope'"),
        throttled_run("a cgroup without a name", pods.watched, jobs, NODE) as story,
    ):
        story.start()
    [collector] = pods.of(COLLECTOR, NODE)
    assert restarts(collector) == before


def test_large_pods(pods: Pods, jobs: str) -> None:
    """A megabyte each, bound to a node, and waiting for an image that does not exist."""
    [collector] = pods.of(COLLECTOR, NODE)
    before = restarts(collector)
    with _large_pods(pods.watched, jobs):
        pods.signal(collector)  # it lists all pods when it starts
        wait_for(lambda: restarts(pods.of(COLLECTOR, NODE)[0]) > before, _RESTARTS_S, "it starts")
        with throttled_run("large pods", pods.watched, jobs, NODE) as story:
            story.start()
    [collector] = pods.of(COLLECTOR, NODE)
    assert restarts(collector) == before + 1


@contextmanager
def _large_pods(watched: Release, namespace: str) -> Iterator[None]:
    """Pods that are gone afterwards: their end is much work, which the next test must not see."""
    for number in range(_LARGE_PODS):
        watched.kube.create(_large_pod(f"large-{number}"), namespace=namespace)
    try:
        yield
    finally:
        pods = "pods", "--namespace", namespace, "--all"
        watched.cluster.kubectl("delete", *pods, "--now", f"--timeout={_RESTARTS_S:.0f}s")
        time.sleep(_VIEW_S)  # what this work was found to be is open now, or nothing
        watched.calm()


def _large_pod(name: str) -> Object:
    values = [{"name": f"V{number}", "value": "x" * 1000} for number in range(_VALUES)]
    container = {"name": "main", "image": "none", "imagePullPolicy": "Never", "env": values}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "nodeName": NODE, "containers": [container], "terminationGracePeriodSeconds": 0,
        },
    }  # fmt: skip


class Forger:
    """Writes slices in the name of a node: without proof, with one of the node, with its own."""

    def __init__(self, watched: Release) -> None:
        self._reader = evaluation_redis(watched)
        self._login = evaluation_redis(watched, COLLECTOR_SECRET)
        self.written = 0
        self.proofs: tuple[Callable[[bytes, bytes], dict[str, bytes]], ...] = (
            lambda data, last: {},
            lambda data, last: {names.FIELD_PROOF: last},
            lambda data, last: {names.FIELD_PROOF: prove(key_of(self._own_token()), data)},
        )

    def forge(self) -> None:
        """Write one: a copy of the node's last slice that comes after it."""
        entries: Any = self._reader.xrevrange(_STREAM, count=16)
        fields = next(found for _, found in entries if found[b"n"] == NODE.encode())
        _, key = wire.peek(fields[b"d"])
        tables = ChannelTables(PROFILE)
        tables.fetch(self._reader, {key: [NODE]})
        if (known := tables.get(key)) is None:
            return
        message = wire.decode(fields[b"d"], known.gauges)
        data = wire.encode(replace(message, sequence=message.sequence + 1_000), known.gauges)
        proof = self.proofs[self.written % len(self.proofs)](data, fields.get(b"p", b""))
        self._login.xadd(_STREAM, {names.FIELD_NODE: NODE, names.FIELD_DATA: data, **proof})
        self.written += 1

    def _own_token(self) -> bytes:
        """Return the token of the node that is compromised, announced as one of the other's."""
        tokens: Any = self._reader.hmget(names.node_key(PROFILE, COMPROMISED), list(names.TOKENS))
        token: bytes = next(filter(None, tokens))
        self._login.hset(_NODE_KEY, names.TOKENS[0], token)
        return token


@contextmanager
def _attacked(attack: Callable[[], None]) -> Iterator[None]:
    """Attack again and again; an attack that fails is an error of the test."""
    over, failed = threading.Event(), []

    def attacks() -> None:
        while not over.wait(_AGAIN_S):
            try:
                attack()
            except (redis.RedisError, ValueError, LookupError, StopIteration) as error:
                failed.append(error)

    thread = threading.Thread(target=attacks)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert failed == []


def _expect_degraded(watched: Release, *words: str) -> None:
    def is_named() -> bool:
        message = str(condition(watched.profile, "Degraded").get("message", ""))
        return all(word in message for word in words)

    wait_for(is_named, _REPORTED_S, f"Degraded has {words}")


@contextmanager
def _cgroup(pods: Pods, node: str, name: str) -> Iterator[None]:
    """A cgroup of a name that the shell prints, beside those of the pods of the node."""
    parents = "$(find /sys/fs/cgroup -maxdepth 4 -type d -name 'kubepods*' | head -20)"
    each = f'for parent in {parents}; do {{}} "$parent/$({name})"; done'
    pods.cluster.execute(node, "sh", "-c", each.format("mkdir -p"))
    try:
        time.sleep(1.0)
        yield
    finally:
        pods.cluster.execute(node, "sh", "-c", each.format("rmdir"))
