from __future__ import annotations

import pytest

from reveal_cli.trace import packets
from reveal_cli.trace.packets import MOST_NAME, MOST_TEXT, Slice
from support.perfetto_trace import decoded

NS = 1_700_000_000_000_000_000


def slice_of(name: str, details: dict[str, str]) -> list[bytes]:
    each = Slice(name, NS, NS + 5, "finding", details)
    return [
        packets.process_track(1, 7, "n1"), packets.track(2, 1, name),
        packets.slice_begin(2, each), packets.slice_end(2, each),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "inert"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb", r"a\x0ab"),
        ("exe\u202etxt", r"exe\u202etxt"),
        ("\udcff", r"\xff"),
        ("<script>", "<script>"),  # the viewer escapes what it displays
        ("é" * 5000, "é" * (MOST_NAME - 1) + "…"),
    ],
)
def test_names_of_others_are_inert_and_short(name: str, inert: str) -> None:
    [found] = decoded(slice_of(name, {"claim": name})).slices
    assert (found.path, found.name) == (("n1", inert), inert)
    assert found.details["claim"].startswith(inert.removesuffix("…"))
    assert len(found.details["claim"]) <= MOST_TEXT


def test_times_of_the_viewer_are_those_since_the_origin() -> None:
    assert decoded([packets.clocks(NS, NS - 5)]).clocks == {6: 5, 1: NS}


@pytest.mark.parametrize("value", [0.0, -1.5, 1e300, 0.1])
def test_values_and_ids_are_read_as_they_are(value: float) -> None:
    high = (1 << 64) - 1
    parts = [
        packets.process_track(high, (1 << 31) - 1, "n1"),
        packets.counter_track(128, high, "m", "bytes/s"), packets.count(128, NS, value),
    ]  # fmt: skip
    trace = decoded(parts)
    assert trace.counters == {("n1", "m"): [(NS, value)]}
    assert trace.units == {("n1", "m"): "bytes/s"}
    assert trace.pids == {"n1": (1 << 31) - 1}
