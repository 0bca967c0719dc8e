"""Losses: who counts as a victim, and of whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.ledger.accounts import AccountReader
from reveal_analyzer.ledger.entitlement import ShareTree
from reveal_analyzer.ledger.losses import BEGIN, losses
from reveal_contract import ledger
from reveal_contract.cpu_shares import EQUAL_SHARES, CpuGroup, CpuMember, CpuShares
from reveal_contract.ledger import Pair
from support.ledger_node import Times, ledger_node, ledger_values

JOB, HOG, BUILD = "/job", "/hog", "/build"


def found(
    times: Mapping[str, Times],
    metric: str = ledger.LOST_CPU,
    cpus: float = 2,
    shares: CpuShares = EQUAL_SHARES,
) -> dict[Pair, float]:
    node = ledger_node(*times)
    second = Deriver().second(node.slice(ledger_values(times)), node.table)
    accounts = AccountReader().read(second)
    assert accounts is not None
    tree = ShareTree.of(accounts.layout.subjects, shares)
    lost = losses(accounts, lambda: tree, cpus, BEGIN._replace(share=0.03))
    return {loss.pair: loss.share for loss in lost[metric]}


def test_the_share_is_of_the_time_that_the_victim_desired() -> None:
    shares = found({JOB: Times(run=0.3, cpu={HOG: 0.3}), HOG: Times(run=1.7, threads=2)})
    assert shares == {Pair(JOB, HOG): pytest.approx(0.5)}


def test_who_got_its_share_is_no_victim() -> None:
    # six compilers on two CPUs, beside a job of one thread: both run one CPU
    times = {
        JOB: Times(run=1.0),
        BUILD: Times(run=1.0, cpu={JOB: 4.0}, others={ledger.WAIT_SELF: 1.0}, threads=6),
    }
    assert found(times) == {}


@pytest.mark.parametrize(("lost", "count"), [(0.048, 0), (0.052, 1)])
@pytest.mark.parametrize("metric", ledger.PAIRS)
def test_who_lost_less_than_50_ms_a_second_is_no_victim(
    metric: str, lost: float, count: int
) -> None:
    taken = {HOG: lost}
    job = Times(run=0.06, cpu=taken) if metric == ledger.LOST_CPU else Times(run=0.06, disk=taken)
    crowd = {HOG: Times(run=1.5, threads=2), BUILD: Times(run=0.4, cpu={HOG: 1.6}, threads=2)}
    pairs = found({JOB: job, **crowd}, metric)
    assert sum(pair.victim == JOB for pair in pairs) == count


def test_what_a_victim_lost_is_summed_over_all_who_are_to_blame() -> None:
    job = Times(run=0.3, cpu={HOG: 0.03, BUILD: 0.03})
    crowd = {HOG: Times(run=1.1, threads=2), BUILD: Times(run=1.1, threads=6)}
    assert found({JOB: job, **crowd}).keys() == {Pair(JOB, HOG), Pair(JOB, BUILD)}


def test_neither_the_kernel_nor_the_small_subjects_are_culprits() -> None:
    taken = {ledger.KERNEL: 0.3, ledger.OTHER: 0.2}
    times = {
        JOB: Times(run=0.4, cpu=taken),
        ledger.KERNEL: Times(run=1),
        ledger.OTHER: Times(run=0.6),
    }
    assert found(times) == {}


def test_a_wait_for_storage_needs_no_shortfall_of_cpu_time() -> None:
    times = {JOB: Times(run=0.1, disk={HOG: 0.6}), HOG: Times(run=0.1)}
    assert found(times, ledger.LOST_DISK) == {Pair(JOB, HOG): pytest.approx(0.6 / 0.7)}


def test_who_ran_no_more_than_its_share_is_not_to_blame_beside_who_did() -> None:
    times = {
        JOB: Times(run=0.3, cpu={HOG: 0.6, BUILD: 0.1}),
        HOG: Times(run=1.5, threads=2),
        BUILD: Times(run=0.2, cpu={HOG: 0.3}),
    }
    assert found(times).keys() == {Pair(JOB, HOG), Pair(BUILD, HOG)}


def test_who_ran_a_little_above_a_small_share_is_not_to_blame() -> None:
    """Its quota holds it: the others miss far more than it ran above its share."""
    light = CpuShares((), (CpuMember(BUILD, weight=120),))
    times = {
        JOB: Times(run=0.5, cpu={HOG: 0.4, BUILD: 0.1}),
        HOG: Times(run=1.35, cpu={BUILD: 0.1}, threads=2),
        BUILD: Times(run=0.15, cpu={HOG: 0.5}),
    }
    assert found(times, shares=light).keys() == {Pair(JOB, HOG)}


def test_two_that_are_bound_to_a_single_cpu_take_from_each_other() -> None:
    times = {JOB: Times(run=0.5, cpu={HOG: 0.5}), HOG: Times(run=0.5, cpu={JOB: 0.5})}
    assert found(times).keys() == {Pair(JOB, HOG), Pair(HOG, JOB)}


@pytest.mark.parametrize(("lost", "count"), [(0.1, 0), (0.2, 1)])
def test_a_short_overlap_with_who_ran_within_its_share_is_no_loss(lost: float, count: int) -> None:
    times = {JOB: Times(run=1 - lost, cpu={HOG: lost}), HOG: Times(run=0.3)}
    assert len(found(times)) == count


@pytest.mark.parametrize(("run", "count"), [(0.27, 0), (0.33, 1)])
def test_a_part_of_a_little_is_no_loss_to_who_ran_within_its_share(run: float, count: int) -> None:
    """Threads that wake often wait a quarter of their time, also beside an idle CPU."""
    times = {JOB: Times(run=run, cpu={HOG: run / 3}), HOG: Times(run=0.9)}
    assert len(found(times)) == count


def test_a_build_a_little_below_its_share_is_no_victim_of_who_ran_within_its_own() -> None:
    """Its many threads wait long behind a job that needs less than a CPU, and for each other."""
    build = Times(run=1.45, cpu={JOB: 0.95}, others={ledger.WAIT_SELF: 3.6}, threads=6)
    times = {JOB: Times(run=0.4), BUILD: build}
    assert found(times) == {}
    assert found({**times, BUILD: replace(build, run=1.3)}) == {}
    few = replace(build, run=1.3, others={ledger.WAIT_SELF: 0.6}, threads=3)
    assert found({**times, BUILD: few}) == {Pair(BUILD, JOB): pytest.approx(0.95 / 2.85)}


def test_who_weighs_more_and_ran_within_its_share_is_not_to_blame() -> None:
    times = {JOB: Times(run=0.6, cpu={HOG: 0.4}), HOG: Times(run=0.6, cpu={JOB: 0.2})}
    idle = CpuShares((), (CpuMember(JOB, weight=3),))
    pods = CpuGroup("/pods", weight=3000), CpuGroup("/pods/hog", "/pods", weight=20)
    heavier = CpuShares(
        (*pods, CpuGroup(JOB, weight=100)), (CpuMember(HOG, "/pods/hog"), CpuMember(JOB, JOB))
    )
    assert found(times).keys() == {Pair(JOB, HOG), Pair(HOG, JOB)}
    assert found(times, shares=idle).keys() == {Pair(HOG, JOB)}
    assert found(times, shares=heavier).keys() == {Pair(HOG, JOB)}


def test_who_is_entitled_to_nearly_nothing_is_no_victim() -> None:
    idle = CpuShares((), (CpuMember(BUILD, weight=15),))
    times = {
        JOB: Times(run=1.0),
        HOG: Times(run=1.0),
        BUILD: Times(run=0.01, cpu={JOB: 0.5, HOG: 0.49}),
    }
    assert found(times, shares=idle) == {}
    assert found(times).keys() == {Pair(BUILD, JOB), Pair(BUILD, HOG)}


def on_cpu_0(job: float, hog: float) -> CpuShares:
    """Return two groups with these weights, bound to the first CPU."""
    groups = CpuGroup(JOB, weight=job), CpuGroup(HOG, weight=hog)
    return CpuShares(groups, (CpuMember(JOB, JOB, cpus="0"), CpuMember(HOG, HOG, cpus="0")))


def test_who_got_the_little_that_its_weight_gives_it_is_no_victim() -> None:
    times = {JOB: Times(run=0.2, cpu={HOG: 0.8}), HOG: Times(run=0.8, cpu={JOB: 0.2})}
    assert found(times, shares=on_cpu_0(1024, 4096)) == {}


def test_who_got_less_than_its_weight_gives_it_is_a_victim() -> None:
    times = {JOB: Times(run=0.2, cpu={HOG: 0.8}), HOG: Times(run=0.8, cpu={JOB: 0.2})}
    assert found(times, shares=on_cpu_0(4096, 1024)).keys() == {Pair(JOB, HOG)}


def test_a_niced_build_is_no_victim_of_a_job_but_can_be_its_culprit() -> None:
    niced = CpuShares((), (CpuMember(BUILD, weight=15),))
    waits = {
        JOB: Times(run=1.9, threads=2),
        BUILD: Times(run=0.1, cpu={JOB: 1.9}, threads=2),
    }
    takes = {
        JOB: Times(run=1.0, cpu={BUILD: 1.0}, threads=2),
        BUILD: Times(run=1.0, cpu={JOB: 1.0}, threads=2),
    }
    assert found(waits, shares=niced) == {}
    assert found(takes, shares=niced).keys() == {Pair(JOB, BUILD)}
    assert found(takes) == {}
    assert found(waits).keys() == {Pair(BUILD, JOB)}
