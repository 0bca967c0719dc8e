"""GPU faults through the analyzer: what is found, and which subject is named."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.node import NodeAnalyzer
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingUpdate, Severity
from reveal_contract.metric import Lane, Subsystem
from reveal_contract.settings import AnalyzerSettings
from support.derived_metrics import derived
from support.synthetic_node import TABLE, Node

TRAIN, OTHER = "ml/train-0", "ml/notebook-0"
# values of a busy card; metrics that are not listed are 0
BUSY_CARD = {
    "gpu.utilization": 97.0, "gpu.memory.used": 60 * 2.0**30, "gpu.memory.total": 80 * 2.0**30,
    "gpu.power": 600.0, "gpu.power.limit": 700.0, "gpu.clock.sm": 1.9e9,
    "gpu.clock.maximum": 1.98e9, "gpu.pcie.width": 16.0, "gpu.pcie.width_maximum": 16.0,
    "gpu.nvlink.active_links": 18.0, "gpu.throttle.power_cap": 1.0,
}  # fmt: skip
_SILENT = (
    "gpu.lost", "gpu.xid.hardware", "gpu.xid.application", "gpu.xid.last",
    "gpu.ecc.uncorrected.volatile", "gpu.remapped_rows.pending", "gpu.remapped_rows.failure",
    "gpu.remapped_rows.uncorrected", "gpu.retired_pages.pending", "gpu.throttled_time.thermal",
    "gpu.throttled_time.power", "gpu.throttle.thermal_hardware", "gpu.throttle.power_brake",
    "gpu.pcie.replays", "gpu.nvlink.recovery_errors", "gpu.contention",
)  # fmt: skip


def _channel(metric: str, instance: str) -> Channel:
    row = catalogue.find(metric)
    return Channel(metric, instance, row.kind, 1.0, row.lane)


_CHANNELS = [_channel(metric, gpu) for gpu in "01" for metric in (*BUSY_CARD, *_SILENT)]
_CHANNELS += [_channel("gpu.subject.sm_utilization", subject) for subject in (TRAIN, OTHER)]
GPU_TABLE = ChannelTable(
    (*TABLE.fast, *(c for c in _CHANNELS if c.lane is Lane.FAST)),
    (*TABLE.slow, *(c for c in _CHANNELS if c.lane is Lane.SLOW)),
)
BUSY_CARDS = {f"{metric}{{{gpu}}}": value for gpu in "01" for metric, value in BUSY_CARD.items()}


def run(seconds: int, changed: dict[str, float], quiet: int = 30) -> list[FindingUpdate]:
    """Return the updates of some seconds that follow quiet seconds of two busy cards."""
    node = Node(GPU_TABLE)
    judge = NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    updates = []
    for second in range(quiet + seconds):
        now = BUSY_CARDS | (changed if second >= quiet else {})
        updates += judge.analyze(node.slice(now), node.table)
    return updates


def test_two_busy_cards_are_no_finding() -> None:
    assert run(150, {}) == []


@pytest.mark.parametrize(
    ("changed", "name", "severity"),
    [
        ({"gpu.lost{1}": 1}, "GPULost", Severity.CRITICAL),
        ({"gpu.xid.hardware{0}": 1, "gpu.xid.last{0}": 48}, "GPUError", Severity.CRITICAL),
        ({"gpu.xid.application{0}": 1}, "GPUProgramError", Severity.MEDIUM),
        ({"gpu.ecc.uncorrected.volatile{1}": 2}, "GPUUncorrectedECC", Severity.CRITICAL),
        ({"gpu.remapped_rows.pending{0}": 1}, "GPURowRemapPending", Severity.MEDIUM),
        ({"gpu.remapped_rows.failure{0}": 1, "gpu.remapped_rows.pending{0}": 1},
         "GPURowRemapFailed", Severity.CRITICAL),
        ({"gpu.retired_pages.pending{0}": 1}, "GPUPageRetirementPending", Severity.MEDIUM),
        ({"gpu.throttled_time.thermal{0}": 4e8, "gpu.clock.sm{0}": 1.2e9},
         "GPUThermalThrottling", Severity.HIGH),
        ({"gpu.throttle.thermal_hardware{1}": 1}, "GPUThermalSlowdown", Severity.HIGH),
        ({"gpu.throttle.power_brake{1}": 1, "gpu.clock.sm{1}": 9e8}, "GPUPowerBrake",
         Severity.HIGH),
        ({"gpu.pcie.width{1}": 4}, "GPUPCIeNarrow", Severity.HIGH),
        ({"gpu.pcie.replays{0}": 300}, "GPUPCIeErrors", Severity.MEDIUM),
        ({"gpu.nvlink.recovery_errors{0}": 2}, "GPULinkErrors", Severity.HIGH),
    ],
)  # fmt: skip
def test_each_fault_is_found_and_named(
    changed: dict[str, float], name: str, severity: Severity
) -> None:
    *_, opened = run(10, changed)
    finding = opened.finding
    assert finding.subsystem is Subsystem.GPU
    assert finding.hypothesis is not None
    assert finding.hypothesis.name == name
    assert finding.severity.rank >= severity.rank
    evidence = finding.evidence[0]
    assert f"{evidence.metric}{{{evidence.instance}}}" in changed


def test_a_gpu_that_was_lost_before_the_start_is_found_immediately() -> None:
    first, *_ = run(3, {"gpu.lost{1}": 1}, quiet=0)
    assert first.finding.hypothesis is not None
    assert first.finding.hypothesis.name == "GPULost"
    assert first.finding.severity is Severity.CRITICAL


def test_a_narrow_link_of_an_idle_card_is_no_finding() -> None:
    idle = {f"gpu.utilization{{{gpu}}}": 0.0 for gpu in "01"}
    assert run(20, {"gpu.pcie.width{1}": 4.0} | idle, quiet=0) == []


def test_heat_is_reported_as_a_share_of_the_time() -> None:
    *_, opened = run(10, {"gpu.throttled_time.thermal{0}": 4e8})
    assert opened.finding.claim.startswith("A GPU was throttled because of heat 40 % of the time")


def test_the_subject_whose_work_fell_is_named() -> None:
    train = f"gpu.subject.sm_utilization{{{TRAIN}}}"
    BUSY_CARDS[train] = 95.0
    try:
        (opened, *_) = run(3, {"gpu.xid.hardware{0}": 1, train: 0.0}, quiet=70)
    finally:
        del BUSY_CARDS[train]
    assert opened.finding.subjects[0].name == TRAIN


def test_a_card_that_reaches_its_power_limit_as_it_warms_up_is_no_finding() -> None:
    limited = {"gpu.throttled_time.power{0}": 1e9, "gpu.power{0}": 699.0, "gpu.clock.sm{0}": 1.88e9}
    assert run(60, limited, quiet=70) == []


def test_a_power_limit_that_costs_much_of_the_clock_is_found() -> None:
    limited = {
        "gpu.throttled_time.power{0}": 1e9, "gpu.power{0}": 400.0, "gpu.power.limit{0}": 400.0,
        "gpu.clock.sm{0}": 1.3e9,
    }  # fmt: skip
    *_, opened = run(10, limited, quiet=70)
    assert opened.finding.hypothesis is not None
    assert opened.finding.hypothesis.name == "GPUPowerCapped"


def test_a_program_that_takes_half_of_a_card_from_a_job_is_found_and_named() -> None:
    def use(job: float, other: float) -> dict[str, float]:
        return {f"gpu.subject.sm_utilization{{{TRAIN}}}": job,
                f"gpu.subject.sm_utilization{{{OTHER}}}": other}  # fmt: skip

    alone, beside = use(98.0, 0.0), use(51.0, 49.0) | {"gpu.contention{0}": 49.0}
    node, judge = Node(GPU_TABLE), NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    updates: list[FindingUpdate] = []
    for second in range(80):
        now = BUSY_CARDS | (alone if second < 70 else beside)
        updates += judge.analyze(node.slice(now), node.table)
    finding = updates[-1].finding
    assert finding.claim == (
        "Programs wait for each other on a GPU: 49 % of its time is taken from the one that uses"
        f" most ({OTHER})"
    )
    assert finding.hypothesis is not None and finding.hypothesis.name == "GPUShared"
    assert [subject.name for subject in finding.subjects] == [OTHER]
    assert finding.severity.rank >= Severity.HIGH.rank


def of_card(changed: dict[str, float]) -> dict[str, float]:
    """Return the ratios of a card."""
    card = [channel for channel in _CHANNELS if channel.instance == "0"]
    values = BUSY_CARDS | changed
    ratios = derived(card, (values.get(channel.label, 0.0) for channel in card))
    return {label.removesuffix("{0}"): value for label, value in ratios.items()}


def test_quotients_of_a_card() -> None:
    busy = of_card({"gpu.throttled_time.power{0}": 9e8, "gpu.throttled_time.thermal{0}": 2e8})
    assert busy["gpu.memory.share"] == pytest.approx(750_000)
    assert busy["gpu.power.share"] == pytest.approx(857_142.9)
    assert busy["gpu.clock_deficit"] == pytest.approx(40_404.04)
    assert busy["gpu.throttled_share"] == pytest.approx(200_000)


def test_a_quotient_of_nothing_is_missing() -> None:
    idle = of_card({"gpu.utilization{0}": 3.0, "gpu.power.limit{0}": 0.0})
    assert np.isnan(idle["gpu.clock_deficit"])
    assert np.isnan(idle["gpu.power.share"])
    lost = of_card({"gpu.utilization{0}": float("nan"), "gpu.memory.total{0}": float("nan")})
    assert np.isnan(lost["gpu.clock_deficit"])
    assert np.isnan(lost["gpu.memory.share"])
