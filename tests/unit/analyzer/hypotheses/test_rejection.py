"""Causes that are not those of an episode, each with the numbers that speak against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from reveal_analyzer.derive.columns import LEVEL, Column
from reveal_analyzer.hypotheses.column_stats import ColumnStats
from reveal_analyzer.hypotheses.loader import load
from reveal_analyzer.hypotheses.rejection import Episode, Rejection, Result, rejections
from reveal_contract import catalogue
from reveal_contract.metric import Subsystem

RULES = {rule.name: rule for rule in load()}
SECONDS = 20


def episode(levels: Mapping[str, float], **other: object) -> Episode:
    """Return an episode in which metrics have levels; all were 1 before."""
    columns = tuple(Column(catalogue.find(name), "", LEVEL) for name in levels)
    means = np.array([*levels.values()])
    excess = np.stack([np.maximum(means - 1.0, 0.0), np.zeros(len(means))])
    stats = ColumnStats(columns, means, excess)
    result = Episode(np.tile(means, (SECONDS, 1)), stats, np.ones(len(means)), 4)
    return replace(result, **other)  # type: ignore[arg-type]


def result_of(name: str, given: Episode, chosen: str = "") -> Rejection:
    rule = RULES[name]
    [found] = rejections([rule], RULES.get(chosen), [rule.subsystem], given)
    return found


def test_a_level_that_was_not_reached_is_given_beside_its_limit() -> None:
    low = episode({"cpu.forks": 3.0, "cpu.pressure.some": 5e8})
    found = result_of("ForkStorm", low)
    assert found.result is Result.RULED_OUT
    assert found.reason.startswith("cpu.forks reached 3/s; this cause begins at ")


def test_a_level_must_last_as_long_as_the_signature_asks() -> None:
    given = episode({"cpu.forks": 0.0})
    given.values[3, 0] = 1e6  # for a single second
    assert "reached 0/s" in result_of("ForkStorm", given).reason


def test_a_metric_that_is_not_read_leaves_a_cause_unknown() -> None:
    many = episode({"cpu.forks": 1e6})
    assert result_of("ForkStorm", many).reason == "memory.vm.pgfault is not read on this host"
    found = result_of("ForkStorm", episode({"cpu.busy": 1.0}))
    assert (found.result, found.reason) == (
        Result.UNKNOWN, "cpu.forks is not read on this host",
    )  # fmt: skip


def test_an_effect_of_the_cause_is_no_other_cause() -> None:
    given = episode({"cpu.pressure.some": 9e8, "cpu.procs_running": 50.0, "cpu.idle": 0.0,
                     "cpu.busiest": 1e9, "cpu.busy": 4e9})  # fmt: skip
    found = result_of("CPUContention", given, chosen="CPUTakenByNeighbor")
    assert found.reason == "what it rests on is an effect of CPUTakenByNeighbor"


def test_what_the_ledger_measures_is_decided_by_it() -> None:
    given = episode({"cpu.busy": 1.0})
    assert result_of("CPUTakenByNeighbor", given).result is Result.UNKNOWN
    measured = replace(given, has_ledger=True)
    assert result_of("CPUTakenByNeighbor", measured).result is Result.RULED_OUT


def test_causes_of_other_subsystems_and_the_chosen_cause_are_not_listed() -> None:
    given = episode({"cpu.forks": 0.0})
    found = rejections(RULES.values(), RULES["ForkStorm"], [Subsystem.CPU], given)
    names = {each.name for each in found}
    assert "ForkStorm" not in names
    assert names == {name for name, rule in RULES.items() if rule.subsystem is Subsystem.CPU} - {
        "ForkStorm"
    }
    order = [list(Result).index(each.result) for each in found]
    assert order == sorted(order)


def test_every_built_in_cause_has_a_reason_whatever_is_read() -> None:
    for levels in ({}, {rule.expects[0].metric: 1.0 for rule in RULES.values()}):
        given = episode({name: v for name, v in levels.items() if not name.startswith("ledger.")})
        for found in rejections(RULES.values(), None, [*Subsystem], given):
            assert found.reason
