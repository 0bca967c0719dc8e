"""GPUs: what each question to the driver costs, what all take, and whether the answers agree.

Needs an NVIDIA driver.  Prices are of calls a tenth of a second apart, as the collector makes
them: back to back the driver answers from warm caches.  Figures are compared with nvidia-smi's,
asked in between two reads of ours: one is right that lies between them, or on one of them.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import nvml_trace
from benchmark_report import Row, report
from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.nvml import devices, library
from reveal_collector.nvml.metric_queries import SCALES, Query, supported_queries
from reveal_collector.nvml.poller import NvmlPoller
from reveal_collector.nvml.snapshots import QUICK, STATE
from reveal_collector.readers.source import Roots

# nvidia-smi's column -> metric, and its unit in ours
COLUMNS = {
    "utilization.gpu": ("gpu.utilization", 1.0),
    "utilization.memory": ("gpu.memory.utilization", 1.0),
    "memory.used": ("gpu.memory.used", 2**20), "memory.total": ("gpu.memory.total", 2**20),
    "power.draw.instant": ("gpu.power", 1.0), "enforced.power.limit": ("gpu.power.limit", 1.0),
    "temperature.gpu": ("gpu.temperature", 1.0), "clocks.sm": ("gpu.clock.sm", 1e6),
    "clocks.mem": ("gpu.clock.memory", 1e6), "clocks.max.sm": ("gpu.clock.maximum", 1e6),
    "pcie.link.gen.current": ("gpu.pcie.generation", 1.0),
    "pcie.link.width.current": ("gpu.pcie.width", 1.0),
    "pcie.link.width.max": ("gpu.pcie.width_maximum", 1.0),
    "ecc.errors.corrected.volatile.total": ("gpu.ecc.corrected.volatile", 1.0),
    "ecc.errors.uncorrected.volatile.total": ("gpu.ecc.uncorrected.volatile", 1.0),
    "remapped_rows.correctable": ("gpu.remapped_rows.corrected", 1.0),
    "remapped_rows.uncorrectable": ("gpu.remapped_rows.uncorrected", 1.0),
}  # fmt: skip
# what moves between any two looks at it: how far apart is still the same (in our unit)
LOOSE = {"gpu.power": 30.0, "gpu.utilization": 10.0, "gpu.memory.utilization": 10.0,
         "gpu.temperature": 1.0, "gpu.clock.sm": 4.5e7, "gpu.memory.used": 4 * 2**20}  # fmt: skip


def prices(calls: int, pause_s: float) -> list[Row]:
    """Microseconds a call, of every query that the first GPU answers."""
    nvml = library.load()
    library.start(nvml)
    handle = devices.enumerate_gpus(nvml, Path("/sys"))[0].handle
    taken: dict[str, tuple[Query, list[int]]] = {
        query.name: (query, []) for query in supported_queries(nvml, handle)
    }
    for _ in range(calls):
        for query, spent in taken.values():
            began = time.perf_counter_ns()
            query.read(nvml, handle)
            spent.append(time.perf_counter_ns() - began)
        time.sleep(pause_s)
    library.stop(nvml)
    return [priced(query, sorted(spent)) for query, spent in taken.values()]


def priced(query: Query, spent: list[int]) -> Row:
    return {
        "query": query.name,
        "figures": len(query.metrics),
        "every s": query.period_ns / 1e9,
        "median us": statistics.median(spent) / 1e3,
        "p99 us": spent[len(spent) * 99 // 100] / 1e3,
        "share %": statistics.median(spent) / query.period_ns * 100,
    }


Figures = dict[tuple[str, str], int | None]


def figures(poller: NvmlPoller) -> Figures:
    return {
        key: value
        for name in (QUICK, STATE)
        for key, value in zip(
            poller.snapshots[name].keys, poller.snapshots[name].values, strict=True
        )
    }


def watch(seconds: int) -> tuple[Row, list[Row], list[Figures]]:
    """The share of the time in the driver, agreement with nvidia-smi, and every tick's figures."""
    poller = NvmlPoller(Roots())
    poller.start()
    time.sleep(2)
    began, cpu = time.monotonic(), time.process_time()
    spent = figures(poller)["gpu.driver.time", ""] or 0
    ticks: list[Figures] = []
    rows: dict[str, list[tuple[bool, float]]] = {}
    while time.monotonic() - began < seconds:
        before = figures(poller)
        smi_rows = nvidia_smi()
        time.sleep(1.1)  # state is renewed once a second
        compare(rows, before, figures(poller), smi_rows)
    used = time.process_time() - cpu
    wall = time.monotonic() - began
    asked = (figures(poller)["gpu.driver.time", ""] or 0) - spent
    for _ in range(100):
        ticks.append(figures(poller))
        time.sleep(0.1)
    share: Row = {
        "GPUs": len(poller.gpus), "driver %": asked / wall / 1e7,
        "CPU % of a core": 100 * used / wall,
        "slowed": "; ".join(poller.degraded) or "nothing",
    }  # fmt: skip
    poller.stop()
    return share, [agreement(column, found) for column, found in rows.items()], ticks


def nvidia_smi() -> list[dict[str, str]]:
    """What nvidia-smi says of each GPU, in the order of their index."""
    command = ["nvidia-smi", f"--query-gpu={','.join(COLUMNS)}", "--format=csv,noheader,nounits"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [
        dict(zip(COLUMNS, (cell.strip() for cell in line.split(",")), strict=True))
        for line in text.splitlines()
    ]


def compare(
    rows: dict[str, list[tuple[bool, float]]],
    before: Figures,
    after: Figures,
    smi_rows: list[dict[str, str]],
) -> None:
    for gpu, cells in enumerate(smi_rows):
        for column, (metric, unit) in COLUMNS.items():
            ours = [each.get((metric, str(gpu))) for each in (before, after)]
            known = [each * SCALES.get(metric, 1.0) for each in ours if each is not None]
            try:
                theirs = float(cells[column]) * unit
            except ValueError:  # [N/A], [Not Supported]
                continue
            if not known:
                continue
            apart = max(min(known) - theirs, theirs - max(known), 0.0)
            good = apart <= max(LOOSE.get(metric, 0.0), unit)
            rows.setdefault(column, []).append((good, apart))


def agreement(column: str, found: list[tuple[bool, float]]) -> Row:
    return {
        "nvidia-smi": column,
        "ours": COLUMNS[column][0],
        "compared": len(found),
        "agree %": 100 * sum(good for good, _ in found) / len(found),
        "worst apart": max(apart for _, apart in found),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100, help="calls of each query")
    parser.add_argument("--seconds", type=int, default=20, help="how long to compare")
    parser.add_argument(
        "--trace", type=Path, help="write ten seconds as a script of the fake driver"
    )
    given = parser.parse_args()
    try:
        found = devices.gpus(Roots())
    except Unsupported as missing:
        print(f"skipped: {missing.reason}")
        return 0
    names = sorted({gpu.name for gpu in found})
    report("nvml_prices", prices(given.calls, 0.1), gpus=names)
    share, agreed, ticks = watch(given.seconds)
    report("nvml_share", [share], gpus=names)
    report("nvml_agreement", agreed, gpus=names)
    if given.trace:
        nvml_trace.write(given.trace, nvml_trace.trace(found, ticks, library.load()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
