"""Collectors and an analyzer find the primary through Sentinels, and follow it when it changes."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
import redis

from reveal_analyzer.stream.reader import StreamReader
from reveal_analyzer.stream.redis_connection import connect
from reveal_collector.shipping.redis_sink import RedisSink
from reveal_collector.shipping.resp import RedisConnection, RedisError
from reveal_collector.shipping.sinks import EncodedSlice
from reveal_contract import wire
from reveal_contract.settings import AnalyzerSettings, CollectorSettings
from support import redis_sinks
from support.component_processes import free_port
from support.polling import wait_until
from support.redis_server import RedisLauncher
from support.redis_streams import TABLE, message
from support.sentinel_group import SERVICE, Member, SentinelGroup

NODES = ("n1", "n2", "n3")
COLLECTOR = "reveal-collector"
_BUFFERED = 600


@dataclass
class Fleet:
    """Some nodes that send, and one analyzer that reads what they send."""

    url: str
    stack: ExitStack
    sent: int = 0
    received: dict[str, list[int]] = field(default_factory=lambda: {node: [] for node in NODES})

    def __post_init__(self) -> None:
        settings = AnalyzerSettings(redis_url=self.url)
        self.reader = StreamReader(settings, "one", ack_seconds=0.0)
        self.stack.callback(self.reader.close)
        self.sinks = [self._sink(node) for node in NODES]

    def _sink(self, node: str) -> RedisSink:
        # slices come faster than one a second: a failover takes many
        settings = CollectorSettings(node, self.url, buffer_seconds=_BUFFERED)
        return self.stack.enter_context(redis_sinks.running(settings))

    def send(self) -> None:
        for node, sink in zip(NODES, self.sinks, strict=True):
            data = wire.encode(message(node, self.sent), wire.gauges(TABLE))
            sink.put(EncodedSlice(node, b"b" * 16, self.sent, self.sent * 10**9, TABLE, data))
        self.sent += 1

    def send_until(self, condition: Callable[[], bool]) -> None:
        """Send and read until the condition holds."""

        def both() -> bool:
            self.send()
            self.read()
            return condition()

        wait_until(both, "the condition while nodes send")

    def exchange(self, until: Callable[[], bool]) -> None:
        """Send and read until the condition holds, then read the rest."""
        self.send_until(until)
        last = self.sent - 1
        wait_until(lambda: self.read() and all(last in each for each in self.received.values()))

    def read(self) -> bool:
        received = self.reader.poll()
        for each in received:
            self.received[each.node].append(each.message.sequence)
        self.reader.ack(received)
        return True

    @property
    def are_well(self) -> bool:
        """Whether all slices are delivered and nobody reports an error."""
        health = [sink.health() for sink in self.sinks]
        return self.reader.connected and not any(
            each.health_error or each.buffered for each in health
        )

    @property
    def delivered(self) -> list[int]:
        return [sink.health().delivered for sink in self.sinks]


@pytest.fixture
def group(redis_launcher: RedisLauncher) -> SentinelGroup:
    return SentinelGroup(redis_launcher)


def test_a_failover_loses_nothing_that_was_not_acknowledged(
    group: SentinelGroup, stack: ExitStack
) -> None:
    fleet = Fleet(group.url(), stack)
    fleet.exchange(lambda: fleet.sent >= 10)
    assert [fleet.received[node] for node in NODES] == [list(range(fleet.sent))] * 3

    group.primary.kill()
    fleet.send()
    wait_until(lambda: all(sink.health().health_error for sink in fleet.sinks), "all lost it")
    acknowledged = fleet.delivered
    fleet.exchange(lambda: fleet.are_well and group.replica.role == "master")

    for node, before in zip(NODES, acknowledged, strict=True):
        got = fleet.received[node]
        assert got == sorted(set(got)), "once, and in order"
        lost = set(range(fleet.sent)) - set(got)
        assert all(sequence < before for sequence in lost)
    status = fleet.reader.status()
    assert (status["refused"], status["restarts"], status["outages"]) == (0, 0, 1)
    assert sum(sink.health().dropped for sink in fleet.sinks) == 0
    assert {COLLECTOR} <= group.replica.client_names()

    returned = group.replica_of(group.replica, port=group.primary.port)
    before = fleet.sent
    fleet.exchange(lambda: fleet.sent >= before + 5 and fleet.are_well)
    assert all(set(range(before, fleet.sent)) <= set(got) for got in fleet.received.values())
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
    fleet = Fleet(group.url(), stack)
    fleet.exchange(lambda: fleet.sent >= 3)
    group.sentinels[0].client.sentinel_failover(SERVICE)
    # until it is one, it acknowledges what is lost with it
    fleet.send_until(lambda: group.primary.role == "slave" and fleet.are_well)
    before = fleet.sent
    fleet.exchange(lambda: fleet.sent >= before + 5 and fleet.are_well)
    assert {COLLECTOR} <= group.replica.client_names()
    wait_until(lambda: COLLECTOR not in group.primary.client_names(), "no collector is left")


def test_a_primary_that_hangs_is_left_before_it_goes_on(
    group: SentinelGroup, stack: ExitStack
) -> None:
    """Until it is a replica, it takes what waits at its socket for a primary's."""
    fleet = Fleet(group.url(), stack)
    fleet.exchange(lambda: fleet.sent >= 3)
    group.primary.signal(signal.SIGSTOP)
    fleet.send_until(lambda: group.replica.role == "master" and fleet.are_well)
    group.primary.signal(signal.SIGCONT)
    fleet.exchange(lambda: group.primary.role == "slave" and fleet.are_well)
    assert [fleet.received[node] for node in NODES] == [list(range(fleet.sent))] * 3


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
