"""One pass over a recording: gaps, changes, subjects that come, and the limit of its memory."""

from __future__ import annotations

from pathlib import Path

from reveal_cli.page_data import history as module
from reveal_cli.page_data.history import History, NodeHistory, read_history, ticks
from reveal_cli.recordings import Slices
from reveal_contract.facts import Facts, Memory
from support.analyze_command import recording
from support.ledger_node import ledger_node
from support.synthetic_node import Node

SECOND = 10**9


def of_node(seconds: int, skipped: range = range(0), step: int = 1) -> NodeHistory:
    node, found = Node(), NodeHistory("n1", step)
    for second in range(seconds):
        message = node.slice()
        if second not in skipped:
            found.push(message, node.table)
    return found


def test_missing_slices_are_a_gap_and_counted() -> None:
    found = of_node(20, range(5, 9))
    [(first, last)] = found.gaps_ns
    assert ((first - found.starts_ns[0]) // SECOND, (last - found.starts_ns[0]) // SECOND) == (5, 9)
    assert found.lost == 4


def test_a_long_recording_is_thinned(tmp_path: Path) -> None:
    path = recording(tmp_path / "r.rvl", 20)
    history = read_history(Slices(path), 3 * module.MOST_SECONDS)
    node = history.nodes["n1"]
    assert (node.step, len(node.table.table()), len(node.starts_ns)) == (3, 7, 20)


def test_a_changed_setting_and_a_subject_that_comes_are_ticks() -> None:
    node, start = of_node(30), 1_700_000_000 * SECOND
    newcomer = ledger_node("/work.service", "/new")
    newcomer.second = 30
    node.push(newcomer.slice(), newcomer.table)
    before, after = (Facts(node="n1", memory=Memory(thp=thp)) for thp in ("madvise", "always"))
    facts = [(before, start), (before, start + SECOND), (after, start + 9 * SECOND)]
    found, left_out = ticks(History({"n1": node}, facts, {}, False))
    assert left_out == 0
    assert [(tick.time, tick.kind, tick.text) for tick in found] == [
        (9.0, "configuration", "memory.thp: always, was madvise"),
        (30.0, "subject", "/new began"),
    ]


def test_of_many_ticks_the_changes_are_drawn() -> None:
    node, start = of_node(30), 1_700_000_000 * SECOND
    node.arrivals = [(start + n * SECOND, f"/{n}") for n in range(module.MOST_TICKS + 5)]
    before, after = (Facts(node="n1", memory=Memory(thp=thp)) for thp in ("madvise", "always"))
    facts = [(before, start), (after, start + 10_000 * SECOND)]
    found, left_out = ticks(History({"n1": node}, facts, {}, False))
    assert (len(found), left_out) == (module.MOST_TICKS, 6)
    assert found[-1].kind == "configuration"


def test_a_clock_that_was_set_back_leaves_the_extent_whole() -> None:
    node = of_node(20)
    first, last = node.starts_ns[0], node.starts_ns[-1]
    node.starts_ns += [first - 5 * SECOND, first]
    history = History({"n1": node}, [], {}, False)
    assert (history.start_ns, history.end_ns) == (first - 5 * SECOND, last + SECOND)


def test_the_first_subjects_are_no_news() -> None:
    assert of_node(30).arrivals == []
