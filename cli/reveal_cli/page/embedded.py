"""Data in the page: the findings as JSON for programs, and what the script needs."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from reveal_cli.page import charts
from reveal_cli.page.markup import Markup, raw_text
from reveal_cli.page_data.model import MetricSeries, PageData

FINDINGS_ID, BRUSH_ID = "findings-json", "brush-json"


def findings_json(data: PageData) -> Markup:
    """Return the findings and hints as rows of ``findings.jsonl``."""
    found = [*(part.finding for part in data.findings), *data.hints]
    return _json(FINDINGS_ID, [finding.to_dict() for finding in found])


def brush_json(data: PageData) -> Markup:
    """Return the metrics that a span is ranked by."""
    content = {
        "startMs": data.start_ns // 1_000_000,
        "seconds": data.seconds,
        "perSecond": charts.PER_SECOND,
        "binSeconds": data.brush.bin_s,
        "bins": data.brush.bins,
        "series": [_series(series) for series in data.brush.series],
    }
    return _json(BRUSH_ID, content)


def _series(series: MetricSeries) -> dict[str, Any]:
    return {
        "label": series.label,
        "subsystem": series.subsystem,
        "baseline": series.unit.text(series.baseline),
        "steps": list(series.unit.steps),
        "low": series.low,
        "high": series.high,
        "levels": b64encode(series.levels).decode(),
        "forecasts": b64encode(series.forecasts).decode(),
        "values": b64encode(series.values).decode(),
    }


def _json(identity: str, content: object) -> Markup:
    """Return a data block; no character of it can end the element or begin another one."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return raw_text("script", text, type="application/json", id=identity)
