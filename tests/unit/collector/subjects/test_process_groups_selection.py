"""Process groups that are shown: the largest, whose columns do not flap."""

from __future__ import annotations

from itertools import pairwise

from reveal_collector.subjects import process_groups
from reveal_collector.subjects.process_groups import (
    GroupAccounting,
    GroupSelection,
    ProcessGroup,
)


def group(number: int, score: float, first: int = 1, last: int = 20) -> ProcessGroup:
    return ProcessGroup(number, f"g{number}", first, last, score=score)


def ledger_of(*members: ProcessGroup, passes: int = 20) -> GroupAccounting:
    accounting = GroupAccounting()
    accounting.passes = passes
    accounting.groups = {member.id: member for member in members}
    return accounting


def test_the_table_holds_the_largest_and_does_not_flap() -> None:
    many = [group(n, n / 100) for n in range(40)]
    accounting, selection = ledger_of(*many), GroupSelection()
    selected = selection.choose(accounting, many, 0.0)
    assert [item.id for item in selected] == list(range(40 - process_groups.MAX_GROUPS, 40))
    many[15].score = 0.18  # a little above the least that is in
    for second in range(1, 100):
        assert selection.choose(accounting, many, float(second)) == selected
    many[15].score = 0.9
    for second in range(100, 130):
        selected = selection.choose(accounting, many, float(second))
    assert many[15] in selected


def test_groups_that_work_in_turn_seldom_change_the_columns() -> None:
    """As the jobs of a build that each compute for ten seconds."""
    many = [group(n, 0.0) for n in range(40)]
    accounting, selection = ledger_of(*many), GroupSelection()
    tables = []
    for second in range(600):
        for number, each in enumerate(many):
            each.score = 1.0 if (second + 10 * number) % 100 < 10 else 0.0
        tables.append(selection.choose(accounting, many, float(second)))
    assert sum(a != b for a, b in pairwise(tables)) < 10


def test_a_short_lived_group_enters_late_unless_it_matters() -> None:
    tiny, large = group(1, 0.0001, first=19), group(2, 0.5, first=19)
    accounting = ledger_of(tiny, large)
    assert GroupSelection().choose(accounting, [tiny, large], 0.0) == [large]
    newest = group(3, 0.5, first=20)
    assert GroupSelection().choose(ledger_of(newest), [newest], 0.0) == []


def test_a_finished_group_keeps_its_column_until_it_is_needed() -> None:
    selected = [group(n, 0.5) for n in range(process_groups.MAX_GROUPS)]
    coming, selection = group(99, 0.01), GroupSelection()
    accounting = ledger_of(*selected, coming)
    selection.choose(accounting, selected, 0.0)
    selected[3].last_pass = 15
    assert selected[3] in selection.choose(accounting, selected, 1.0)
    assert selected[3] not in selection.choose(accounting, [*selected, coming], 2.0)
