"""Numbers of a subject's network namespace from the texts of the kernel."""

from __future__ import annotations

import pytest

from reveal_collector.subjects.network import parse_dev

HEADER = b"Inter-| Receive | Transmit\n face |bytes packets\n"
COUNTS = b"1 2 0 3 0 0 0 0 4 5 0 6 0 0 0 0"


def test_interfaces_are_added_up_without_the_loopback() -> None:
    text = HEADER + b"    lo: " + COUNTS + b"\n  eth0: " + COUNTS + b"\n  eth1: " + COUNTS + b"\n"
    assert parse_dev(text) == (2, 8, 4, 10, 18)
    assert parse_dev(HEADER + b"    lo: " + COUNTS + b"\n") == (0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "text", [b"", b"Inter-| Receive\n", HEADER + b"  eth0: 1 2 3\n", HEADER + b"eth0: x" + COUNTS]
)
def test_a_text_without_the_numbers_is_no_zero(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_dev(text)
