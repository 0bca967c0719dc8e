"""What was understood of a table: in a line before it is judged, and as a whole for --dry-run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from rich.console import RenderableType
from rich.table import Column

from reveal_analyzer.formatting import decimal
from reveal_analyzer.tables.ingest.reader import Dataset, NodeTable
from reveal_cli.terminal import table

_FIRST = 3  # values that are displayed of each metric
_LISTED = 5  # nodes


def in_a_line(data: Dataset) -> str:
    """Return rows, times, entities and columns in a sentence."""
    understood = data.understanding
    parts = [f"read {_rows(data)}, {_span(data)}", _clock(data)]
    if understood.entities:
        parts.append(f"{understood.entity_count} entities by {', '.join(understood.entities)}")
    parts.append(_metrics(data))
    if understood.omitted:
        parts.append(f"{_count(len(understood.omitted), 'column')} left out")
    if understood.format:
        parts.append(f"format {understood.format}")
    return "; ".join(parts)


def blocks(data: Dataset) -> Iterator[RenderableType]:
    """Yield all that was understood, with the first values of each metric."""
    understood = data.understanding
    yield f"rows: {_rows(data)}, {_span(data)}"
    yield f"clock: {_clock(data)}"
    yield f"format: {understood.format or 'none of a known tool'}"
    if understood.entities:
        columns = ", ".join(understood.entities)
        yield f"entities: {understood.entity_count} by column {columns}"
    yield f"columns: {_metrics(data)}"
    for omitted in understood.omitted:
        yield f"left out: {omitted.name} ({omitted.reason})"
    for note in data.notes:
        yield f"note: {note}"
    for part in data.nodes:
        if len(data.nodes) > 1:
            yield f"{part.node}:"
        yield _first_values(data, part)


def _first_values(data: Dataset, part: NodeTable) -> RenderableType:
    rows = table("METRIC", Column("UNIT", no_wrap=True), Column("FIRST VALUES", no_wrap=True))
    units, values = data.understanding.units, part.table.values
    for index, name in enumerate(part.table.names):
        unit = units.get(name) or units.get(name.rpartition("{")[0], "")
        per = "/s" if name in data.counters else ""
        first = [decimal(float(value)) or "missing" for value in values[:_FIRST, index]]
        rows.add_row(name, f"{unit}{per}" or "-", ", ".join(first))
    return rows


def _rows(data: Dataset) -> str:
    rows, samples = len(data.rows), len(data.times_ns)
    return _count(rows, "row") + ("" if rows == samples else f" as {_count(samples, 'sample')}")


def _span(data: Dataset) -> str:
    times, period = data.times_ns, data.nodes[0].table.period_ns
    span = f"from {data.clock.show(int(times[0]))} to {data.clock.show(int(times[-1]))}"
    return f"one every {period / 1e9:g} s, {span}" if period else span


def _clock(data: Dataset) -> str:
    clock = data.clock
    if clock.column is None:
        return "no times"
    if clock.of_clock:
        kind = "no day"
    elif not clock.absolute:
        kind = "since a start"
    else:
        kind = f"zone {clock.zone or UTC}"
    return f"times in {data.understanding.time} ({kind})"


def _metrics(data: Dataset) -> str:
    count = sum(len(part.table.names) for part in data.nodes)
    if len(data.nodes) == 1:
        return f"{_count(count, 'metric')} of {data.nodes[0].node}"
    nodes = ", ".join(part.node for part in data.nodes[:_LISTED])
    more = ", ..." if len(data.nodes) > _LISTED else ""
    return f"{_count(count, 'metric')} of {len(data.nodes)} nodes ({nodes}{more})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
