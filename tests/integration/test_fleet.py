"""Nodes compared over a real Redis: from their slices to one finding, by one of the analyzers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
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
from reveal_analyzer.fleet.rounds import ComparisonRounds, RoundTiming
from reveal_analyzer.fleet.summary import VERSION, Summary
from reveal_analyzer.node import NodeAnalyzer
from reveal_analyzer.sinks.jsonl import JsonlSink
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.stream.connection import connect
from reveal_analyzer.worker import Worker
from reveal_contract import names, wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingUpdate
from reveal_contract.metric import Lane
from reveal_contract.settings import AnalyzerSettings
from support.fleet_summaries import GIB, facts, fleet, part, working
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
IDLE = {"memory.hugepages.free": 4.0 * GIB}
LOSS = {"network.tcp.retransmit_share": 1e5}  # is compared by node only, not by job
PAIR = replace(part(), count=2)
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
        published = self.exchange.get(NODES)
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


def until(done: Callable[[], bool], *workers: Worker, seconds: float = 10.0) -> float:
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
    summary = site.exchange.get(["n3"])["n3"]
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
    until(lambda: not leader.renew(), seconds=1)
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


class Rounds:
    """A comparison over a real Redis with a clock of its own."""

    def __init__(self, stream: Stream, pace: RoundTiming | None = None) -> None:
        self.exchange = Exchange(stream.client, "default")
        self.now = 1000.0
        self._compared = ComparisonRounds(self.exchange, self.now, pace or RoundTiming(0.0, 0.0))

    def minute(self, nodes: list[Summary], minute: int) -> list[FindingUpdate]:
        """Publish this minute of all nodes and run a round over it."""
        self.exchange.put([replace(node, minute=minute) for node in nodes])
        updates = self._compared.advance(self.now)
        self.now += 60
        return updates

    def minutes(self, nodes: list[Summary], first: int, end: int) -> list[tuple[int, str]]:
        return [
            (minute, news.change)
            for minute in range(first, end)
            for news in self.minute(nodes, minute)
        ]


def without(nodes: list[Summary], name: str) -> list[Summary]:
    return [item for item in nodes if item.node != name]


def test_a_rejoined_node_is_reported_after_two_minutes(stream: Stream) -> None:
    rounds, nodes = Rounds(stream), fleet(9, IDLE)
    assert rounds.minutes(without(nodes, "n3"), 0, 5) == []
    updates = rounds.minutes(nodes, 5, 12)
    assert updates == [(8, "Opened")]  # left alone in 5 and 6, seen in 7 and 8


def test_a_new_fleet_is_compared_immediately(stream: Stream) -> None:
    assert Rounds(stream).minutes(fleet(9, IDLE), 0, 5) == [(1, "Opened")]


def working_fleet(sick: Mapping[str, float], levels: Mapping[str, float]) -> list[Summary]:
    """Nine nodes that train and run a daemon; the third one's jobs and levels differ."""
    uses = {"/train": 2e9, "/kubelet": 0.08e9}
    return [
        working(node.node, {**uses, **sick}, levels) if node.node == "n3"
        else replace(working(node.node, uses), levels=node.levels)
        for node in fleet(9)
    ]  # fmt: skip


@pytest.mark.parametrize("train", [1e9, 0.75e9, 0.6e9, 0.1e9])
def test_a_node_whose_job_a_fault_slows_stays_in_its_group(stream: Stream, train: float) -> None:
    rounds = Rounds(stream)
    assert rounds.minutes(working_fleet({}, {}), 0, 3) == []
    assert rounds.minutes(working_fleet({"/train": train}, LOSS), 3, 40) == [(5, "Opened")]
    assert rounds.minutes(working_fleet({}, {}), 40, 46) == [(42, "Resolved")]


def test_a_new_leader_keeps_the_groups(stream: Stream) -> None:
    sick = working_fleet({"/train": 0.3e9}, LOSS)
    first = Rounds(stream)
    assert first.minutes(working_fleet({}, {}), 0, 3) == []
    assert first.minutes(sick, 3, 8) == [(5, "Opened")]
    first._compared.save()
    assert 0 < stream.client.ttl(names.fleet_key("default", "groups")) <= 86_400
    assert Rounds(stream).minutes(sick, 8, 30) == []


def test_a_pod_that_restarts_ends_no_finding(stream: Stream) -> None:
    rounds = Rounds(stream)

    def minute(number: int, pods: int) -> list[str]:
        nodes = [replace(node, workload=("a x 2",), jobs={"a": PAIR}) for node in fleet(9, LOSS)]
        restarting = replace(PAIR, count=pods)
        nodes[2] = replace(nodes[2], workload=(f"a x {pods}",), jobs={"a": restarting})
        return [news.change for news in rounds.minute(nodes, number)]

    found = [minute(number, pods) for number, pods in enumerate([2, 2, 1, 3, 2, 1, 2, 2, 1, 1, 2])]
    assert found == [[], [], ["Opened"]] + [[]] * 8


def test_a_silent_node_keeps_its_case_until_it_expires(stream: Stream) -> None:
    rounds, nodes = Rounds(stream), fleet(9, IDLE)
    assert rounds.minutes(nodes, 0, 3) == [(1, "Opened")]
    updates = rounds.minutes(without(nodes, "n3"), 3, 30)
    assert [change for _, change in updates] == ["Resolved"]
    assert updates[0][0] > 10
    assert "n3" not in rounds.exchange.nodes()


def test_a_node_with_a_wrong_clock_is_ignored(stream: Stream) -> None:
    rounds, nodes = Rounds(stream), fleet(9, IDLE)
    for minute in range(6):
        late = [replace(item, minute=minute - 30) for item in nodes if item.node == "n3"]
        rounds.exchange.put(late)
        assert rounds.minute(without(nodes, "n3"), minute) == []


def test_unreadable_summaries_affect_only_their_node(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    rounds, nodes = Rounds(stream), fleet(9, IDLE)
    rounds.exchange.put(nodes)
    key = names.fleet_key("default")
    stream.client.hset(key, "bad", bytes([VERSION]) + b"nonsense")
    stream.client.hset(key, "new", bytes([VERSION + 1]) + b"of tomorrow")
    stream.client.hset(key, "other", stream.client.hget(key, "n1") or b"")
    updates = rounds.minutes(nodes, 0, 4)
    assert updates == [(1, "Opened")]
    assert caplog.text.count("summary of bad cannot be used") == 1
    assert "summary of other cannot be used: it is that of n1" in caplog.text
    assert "new" not in caplog.text


def test_many_nodes_are_read_in_portions_before_they_are_compared(stream: Stream) -> None:
    nodes = fleet(150, IDLE)
    rounds = Rounds(stream, RoundTiming(5.0, 0.0))
    updates: list[FindingUpdate] = []
    for minute in range(3):
        rounds.exchange.put([replace(node, minute=minute) for node in nodes])
        steps = [rounds._compared.advance(rounds.now) for _ in range(4)]
        assert [bool(step) for step in steps if step] in ([], [True])
        assert steps[0] == steps[1] == steps[3] == []  # 64, 64, 22: then all are compared
        updates += steps[2]
        rounds.now += 60
    (news,) = updates
    assert news.finding.claim.startswith("Huge pages reserved on 1 of 150 nodes")


def test_many_nodes_are_compared_part_by_part(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices do not wait for the whole comparison; its result is reported at its end."""
    monkeypatch.setattr(comparison, "NODES_PER_STEP", 9)  # one part of nine nodes
    nodes, rounds = fleet(9, IDLE), Rounds(stream, RoundTiming(30.0, 0.0))
    updates: list[list[FindingUpdate]] = []
    for minute in range(2):
        updates.append(rounds.minute(nodes, minute))
        while rounds._compared._parts is not None:
            updates.append(rounds._compared.advance(rounds.now - 59))
    assert len(updates) >= 2 * 3
    assert [bool(item) for item in updates] == [False] * (len(updates) - 1) + [True]
    assert updates[-1][0].finding.claim.startswith("Huge pages reserved on 1 of 9 nodes")


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
    until(lambda: fleet.advance(2.0) == [] and fleet.leads, seconds=2)


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
