"""The classes of a checkout: those of this one, or of one from before they were renamed."""

from __future__ import annotations

import importlib
import inspect
import sys
from types import SimpleNamespace
from typing import Any

STATUS_S = 5  # between two statuses of a collector
_NAMES = {
    "FineCpu": (
        "reveal_collector.subjects.fine_cpu:FineCpu",
        "reveal_collector.sources.fine:FineLane",
    ),
    "CgroupClocks": (
        "reveal_collector.subjects.cgroups:CgroupClocks",
        "reveal_collector.sources.subjects:CgroupClocks",
    ),
    "CgroupUsage": (
        "reveal_collector.subjects.cgroups:CgroupUsage",
        "reveal_collector.sources.subjects:CgroupUse",
    ),
    "Tracker": (
        "reveal_collector.subjects.tracker:SubjectTracker",
        "reveal_collector.sources.tenants:Tenants",
    ),
    "Selection": (
        "reveal_collector.subjects.tracker:SubjectSelection",
        "reveal_collector.sources.tenants:Choice",
    ),
    "ProcessGroups": ("reveal_collector.subjects.processes:ProcessGroups",),
    "Roots": ("reveal_collector.readers.source:Roots",),
    "hierarchies": (
        "reveal_collector.subjects.cgroup_files:hierarchies",
        "reveal_collector.sources.cgroups:hierarchies",
    ),
    "LayoutChanged": (
        "reveal_collector.kernel_interfaces.errors:LayoutChanged",
        "reveal_collector.kernel.errors:LayoutChanged",
        "reveal_collector.source:LayoutChanged",
    ),
    "NodeAnalyzer": ("reveal_analyzer.node:NodeAnalyzer", "reveal_analyzer.engine:NodeAnalyzer"),
}


def load(name: str) -> Any:
    """Return a class or function of the checkout that runs."""
    for each in _NAMES[name]:
        module, _, attribute = each.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except ImportError:
            continue
    raise ImportError(f"this checkout has none of {', '.join(_NAMES[name])}")


def cgroup_source(name: str, trees: Any, tracker: Any) -> Any:
    """Return a source of cgroups, made with what the checkout's own class asks for.

    The newest takes the roots of the host and its process groups, the oldest only the trees.
    """
    source = load(name)
    asked = inspect.signature(source).parameters
    given = [load("Roots")() if "roots" in asked else trees, tracker]
    if "groups" in asked:
        given.append(load("ProcessGroups")(given[0], None, tracker.selection))
    return source(*given)


def walk(tracker: Any, now: float) -> None:
    """Let the tracker look for cgroups."""
    (tracker.update if hasattr(tracker, "update") else tracker.look)(now)


class Announcements:
    """What a collector of the checkout announces of its tables, and what an analyzer reads."""

    def __init__(self) -> None:
        self._bases: dict[bytes, Any] = {}
        try:
            self._changes = importlib.import_module("reveal_contract.table_changes").TableChanges
        except ImportError:
            self._record = None
            return
        record = importlib.import_module("reveal_collector.shipping.node_record").NodeRecord
        self._sent = _Connection()
        self._record = _node_record(record, self._sent)
        self._now = 0.0
        sys.modules[record.__module__].time = SimpleNamespace(monotonic=lambda: self._now)

    def written(self, table: Any) -> bytes:
        """Return what is announced of a table that the node has from now on."""
        if self._record is None:
            whole = hasattr(table, "announcement")
            return bytes(table.announcement() if whole else table.to_json())
        self._sent.value = b""
        self._record.announce(table, dict)
        return self._sent.value

    def second(self, number: int) -> bytes:
        """Return what is announced with the status of a second, of which there is one in five."""
        self._now = float(number)
        if self._record is None or number % STATUS_S:
            return b""
        self._sent.value = b""
        self._record.publish({}, None)
        return self._sent.value

    def read(self, table_class: Any, data: bytes) -> Any:
        """Return the table that an analyzer makes of an announcement; b"" announces the base."""
        if not data:
            [base] = self._bases.values()
            return base
        if self._record is not None and ":changes:" in self._sent.key:
            changes = self._changes.from_announcement(data)
            return changes.applied(self._bases[changes.base])
        compressed = hasattr(table_class, "from_announcement")
        table = table_class.from_announcement(data) if compressed else table_class.from_json(data)
        self._bases = {table.key: table}
        return table


def _node_record(record: Any, connection: Any) -> Any:
    """Return a record of a node, made with what the checkout's own class asks for.

    The newest takes the proof of origin of the collector, here of one without a token.
    """
    settings = importlib.import_module("reveal_contract.settings").CollectorSettings
    given = [connection, settings("bench", "unix:///unused")]
    if "proof" in inspect.signature(record).parameters:
        module = importlib.import_module("reveal_collector.shipping.origin_proof")
        given.append(module.OriginProof(""))
    return record(*given)


class _Connection:
    """Keeps the last announcement instead of sending it."""

    def __init__(self) -> None:
        self.key, self.value = "", b""

    def call(self, command: tuple[Any, ...]) -> int:
        if command[0] == "SET":
            self.key, self.value = command[1:3]
        return 1

    def transaction(self, commands: list[tuple[Any, ...]]) -> list[int]:
        return [self.call(command) for command in commands]
