"""What a worker learned survives it: killed, closed, handed over, with a state that is refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from reveal_analyzer import worker as worker_module
from reveal_analyzer.state import store as store_module
from reveal_analyzer.stream.leases import rank
from reveal_analyzer.stream.reader import StreamReader
from reveal_contract import names
from reveal_contract.finding import FindingChange
from support.redis_server import RedisLauncher
from support.redis_streams import Stream, message, nodes_of_same_shard
from support.stub_analyses import OPENING, Analyzer, NodeStub


@pytest.fixture(autouse=True)
def _saved_with_the_first_slices(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The first save is due at once; the next one a minute later, so not in a test."""
    monkeypatch.setattr(worker_module, "first_save_s", lambda node, now: now)
    yield


def send(stream: Stream, first: int, end: int, node: str = "n") -> None:
    stream.send(*(message(node, sequence) for sequence in range(first, end)))


def states_key(node: str = "n") -> str:
    return names.node_states_key("default", names.shard(node))


def test_after_a_crash_only_the_slices_after_the_saved_state_are_replayed(stream: Stream) -> None:
    dead = Analyzer(stream, "dead")
    send(stream, 0, 5)
    dead.until_slice(4)
    send(stream, 5, 7)
    dead.until_slice(6)
    assert dead.updates.rows == [(FindingChange.OPENED, "n")]
    assert dead.states("saved") == 1
    dead.expire()
    heir = Analyzer(stream, "heir")
    send(stream, 7, 8)
    stub = heir.until_slice(7)
    assert stub.restored == 4
    assert stub.analyzed == [(5, True), (6, True), (7, False)]
    assert heir.updates.rows == [(FindingChange.CHANGED, "n")], "it is not opened again"
    assert heir.states("restored") == 1


def test_a_finding_that_opens_is_saved_with_its_slice(stream: Stream) -> None:
    dead = Analyzer(stream, "dead")
    send(stream, 0, 1)
    dead.until_slice(0)
    assert dead.states("saved") == 1
    send(stream, 1, OPENING)
    dead.until_slice(OPENING - 1)
    assert dead.states("saved") == 1, "the next save is due in a minute"
    send(stream, OPENING, OPENING + 1)
    dead.until_slice(OPENING)
    assert dead.states("saved") == 2
    send(stream, OPENING + 1, OPENING + 3)
    dead.until_slice(OPENING + 2)
    dead.expire()
    heir = Analyzer(stream, "heir")
    send(stream, OPENING + 3, OPENING + 4)
    assert heir.until_slice(OPENING + 3).restored == OPENING
    assert heir.updates.rows == [(FindingChange.CHANGED, "n")], "it is not opened again"


def test_a_node_whose_lease_lapsed_when_a_save_was_due_is_saved_with_its_next_slice(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyzer = Analyzer(stream, "one")
    send(stream, 0, 5)
    with monkeypatch.context() as patch:
        patch.setattr(StreamReader, "shards", property(lambda reader: []))
        analyzer.until_slice(4)
    assert analyzer.states("saved") == 0
    send(stream, 5, 6)
    analyzer.until_slice(5)
    assert analyzer.states("saved") == 1


def test_after_an_orderly_end_nothing_is_replayed(stream: Stream) -> None:
    first = Analyzer(stream, "first")
    send(stream, 0, 7)
    first.until_slice(6)
    send(stream, 7, 9)
    first.until_slice(8)
    first.worker.close()
    heir = Analyzer(stream, "heir")
    send(stream, 9, 10)
    stub = heir.until_slice(9)
    assert (stub.restored, stub.analyzed) == (8, [(9, False)])
    assert heir.updates.rows == [(FindingChange.CHANGED, "n")]
    assert heir.reader.counts.missing == heir.reader.counts.restarts == 0


def test_a_slice_that_is_saved_but_not_acknowledged_is_not_analyzed_twice(stream: Stream) -> None:
    dead = Analyzer(stream, "dead", ack_seconds=1e9)
    send(stream, 0, 5)
    dead.until_slice(4)
    assert dead.states("saved") == 1
    assert stream.pending("n") == 5
    dead.expire()
    heir = Analyzer(stream, "heir")
    send(stream, 5, 6)
    stub = heir.until_slice(5)
    assert (stub.restored, stub.analyzed) == (4, [(5, False)])
    assert heir.reader.counts.repeated == 5
    assert stream.pending("n") == 0


def test_a_node_without_a_state_is_learned_from_the_stream_beside_a_restored_node(
    stream: Stream,
) -> None:
    saved, new = nodes_of_same_shard()
    dead = Analyzer(stream, "dead")
    send(stream, 0, 3, new)
    send(stream, 0, 5, saved)
    dead.turn_until(lambda: sum(len(stub.analyzed) for stub in dead.stubs) == 8)
    stream.client.hdel(states_key(new), new)
    send(stream, 3, 4, new)
    send(stream, 5, 6, saved)
    dead.expire()
    heir = Analyzer(stream, "heir")
    heir.turn_until(lambda: {stub.last for stub in heir.stubs} == {3, 5})
    analyzed = {stub.node: (stub.restored, stub.analyzed) for stub in heir.stubs}
    assert analyzed == {
        saved: (4, [(5, False)]),
        new: (None, [(0, True), (1, True), (2, True), (3, False)]),
    }


def moving_node() -> str:
    """A node whose shard goes to "two" when "one" and "two" share the shards."""
    return next(
        node
        for node in (f"node-{number}" for number in range(100))
        if rank(names.shard(node), "two", ["one"]) == 0
    )


def test_a_shard_that_moves_takes_its_state_along_and_back(stream: Stream) -> None:
    node = moving_node()
    first = Analyzer(stream, "one")
    send(stream, 0, 7, node)
    first.until_slice(6)
    send(stream, 7, 9, node)
    first.until_slice(8)
    two = Analyzer(stream, "two")
    two.turn_until(lambda: names.shard(node) in two.reader.shards, [first])
    send(stream, 9, 10, node)
    stub = two.until_slice(9, [first])
    assert (stub.restored, stub.analyzed) == (8, [(9, False)]), "it was saved at the hand-over"
    assert first.worker.nodes == []
    two.worker.close()
    first.turn_until(lambda: names.shard(node) in first.reader.shards)
    send(stream, 10, 11, node)
    stub = first.until_slice(10)
    assert (stub.restored, stub.analyzed) == (9, [(10, False)])
    changes = [*first.updates.rows, *two.updates.rows]
    assert [change for change, _ in changes].count(FindingChange.OPENED) == 1
    assert FindingChange.RESOLVED not in [change for change, _ in changes]


@pytest.mark.parametrize(
    "data",
    [b"", b"garbage", b"RVS\x63" + bytes(40), None],
    ids=["empty", "garbage", "other version", "old"],
)
def test_a_state_that_cannot_be_used_is_reported_and_the_node_learned_again(
    stream: Stream,
    data: bytes | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    dead = Analyzer(stream, "dead")
    send(stream, 0, 5)
    dead.until_slice(4)
    if data is None:
        monkeypatch.setattr(store_module, "MAX_AGE_S", -1)
    else:
        stream.client.hset(states_key(), "n", data)
    dead.expire()
    heir = Analyzer(stream, "heir")
    send(stream, 5, 6)
    stub = heir.until_slice(5)
    assert stub.restored is None
    assert heir.states("old" if data is None else "unreadable") == 1
    assert heir.states("restored") == 0
    assert "node n is learned again" in caplog.text
    if data is not None:  # nothing is known of the slices before
        assert stub.analyzed == [*((sequence, True) for sequence in range(5)), (5, False)]


def test_a_state_that_fails_in_its_part_is_replaced_by_a_new_analysis(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = Analyzer(stream, "dead")
    send(stream, 0, 5)
    dead.until_slice(4)
    monkeypatch.setattr(NodeStub, "restore", lambda self, tree: 1 / 0)
    dead.expire()
    heir = Analyzer(stream, "heir")
    send(stream, 5, 6)
    stub = heir.until_slice(5)
    assert stub.restored is None
    assert len(heir.stubs) == 2, "the one that was restored halfway is not used"
    assert heir.states("unreadable") == 1


def test_a_node_that_is_silent_during_a_takeover_keeps_its_open_findings(stream: Stream) -> None:
    first = Analyzer(stream, "first")
    send(stream, 0, 5)
    first.until_slice(4)
    first.worker.close()
    heir = Analyzer(stream, "heir")
    heir.turn_until(lambda: heir.worker.nodes == ["n"])
    assert heir.updates.rows == [(FindingChange.CHANGED, "n")]
    assert heir.stubs[-1].analyzed == []
    send(stream, 5, 6)
    assert heir.until_slice(5).analyzed == [(5, False)]
    assert heir.updates.rows == [(FindingChange.CHANGED, "n")], "it is reported once"


def test_a_node_that_left_leaves_nothing_in_redis(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "_SILENT_SECONDS", 0.0)
    analyzer = Analyzer(stream, "one")
    send(stream, 0, 5)
    analyzer.until_slice(4)
    assert stream.client.hkeys(states_key()) == [b"n"]
    assert 0 < stream.client.ttl(states_key()) <= store_module.EXPIRY_S
    monkeypatch.setattr(worker_module, "FORGET_SECONDS", 0.0)
    analyzer.turn_until(lambda: analyzer.worker.nodes == [])
    analyzer.turn_until(lambda: not stream.client.exists(states_key()))


def test_a_node_that_falls_silent_while_it_is_learned_is_forgotten_soon(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write to Redis can send slices in any name; each takes megabytes."""
    monkeypatch.setattr(worker_module, "_SILENT_SECONDS", 0.0)
    monkeypatch.setattr(worker_module, "FORGET_YOUNG_SECONDS", 0.0)
    analyzer = Analyzer(stream, "one")
    send(stream, 0, 5)
    stub = analyzer.until_slice(4)
    analyzer.turn_until(lambda: analyzer.worker.nodes == ["n"])
    stub.learning = True
    analyzer.turn_until(lambda: analyzer.worker.nodes == [])


def test_a_state_that_cannot_be_used_of_a_node_that_left_is_deleted(stream: Stream) -> None:
    stream.client.hset(states_key(), "n", b"garbage")
    analyzer = Analyzer(stream, "one")
    analyzer.turn_until(lambda: not stream.client.exists(states_key()))
    assert analyzer.worker.nodes == []


def test_a_failed_analysis_continues_from_its_saved_state_but_not_twice(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    analyzer = Analyzer(stream, "one", failing=6)
    send(stream, 0, 5)
    analyzer.until_slice(4)
    send(stream, 5, 8)
    assert analyzer.until_slice(7).restored == 4
    for stub in analyzer.stubs:
        stub.failing = 8
    send(stream, 8, 10)
    assert analyzer.until_slice(9).restored is None, "the state may be the reason"
    assert "failed at slice 6" in caplog.text
    assert FindingChange.RESOLVED not in [change for change, _ in analyzer.updates.rows]


def test_a_full_redis_costs_the_states_and_nothing_else(
    redis_launcher: RedisLauncher, stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    analyzer = Analyzer(stream, "one")
    send(stream, 0, 1)
    analyzer.until_slice(0)
    limit = int(stream.client.info("memory")["used_memory"])
    send(stream, 1, 3)
    stream.client.config_set("maxmemory-policy", "noeviction")
    stream.client.config_set("maxmemory", limit // 2)
    for node in analyzer.worker._nodes.values():
        node.save_due_s = 0.0
    analyzer.until_slice(2)
    analyzer.turn_until(lambda: analyzer.states("failed") == 1)
    assert "states of 1 nodes are not saved" in caplog.text
    assert analyzer.reader.connected
    stream.client.config_set("maxmemory", 0)


def test_saves_are_spread_over_a_minute() -> None:
    from reveal_analyzer.state.checkpoints import INTERVAL_S, first_save_s

    due = sorted(first_save_s(f"node-{number}", 100.0) for number in range(4000))
    assert due[0] > 100.0
    assert due[-1] <= 100.0 + INTERVAL_S
    a_second = max(sum(low <= each < low + 1 for each in due) for low in range(100, 161))
    assert a_second < 4000 / INTERVAL_S * 1.5
    assert len({round(b - a) for a, b in pairwise(due)}) <= 2
