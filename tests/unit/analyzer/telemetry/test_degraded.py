"""What collectors go without, and what the profile says of the watching."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.sinks.kube import status as module
from reveal_analyzer.sinks.kube.status import ProfileStatus, telemetry
from reveal_analyzer.stream.connection import connect
from reveal_analyzer.telemetry.degraded import Lack, lacks, summed
from reveal_analyzer.telemetry.snapshot import Situation, Watched
from reveal_analyzer.telemetry.states import State, States, merged, state_of
from reveal_contract.kube.errors import UnavailableError
from reveal_contract.names import NODES_KEY, fleet_key
from support.fake_kube import FakeKube
from support.property_tests import examples

PERF = {
    "source": "perf.cache",
    "reason": "perf_event_open needs CAP_PERFMON while kernel.perf_event_paranoid is 4",
    "remedy": "run as root",
}
NO_GPU = {
    "source": "nvml",
    "reason": "no NVIDIA driver is installed (libnvidia-ml.so.1)",
    "remedy": "install the driver",
}


def said(**other: Any) -> bytes:
    return json.dumps({"missing": [], "degraded": [], **other}).encode()


def test_what_was_refused_is_lacking_and_what_is_not_there_is_not() -> None:
    (lack,) = lacks("n1", said(missing=[NO_GPU, PERF, {**PERF, "source": "perf.tracepoints"}]))
    assert lack == Lack(
        "PerfUnavailable", 1,
        "n1: perf.cache: perf_event_open needs CAP_PERFMON while kernel.perf_event_paranoid is 4;"
        " run as root",
    )  # fmt: skip


def test_a_gpu_that_may_not_be_asked_is_lacking() -> None:
    refused = {**NO_GPU, "reason": "this process is not permitted to use the NVIDIA driver"}
    assert [one.reason for one in lacks("n1", said(missing=[refused]))] == ["NvmlUnavailable"]


def test_lesser_ways_are_one_reason() -> None:
    (lack,) = lacks("n1", said(degraded=["over budget: no ethtool", "slow disk"]))
    assert (lack.reason, lack.message) == (
        "CollectorReduced", "n1: over budget: no ethtool; slow disk",
    )  # fmt: skip


@given(
    st.binary() | st.recursive(st.text() | st.integers(), st.lists).map(json.dumps).map(str.encode)
)
@examples(100)
def test_any_bytes_are_no_crash(data: bytes) -> None:
    lacks("n1", data)
    lacks("n1", b'{"missing": %s, "degraded": %s}' % (data, data))


@given(st.text(min_size=1))
@examples(100)
def test_any_source_makes_a_reason_that_the_schema_takes(source: str) -> None:
    for lack in lacks("n1", said(missing=[{**PERF, "source": source}])):
        assert lack.reason[0].isupper() and lack.reason.isascii() and lack.reason.isalnum()


def test_reasons_are_summed_most_first() -> None:
    a, b = Lack("A", 1, "n1: a"), Lack("B", 2, "n2: b")
    assert summed([[a], [b], [a._replace(message="n3: a")], [a]], 5) == [
        Lack("A", 3, "n1: a"), b,
    ]  # fmt: skip
    assert summed([[a, b]], 1) == [b]


def test_nodes_that_are_heard_and_those_that_are_learned() -> None:
    nodes = {
        "here": Watched(95, 0), "learned": Watched(99, 0, learning=True), "silent": Watched(30, 0),
    }  # fmt: skip
    assert state_of(Situation(100, nodes=nodes), ()) == State(2, 1)
    assert merged([State(2, 1), State(3, 0)]) == State(5, 1)


@pytest.fixture
def client(redis_server: Path) -> Iterator[redis.Redis]:
    with closing(connect(f"unix://{redis_server}")) as made:
        yield made


def situation(at: float, **other: Any) -> Situation:
    given: dict[str, Any] = {
        "connected": True, "leads": True, "nodes": {"n1": Watched(at, 0.0, learning=True)}, **other,
    }  # fmt: skip
    return Situation(at, **given)


def test_one_tells_of_all_and_old_states_are_left_out(client: redis.Redis) -> None:
    one, two = States(client, "p", "one"), States(client, "p", "two")
    one.put(State(2, 1, (Lack("A", 1, "n1: a"),)))
    two.put(State(3, 0))
    key = fleet_key("p", "states")
    client.hset(key, "dead", json.dumps([1.0, 9, 9, []]))
    client.hset(key, "strange", b"{")
    assert one.get() == State(5, 1, (Lack("A", 1, "n1: a"),))
    assert set(client.hkeys(key)) == {b"one", b"two"}  # type: ignore[arg-type]
    two.drop()
    assert one.get().reporting == 2
    assert 0 < client.ttl(key) <= 600  # type: ignore[operator]


def test_what_collectors_say_is_read_from_redis(client: redis.Redis) -> None:
    client.hset(NODES_KEY, "n1", said(missing=[PERF]))
    client.hset(NODES_KEY, "n2", said(missing=[PERF]))
    client.hset(NODES_KEY, "other", said(missing=[PERF]))
    (lack,) = States(client, "p", "one").degraded(["n1", "n2", "n3"])
    assert (lack.reason, lack.nodes) == ("PerfUnavailable", 2)


def test_the_profile_is_written_on_change_each_half_minute_at_most(client: redis.Redis) -> None:
    api, told = FakeKube(), ProfileStatus(client, "p", "one")
    told.step(api, situation(1000))
    assert api.profiles["p"]["status"]["telemetry"] == telemetry(State(1, 1))
    for at in range(1001, 1100):
        told.step(api, situation(at))
    assert api.writes == ["apply_profile_status"]
    told.step(api, situation(1100, nodes={}))
    assert api.profiles["p"]["status"]["telemetry"]["nodesReporting"] == 0
    told.step(api, situation(1115))
    assert len(api.writes) == 2  # half a minute has not passed
    told.step(api, situation(1131))
    assert api.profiles["p"]["status"]["telemetry"]["nodesReporting"] == 1


def test_who_does_not_lead_tells_redis_and_writes_nothing(client: redis.Redis) -> None:
    api, told = FakeKube(), ProfileStatus(client, "p", "one")
    told.step(api, situation(1000, leads=False))
    assert api.calls == []
    assert States(client, "p", "x").get() == State(1, 1)
    told.close()
    assert States(client, "p", "x").get() == State()


def test_who_led_last_says_that_redis_is_away(client: redis.Redis) -> None:
    api, told = FakeKube(), ProfileStatus(client, "p", "one")
    other = ProfileStatus(client, "p", "two")
    told.step(api, situation(1000))
    other.step(api, situation(1000, leads=False))
    other.step(api, situation(1090, connected=False, leads=False))
    assert api.profiles["p"]["status"]["telemetry"]["streamReachable"] is True
    told.step(api, situation(1090, connected=False, leads=False))
    assert api.profiles["p"]["status"]["telemetry"] == telemetry(None)


def test_one_that_never_reached_redis_says_so_after_a_minute(client: redis.Redis) -> None:
    api, told = FakeKube(), ProfileStatus(client, "p", "one")
    told.step(api, situation(1000, connected=False, leads=False))
    told.step(api, situation(1050, connected=False, leads=False))
    assert api.writes == []
    told.step(api, situation(1061, connected=False, leads=False))
    assert api.profiles["p"]["status"]["telemetry"]["streamReachable"] is False


def test_what_others_wrote_meanwhile_is_mended(client: redis.Redis) -> None:
    api, told = FakeKube(), ProfileStatus(client, "p", "one")
    told.step(api, situation(1000))
    api.profiles["p"]["status"] = {}
    told.step(api, situation(1000 + module.CHECK_SECONDS))
    assert api.profiles["p"]["status"]["telemetry"] == telemetry(State(1, 1))


def test_a_write_that_failed_is_tried_again(client: redis.Redis) -> None:
    api, told = FakeKube(), ProfileStatus(client, "p", "one")
    api.fail = lambda name, about: (
        UnavailableError("503") if name == "apply_profile_status" else None
    )
    with pytest.raises(UnavailableError):
        told.step(api, situation(1000))
    api.fail = lambda name, about: None
    told.step(api, situation(1031))
    assert api.profiles["p"]["status"]["telemetry"] == telemetry(State(1, 1))


def test_redis_that_fails_in_between_is_no_crash(client: redis.Redis, redis_server: Path) -> None:
    api = FakeKube()
    told = ProfileStatus(connect(f"unix://{redis_server}.gone"), "p", "one")
    told.step(api, situation(1000))
    told.close()
    assert api.calls == []
