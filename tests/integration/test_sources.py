"""Host sources on this machine's kernel, against an independent reading of the same counters."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.source import Roots, Source
from reveal_collector.registry import FACTORIES
from reveal_contract.metric import Kind
from support.source_reader import read_values

Values = dict[str, float]


def source_of(name: str) -> Source:
    sources = {source.name: source for factory in FACTORIES for source in factory(Roots())}
    try:
        sources[name].open()
    except Unsupported as missing:
        pytest.skip(f"{name}: {missing.reason}")
    return sources[name]


def values(source: Source) -> Values:
    """Label -> value in base units, whatever comes or goes meanwhile."""
    try:
        read = source.read()
    except LayoutChanged:
        return values(source)
    return {
        channel.label: value * channel.scale
        for channel, value in zip(source.channels, read, strict=True)
        if value is not None
    }


def around(name: str, other: Callable[[], Any]) -> tuple[Values, Any, Values]:
    """Our reading before and after the other's: its counters lie in between."""
    source = source_of(name)
    try:
        return values(source), other(), values(source)
    finally:
        source.close()


def test_cpu_times_are_those_of_psutil() -> None:
    before, by_cpu, after = around("stat", lambda: psutil.cpu_times(percpu=True))
    for cpu, times in enumerate(by_cpu):
        for field in ("user", "nice", "system", "irq", "softirq", "steal"):
            label = f"cpu.{field}{{{cpu}}}"
            expected = getattr(times, field) * 1e9
            assert before[label] - 1 <= expected <= after[label] + 1, label


def test_memory_is_that_of_psutil() -> None:
    before, memory, after = around("meminfo", psutil.virtual_memory)
    assert before["memory.mem_total"] == memory.total
    for field, label in (("free", "memory.mem_free"), ("available", "memory.mem_available")):
        slack = memory.total / 50  # other processes go on meanwhile
        assert before[label] - slack <= getattr(memory, field) <= after[label] + slack


def test_disks_are_those_of_psutil() -> None:
    before, disks, after = around("diskstats", lambda: psutil.disk_io_counters(perdisk=True))
    labels = {label.rpartition("{")[2].rstrip("}") for label in before}
    assert labels
    fields = {
        "reads": ("read_count", 1), "writes": ("write_count", 1), "read_bytes": ("read_bytes", 1),
        "write_bytes": ("write_bytes", 1), "busy_time": ("busy_time", 1e6),
    }  # fmt: skip
    for disk in labels & disks.keys():
        for field, (theirs, scale) in fields.items():
            label = f"storage.disk.{field}{{{disk}}}"
            assert before[label] <= getattr(disks[disk], theirs) * scale <= after[label], label


def test_interfaces_are_those_of_psutil() -> None:
    before, nics, after = around("netdev", lambda: psutil.net_io_counters(pernic=True))
    fields = {
        "rx_bytes": "bytes_recv", "tx_bytes": "bytes_sent", "rx_packets": "packets_recv",
        "tx_packets": "packets_sent", "rx_drop": "dropin", "tx_errs": "errout",
    }  # fmt: skip
    labels = {label.rpartition("{")[2].rstrip("}") for label in before}
    for nic in labels & nics.keys():
        for field, theirs in fields.items():
            label = f"network.nic.{field}{{{nic}}}"
            assert before[label] <= getattr(nics[nic], theirs) <= after.get(label, before[label])


def test_statistics_are_those_of_psutil() -> None:
    before, stats, after = around("stat", psutil.cpu_stats)
    assert before["cpu.context_switches"] <= stats.ctx_switches <= after["cpu.context_switches"]
    assert before["cpu.interrupts.total"] <= stats.interrupts <= after["cpu.interrupts.total"]


@pytest.mark.parametrize(
    "name",
    ["stat", "cpuclock", "softirqs", "interrupts", "vmstat", "psi", "diskstats", "netdev",
     "netstat", "snmp", "softnet", "perf", "tracepoints", "numa"],
)  # fmt: skip
def test_counters_never_fall(name: str) -> None:
    first, _, second = around(name, lambda: sum(range(10_000)))
    source = source_of(name)
    counters = {each.label for each in source.channels if each.kind is Kind.COUNTER}
    source.close()
    # idle and iowait may go back by a tick: the kernel's own documentation warns of it
    loose = ("cpu.idle", "cpu.iowait")
    fell = {
        label
        for label in counters & first.keys() & second.keys()
        if second[label] < first[label] and not label.startswith(loose)
    }
    assert counters
    assert not fell


def test_the_fine_clock_sees_a_spin_of_50_ms() -> None:
    source = source_of("cpuclock")
    before, start = sum(values(source).values()), time.process_time()
    while time.process_time() - start < 0.05:
        pass
    after = sum(values(source).values())
    source.close()
    assert after - before >= 0.049e9


def test_context_switches_are_counted_by_perf() -> None:
    source = source_of("perf")
    before = values(source)
    left, right = socket.socketpair()
    pid = os.fork()
    if pid == 0:  # answers each byte: two switches at least
        while data := right.recv(1):
            right.send(data)
            if data == b"x":
                os._exit(0)
    for byte in b"a" * 200 + b"x":
        left.send(bytes([byte]))
        left.recv(1)
    os.waitpid(pid, 0)
    after = values(source)
    source.close()
    left.close()
    right.close()
    assert after["cpu.perf.context_switches"] - before["cpu.perf.context_switches"] >= 200
    by_cpu = [v for k, v in after.items() if k.startswith("cpu.perf.context_switches{")]
    assert sum(by_cpu) == after["cpu.perf.context_switches"]


def test_forks_pass_their_tracepoint() -> None:
    source = source_of("tracepoints")
    before = values(source)
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    after = values(source)
    source.close()
    label = "cpu.trace.sched_process_fork"
    if label not in before:
        pytest.skip("this kernel has no such tracepoint")
    assert after[label] - before[label] >= 5


def test_tcp_sockets_are_found_in_their_states() -> None:
    source = source_of("tcpdiag")
    before = values(source)
    with socket.create_server(("127.0.0.1", 0)) as server:
        clients = [socket.create_connection(server.getsockname()) for _ in range(7)]
        accepted, _ = server.accept()
        clients[0].sendall(b"12345")
        during = values(source)
        for end in (*clients, accepted):
            end.close()
    source.close()
    # others' connections come and go meanwhile, so at least
    assert during["network.tcp.state.established"] - before["network.tcp.state.established"] >= 10
    assert during["network.tcp.state.listen"] >= 1
    assert during["network.tcp.accept_queue"] >= 6
    assert during["network.tcp.receive_queue"] >= 5


def test_data_of_a_closed_connection_is_not_counted_as_queued() -> None:
    source = source_of("tcpdiag")
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                client.send(bytes(1 << 16))
        levels = values(source)
        client.close()
        orphaned = values(source)
        accepted.close()
    source.close()
    assert levels["network.tcp.send_queue"] >= 100_000
    assert orphaned["network.tcp.state.fin_wait1"] >= 1
    assert orphaned["network.tcp.send_queue"] < levels["network.tcp.send_queue"] / 2


@pytest.fixture
def limited() -> Iterator[str]:
    """An interface of ours with a token bucket that lets next to nothing through (tc-tbf(8))."""
    if os.geteuid() or not shutil.which("tc"):
        pytest.skip("needs root and tc")
    name = f"rvq{os.getpid() % 10**6}"
    setup = (
        f"ip link add {name} type veth peer name {name}p",
        f"ip link set {name}p up",
        f"ip link set {name} up",
        f"ip addr add 10.255.77.1/30 dev {name}",
        f"ip neigh add 10.255.77.2 lladdr 02:00:00:00:00:01 dev {name}",
        f"tc qdisc add dev {name} root tbf rate 8kbit burst 2kb limit 20kb",
    )
    try:
        for command in setup:
            subprocess.run(command.split(), check=True, capture_output=True)
        yield name
    finally:
        subprocess.run(["ip", "link", "del", name], check=False, capture_output=True)


def test_packets_that_a_rate_limit_delays_are_those_of_tc(limited: str) -> None:
    source = source_of("qdisc")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(100):
            with contextlib.suppress(OSError):
                sender.sendto(bytes(1000), ("10.255.77.2", 9))
    result = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", limited],
                          check=True, capture_output=True)  # fmt: skip
    (tc,) = json.loads(result.stdout)
    found = read_values(source)
    subprocess.run(["ip", "link", "del", limited], check=True, capture_output=True)
    read_values(source)
    assert not any(limited in channel.label for channel in source.channels)
    source.close()
    assert found[f"network.qdisc.drops{{{limited}}}"] == tc["drops"] > 50
    assert found[f"network.qdisc.overlimits{{{limited}}}"] >= tc["overlimits"] > 50
    assert found[f"network.qdisc.backlog{{{limited}}}"] == pytest.approx(tc["backlog"], rel=0.2)


def test_more_sockets_than_the_limit_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reveal_collector.sources.tcpdiag.MAX_SOCKETS", 2)
    source = source_of("tcpdiag")
    with socket.create_server(("127.0.0.1", 0)) as server:
        clients = [socket.create_connection(server.getsockname()) for _ in range(3)]
        with pytest.raises(OSError, match="more than 2"):
            source.read()
        monkeypatch.undo()
        assert values(source)["network.tcp.state.established"] >= 3  # the next read is whole
        for client in clients:
            client.close()
    source.close()


def test_this_host_gives_seven_hundred_channels() -> None:
    count = 0
    for source in (sources for factory in FACTORIES for sources in factory(Roots())):
        try:
            source.open()
        except Unsupported:
            continue
        count += len(source.channels)
        source.close()
    assert count >= 700
