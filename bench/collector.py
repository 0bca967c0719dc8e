"""The collector's price beside the kernel's own and beside a plain loop over the same files.

CPU is what the kernel charges a cgroup that holds the whole process (``cpuacct.usage`` or
``cpu.stat``), as ticks miss a program that sleeps between them.  The rows take turns, so that
what else runs meets all of them.  Needs root (a cgroup) and a C compiler.
"""

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmark_report import Row, report
from reveal_cli.broker import Broker
from reveal_collector.registry import probe_all, roots_of
from reveal_contract.metric import Lane
from reveal_contract.settings import CollectorSettings

HERE = Path(__file__).parent / "collectorbench"  # programs that are measured
RATE = 10
# imports, first passes that learn the layouts, reads until what is quiet counts as quiet
SETTLE_S = 20.0
# the files behind the fast lane; the floor and the plain loop read just these
FILES = (
    "/proc/stat", "/proc/vmstat", "/proc/softirqs", "/proc/diskstats",
    "/proc/net/dev", "/proc/net/netstat", "/proc/net/snmp", "/proc/pressure/cpu",
    "/proc/pressure/memory", "/proc/pressure/io", "/sys/fs/cgroup/cpuacct/cpuacct.usage_percpu",
)  # fmt: skip
# and those of the slow lane, for rows that read all at the full rate
SLOW_FILES = (
    "/proc/meminfo", "/proc/interrupts", "/proc/net/snmp6", "/proc/net/softnet_stat",
    "/proc/net/sockstat",
    "/proc/loadavg", "/sys/devices/system/node/node0/numastat",
    "/sys/devices/system/node/node0/meminfo",
)  # fmt: skip


class Meter:
    """A cgroup for one command; ``used`` is the CPU time of all its processes, in seconds."""

    def __init__(self) -> None:
        v1 = Path("/sys/fs/cgroup/cpuacct")
        self._v1 = v1.is_dir()
        self.path = (v1 if self._v1 else Path("/sys/fs/cgroup")) / f"reveal-meter-{os.getpid()}"

    def __enter__(self) -> "Meter":
        self.path.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        for _ in range(100):
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            time.sleep(0.02)

    def start(self, command: list[str]) -> subprocess.Popen[bytes]:
        enter = f'echo $$ > {self.path}/cgroup.procs; exec "$@"'
        return subprocess.Popen(
            ["sh", "-c", enter, "sh", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    @property
    def used(self) -> float:
        if self._v1:
            return int((self.path / "cpuacct.usage").read_text()) / 1e9
        return int((self.path / "cpu.stat").read_text().split()[1]) / 1e6


def cpu_percent(
    command: list[str],
    seconds: float,
    settle: float = SETTLE_S,
    settled: Callable[[], None] = lambda: None,
) -> float:
    """Percent of a core that a command uses once it runs steadily; then calls ``settled``."""
    with Meter() as meter:
        process = meter.start(command)
        try:
            time.sleep(settle)
            settled()
            begin, used = time.monotonic(), meter.used
            time.sleep(seconds)
            percent = 100 * (meter.used - used) / (time.monotonic() - begin)
            if process.poll() is not None:
                raise RuntimeError(f"{command[0]} ended: {(process.stderr or sys.stdin).read()!r}")
            return percent
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def built_floor(source: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/floor"
        subprocess.run(["cc", "-O2", "-o", program, str(source)], check=True)
        yield program


def channels() -> tuple[int, int]:
    """(fast, all) channels of this host, in the collector's own count."""
    settings = CollectorSettings(node="bench", redis_url="unix:///nowhere")
    probed = probe_all(roots_of(settings), settings)
    fast = sum(len(s.channels) for s in probed.sources if s.lane is Lane.FAST)
    every = sum(len(s.channels) for s in probed.sources)
    for source in probed.sources:
        source.close()
    return fast, every


def commands(floor: list[str], url: str, seconds: float) -> dict[str, list[str]]:
    python, forever = sys.executable, str(seconds + 30)
    here = [path for path in FILES if Path(path).exists()]
    every = here + [path for path in SLOW_FILES if Path(path).exists()]
    ship = [python, "-m", "reveal_collector", "--node", "bench", "--redis-url", url]
    ours = {
        f"our sampler in {named}, {files}": [
            python, str(HERE / "sampling.py"), path, lanes, forever,
        ]
        for path, named in (("native", "C"), ("python", "Python"))
        for lanes, files in (("all", "all files"), ("lanes", "slow files once a second"))
    }  # fmt: skip
    return {
        "C floor, files of the fast lane": [*floor, str(RATE), forever, *here],
        "C floor, all files": [*floor, str(RATE), forever, *every],
        **ours,
        "reveal-collector, shipping to Redis": ship,
        "reveal-collector, shipping to Redis, Python path": [
            "env", "REVEAL_NO_NATIVE=1", *ship,
        ],
        "plain Python loop, files of the fast lane": [
            python, str(HERE / "naive_reader.py"), str(RATE), forever, *here,
        ],
        "plain Python loop, all files": [
            python, str(HERE / "naive_reader.py"), str(RATE), forever, *every,
        ],
    }  # fmt: skip


def measure(
    run: Callable[[list[str]], float], all_: dict[str, list[str]], rounds: int
) -> list[Row]:
    percents: dict[str, list[float]] = {name: [] for name in all_}
    for number in range(rounds):
        for name, command in all_.items():
            percents[name].append(run(command))
            print(f"round {number + 1}: {name}: {percents[name][-1]:.2f} %", file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in percents.items()}
    base = medians["C floor, all files"]
    return [
        {
            "what": name, "% of a core": medians[name], "least": min(values), "most": max(values),
            "x floor, all files": medians[name] / base,
        }
        for name, values in percents.items()
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="measured, each row and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--floor", type=Path, default=HERE / "floor.c", help="C source to compare")
    parser.add_argument("--floor-mode", default="", help="a word it wants before the rate")
    given = parser.parse_args()
    if os.getuid() != 0 or not shutil.which("cc"):
        sys.exit("bench/collector.py needs root (a cgroup to measure in) and a C compiler")
    fast, every = channels()
    with built_floor(given.floor) as floor, Broker() as broker:
        rows = measure(
            lambda command: cpu_percent(command, given.seconds),
            commands([floor, *given.floor_mode.split()], broker.url, given.seconds),
            given.rounds,
        )
    report("collector", rows, fast_channels=fast, channels=every, hertz=RATE)


if __name__ == "__main__":
    main()
