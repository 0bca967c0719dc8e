"""Slots as redis-py computes them; servers of slots as the cluster says; redirections."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot as key_slot_of_redis_py

from reveal_contract import names
from reveal_contract.redis_address import RedisAddress, parse_url
from reveal_contract.redis_cluster import (
    SLOTS,
    ClusterMap,
    NoClusterError,
    Redirection,
    key_slot,
    redirection,
)
from support.property_tests import examples

URL = "redis+cluster://:s3cret@a,b:2"
HALVES = [
    [0, 8191, [b"10.0.0.1", 1, b"id"], [b"10.0.0.9", 9, b"id"]],
    [8192, SLOTS - 1, [b"10.0.0.2", 2, b"id"]],
]


class Servers:
    """Servers with these replies, by host; ``asked`` has the host of each call."""

    def __init__(self, **replies: Any) -> None:
        self.replies, self.asked = replies, list[str]()
        self.map = ClusterMap(parse_url(URL), self._ask, (OSError,), 1.0)

    def _ask(self, server: RedisAddress, command: tuple[str, ...], _: float) -> Any:
        assert command == ("CLUSTER", "SLOTS")
        assert server.password == "s3cret"
        self.asked.append(server.host)
        reply = self.replies.get(server.host, OSError("s3cret is away"))
        if isinstance(reply, Exception):
            raise reply
        return reply


def own(host: str, port: int) -> RedisAddress:
    return RedisAddress(host, port, password="s3cret", is_of_cluster=True)


@given(st.text("a{}b:", max_size=12) | st.text(max_size=30))
@examples(300)
def test_the_slot_of_a_key_is_that_of_redis_py(key: str) -> None:
    assert key_slot(key) == key_slot_of_redis_py(key.encode()) == key_slot(key.encode())


def test_what_a_node_writes_together_has_a_single_slot() -> None:
    shard = names.shard("n1")
    assert key_slot(names.samples_key("p", shard)) == key_slot(names.node_key("p", "n1"))
    assert key_slot(names.table_key("p", b"t")) == key_slot(names.table_changes_key("p", b"u", "n"))


def test_a_slot_has_the_server_that_the_cluster_names() -> None:
    servers = Servers(a=HALVES, b=HALVES)
    assert servers.map.server(0) == servers.map.server(8191) == own("10.0.0.1", 1)
    assert servers.map.server(8192) == own("10.0.0.2", 2)
    assert len(servers.asked) == 1
    assert servers.map.primaries() == [own("10.0.0.1", 1), own("10.0.0.2", 2)]
    assert len(servers.asked) == 1


def test_primaries_are_asked_for_again_when_a_slot_has_moved() -> None:
    servers = Servers(a=HALVES, b=HALVES)
    first = servers.map.server(5)
    everything = [[0, SLOTS - 1, [b"10.0.0.3", 3]]]
    servers.replies = dict.fromkeys(("a", "b", "10.0.0.1", "10.0.0.2"), everything)
    servers.map.redirected(first, Redirection(False, 5, "10.0.0.3", 3))
    assert servers.map.primaries() == [own("10.0.0.3", 3)]


def test_after_an_outage_the_servers_are_asked_that_are_known_and_those_of_the_address() -> None:
    servers = Servers(a=HALVES)
    servers.map.server(0)
    servers.map.forget()
    servers.replies = {"10.0.0.2": [[0, SLOTS - 1, [b"10.0.0.3", 3]]]}
    assert servers.map.server(0) == own("10.0.0.3", 3)
    servers.map.forget()
    servers.replies = {"b": HALVES}
    assert servers.map.server(0) == own("10.0.0.1", 1)


@pytest.mark.parametrize("host", [None, b"", b"?"])
def test_a_server_without_a_name_is_that_which_was_asked(host: Any) -> None:
    servers = Servers(a=[[0, SLOTS - 1, [host, 7]]])
    assert servers.map.server(1) == own("a", 7)


@pytest.mark.parametrize("host", ["", "?"])
def test_only_a_redirection_for_good_is_remembered(host: str) -> None:
    servers = Servers(a=HALVES, b=HALVES)
    first = servers.map.server(5)
    asked = servers.map.redirected(first, Redirection(True, 5, host, 8))
    assert asked == own("10.0.0.1", 8)
    assert servers.map.server(5) == first
    moved = servers.map.redirected(first, Redirection(False, 5, "10.0.0.2", 2))
    assert servers.map.server(5) == moved == own("10.0.0.2", 2)
    assert servers.map.server(6) == first


def test_no_server_for_a_slot_is_a_sentence_without_the_password() -> None:
    away = Servers()
    with pytest.raises(NoClusterError, match=r"answers: a:6379: \*\*\* is away; b:2: ") as refused:
        away.map.server(0)
    assert "s3cret" not in str(refused.value)
    empty = Servers(a=[], b=[])
    with pytest.raises(NoClusterError, match="a:6379: it knows no server of a slot"):
        empty.map.server(0)
    odd = Servers(a=7, b=[[1]])
    with pytest.raises(NoClusterError, match="no server of the Redis Cluster answers"):
        odd.map.server(0)
    part = Servers(a=HALVES[:1], b=HALVES[:1])
    with pytest.raises(NoClusterError, match="no server of the Redis Cluster has slot 9000"):
        part.map.server(9000)
    part.replies = {"a": HALVES, "b": HALVES}
    assert part.map.server(9000) == own("10.0.0.2", 2)


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("MOVED 3999 127.0.0.1:6381", Redirection(False, 3999, "127.0.0.1", 6381)),
        ("ASK 3999 host.example:6381", Redirection(True, 3999, "host.example", 6381)),
        ("MOVED 1 fd00::1:6381", Redirection(False, 1, "fd00::1", 6381)),
        ("MOVED 1 :6381", Redirection(False, 1, "", 6381)),
        ("MOVED 1 ?:6381", Redirection(False, 1, "?", 6381)),
        ("MOVED", None),
        ("MOVED a b:c", None),
        ("CLUSTERDOWN The cluster is down", None),
        ("ERR", None),
    ],
)
def test_a_reply_names_the_server_that_has_the_slot(reply: str, found: Redirection | None) -> None:
    assert redirection(reply) == found


@given(st.text(max_size=40) | st.text("MOVEDASK 0123:?", max_size=20))
@examples(200)
def test_any_error_reply_is_a_redirection_or_none(reply: str) -> None:
    redirection(reply)
