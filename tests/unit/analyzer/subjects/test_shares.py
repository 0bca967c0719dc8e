"""Shares of host counters: they add up, whatever the counters say."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.subjects.shares import host_indices, host_value, split
from reveal_contract.channels import Channel
from support.property_tests import examples

_names = st.sampled_from("abcdefgh")
_amounts = st.floats(0, 1e15, allow_nan=False)


@examples(400)
@given(
    st.dictionaries(_names, _amounts),
    st.dictionaries(_names, _names),
    st.one_of(_amounts, st.just(math.nan)),
)
def test_shares_and_the_rest_are_the_whole(
    values: dict[str, float], parents: dict[str, str], host: float
) -> None:
    shares = split(values, parents, host)
    assert shares.own.keys() == values.keys()
    assert all(0 <= shares.own[name] <= values[name] for name in values)
    assert shares.unattributed >= 0
    whole = math.fsum(shares.own.values()) + shares.unattributed
    assert math.isclose(whole, shares.total, rel_tol=1e-9, abs_tol=1e-6)
    assert math.isnan(host) or shares.total >= host
    assert sum(shares.percent(name) for name in values) <= 100.000001


def test_what_is_inside_another_counts_once() -> None:
    shares = split({"outer": 10.0, "inner": 6.0, "other": 3.0}, {"inner": "outer"}, 20.0)
    assert shares.own == {"outer": 4.0, "inner": 6.0, "other": 3.0}
    assert (shares.unattributed, shares.total) == (7.0, 20.0)
    assert shares.percent("inner") == 30.0


def test_a_coarser_host_clock_yields_to_the_subjects() -> None:
    shares = split({"a": 10.0, "b": 6.0}, {}, 12.0)
    assert (shares.unattributed, shares.total) == (0.0, 16.0)


def test_a_parent_that_is_not_counted_itself_is_passed_over() -> None:
    parents = {"inner": "middle", "middle": "outer"}
    assert split({"outer": 5.0, "inner": 5.0}, parents).own == {"outer": 0.0, "inner": 5.0}


def test_the_host_is_the_finest_counter_there_is() -> None:
    cpu = [(f"cpu.{name}", "") for name in ("user", "nice", "system", "irq", "softirq")]
    disks = [("cpu.user", "0"), ("storage.disk.reads", "sda"), ("storage.disk.reads", "sdb")]
    names = [*cpu, *disks, ("memory.mem_total", ""), ("memory.mem_free", "")]
    indices = host_indices([Channel(*name) for name in names])
    assert indices["cpu.subject.usage"] == (0, 1, 2, 3, 4)
    assert indices["storage.subject.reads"] == (6, 7)
    assert "storage.subject.writes" not in indices
    figures = {8: 100.0, 9: 30.0}
    used = host_value("memory.subject.usage", indices["memory.subject.usage"], figures.__getitem__)
    assert used == 70.0
    finer = host_indices([Channel(*name) for name in (*names, ("cpu.run_time", "0"))])
    assert finer["cpu.subject.usage"] == (10,)


def test_host_disks_that_repeat_others_are_left_out() -> None:
    disks = [("storage.disk.reads", name) for name in ("nvme0n1", "dm-0", "dm-1")]
    indices = host_indices([Channel(*name) for name in disks])
    assert indices["storage.subject.reads"] == (0,)
