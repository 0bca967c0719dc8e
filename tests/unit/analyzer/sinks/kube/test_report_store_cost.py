"""The report store: what a finding costs while its analyzer reports no change."""

from __future__ import annotations

import pytest

from reveal_contract.costs import Cost
from reveal_contract.finding import Severity
from support.finding_factory import changed, opened
from support.report_store_harness import StoreHarness


def test_a_refresh_counts_what_a_finding_costs_until_its_next_update() -> None:
    harness = StoreHarness()
    harness.update(opened(cost=Cost(8, 2.0, 0.01, 0.005, 0.015)))
    harness.run(900)
    hours = [each.finding.lost_gpu_hours for each in harness.written]
    assert hours == sorted(hours)
    assert hours[0] == 0.01
    assert hours[-1] == pytest.approx(0.01 + 2.0 * 600 / 3600, abs=0.02)


def test_an_update_replaces_what_was_counted_since() -> None:
    harness = StoreHarness()
    harness.update(opened(cost=Cost(8, 2.0, 0.01, 0.005, 0.015)))
    harness.run(600)
    harness.update(changed(cost=Cost(8, 0.0, 0.5, 0.25, 0.75), severity=Severity.HIGH))
    harness.run(400)
    assert [each.finding.lost_gpu_hours for each in harness.written[-2:]] == [0.5, 0.5]


def test_a_finding_without_a_cost_has_none_after_a_refresh() -> None:
    harness = StoreHarness()
    harness.update(opened())
    harness.run(400)
    assert len(harness.written) == 2
    assert "cost" not in harness.written[-1].status


@pytest.mark.parametrize(("price", "amount"), [("2.50 USD", "4.50 USD"), ("2", "3.60"), ("", None)])
def test_reports_have_the_price_of_the_settings(price: str, amount: str | None) -> None:
    harness = StoreHarness(gpu_hour_price=price)
    harness.update(opened(cost=Cost(8, 0.9, 1.8, 1.2, 2.4)))
    [written] = harness.deliver()
    cost = written.status["cost"]
    assert (cost.get("price", ""), cost.get("amount")) == (price, amount)
