"""A collector's sink at a real Redis: proofs of origin, and what must not hold it up."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from reveal_collector.shipping import node_record, redis_sink
from reveal_contract import names
from reveal_contract.origin import field_data, key_of, prove
from support.polling import wait_until
from support.redis_sinks import (
    KEY,
    facts_of,
    running,
    sequences,
    settings,
    shipment,
    subjects_of,
)


def test_slices_prove_their_origin_with_a_token_that_is_announced_before(
    redis_server: Path, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"token of n1")
    client = redis.Redis(unix_socket_path=str(redis_server))
    with running(settings(redis_server, origin_token_file=str(file))) as sink:
        sink.put(shipment(5))
        wait_until(lambda: sink.health().delivered == 1)
        tokens: Any = client.hmget(names.node_key("default", "n1"), list(names.TOKENS))
    assert [token for token in tokens if token] == [b"token of n1"]
    [(_, fields)] = client.xrange(KEY)  # type: ignore[misc]
    assert fields[b"p"] == prove(key_of(b"token of n1"), b"d" * 10)


def test_the_token_is_announced_again_after_redis_lost_it(
    redis_server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_sink, "STATUS_SECONDS", 0.05)
    file = tmp_path / "token"
    file.write_bytes(b"token of n1")
    key, client = names.node_key("default", "n1"), redis.Redis(unix_socket_path=str(redis_server))
    with running(settings(redis_server, origin_token_file=str(file))) as sink:
        sink.put(shipment(5))
        wait_until(lambda: sink.health().delivered == 1 and client.hget(key, names.STATUS))
        client.delete(key)
        wait_until(lambda: client.hget(key, names.STATUS), "the next status")
        sink.put(shipment(6))
        wait_until(lambda: b"token of n1" in client.hvals(key), "the token")  # type: ignore[operator]


def test_a_token_that_somebody_overwrote_is_announced_again(
    redis_server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_record, "_TOKEN_SECONDS", 0.05)
    file = tmp_path / "token"
    file.write_bytes(b"token of n1")
    key, client = names.node_key("default", "n1"), redis.Redis(unix_socket_path=str(redis_server))
    with running(settings(redis_server, origin_token_file=str(file))) as sink:
        sink.put(shipment(5))
        wait_until(lambda: sink.health().delivered == 1)
        client.hset(key, mapping=dict.fromkeys(names.TOKENS, b"of another node"))
        sequence = itertools.count(6)

        def is_back() -> bool:
            sink.put(shipment(next(sequence)))
            return b"token of n1" in client.hvals(key)  # type: ignore[operator]

        wait_until(is_back, "the token")


def test_what_somebody_overwrote_is_written_again(
    redis_server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_sink, "STATUS_SECONDS", 0.05)
    monkeypatch.setattr(node_record, "_FIELDS_SECONDS", 0.1)
    key, client = names.node_key("default", "n1"), redis.Redis(unix_socket_path=str(redis_server))
    status = {"subjects": [{"instance": "job", "kind": "Job"}]}
    with running(settings(redis_server), lambda: status) as sink:
        sink.put(replace(shipment(0), facts=b"facts of n1"))
        wait_until(lambda: facts_of(client) == b"facts of n1", "the facts")
        subjects = subjects_of(client)
        client.hset(key, mapping={names.SUBJECTS: b"[]", names.FACTS: b"others"})
        wait_until(lambda: subjects_of(client) == subjects, "the subjects")
        wait_until(lambda: facts_of(client) == b"facts of n1", "the facts, again")


def test_a_name_that_is_no_text_holds_up_nothing(redis_server: Path) -> None:
    """All names are made printable where they are read; one that was forgotten must not matter."""
    client = redis.Redis(unix_socket_path=str(redis_server))
    status = {"subjects": [{"key": "\udcff.scope"}], "cpuShares": {"groups": ["\udcff"]}}
    with running(settings(redis_server), lambda: status) as sink:
        sink.put(shipment(0))
        wait_until(lambda: sink.health().delivered == 1)
    assert sequences(client) == [0]


def test_a_defect_is_logged_once_and_the_next_attempt_may_succeed(
    redis_server: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = [True]

    def status() -> dict[str, Any]:
        if broken[0]:
            raise RuntimeError("a defect")
        return {}

    with running(settings(redis_server), status) as sink:
        sink.put(shipment(0))
        wait_until(lambda: "a defect" in sink.health().health_error)
        sink.put(shipment(1))
        wait_until(lambda: sink.health().buffered == 2)
        time.sleep(0.5)  # some attempts
        broken[0] = False
        wait_until(lambda: sink.health().delivered == 2)
        wait_until(lambda: not sink.health().health_error, "the defect is over")
    assert [record.exc_info is not None for record in caplog.records].count(True) == 1


def test_what_a_node_announces_has_a_proof_beside_it(redis_server: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"token of n1")
    key, client = names.node_key("default", "n1"), redis.Redis(unix_socket_path=str(redis_server))
    status = {"subjects": [{"instance": "job", "kind": "Job"}]}
    with running(settings(redis_server, origin_token_file=str(file)), lambda: status) as sink:
        sink.put(shipment(0))
        wait_until(lambda: sink.health().delivered == 1)
        value, proof = subjects_of(client), client.hget(key, names.PROOF_OF + names.SUBJECTS)
        assert proof == prove(key_of(b"token of n1"), field_data(names.SUBJECTS, value))
        wait_until(lambda: client.hexists(key, names.STATUS))
        row, proof = client.hmget(key, names.STATUS, names.PROOF_OF + names.STATUS)  # type: ignore[misc]
        assert proof == prove(key_of(b"token of n1"), field_data(names.STATUS, row))
    for field in (names.SUBJECTS, names.STATUS):
        assert client.hget(key, names.PROOF_OF + field) is None, "it ends with the collector"
