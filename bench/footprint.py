"""What a running collector keeps in memory while it ships to a real Redis, on both paths.

PSS is this process's share of what it shares with others, USS what would be free without it, RSS
all it has mapped, anonymous what no file stands behind, which alone is the same whoever else runs
Python meanwhile (proc(5), smaps_rollup).  CPU is the whole process's, by its own clock, as the
channel own.cpu_time has it.  The byte code is made before, as installing a wheel does.  A bare
interpreter stands beside as the floor of any Python program.
"""

import argparse
import compileall
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import reveal_collector
import reveal_contract
from benchmark_report import Row, report
from reveal_cli.broker import Broker

SETTLE_S = 12.0  # imports, first tables, one round of the rare lane
_FIELDS = {"Pss:": "PSS MB", "Rss:": "RSS MB", "Anonymous:": "anonymous MB"}
_USS = ("Private_Clean:", "Private_Dirty:")


def compiled() -> None:
    """The collector's byte code beside its sources: what compiles at start keeps 1 MB of it."""
    for package in (reveal_contract, reveal_collector):
        compileall.compile_dir(package.__path__[0], quiet=1)


def footprint(pid: int) -> Row:
    """Memory of a process now, MB (10^6 bytes)."""
    kilobytes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, number, _ = line.split()
        kilobytes[name] = int(number)
    megabytes = {label: kilobytes[name] * 1024 / 1e6 for name, label in _FIELDS.items()}
    return {**megabytes, "USS MB": sum(kilobytes[name] for name in _USS) * 1024 / 1e6}


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads that live; exact where utime and stime go by ticks."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def measure(command: list[str], environment: dict[str, str], seconds: float) -> Row:
    """One run of a command: memory and CPU once it runs steadily."""
    with subprocess.Popen(
        command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            time.sleep(SETTLE_S)
            began, used = time.monotonic(), cpu_seconds(process.pid)
            time.sleep(seconds)
            spent = (cpu_seconds(process.pid) - used) / (time.monotonic() - began)
            threads = len(list(Path(f"/proc/{process.pid}/task").iterdir()))
            return {**footprint(process.pid), "threads": threads, "CPU ms a second": spent * 1e3}
        finally:
            process.terminate()


def runs(url: str) -> dict[str, tuple[list[str], dict[str, str]]]:
    collector = [sys.executable, "-m", "reveal_collector", "--node", "bench", "--redis-url", url]
    return {
        "reveal-collector, C path": (collector, {}),
        "reveal-collector, numpy path": (collector, {"REVEAL_NO_NATIVE": "1"}),
        "bare Python": ([sys.executable, "-c", "import time; time.sleep(600)"], {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="CPU measured over")
    given = parser.parse_args()
    compiled()
    measured: dict[str, list[Row]] = {}
    with Broker() as broker:
        for _ in range(given.rounds):
            for name, (command, environment) in runs(broker.url).items():
                measured.setdefault(name, []).append(measure(command, environment, given.seconds))
                print(name, measured[name][-1], file=sys.stderr)
    medians = [_medians(name, rows) for name, rows in measured.items()]
    report("footprint", medians, rounds=given.rounds,
           goal="C path, shipping: PSS at most 20 MB, aim 12")  # fmt: skip


def _medians(name: str, rows: list[Row]) -> Row:
    return {
        "what": name,
        **{column: statistics.median(float(row[column]) for row in rows) for column in rows[0]},
    }


if __name__ == "__main__":
    main()
