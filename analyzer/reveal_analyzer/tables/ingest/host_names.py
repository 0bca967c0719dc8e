"""Host names inside column names: ``n7.cpu.user``, ``mem_free@gpu-03``, ``up{instance="n7"}``.

A part of a name is taken for a host only where that is evident: it looks like one (a letter, and
a digit or a dash), and either most columns carry the same, or several such parts come with the same
metrics of more than one subsystem, as devices (``cpu0``, ``eth1``) do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeGuard

from reveal_analyzer.tables.ingest.subsystems import subsystem_of

_BETWEEN = re.compile(r"[./:|@_\s]+")
_LABELLED = re.compile(r"\{(.*)\}\s*\Z")
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"?([^",]*)"?\s*(?:,|\Z)')
_HOST_LABELS = ("instance", "hostname", "host", "nodename", "node", "exported_instance")
_PORT = re.compile(r":\d+\Z")
# a statistic, a time span or a device is no host, though it looks like one
_NO_HOST = re.compile(
    r"(p|q|v|h|m|l|avg|load|cpu|core|gpu|card|eth|ens?|eno|enp|ib|bond|wlan|lo|sd|vd|nvme|dm|md|disk|dev"
    r"|irq|numa|socket|package|port|lane|queue|rank|mlx|nvidia|hfi|rx|tx|ipv|tcp|udp|state|zone)"
    r"[-_]?\d+\w*\Z|\d+\w{0,3}\Z",
    re.IGNORECASE,
)
_MOST_PARTS = 5  # of a name that can belong to a host: gpu-node-17.rack-2.site
_FEWEST = 3  # metrics that all columns of a lone host must be, at least
_MOSTLY = 0.5  # of the columns
_ALIKE = 0.8  # of all metrics, that each of several hosts must have


@dataclass(frozen=True, slots=True)
class Named:
    """A column: whose it is ("" where that is not told) and the metric's name without that."""

    host: str
    metric: str


def split(columns: Sequence[str]) -> list[Named]:
    """Each column's host and metric; all hosts "" where none is evident.

    A lone host need not stand in all names: what does not name it is its own too.
    """
    for rule in _rules():
        named = [found if _host_like(found) else None for found in map(rule, columns)]
        if (made := _lone(named, columns) or _several(named)) is not None:
            return made
    return [Named("", column) for column in columns]


def _rules() -> Iterator[Callable[[str], Named | None]]:
    """Ways to cut a name in two, the surest first, then the shortest host first."""
    yield _by_label
    for parts in range(1, _MOST_PARTS + 1):
        yield partial(_before, parts=parts)
        yield partial(_after, parts=parts)


def _by_label(name: str) -> Named | None:
    """The host among Prometheus' labels, where an instance is ``host:port``."""
    match = _LABELLED.search(name)
    labels = dict(_LABEL.findall(match[1])) if match else {}
    key = next((label for label in _HOST_LABELS if labels.get(label)), None)
    if match is None or key is None:
        return None
    rest = ",".join(f'{label}="{value}"' for label, value in labels.items() if label != key)
    metric = name[: match.start()] + (f"{{{rest}}}" if rest else "")
    return Named(_PORT.sub("", labels[key]), metric)


def _before(name: str, parts: int) -> Named | None:
    cuts = list(_BETWEEN.finditer(name))
    if len(cuts) < parts:
        return None
    cut = cuts[parts - 1]
    return Named(name[: cut.start()], name[cut.end() :])


def _after(name: str, parts: int) -> Named | None:
    cuts = list(_BETWEEN.finditer(name))
    if len(cuts) < parts:
        return None
    cut = cuts[-parts]
    return Named(name[cut.end() :], name[: cut.start()])


def _lone(named: Sequence[Named | None], columns: Sequence[str]) -> list[Named] | None:
    hosts = [name.host for name in named if name is not None]
    if len(set(hosts)) != 1 or len(hosts) < max(_FEWEST, _MOSTLY * len(columns)):
        return None
    made = [name or Named(hosts[0], column) for name, column in zip(named, columns, strict=True)]
    return made if len(set(made)) == len(made) else None  # two columns must not become one


def _several(named: Sequence[Named | None]) -> list[Named] | None:
    made = [name for name in named if name is not None]
    if len(made) < len(named) or len(set(made)) < len(made):
        return None
    metrics: dict[str, set[str]] = {}
    for name in made:
        metrics.setdefault(name.host, set()).add(name.metric)
    everything = set().union(*metrics.values())
    alike = all(len(some) >= _ALIKE * len(everything) for some in metrics.values())
    areas = {subsystem_of(metric) for metric in everything} - {None}
    return made if len(metrics) > 1 and alike and len(areas) > 1 else None


def _host_like(name: Named | None) -> TypeGuard[Named]:
    if name is None or not name.metric:
        return False
    return (
        any(letter.isalpha() for letter in name.host)
        and any(letter.isdigit() or letter == "-" for letter in name.host)
        and not _NO_HOST.match(name.host)
    )
