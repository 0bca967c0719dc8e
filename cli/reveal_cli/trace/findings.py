"""Findings on a timeline: who causes them, what they are, and whom they slow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from reveal_cli.errors import CliError
from reveal_cli.trace.packets import Slice
from reveal_cli.trace.timeline import Timeline, TrackPath, identity
from reveal_contract.finding import Confidence, FindingKind
from reveal_contract.time_units import NS_PER_SECOND

Row = Mapping[str, Any]  # of findings.jsonl

JOBS = "Pods and jobs"
_UNKNOWN = "cause unknown"
_TEXTS = ("claim", "severity", "state", "resolution", "id")


def read(path: Path) -> list[Row]:
    """Return the last state of each finding of a file; raises ``CliError``."""
    rows: dict[str, Row] = {}
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"cannot read {path}: {error}") from None
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            _check(row)
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ):
            raise CliError(f"{path}: line {number} is not a finding") from None
        rows[row["id"]] = row
    return list(rows.values())


def _check(row: Row) -> None:
    """Draw a finding, which raises an error if a part of it is missing or of another type."""
    timeline = Timeline()
    draw(timeline, row)
    for track, _, unit in counters(row):
        timeline.count(track, unit, 0, 0.0)
    list(timeline.packets(0, 0))


def draw(timeline: Timeline, row: Row) -> None:
    """Add an anomaly, its causes before it and its victims after it, joined by flows."""
    if row["kind"] != FindingKind.ANOMALY:
        return  # a rule on the configuration has no beginning
    begin_ns, end_ns = times(row)
    causes, victims = dict(_causes(row)), _victims(row)
    incoming = {name: identity("cause", row["id"], name) for name in causes}
    outgoing = {name: identity("victim", row["id"], name) for name in victims}
    title, node = _title(row), row["nodeName"]
    for name, share in causes.items():
        cause = Slice(
            f"causes {title}", begin_ns, end_ns, "cause", share, flows_out=[incoming[name]]
        )
        timeline.add((node, JOBS, name), cause)
    finding = Slice(
        f"{title} ({row['severity']})", begin_ns, end_ns, "finding", _details(row),
        flows_out=list(outgoing.values()), flows_in=list(incoming.values()),
    )  # fmt: skip
    timeline.add((node, row["subsystem"]), finding)
    for name, harm in victims.items():
        victim = Slice(
            f"slowed by {title}", begin_ns, end_ns, "victim", harm, flows_in=[outgoing[name]]
        )
        timeline.add((node, JOBS, name), victim)


def times(row: Row) -> tuple[int, int]:
    """Return the begin and the end of a finding; it lasts a second at least."""
    begin, end = (_ns(row[key]) for key in ("firstSeenTime", "lastSeenTime"))
    return begin, max(end, begin + NS_PER_SECOND)


def counters(row: Row) -> Iterator[tuple[TrackPath, str, str]]:
    """Yield the metrics of the evidence: the path of their track, their label, and their unit."""
    if row["kind"] != FindingKind.ANOMALY:
        return
    for evidence in row["evidence"]:
        label = label_of(evidence)
        yield (row["nodeName"], row["subsystem"], label), label, evidence["unit"]


def label_of(evidence: Row) -> str:
    """Return the label of a line of evidence; that of a plain level has no feature."""
    instance = f"{{{evidence['instance']}}}" if evidence["instance"] else ""
    feature = "" if evidence["feature"] == "mean" else f" {evidence['feature']}"
    return f"{evidence['metric']}{instance}{feature}"


def _title(row: Row) -> str:
    cause = row["hypothesis"]
    return str(cause["name"]) if cause else _UNKNOWN


def _causes(row: Row) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the pods and subjects whose shares changed, with these; others only ran there."""
    slowed = row.get("impact", {}).get("subject")
    for each in chain(row["pods"], row["subjects"]):
        name = subject_name(each)
        known = each["confidence"] != Confidence.CO_LOCATED and each["changePercent"] > 0
        if known and name != slowed:
            share = f"{each['sharePercent']} % of {row.get('shareMetric') or 'its metric'}"
            yield name, {"share": share, "confidence": each["confidence"]}


def subject_name(each: Row) -> str:
    """Return the name of a pod or another subject."""
    namespace = each.get("namespace")
    return f"{namespace}/{each['name']}" if namespace else str(each["name"])


def _victims(row: Row) -> dict[str, dict[str, str]]:
    """Return the jobs that a finding slows, and how it is known."""
    result: dict[str, dict[str, str]] = {name: {} for name in row.get("victims", ())}
    for loss in row.get("lostTime", ()):
        result.setdefault(loss["subject"], {})["lost time"] = f"{loss['lostPercent']} %"
    if impact := row.get("impact"):
        slower = f"{impact['slowdownPercent']} % longer steps"
        result.setdefault(impact["subject"], {})["slowdown"] = slower
    return result


def _details(row: Row) -> dict[str, str]:
    """Return what the viewer shows of a selected finding."""
    details = {key: str(row[key]) for key in _TEXTS if row.get(key)}
    if row["hypothesis"]:
        details["remedy"] = row["hypothesis"]["remediation"]
    if cost := row.get("cost"):
        details["cost"] = f"{cost['lostGPUHours']} GPU-hours"
    for number, note in enumerate(row["notes"], 1):
        details[f"note {number}"] = str(note)
    for evidence in row["evidence"]:
        values = f"{evidence['value']} {evidence['unit']}, baseline {evidence['baseline'] or '-'}"
        details[f"evidence {label_of(evidence)}"] = values
    return details


def _ns(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * NS_PER_SECOND + moment.microsecond * 1000
