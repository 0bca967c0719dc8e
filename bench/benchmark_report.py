"""What every benchmark does with its figures: a table, and a JSON file with the machine described.

Figures of different machines do not compare; ratios within one run do.
"""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "tsfresh", "pandas", "zstandard", "redis")

Row = dict[str, str | float]


def use_single_core() -> None:
    """Keep the linear algebra on one thread: figures are for one core."""
    threadpool_limits(1)


def median_seconds(call: Callable[[], object], calls: int, rounds: int = 5) -> float:
    """Median over rounds of the mean CPU time of a call, after one call that is not counted.

    CPU time of this process, all its threads: waiting for a core that others use is no cost.
    """
    call()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(calls):
            call()
        times.append((time.process_time() - start) / calls)
    return statistics.median(times)


def report(name: str, rows: Sequence[Row], **notes: Any) -> None:
    """Print the rows as a table and write them with the machine to ``results/<name>.json``."""
    RESULTS.mkdir(exist_ok=True)
    result = {"bench": name, "machine": machine(), **notes, "rows": list(rows)}
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [columns, *([formatted(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    for line in cells:
        pairs = zip(line, widths, strict=True)
        print("  ".join(cell.ljust(width) for cell, width in pairs).rstrip())


def formatted(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def machine() -> dict[str, Any]:
    """CPU, kernel, load and versions: what a reader needs to judge the figures."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
