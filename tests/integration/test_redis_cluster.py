"""Collectors and an analyzer use a Redis Cluster, whose servers fail and whose slots move."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from reveal_analyzer.stream.redis_connection import connect
from reveal_analyzer.stream.redis_memory import refuse_when_full
from reveal_collector.shipping.redis_cluster import ClusterConnection, connection_to
from reveal_collector.shipping.resp import RedisError
from reveal_contract import names
from reveal_contract.redis_address import parse_url
from reveal_contract.redis_cluster import key_slot
from support.certificates import on_loopback
from support.component_processes import free_port
from support.redis_cluster_group import RedisCluster, slots_of
from support.redis_server import RedisLauncher
from support.sending_nodes import NODES, SendingNodes

PROFILE = "default"
STREAM_SLOTS = [key_slot(names.samples_key(PROFILE, names.shard(node))) for node in NODES]


@pytest.fixture
def cluster(redis_launcher: RedisLauncher) -> RedisCluster:
    return RedisCluster(redis_launcher)


def key_of(number: int, count: int = 0) -> str:
    """Return a key whose slot is with one of the three primaries."""
    found = (each for each in (f"key-{index}" for index in range(10_000)))
    return [each for each in found if key_slot(each) in slots_of(number)][count]


def test_a_primary_that_is_killed_loses_nothing_that_was_not_acknowledged(
    cluster: RedisCluster, stack: ExitStack
) -> None:
    nodes = SendingNodes(cluster.url, stack)
    nodes.exchange(lambda: nodes.sent >= 10)
    assert [nodes.received[node] for node in NODES] == [list(range(nodes.sent))] * 3

    lost = cluster.primary_of(STREAM_SLOTS[0])
    replica = cluster.replicas[cluster.primaries.index(lost)]
    lost.kill()
    acknowledged = nodes.delivered
    nodes.exchange(lambda: nodes.are_well and replica.role == "master")

    for node, before in zip(NODES, acknowledged, strict=True):
        got = nodes.received[node]
        assert got == sorted(set(got)), "once, and in order"
        missing = set(range(nodes.sent)) - set(got)
        assert all(sequence <= before for sequence in missing)
    status = nodes.reader.status()
    assert (status["refused"], status["restarts"]) == (0, 0)
    assert sum(sink.health().dropped for sink in nodes.sinks) == 0


def test_slots_move_while_nodes_send(cluster: RedisCluster, stack: ExitStack) -> None:
    nodes = SendingNodes(cluster.url, stack)
    nodes.exchange(lambda: nodes.sent >= 5)
    tables = key_slot(names.table_key(PROFILE, b""))
    for slot in {*STREAM_SLOTS, tables}:
        source = cluster.primary_of(slot)
        others = [each for each in cluster.primaries if each is not source]
        cluster.move(slot, others[0])
        before = nodes.sent
        nodes.exchange(lambda before=before: nodes.sent >= before + 3)  # type: ignore[misc]
    nodes.exchange(lambda: nodes.are_well)
    assert [nodes.received[node] for node in NODES] == [list(range(nodes.sent))] * 3
    assert nodes.reader.status()["restarts"] == 0


def test_a_cluster_with_tls_is_followed_through_a_failover_and_a_move(
    tmp_path: Path, redis_launcher: RedisLauncher, stack: ExitStack
) -> None:
    cluster = RedisCluster(redis_launcher, certificate=on_loopback(tmp_path))
    nodes = SendingNodes(cluster.url, stack)
    nodes.exchange(lambda: nodes.sent >= 5)
    lost = cluster.primary_of(STREAM_SLOTS[0])
    replica = cluster.replicas[cluster.primaries.index(lost)]
    moved = next(slot for slot in STREAM_SLOTS if cluster.primary_of(slot) is not lost)
    others = [each for each in cluster.primaries if each is not cluster.primary_of(moved)]
    cluster.move(moved, next(each for each in others if each is not lost))
    nodes.exchange(lambda: nodes.are_well)
    assert [nodes.received[node] for node in NODES] == [list(range(nodes.sent))] * 3
    lost.kill()
    nodes.exchange(lambda: nodes.are_well and replica.role == "master")
    assert sum(sink.health().dropped for sink in nodes.sinks) == 0


def test_a_primary_that_hangs_is_left_before_it_goes_on(
    cluster: RedisCluster, stack: ExitStack
) -> None:
    nodes = SendingNodes(cluster.url, stack)
    nodes.exchange(lambda: nodes.sent >= 3)
    hung = cluster.primary_of(STREAM_SLOTS[0])
    replica = cluster.replicas[cluster.primaries.index(hung)]
    hung.signal(signal.SIGSTOP)
    nodes.send_until(lambda: replica.role == "master" and nodes.are_well)
    hung.signal(signal.SIGCONT)
    nodes.exchange(lambda: hung.role == "slave" and nodes.are_well)
    assert [nodes.received[node] for node in NODES] == [list(range(nodes.sent))] * 3


def test_commands_reach_the_server_of_their_key(cluster: RedisCluster) -> None:
    collector = connection_to(cluster.url, 2.0)
    keys = [key_of(number) for number in range(3)]
    for key in keys:
        assert collector.transaction([("SET", key, key), ("EXPIRE", key, 60)]) == [b"OK", 1]
        assert collector.call(("GET", key)) == key.encode()
    with connect(cluster.url) as analyzer:
        assert [analyzer.get(key) for key in keys] == [key.encode() for key in keys]
        with analyzer.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.eval("return redis.call('APPEND', KEYS[1], ARGV[1])", 1, key, "!")
                pipe.ttl(key)
            replies = pipe.execute()
        assert replies[::2] == [len(key) + 1 for key in keys]
        assert sorted(analyzer.scan_iter(match="key-*")) == sorted(key.encode() for key in keys)
        assert len(analyzer.time()) == 2
        with analyzer.pipeline(transaction=False) as pipe:
            pipe.lpush(keys[1], "of another type")
            pipe.get(keys[2])
            wrong, fine = pipe.execute(raise_on_error=False)
            pipe.lpush(keys[1], "of another type")
            with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
                pipe.execute()
        assert isinstance(wrong, redis.ResponseError)
        assert fine == f"{keys[2]}!".encode()
    collector.close()


def test_a_slot_that_is_about_to_move_has_its_keys_on_two_servers(cluster: RedisCluster) -> None:
    old, new = f"{{{key_of(0)}}}old", f"{{{key_of(0)}}}new"
    collector = connection_to(cluster.url, 2.0)
    with connect(cluster.url) as analyzer:
        analyzer.set(old, 1)
        cluster.begin_move(key_slot(old), cluster.primaries[1])
        assert collector.transaction([("SET", new, 1), ("EXPIRE", new, 60)]) == [b"OK", 1]
        assert analyzer.get(old) == analyzer.get(new) == b"1"
        assert analyzer.ttl(new) > 0
        with analyzer.pipeline(transaction=False) as pipe:
            pipe.get(old)
            pipe.incr(new)
            assert pipe.execute() == [b"1", 2]
    collector.close()


def test_a_server_that_is_full_is_found_among_all(cluster: RedisCluster) -> None:
    with connect(cluster.url) as analyzer:
        refuse_when_full(analyzer)
        cluster.primaries[2].client.config_set("maxmemory", "1mb")
        with pytest.raises(OSError, match="raise maxmemory"):
            refuse_when_full(analyzer)


def test_a_cluster_that_is_away_is_an_outage_with_a_sentence() -> None:
    url = f"redis+cluster://:secret@127.0.0.1:{free_port()},127.0.0.1:{free_port()}"
    with connect(url) as analyzer, pytest.raises(redis.ConnectionError) as refused:
        analyzer.get("key")
    assert "no server of the Redis Cluster answers" in str(refused.value)
    with pytest.raises(OSError, match="no server of the Redis Cluster answers"):
        ClusterConnection(parse_url(url), 1.0).call(("GET", "key"))


def test_a_single_redis_is_no_cluster(redis_launcher: RedisLauncher) -> None:
    port = free_port()
    redis_launcher("--port", str(port))
    url = f"redis+cluster://127.0.0.1:{port}"
    with connect(url) as analyzer, pytest.raises(redis.ConnectionError, match="cluster support"):
        analyzer.get("key")
    with pytest.raises(OSError, match="cluster support disabled"):
        connection_to(url, 1.0).call(("GET", "key"))


def test_servers_may_ask_for_a_login(redis_launcher: RedisLauncher) -> None:
    cluster = RedisCluster(redis_launcher)
    for server in cluster.servers:
        server.client.config_set("masterauth", "data")
        server.client.config_set("requirepass", "data")
    location = cluster.url.replace("://", "://:{}@")
    with connect(location.format("data")) as analyzer:
        assert analyzer.set("key", 1)
    collector = connection_to(location.format("wr0ng"), 1.0)
    with pytest.raises((OSError, RedisError)) as refused:
        collector.call(("GET", "key"))
    assert "wr0ng" not in str(refused.value)
