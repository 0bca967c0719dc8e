"""Columns of the ledger: the largest subjects and pairs, whose counters never fall."""

from __future__ import annotations

from collections.abc import Mapping

from reveal_collector.ledger.accounts import METRICS, Interval
from reveal_collector.ledger.channels import MOST_PAIRS, MOST_SUBJECTS, DisplayedSubjects
from reveal_collector.ledger.disk_latency import AloneLatencies
from reveal_collector.ledger.programs import State
from reveal_contract import ledger
from support.ledger_maps import SECOND, slot, totals

MS = 1_000_000
JOB, HOG = slot("job", 3), slot("hog", 4)
ALONE = AloneLatencies()
BEFORE = totals(now=SECOND)


def update(
    displayed: DisplayedSubjects, second: int, spent: Mapping[tuple[int, State], int],
    waited: Mapping[tuple[int, int], int] | None = None,
) -> bool:  # fmt: skip
    now = totals(now=2 * SECOND, spent=spent, waited=waited)
    return displayed.update(Interval(BEFORE, now, (JOB, HOG), ALONE), (JOB, HOG), float(second))


def row(displayed: DisplayedSubjects) -> dict[str, int]:
    labels = [column.label for column in displayed.channels]
    return dict(zip(labels, displayed.values(), strict=True))


def test_there_are_other_and_kernel_before_any_subject() -> None:
    instances = {column.instance for column in DisplayedSubjects().channels}
    assert instances == {ledger.OTHER, ledger.KERNEL}
    assert len(DisplayedSubjects().values()) == len(DisplayedSubjects().channels)


def test_a_subject_and_a_pair_get_columns_once() -> None:
    displayed = DisplayedSubjects()
    spent = {(3, State.RUN): 300 * MS, (3, State.WAIT): 700 * MS}
    assert update(displayed, 1, spent, {(3, 4): 700 * MS})
    assert not update(displayed, 2, spent, {(3, 4): 700 * MS})
    found = row(displayed)
    assert found["ledger.run{job}"] == 6000  # units of 0.1 ms, of two seconds
    assert found["ledger.wait_others{job}"] == 14000
    assert found["ledger.lost_cpu{job<hog}"] == 14000
    assert {column.scale for column in displayed.channels if column.metric == ledger.RUN} == {1e5}
    assert {column.scale for column in displayed.channels if column.metric == ledger.WAITS} == {1.0}


def test_a_pair_that_loses_nothing_any_more_keeps_its_column() -> None:
    displayed = DisplayedSubjects()
    update(displayed, 1, {(3, State.WAIT): 9 * MS}, {(3, 4): 9 * MS})
    assert not any(update(displayed, second, {(3, State.RUN): MS}) for second in range(2, 100))


def test_a_correction_makes_no_counter_fall() -> None:
    """A soft interrupt is deducted from the run that is counted at the next switch only."""
    displayed = DisplayedSubjects()
    values = []
    for second, run in enumerate((5, -2, -2, 6)):
        update(displayed, second, {(3, State.RUN): run * MS})
        values.append(row(displayed)["ledger.run{job}"])
    assert values == [50, 50, 50, 70]


def test_columns_are_limited() -> None:
    slots = [slot(f"{n:02}", 3 + n) for n in range(60)]
    spent = {(each.number, State.WAIT): (each.number + 1) * 10 * MS for each in slots}
    waited = {(a.busy, b.busy): MS for a in slots for b in slots if a is not b}
    displayed = DisplayedSubjects()
    displayed.update(
        Interval(BEFORE, totals(now=2 * SECOND, spent=spent, waited=waited), slots, ALONE),
        slots,
        1.0,
    )
    subjects = {column.instance for column in displayed.channels if column.metric == METRICS[0]}
    assert subjects == {f"{n:02}" for n in range(28, 60)} | {ledger.OTHER, ledger.KERNEL}
    assert len(subjects) == MOST_SUBJECTS + 2
    pairs = [column for column in displayed.channels if column.metric in ledger.PAIRS]
    assert len(pairs) == 2 * MOST_PAIRS
    assert len(displayed.values()) == len(displayed.channels)


def matrix(
    second: int, waited: Mapping[tuple[int, int], int], displayed: DisplayedSubjects
) -> set[str]:
    """Add a second of ten subjects, who wait for each other; return the pairs with columns."""
    slots = [slot(f"{n:02}", 3 + n) for n in range(10)]
    spent = {(each.number, State.RUN): 100 * MS for each in slots}
    now = totals(now=2 * SECOND, spent=spent, waited=waited)
    displayed.update(Interval(BEFORE, now, slots, ALONE), slots, float(second))
    return {column.instance for column in displayed.channels if column.metric == ledger.LOST_CPU}


EVERYBODY = {(3 + a, 3 + b): (10 - b) * MS for a in range(10) for b in range(9) if a != b}


def test_a_notable_pair_replaces_an_idle_pair_immediately() -> None:
    displayed = DisplayedSubjects()
    for second in range(60):
        matrix(second, EVERYBODY, displayed)
    for second in range(60, 71):
        assert len(matrix(second, {}, displayed)) == MOST_PAIRS
    for second, pair in ((71, (3, 12)), (72, (4, 12)), (73, (5, 12))):
        found = matrix(second, {pair: 300 * MS}, displayed)
        assert f"{pair[0] - 3:02}<09" in found
        assert len(found) == MOST_PAIRS
    assert "00<09" in found  # lost time just now


def test_a_small_pair_does_not_replace_an_idle_pair() -> None:
    displayed = DisplayedSubjects()
    for second in range(60):
        before = matrix(second, EVERYBODY, displayed)
    for second in range(60, 90):
        assert matrix(second, {(3, 12): 10 * MS}, displayed) == before
