"""Values for people: time per second is a share, or seconds a second where it is a sum."""

from __future__ import annotations

import pytest

from reveal_analyzer.formatting import amount, list_some, steps_of
from reveal_contract import catalogue


@pytest.mark.parametrize(
    ("metric", "feature", "instance", "value", "text"),
    [
        ("cpu.pressure.some", "mean", "", 3.8e8, "38 %"),
        ("cpu.subject.throttled_time", "sum_values", "", 1.77e9, "1.77 s/s"),
        ("cpu.subject.throttled_time", "sum_values", "", 0.0, "0 s/s"),
        ("cpu.run_delay", "maximum", "", 12e9, "12 s/s"),
        ("cpu.softirq", "mean", "", 2.5e9, "2.5 s/s"),
        ("cpu.softirq", "maximum", "", 9.5e8, "95 %"),
        ("cpu.busy", "mean", "", 1.5e9, "150 %"),
        ("storage.disk.read_time", "mean", "vda", 4e9, "4 s/s"),
        ("storage.disk.busy_time", "mean", "vda", 1e9, "100 %"),
        ("storage.disk.await", "mean", "vda", 4e8, "400 ms"),
        ("memory.cached", "mean_change", "", -3e8, "-286 MiB/s"),
        ("memory.cached", "mean", "", 3e8, "286 MiB"),
        ("cpu.context_switches", "mean", "", 54000, "54 k/s"),
        ("cpu.interrupts.external", "mean", "", 54000, "54 k/s"),
        ("cpu.stalled_subjects", "mean", "", 1, "1"),
        ("gpu.pcie.width", "mean", "0", 8, "8"),
        ("gpu.contention", "mean", "0", 49.3, "49.3 %"),
    ],
)
def test_an_amount_has_its_unit(
    metric: str, feature: str, instance: str, value: float, text: str
) -> None:
    assert amount(catalogue.find(metric), feature, instance, value) == text


@pytest.mark.parametrize("value", [0.04, 7.0, 4300.0, 2.5e6, 8.1e8, 3.7e9, 5.5e12])
@pytest.mark.parametrize("feature", ["mean", "mean_change", "maximum", "sum_values"])
def test_steps_give_the_same_unit_as_an_amount(feature: str, value: float) -> None:
    for metric in catalogue.rows():
        steps = steps_of(metric, feature, "")
        size, text = next((step for step in steps if value >= step[0]), steps[-1])
        written = amount(metric, feature, "", value)
        assert written.endswith(text), (metric.name, written, text)
        number = float(written.removesuffix(text))
        assert number == pytest.approx(value / size, rel=0.51 if "%" in text else 0.01)


def test_a_list_names_the_first_and_how_many_more_there_are() -> None:
    assert list_some(["a", "b"], "columns", 2) == "a, b"
    assert list_some(["a", "b", "c"], "columns", 2) == "a, b and 1 more columns"
    assert list_some(["a", "b", "c"], most=1) == "a and 2 more"
