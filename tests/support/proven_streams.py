"""Slices of a node with and without a proof of origin, and what the API server says of tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

from reveal_analyzer.stream.origin import OriginCheck, TokenOwner
from reveal_analyzer.stream.reader import StreamReader
from reveal_analyzer.stream.slice_admission import SliceAdmission
from reveal_contract import names, wire
from reveal_contract.names import TOKENS, node_key
from reveal_contract.origin import field_data, key_of, prove
from support.redis_streams import TABLE, Stream, count, message, node_sequences, read

NODE, TOKEN = "n", b"token of n"
SUBJECTS_ROW = b'[{"instance": "job", "kind": "Job"}]'


@dataclass
class Owners:
    """What the API server says of tokens."""

    known: dict[bytes, TokenOwner] = field(default_factory=dict)
    asked: list[tuple[str, bytes]] = field(default_factory=list)

    def review(self, node: str, token: bytes) -> TokenOwner:
        self.asked.append((node, token))
        return self.known.get(token, TokenOwner.PENDING)


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
    stream: Stream,
    sequence: int,
    token: bytes | None = TOKEN,
    *,
    proven: int | None = None,
    entry_id: str = "*",
) -> None:
    """Send a slice; its proof is that of slice ``proven`` if that is another."""
    data, other = (_encoded(sequence), _encoded(sequence if proven is None else proven))
    fields = {names.FIELD_NODE: NODE, names.FIELD_DATA: data}
    if token is not None:
        fields[names.FIELD_PROOF] = prove(key_of(token), other)
    stream.raw(NODE, fields, entry_id)


def _encoded(sequence: int) -> bytes:
    return wire.encode(message(NODE, sequence), wire.gauges(TABLE))


def set_subjects(stream: Stream, value: bytes, token: bytes | None) -> None:
    set_field(stream, names.SUBJECTS, value, token)


def set_field(stream: Stream, name: str, value: bytes, token: bytes | None) -> None:
    """Write a field of the node with the proof that a token makes; without one it has none."""
    proof = b"" if token is None else prove(key_of(token), field_data(name, value))
    fields: dict[str, bytes] = {name: value, names.PROOF_OF + name: proof}
    stream.client.hset(node_key("default", NODE), mapping=fields)  # type: ignore[arg-type]
