"""Charts: positions in the picture, and values that the script reads back."""

from __future__ import annotations

from reveal_cli.page.charts import HEIGHT, Frame, band_rect, frame_of, line, path, span_rect
from support.html_pages import ParsedPage

FRAME = Frame(10.0, 20.0, 0.0, 200.0)


def test_a_path_has_its_first_point_and_then_steps() -> None:
    lines = [[(10.0, 0.0), (10.1, 100.0), (12.0, 200.0)], [(15.0, 50.0)]]
    assert path(lines, FRAME) == "M0 400l1 -200 19 -200M50 300l0 0"
    assert FRAME.width == 100


def test_steps_add_up_however_many_there_are() -> None:
    points = [(10.0 + index / 10, 1.0 + index * 1.9) for index in range(100)]
    text = path([points], FRAME).removeprefix("M")
    first, steps = text.split("l")
    numbers = [int(each) for each in steps.split()]
    assert int(first.split()[1]) + sum(numbers[1::2]) == FRAME.y(points[-1][1])
    assert sum(numbers[::2]) == FRAME.x(points[-1][0])


def test_the_range_begins_with_zero_unless_values_are_below() -> None:
    assert frame_of([[(0.0, 5.0), (1.0, 9.0)]], (0.0, 1.0), (1.0, 12.0)).low == 0.0
    assert frame_of([[(0.0, 5.0), (1.0, 9.0)]], (0.0, 1.0), (1.0, 12.0)).high == 12.0
    assert frame_of([[(0.0, -5.0)]], (0.0, 1.0)).low == -5.0
    constant = frame_of([[(0.0, 0.0)]], (0.0, 1.0))
    assert constant.y(0.0) == HEIGHT


def test_bands_and_spans_stay_in_the_picture() -> None:
    [band] = ParsedPage(band_rect(FRAME, (50.0, 900.0))).elements
    assert (band.attributes["y"], band.attributes["height"]) == ("0", "300")
    [span] = ParsedPage(span_rect(FRAME, (5.0, 15.0), "during")).elements
    assert (span.attributes["x"], span.attributes["width"]) == ("0", "50")


def test_a_path_is_never_shortened_as_names_are() -> None:
    points = [(10.0 + index / 1000, 1.0) for index in range(9000)]
    [drawn] = ParsedPage(line(FRAME, [points])).elements
    assert len(drawn.attributes["d"] or "") > 9000
