"""What the collector costs its node: bytes of both encoders alike, modules loaded, CPU kept."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from reveal_collector import native
from reveal_collector.collector import Collector
from reveal_collector.readers.raw_slice import RawSlice, SliceOrigin
from reveal_collector.sampling import cpu_budget
from reveal_collector.shipping.native_encoder import NativeEncoder
from reveal_collector.shipping.numpy_encoder import NumpyEncoder
from reveal_collector.shipping.sinks import EncodedSlice, SinkHealth, StatusProvider
from reveal_contract.metric import Lane
from reveal_contract.settings import CollectorSettings
from reveal_contract.wire import decode
from support.polling import wait_until

SETTINGS = CollectorSettings("n1", "", exclude=("process-groups", "filesystems"))


class Kept:
    """A sink that keeps what is shipped."""

    nonblocking = True

    def __init__(self) -> None:
        self.shipped: list[EncodedSlice] = []

    def start(self, report: StatusProvider) -> None:
        """Nobody asks."""

    def put(self, shipment: EncodedSlice) -> None:
        self.shipped.append(shipment)

    def health(self) -> SinkHealth:
        return SinkHealth(len(self.shipped))

    def close(self, timeout: float) -> None:
        """Nothing to close."""


@pytest.fixture
def sink() -> Kept:
    return Kept()


@pytest.fixture
def run(sink: Kept) -> Iterator[Callable[[CollectorSettings], Collector]]:
    started: list[Collector] = []

    def start(settings: CollectorSettings) -> Collector:
        started.append(Collector(settings, [sink]))
        started[-1].start()
        return started[-1]

    yield start
    for collector in started:
        collector.stop()


@pytest.mark.skipif(native.load().library is None, reason="the native library is not built")
def test_both_encoders_give_the_same_bytes_of_this_host(
    run: Callable[[CollectorSettings], Collector], sink: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    raws: list[RawSlice] = []
    take = Collector._receive

    def keep(self: Collector, raw: RawSlice) -> None:
        raws.append(raw)
        take(self, raw)

    monkeypatch.setattr(Collector, "_receive", keep)
    collector = run(SETTINGS)
    wait_until(lambda: len(sink.shipped) >= 3)
    collector.stop()
    library = native.load().library
    assert library is not None
    origin = SliceOrigin("n1", sink.shipped[0].boot, 100_000)
    ours, reference = NativeEncoder(library, origin), NumpyEncoder(origin)
    for raw, shipment in zip(raws, sink.shipped, strict=True):
        expected = reference.encode(raw)
        assert ours.encode(raw) == expected == shipment.data


@pytest.mark.skipif(native.load().library is None, reason="the native library is not built")
def test_a_collector_loads_only_the_modules_its_node_needs() -> None:
    code = (
        "import sys;"
        "from reveal_collector.kernel_interfaces.memory_saving import defer_rare_imports;"
        "defer_rare_imports();"
        "import reveal_collector.command; print(*sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {
        "numpy", "pandas", "redis", "asyncio", "ssl", "hashlib", "prometheus_client", "pynvml",
        "subprocess", "http.client", "statistics", "decimal", "ast", "tokenize",
    }  # fmt: skip
    assert not heavy & set(result.stdout.split())


def test_deferred_modules_are_loaded_with_their_first_use() -> None:
    code = (
        "import sys;"
        "from reveal_collector.kernel_interfaces.memory_saving import defer_rare_imports;"
        "defer_rare_imports();"
        "import logging, traceback, inspect; assert 'tokenize' not in sys.modules;"
        "assert inspect.signature(lambda a: a).parameters.keys() == {'a'};"
        "from traceback import format_exception_only as shown; print(*shown(OSError(5)));"
        "\ntry: 1 / 0\nexcept ZeroDivisionError: logging.exception('told')"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "OSError: 5\n\n"
    assert "told\nTraceback (most recent call last):" in result.stderr
    assert result.stderr.endswith("ZeroDivisionError: division by zero\n")


def fallbacks(sink: Kept) -> int:
    """What the collector's own channel said last."""
    last = sink.shipped[-1]
    index = [channel.metric for channel in last.table.slow].index("own.fallbacks")
    return int(decode(last.data).slow[index])


class Driver:
    """A source that has a thread of its own, which used this CPU time."""

    driver_cpu_ns = 7_000_000_000


def test_the_budget_leaves_out_the_time_of_a_driver_that_has_a_limit_of_its_own(
    run: Callable[[CollectorSettings], Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = run(SETTINGS)
    used: list[int] = []
    monkeypatch.setattr(collector._budget, "update", lambda now, cpu, costs: used.append(cpu))
    collector._drivers = [Driver()]
    before = time.process_time_ns()
    collector._keep_budget()
    assert before <= used[-1] + Driver.driver_cpu_ns <= time.process_time_ns()


def test_an_exceeded_budget_takes_savings_reports_and_reverts_them(
    run: Callable[[CollectorSettings], Collector], sink: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_budget, "WINDOW_NS", 1_000_000_000)
    read = ("stat", "cgroup-cpu", "snmp6", "softnet", "subject-fine")
    collector = run(replace(SETTINGS, include=read, cpu_budget_millicores=1))
    wait_until(lambda: len(kept(collector)) >= 4)
    assert len(collector._pausable) == 1
    wait_until(lambda: all(source.paused for source in collector._pausable.values()))
    assert any("snmp6 and softnet are read every 10 s" in message for message in kept(collector))
    wait_until(lambda: lanes(collector)["snmp6"] is Lane.RARE)
    wait_until(lambda: fallbacks(sink) >= 3)

    monkeypatch.setattr(cpu_budget, "CALM_NS", 0)
    monkeypatch.setattr(cpu_budget, "HEADROOM", 1.0)
    collector._budget._millicores = 1000
    collector._budget._state = cpu_budget.BudgetState(len(kept(collector)), patience_ns=0)
    wait_until(lambda: not kept(collector))
    wait_until(lambda: lanes(collector)["snmp6"] is Lane.SLOW)
    # the sources follow the message
    wait_until(lambda: not any(source.paused for source in collector._pausable.values()))
    assert collector._budget.slowdown_factor == 1


def kept(collector: Collector) -> list[str]:
    return [message for message in collector.status().degraded if message.startswith("CPU budget")]


def lanes(collector: Collector) -> dict[str, Lane]:
    return {feed.source: feed.lane for feed in collector.status().feeds}
