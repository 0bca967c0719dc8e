"""The classes of a checkout: those of this one, or of one from before they were renamed."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

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
    """Return a source of cgroups: it takes the roots of the host, or before only the trees."""
    source = load(name)
    takes_roots = "roots" in inspect.signature(source).parameters
    return source(load("Roots")() if takes_roots else trees, tracker)


def walk(tracker: Any, now: float) -> None:
    """Let the tracker look for cgroups."""
    (tracker.update if hasattr(tracker, "update") else tracker.look)(now)


def announcement(table: Any) -> bytes:
    """Return a table as its collector announces it."""
    if hasattr(table, "announcement"):
        return bytes(table.announcement())
    return bytes(table.to_json())


def parsed(table_class: Any, data: bytes) -> Any:
    """Return the table that an analyzer makes of an announcement."""
    if hasattr(table_class, "from_announcement"):
        return table_class.from_announcement(data)
    return table_class.from_json(data)
