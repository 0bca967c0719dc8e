"""Times of a page, in UTC, as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

from reveal_cli.page.markup import Markup, element
from reveal_contract.finding import rfc3339


def clock(ns: int, start_ns: int) -> Markup:
    """Return ``time_text``, with the whole time for programs."""
    return element("time", time_text(ns, start_ns), datetime=rfc3339(ns))


def day_and_clock(ns: int) -> Markup:
    """Return a time with its day."""
    return element("time", f"{_moment(ns):%Y-%m-%d %H:%M:%S}", datetime=rfc3339(ns))


def time_text(ns: int, start_ns: int) -> str:
    """Return a time of day, with its day unless the page begins on it."""
    moment = _moment(ns)
    is_first_day = moment.date() == _moment(start_ns).date()
    return f"{moment:%H:%M:%S}" if is_first_day else f"{moment:%m-%d %H:%M:%S}"


def _moment(ns: int) -> datetime:
    return datetime.fromtimestamp(ns // 1_000_000_000, UTC)
