"""Slices that prove their origin, and those that do not, at a real Redis."""

from __future__ import annotations

import time

import pytest

from reveal_analyzer.configuration.feed import FactsFeed
from reveal_analyzer.fleet.exchange import Exchange
from reveal_analyzer.stream import origin
from reveal_analyzer.stream.origin import OriginCheck, TokenOwner
from reveal_analyzer.stream.slice_admission import SliceAdmission
from reveal_contract import names
from reveal_contract.facts import Facts
from reveal_contract.names import node_key
from support.proven_streams import (
    NODE,
    SUBJECTS_ROW,
    TOKEN,
    Owners,
    announce,
    proven_reader,
    reader_of,
    send,
    set_field,
    set_subjects,
)
from support.redis_streams import Stream, beats, count, node_sequences, read

pytestmark = pytest.mark.usefixtures("soon_asked")


class LaterClock:
    """The clock of the check, which a test moves on."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.passed_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LaterClock:
    clock = LaterClock()
    monkeypatch.setattr(origin, "time", clock)
    return clock


@pytest.mark.parametrize("required", [False, True])
def test_proven_slices_are_taken_in_order_and_their_token_is_reviewed_once(
    stream: Stream, owners: Owners, required: bool
) -> None:
    announce(stream, TOKEN)
    for sequence in range(5):
        send(stream, sequence)
    reader = reader_of(stream, owners, required=required)
    got = read(reader, count(5))
    assert node_sequences(got) == [(NODE, sequence) for sequence in range(5)]
    assert owners.asked == [(NODE, TOKEN)]
    assert stream.pending(NODE) == 0


@pytest.mark.parametrize("required", [False, True])
def test_beside_proven_slices_no_others_are_taken(
    stream: Stream, owners: Owners, required: bool
) -> None:
    announce(stream, b"of another node", 1)
    owners.known[b"of another node"] = TokenOwner.FOREIGN
    reader = proven_reader(stream, owners, required=required)
    send(stream, 1, None)
    send(stream, 2, b"of another node")
    send(stream, 3, b"never announced")
    send(stream, 4, proven=0)
    send(stream, 5)
    assert node_sequences(read(reader, count(1))) == [(NODE, 5)]
    read(reader, lambda _: reader.counts.refused == 4)
    assert stream.pending(NODE) == 0, "all are acknowledged"


def test_a_forged_slice_holds_back_none(stream: Stream, owners: Owners) -> None:
    """Its token is of the attacker's own node, and the API server is asked about it."""
    announce(stream, TOKEN)
    announce(stream, b"pending", 1)
    reader = reader_of(stream, owners, required=True)
    send(stream, 0, b"pending")
    for sequence in range(1, 4):
        send(stream, sequence)
    assert node_sequences(read(reader, count(3))) == [(NODE, each) for each in range(1, 4)]


def test_a_node_without_proofs_is_taken_unless_they_are_required(
    stream: Stream, owners: Owners
) -> None:
    """Its collector is of an earlier version."""
    for sequence in range(3):
        send(stream, sequence, None)
    reader = reader_of(stream, owners, required=False)
    assert len(read(reader, count(3))) == 3
    reader.close()
    strict = reader_of(stream, owners, required=True)
    send(stream, 3, None)
    read(strict, lambda _: strict.counts.refused == 1)


def test_after_a_rollback_slices_without_proof_are_taken_again(
    stream: Stream, owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origin, "PROVEN_SECONDS", 0)
    reader = proven_reader(stream, owners, required=False)
    send(stream, 1, None)
    assert node_sequences(read(reader, count(1))) == [(NODE, 1)]


def test_whoever_trims_the_slices_of_a_node_cannot_send_others_in_its_name(
    stream: Stream, owners: Owners, clock: LaterClock
) -> None:
    """The login of collectors can do both."""
    reader = proven_reader(stream, owners, required=False)
    stream.client.xtrim(names.samples_key("default", names.shard(NODE)), maxlen=0)
    clock.passed_s = origin.PROVEN_SECONDS - 60
    send(stream, 1, None)
    read(reader, lambda _: reader.counts.refused == 1)
    reader.forget_nodes([NODE])  # it was silent for long
    send(stream, 2, None)
    read(reader, lambda _: reader.counts.refused == 2)
    set_subjects(stream, SUBJECTS_ROW, None)
    assert reader.subjects(NODE) == ()
    clock.passed_s = origin.PROVEN_SECONDS + 1
    send(stream, 3, None)
    assert node_sequences(read(reader, count(1))) == [(NODE, 3)]


def test_the_id_of_a_slice_does_not_make_it_late(stream: Stream, owners: Owners) -> None:
    """Whoever adds a slice chooses its id."""
    reader = proven_reader(stream, owners, required=False)
    later_ms = int((time.time() + 2 * origin.PROVEN_SECONDS) * 1000)
    send(stream, 1, None, entry_id=f"{later_ms}-0")
    read(reader, lambda _: reader.counts.refused == 1)


def test_a_node_that_proved_its_origin_waits_longer_for_the_api_server(
    stream: Stream, owners: Owners, clock: LaterClock
) -> None:
    """Its renewed token would be refused otherwise."""
    reader = proven_reader(stream, owners, required=False)
    announce(stream, b"renewed", 1)
    send(stream, 1, b"renewed")
    beats(reader)
    clock.passed_s = 2 * origin.WAIT_SECONDS
    assert beats(reader) == []
    owners.known[b"renewed"] = TokenOwner.NODE
    assert node_sequences(read(reader, count(1))) == [(NODE, 1)]
    assert reader.counts.refused == 0


def test_a_renewed_token_is_taken_over_without_a_gap(stream: Stream, owners: Owners) -> None:
    reader = proven_reader(stream, owners, required=True)
    announce(stream, b"renewed", 1)
    send(stream, 1, b"renewed")
    send(stream, 2, b"renewed")
    assert beats(reader) == [], "its review is not there yet"
    owners.known[b"renewed"] = TokenOwner.NODE
    assert node_sequences(read(reader, count(2))) == [(NODE, 1), (NODE, 2)]
    assert reader.counts.refused == 0


@pytest.mark.parametrize(("required", "refused"), [(False, 0), (True, 2)])
def test_an_api_server_that_does_not_answer_decides_by_the_setting(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, required: bool, refused: int
) -> None:
    monkeypatch.setattr(origin, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(origin, "_LAST_SECONDS", 0.1)
    announce(stream, TOKEN)
    reader = reader_of(stream, Owners(), required=required)
    send(stream, 0)
    send(stream, 1)
    got = read(reader, lambda got: len(got) + reader.counts.refused == 2)
    assert len(got) == 2 - refused
    assert stream.pending(NODE) == 0


def test_the_right_to_review_that_comes_later_is_used(
    stream: Stream, owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origin, "_ASK_AGAIN_SECONDS", 0.02)
    owners.known[TOKEN] = TokenOwner.UNKNOWN
    announce(stream, TOKEN)
    reader = reader_of(stream, owners, required=True)
    send(stream, 0)
    read(reader, lambda _: reader.counts.refused == 1)
    owners.known[TOKEN] = TokenOwner.NODE
    beats(reader)
    send(stream, 1)
    assert node_sequences(read(reader, count(1))) == [(NODE, 1)]


def test_keys_without_end_leave_room_for_those_of_the_node(stream: Stream, owners: Owners) -> None:
    announce(stream, TOKEN)
    reader = reader_of(stream, owners, required=True)
    for sequence in range(100):
        send(stream, sequence, b"made up %d" % sequence)
    send(stream, 100)
    got = read(reader, lambda got: len(got) + reader.counts.refused == 101)
    assert node_sequences(got) == [(NODE, 100)]


def test_what_is_refused_is_a_degradation(stream: Stream, owners: Owners) -> None:
    check = OriginCheck("default", owners.review, required=False)
    reader = stream.reader(admission=SliceAdmission(origin=check))
    announce(stream, TOKEN)
    send(stream, 0)
    read(reader, count(1))
    assert check.degradations() == []
    send(stream, 1, None)
    read(reader, lambda _: reader.counts.refused == 1)
    (found,) = check.degradations()
    assert found.reason == origin.UNPROVEN_SLICES
    assert "'n'" in found.message


def test_waiting_slices_go_to_the_analyzer_that_takes_the_shard(
    stream: Stream, owners: Owners
) -> None:
    announce(stream, b"pending")
    first = reader_of(stream, owners, required=True)
    send(stream, 0, b"pending")
    beats(first)
    assert stream.pending(NODE) == 1
    first.close()
    owners.known[b"pending"] = TokenOwner.NODE
    second = reader_of(stream, owners, required=True)
    assert node_sequences(read(second, count(1))) == [(NODE, 0)]


def test_a_slice_without_proof_waits_for_the_review_of_those_before_it(
    stream: Stream, owners: Owners
) -> None:
    """When an analyzer starts, a forged slice must not be taken in the place of the node's own."""
    announce(stream, b"pending")
    reader = reader_of(stream, owners, required=False)
    send(stream, 0, b"pending")
    send(stream, 1, None)
    assert beats(reader) == []
    owners.known[b"pending"] = TokenOwner.NODE
    assert node_sequences(read(reader, count(1))) == [(NODE, 0)]
    read(reader, lambda _: reader.counts.refused == 1)


@pytest.mark.parametrize("required", [False, True])
def test_the_subjects_of_a_node_that_proves_its_origin_must_prove_it_too(
    stream: Stream, owners: Owners, required: bool
) -> None:
    """Else whoever writes to Redis chooses whom a finding names."""
    reader = proven_reader(stream, owners, required=required)
    set_subjects(stream, SUBJECTS_ROW, TOKEN)
    assert len(reader.subjects(NODE)) == 1
    for token in (None, b"of another node"):
        set_subjects(stream, SUBJECTS_ROW, token)
        assert reader.subjects(NODE) == ()


@pytest.mark.parametrize(("required", "known"), [(False, 1), (True, 0)])
def test_the_subjects_of_a_node_without_proofs_are_known_unless_they_are_required(
    stream: Stream, owners: Owners, required: bool, known: int
) -> None:
    set_subjects(stream, SUBJECTS_ROW, None)
    assert len(reader_of(stream, owners, required=required).subjects(NODE)) == known


def test_after_a_rollback_subjects_are_known_beside_an_old_proof(
    stream: Stream, owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origin, "PROVEN_SECONDS", 0)
    reader = proven_reader(stream, owners, required=False)
    set_subjects(stream, b"[]", TOKEN)
    stream.client.hset(node_key("default", NODE), names.SUBJECTS, SUBJECTS_ROW)
    assert len(reader.subjects(NODE)) == 1


@pytest.mark.parametrize("required", [False, True])
def test_the_comparison_of_nodes_has_only_subjects_that_prove_their_origin(
    stream: Stream, owners: Owners, required: bool
) -> None:
    reader = proven_reader(stream, owners, required=required)
    exchange = Exchange(reader.connection.client, "default", reader.records)
    set_subjects(stream, SUBJECTS_ROW, TOKEN)
    assert len(exchange.subjects([NODE])[NODE]) == 1
    set_subjects(stream, SUBJECTS_ROW, b"of another node")
    assert exchange.subjects([NODE, "unknown"]) == {NODE: (), "unknown": ()}


@pytest.mark.parametrize("required", [False, True])
def test_forged_facts_are_not_used(
    stream: Stream, owners: Owners, required: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Else whoever writes to Redis reports a wrong configuration of any node."""
    reader = proven_reader(stream, owners, required=required)
    feed = FactsFeed(reader.records)
    forged, own = (Facts(NODE, drivers={"nvidia": name}).to_json() for name in ("9", "550"))
    set_field(stream, names.FACTS, forged, b"of another node")
    assert feed.poll([NODE], 0.0) == feed.poll([NODE], 10.0) == []
    assert caplog.text.count("facts of node n are not used: they do not prove their origin") == 1
    set_field(stream, names.FACTS, own, TOKEN)
    assert [facts.drivers for facts in feed.poll([NODE], 20.0)] == [{"nvidia": "550"}]
