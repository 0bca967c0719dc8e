"""Our figures beside those of the kernel's own tools, of the same interval of a loaded host.

A load runs strictly inside the interval, so that little happens at its edges, where tools begin
and end some tens of ms beside ours.  ``apart`` is ours less the tool's, ``rounding`` what the
tool's last digit (or its clock tick, or its clock) is worth over the interval, ``edges`` how much
we counted within 0.3 s of both ends, 1.3 s of what is read once a second.  Needs root for perf,
and Debian's sysstat, iproute2, numactl, linux-perf and stress-ng.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmark_report import Row, report
from reveal_contract import wire
from reveal_contract.channels import ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.names import snake
from reveal_contract.recording import RecordingReader

INTERVAL_S, QUIET_S = 12, 2
UPTIME_S = 0.01  # sysstat takes its intervals from /proc/uptime, which has hundredths
EDGE_NS, SLICE_NS = 300_000_000, 1_000_000_000
_TIMED = f"date +%s%N; sleep {INTERVAL_S}; date +%s%N"
LOAD = [
    "stress-ng", "--quiet", "--cpu", "1", "--switch", "1", "--fault", "1", "--sock", "1",
    "--udp", "1", "--hdd", "1", "--hdd-bytes", "64m", "--hdd-opts", "fsync",
]  # fmt: skip
TOOLS = {
    "mpstat": ["mpstat", "-P", "ALL", "-o", "JSON", str(INTERVAL_S), "1"],
    "iostat": ["iostat", "-y", "-x", "-o", "JSON", str(INTERVAL_S), "1"],
    "sar": ["sar", "-o", "{folder}/sar", str(INTERVAL_S), "1"],
    # perf takes tenths of a second to begin, and says when it did by the program it runs
    "perf": ["perf", "stat", "-a", "-x,", "-e", "{events}", "sh", "-c", _TIMED],
}
_PROTOCOLS = ("IpExt", "TcpExt", "UdpLite", "Icmp6", "Udp6", "Ip6", "Icmp", "Tcp", "Udp", "Ip")
_EVENTS = {
    "context-switches": "cpu.context_switches", "cpu-migrations": "cpu.perf.migrations",
    "minor-faults": "memory.perf.minor_faults", "major-faults": "memory.perf.major_faults",
}  # fmt: skip
_TIMES = {
    "usr": "user", "nice": "nice", "sys": "system", "iowait": "iowait", "irq": "irq",
    "soft": "softirq", "steal": "steal", "idle": "idle",
}  # fmt: skip
Recorded = tuple[ChannelTable, wire.Message]


@dataclass(frozen=True)
class Compared:
    """One figure: the tool's over the interval, ours, and what the tool rounds to."""

    tool: str
    what: str
    theirs: float
    ours: float
    rounding: float
    edges: float = 0.0


@dataclass
class Interval:
    """What we recorded: counters summed over the interval, levels at its end, base units.

    ``edges`` has what was counted near the ends: as much may the tool have missed, or had more.
    """

    counted: dict[str, float]
    level: dict[str, float]
    seconds: float
    edges: dict[str, float] = field(default_factory=dict)


def with_edges(messages: Sequence[Recorded], begin_ns: int, end_ns: int) -> Interval:
    """The interval, with what was counted near its ends."""
    inner, outer = (interval(messages, begin_ns, end_ns, edges).counted for edges in (1, -1))
    whole = interval(messages, begin_ns, end_ns)
    whole.edges = {label: value - inner.get(label, 0.0) for label, value in outer.items()}
    return whole


def decoded(path: Path) -> Iterator[Recorded]:
    """The slices of a recording, each with its table."""
    for record in RecordingReader(path):
        if (table := record.table) is not None:
            yield table, wire.decode(record.data, wire.gauges(table))


def interval(messages: Iterable[Recorded], begin_ns: int, end_ns: int, edges: int = 0) -> Interval:
    """The recorded ticks (slices, for the slow lane) that ended within the interval.

    With ``edges`` 1 an edge less at both ends, with -1 one more.  What the slow lane counts is
    known to a slice only, which its edge is wider by.
    """
    less_ns, less_slow_ns = edges * EDGE_NS, edges * (EDGE_NS + SLICE_NS)
    counted: dict[str, float] = {}
    level: dict[str, float] = {}
    for table, message in messages:
        tick_ns = message.tick_us * 1000
        for tick, row in enumerate(message.fast):
            if begin_ns + less_ns < message.start_ns + tick * tick_ns <= end_ns - less_ns:
                _add(counted, level, table.fast, row, message.fast_missing[tick])
        if begin_ns + less_slow_ns < message.start_ns <= end_ns - less_slow_ns:
            _add(counted, level, table.slow, message.slow, message.slow_missing)
    return Interval(counted, level, (end_ns - begin_ns) / 1e9)


def _add(
    counted: dict[str, float], level: dict[str, float], channels: Any, row: Any, missing: Any
) -> None:
    for channel, value, gone in zip(channels, row.tolist(), missing.tolist(), strict=True):
        if gone:
            continue
        if channel.kind is Kind.COUNTER:
            counted[channel.label] = counted.get(channel.label, 0.0) + value * channel.scale
        else:
            level[channel.label] = value * channel.scale


def cpus(answer: str, ours: Interval) -> Iterator[Compared]:
    """``mpstat``: percent of each CPU's time, to a hundredth."""
    rows = json.loads(answer)["sysstat"]["hosts"][0]["statistics"][0]["cpu-load"]
    for row in rows:
        index = "" if row["cpu"] == "all" else f"{{{row['cpu']}}}"
        spent = {tool: ours.counted.get(f"cpu.{time}{index}", 0.0) for tool, time in _TIMES.items()}
        whole = sum(spent.values())
        # a clock tick, in percent of the interval; mpstat adds up the ticks of all CPUs itself
        tick = 100 * 1e7 / whole * (1 if index else len(rows) - 1)
        for tool, value in spent.items():
            yield Compared(
                "mpstat", f"%{tool} of CPU {row['cpu']}", row[tool], 100 * value / whole,
                0.01 + 2 * tick,
            )  # fmt: skip


def disks(answer: str, ours: Interval) -> Iterator[Compared]:
    """``iostat``: rates to a hundredth, of an interval known to a hundredth."""
    rows = json.loads(answer)["sysstat"]["hosts"][0]["statistics"][0]["disk"]
    figures_of_tool = {
        "r/s": ("reads", 1.0), "w/s": ("writes", 1.0), "rkB/s": ("read_bytes", 1024.0),
        "wkB/s": ("write_bytes", 1024.0), "wrqm/s": ("write_merges", 1.0),
        "f/s": ("flushes", 1.0), "util": ("busy_time", 1e7),
    }  # fmt: skip
    for row in rows:
        for tool, (name, unit) in figures_of_tool.items():
            label = f"storage.disk.{name}{{{row['disk_device']}}}"
            if row[tool] and label in ours.counted:
                what = f"{tool} of {row['disk_device']}"
                yield _rate("iostat", what, row[tool], ours, label, unit)


def activity(answer: str, ours: Interval) -> Iterator[Compared]:
    """``sar``: the same; kernel-wide, network and paging."""
    now = json.loads(answer)["sysstat"]["hosts"][0]["statistics"][-1]
    for row in now["network"]["net-dev"]:
        for tool, name, unit in (
            ("rxpck", "rx_packets", 1.0), ("txpck", "tx_packets", 1.0),
            ("rxkB", "rx_bytes", 1024.0), ("txkB", "tx_bytes", 1024.0),
        ):  # fmt: skip
            label = f"network.nic.{name}{{{row['iface']}}}"
            if row[tool] and label in ours.counted:
                yield _rate("sar", f"{tool}/s of {row['iface']}", row[tool], ours, label, unit)
    switches = now["process-and-context-switch"]
    paging = now["paging"]
    for what, value, label, unit in (
        ("cswch/s", switches["cswch"], "cpu.context_switches", 1.0),
        ("proc/s", switches["proc"], "cpu.forks", 1.0),
        ("fault/s", paging["fault"], "memory.vm.pgfault", 1.0),
        ("pgfree/s", paging["pgfree"], "memory.vm.pgfree", 1.0),
        ("pgpgout/s", paging["pgpgout"], "memory.vm.pgpgout", 1024.0),
    ):
        yield _rate("sar", what, value, ours, label, unit)


def _rate(
    tool: str, what: str, value: float, ours: Interval, label: str, unit: float = 1.0
) -> Compared:
    per = unit * ours.seconds
    rounding = 0.005 + value * UPTIME_S / ours.seconds
    return Compared(
        tool, what, value, ours.counted[label] / per, rounding, ours.edges.get(label, 0.0) / per
    )


def _whole(tool: str, what: str, value: float, ours: Interval, label: str) -> Compared:
    return Compared(tool, what, value, ours.counted[label], 0.0, ours.edges.get(label, 0.0))


def protocols(before: str, after: str, ours: Interval) -> Iterator[Compared]:
    """``nstat``: whole counters, before and after."""
    old, new = (json.loads(text)["kernel"] for text in (before, after))
    for name, value in new.items():
        label = _protocol_label(name)
        if label in ours.counted and value != old[name]:
            # nstat shows the low 32 bits of counters that have 64
            difference = value - old[name]
            wraps = round((ours.counted[label] - difference) / 2**32)
            yield _whole("nstat", name, difference + wraps * 2**32, ours, label)


def _protocol_label(name: str) -> str:
    for prefix in _PROTOCOLS:
        if name.startswith(prefix):
            return f"network.{snake(prefix)}.{snake(name.removeprefix(prefix))}"
    return ""


def events(answer: str, ours: Interval) -> Iterator[Compared]:
    """``perf stat -a``: software events, whole numbers."""
    for line in answer.splitlines():
        cells = line.split(",")
        label = _EVENTS.get(cells[2].removesuffix(":u")) if len(cells) > 2 else None
        if label is not None and label in ours.counted:
            yield _whole("perf stat", cells[2], float(cells[0]), ours, label)


def sockets(answer: str, ours: Interval) -> Iterator[Compared]:
    """``ss -s``: sockets in use once all is quiet again."""
    for line in answer.splitlines():
        cells = line.split()
        if len(cells) == 4 and cells[0] in ("TCP", "UDP", "RAW"):
            label = f"network.sockets.{cells[0].lower()}.inuse"
            yield Compared("ss -s", f"{cells[0]} IPv4", int(cells[2]), ours.level[label], 0.0)


def pages(before: str, after: str, ours: Interval) -> Iterator[Compared]:
    """``numastat``: pages by node, whole counters."""
    old, new = (dict(_numa_rows(text)) for text in (before, after))
    for (name, node), value in new.items():
        label = f"memory.numa.{name.removeprefix('numa_')}{{{node}}}"
        if label in ours.counted and value != old[name, node]:
            yield _whole("numastat", f"{name} of node {node}", value - old[name, node], ours, label)


def _numa_rows(text: str) -> Iterator[tuple[tuple[str, int], int]]:
    for line in text.splitlines()[1:]:
        name, *values = line.split()
        yield from (((name, node), int(value)) for node, value in enumerate(values))


def compare(folder: Path) -> list[Compared]:
    """Record and run all tools over one interval with a load inside."""
    recording = folder / "host.rvl"
    collector = subprocess.Popen(
        [sys.executable, "-m", "reveal_collector", "--node", "bench", "--redis-url", "",
         "--record", str(recording), "--duration", str(INTERVAL_S + 12)],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    time.sleep(6)
    nstat, numa = output_of(["nstat", "-jaz"]), output_of(["numastat"])
    begin_ns = time.time_ns()
    running = {name: _start(command, folder) for name, command in TOOLS.items()}
    time.sleep(QUIET_S)
    load = [*LOAD, "--temp-path", str(folder), "--timeout", f"{INTERVAL_S - 2 * QUIET_S}s"]
    subprocess.run(load, check=True)
    answers = {name: process.communicate() for name, process in running.items()}
    end_ns = begin_ns + INTERVAL_S * 1_000_000_000
    nstat_after, numa_after, ss = (
        output_of(["nstat", "-jaz"]),
        output_of(["numastat"]),
        output_of(["ss", "-s"]),
    )
    sar = output_of(["sadf", "-j", str(folder / "sar"), "--", "-u", "-n", "DEV", "-w", "-B"])
    collector.wait()
    messages = list(decoded(recording))
    ours = with_edges(messages, begin_ns, end_ns)
    counted, printed = answers["perf"]
    of_perf = with_edges(messages, *map(int, counted.split()))
    return [
        *cpus(answers["mpstat"][0], ours), *disks(answers["iostat"][0], ours),
        *activity(sar, ours), *protocols(nstat, nstat_after, ours),
        *events(printed, of_perf), *pages(numa, numa_after, ours), *sockets(ss, ours),
    ]  # fmt: skip


def _start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    filled = [word.format(folder=folder, events=",".join(_EVENTS)) for word in command]
    return subprocess.Popen(
        filled, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"LC_ALL": "C"}
    )


def output_of(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def row(item: Compared) -> Row:
    apart = item.ours - item.theirs
    share = abs(apart) / abs(item.theirs) if item.theirs else 0.0
    return {
        "tool": item.tool, "figure": item.what, "tool says": item.theirs, "ours": item.ours,
        "apart": apart, "apart, %": 100 * share, "rounding": item.rounding, "edges": item.edges,
        "within": "yes" if abs(apart) <= item.rounding + item.edges + 1e-6 else "no",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=Path, default=Path("/var/tmp"), help="where to write")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.scratch) as folder:
        rows = [row(item) for item in compare(Path(folder))]
    report("tools", rows, seconds=INTERVAL_S)
    within = sum(row["within"] == "yes" for row in rows)
    print(f"{within} of {len(rows)} within the tool's rounding and what happened at the edges")


if __name__ == "__main__":
    main()
