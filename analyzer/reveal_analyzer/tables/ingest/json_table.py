"""Answers of monitoring services in JSON, and rows of samples in JSON.

Read are Prometheus' ``query_range``, the export of VictoriaMetrics, Datadog's ``query``, InfluxDB's
``query`` of version 1, CloudWatch's ``get-metric-data`` and ``get-metric-statistics``, ``perf stat
-j``, and objects with a key for each column, in an array or in lines.  A document is read as a
whole: it is the answer to a question about a span of time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from reveal_analyzer.tables.ingest.column_names import unique_names
from reveal_analyzer.tables.ingest.common_times import common_times
from reveal_analyzer.tables.ingest.field_kinds import MISSING
from reveal_analyzer.tables.ingest.number_texts import NumberMarks, numbers_if_all
from reveal_analyzer.tables.ingest.open import TableFileError, open_text, readable_errors

TIME = "time"
_MOST_BYTES = 256 << 20
_MOST_CELLS = 50_000_000
_HOST_LABELS = frozenset(("instance", "host", "hostname", "node", "nodename"))
# keys of perf stat -j: the columns of perf stat -x,
_COMMENTS = re.compile(r"\A\ufeff?(?:\s|#[^\n]*\n)*")  # perf stat writes some
_PERF_KEYS = {"interval": "time", "counter-value": "value", "event-runtime": "runtime"}
_KEYS = {"counter-value": "perf-stat", "_timestamp": "wandb"}  # those of rows of a tool
_STATISTICS = ("Average", "Sum", "Minimum", "Maximum", "SampleCount")


class Series(NamedTuple):
    """The values of a metric with labels."""

    name: str
    labels: Mapping[str, str]
    times: Sequence[Any]
    values: Sequence[Any]


class JsonTable:
    """The table of a JSON file; raises ``TableFileError`` if it holds none.

    ``format`` names the tool that writes such a document; "" if others do as well.
    """

    host = ""
    since = None
    marks = NumberMarks()

    def __init__(self, path: Path) -> None:
        documents = _documents(path)
        try:
            self.format, series = _recognized(documents)
            self._frame = _wide(series) if series else _rows(documents)
        except TableFileError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise _unknown(path, documents) from error
        if self._frame is None or self._frame.empty:
            raise _unknown(path, documents)
        if not self.format:
            self.format = next((_KEYS[key] for key in _KEYS if key in self._frame), "")
            self._frame = self._frame.rename(columns=_PERF_KEYS if "event" in self._frame else {})
        self.names = unique_names(list(map(str, self._frame.columns)))

    @property
    def notes(self) -> list[str]:
        return []

    def blocks(self) -> Iterator[pd.DataFrame]:
        """Yield the whole table, its columns by number."""
        frame = self._frame
        if frame is not None:
            numbered = frame.set_axis(range(len(self.names)), axis="columns")
            yield numbered.mask(numbered.isin(MISSING)).apply(numbers_if_all)


def begins_json(head: str) -> bool:
    """Return whether a text begins as JSON does, below comments, and not as a time in brackets."""
    bare = _COMMENTS.sub("", head, count=1)
    return bare[:1] == "{" or (bare[:1] == "[" and bare[1:].lstrip()[:1] in ("{", "[", '"'))


def _documents(path: Path) -> list[Any]:
    """Return the document of a file, or that of each of its lines."""
    with readable_errors(path), open_text(path) as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise TableFileError(
            f"{path} is JSON of more than {_MOST_BYTES >> 20} MiB, which is read as a whole: ask"
            " for a shorter span of time, or write CSV"
        )
    text = data.decode("utf-8-sig", "replace")
    try:
        return [json.loads(text)]
    except (json.JSONDecodeError, RecursionError) as error:
        whole: Exception = error
    lines = [line for line in map(str.strip, text.splitlines()) if line[:1] not in ("", "#")]
    try:
        if not all(line.startswith("{") for line in lines):
            raise whole
        return [json.loads(line) for line in lines]
    except (json.JSONDecodeError, RecursionError) as error:
        raise TableFileError(f"{path} is damaged or cut off: {error}") from None


def _unknown(path: Path, documents: list[Any]) -> TableFileError:
    first = documents[0] if documents else None
    if isinstance(first, dict) and "sysstat" in first:
        return TableFileError(f"{path} is JSON of sysstat: write it by `sadf -d` or `iostat -t`")
    return TableFileError(
        f"{path} is JSON that is no table: write an object for each sample with a key for each"
        " metric, or the answer of query_range"
    )


def _recognized(documents: list[Any]) -> tuple[str, list[Series]]:
    """Return the format of documents and their series; "" and none if they may be rows."""
    for name, key, read in _SERVICES:
        found = [
            document for document in documents if isinstance(document, dict) and key in document
        ]
        if len(found) == len(documents) and (series := [s for each in found for s in read(each)]):
            return name, series
    return "", []


def _prometheus(document: Mapping[str, Any]) -> Iterator[Series]:
    data = document["data"]
    for each in data["result"] if isinstance(data, dict) else ():
        labels = dict(each["metric"])
        points = each["values"]
        yield Series(labels.pop("__name__", ""), labels, *_columns(points))


def _victoriametrics(document: Mapping[str, Any]) -> Iterator[Series]:
    if isinstance(document["metric"], dict):
        labels = dict(document["metric"])
        yield Series(labels.pop("__name__", ""), labels, document["timestamps"], document["values"])


def _datadog(document: Mapping[str, Any]) -> Iterator[Series]:
    for each in document["series"]:
        if "pointlist" in each:
            tags = [tag.partition(":") for tag in str(each.get("scope", "")).split(",")]
            labels = {key: value for key, colon, value in tags if colon}
            yield Series(str(each.get("metric", "")), labels, *_columns(each["pointlist"]))


def _influxdb(document: Mapping[str, Any]) -> Iterator[Series]:
    found = [each for result in document["results"] for each in result.get("series", ())]
    several = len({each.get("name") for each in found}) > 1
    for each in found:
        columns = dict(zip(each["columns"], zip(*each["values"], strict=True), strict=True))
        times = columns.pop("time")
        measurement = f"{each['name']}." if several else ""
        for name, values in columns.items():
            yield Series(f"{measurement}{name}", each.get("tags") or {}, times, values)


def _cloudwatch(document: Mapping[str, Any]) -> Iterator[Series]:
    for each in document["MetricDataResults"]:
        yield Series(str(each.get("Label") or each["Id"]), {}, each["Timestamps"], each["Values"])


def _cloudwatch_statistics(document: Mapping[str, Any]) -> Iterator[Series]:
    points = document["Datapoints"]
    for statistic in _STATISTICS:
        found = [(each["Timestamp"], each[statistic]) for each in points if statistic in each]
        if found:
            yield Series(f"{document.get('Label', '')} {statistic}".strip(), {}, *_columns(found))


_SERVICES: tuple[tuple[str, str, Callable[[Mapping[str, Any]], Iterator[Series]]], ...] = (
    ("prometheus", "data", _prometheus),
    ("victoriametrics", "timestamps", _victoriametrics),
    ("datadog", "series", _datadog),
    ("influxdb-v1", "results", _influxdb),
    ("cloudwatch", "MetricDataResults", _cloudwatch),
    ("cloudwatch", "Datapoints", _cloudwatch_statistics),
)


def _columns(points: Sequence[Sequence[Any]]) -> tuple[list[Any], list[Any]]:
    return [point[0] for point in points], [point[1] for point in points]


def _wide(series: Sequence[Series]) -> pd.DataFrame:
    """Return a table with a column of times, and one for each series."""
    common = common_times([each.times for each in series])
    columns = {
        name: dict(zip(times, each.values, strict=True))
        for name, times, each in zip(_names(series), common, series, strict=True)
    }
    times = sorted({time for values in columns.values() for time in values})
    if len(times) * len(columns) > _MOST_CELLS:
        raise TableFileError(
            f"it has {len(columns)} series at {len(times)} times, {_MOST_CELLS // 10**6} million"
            " values together are the most: ask for a shorter span of time, or fewer series"
        )
    texts = {name: [values.get(time) for time in times] for name, values in columns.items()}
    return pd.DataFrame({TIME: times, **texts})


def _names(series: Sequence[Series]) -> tuple[str, ...]:
    """Return the name of each series: with its host, and the labels that are not those of all."""
    pairs = [set(each.labels.items()) for each in series]
    common = (
        set.intersection(*pairs)
        if len({each.name for each in series}) < len(series)
        else {pair for pair in set.union(*pairs) if pair[0] not in _HOST_LABELS}
    )
    return unique_names([_name(each, common) for each in series])


def _name(series: Series, common: set[tuple[str, str]]) -> str:
    labels = ",".join(
        f'{key}="{value}"'
        for key, value in sorted(series.labels.items())
        if key in _HOST_LABELS or (key, value) not in common
    )
    return (series.name or "value") + (f"{{{labels}}}" if labels else "")


def _rows(documents: list[Any]) -> pd.DataFrame | None:
    """Return objects as rows; None if there are none with a value."""
    objects = documents[0] if len(documents) == 1 and isinstance(documents[0], list) else documents
    if not all(isinstance(each, dict) for each in objects):
        return None
    if len(objects) == 1:
        columns = {key: each for key, each in objects[0].items() if isinstance(each, list)}
        lengths = {len(each) for each in columns.values()}
        return pd.DataFrame(columns) if len(lengths) == 1 and len(columns) > 1 else None
    return pd.DataFrame([dict(_flat(each)) for each in objects])


def _flat(each: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of an object, those within others as ``outer.inner``."""
    for key, value in each.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        elif not isinstance(value, list):
            yield prefix + key, value
