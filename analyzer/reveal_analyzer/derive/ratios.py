"""Derived metrics: quotients and sums of channels that say more than the channels do.

Their catalogue rows are in ``reveal_contract.catalogue.derived``; here stands how they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reveal_analyzer.derive.cpu_ratios import quotients
from reveal_analyzer.derive.device_ratios import device_quotients
from reveal_analyzer.derive.gpu_ratios import gpu_quotients
from reveal_analyzer.kernels.formulas import Formula, maximum, maximum_known, minimum, read, total
from reveal_contract import catalogue
from reveal_contract.channels import Channel
from reveal_contract.metric import Metric

_BUSY = ("cpu.user", "cpu.nice", "cpu.system", "cpu.irq", "cpu.softirq")
_FOLDED = "cpu.percpu.busy.max"  # the busiest CPU of each tick, on hosts of many CPUs
# of /proc/interrupts, of x86 and of Arm: rescheduling, function calls
_BETWEEN_CPUS = ("RES", "CAL", "IPI0", "IPI1")
_SHARE = 1_000_000  # parts per million


@dataclass(frozen=True)
class Ratio:
    """One derived column, by a formula over the seconds of all channels."""

    metric: Metric
    instance: str
    formula: Formula


def ratios(channels: Sequence[Channel], kept: Sequence[int]) -> tuple[Ratio, ...]:
    """All derived columns these channels allow."""
    at = {(channels[k].metric, channels[k].instance): k for k in kept}
    made = [_busy(at), _spread(at), _busiest(at), _external_interrupts(at)]
    made += [_retransmit_share(at), _reserved_share(at)]
    disks = dict.fromkeys(name for metric, name in at if metric == "storage.disk.reads")
    made += [_await(at, disk) for disk in disks]
    made += [
        Ratio(*computed) for computed in (*quotients(at), *gpu_quotients(at), *device_quotients(at))
    ]
    return tuple(ratio for ratio in made if ratio is not None)


Places = dict[tuple[str, str], int]


def _busy(at: Places) -> Ratio | None:
    parts = _places(at, _BUSY, "")
    return Ratio(catalogue.find("cpu.busy"), "", total(parts)) if parts else None


def _spread(at: Places) -> Ratio | None:
    """Busiest minus idlest CPU: work that cannot or does not move.

    Of large hosts nobody knows the idlest: there it is the busiest less the mean of all.
    """
    metric = catalogue.find("cpu.imbalance")
    most, cpus, parts = at.get((_FOLDED, "")), at.get(("cpu.online", "")), _places(at, _BUSY, "")
    if most is not None and cpus is not None:
        return Ratio(metric, "", read(most) - total(parts) / maximum(read(cpus), 1.0))
    each = _busy_by_cpu(at)
    return Ratio(metric, "", maximum(*each) - minimum(*each)) if len(each) > 1 else None


def _busiest(at: Places) -> Ratio | None:
    """The largest of the CPUs, or on large hosts what the collector found of each tick."""
    metric = catalogue.find("cpu.busiest")
    folded = at.get((_FOLDED, ""))
    if folded is not None:
        return Ratio(metric, "", read(folded))
    each = _busy_by_cpu(at)
    return Ratio(metric, "", maximum(*each)) if each else None


def _busy_by_cpu(at: Places) -> list[Formula]:
    cpus = [name for metric, name in at if metric == "cpu.user" and name]
    rows = [_places(at, _BUSY, cpu) for cpu in cpus]
    return [total(row) for row in rows if len(row) == len(_BUSY)]


def _external_interrupts(at: Places) -> Ratio | None:
    """All, without those that CPUs send each other: a wake-up on another CPU takes one."""
    every = at.get(("cpu.interrupts.total", ""))
    if every is None:
        return None
    names = [("cpu.interrupts.irq", one) for one in _BETWEEN_CPUS]
    sent = [at[name] for name in names if name in at]
    external = maximum(read(every) - total(sent), 0.0)
    return Ratio(catalogue.find("cpu.interrupts.external"), "", external)


def _retransmit_share(at: Places) -> Ratio | None:
    """Retransmitted of sent segments; 2,000 sent a second at least, so that one is no storm.

    Those of the host's network namespace and of all that its subjects have of their own: a pod's
    connections are none of the host's.
    """
    again, sent = (_tcp_of_all(at, name) for name in ("retrans_segs", "out_segs"))
    if not (again and sent):
        return None
    host, *own = again
    lost = _SHARE * (read(host) + total(own)) / maximum(total(sent), 2000.0)
    return Ratio(catalogue.find("network.tcp.retransmit_share"), "", lost)


def _tcp_of_all(at: Places, name: str) -> list[int]:
    """The host's counter first; none where it has none."""
    host = at.get((f"network.tcp.{name}", ""))
    if host is None:
        return []
    own = (place for (metric, _), place in at.items() if metric == f"network.subject.{name}")
    return [host, *own]


def _reserved_share(at: Places) -> Ratio | None:
    """Huge pages of the default size, of all memory."""
    names = ("memory.huge_pages_total", "memory.hugepagesize", "memory.mem_total")
    places = [at[name, ""] for name in names if (name, "") in at]
    if len(places) < len(names):
        return None
    pages, size, memory = map(read, places)
    share = _SHARE * pages * size / memory
    return Ratio(catalogue.find("memory.huge_pages_reserved_share"), "", share)


def _await(at: Places, disk: str) -> Ratio | None:
    """Mean time a request took, as iostat's await; five requests a second at least."""
    times = _places(at, ("storage.disk.read_time", "storage.disk.write_time"), disk)
    requests = _places(at, ("storage.disk.reads", "storage.disk.writes"), disk)
    if len(times) < 2 or len(requests) < 2:
        return None
    time, done = (read(one) + read(other) for one, other in (times, requests))
    return Ratio(catalogue.find("storage.disk.await"), disk, time / maximum_known(done, 5.0))


def _places(at: Places, metrics: Sequence[str], instance: str) -> list[int]:
    return [at[metric, instance] for metric in metrics if (metric, instance) in at]
