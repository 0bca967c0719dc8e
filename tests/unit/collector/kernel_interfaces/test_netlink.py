"""Netlink messages: any bytes are parsed or refused, and attributes are found."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import ParseError
from reveal_collector.kernel_interfaces.netlink import find_attribute, split_messages
from reveal_collector.sources.qdisc import parse_message

BODIES = st.lists(st.binary(max_size=60), max_size=6)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def message(body: bytes, kind: int = 36, sequence: int = 7) -> bytes:
    return padded(struct.pack("=IHHII", 16 + len(body), kind, 0, sequence, 0) + body)


def of_type(kind: int, data: bytes) -> bytes:
    return padded(struct.pack("=HH", 4 + len(data), kind) + data)


@given(BODIES)
def test_messages_come_out_as_they_went_in(bodies: list[bytes]) -> None:
    datagram = b"".join(message(body) for body in bodies)
    assert list(split_messages(datagram)) == [(36, 7, body) for body in bodies]


@given(st.binary(max_size=200))
def test_any_datagram_is_read_or_refused(data: bytes) -> None:
    try:
        found = list(split_messages(data))
    except ParseError as error:
        assert "claims" in str(error)
    else:
        assert sum(len(body) for *_, body in found) <= len(data)


def test_a_message_longer_than_its_datagram_is_refused() -> None:
    with pytest.raises(ParseError, match="claims 24 bytes"):
        list(split_messages(message(b"12345678")[:-4]))


@given(st.dictionaries(st.integers(1, 40), st.binary(max_size=30)), st.integers(1, 40))
def test_an_attribute_is_found_by_its_type(attributes: dict[int, bytes], searched: int) -> None:
    data = b"head" + b"".join(of_type(kind, value) for kind, value in attributes.items())
    assert find_attribute(data, 4, searched) == attributes.get(searched, b"")


@given(st.binary(max_size=100), st.integers(0, 50))
def test_any_attributes_end(data: bytes, searched: int) -> None:
    assert len(find_attribute(data, 0, searched)) <= len(data)


def qdisc(kind: bytes, *numbers: int) -> bytes:
    queue = of_type(3, struct.pack("=IIIII", *numbers)) if numbers else b""
    return bytes(20) + of_type(1, kind + b"\0") + of_type(0x8000 | 7, of_type(1, bytes(16)) + queue)


def test_what_a_queue_discipline_counts() -> None:
    assert parse_message(qdisc(b"tbf", 5, 7000, 11, 2, 400)) == (400, 11, 7000)
    assert parse_message(qdisc(b"noqueue", 0, 0, 0, 0, 0)) is None
    assert parse_message(qdisc(b"clsact")) is None
