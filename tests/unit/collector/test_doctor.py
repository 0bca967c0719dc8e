"""Available and missing sources of a host, and the resulting advice."""

from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from reveal_collector import doctor as inventories
from reveal_collector import registry
from reveal_collector.doctor import (
    Privileges,
    advice,
    capabilities,
    current_privileges,
    diagnose,
)
from reveal_collector.native import LoadedLibrary
from reveal_collector.readers.opening import SourceOpener
from reveal_collector.readers.source import Roots
from reveal_collector.registry import MissingSource
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane
from reveal_contract.settings import CollectorSettings, SettingsError
from support import big_host

ALL = Privileges(root=True, real_time=True, sees_others=True, reads_all=True)
NONE = Privileges(root=False, real_time=False, sees_others=False, reads_all=False)
UNBUILT = LoadedLibrary(None, "C scanner not built: no compiler")


@pytest.fixture(autouse=True)
def _built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine that has the native library."""
    monkeypatch.setattr(inventories, "load", lambda: LoadedLibrary(ctypes.CDLL(None), ""))


def settings(**given: tuple[str, ...]) -> CollectorSettings:
    return CollectorSettings.from_mapping({"node": "n", "redisUrl": "unix:///x", **given})


def test_rows_describe_a_channel_completely(tmp_path: Path) -> None:
    found = diagnose(big_host.write(tmp_path), settings())
    row = next(row for row in found.rows if row.channel == "storage.disk.read_bytes{sda}")
    assert (row.unit, row.kind, row.lane, row.source) == ("bytes", "counter", "fast", "diskstats")
    assert (row.origin, row.subsystem, row.harm) == ("sectors_read", "Storage", "neither")
    assert row.meaning == "Bytes read"
    assert len({row.channel for row in found.rows}) == len(found.rows)


def test_missing_sources_come_with_reason_and_remedy(tmp_path: Path) -> None:
    found = diagnose(big_host.write(tmp_path), settings())
    missing = {gap.source: gap for gap in found.missing}
    assert "does not exist" in missing["psi"].reason
    assert "psi=1" in missing["psi"].remedy
    assert found.advice[0].missing.startswith("psi:")  # the most rewarding first
    assert "contention" in found.advice[0].gives


def test_what_a_recorded_tree_does_not_show_is_stated(tmp_path: Path) -> None:
    roots = big_host.write(tmp_path)
    selected = settings(include=("meminfo",))
    assert not diagnose(roots, selected).advice
    (roots.proc / "meminfo").write_text("MemTotal:  800000 kB\nMemFree 500000kB\n")
    phrases = [each.missing for each in diagnose(roots, selected).advice]
    assert phrases[0].startswith("meminfo: numbers are missing, because 1 line of")
    assert phrases[1].startswith("the page size of the recorded host is unknown")


def test_only_what_the_settings_ask_for(tmp_path: Path) -> None:
    found = diagnose(big_host.write(tmp_path), settings(include=("stat",)))
    assert {row.source for row in found.rows} == {"stat"}
    assert not found.missing


class HangingSource:
    """A source whose driver does not answer until ``answer`` is set."""

    name, lane, driver = "cards", Lane.SLOW, "maker"
    channels: tuple[Channel, ...] = ()

    def __init__(self) -> None:
        self.answer = threading.Event()

    def open(self) -> None:
        self.answer.wait()

    def read(self) -> tuple[int | None, ...]:
        return ()

    def close(self) -> None:
        """Keep nothing open."""


def test_a_driver_that_hangs_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = HangingSource()
    monkeypatch.setattr(registry, "build", lambda roots, settings: [source])
    monkeypatch.setattr(registry, "SourceOpener", partial(SourceOpener, 0.01))
    try:
        found = diagnose(big_host.write(tmp_path), settings())
    finally:
        source.answer.set()
    assert found.hung == {"maker"}
    assert "has not answered" in found.missing[0].reason


def test_an_unknown_source_is_a_readable_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no such source: nonsense; known are .*vmstat"):
        diagnose(big_host.write(tmp_path), settings(exclude=("nonsense",)))


def test_a_recorded_tree_is_not_judged_by_our_own_privileges(tmp_path: Path) -> None:
    roots = Roots(tmp_path, tmp_path, tmp_path)
    assert advice(roots, [], NONE) == []


def test_missing_privileges_come_first() -> None:
    given = advice(Roots(), [MissingSource("psi", "gone", "psi=1")], NONE)
    assert [each.missing for each in given[:3]] == [
        "not run as root", "SCHED_FIFO is not permitted", "psi: gone",
    ]  # fmt: skip
    assert all(each.remedy and each.gives for each in given)


def test_root_without_capabilities_gets_the_missing_capabilities() -> None:
    given = advice(Roots(), [], replace(ALL, sees_others=False, reads_all=False))
    assert [each.missing for each in given[:2]] == [
        "CAP_SYS_PTRACE is not held", "CAP_DAC_READ_SEARCH is not held",
    ]  # fmt: skip
    assert all(each.remedy and each.gives for each in given)


def test_cgroups_of_the_host(tmp_path: Path) -> None:
    cgroup = tmp_path / "cgroup"
    cgroup.mkdir()
    roots = Roots(cgroup=cgroup)
    assert len(advice(roots, [], ALL)) == 1
    (cgroup / "cgroup.controllers").write_text("cpu io memory\n")
    assert advice(roots, [], ALL) == []


def test_capabilities_of_a_status_file() -> None:
    assert capabilities("Name:\tx\nCapEff:\t0000000000800000\n") == 1 << 23
    assert capabilities("Name:\tx\n") == 0


def test_own_privileges_are_those_of_this_process() -> None:
    assert current_privileges().root is (os.geteuid() == 0)


def test_a_collector_without_its_native_library_gets_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inventories, "load", lambda: UNBUILT)
    first = advice(Roots(), [], ALL)[0]
    assert first.missing == UNBUILT.unavailable
    assert "compiler" in first.remedy
