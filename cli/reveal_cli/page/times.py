"""Times of a page, in UTC, as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

from reveal_cli.page.markup import Markup, element
from reveal_contract.finding import rfc3339


def clock(ns: int) -> Markup:
    """Return a time of day, with the whole time for programs."""
    return element("time", time_text(ns), datetime=rfc3339(ns))


def day_and_clock(ns: int) -> Markup:
    """Return a time with its day."""
    return element("time", f"{_moment(ns):%Y-%m-%d %H:%M:%S}", datetime=rfc3339(ns))


def time_text(ns: int) -> str:
    """Return a time of day."""
    return f"{_moment(ns):%H:%M:%S}"


def _moment(ns: int) -> datetime:
    return datetime.fromtimestamp(ns // 1_000_000_000, UTC)
