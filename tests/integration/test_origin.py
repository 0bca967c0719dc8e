"""Slices that prove their origin, and those that do not, at a real Redis."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from reveal_analyzer.configuration.feed import FactsFeed
from reveal_analyzer.evidence.live_nodes import LiveNodes
from reveal_analyzer.evidence.recorder import RedisSource
from reveal_analyzer.fleet.exchange import Exchange
from reveal_analyzer.stream import origin
from reveal_analyzer.stream.origin import OriginCheck, TokenOwner
from reveal_analyzer.stream.reader import StreamReader
from reveal_analyzer.stream.slice_admission import SliceAdmission
from reveal_analyzer.telemetry.states import StateStore
from reveal_contract import names, wire
from reveal_contract.facts import Facts
from reveal_contract.names import TOKENS, node_key
from reveal_contract.origin import field_data, key_of, prove
from support.redis_streams import TABLE, Stream, beats, count, message, node_sequences, read

NODE, TOKEN = "n", b"token of n"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin, "_ASK_SECONDS", 0.02)


@dataclass
class Owners:
    """What the API server says of tokens."""

    known: dict[bytes, TokenOwner] = field(default_factory=dict)
    asked: list[tuple[str, bytes]] = field(default_factory=list)

    def review(self, node: str, token: bytes) -> TokenOwner:
        self.asked.append((node, token))
        return self.known.get(token, TokenOwner.PENDING)


@pytest.fixture
def owners() -> Owners:
    return Owners({TOKEN: TokenOwner.NODE})


def admission_of(owners: Owners, *, required: bool) -> SliceAdmission:
    return SliceAdmission(origin=OriginCheck("default", owners.review, required=required))


def reader_of(stream: Stream, owners: Owners, *, required: bool) -> StreamReader:
    return stream.reader(admission=admission_of(owners, required=required))


def proven_reader(stream: Stream, owners: Owners, *, required: bool) -> StreamReader:
    """Return a reader that has read a slice of the node which proves its origin: number 0."""
    reader = reader_of(stream, owners, required=required)
    _read_proven(stream, reader)
    return reader


def proven_admission(stream: Stream, owners: Owners, *, required: bool) -> SliceAdmission:
    """Return the admission of such a reader."""
    admission = admission_of(owners, required=required)
    _read_proven(stream, stream.reader(admission=admission))
    return admission


def _read_proven(stream: Stream, reader: StreamReader) -> None:
    announce(stream, TOKEN)
    send(stream, 0)
    assert node_sequences(read(reader, count(1))) == [(NODE, 0)]


def announce(stream: Stream, token: bytes, minute: int = 0) -> None:
    stream.client.hset(node_key("default", NODE), TOKENS[minute], token)


def send(
    stream: Stream, sequence: int, token: bytes | None = TOKEN, *, proven: int | None = None
) -> None:
    """Send a slice; its proof is that of slice ``proven`` if that is another."""
    data, other = (_encoded(sequence), _encoded(sequence if proven is None else proven))
    fields = {names.FIELD_NODE: NODE, names.FIELD_DATA: data}
    if token is not None:
        fields[names.FIELD_PROOF] = prove(key_of(token), other)
    stream.raw(NODE, fields)


def _encoded(sequence: int) -> bytes:
    return wire.encode(message(NODE, sequence), wire.gauges(TABLE))


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
    monkeypatch.setattr(origin, "PROVEN_MS", 0)
    reader = proven_reader(stream, owners, required=False)
    send(stream, 1, None)
    assert node_sequences(read(reader, count(1))) == [(NODE, 1)]


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


SUBJECTS_ROW = b'[{"instance": "job", "kind": "Job"}]'


def set_subjects(stream: Stream, value: bytes, token: bytes | None) -> None:
    set_field(stream, names.SUBJECTS, value, token)


def set_field(stream: Stream, name: str, value: bytes, token: bytes | None) -> None:
    """Write a field of the node with the proof that a token makes; without one it has none."""
    proof = b"" if token is None else prove(key_of(token), field_data(name, value))
    fields: dict[str, bytes] = {name: value, names.PROOF_OF + name: proof}
    stream.client.hset(node_key("default", NODE), mapping=fields)  # type: ignore[arg-type]


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
    monkeypatch.setattr(origin, "PROVEN_MS", 0)
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


@pytest.mark.parametrize("required", [False, True])
def test_a_forged_report_of_a_collector_is_no_degradation(
    stream: Stream, owners: Owners, required: bool
) -> None:
    """Else whoever writes to Redis decides what the profile says of any node."""
    store = StateStore(stream.client, "default", "one")
    store.check_origin(proven_admission(stream, owners, required=required).is_credible)
    report = b'{"degraded": ["slow disk"]}'
    for token in (None, b"of another node"):
        set_field(stream, names.STATUS, report, token)
        assert store.degraded([NODE]) == []
    set_field(stream, names.STATUS, report, TOKEN)
    assert [each.nodes for each in store.degraded([NODE])] == [1]


@pytest.mark.parametrize("required", [False, True])
def test_forged_slices_and_subjects_are_not_kept_as_evidence(
    stream: Stream, owners: Owners, required: bool
) -> None:
    admission = proven_admission(stream, owners, required=required)
    source = RedisSource.of(stream.client, "default", admission.is_credible)
    send(stream, 1, None)
    send(stream, 2, b"of another node")
    send(stream, 3)
    set_subjects(stream, SUBJECTS_ROW, None)
    assert [each.sequence for each, _ in source.since(NODE, 0)] == [0, 3]
    assert source.subjects(NODE) == ()
    set_subjects(stream, SUBJECTS_ROW, TOKEN)
    assert len(list(source.subjects(NODE))) == 1


def test_what_is_served_of_a_node_proves_its_origin(stream: Stream, owners: Owners) -> None:
    admission = proven_admission(stream, owners, required=False)
    nodes = LiveNodes(stream.client, "default", admission.is_credible)
    set_field(stream, names.STATUS, b"{}", b"of another node")
    set_subjects(stream, SUBJECTS_ROW, TOKEN)
    assert nodes.announced(NODE) == {
        "subjects": SUBJECTS_ROW.decode(), "cpuShares": None, "status": None,
    }  # fmt: skip


@pytest.mark.parametrize("required", [False, True])
def test_a_node_of_another_analyzer_is_kept_and_served_without_a_check(
    stream: Stream, owners: Owners, required: bool
) -> None:
    """Its keys are not known here; a finding across nodes keeps samples of such nodes."""
    admission = admission_of(owners, required=required)
    send(stream, 0)
    set_subjects(stream, SUBJECTS_ROW, TOKEN)
    source = RedisSource.of(stream.client, "default", admission.is_credible)
    assert [each.sequence for each, _ in source.since(NODE, 0)] == [0]
    assert len(list(source.subjects(NODE))) == 1


@pytest.mark.parametrize("required", [False, True])
def test_slices_of_a_pod_that_is_gone_are_taken_by_the_next_analyzer(
    stream: Stream, owners: Owners, required: bool
) -> None:
    """The API server does not know its token any more, but the analyzer before verified it."""
    proven_reader(stream, owners, required=required).close()
    owners.known[TOKEN] = TokenOwner.NOBODY
    renewed = b"of the next pod"
    owners.known[renewed] = TokenOwner.NODE
    announce(stream, renewed, 1)
    send(stream, 1)
    send(stream, 2, renewed)
    second = reader_of(stream, owners, required=required)
    got = read(second, lambda got: (NODE, 2) in node_sequences(got))
    assert node_sequences(got)[-2:] == [(NODE, 1), (NODE, 2)]
    assert second.counts.refused == 0
    assert [token for _, token in owners.asked] == [TOKEN, renewed]


def test_only_what_was_verified_is_shared(stream: Stream, owners: Owners) -> None:
    announce(stream, b"of another node", 1)
    owners.known[b"of another node"] = TokenOwner.FOREIGN
    reader = proven_reader(stream, owners, required=True)
    send(stream, 1, b"of another node")
    read(reader, lambda _: reader.counts.refused == 1)
    key = names.proven_key("default", NODE, key_of(TOKEN).id)
    assert stream.client.keys("*:proven:*") == [key.encode()]
    assert 0 < stream.client.ttl(key) <= 7200
