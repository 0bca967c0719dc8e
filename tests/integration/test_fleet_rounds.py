"""Rounds of the comparison of nodes over a real Redis, with a clock of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reveal_analyzer.fleet import rounds as comparison
from reveal_analyzer.fleet.exchange import Exchange
from reveal_analyzer.fleet.rounds import ComparisonRounds, RoundTiming
from reveal_analyzer.fleet.summary import VERSION, Summary
from reveal_contract import names
from reveal_contract.finding import FindingUpdate
from support.fleet_summaries import GIB, fleet, part, working
from support.redis_streams import Stream

IDLE = {"memory.hugepages.free": 4.0 * GIB}
LOSS = {"network.tcp.retransmit_share": 1e5}  # is compared by node only, not by job
PAIR = replace(part(), count=2)


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
    assert "n3" not in rounds.exchange.summaries.nodes()


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
