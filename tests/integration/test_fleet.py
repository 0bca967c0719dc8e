"""Nodes compared over a real Redis: from their slices to one finding, by one of the analyzers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reveal_analyzer import worker
from reveal_analyzer.fleet import rounds as comparison
from reveal_analyzer.fleet.exchange import KEPT_SECONDS, Exchange
from reveal_analyzer.fleet.fleet import Fleet, FleetTiming
from reveal_analyzer.fleet.leader import Leader, LeaseTiming
from reveal_analyzer.fleet.rounds import RoundTiming
from reveal_analyzer.node import NodeAnalyzer
from reveal_analyzer.sinks.jsonl import JsonlSink
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.stream.redis_connection import connect
from reveal_analyzer.worker import Worker
from reveal_contract import names, wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Lane
from reveal_contract.settings import AnalyzerSettings
from support.fleet_summaries import GIB, facts
from support.redis_streams import QUICK, Stream
from support.synthetic_node import FAST, SLOW, Node

HUGE = ChannelTable(
    FAST,
    (
        *SLOW,
        Channel("memory.hugepages.total", "2048kB", lane=Lane.SLOW),
        Channel("memory.hugepages.free", "2048kB", lane=Lane.SLOW),
    ),
)
RESERVED = {
    "memory.hugepages.total{2048kB}": 4.0 * GIB,
    "memory.hugepages.free{2048kB}": 4.0 * GIB,
}
NODES = [f"n{number}" for number in range(1, 10)]
START = 1_700_000_040  # s: a minute begins
SECONDS = 6  # sent of each minute
BRIEF = LeaseTiming(lease=0.6, renewal=0.05)
IMMEDIATE = FleetTiming(step=0.0, lease=BRIEF, rounds=RoundTiming(0.0, 0.0))


class Site:
    """Nine nodes of one class whose slices a worker reads."""

    def __init__(self, stream: Stream, path: Path) -> None:
        self.stream, self.path = stream, path
        self.exchange = Exchange(stream.client, "default")
        self._nodes = {name: Node(HUGE, seed) for seed, name in enumerate(NODES)}
        self._minute = 0
        stream.announce(HUGE)
        for name in NODES:
            stream.client.hset(names.node_key("default", name), names.FACTS, facts(name).to_json())

    def worker(self, owner: str) -> Worker:
        reader = self.stream.reader(owner, timing=QUICK)
        fleet = Fleet(reader.connection.client, "default", owner, IMMEDIATE)

        def analysis(node: str) -> NodeAnalyzer:
            return NodeAnalyzer(node, AnalyzerSettings(), rules=())

        return Worker(reader, analysis, [JsonlSink(self.path)], Metrics(), fleet)

    def minutes(self, count: int, by: Worker, odd: dict[str, float] | None = None) -> None:
        """So many minutes on all nodes, the third one's levels being odd; each is compared."""
        for _ in range(count):
            self._send(odd or {})
            self._minute += 1
            until(lambda: self._published_minutes() == {START // 60 + self._minute - 2}, by)
            for _ in range(2):  # a round over what was published
                by.turn()

    def rows(self) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [row for row in rows if row["scope"] == "CrossNode"]

    def _published_minutes(self) -> set[int]:
        if self._minute == 1:  # the first minute has not ended
            return {START // 60 - 1}
        published = self.exchange.summaries.get(NODES)
        return {published[name].minute if name in published else 0 for name in NODES}

    def _send(self, odd: dict[str, float]) -> None:
        for name, node in self._nodes.items():
            for second in range(SECONDS):
                number = self._minute * 60 + second
                message = replace(
                    node.slice(odd if name == "n3" else None),
                    node=name, sequence=number, start_ns=(START + number) * 10**9,
                )  # fmt: skip
                data = wire.encode(message, wire.gauges(HUGE)[: message.fast.shape[1]])
                self.stream.raw(name, {names.FIELD_NODE: name, names.FIELD_DATA: data})


def until(done: Callable[[], bool], *workers: Worker, seconds: float = 45.0) -> float:
    """Turn the workers until it is done; how long it took."""
    began = time.monotonic()
    while not done():
        assert time.monotonic() - began < seconds
        for each in workers:
            each.turn()
        if not workers:
            time.sleep(0.01)
    return time.monotonic() - began


def leads(*workers: Worker) -> list[bool]:
    return [each._fleet is not None and each._fleet.leads for each in workers]


@pytest.fixture
def site(stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(worker, "_FACTS_SECONDS", 0.0)
    return Site(stream, tmp_path / "findings.jsonl")


def test_huge_pages_on_a_single_node_open_a_finding_until_they_are_freed(site: Site) -> None:
    only = site.worker("only")
    site.minutes(5, only, RESERVED)
    (row,) = site.rows()
    assert row["claim"] == (
        "Huge pages reserved on 1 of 9 nodes: 4 GiB idle on n3, 0 B on the others"
    )
    assert (row["nodeName"], row["state"], row["subsystem"]) == ("n3", "Open", "Memory")
    assert row["hypothesis"]["name"] == "CrossNodeOutlier"
    assert row["peers"] == {"compared": 9, "median": "0", "value": str(4 * GIB)}
    site.minutes(5, only)
    opened, resolved = site.rows()
    assert (resolved["id"], resolved["state"]) == (opened["id"], "Resolved")
    assert resolved["resolvedTime"] > resolved["firstSeenTime"]
    only.close()


def test_equal_nodes_give_no_finding(site: Site) -> None:
    only = site.worker("only")
    site.minutes(5, only)
    assert site.rows() == []
    summary = site.exchange.summaries.get(["n3"])["n3"]
    assert summary.kind.startswith("Xeon, 4 CPUs")
    assert summary.seconds == SECONDS
    assert 0 < site.stream.client.ttl(names.fleet_key("default")) <= KEPT_SECONDS
    only.close()


def test_a_new_leader_continues_the_cases(site: Site) -> None:
    first = site.worker("first")
    site.minutes(4, first, RESERVED)
    assert len(site.rows()) == 1
    heir = site.worker("heir")
    for _ in range(20):
        first.turn()
        heir.turn()
        assert sum(leads(first, heir)) <= 1
    assert leads(first, heir) == [True, False]
    # the first is dead: it turns no more, and gives nothing back
    took = until(lambda: leads(heir) == [True], heir)
    assert took < BRIEF.lease + BRIEF.renewal + 2  # and what it costs to take the nodes over
    until(lambda: set(heir.nodes) == set(NODES), heir)
    site.minutes(2, heir, RESERVED)
    assert len(site.rows()) == 1
    site.minutes(5, heir)
    assert [row["state"] for row in site.rows()] == ["Open", "Resolved"]
    assert leads(first) == [False]
    heir.close()


def test_a_released_lead_is_taken_within_ten_seconds(stream: Stream) -> None:
    assert LeaseTiming().lease + LeaseTiming().renewal <= 10
    first, two = (Leader(stream.client, "default", owner, BRIEF) for owner in ("one", "two"))
    assert first.renew()
    assert not two.renew()
    first.release()
    assert not first.leads
    until(two.renew, seconds=BRIEF.lease / 2)
    assert not first.renew()
    assert two.leads


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_lead_of_a_killed_process_is_taken_within_ten_seconds(stream: Stream) -> None:
    def leader() -> str:
        return (stream.client.get(names.fleet_key("default", "leader")) or b"").decode()

    def analyzer(owner: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "reveal_analyzer", "--redis", stream.url]
        quiet = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen([*command, "--owner", owner], stderr=subprocess.DEVNULL, env=quiet)

    def both_are_there() -> bool:
        return stream.client.zcard(names.analyzers_key("default")) == 2 and leader() != ""

    with analyzer("one") as current, analyzer("two") as two:
        try:
            until(both_are_there, seconds=120)  # a busy machine imports slowly
            first = leader()
            {"one": current, "two": two}[first].kill()
            took = until(lambda: leader() not in ("", first), seconds=15)
        finally:
            current.kill()
            two.kill()
    assert took <= 10


def test_the_lead_of_another_is_neither_renewed_nor_released(stream: Stream) -> None:
    leader = Leader(stream.client, "default", "one", BRIEF)
    assert leader.renew()
    stream.client.set(names.fleet_key("default", "leader"), "two")
    until(lambda: not leader.renew())
    leader.release()
    assert stream.client.get(names.fleet_key("default", "leader")) == b"two"


def test_a_full_redis_elects_no_leader_and_analysis_continues(
    redis_launcher: Callable[..., Any], stack: ExitStack
) -> None:
    client = Stream(f"unix://{redis_launcher().socket}", stack).client
    client.config_set("maxmemory", "1")
    assert not Leader(client, "default", "one", BRIEF).renew()
    fleet = Fleet(client, "default", "one", IMMEDIATE)
    assert fleet.advance(0.0) == []
    fleet.close()


def test_comparison_resumes_after_an_outage(
    redis_launcher: Callable[..., Any], stack: ExitStack
) -> None:
    server = redis_launcher()
    client = connect(f"unix://{server.socket}")
    stack.callback(client.close)
    fleet = Fleet(client, "default", "one", IMMEDIATE)
    assert fleet.advance(0.0) == []
    assert fleet.leads
    server.stop()
    assert fleet.advance(1.0) == []
    fleet.close()
    server.start()
    until(lambda: fleet.advance(2.0) == [] and fleet.leads)


def test_a_failed_comparison_loses_no_slices(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fleet = Fleet(stream.client, "default", "one", IMMEDIATE)
    monkeypatch.setattr(comparison, "parts", lambda summaries: (1 / 0 for _ in range(3)))
    assert fleet.advance(100.0) == []
    assert "nodes could not be compared" in caplog.text
    assert not fleet.due(159.0)
    assert fleet.due(160.0)
    monkeypatch.undo()
    assert fleet.advance(160.0) == []
    assert fleet.leads
