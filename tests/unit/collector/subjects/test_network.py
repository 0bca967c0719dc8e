"""Numbers of a subject's network namespace from the texts of the kernel."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.subjects.network import Traffic, TrafficTotals, parse_dev
from support.property_tests import examples

HEADER = b"Inter-| Receive | Transmit\n face |bytes packets\n"
COUNTS = b"1 2 0 3 0 0 0 0 4 5 0 6 0 0 0 0"


def test_interfaces_are_added_up_without_the_loopback() -> None:
    text = HEADER + b"    lo: " + COUNTS + b"\n  eth0: " + COUNTS + b"\n  eth1: " + COUNTS + b"\n"
    assert TrafficTotals(Path("none")).update(parse_dev(text)) == (2, 8, 4, 10, 18)
    assert parse_dev(HEADER + b"    lo: " + COUNTS + b"\n") == {}


@pytest.mark.parametrize(
    "text", [b"", b"Inter-| Receive\n", HEADER + b"  eth0: 1 2 3\n", HEADER + b"eth0: x" + COUNTS]
)
def test_a_text_without_the_numbers_is_no_zero(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_dev(text)


def test_an_interface_that_moves_in_does_not_add_its_history(tmp_path: Path) -> None:
    totals = TrafficTotals(tmp_path)
    assert totals.update({"eth0": (100, 10, 1, 1, 0)}) == (100, 10, 1, 1, 0)
    moved = {"eth0": (110, 10, 1, 1, 0), "net1": (5_000_000_000, 7, 7, 7, 7)}
    assert totals.update(moved) == (110, 10, 1, 1, 0)
    moved = {"eth0": (110, 10, 1, 1, 0), "net1": (5_000_000_400, 7, 7, 7, 9)}
    assert totals.update(moved) == (510, 10, 1, 1, 2)
    assert totals.update({"eth0": (110, 10, 1, 1, 0)}) == (510, 10, 1, 1, 2)


def test_bonds_and_vlans_repeat_the_interfaces_below_them(tmp_path: Path) -> None:
    for path in ("bonding/bond0", "vlan/config", "vlan/net1.7"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    totals = TrafficTotals(tmp_path)
    counts: Traffic = (1, 2, 3, 4, 5)
    found = dict.fromkeys(("bond0", "net1", "net2", "net1.7"), counts)
    assert totals.update(found) == (2, 4, 6, 8, 10)


STEPS = st.one_of(st.none(), st.integers(0, 10**10))


@examples(200)
@given(seconds=st.lists(st.tuples(STEPS, STEPS, STEPS), min_size=2, max_size=12))
def test_sums_grow_by_what_interfaces_counted_while_they_were_read(
    seconds: list[tuple[int | None, ...]],
) -> None:
    """None: the interface is elsewhere in that second, where it counts on."""
    totals, counters, before = TrafficTotals(Path("none")), [10**12, 0, 7], set[int]()
    rows: list[tuple[int, int]] = []
    for steps in seconds:
        here = {index for index, step in enumerate(steps) if step is not None}
        counters = [now + (step or 10**9) for now, step in zip(counters, steps, strict=True)]
        row = totals.update({f"eth{index}": (counters[index],) * 5 for index in here})
        rows.append((row[0], sum(steps[index] or 10**9 for index in here & before)))
        before = here
    increments = [now[0] - last[0] for last, now in pairwise(rows)]
    assert increments == [expected for _, expected in rows[1:]]
