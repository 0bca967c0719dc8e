"""What is kept, served and shared of nodes that prove their origin, at a real Redis."""

from __future__ import annotations

import pytest

from reveal_analyzer.evidence.live_nodes import LiveNodes
from reveal_analyzer.evidence.recorder import RedisSource
from reveal_analyzer.stream.origin import TokenOwner
from reveal_analyzer.telemetry.states import StateStore
from reveal_contract import names
from reveal_contract.origin import key_of
from support.proven_streams import (
    NODE,
    SUBJECTS_ROW,
    TOKEN,
    Owners,
    admission_of,
    announce,
    proven_admission,
    proven_reader,
    reader_of,
    send,
    set_field,
    set_subjects,
)
from support.redis_streams import Stream, node_sequences, read

pytestmark = pytest.mark.usefixtures("soon_asked")


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


@pytest.mark.parametrize("required", [False, True])
def test_the_next_analyzer_knows_a_verified_key_whose_token_was_overwritten(
    stream: Stream, owners: Owners, required: bool
) -> None:
    """A compromised collector may write to the record of any node, and not what is verified."""
    proven_reader(stream, owners, required=required).close()
    for minute in range(len(names.TOKENS)):
        announce(stream, b"of another node", minute)
    send(stream, 1)
    second = reader_of(stream, owners, required=required)
    got = read(second, lambda got: (NODE, 1) in node_sequences(got))
    assert node_sequences(got)[-1] == (NODE, 1)
    assert second.counts.refused == 0
    assert len(owners.asked) == 1


@pytest.mark.parametrize("shared", [b"", b"no secret", b"x" * 32])
def test_a_key_that_an_earlier_analyzer_shared_needs_its_token(
    stream: Stream, owners: Owners, shared: bytes
) -> None:
    owners.known[TOKEN] = TokenOwner.NOBODY  # of a pod that is gone
    stream.client.set(names.proven_key("default", NODE, key_of(TOKEN).id), shared)
    reader = reader_of(stream, owners, required=True)
    send(stream, 0)
    read(reader, lambda _: reader.counts.refused == 1)
    reader.close()
    announce(stream, TOKEN)
    send(stream, 1)
    second = reader_of(stream, owners, required=True)
    assert read(second, lambda got: (NODE, 1) in node_sequences(got))


def test_only_what_was_verified_is_shared(stream: Stream, owners: Owners) -> None:
    announce(stream, b"of another node", 1)
    owners.known[b"of another node"] = TokenOwner.FOREIGN
    reader = proven_reader(stream, owners, required=True)
    send(stream, 1, b"of another node")
    read(reader, lambda _: reader.counts.refused == 1)
    key = names.proven_key("default", NODE, key_of(TOKEN).id)
    assert stream.client.keys("*:proven:*") == [key.encode()]
    assert 0 < stream.client.ttl(key) <= 7200
    assert stream.client.get(key) == key_of(TOKEN).secret
