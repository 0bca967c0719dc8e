"""The source of the ledger on the running kernel: columns, restart, budget."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.ledger.guard import CostGuard, Pause
from reveal_collector.ledger.names import hierarchy_of
from reveal_collector.ledger.source import Ledger
from reveal_collector.readers.source import Roots
from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker
from reveal_contract import ledger
from reveal_contract.ledger import adds_up
from support.ledger_host import bpf_descriptors, is_in_root_cgroup, is_removed, why_not
from support.polling import wait_until

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "runs here")

Row = dict[str, float | None]


def new_source(*limits: float, pause_s: float = 600) -> Ledger:
    """Return a source whose programs have these limits, one each time they are loaded."""
    roots, limit = Roots(), iter(limits)
    tracker = SubjectTracker(hierarchies(roots.cgroup), SubjectSelection())
    return Ledger(
        roots,
        tracker,
        lambda group: None,
        lambda cpus: CostGuard(cpus, next(limit, 0.5), 1),
        lambda: Pause(pause_s),
    )


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


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup that nobody knows yet, to be made by the test; its path below the hierarchies."""
    path = Path(f"reveal-ledger-source-{os.getpid()}")
    yield path
    for tree in cgroup_trees():
        if (tree / path).exists():
            wait_until(lambda folder=tree / path: is_removed(folder))


def cgroup_trees() -> list[Path]:
    trees = hierarchies(Roots().cgroup)
    _, tree = hierarchy_of(trees)
    return list(dict.fromkeys(each for each in (tree, trees.get("cpu")) if each is not None))


def start_in(path: Path, *command: str) -> subprocess.Popen[bytes]:
    """Start a command in a new cgroup."""
    for tree in cgroup_trees():
        (tree / path).mkdir()

    def enter() -> None:
        for tree in cgroup_trees():
            (tree / path / "cgroup.procs").write_text(str(os.getpid()))

    return subprocess.Popen(command, preexec_fn=enter)  # noqa: PLW1509 - one thread


def test_a_new_cgroup_is_named_immediately_and_with_its_shares(
    cgroup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its slot does not wait for the pass of the next second, which never comes here."""
    monkeypatch.setattr("reveal_collector.ledger.naming._PERIOD_S", 3600.0)
    source = new_source()
    source.open()
    process: subprocess.Popen[bytes] | None = None
    try:
        read(source)
        process = start_in(cgroup, "/bin/sleep", "100")
        wait_until(lambda: f"ledger.run{{/{cgroup}}}" in read(source))
        name = f"/{cgroup}"
        # the same pass reads its share, after the slot
        wait_until(lambda: name in {member.subject for member in source.shares.members})
        members = {member.subject: member for member in source.shares.members}
        has_weight = any((tree / cgroup / "cpu.shares").exists() for tree in cgroup_trees())
        has_weight |= any((tree / cgroup / "cpu.weight").exists() for tree in cgroup_trees())
        assert members[name].group == (name if has_weight else "")
    finally:
        source.close()
        if process is not None:
            process.kill()
            process.wait()


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
    source = new_source(0.0)
    source.open()
    try:
        wait_until(lambda: read(source) and source.degraded)
        assert "the lost-time ledger is off for 600 s: it took" in source.degraded[0]
        assert bpf_descriptors() == 0
        assert set(read(source).values()) == {None}
    finally:
        source.close()


def test_they_are_attached_again_after_a_pause() -> None:
    source = new_source(0.0, pause_s=0.01)
    source.open()
    try:
        wait_until(lambda: read(source) and source.degraded)
        wait_until(lambda: read(source)["ledger.run{kernel}"] is not None)
        assert source.degraded == ()
    finally:
        source.close()
    assert bpf_descriptors() == 0


def test_a_pause_ends_with_its_source() -> None:
    source = new_source(0.0)
    source.open()
    wait_until(lambda: read(source) and source.degraded)
    source.close()
    assert not [each for each in threading.enumerate() if each.name == "reveal-reload"]


def test_without_subjects_there_is_no_ledger() -> None:
    roots = Roots()
    tracker = SubjectTracker(hierarchies(roots.cgroup), SubjectSelection(limit=0))
    with pytest.raises(Unsupported, match="maxSubjects is 0"):
        Ledger(roots, tracker, lambda group: None).open()
