"""Ranks of a job on nodes of several analyzers, through a real Redis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reveal_analyzer.fleet.fleet import Fleet, FleetTiming
from reveal_analyzer.fleet.leader import LeaseTiming
from reveal_analyzer.gangs import comparison
from reveal_analyzer.gangs.exchange import RankExchange
from reveal_contract import names
from reveal_contract.finding import FindingChange, FindingUpdate
from support.ranks import rank, slow, waiting
from support.redis_streams import Stream

START = 170_000_000


@pytest.fixture
def fleets(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Fleet]]:
    """Two analyzers; the first one leads."""
    monkeypatch.setattr(comparison, "_READ_S", 0.0)
    timing = FleetTiming(step=0.0, lease=LeaseTiming(lease=30.0, renewal=0.0))
    found = [Fleet(stream.client, "default", owner, timing) for owner in ("one", "two")]
    for fleet in found:
        fleet.advance(0.0)
    yield found
    for fleet in found:
        fleet.close()


def advance(fleets: list[Fleet], number: int, *, straggler: bool = True) -> list[FindingUpdate]:
    """Let each analyzer submit its nodes' window, and return what they report."""
    window = START + number
    first = slow(0) if straggler else rank(0, desired=0.6)
    ranks = [replace(each, window=window) for each in (first, *waiting(3))]
    for index, each in enumerate(ranks):
        fleets[index % len(fleets)].submit_ranks(each.node, [each])
    steps = [number + step / 10 for step in range(6)]
    return [update for step in steps for fleet in fleets for update in fleet.advance(step)]


def test_the_rank_that_delays_its_job_is_reported_once(fleets: list[Fleet]) -> None:
    assert advance(fleets, 0) == []
    [opened] = advance(fleets, 1)
    assert opened.change is FindingChange.OPENED
    assert opened.finding.node_name == "n0"
    assert fleets[0].open == {opened.finding.id}
    assert advance(fleets, 2) == []
    assert [advance(fleets, number, straggler=False) for number in (3, 4)] == [[], []]
    [resolved] = advance(fleets, 5, straggler=False)
    assert (resolved.change, resolved.finding.id) == (FindingChange.RESOLVED, opened.finding.id)
    assert fleets[0].open == frozenset()


def test_the_next_leader_continues(fleets: list[Fleet]) -> None:
    advance(fleets, 0)
    [opened] = advance(fleets, 1)
    fleets.pop(0).close()
    assert advance(fleets, 2) == []
    assert fleets[0].open == {opened.finding.id}


def test_nodes_that_left_are_forgotten(stream: Stream, fleets: list[Fleet]) -> None:
    advance(fleets, 0)
    others = [replace(each, window=START + 10) for each in waiting(2)]
    for each in others:
        fleets[0].submit_ranks(each.node, [each])
    fleets[0].advance(20.0)
    kept = stream.client.hkeys(names.fleet_key("default", "ranks"))
    assert sorted(kept) == [b"n1", b"n2"]


def test_many_nodes_are_read_in_steps(fleets: list[Fleet], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "NODES_PER_STEP", 3)
    found = [update for number in range(2) for update in advance(fleets, number)]
    assert [update.change for update in found] == [FindingChange.OPENED]


def test_rows_of_others_stop_nothing(
    stream: Stream, fleets: list[Fleet], caplog: pytest.LogCaptureFixture
) -> None:
    key = names.fleet_key("default", "ranks")
    stream.client.hset(key, mapping={"bad": b"[1]", b"\xff": b"\xff"})
    RankExchange(stream.client, "default").put({"forged": [slow(0, window=START)]})
    advance(fleets, 0)
    [opened] = advance(fleets, 1)
    assert opened.finding.delayed_job is not None
    assert opened.finding.delayed_job.ranks == 4
    assert caplog.text.count("the ranks of bad cannot be used") == 1
    stream.client.set(names.fleet_key("default", "rank-cases"), "damaged")
    assert RankExchange(stream.client, "default").cases.load() == []


def test_a_job_that_ended_is_resolved_while_no_node_has_ranks(
    stream: Stream, fleets: list[Fleet]
) -> None:
    """Nodes that are idle write nothing: time goes on without them."""
    advance(fleets, 0)
    [opened] = advance(fleets, 1)
    leader = fleets[0]
    assert not any(leader.advance(float(second)) for second in range(2, 60))
    [resolved] = [u for second in range(60, 130) for u in leader.advance(float(second))]
    assert (resolved.change, resolved.finding.id) == (FindingChange.RESOLVED, opened.finding.id)
    assert leader.open == frozenset()


def test_the_next_leader_resolves_a_job_that_it_never_saw(
    stream: Stream, fleets: list[Fleet]
) -> None:
    advance(fleets, 0)
    [opened] = advance(fleets, 1)
    fleets.pop(0).close()
    stream.client.delete(names.fleet_key("default", "ranks"))
    found = [u for second in range(2, 130) for u in fleets[0].advance(float(second))]
    assert [(each.change, each.finding.id) for each in found] == [
        (FindingChange.RESOLVED, opened.finding.id)
    ]
