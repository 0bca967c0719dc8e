"""Host names inside column names: ``n7.cpu.user``, ``mem_free@gpu-03``, ``up{instance="n7"}``.

A part of a name is a host only if that is evident.  It looks like a host (a letter, and a digit or
a dash).  And either most columns have the same part, or several such parts have the same metrics of
more than one subsystem, as devices (``cpu0``, ``eth1``) do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeGuard

from reveal_analyzer.tables.ingest.subsystems import subsystem_of

_BETWEEN = re.compile(r"\s+-\s+|[./:|@_\s]+")  # Weights & Biases writes "run - metric"
# begins at a comma only: a name of any length is read in one pass
_LABEL = re.compile(r'(?:\A|,)\s*([A-Za-z_]\w*+)\s*=\s*"?([^",]*+)"?\s*(?=,|\Z)')
_HOST_LABELS = ("instance", "hostname", "host", "nodename", "node", "exported_instance")
_PORT = re.compile(r":\d+\Z")
# statistics, time spans and devices look like hosts
_NO_HOST = re.compile(
    r"(p|q|v|h|m|l|avg|load|cpu|core|gpu|card|eth|ens?|eno|enp|ib|bond|wlan|lo|sd|vd|nvme|dm|md|disk|dev"
    r"|irq|numa|socket|package|port|lane|queue|rank|mlx|nvidia|hfi|rx|tx|ipv|tcp|udp|state|zone)"
    r"[-_]?\d+\w*\Z|\d+\w{0,3}\Z",
    re.IGNORECASE,
)
_DEVICE_AND_NUMBER = re.compile(
    r"(?:\A|.*[./_])(gpu|cpu|core|card|disk|socket|numa|port|lane|queue)[./]\d+\Z", re.IGNORECASE
)
_MOST_PARTS = 5  # parts of a name that may belong to a host: gpu-node-17.rack-2.site
_FEWEST = 3  # columns with the name that a single host needs at least
_MOSTLY = 0.5  # of the columns
_ALIKE = 0.8  # share of all metrics that each of several hosts must have


@dataclass(frozen=True, slots=True)
class HostMetric:
    """A column: its host ("" if unknown) and the metric's name without the host."""

    host: str
    metric: str


def split_hosts(columns: Sequence[str]) -> list[HostMetric]:
    """Return each column's host and metric; all hosts are "" if none is evident.

    A single host need not be in all names: columns without it belong to it too.
    """
    for rule in _rules():
        named = [found if _host_like(found) else None for found in map(rule, columns)]
        if (result := _lone(named, columns) or _several(named)) is not None:
            return result
    return [HostMetric("", column) for column in columns]


def _rules() -> Iterator[Callable[[str], HostMetric | None]]:
    """Yield ways to split a name, the most certain first, then the shortest host first."""
    yield _by_label
    for parts in range(1, _MOST_PARTS + 1):
        yield partial(_before, parts=parts)
        yield partial(_after, parts=parts)


def _by_label(name: str) -> HostMetric | None:
    """Return the host among Prometheus labels; an instance may be ``host:port``."""
    metric, brace, inner = name.rstrip().partition("{")
    labels = dict(_LABEL.findall(inner[:-1])) if brace and inner.endswith("}") else {}
    key = next((label for label in _HOST_LABELS if labels.get(label)), None)
    if key is None:
        return None
    rest = ",".join(f'{label}="{value}"' for label, value in labels.items() if label != key)
    return HostMetric(_PORT.sub("", labels[key]), metric + (f"{{{rest}}}" if rest else ""))


def _before(name: str, parts: int) -> HostMetric | None:
    separators = list(_BETWEEN.finditer(name))
    if len(separators) < parts:
        return None
    separator = separators[parts - 1]
    return HostMetric(name[: separator.start()], name[separator.end() :])


def _after(name: str, parts: int) -> HostMetric | None:
    separators = list(_BETWEEN.finditer(name))
    if len(separators) < parts:
        return None
    separator = separators[-parts]
    return HostMetric(name[separator.end() :], name[: separator.start()])


def _lone(named: Sequence[HostMetric | None], columns: Sequence[str]) -> list[HostMetric] | None:
    hosts = [name.host for name in named if name is not None]
    if len(set(hosts)) != 1 or len(hosts) < max(_FEWEST, _MOSTLY * len(columns)):
        return None
    result = [
        name or HostMetric(hosts[0], column) for name, column in zip(named, columns, strict=True)
    ]
    return result if len(set(result)) == len(result) else None  # two columns must not become one


def _several(named: Sequence[HostMetric | None]) -> list[HostMetric] | None:
    result = [name for name in named if name is not None]
    if len(result) < len(named) or len(set(result)) < len(result):
        return None
    metrics: dict[str, set[str]] = {}
    for name in result:
        metrics.setdefault(name.host, set()).add(name.metric)
    everything = set().union(*metrics.values())
    alike = all(len(some) >= _ALIKE * len(everything) for some in metrics.values())
    areas = {subsystem_of(metric) for metric in everything} - {None}
    return result if len(metrics) > 1 and alike and len(areas) > 1 else None


def _host_like(name: HostMetric | None) -> TypeGuard[HostMetric]:
    if name is None or not name.metric:
        return False
    return (
        any(letter.isalpha() for letter in name.host)
        and any(letter.isdigit() or letter == "-" for letter in name.host)
        and not _NO_HOST.match(name.host)
        and not _DEVICE_AND_NUMBER.match(name.host)
    )
