"""A collector's sink at a real Redis: proofs of origin, and what must not hold it up."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from reveal_collector.shipping import node_record, redis_sink
from reveal_contract import names
from reveal_contract.origin import field_data, key_of, prove
from reveal_contract.settings import CollectorSettings
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

NODE = names.node_key("default", "n1")
TOKEN = b"token of n1"


@pytest.fixture
def client(redis_server: Path) -> Iterator[redis.Redis]:
    result = redis.Redis(unix_socket_path=str(redis_server))
    yield result
    result.close()


@pytest.fixture
def proving(redis_server: Path, tmp_path: Path) -> CollectorSettings:
    """The settings of a collector that proves the origin of what it sends."""
    file = tmp_path / "token"
    file.write_bytes(TOKEN)
    return settings(redis_server, origin_token_file=str(file))


def test_slices_prove_their_origin_with_a_token_that_is_announced_before(
    client: redis.Redis, proving: CollectorSettings
) -> None:
    with running(proving) as sink:
        sink.put(shipment(5))
        wait_until(lambda: sink.health().delivered == 1)
        tokens: Any = client.hmget(NODE, list(names.TOKENS))
    assert [token for token in tokens if token] == [TOKEN]
    [(_, fields)] = client.xrange(KEY)  # type: ignore[misc]
    assert fields[b"p"] == prove(key_of(TOKEN), b"d" * 10)


def test_the_token_is_announced_again_after_redis_lost_it(
    client: redis.Redis, proving: CollectorSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_sink, "STATUS_SECONDS", 0.05)
    with running(proving) as sink:
        sink.put(shipment(5))
        wait_until(lambda: sink.health().delivered == 1 and client.hget(NODE, names.STATUS))
        client.delete(NODE)
        wait_until(lambda: client.hget(NODE, names.STATUS), "the next status")
        sink.put(shipment(6))
        wait_until(lambda: TOKEN in client.hvals(NODE), "the token")  # type: ignore[operator]


def test_a_token_that_somebody_overwrote_is_announced_again(
    client: redis.Redis, proving: CollectorSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_record, "_TOKEN_SECONDS", 0.05)
    with running(proving) as sink:
        sink.put(shipment(5))
        wait_until(lambda: sink.health().delivered == 1)
        client.hset(NODE, mapping=dict.fromkeys(names.TOKENS, b"of another node"))
        sequence = itertools.count(6)

        def is_back() -> bool:
            sink.put(shipment(next(sequence)))
            return TOKEN in client.hvals(NODE)  # type: ignore[operator]

        wait_until(is_back, "the token")


def test_what_somebody_overwrote_is_written_again(
    client: redis.Redis, redis_server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_sink, "STATUS_SECONDS", 0.05)
    monkeypatch.setattr(node_record, "_FIELDS_SECONDS", 0.1)
    status = {"subjects": [{"instance": "job", "kind": "Job"}]}
    with running(settings(redis_server), lambda: status) as sink:
        sink.put(replace(shipment(0), facts=b"facts of n1"))
        wait_until(lambda: facts_of(client) == b"facts of n1", "the facts")
        subjects = subjects_of(client)
        client.hset(NODE, mapping={names.SUBJECTS: b"[]", names.FACTS: b"others"})
        wait_until(lambda: subjects_of(client) == subjects, "the subjects")
        wait_until(lambda: facts_of(client) == b"facts of n1", "the facts, again")


def test_a_name_that_is_no_text_holds_up_nothing(client: redis.Redis, redis_server: Path) -> None:
    """All names are made printable where they are read; one that was forgotten must not matter."""
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


def test_what_a_node_announces_has_a_proof_beside_it(
    client: redis.Redis, proving: CollectorSettings
) -> None:
    status = {"subjects": [{"instance": "job", "kind": "Job"}]}
    with running(proving, lambda: status) as sink:
        sink.put(shipment(0))
        wait_until(lambda: sink.health().delivered == 1)
        value, proof = subjects_of(client), client.hget(NODE, names.PROOF_OF + names.SUBJECTS)
        assert proof == prove(key_of(TOKEN), field_data(names.SUBJECTS, value))
        wait_until(lambda: client.hexists(NODE, names.STATUS))
        row, proof = client.hmget(NODE, names.STATUS, names.PROOF_OF + names.STATUS)  # type: ignore[misc]
        assert proof == prove(key_of(TOKEN), field_data(names.STATUS, row))
    for field in (names.SUBJECTS, names.STATUS):
        assert client.hget(NODE, names.PROOF_OF + field) is None, "it ends with the collector"
