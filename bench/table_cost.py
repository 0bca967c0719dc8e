"""What `reveal analyze` costs beside `pandas.read_csv` of the same wide and tall table, in one run.

Usage: ``python bench/table_cost.py [--rounds 3] [--scale 1] [--only wide]``.  Both run in turn,
each in a process of its own: CPU time of all its threads, the least of the rounds.  ``ratio`` is
that of the processes, ``ratio_of_calls`` that without their imports.  Exit code 1 if the processes
differ by more than ten times, or one takes more than 1.2 GB.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmark_report import Row, report

MOST_RATIO, MOST_MB = 10.0, 1_200.0
_DIGITS = 5  # of a number, with a point before the last three


class Shape(NamedTuple):
    """Columns and rows of a table, and the seconds between rows."""

    columns: int
    rows: int
    period: int


SHAPES = {
    "wide": Shape(5_000, 1_440, 60),  # a day of a cluster, a row a minute
    "tall": Shape(40, 720_000, 1),  # eight days of a host, a row a second
}


class Cost(NamedTuple):
    """CPU seconds of a process, those after its imports, and its largest memory in MB."""

    seconds: float
    of_call: float
    megabytes: float


def main() -> int:
    """Print and write a row for each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of columns or rows")
    parser.add_argument("--only", choices=SHAPES)
    parser.add_argument("--measure", choices=_MEASURED, help=argparse.SUPPRESS)
    parser.add_argument("--table", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(*_MEASURED[arguments.measure](arguments.table))
        return 0
    names = [arguments.only] if arguments.only else list(SHAPES)
    rows = [_row(name, scaled(SHAPES[name], arguments.scale), arguments.rounds) for name in names]
    report("table_cost", rows, rounds=arguments.rounds)
    within = all(
        float(row["ratio"]) <= MOST_RATIO and float(row["analyze_mb"]) <= MOST_MB for row in rows
    )
    return int(not within)


def scaled(shape: Shape, scale: float) -> Shape:
    """Return a shape whose longer side is a part of the original's."""
    if shape.columns > shape.rows:
        return shape._replace(columns=int(scale * shape.columns))
    return shape._replace(rows=int(scale * shape.rows))


def write_table(path: Path, shape: Shape) -> None:
    """Write noise as CSV; for 40 rows one metric in twenty is far above its level."""
    random = np.random.default_rng(1)
    fault = range(shape.rows * 2 // 3, shape.rows * 2 // 3 + 40)
    with path.open("wb") as file:
        names = [f"metric_{number}" for number in range(shape.columns)]
        file.write(",".join(["time", *names]).encode() + b"\n")
        step = max(1, 2_000_000 // shape.columns)
        for first in range(0, shape.rows, step):
            rows = np.arange(first, min(first + step, shape.rows))
            values = random.normal(40.0, 4.0, (len(rows), shape.columns))
            values[np.isin(rows, fault), : max(3, shape.columns // 20)] += 45.0
            _lines(1_700_000_000 + shape.period * rows, values).tofile(file)


def _lines(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return rows of texts of the same length, (rows, bytes)."""
    numbers = np.clip(np.rint(1_000 * values), 0, 10**_DIGITS - 1).astype(np.int64)
    texts = _texts(numbers, _DIGITS)
    point = np.full((*numbers.shape, 1), ord("."), np.uint8)
    comma = np.full((*numbers.shape, 1), ord(","), np.uint8)
    fields = np.concatenate([comma, texts[..., :2], point, texts[..., 2:]], axis=2)
    end = np.full((len(times), 1), ord("\n"), np.uint8)
    return np.concatenate([_texts(times, 10), fields.reshape(len(times), -1), end], axis=1)


def _texts(numbers: np.ndarray, digits: int) -> np.ndarray:
    """Return whole numbers as that many digits, (..., digits)."""
    powers = 10 ** np.arange(digits - 1, -1, -1)
    return (ord("0") + numbers[..., None] // powers % 10).astype(np.uint8)


def _row(name: str, shape: Shape, rounds: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.csv"
        write_table(path, shape)
        pairs = [(_cost("read", path), _cost("analyze", path)) for _ in range(rounds)]
        size = path.stat().st_size / 1e6
    read, analyze = (min(costs) for costs in zip(*pairs, strict=True))
    return {
        "table": name,
        "columns": shape.columns,
        "rows": shape.rows,
        "csv_mb": round(size, 1),
        "read_csv_s": round(read.seconds, 3),
        "analyze_s": round(analyze.seconds, 3),
        "ratio": round(analyze.seconds / read.seconds, 2),
        "ratio_of_calls": round(analyze.of_call / read.of_call, 2),
        "read_csv_mb": round(read.megabytes),
        "analyze_mb": round(analyze.megabytes),
    }


def _cost(what: str, path: Path) -> Cost:
    command = [sys.executable, __file__, "--measure", what, "--table", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Cost(*map(float, done.stdout.splitlines()[-1].split()))


def _read(path: Path) -> Cost:
    import pandas as pd

    return _measured(lambda: pd.read_csv(path))


def _analyze(path: Path) -> Cost:
    import reveal_cli.table_analysis  # noqa: F401 - imports are not measured
    from reveal_cli.__main__ import main as reveal

    return _measured(lambda: reveal(["analyze", str(path)]))


def _measured(call: Callable[[], object]) -> Cost:
    begin = time.process_time()
    call()
    end = time.process_time()
    return Cost(end, end - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)


_MEASURED = {"read": _read, "analyze": _analyze}


if __name__ == "__main__":
    sys.exit(main())
