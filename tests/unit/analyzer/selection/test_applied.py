"""Which column represents which in a finding, and which columns scores use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reveal_analyzer.derive.columns import CHANGE, LARGEST, LEVEL, Column
from reveal_analyzer.selection.applied import AppliedSelection
from reveal_analyzer.selection.file import DroppedMetric, KeptMetric, Selection
from reveal_contract import catalogue


def column(name: str, feature: str = LEVEL, instance: str = "") -> Column:
    return Column(catalogue.find(name), instance, feature)


def selection_of(kept: str, *dropped: tuple[str, str], scored: bool = False) -> AppliedSelection:
    selection = Selection(
        0.5,
        tuple(KeptMetric(name, "") for name in kept.split()),
        tuple(DroppedMetric(name, by, 0.9) for name, by in dropped),
    )
    return AppliedSelection(selection, scored=scored)


def representatives(selected: AppliedSelection, *columns: Column) -> list[int]:
    return [int(index) for index in selected.representatives(columns)]


USER, LARGEST_USER = column("cpu.user"), column("cpu.user", LARGEST)
SYSTEM, IDLE = column("cpu.system"), column("cpu.idle")


def test_a_dropped_metric_is_reported_by_its_representative() -> None:
    selected = selection_of("cpu.user", ("cpu.idle", "cpu.user"))
    assert representatives(selected, USER, SYSTEM, IDLE) == [0, 1, 0]


def test_a_change_is_represented_by_a_change_if_possible() -> None:
    selected = selection_of("memory.cached", ("memory.mem_available", "memory.cached"))
    cached, available = column("memory.cached"), column("memory.mem_available")
    changes = [column(name, CHANGE) for name in ("memory.cached", "memory.mem_available")]
    assert representatives(selected, cached, available, *changes) == [0, 0, 2, 2]
    assert representatives(selected, cached, changes[1]) == [0, 0]


def test_a_missing_column_represents_nothing() -> None:
    selected = selection_of("cpu.user", ("cpu.idle", "cpu.user"))
    assert representatives(selected, IDLE, SYSTEM) == [0, 1]


def test_a_fold_goes_where_all_its_cpus_went() -> None:
    all_went = selection_of("cpu.user", ("cpu.user{0}", "cpu.user"), ("cpu.user{1}", "cpu.user"))
    assert representatives(all_went, USER, LARGEST_USER) == [0, 0]
    partly_kept = selection_of("cpu.user cpu.user{1}", ("cpu.user{0}", "cpu.user"))
    assert representatives(partly_kept, USER, LARGEST_USER) == [0, 1]


def test_a_fold_is_represented_by_the_metric_of_most_of_its_parts() -> None:
    selected = selection_of(
        "cpu.user cpu.system",
        ("cpu.user{0}", "cpu.system"), ("cpu.user{1}", "cpu.system"), ("cpu.user{2}", "cpu.user"),
    )  # fmt: skip
    assert representatives(selected, USER, SYSTEM, LARGEST_USER) == [0, 1, 1]


def test_the_hosts_own_total_is_in_no_fold() -> None:
    selected = selection_of("cpu.system cpu.user{0}", ("cpu.user", "cpu.system"))
    assert representatives(selected, SYSTEM, USER, LARGEST_USER) == [0, 0, 2]


def test_groups_of_a_fold_are_apart() -> None:
    """Interrupts of one kind over CPUs are folded by kind: ``virtio/0`` is of ``virtio``."""
    selected = selection_of(
        "cpu.interrupts.total", ("cpu.interrupts{virtio/0}", "cpu.interrupts.total"),
        ("cpu.interrupts{virtio/1}", "cpu.interrupts.total"),
    )  # fmt: skip
    total = column("cpu.interrupts.total")
    virtio, other = (
        Column(replace(USER.metric, name="cpu.interrupts"), kind, LARGEST)
        for kind in ("virtio", "nvme")
    )
    assert representatives(selected, total, virtio, other) == [0, 0, 2]


def test_a_metric_unknown_to_the_selection_is_displayed() -> None:
    selected = selection_of("cpu.user", ("cpu.idle", "cpu.user"))
    assert representatives(selected, USER, SYSTEM) == [0, 1]


def test_scores_see_all_unless_asked_otherwise() -> None:
    columns, values = (USER, SYSTEM, IDLE), np.array([1.0, 2.0, 3.0])
    every = selection_of("cpu.user", ("cpu.idle", "cpu.user"))
    assert every.scorable(columns, values) is values
    few = selection_of("cpu.user", ("cpu.idle", "cpu.user"), scored=True)
    np.testing.assert_array_equal(few.scorable(columns, values), [1.0, 2.0, np.nan])
    np.testing.assert_array_equal(values, [1.0, 2.0, 3.0])
