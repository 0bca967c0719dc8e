"""The timeline: step times and ticks above a lane for each subsystem, and the ranking of a span."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reveal_cli.findings_table import claim_text
from reveal_cli.page import charts
from reveal_cli.page.markup import Child, Markup, element, fragment, name
from reveal_cli.page.tables import table
from reveal_cli.page.times import clock, time_text
from reveal_cli.page.verdict import anchor
from reveal_cli.page_data.model import FindingPart, PageData, RankedRow, StepCurve, Tick, Unit
from reveal_contract.metric import Subsystem

_LEAST_WIDTH = 0.004  # of the timeline: a shorter bar could not be seen
_MOST_LISTED = 40
_MILLISECONDS = Unit(lambda value: f"{value:.4g} ms", ((1000.0, " s"), (1.0, " ms")))
_COLUMNS = ("Metric", "Subsystem", "Spreads", "Value", "Baseline")


def timeline(data: PageData) -> Markup:
    """Return the lanes, the controls of the span, and the ranking of the span."""
    window = (0.0, data.seconds)
    lanes = [
        *(_step_lane(curve, window, data) for curve in data.steps),
        _tick_lane(data, window),
        *(_subsystem_lane(subsystem, data, window) for subsystem in Subsystem),
    ]
    return fragment(
        element("div", lanes, _axis(data), class_="lanes", id="lanes"),
        _span_controls(data),
        _ranking(data),
        _tick_list(data.ticks, data.start_ns),
    )


def _step_lane(curve: StepCurve, window: tuple[float, float], data: PageData) -> Markup:
    frame = charts.frame_of(curve.lines, window)
    values = [value for line in curve.lines for _, value in line]
    label = f"Step time of {curve.subject}: {min(values):.4g} to {max(values):.4g} ms"
    picture = charts.svg(frame, label, _gaps(frame, data), charts.line(frame, curve.lines))
    caption = fragment("Step time of ", name(curve.subject))
    return charts.chart(caption, picture, frame, _MILLISECONDS, class_="chart lane steps")


def _tick_lane(data: PageData, window: tuple[float, float]) -> Markup:
    frame = charts.Frame(*window, 0.0, 1.0)
    marks = [
        element(
            "line", element("title", f"{_when(tick, data.start_ns)} {tick.text}"),
            x1=f"{frame.x(tick.time)}", x2=f"{frame.x(tick.time)}", y1="0",
            y2=f"{charts.HEIGHT}", class_=f"tick {tick.kind}",
        )
        for tick in data.ticks
    ]  # fmt: skip
    label = f"{len(data.ticks)} changes of the configuration and starts of subjects, listed below"
    return _lane("Changes and starts", charts.svg(frame, label, _gaps(frame, data), marks))


def _subsystem_lane(subsystem: Subsystem, data: PageData, window: tuple[float, float]) -> Markup:
    frame = charts.Frame(*window, 0.0, 1.0)
    own = [
        (index, part)
        for index, part in enumerate(data.findings)
        if subsystem is part.finding.subsystem
    ]
    bars = [_bar(index, part, frame, data.start_ns) for index, part in own]
    label = f"{subsystem.value}: {len(own)} finding{'' if len(own) == 1 else 's'}"
    picture = element(
        "svg", _gaps(frame, data), bars, viewBox=f"0 0 {frame.width} {charts.HEIGHT}",
        preserveAspectRatio="none", role="group", aria_label=label,
    )  # fmt: skip
    return _lane(subsystem.value, picture)


def _bar(index: int, part: FindingPart, frame: charts.Frame, start_ns: int) -> Markup:
    """Return a finding as a bar that leads to its evidence."""
    finding = part.finding
    first, last = part.span
    last = max(last, first + _LEAST_WIDTH * (frame.last - frame.first))
    severity = finding.severity.value
    begin = time_text(start_ns + round(first * 1e9), start_ns)
    text = f"{severity}, {begin}: {claim_text(finding)}"
    bar = charts.span_rect(frame, (first, last), f"bar {severity.lower()}")
    title = element("title", text)
    if not part.panels:
        return element("g", title, bar, role="img", aria_label=text)
    return element("a", title, bar, href=f"#{anchor(index)}", aria_label=text)


def _lane(label: str, picture: Markup) -> Markup:
    return element(
        "div", element("span", label, class_="lane-name"),
        element("div", picture, class_="plot"), class_="lane",
    )  # fmt: skip


def _gaps(frame: charts.Frame, data: PageData) -> list[Markup]:
    return [charts.span_rect(frame, gap, "gap") for gap in data.gaps]


def _axis(data: PageData) -> Markup:
    moments = [data.start_ns + round(data.seconds * part / 4 * 1e9) for part in range(5)]
    return element(
        "p", [element("span", clock(moment, data.start_ns)) for moment in moments], class_="axis"
    )


def _span_controls(data: PageData) -> Markup:
    """Return two sliders that choose the span; they need the script, which shows them."""
    first, last = _worst_span(data)
    sliders = [
        _slider(label, identity, value, data.seconds)
        for label, identity, value in (("From", "span-from", first), ("To", "span-to", last))
    ]
    return element(
        "form",
        element(
            "fieldset",
            element("legend", "Span to rank: drag over the timeline, or use these"),
            sliders,
            element("output", id="span-text"),
        ),
        id="span-form",
        hidden=True,
    )


def _slider(label: str, identity: str, value: float, seconds: float) -> Markup:
    return element(
        "label", label, " ",
        element("input", type="range", id=identity, min="0", max=f"{int(seconds)}", step="1",
                value=f"{int(value)}"),
    )  # fmt: skip


def _worst_span(data: PageData) -> tuple[float, float]:
    return data.findings[0].span if data.findings else (0.0, data.seconds)


def _ranking(data: PageData) -> Markup:
    """Return the metrics of the worst finding; the script replaces them when a span is chosen."""
    rows: Sequence[RankedRow] = data.findings[0].ranking if data.findings else ()
    first, last = (data.start_ns + round(each * 1e9) for each in _worst_span(data))
    caption: Child = fragment(
        "Metrics that left their baseline most from ",
        clock(first, data.start_ns),
        " to ",
        clock(last, data.start_ns),
    )
    cells = [
        [name(row.label), row.subsystem, f"{row.score:.1f}", row.value, row.baseline]
        for row in rows
    ]
    live = element("div", table(caption, _COLUMNS, cells, id="ranking"), aria_live="polite")
    return element("div", live, hidden=not rows, id="ranking-part")


def _tick_list(ticks: Sequence[Tick], start_ns: int) -> Markup | None:
    if not ticks:
        return None
    items = [*_listed(ticks[:_MOST_LISTED], start_ns)]
    if len(ticks) > _MOST_LISTED:
        items.append(element("li", f"and {len(ticks) - _MOST_LISTED} more"))
    return element(
        "details", element("summary", f"{len(ticks)} changes and starts"), element("ul", items)
    )


def _listed(ticks: Sequence[Tick], start_ns: int) -> Iterator[Markup]:
    for tick in ticks:
        yield element(
            "li",
            clock(start_ns + round(tick.time * 1e9), start_ns),
            f" {tick.kind}: ",
            name(tick.text),
        )


def _when(tick: Tick, start_ns: int) -> str:
    return time_text(start_ns + round(tick.time * 1e9), start_ns)
