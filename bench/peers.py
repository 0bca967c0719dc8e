"""What other collectors charge for a host's signals, beside ours, in one run.

Each row is the CPU that the kernel charges to a cgroup with the whole process tree, at the rate
the row says.  ``ms per 1,000`` is CPU milliseconds for a thousand channel-samples, the figure
that compares rates and channel counts: a lane's channels count at its own rate.  ``--containers``
has that many cgroups with a process each beside.  The rows take turns.  Needs root, a C compiler
and, for the peers, Debian's prometheus-node-exporter, netdata-core, pcp, linux-perf and sysstat;
those that are missing are left out.  Neither the scraper of node_exporter nor Redis is charged.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmark_report import Row, report
from collector import SETTLE_S, built_floor, channels, commands, cpu_percent
from collectorbench.sampling import opened
from reveal_cli.broker import Broker
from reveal_contract.metric import Lane

HERE = Path(__file__).parent
PCP_BIN = Path("/usr/lib/pcp/bin")
PCP_LINUX = Path("/var/lib/pcp/pmdas/linux/pmdalinux")
EXPORTER_PORT, NETDATA_PORT, PCP_PORT = 44397, 44398, 44399
EXPORTER = "prometheus-node-exporter"
# what the exporter calls the files that the floor reads
EXPORTER_PARTS = (
    "cpu", "stat", "meminfo", "vmstat", "netdev", "netstat", "sockstat", "softnet", "diskstats",
    "pressure", "loadavg", "interrupts", "softirqs",
)  # fmt: skip
EVENTS = (
    "cpu-clock,task-clock,context-switches,cpu-migrations,page-faults,minor-faults,major-faults"
)
PCP_METRICS = (
    "kernel.all.cpu kernel.percpu.cpu kernel.all.load kernel.all.intr kernel.all.pswitch "
    "kernel.all.sysfork kernel.all.running kernel.all.blocked kernel.all.pressure "
    "mem.util mem.vmstat mem.numa disk.all disk.dev network.interface "
    "network.tcp network.ip network.udp network.icmp network.softnet network.sockstat swap"
)
NETDATA = """
[global]
  run as user = root
[directories]
  cache = {0}/cache
  lib = {0}/lib
  log = {0}/log
[db]
  mode = ram
[ml]
  enabled = no
[health]
  enabled = no
[statsd]
  enabled = no
[web]
  bind to = 127.0.0.1:{1}
[plugins]
  proc = yes
  diskspace = no
  cgroups = no
  tc = no
  idlejitter = no
  timex = no
  slabinfo = no
  netdata monitoring = no
  enable running new plugins = no
"""


@dataclass
class Peer:
    """A collector to run: its rate, its command, how many channels it samples."""

    name: str
    hertz: float
    command: Sequence[str]
    channels: Callable[[], float]  # samples a second over ``hertz``
    scrape: str = ""  # a page to fetch at the rate
    settle: float = SETTLE_S
    samples: list[float] = field(default_factory=list)
    count: float = 0


@contextlib.contextmanager
def scraping(url: str, hertz: float) -> Iterator[None]:
    """Somebody fetches the page at this rate, if there is one."""
    stop = threading.Event()

    def fetch() -> None:
        while not stop.wait(1 / hertz):
            with contextlib.suppress(OSError):
                page(url)

    thread = threading.Thread(target=fetch, daemon=True)
    if url:
        thread.start()
    yield
    stop.set()
    if url:
        thread.join()


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()


def samples(url: str, left_out: Sequence[str]) -> int:
    """Series of a Prometheus page that are not about the exporter itself."""
    lines = [line for line in page(url).splitlines() if line and not line.startswith("#")]
    return sum(not line.startswith(tuple(left_out)) for line in lines)


def exporter_peers() -> Iterator[Peer]:
    if not shutil.which(EXPORTER):
        return
    url = f"http://127.0.0.1:{EXPORTER_PORT}/metrics"
    parts = [f"--collector.{name}" for name in EXPORTER_PARTS]
    whole = ["--collector.vmstat.fields=.*", "--collector.netstat.fields=.*"]
    command = [
        EXPORTER, f"--web.listen-address=127.0.0.1:{EXPORTER_PORT}", "--log.level=error",
        "--collector.disable-defaults", *parts, *whole,
    ]  # fmt: skip
    own = ("go_", "process_", "promhttp_", "node_scrape_", "node_exporter_")
    known = subprocess.run([EXPORTER, "--help"], capture_output=True, text=True, check=False)
    text = known.stdout + known.stderr
    command = [
        word for word in command if not word.startswith("--collector.") or _flag(word) in text
    ]
    yield Peer(
        "node_exporter, same sources, 10 Hz", 10, command, lambda: samples(url, own), url
    )  # fmt: skip


def _flag(word: str) -> str:
    return word.partition("=")[0].removeprefix("--")


def netdata_peers(folder: Path) -> Iterator[Peer]:
    if not shutil.which("netdata"):
        return
    for name in ("cache", "lib", "log"):
        (folder / name).mkdir()
    config = folder / "netdata.conf"
    config.write_text(NETDATA.format(folder, NETDATA_PORT))
    url = f"http://127.0.0.1:{NETDATA_PORT}/api/v1/allmetrics?format=prometheus"
    yield Peer(
        "netdata, proc plugin only, 1 Hz", 1, ["netdata", "-D", "-c", str(config)],
        lambda: samples(url, ["netdata_info", "netdata_netdata_"]),
    )  # fmt: skip


def pcp_peers(folder: Path) -> Iterator[Peer]:
    if not PCP_LINUX.exists() or not shutil.which("pmlogger"):
        return
    if not Path("/var/lib/pcp/pmns/root").exists():  # made by the service's first start
        subprocess.run(["./Rebuild", "-s"], cwd="/var/lib/pcp/pmns", check=True)
    (folder / "pmcd.conf").write_text(
        f'linux 60 pipe binary {PCP_LINUX}\n[access]\nallow "*" : all;\n'
    )
    (folder / "log.conf").write_text(
        f"log mandatory on 100 msec {{ {PCP_METRICS.replace(' ', chr(10))} }}\n"
    )
    script = (
        # without derived metrics: pmlogger looks for them in each result, and says so each time
        f"export PCP_DERIVED_CONFIG=; cd {folder}; "
        f"{PCP_BIN}/pmcd -f -U root -c {folder}/pmcd.conf -p {PCP_PORT} -s {folder}/pmcd.sock "
        f"-l {folder}/pmcd.log & daemon=$!; trap 'kill $daemon $logger' TERM; sleep 2; "
        f"pmlogger -h localhost:{PCP_PORT} -c {folder}/log.conf -t 100msec "
        f"-l {folder}/log.log {folder}/archive-$$ & logger=$!; wait"
    )
    yield Peer(
        "PCP: pmcd, pmdalinux, pmlogger, 10 Hz", 10, ["sh", "-c", script],
        lambda: pcp_values(f"localhost:{PCP_PORT}"),
    )  # fmt: skip


def pcp_values(host: str) -> int:
    """Values a sample has: one an instance of each metric that is logged."""
    found = subprocess.run(
        ["pmprobe", "-h", host, *PCP_METRICS.split()], capture_output=True, text=True, check=False
    )
    counts = [int(line.split()[1]) for line in found.stdout.splitlines()]
    return sum(count for count in counts if count > 0)


def tool_peers(folder: Path) -> Iterator[Peer]:
    if shutil.which("perf"):
        names = EVENTS.split(",")
        stat = ["perf", "stat", "-a", "-I", "100", "-x,", "-o", str(folder / "perf.csv")]
        yield Peer(
            "perf stat -a -I 100", 10, [*stat, "-e", EVENTS], lambda: len(names)
        )  # fmt: skip
    sadc = Path("/usr/lib/sysstat/sadc")
    if sadc.exists():
        out = str(folder / "sadc.data")
        yield Peer("sadc -S XALL, 1 Hz", 1, [str(sadc), "-S", "XALL", "1", out], lambda: 467)


OWN = (
    "C floor, all files", "our sampler in C, all files",
    "our sampler in C, slow files once a second", "our sampler in Python, all files",
    "reveal-collector, shipping to Redis", "reveal-collector, shipping to Redis, Python path",
    "plain Python loop, all files",
)  # fmt: skip
CGROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "memory", "blkio", "pids")


def own_peers(floor: str, url: str, seconds: float) -> Iterator[Peer]:
    """Floor, ours and the plain loop, as ``bench/collector.py`` has them."""
    every = commands([floor], url, seconds)
    whole, some = sampled(every_tick=True), sampled(every_tick=False)
    fast, all_ = channels()
    counts = {
        "our sampler in C, slow files once a second": some,
        "reveal-collector, shipping to Redis": fast + (all_ - fast) / 10,
        "reveal-collector, shipping to Redis, Python path": fast + (all_ - fast) / 10,
    }
    for name in OWN:
        count = counts.get(name, whole)
        yield Peer(f"{name}, 10 Hz", 10, every[name], lambda count=count: count)


def sampled(every_tick: bool) -> float:
    """Channels behind the floor's files, those read once a second at a tenth."""
    sources = opened(every_tick)
    counts = [len(each.channels) / (1 if each.lane is Lane.FAST else 10) for each in sources]
    for source in sources:
        source.close()
    return sum(counts)


def measured(peer: Peer, seconds: float) -> float:
    """Percent of a core that a peer uses once it runs steadily; learns its channels."""

    def count() -> None:
        peer.count = peer.count or peer.channels()

    with scraping(peer.scrape, peer.hertz):
        return cpu_percent(list(peer.command), seconds, peer.settle, count)


def measure(peers: Sequence[Peer], rounds: int, seconds: float) -> None:
    for number in range(rounds):
        for peer in peers:
            peer.samples.append(measured(peer, seconds))
            print(f"round {number + 1}: {peer.name}: {peer.samples[-1]:.2f} %", file=sys.stderr)


def row(peer: Peer, floor: float) -> Row:
    percent = statistics.median(peer.samples)
    result: Row = {
        "what": peer.name, "channels": round(peer.count), "% of a core": percent,
        "least": min(peer.samples), "most": max(peer.samples), "x floor": percent / floor,
    }  # fmt: skip
    if peer.count:
        result["ms per 1,000"] = 10 * percent / (peer.count * peer.hertz / 1000)
    return result


@contextlib.contextmanager
def containers(count: int) -> Iterator[None]:
    """So many cgroups as a container runtime makes them, a process in each that wakes at 10 Hz."""
    work = "import time\nwhile True:\n    sum(range(2000))\n    time.sleep(0.1)"
    trees = [tree for tree in (CGROUPS / name for name in CONTROLLERS) if tree.is_dir()] or [
        CGROUPS
    ]
    folders, running = [], []
    try:
        for number in range(count):
            process = subprocess.Popen([sys.executable, "-c", work])
            running.append(process)
            for tree in trees:
                folder = tree / "docker" / f"{number:064x}"
                folder.mkdir(parents=True, exist_ok=True)  # of a run that was killed
                folders.append(folder)
                (folder / "cgroup.procs").write_text(str(process.pid))
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
        for folder in [*folders, *(tree / "docker" for tree in trees if count)]:
            with contextlib.suppress(OSError):
                folder.rmdir()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="measured, each row and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--containers", type=int, default=0)
    parser.add_argument("--own", action="store_true", help="only floor, ours and the plain loop")
    given = parser.parse_args()
    if os.getuid() != 0 or not shutil.which("cc"):
        sys.exit("bench/peers.py needs root (a cgroup to measure in) and a C compiler")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        floor = stack.enter_context(built_floor(HERE / "collectorbench" / "floor.c"))
        url = stack.enter_context(Broker()).url
        stack.enter_context(containers(given.containers))
        peers = list(own_peers(floor, url, given.seconds))
        if not given.own:
            peers += [*netdata_peers(folder), *exporter_peers(), *pcp_peers(folder)]
            peers += tool_peers(folder)
        measure(peers, given.rounds, given.seconds)
    base = statistics.median(peers[0].samples)
    name = "peers-own" if given.own else "peers"
    name += f"-{given.containers}-containers" if given.containers else ""
    report(name, [row(peer, base) for peer in peers], containers=given.containers)


if __name__ == "__main__":
    main()
