"""A host of 224 CPUs with a single busy CPU: from its files to the signature of the finding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.hypotheses.bound_signature import ConditionInputs
from reveal_analyzer.hypotheses.loader import load
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatcher
from reveal_analyzer.live.scaling import _capacity
from reveal_collector.readers.raw_slice import RawSlice, SliceOrigin
from reveal_collector.readers.source import Roots, Source
from reveal_collector.sampling.sampler import Sampler
from reveal_collector.shipping.native_encoder import encoder_of
from reveal_collector.sources import online, psi, softirqs, stat
from reveal_contract.catalogue import UnknownMetricError, find
from reveal_contract.metric import Kind, Lane, Scope
from reveal_contract.wire import decode, gauges
from support import big_host

CPUS = tuple(range(224))
BUSY = 17
TICKS = 10  # of 10 ms each, in 100 ms


class Working:
    """Time passes by sleeping; every 100 ms the busy CPU, and it alone, ran a program."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.now = 60_000_000_000
        self.passed = 0
        self.show()

    def monotonic(self) -> int:
        return self.now

    def wall(self) -> int:
        return self.now

    def suspended(self) -> int:
        return 0

    def sleep_until(self, monotonic_ns: int) -> None:
        while self.now + 100_000_000 <= monotonic_ns:
            self.now += 100_000_000
            self.passed += 1
            self.show()
        self.now = max(self.now, monotonic_ns)

    def show(self) -> None:
        done = self.passed * TICKS
        rows = [
            # a fifth of the busy CPU's time is stolen
            f"cpu{cpu} {done * 4 // 5 if cpu == BUSY else 0} 0 0 {0 if cpu == BUSY else done} 0 0"
            f" 0 {done // 5 if cpu == BUSY else 0}"
            for cpu in CPUS
        ]
        total = f"cpu  {done * 4 // 5} 0 0 {done * (len(CPUS) - 1)} 0 0 0 {done // 5}"
        (self._root / "proc/stat").write_text("\n".join([total, *rows, "ctxt 1", ""]))
        pressure = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={self.passed * 90_000}\n"
        (self._root / "proc/pressure/cpu").write_text(pressure)


@pytest.fixture
def seconds(tmp_path: Path) -> Sequence[Second]:
    """Return four seconds as the analyzer has them."""
    roots = big_host.write(tmp_path, CPUS)
    (tmp_path / "proc/pressure").mkdir(exist_ok=True)
    (tmp_path / "sys/devices/system/cpu/online").write_text("0-223\n")
    clock = Working(tmp_path)
    taken: list[RawSlice] = []
    sampler = Sampler("n1", opened(roots), taken.append, clock=clock)
    due = sampler.first_due()
    for _ in range(4):
        due = sampler.take_slice(due)
    encoder, deriver = encoder_of(SliceOrigin("n1", bytes(16), 100_000)), Deriver()
    return [
        deriver.second(decode(encoder.encode(raw), gauges(raw.table)), raw.table) for raw in taken
    ]


def opened(roots: Roots) -> list[Source]:
    built = [each for module in (stat, psi, softirqs, online) for each in module.sources(roots)]
    for source in built:
        source.open()
    return built


def value(second: Second, label: str) -> float:
    return float(second.values[second.plan.labels.index(label)])


def test_the_busiest_cpu_is_found(seconds: Sequence[Second]) -> None:
    last = seconds[-1]
    assert value(last, "cpu.busiest__mean") == pytest.approx(1e9)
    assert value(last, "cpu.busy__mean") == pytest.approx(8e8)
    assert value(last, "cpu.imbalance__mean") == pytest.approx(1e9 * 223 / 224)
    assert value(last, "cpu.percpu.user.argmax__mean") == BUSY
    assert not any(
        column.metric.scope is Scope.CPU and column.instance for column in last.plan.columns
    )


def test_the_number_of_cpus_is_known(seconds: Sequence[Second]) -> None:
    assert _capacity(seconds[-1])[1] == len(CPUS)


def test_a_single_overloaded_cpu_is_certain(seconds: Sequence[Second]) -> None:
    rule = next(rule for rule in load() if rule.name == "OneCPUOverloaded")
    signatures = SignatureMatcher([rule])
    for second in seconds[1:]:
        history = np.zeros(second.values.size)
        present = signatures.match(second.plan, ConditionInputs(second.values, history, len(CPUS)))[
            1
        ]
        assert [hit.rule.name for hit in present] == ["OneCPUOverloaded"]


@pytest.mark.parametrize(
    ("name", "scope", "kind"),
    [
        ("cpu.percpu.user.max", Scope.NODE, Kind.COUNTER),
        ("cpu.percpu.busy.spread", Scope.NODE, Kind.COUNTER),
        ("cpu.percpu.user.argmax", Scope.NODE, Kind.STATE),
        ("cpu.numa.user", Scope.NUMA, Kind.COUNTER),
        ("network.percpu.softirqs.max", Scope.NODE, Kind.COUNTER),
        ("network.numa.softnet.dropped", Scope.NUMA, Kind.COUNTER),
        ("cpu.percpu.interrupts.max", Scope.NODE, Kind.COUNTER),
    ],
)
def test_folded_metrics_are_catalogued(name: str, scope: Scope, kind: Kind) -> None:
    row = find(name)
    assert (row.scope, row.kind) == (scope, kind)
    assert row.lane in (Lane.FAST, Lane.SLOW)


@pytest.mark.parametrize("name", ["cpu.percpu.ipc.max", "cpu.percpu.user.least"])
def test_what_is_no_metric_of_cpus_is_not_folded(name: str) -> None:
    with pytest.raises(UnknownMetricError):
        find(name)
