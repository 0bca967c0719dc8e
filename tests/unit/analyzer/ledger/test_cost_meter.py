"""GPU-hours of findings: which jobs count, at which rate, and for how long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reveal_analyzer.ledger import cost_meter as module
from reveal_analyzer.ledger.cost_meter import CostMeter, lost_share
from reveal_analyzer.state.tree import StateError
from reveal_contract.costs import Cost
from reveal_contract.finding import FindingChange, FindingUpdate, Impact, JobLoss, State
from reveal_contract.subjects import Identity, SubjectKind
from reveal_contract.time_units import NS_PER_HOUR
from support.finding_factory import finding

BEGIN = 1_700_000_000 * 10**9
OPENED, CHANGED, RESOLVED = FindingChange.OPENED, FindingChange.CHANGED, FindingChange.RESOLVED
IMPACT = Impact("ml/train-0", 25.0, 100 / 9, 100 / 3, 1.0, 1.0, BEGIN, 30, "c", 90)


def pod(name: str, gpus: int, **given: Any) -> Identity:
    return Identity(f"ml/{name}", SubjectKind.POD, f"u-{name}", "ml", name, gpus=gpus, **given)


PODS = [pod("train-0", 8), pod("train-1", 4), pod("web", 0)]


class Metered:
    """A meter of a node with some pods, and updates of a finding that began at ``BEGIN``."""

    def __init__(self, *pods: Identity, recovered: bool = False) -> None:
        self.pods = {each.instance: each for each in pods or PODS}
        self.recovered = recovered
        self.last = finding()
        self.meter = CostMeter(lambda name, _: self.pods.get(name), lambda _: self.recovered)

    def cost(self, hours: float, change: FindingChange = CHANGED, **parts: Any) -> Cost | None:
        """Return what the finding has cost so many hours after its onset."""
        now_ns = BEGIN + round(hours * NS_PER_HOUR)
        times: dict[str, Any] = {"first_observed_ns": BEGIN, "last_observed_ns": now_ns}
        found = finding(**(times | parts))
        (update,) = self.meter.added([FindingUpdate(change, found)], now_ns)
        self.last = update.finding
        assert replace(self.last, cost=None, pod_costs=()) == found
        return self.last.cost

    def known(self, hours: float, change: FindingChange = CHANGED, **parts: Any) -> Cost:
        cost = self.cost(hours, change, **parts)
        assert cost is not None
        return cost

    def parts(self, hours: float, **parts: Any) -> dict[str, float]:
        """Return what each pod lost by then."""
        self.known(hours, **parts)
        return {each.name: each.lost_gpu_hours for each in self.last.pod_costs}


def amounts(cost: Cost) -> tuple[float, ...]:
    """Return hours, their least and their most."""
    return cost.lost_gpu_hours, cost.low, cost.high


def loss(name: str, percent: float) -> JobLoss:
    return JobLoss(name, percent, 60)


@pytest.mark.parametrize(
    ("slowdown", "share"), [(25.0, 0.2), (100.0, 0.5), (0.0, 0.0), (-50.0, 0.0)]
)
def test_a_slowdown_is_a_share_of_the_time(slowdown: float, share: float) -> None:
    assert lost_share(slowdown) == pytest.approx(share)


def test_a_job_with_longer_steps_loses_that_share_of_its_gpus_within_the_interval() -> None:
    cost = Metered().known(2.0, OPENED, impact=IMPACT)
    assert (cost.gpus, cost.lost_gpus) == (8, pytest.approx(1.6))
    assert amounts(cost) == pytest.approx((3.2, 1.6, 4.0))


def test_by_the_ledger_alone_a_gpu_may_have_lost_nothing() -> None:
    cost = Metered().known(1.0, lost_time=(loss("ml/train-1", 50.0),))
    assert (cost.gpus, cost.lost_gpus) == (4, pytest.approx(2.0))
    assert amounts(cost) == pytest.approx((2.0, 0.0, 2.0))


def test_each_pod_counts_once_and_by_its_steps_if_these_are_read() -> None:
    lost = (loss("ml/train-0", 90.0), loss("ml/train-1", 50.0), loss("ml/train-1", 10.0))
    cost = Metered().known(1.0, impact=IMPACT, lost_time=lost)
    assert (cost.gpus, cost.lost_gpus) == (12, pytest.approx(1.6 + 2.0))
    assert amounts(cost) == pytest.approx((3.6, 0.8, 2.0 + 2.0))


def test_a_container_has_the_gpus_of_its_pod() -> None:
    worker = Identity(
        "ml/train-0/worker", SubjectKind.CONTAINER, "c", "ml", "train-0", "worker", gpus=8
    )
    metered = Metered(worker, *PODS)
    impact = replace(IMPACT, subject=worker.instance)
    cost = metered.known(1.0, impact=impact, lost_time=(loss("ml/train-0", 90.0),))
    assert (cost.gpus, cost.lost_gpus) == (8, pytest.approx(1.6))


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"lost_time": (loss("ml/web", 50.0),)},
        {"lost_time": (loss("/cron.service", 50.0),)},
        {"impact": replace(IMPACT, slowdown_percent=-9.0, low_percent=-12.0, high_percent=-6.0)},
    ],
    ids=["nobody lost", "no GPU", "not a pod", "faster"],
)
def test_without_a_lost_gpu_there_is_no_cost(parts: dict[str, Any]) -> None:
    metered = Metered()
    assert metered.cost(1.0, **parts) is None
    assert metered.meter.save() == {"findings": {}}


def test_a_suspicion_costs_nothing() -> None:
    assert Metered().cost(1.0, FindingChange.SUSPECTED, impact=IMPACT) is None


def test_a_loss_that_becomes_known_late_counts_from_the_onset() -> None:
    metered = Metered()
    assert metered.cost(0.5, OPENED) is None
    assert metered.known(1.0, impact=IMPACT).lost_gpu_hours == pytest.approx(1.6)


BOTH = (loss("ml/train-0", 10.0), loss("ml/train-1", 50.0))


def test_each_pod_has_its_part_of_the_cost_whether_it_still_loses_or_not() -> None:
    metered = Metered()
    first = metered.parts(1.0, lost_time=BOTH)
    assert first == pytest.approx({"ml/train-1": 2.0, "ml/train-0": 0.8})
    metered.known(2.0, lost_time=BOTH[:1])
    later = metered.parts(4.0, lost_time=BOTH[:1])
    assert later == pytest.approx({"ml/train-1": 4.0, "ml/train-0": 0.8 * 4})
    assert metered.last.lost_gpu_hours == pytest.approx(sum(later.values()))


def test_the_pods_that_lost_most_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PODS", 1)
    metered = Metered()
    assert list(metered.parts(1.0, lost_time=BOTH)) == ["ml/train-1"]
    assert metered.parts(2.0, lost_time=BOTH) == pytest.approx({"ml/train-1": 4.0})
    assert metered.last.lost_gpu_hours == pytest.approx(5.6)  # all that lose are counted
    assert len(metered.meter.lost_gpus()) == 2


def test_a_rate_holds_until_the_next_update() -> None:
    metered = Metered()
    metered.known(1.0, impact=IMPACT)
    worse = metered.known(2.0, impact=replace(IMPACT, slowdown_percent=100.0, high_percent=100.0))
    assert (worse.lost_gpus, worse.lost_gpu_hours) == (pytest.approx(4.0), pytest.approx(3.2))
    later = metered.known(3.0, impact=IMPACT)
    assert amounts(later) == pytest.approx((3.2 + 4.0, 3 * 0.8, 2 * 2.0 + 4.0))


def test_an_update_without_time_and_a_clock_that_was_set_back_change_nothing() -> None:
    metered = Metered()
    first = metered.known(1.0, impact=IMPACT)
    assert metered.known(1.0, impact=IMPACT) == first
    assert metered.known(0.5, impact=IMPACT) == first
    assert metered.known(1.5, impact=IMPACT).lost_gpu_hours == pytest.approx(2.4)


def test_an_update_that_repeats_the_last_observation_counts_until_now() -> None:
    metered = Metered()
    metered.known(1.0, impact=IMPACT)
    cost = metered.known(2.0, impact=IMPACT, last_observed_ns=BEGIN)
    assert cost.lost_gpu_hours == pytest.approx(3.2)


def test_a_resolved_finding_counts_until_its_last_observation() -> None:
    metered = Metered()
    metered.known(1.0, impact=IMPACT)
    over = {"state": State.RESOLVED, "last_observed_ns": BEGIN + round(1.5 * NS_PER_HOUR)}
    assert metered.known(9.0, RESOLVED, impact=IMPACT, **over).lost_gpu_hours == pytest.approx(2.4)


def test_a_job_that_has_recovered_loses_nothing_more_whatever_the_ledger_shows() -> None:
    metered = Metered()
    metered.known(1.0, impact=IMPACT)
    metered.recovered = True
    lost = (loss("ml/train-0", 10.0),)
    assert metered.known(1.0, impact=IMPACT, lost_time=lost).lost_gpus == 0.0
    assert metered.known(9.0, impact=IMPACT, lost_time=lost).lost_gpu_hours == pytest.approx(1.6)


def test_a_pod_that_has_ended_loses_nothing_more() -> None:
    metered = Metered()
    metered.known(1.0, impact=IMPACT)
    metered.pods["ml/train-0"] = pod("train-0", 8, until_ns=BEGIN + NS_PER_HOUR)
    ended = metered.known(1.1, impact=IMPACT)
    assert (ended.gpus, ended.lost_gpus) == (0, 0.0)
    assert metered.known(9.0, impact=IMPACT).lost_gpu_hours == ended.lost_gpu_hours


def test_a_resolved_finding_has_its_whole_cost_and_is_forgotten() -> None:
    metered = Metered()
    metered.known(1.0, impact=IMPACT)
    over = metered.known(2.0, RESOLVED, impact=IMPACT, state=State.RESOLVED)
    assert over.lost_gpu_hours == pytest.approx(3.2)
    assert metered.meter.save() == {"findings": {}}


def test_each_pod_loses_gpus_by_the_finding_that_costs_it_most() -> None:
    metered = Metered()
    assert metered.meter.lost_gpus() == {}
    metered.known(1.0, identity="a", lost_time=(loss("ml/train-0", 50.0), loss("ml/train-1", 10.0)))
    metered.known(1.0, identity="b", lost_time=(loss("ml/train-0", 25.0), loss("ml/train-1", 20.0)))
    lost = {("ml", "train-0"): 4.0, ("ml", "train-1"): 0.8}
    assert metered.meter.lost_gpus() == pytest.approx(lost)
    metered.known(2.0, RESOLVED, identity="a", state=State.RESOLVED)
    assert metered.meter.lost_gpus()["ml", "train-0"] == pytest.approx(2.0)


def test_hours_go_on_after_a_restart() -> None:
    before, after = Metered(), Metered()
    before.known(1.0, impact=IMPACT)
    after.meter.restore(before.meter.save())
    assert after.known(2.0, impact=IMPACT) == before.known(2.0, impact=IMPACT)


def test_only_the_findings_that_were_updated_last_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MOST_FINDINGS", 2)
    metered = Metered()
    for name in ("a", "b", "a", "c"):
        found = finding(name, first_observed_ns=BEGIN, impact=IMPACT)
        metered.meter.added([FindingUpdate(CHANGED, found)], BEGIN)
    kept = metered.meter.save()["findings"]
    assert isinstance(kept, dict)
    assert list(kept) == ["a", "c"]


@pytest.mark.parametrize(
    "account",
    [1, {}, {"until_ns": "now"}, {"until_ns": 1, "rate": 8},
     {"until_ns": 1, "rate": {"gpus": 8, "lost": float("nan")}},
     {"until_ns": 1, "rate": {"gpus": -8}}, {"until_ns": 1, "rate": {}, "lost": -1.0},
     {"until_ns": 1, "rate": {}, "pods": [{"namespace": "ml", "name": "a", "hours": -1.0}]},
     {"until_ns": 1, "rate": {}, "pods": [{"name": "a"}]}],
)  # fmt: skip
def test_a_state_that_does_not_fit_is_refused(account: Any) -> None:
    with pytest.raises(StateError):
        Metered().meter.restore({"findings": {"cpu-1": account}})
