"""The C part of the ledger: sums of hand-made parts of CPUs, and the compiled programs."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

import reveal_collector.native
from reveal_collector import native
from reveal_collector.ledger.programs import State, Totals, declared
from support.ledger_maps import SECOND, Cpu, summed

HERE = Path(reveal_collector.native.__file__).parent / "bpf"
A, B = 3, 4  # slots, and indices of the matrix
IDLE = 2

compiled = pytest.mark.skipif(native.load().library is None, reason="the C parts are not built")


@compiled
def test_the_layouts_are_those_of_c() -> None:
    library = native.load().library
    assert library is not None
    calls = declared(library)
    assert calls["reveal_ledger_cpu_bytes"]() == ctypes.sizeof(Cpu)
    assert calls["reveal_ledger_totals_bytes"]() == ctypes.sizeof(Totals)


@compiled
def test_an_interval_counts_as_it_passes() -> None:
    cpu = Cpu()
    cpu.enter(A, State.IO, 10 * SECOND)
    seconds = [summed([cpu], now * SECOND).spent[A][State.IO] for now in (10, 11, 12)]
    assert seconds == [0, SECOND, 2 * SECOND]
    cpu.leave(A, State.IO, 13 * SECOND)
    assert summed([cpu], 20 * SECOND).spent[A][State.IO] == 3 * SECOND


@compiled
def test_a_thread_that_leaves_on_another_cpu_is_counted_once() -> None:
    there, here = Cpu(), Cpu()
    there.enter(A, State.SLEEP, 1 * SECOND)
    here.leave(A, State.SLEEP, 4 * SECOND)
    here.enter(A, State.WAIT, 4 * SECOND)
    sums = summed([there, here], 6 * SECOND)
    assert sums.spent[A][State.SLEEP] == 3 * SECOND
    assert sums.spent[A][State.WAIT] == 2 * SECOND


@compiled
def test_times_of_a_long_uptime_do_not_overflow() -> None:
    uptime = 400 * 86_400 * SECOND
    cpu = Cpu()
    for _ in range(5000):
        cpu.enter(A, State.SLEEP, uptime)
    assert summed([cpu], uptime + SECOND).spent[A][State.SLEEP] == 5000 * SECOND


@compiled
def test_who_runs_and_who_waits_count_since_the_last_switch() -> None:
    cpu = Cpu(last=5 * SECOND, slot=B, busy=B)
    cpu.nwait[A] = 2
    cpu.enter(A, State.WAIT, 5 * SECOND)
    cpu.enter(A, State.WAIT, 5 * SECOND)
    sums = summed([cpu], 6 * SECOND)
    assert sums.spent[B][State.RUN] == SECOND
    assert sums.waited[A][B] == 2 * SECOND == sums.spent[A][State.WAIT]


@compiled
def test_a_thread_that_reclaims_memory_does_not_run() -> None:
    cpu = Cpu(last=5 * SECOND, slot=A, busy=A, stalled=1)
    sums = summed([cpu], 6 * SECOND)
    assert (sums.spent[A][State.RUN], sums.spent[A][State.RECLAIM]) == (0, SECOND)


@compiled
def test_a_cpu_that_is_offline_or_never_was_online_adds_nothing_to_subjects() -> None:
    offline = Cpu(last=1 * SECOND, slot=IDLE, busy=IDLE)
    never = Cpu()
    sums = summed([offline, never], 100 * SECOND)
    assert not any(sums.spent[A])
    assert sums.spent[IDLE][State.RUN] == 99 * SECOND
    assert not any(sums.waited[A])


@compiled
def test_a_part_in_the_middle_of_a_change_is_not_read() -> None:
    """Its count may be there without its base, which is off by the time since the boot."""
    cpu = Cpu(begun=7, ended=6)
    cpu.n[A][State.SLEEP] = 1
    with pytest.raises(BlockingIOError):
        summed([cpu], 1000 * SECOND)
    cpu.enter(A, State.SLEEP, 999 * SECOND)
    cpu.n[A][State.SLEEP], cpu.ended = 1, 7
    assert summed([cpu], 1000 * SECOND).spent[A][State.SLEEP] == SECOND


@compiled
def test_only_slots_in_use_are_read() -> None:
    cpu = Cpu()
    cpu.enter(A, State.SLEEP, 0)
    assert summed([cpu], SECOND, extent=(A, A)).spent[A][State.SLEEP] == 0
    assert summed([cpu], SECOND, extent=(B, B)).spent[A][State.SLEEP] == SECOND


def test_the_compiled_programs_are_of_these_sources() -> None:
    from reveal_collector.native.bpf import build

    assert build.is_current(), "run `make ledger`"


def test_the_programs_name_their_licence() -> None:
    for name in ("ledger.bpf.c", "ledger.h", "kernel.h"):
        text = (HERE / name).read_text()
        assert "SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)" in text
    notice = (HERE.parents[3] / "NOTICE").read_text()
    assert "native/bpf" in notice
