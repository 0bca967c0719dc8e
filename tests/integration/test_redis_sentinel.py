"""Collectors and an analyzer find the primary through Sentinels, and follow it when it changes."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import redis

from reveal_analyzer.stream.redis_connection import connect
from reveal_collector.shipping.resp import RedisConnection, RedisError
from support.component_processes import free_port
from support.polling import wait_until
from support.redis_server import RedisLauncher
from support.sending_nodes import COLLECTOR, NODES, SendingNodes
from support.sentinel_group import SERVICE, Member, SentinelGroup

# the longest wait for a failover, twice
pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def group(redis_launcher: RedisLauncher) -> SentinelGroup:
    return SentinelGroup(redis_launcher)


def test_a_failover_loses_nothing_that_was_not_acknowledged(
    group: SentinelGroup, stack: ExitStack
) -> None:
    nodes = SendingNodes(group.url(), stack)
    nodes.exchange(lambda: nodes.sent >= 10)
    assert [nodes.received[node] for node in NODES] == [list(range(nodes.sent))] * 3

    group.primary.kill()
    nodes.send()
    wait_until(lambda: all(sink.health().health_error for sink in nodes.sinks), "all lost it")
    acknowledged = nodes.delivered
    nodes.exchange(lambda: nodes.are_well and group.replica.role == "master")

    for node, before in zip(NODES, acknowledged, strict=True):
        got = nodes.received[node]
        assert got == sorted(set(got)), "once, and in order"
        lost = set(range(nodes.sent)) - set(got)
        assert all(sequence < before for sequence in lost)
    status = nodes.reader.status()
    assert (status["refused"], status["restarts"], status["outages"]) == (0, 0, 1)
    assert sum(sink.health().dropped for sink in nodes.sinks) == 0
    assert {COLLECTOR} <= group.replica.client_names()

    returned = group.replica_of(group.replica, port=group.primary.port)
    before = nodes.sent
    nodes.exchange(lambda: nodes.sent >= before + 5 and nodes.are_well)
    assert all(set(range(before, nodes.sent)) <= set(got) for got in nodes.received.values())
    assert COLLECTOR not in returned.client_names()
    _refuses_what_is_no_primary(group, returned)


def _refuses_what_is_no_primary(group: SentinelGroup, replica: Member) -> None:
    """An outdated Sentinel still names a primary that has become a replica."""
    for sentinel in group.sentinels:
        sentinel.client.sentinel_monitor("outdated", "127.0.0.1", replica.port, 2)
    message = f"127.0.0.1:{replica.port} is not the primary of outdated now"
    with pytest.raises(RedisError, match=message):
        RedisConnection(group.url("outdated"), 2.0).call(("SET", "written", 1))
    with connect(group.url("outdated")) as client, pytest.raises(redis.ConnectionError) as refused:
        client.set("written", 1)
    assert message in str(refused.value)
    assert not replica.client.exists("written")


def test_a_planned_failover_is_followed(group: SentinelGroup, stack: ExitStack) -> None:
    """The former primary goes on as a replica: its clients are disconnected or refused."""
    nodes = SendingNodes(group.url(), stack)
    nodes.exchange(lambda: nodes.sent >= 3)
    group.fail_over()
    # until it is one, it acknowledges what is lost with it
    nodes.send_until(lambda: group.fail_over() and group.primary.role == "slave" and nodes.are_well)
    before = nodes.sent
    nodes.exchange(lambda: nodes.sent >= before + 5 and nodes.are_well)
    assert {COLLECTOR} <= group.replica.client_names()
    wait_until(lambda: COLLECTOR not in group.primary.client_names(), "no collector is left")


def test_a_primary_that_hangs_is_left_before_it_goes_on(
    group: SentinelGroup, stack: ExitStack
) -> None:
    """Until it is a replica, it takes what waits at its socket for a primary's."""
    nodes = SendingNodes(group.url(), stack)
    nodes.exchange(lambda: nodes.sent >= 3)
    group.primary.signal(signal.SIGSTOP)
    nodes.send_until(lambda: group.replica.role == "master" and nodes.are_well)
    group.primary.signal(signal.SIGCONT)
    nodes.exchange(lambda: group.primary.role == "slave" and nodes.are_well)
    assert [nodes.received[node] for node in NODES] == [list(range(nodes.sent))] * 3


@pytest.mark.parametrize("options", ["", "?sentinel_password=wr0ng"])
def test_sentinels_and_servers_have_passwords_of_their_own(
    redis_launcher: RedisLauncher, options: str
) -> None:
    primary = Member(redis_launcher, "--requirepass", "data")
    configuration = f"sentinel monitor {SERVICE} 127.0.0.1 {primary.port} 1\n"
    sentinel = Member(
        redis_launcher, "--sentinel", "--requirepass", "asking", configuration=configuration
    )
    location = f"redis+sentinel://:data@127.0.0.1:{sentinel.port}/{SERVICE}/2"
    for url in (location + (options or "?sentinel_password=asking"),):
        collector = RedisConnection(url, 2.0)
        with connect(url) as analyzer:
            if options:
                reason = f"no Sentinel names a primary of {SERVICE}: 127.0.0.1:{sentinel.port}: "
                with pytest.raises(OSError, match=reason) as refused:
                    collector.call(("SET", "key", "value"))
                with pytest.raises(redis.ConnectionError, match=reason) as refused_too:
                    analyzer.get("key")
                assert "wr0ng" not in f"{refused.value}{refused_too.value}"
            else:
                collector.call(("SET", "key", "value"))
                assert analyzer.get("key") == b"value"
        collector.close()


@pytest.fixture
def silent() -> Iterator[str]:
    """Sentinels that accept connections and never reply."""
    with ExitStack() as stack:
        ports = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            for _ in range(3)
        ]
        yield ",".join(f"127.0.0.1:{port}" for port in ports)


def test_silent_sentinels_hold_an_analyzer_no_longer_than_a_silent_server(silent: str) -> None:
    began = time.monotonic()
    none = pytest.raises(redis.ConnectionError, match="no Sentinel names a primary")
    with connect(f"redis+sentinel://{silent}/{SERVICE}") as client, none:
        client.ping()
    assert time.monotonic() - began < 1.5


def test_a_sentinel_that_is_away_is_passed_over(redis_launcher: RedisLauncher) -> None:
    primary = Member(redis_launcher)
    sentinel = Member(
        redis_launcher,
        "--sentinel",
        configuration=f"sentinel monitor {SERVICE} 127.0.0.1 {primary.port} 1\n",
    )
    hosts = f"127.0.0.1:{free_port()},127.0.0.1:{sentinel.port},127.0.0.1:{free_port()}"
    url = f"redis+sentinel://{hosts}/{SERVICE}"
    for _ in range(4):
        collector = RedisConnection(url, 2.0)
        assert collector.call(("SET", "key", "value")) == b"OK"
        collector.close()
        with connect(url) as analyzer:
            assert analyzer.get("key") == b"value"


def test_a_primary_that_was_demoted_behind_its_name_is_left(redis_launcher: RedisLauncher) -> None:
    """As behind the name of a managed service: the next connection leads to the new primary."""
    server = Member(redis_launcher)
    url = f"redis://127.0.0.1:{server.port}"
    with connect(url) as client:
        first = client.client_id()
        server.client.replicaof("127.0.0.1", free_port())
        for command in (
            lambda: client.set("key", "value"),
            lambda: client.eval("return redis.call('SET', KEYS[1], 1)", 1, "key"),
            lambda: client.pipeline(transaction=False).set("key", 1).execute(raise_on_error=False),
        ):
            with pytest.raises(redis.ConnectionError, match="not the primary"):
                command()
        server.client.replicaof("NO", "ONE")
        assert client.set("key", "value")
        assert client.client_id() != first
