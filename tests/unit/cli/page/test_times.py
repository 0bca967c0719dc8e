"""Times of a page: with their day where the page begins on another one."""

from __future__ import annotations

import pytest

from reveal_cli.page.times import clock, time_text

START_NS = 1_700_000_000 * 10**9  # 2023-11-14 22:13:20


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "22:13:20"), (6399, "23:59:59"), (6400, "11-15 00:00:00")]
)
def test_a_later_day_is_written(seconds: int, text: str) -> None:
    assert time_text(START_NS + seconds * 10**9, START_NS) == text


def test_programs_have_the_whole_time() -> None:
    assert 'datetime="2023-11-15T00:00:00.000Z"' in clock(START_NS + 6400 * 10**9, START_NS)
