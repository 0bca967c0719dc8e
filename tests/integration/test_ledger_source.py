"""The source of the ledger on the running kernel: columns, restart, budget."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.ledger.guard import CostGuard
from reveal_collector.ledger.source import Ledger
from reveal_collector.readers.source import Roots
from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker
from reveal_contract import ledger
from reveal_contract.ledger import adds_up
from support.ledger_host import bpf_descriptors, is_in_root_cgroup, why_not
from support.polling import wait_until

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "runs here")

Row = dict[str, float | None]


def new_source(limit: float = 0.5) -> Ledger:
    roots = Roots()
    tracker = SubjectTracker(hierarchies(roots.cgroup), SubjectSelection())
    return Ledger(roots, tracker, lambda group: None, lambda cpus: CostGuard(cpus, limit, 1))


@pytest.fixture
def source() -> Iterator[Ledger]:
    opened = new_source()
    opened.open()
    yield opened
    opened.close()


def read(source: Ledger) -> Row:
    try:
        values = source.read()
    except LayoutChanged:
        values = source.read()
    return {
        column.label: None if value is None else value * column.scale
        for column, value in zip(source.channels, values, strict=True)
    }


@pytest.mark.skipif(
    not is_in_root_cgroup(), reason="only process groups of the root cgroup are subjects"
)
def test_a_process_group_that_spins_is_named_with_its_parts(source: Ledger) -> None:
    spinner = subprocess.Popen(
        [sys.executable, "-S", "-c", "while True: pass"], start_new_session=True
    )
    try:
        rows: list[Row] = [read(source)]
        name = f"pgrp:{Path(f'/proc/{spinner.pid}/comm').read_text().strip()}[{spinner.pid}]"

        def is_displayed() -> bool:
            rows.append(read(source))
            run = rows[-1].get(f"ledger.run{{{name}}}")
            return run is not None and run > 1e8

        wait_until(is_displayed, f"{name} among {sorted(rows[-1])}")
        before = rows[-1]
        wait_until(lambda: _is_later(before, read(source), name))
        now = read(source)
        increments = {
            metric: _value(now, metric, name) - _value(before, metric, name)
            for metric in (*ledger.PARTS, ledger.THREAD_TIME)
        }
        assert adds_up(increments)
    finally:
        spinner.kill()
        spinner.wait()


def _is_later(before: Row, now: Row, name: str) -> bool:
    return _value(now, ledger.THREAD_TIME, name) > _value(before, ledger.THREAD_TIME, name) + 5e8


def _value(row: Row, metric: str, name: str) -> float:
    value = row[f"{metric}{{{name}}}"]
    assert value is not None
    return value


def test_the_tier_in_force_is_a_column(source: Ledger) -> None:
    read(source)
    assert read(source)["ledger.tier"] == ledger.Tier.BPF


def test_a_source_can_be_opened_again(source: Ledger) -> None:
    for _ in range(2):
        source.close()
        source.open()
        read(source)
        assert read(source)["ledger.run{kernel}"] is not None


def test_programs_that_cost_too_much_are_detached() -> None:
    source = new_source(limit=0.0)
    source.open()
    try:
        wait_until(lambda: read(source) and source.degraded)
        assert "the lost-time ledger is off: it took" in source.degraded[0]
        assert bpf_descriptors() == 0
        assert set(read(source).values()) == {None}
    finally:
        source.close()


def test_without_subjects_there_is_no_ledger() -> None:
    roots = Roots()
    tracker = SubjectTracker(hierarchies(roots.cgroup), SubjectSelection(limit=0))
    with pytest.raises(Unsupported, match="maxSubjects is 0"):
        Ledger(roots, tracker, lambda group: None).open()
