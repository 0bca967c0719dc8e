"""Which column a finding tells in place of which, and what scores see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reveal_analyzer.derive.columns import CHANGE, LARGEST, LEVEL, Column
from reveal_analyzer.selection.applied import AppliedSelection
from reveal_analyzer.selection.file import DroppedMetric, KeptMetric, Selection
from reveal_contract import catalogue


def column(name: str, feature: str = LEVEL, instance: str = "") -> Column:
    return Column(catalogue.find(name), instance, feature)


def shown(kept: str, *dropped: tuple[str, str], scored: bool = False) -> AppliedSelection:
    selection = Selection(
        0.5,
        tuple(KeptMetric(name, "") for name in kept.split()),
        tuple(DroppedMetric(name, by, 0.9) for name, by in dropped),
    )
    return AppliedSelection(selection, scored=scored)


def told(made: AppliedSelection, *columns: Column) -> list[int]:
    return [int(place) for place in made.representatives(columns)]


USER, LARGEST_USER = column("cpu.user"), column("cpu.user", LARGEST)
SYSTEM, IDLE = column("cpu.system"), column("cpu.idle")


def test_what_went_is_told_by_who_stands_for_it() -> None:
    made = shown("cpu.user", ("cpu.idle", "cpu.user"))
    assert told(made, USER, SYSTEM, IDLE) == [0, 1, 0]


def test_a_change_is_told_by_a_change_where_there_is_one() -> None:
    made = shown("memory.cached", ("memory.mem_available", "memory.cached"))
    cached, available = column("memory.cached"), column("memory.mem_available")
    changes = [column(name, CHANGE) for name in ("memory.cached", "memory.mem_available")]
    assert told(made, cached, available, *changes) == [0, 0, 2, 2]
    assert told(made, cached, changes[1]) == [0, 0]


def test_who_is_not_there_cannot_speak() -> None:
    made = shown("cpu.user", ("cpu.idle", "cpu.user"))
    assert told(made, IDLE, SYSTEM) == [0, 1]


def test_a_fold_goes_where_all_its_cpus_went() -> None:
    all_went = shown("cpu.user", ("cpu.user{0}", "cpu.user"), ("cpu.user{1}", "cpu.user"))
    assert told(all_went, USER, LARGEST_USER) == [0, 0]
    one_stays = shown("cpu.user cpu.user{1}", ("cpu.user{0}", "cpu.user"))
    assert told(one_stays, USER, LARGEST_USER) == [0, 1]


def test_a_fold_is_told_by_whoever_stands_for_most_of_it() -> None:
    made = shown(
        "cpu.user cpu.system",
        ("cpu.user{0}", "cpu.system"), ("cpu.user{1}", "cpu.system"), ("cpu.user{2}", "cpu.user"),
    )  # fmt: skip
    assert told(made, USER, SYSTEM, LARGEST_USER) == [0, 1, 1]


def test_the_hosts_own_total_is_in_no_fold() -> None:
    made = shown("cpu.system cpu.user{0}", ("cpu.user", "cpu.system"))
    assert told(made, SYSTEM, USER, LARGEST_USER) == [0, 0, 2]


def test_groups_of_a_fold_are_apart() -> None:
    """Interrupts of one kind over CPUs are folded by kind: ``virtio/0`` is of ``virtio``."""
    made = shown(
        "cpu.interrupts.total", ("cpu.interrupts{virtio/0}", "cpu.interrupts.total"),
        ("cpu.interrupts{virtio/1}", "cpu.interrupts.total"),
    )  # fmt: skip
    total = column("cpu.interrupts.total")
    virtio, other = (
        Column(replace(USER.metric, name="cpu.interrupts"), kind, LARGEST)
        for kind in ("virtio", "nvme")
    )
    assert told(made, total, virtio, other) == [0, 0, 2]


def test_what_the_selection_never_saw_is_shown() -> None:
    made = shown("cpu.user", ("cpu.idle", "cpu.user"))
    assert told(made, USER, SYSTEM) == [0, 1]


def test_scores_see_all_unless_asked_otherwise() -> None:
    columns, values = (USER, SYSTEM, IDLE), np.array([1.0, 2.0, 3.0])
    every = shown("cpu.user", ("cpu.idle", "cpu.user"))
    assert every.scorable(columns, values) is values
    few = shown("cpu.user", ("cpu.idle", "cpu.user"), scored=True)
    np.testing.assert_array_equal(few.scorable(columns, values), [1.0, 2.0, np.nan])
    np.testing.assert_array_equal(values, [1.0, 2.0, 3.0])
