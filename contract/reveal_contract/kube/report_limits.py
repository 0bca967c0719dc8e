"""Limits of an AnomalyReport: each text, list and percent, and the size of the whole object.

The schema in ``crds/`` has the same limits.  An object in etcd is best kept small, so a report
that is too large loses entries of its lists until it fits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from reveal_contract.finding import Finding
from reveal_contract.kube.names import clipped
from reveal_contract.names import camel_case

T = TypeVar("T")

MAX_BYTES = 8192
_SERVER_BYTES = 512  # uid, resourceVersion, creationTimestamp and what else the server adds
_OWNER_BYTES = 256  # an ownerReference

# of each list: how many entries at most, and how many are kept at first when the report is too
# large.  The lists that say least come first.
LISTS = {
    "notes": (10, 1),
    "victims": (10, 1),
    "lostTime": (5, 1),
    "podCosts": (8, 1),
    "subjects": (10, 2),
    "methods": (8, 3),
    "pods": (10, 2),
    "evidence": (10, 3),
    "subsystems": (5, 5),
}
# of each text in bytes, by the path of its keys in the status; None is every other one
_TEXTS: dict[str | None, int] = {
    "claim": 512,
    "hypothesis.name": 63,
    "hypothesis.remediation": 512,
    "methods.name": 63,
    "evidence.instance": 253,
    "pods.namespace": 63,
    "pods.name": 253,
    "pods.uid": 64,
    "pods.container": 63,
    "subjects.kind": 63,
    "subjects.name": 253,
    "victims": 317,
    "notes": 256,
    "impact.subject": 317,
    "lostTime.subject": 317,
    "podCosts.name": 317,
    "delayedJob.name": 317,
    "verification.subject": 317,
    "verification.change": 256,
    None: 128,
}
_UNLIMITED = ("id", "node_name")  # they identify the finding: its spec never changes
_WITHOUT_SUFFIX = ("impact.confidence",)  # percents that are not named so


def limited(finding: Finding) -> Finding:
    """Return the finding with its texts and lists cut and its percents in their range."""
    names = [spec.name for spec in fields(Finding) if spec.name not in _UNLIMITED]
    return replace(
        finding, **{name: _limited(getattr(finding, name), camel_case(name)) for name in names}
    )


def _limited(value: Any, path: str) -> Any:
    if isinstance(value, Enum):  # one of a few words, although it is a string
        return value
    if isinstance(value, str):
        return clipped(value, _TEXTS.get(path, _TEXTS[None]))
    if isinstance(value, tuple):
        return tuple(_limited(item, path) for item in value[: LISTS[path][0]])
    if is_dataclass(value) and not isinstance(value, type):
        parts = {
            spec.name: _limited(getattr(value, spec.name), f"{path}.{camel_case(spec.name)}")
            for spec in fields(value)
        }
        return replace(value, **parts)
    if isinstance(value, int) and not isinstance(value, bool) and _is_percent(path):
        return max(-100 if path.endswith("changePercent") else 0, min(100, value))
    return value


def _is_percent(path: str) -> bool:
    return path.endswith("Percent") or path in _WITHOUT_SUFFIX


def kept_entries(created: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, int]:
    """Return how many entries of each list of ``status`` fit into ``MAX_BYTES``.

    ``created`` is the object without its status.  The list that takes most room loses its last
    entry, again and again.
    """
    room = MAX_BYTES - _size(created) - _OWNER_BYTES - _SERVER_BYTES
    rest = dict(status)
    while _size(rest) > room and (longest := _longest(rest)) is not None:
        rest[longest] = rest[longest][:-1]
        if not rest[longest]:
            del rest[longest]
    return {name: len(rest.get(name, ())) for name in LISTS if name in status}


def _longest(status: Mapping[str, Any]) -> str | None:
    """Return the list to shorten: the largest over its least number, else over one entry.

    Where every list has one entry left, it is the one that says least.
    """
    lists = [name for name in LISTS if status.get(name)]
    for leasts in ({name: least for name, (_, least) in LISTS.items()}, dict.fromkeys(LISTS, 1)):
        over = [name for name in lists if len(status[name]) > leasts[name]]
        if over:
            return max(over, key=lambda name: _size(status[name]))
    return lists[0] if lists else None


def _size(part: Any) -> int:
    """Return bytes of JSON as the API server writes it: ``<``, ``>`` and ``&`` take six each."""
    text = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode(errors="replace")) + 5 * sum(map(text.count, "<>&"))
