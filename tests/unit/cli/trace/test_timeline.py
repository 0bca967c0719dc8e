from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from reveal_cli.trace.packets import Slice
from reveal_cli.trace.timeline import Timeline, identity
from support.perfetto_trace import decoded


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), max_size=12))
def test_slices_of_a_track_may_overlap(spans: list[tuple[int, int]]) -> None:
    timeline = Timeline()
    for begin, length in spans:
        timeline.add(("n1", "CPU"), Slice("s", begin, begin + length))
    found = decoded(timeline.packets(0, 0)).slices
    assert sorted((each.begin, each.end - each.begin) for each in found) == sorted(spans)
    assert {each.path for each in found} <= {("n1", "CPU")}


def test_slices_that_begin_together_keep_their_order() -> None:
    timeline = Timeline()
    timeline.add(("n1", "B", "late"), Slice("first", 0, 1))  # its track is older than the last one
    for track, name in (("A", "cause"), ("B", "finding"), ("A", "victim")):
        timeline.add(("n1", track), Slice(name, 5, 9))
    timeline.add(("n1", "B", "late"), Slice("last", 5, 9))
    names = [each.name for each in decoded(timeline.packets(0, 0)).slices]
    assert names == ["first", "cause", "finding", "victim", "last"]


def test_nodes_are_processes_whose_ids_no_process_has() -> None:
    timeline = Timeline()
    for node in ("n1", "n2", "n1"):
        timeline.node(node)
    pids = decoded(timeline.packets(0, 0)).pids
    assert len(set(pids.values())) == len(pids) == 2
    assert min(pids.values()) > 1 << 22


def test_counters_stand_below_their_tracks() -> None:
    timeline = Timeline()
    timeline.count(("n1", "CPU", "cpu.user"), "ns/s", 3, 1.5)
    timeline.count(("n1", "CPU", "cpu.user"), "ns/s", 4, 2.5)
    trace = decoded(timeline.packets(0, 0))
    assert trace.counters == {("n1", "CPU", "cpu.user"): [(3, 1.5), (4, 2.5)]}


def test_ids_differ_by_their_parts() -> None:
    parts = (("a", "b"), ("ab",), ("a", "\udc80"), ("b", "a"))
    for first, second in itertools.combinations(parts, 2):
        assert identity(*first) != identity(*second)
    assert identity("a", "b") == identity("a", "b")
