"""Charts as SVG, drawn here so that they need no script.

x is the time in tenths of a second since the start of the chart's window, y 0 (top) to
``HEIGHT``.  The script of the page reads values back from the paths, so they are in it once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from reveal_cli.page.markup import Child, Markup, element
from reveal_cli.page_data.model import Points, Unit

HEIGHT = 400
PER_SECOND = 10


@dataclass(frozen=True)
class Frame:
    """The window of a chart in seconds since the start of the page, and the range of its values."""

    first: float
    last: float
    low: float
    high: float

    @property
    def width(self) -> int:
        return max(1, round((self.last - self.first) * PER_SECOND))

    def x(self, time: float) -> int:
        return round((time - self.first) * PER_SECOND)

    def y(self, value: float) -> int:
        share = (value - self.low) / (self.high - self.low)
        return round(HEIGHT * (1 - min(1.0, max(0.0, share))))


def frame_of(
    lines: Iterable[Points], window: tuple[float, float], more: Sequence[float] = ()
) -> Frame:
    """Return the frame that shows all points and some more values; from 0 unless below it."""
    values = [value for line in lines for _, value in line]
    low, high = min([0.0, *values, *more]), max([*values, *more], default=0.0)
    high = high if high > low else low + 1.0
    return Frame(*window, low, high)


def path(lines: Iterable[Points], frame: Frame) -> Markup:
    """Return lines in relative steps, which are shorter than positions."""
    parts = []
    for line in lines:
        points = [(frame.x(time), frame.y(value)) for time, value in line]
        first, steps = points[0], [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(points)]
        parts.append(
            f"M{first[0]} {first[1]}l" + " ".join(f"{x} {y}" for x, y in steps or [(0, 0)])
        )
    return Markup("".join(parts))


def svg(frame: Frame, label: str, *children: Child, class_: str = "") -> Markup:
    """Return an image of a frame that stretches to its place; ``label`` describes it."""
    return element(
        "svg", *children, viewBox=f"0 0 {frame.width} {HEIGHT}", preserveAspectRatio="none",
        role="img", aria_label=label, class_=class_ or None,
    )  # fmt: skip


def line(frame: Frame, lines: Iterable[Points]) -> Markup:
    """Return the curve of some points."""
    return element("path", d=path(lines, frame), class_="line")


def span_rect(frame: Frame, span: tuple[float, float], class_: str) -> Markup:
    """Return a rectangle over a span of time, over the whole height."""
    first, last = (min(max(each, frame.first), frame.last) for each in span)
    width = max(1, frame.x(last) - frame.x(first))
    return _rect(frame.x(first), 0, width, HEIGHT, class_)


def band_rect(frame: Frame, band: tuple[float, float]) -> Markup:
    """Return a rectangle over a range of values, over the whole width."""
    top, bottom = frame.y(band[1]), frame.y(band[0])
    return _rect(0, top, frame.width, max(2, bottom - top), "band")


def chart(
    caption: Child, picture: Markup, frame: Frame, unit: Unit, class_: str = "chart"
) -> Markup:
    """Return a picture with its caption, the range of its values, and what the script needs."""
    return element(
        "figure",
        element("figcaption", caption, " ", element("span", class_="read")),
        element(
            "div",
            element("span", unit.text(frame.high), class_="upper"),
            element("span", unit.text(frame.low), class_="lower"),
            picture,
            class_="plot",
        ),
        class_=class_,
        data_first=frame.first,
        data_low=Markup(repr(frame.low)),
        data_high=Markup(repr(frame.high)),
        data_steps=json.dumps(list(unit.steps)),
    )


def _rect(x: int, y: int, width: int, height: int, class_: str) -> Markup:
    return element("rect", x=f"{x}", y=f"{y}", width=f"{width}", height=f"{height}", class_=class_)
