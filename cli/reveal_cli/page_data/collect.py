"""Reads a recording for a page, with the findings that were judged from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from reveal_cli.collector_state import missing_sources, unanswered_sources
from reveal_cli.errors import CliError
from reveal_cli.page_data.finding_parts import MOST_DETAILED, FindingParts, Judged
from reveal_cli.page_data.history import History, NodeHistory, read_history, ticks
from reveal_cli.page_data.model import PageData, StepCurve
from reveal_cli.page_data.scores import NodeTable, brush_data
from reveal_cli.recordings import Slices
from reveal_cli.summary_text import limit_lines

_MOST_CURVES = 4


def page_data(judged: Judged) -> PageData:
    """Return the content of the page; raises ``CliError`` for a recording that holds nothing."""
    history = read_history(Slices(judged.path), judged.coverage.slices)
    if not history.nodes:
        raise CliError(f"{judged.path} holds no slices: nothing to report")
    several = len(history.nodes) > 1
    drawn, left_out = ticks(history)
    tables = {name: _node_table(node, several) for name, node in history.nodes.items()}
    return PageData(
        title=judged.title,
        nodes=tuple(history.nodes),
        start_ns=history.start_ns,
        seconds=(history.end_ns - history.start_ns) / 1e9,
        findings=FindingParts(judged, history, tables).all(),
        hints=judged.hints,
        coverage=judged.coverage,
        steps=_step_curves(history),
        ticks=drawn,
        gaps=_gaps(history),
        brush=brush_data([*tables.values()], history.start_ns, history.end_ns),
        facts={facts.node: facts for facts, _ in history.facts},
        missing=missing_sources(history.collector),
        limits=[*judged.notes, *_limits(judged, history, left_out)],
    )


def _node_table(node: NodeHistory, several: bool) -> NodeTable:
    columns = list(node.table.columns.values())
    return NodeTable(node.name if several else "", node.table.table(), columns)


def _step_curves(history: History) -> list[StepCurve]:
    """Return the step times of the jobs that were tracked longest."""
    several = len(history.nodes) > 1
    curves = [curve for node in history.nodes.values() for curve in _curves(node, history, several)]
    longest = sorted(curves, key=lambda curve: -sum(map(len, curve.lines)))
    return longest[:_MOST_CURVES]


def _curves(node: NodeHistory, history: History, several: bool) -> Iterator[StepCurve]:
    names = dict.fromkeys(name for _, periods in node.step_times for name in periods)
    for name in names:
        points = [
            ((time_ns - history.start_ns) / 1e9, 1000 * periods[name])
            for time_ns, periods in node.step_times
            if name in periods
        ]
        breaks = [i + 1 for i, (a, b) in enumerate(pairwise(points)) if b[0] - a[0] > 5.0]
        edges = [0, *breaks, len(points)]
        lines = [points[first:last] for first, last in pairwise(edges)]
        yield StepCurve(f"{node.name}: {name}" if several else name, lines)


def _gaps(history: History) -> list[tuple[float, float]]:
    start = history.start_ns
    return [
        ((first - start) / 1e9, (last - start) / 1e9)
        for node in history.nodes.values()
        for first, last in node.gaps_ns
    ]


def _limits(judged: Judged, history: History, ticks_left_out: int) -> Iterator[str]:
    """Yield sentences on what could not be read or was left out."""
    unanswered = judged.coverage.unanswered or unanswered_sources(history.collector)
    yield from limit_lines(replace(judged.coverage, missing_sources=0, unanswered=unanswered))
    if judged.coverage.lost:
        yield f"{judged.coverage.lost} slices were lost: these seconds were not judged."
    if history.truncated:
        yield "The recording is incomplete; it was read up to its end."
    steps = {node.step for node in history.nodes.values() if node.step > 1}
    if steps:
        yield f"The recording is long: rankings and lost time use one of {max(steps)} seconds."
    if ticks_left_out:
        yield f"{ticks_left_out} more starts of subjects are not drawn."
    lines = [line for node in history.nodes.values() for line in node.without_steps]
    yield from (f"{line}." for line in lines[:_MOST_CURVES])
    if len(judged.findings) > MOST_DETAILED:
        yield f"Only the {MOST_DETAILED} worst findings have charts."
    for facts in {facts.node: facts for facts, _ in history.facts}.values():
        if facts.unread:
            yield f"Not read in full on {facts.node}: {', '.join(facts.unread)}."
