"""GPU time of a node: which pods held GPUs for how long, and what of it they lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reveal_analyzer.ledger.gpu_time import GpuHours, GpuTime, PodName
from reveal_contract.subjects import Identity, SubjectKind
from reveal_contract.time_units import NS_PER_HOUR, NS_PER_SECOND

BEGIN = 1_700_000_000 * NS_PER_SECOND


def pod(name: str, gpus: int, namespace: str = "ml", **given: Any) -> Identity:
    return Identity(
        f"{namespace}/{name}", SubjectKind.POD, f"u-{name}", namespace, name, gpus=gpus, **given
    )


def hours(seconds: float, gpus: float) -> float:
    return pytest.approx(seconds * NS_PER_SECOND / NS_PER_HOUR * gpus)  # type: ignore[no-any-return]


class Counted:
    """The GPU time of a node from ``BEGIN`` on, with some pods and what they lose."""

    def __init__(self, *pods: Identity) -> None:
        self.pods = list(pods)
        self.lost: dict[PodName, float] = {}
        self._time = GpuTime(lambda: self.pods, lambda: self.lost)
        assert self.after(0) == {}

    def after(self, seconds: float) -> dict[str, GpuHours]:
        """Return what is counted so many seconds after the beginning."""
        return self._time.push(BEGIN + round(seconds * NS_PER_SECOND))


def test_pods_hold_their_gpus_and_lose_what_findings_cost() -> None:
    counted = Counted(pod("train-0", 8), pod("train-1", 4), pod("web", 0), pod("a", 1, "dev"))
    counted.lost = {("ml", "train-0"): 2.0}
    assert counted.after(10) == {
        "ml": (hours(10, 12), hours(10, 2)), "dev": (hours(10, 1), 0.0)
    }  # fmt: skip


def test_a_pod_loses_no_more_than_it_holds() -> None:
    counted = Counted(pod("train-0", 2))
    counted.lost = {("ml", "train-0"): 8.0}
    assert counted.after(10) == {"ml": (hours(10, 2), hours(10, 2))}


def test_a_pod_and_its_containers_count_once() -> None:
    whole = pod("train-0", 8)
    inside = replace(whole, instance="ml/train-0/main", kind=SubjectKind.CONTAINER, uid="c")
    assert Counted(inside, whole).after(10) == {"ml": (hours(10, 8), 0.0)}


def test_a_pod_that_has_ended_holds_nothing() -> None:
    counted = Counted(pod("train-0", 8, until_ns=BEGIN + 15 * NS_PER_SECOND))
    assert counted.after(10) == {"ml": (hours(10, 8), 0.0)}
    assert counted.after(20) == {}


def test_it_is_counted_every_ten_seconds_without_a_loss() -> None:
    counted = Counted(pod("train-0", 1))
    each = [counted.after(second) for second in range(1, 61)]
    assert sum(time["ml"].allocated for time in each if time) == hours(60, 1)
    assert sum(map(bool, each)) == 6


@pytest.mark.parametrize("second", [61, 86_400, -5])
def test_nothing_is_counted_of_a_gap_and_of_a_clock_that_was_set_back(second: float) -> None:
    counted = Counted(pod("train-0", 1))
    assert counted.after(second) == {}
    assert counted.after(second + 10) == {"ml": (hours(10, 1), 0.0)}
