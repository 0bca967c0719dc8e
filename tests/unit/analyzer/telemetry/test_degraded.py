"""Degraded collectors, and the telemetry in the profile's status."""

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

from reveal_analyzer.sinks.kube import profile_telemetry as module
from reveal_analyzer.sinks.kube.profile_telemetry import ProfileTelemetry, telemetry
from reveal_analyzer.stream.redis_connection import connect
from reveal_analyzer.telemetry.degraded import Degradation, degradations, summed
from reveal_analyzer.telemetry.snapshot import NodeSnapshot, Snapshot
from reveal_analyzer.telemetry.states import (
    MAX_SILENT,
    StateStore,
    TelemetryState,
    merged,
    state_of,
)
from reveal_contract.kube.errors import UnavailableError
from reveal_contract.names import EARLIER_NODE_KEYS, STATUS, fleet_key, node_key
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


def collector_report(**other: Any) -> bytes:
    return json.dumps({"missing": [], "degraded": [], **other}).encode()


def test_a_refused_source_is_degraded_and_absent_hardware_is_not() -> None:
    (found,) = degradations(
        "n1", collector_report(missing=[NO_GPU, PERF, {**PERF, "source": "perf.tracepoints"}])
    )
    assert found == Degradation(
        "PerfUnavailable", 1,
        "n1: perf.cache: perf_event_open needs CAP_PERFMON while kernel.perf_event_paranoid is 4;"
        " run as root",
    )  # fmt: skip


def test_a_gpu_without_permission_is_degraded() -> None:
    refused = {**NO_GPU, "reason": "this process is not permitted to use the NVIDIA driver"}
    assert [each.reason for each in degradations("n1", collector_report(missing=[refused]))] == [
        "NvmlUnavailable"
    ]


def test_reduced_operation_is_a_single_reason() -> None:
    (found,) = degradations(
        "n1", collector_report(degraded=["over budget: no ethtool", "slow disk"])
    )
    assert (found.reason, found.message) == (
        "CollectorReduced", "n1: over budget: no ethtool; slow disk",
    )  # fmt: skip


def test_a_source_that_hangs_has_a_reason_of_its_own() -> None:
    row = {"source": "nvml", "reason": "has not answered since 12:03:05Z"}
    found = degradations(
        "n1",
        collector_report(
            failing=[row], degraded=["slow disk", "nvml: has not answered since 12:03:05Z"]
        ),
    )
    assert found == [
        Degradation("NvmlUnavailable", 1, "n1: nvml: has not answered since 12:03:05Z"),
        Degradation("CollectorReduced", 1, "n1: slow disk"),
    ]


@given(
    st.binary() | st.recursive(st.text() | st.integers(), st.lists).map(json.dumps).map(str.encode)
)
@examples(100)
def test_any_bytes_are_no_crash(data: bytes) -> None:
    degradations("n1", data)
    degradations("n1", b'{"missing": %s, "degraded": %s, "failing": %s}' % (data, data, data))


@given(st.text(min_size=1))
@examples(100)
def test_any_source_makes_a_reason_that_the_schema_takes(source: str) -> None:
    for each in degradations("n1", collector_report(missing=[{**PERF, "source": source}])):
        assert each.reason[0].isupper() and each.reason.isascii() and each.reason.isalnum()


def test_reasons_are_summed_most_first() -> None:
    a, b = Degradation("A", 1, "n1: a"), Degradation("B", 2, "n2: b")
    assert summed([[a], [b], [a._replace(message="n3: a")], [a]], 5) == [
        Degradation("A", 3, "n1: a"), b,
    ]  # fmt: skip
    assert summed([[a, b]], 1) == [b]


def test_reporting_and_learning_nodes_are_counted() -> None:
    nodes = {
        "here": NodeSnapshot(95, 0),
        "learning": NodeSnapshot(99, 0, learning=True),
        "silent": NodeSnapshot(30, 0),
    }  # fmt: skip
    assert state_of(Snapshot(100, nodes=nodes), ()) == TelemetryState(2, 1, (), ("silent",))
    assert merged([TelemetryState(2, 1), TelemetryState(3, 0)]) == TelemetryState(5, 1)


def test_silent_nodes_are_named_in_the_order_of_their_silence() -> None:
    nodes = {f"n{second:03}": NodeSnapshot(second, 0) for second in range(100)}
    silent = state_of(Snapshot(200, nodes=nodes), ()).silent
    assert silent[:2] == ("n099", "n098")
    assert len(silent) == MAX_SILENT
    others = TelemetryState(silent=("m1", "n099"))
    assert merged([TelemetryState(silent=silent), others]).silent[:3] == ("n099", "m1", "n098")


@pytest.fixture
def client(redis_server: Path) -> Iterator[redis.Redis]:
    with closing(connect(f"unix://{redis_server}")) as found:
        yield found


def snapshot(time_s: float, **other: Any) -> Snapshot:
    given: dict[str, Any] = {
        "connected": True,
        "leads": True,
        "nodes": {"n1": NodeSnapshot(time_s, 0.0, learning=True)},
        **other,
    }
    return Snapshot(time_s, **given)


def test_states_are_summed_and_old_states_removed(client: redis.Redis) -> None:
    first, second = StateStore(client, "p", "one"), StateStore(client, "p", "two")
    first.put(TelemetryState(2, 1, (Degradation("A", 1, "n1: a"),)))
    second.put(TelemetryState(3, 0))
    key = fleet_key("p", "states")
    client.hset(key, "dead", json.dumps([1.0, 9, 9, []]))
    client.hset(key, "strange", b"{")
    assert first.get() == TelemetryState(5, 1, (Degradation("A", 1, "n1: a"),))
    assert set(client.hkeys(key)) == {b"one", b"two"}  # type: ignore[arg-type]
    second.drop()
    assert first.get().reporting == 2
    assert 0 < client.ttl(key) <= 600  # type: ignore[operator]


def test_reports_of_collectors_are_read_from_redis(client: redis.Redis) -> None:
    earlier = EARLIER_NODE_KEYS[STATUS]
    client.hset(node_key("p", "n1"), STATUS, collector_report(missing=[PERF]))
    client.hset(earlier, "n2", collector_report(missing=[PERF]))
    client.hset(earlier, "other", collector_report(missing=[PERF]))
    (found,) = StateStore(client, "p", "one").degraded(["n1", "n2", "n3"])
    assert (found.reason, found.nodes) == ("PerfUnavailable", 2)


def test_the_reports_of_another_profile_are_not_read(client: redis.Redis) -> None:
    client.hset(node_key("p", "n1"), STATUS, collector_report(missing=[PERF]))
    client.hset(node_key("q", "n1"), STATUS, collector_report(degraded=["slow disk"]))
    # left by a collector of an earlier version
    client.hset(EARLIER_NODE_KEYS[STATUS], "n1", collector_report(degraded=["slow disk"]))
    assert [each.reason for each in StateStore(client, "p", "one").degraded(["n1"])] == [
        "PerfUnavailable"
    ]


def test_the_profile_is_written_on_change_no_more_than_twice_a_minute(client: redis.Redis) -> None:
    api, writer = FakeKube(), ProfileTelemetry(client, "p", "one")
    writer.step(api, snapshot(1000))
    assert api.profiles["p"]["status"]["telemetry"] == telemetry(TelemetryState(1, 1))
    for second in range(1001, 1100):
        writer.step(api, snapshot(second))
    assert api.writes == ["apply_profile_status"]
    writer.step(api, snapshot(1100, nodes={}))
    assert api.profiles["p"]["status"]["telemetry"]["nodesReporting"] == 0
    writer.step(api, snapshot(1115))
    assert len(api.writes) == 2  # half a minute has not passed
    writer.step(api, snapshot(1131))
    assert api.profiles["p"]["status"]["telemetry"]["nodesReporting"] == 1


def test_the_names_of_silent_nodes_reach_the_profile(client: redis.Redis) -> None:
    api, writer = FakeKube(), ProfileTelemetry(client, "p", "one")
    nodes = {"n1": NodeSnapshot(1000, 0.0), "n2": NodeSnapshot(900, 0.0)}
    writer.step(api, snapshot(1000, nodes=nodes))
    assert api.profiles["p"]["status"]["telemetry"]["silentNodes"] == ["n2"]
    renamed = {"n1": NodeSnapshot(1031, 0.0), "n3": NodeSnapshot(900, 0.0)}
    writer.step(api, snapshot(1031, nodes=renamed))
    assert api.profiles["p"]["status"]["telemetry"]["silentNodes"] == ["n3"]


def test_an_analyzer_that_does_not_lead_writes_to_redis_only(client: redis.Redis) -> None:
    api, writer = FakeKube(), ProfileTelemetry(client, "p", "one")
    writer.step(api, snapshot(1000, leads=False))
    assert api.calls == []
    assert StateStore(client, "p", "x").get() == TelemetryState(1, 1)
    writer.close()
    assert StateStore(client, "p", "x").get() == TelemetryState()


@pytest.mark.parametrize(
    "row",
    ["[1, Infinity, 0, []]", "[NaN, 1, 0, []]", "[1e999, 1, 0, []]", "[9999999999, 7, 0, []]",
     "[" * 5000, "x", "{}", "[1, 2]", "[1" + "0" * 400 + ", 1, 0, []]"],
)  # fmt: skip
def test_a_state_that_no_analyzer_wrote_counts_nothing_and_is_removed(
    client: redis.Redis, row: str
) -> None:
    """One such row stopped all reports, and none ever left."""
    store = StateStore(client, "p", "one")
    store.put(TelemetryState(3, 1))
    client.hset(fleet_key("p", "states"), "forged", row)
    assert store.get() == TelemetryState(3, 1)
    assert client.hkeys(fleet_key("p", "states")) == [b"one"]


def test_the_last_leader_reports_that_redis_is_unavailable(client: redis.Redis) -> None:
    api, writer = FakeKube(), ProfileTelemetry(client, "p", "one")
    other = ProfileTelemetry(client, "p", "two")
    writer.step(api, snapshot(1000))
    other.step(api, snapshot(1000, leads=False))
    other.step(api, snapshot(1090, connected=False, leads=False))
    assert api.profiles["p"]["status"]["telemetry"]["streamReachable"] is True
    writer.step(api, snapshot(1090, connected=False, leads=False))
    assert api.profiles["p"]["status"]["telemetry"] == telemetry(None)


def test_an_analyzer_that_never_reached_redis_reports_it_after_a_minute(
    client: redis.Redis,
) -> None:
    api, writer = FakeKube(), ProfileTelemetry(client, "p", "one")
    writer.step(api, snapshot(1000, connected=False, leads=False))
    writer.step(api, snapshot(1050, connected=False, leads=False))
    assert api.writes == []
    writer.step(api, snapshot(1061, connected=False, leads=False))
    assert api.profiles["p"]["status"]["telemetry"]["streamReachable"] is False


def test_foreign_changes_are_overwritten(client: redis.Redis) -> None:
    api, writer = FakeKube(), ProfileTelemetry(client, "p", "one")
    writer.step(api, snapshot(1000))
    api.profiles["p"]["status"] = {}
    writer.step(api, snapshot(1000 + module.CHECK_SECONDS))
    assert api.profiles["p"]["status"]["telemetry"] == telemetry(TelemetryState(1, 1))


def test_a_write_that_failed_is_tried_again(client: redis.Redis) -> None:
    api, writer = FakeKube(), ProfileTelemetry(client, "p", "one")
    api.fail = lambda name, about: (
        UnavailableError("503") if name == "apply_profile_status" else None
    )
    with pytest.raises(UnavailableError):
        writer.step(api, snapshot(1000))
    api.fail = lambda name, about: None
    writer.step(api, snapshot(1031))
    assert api.profiles["p"]["status"]["telemetry"] == telemetry(TelemetryState(1, 1))


def test_redis_that_fails_in_between_is_no_crash(client: redis.Redis, redis_server: Path) -> None:
    api = FakeKube()
    writer = ProfileTelemetry(connect(f"unix://{redis_server}.gone"), "p", "one")
    writer.step(api, snapshot(1000))
    writer.close()
    assert api.calls == []
