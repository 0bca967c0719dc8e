"""Spans of time as users write them, ``FROM/TO``, and their place in a table or recording."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo

from reveal_cli.errors import CliError
from reveal_cli.options import nanoseconds
from reveal_contract.finding import rfc3339
from reveal_contract.time_units import NS_PER_DAY, NS_PER_SECOND

_CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d(\.\d{1,9})?)?\Z", re.ASCII)
_KEPT_DAYS = 8  # longer than any history of a node
_MAX_DAYS = 4000  # on which a clock time is searched; longer data needs dates


@dataclass(frozen=True)
class TimeRange:
    """The first and the last sample of a table or recording, and the zone of its clock times.

    ``absolute`` is false where its times count from 0 and have no date.
    """

    first_ns: int
    last_ns: int
    zone: tzinfo | None = None
    absolute: bool = True


@dataclass(frozen=True)
class Span:
    """``FROM`` and ``TO`` as written."""

    begin: str
    end: str

    def __str__(self) -> str:
        return f"{self.begin}/{self.end}"


def span(text: str) -> Span:
    """Return the span of an argument: two times of one kind with a slash between them."""
    begin, slash, end = (part.strip() for part in text.partition("/"))
    try:
        kinds = {_kind(begin), _kind(end)}
    except ValueError:
        kinds = set()
    if not slash or len(kinds) != 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not FROM/TO: write 10:02/10:05, 120/180 (seconds since the start),"
            " 2m/3m or two times in RFC 3339"
        )
    return Span(begin, end)


def resolve(asked: Span, data: TimeRange) -> tuple[int, int]:
    """Return both ends in nanoseconds, the end included.

    Raises ``CliError`` for a span outside of the data.
    """
    match _kind(asked.begin):
        case "clock":
            return _by_clock(asked, data)
        case "moment":
            begin, end = (_moment(part, data) for part in (asked.begin, asked.end))
        case _:
            begin, end = (data.first_ns + nanoseconds(part) for part in (asked.begin, asked.end))
    if end < begin:
        raise CliError(f"--span {asked} ends before it begins")
    if end < data.first_ns or begin > data.last_ns:
        raise CliError(f"--span {asked} is outside of the data: {_extent(data)}")
    return begin, end


def recent(asked: Span, now_ns: int) -> tuple[int, int] | None:
    """Return both ends of a span with times of day, the last one that has begun.

    Return None for one that counts from a start.  Raises ``CliError`` for one that is older than a
    week.
    """
    match _kind(asked.begin):
        case "clock":
            return _days(asked, TimeRange(now_ns - NS_PER_DAY, now_ns))[-1]
        case "moment":
            return resolve(asked, TimeRange(now_ns - _KEPT_DAYS * NS_PER_DAY, now_ns))
    return None


def _kind(text: str) -> str:
    """Return ``clock``, ``offset`` or ``moment``; raises ``ValueError`` for other text."""
    if _CLOCK.match(text):
        time.fromisoformat(_two_digits(text))
        return "clock"
    try:
        nanoseconds(text)
    except argparse.ArgumentTypeError:
        datetime.fromisoformat(text)
        return "moment"
    return "offset"


def _moment(text: str, data: TimeRange) -> int:
    if not data.absolute:
        raise CliError(f"the times here have no date: write --span in seconds, not {text}")
    moment = datetime.fromisoformat(text)
    return _ns(moment if moment.tzinfo else _in_zone(moment, data.zone))


def _by_clock(asked: Span, data: TimeRange) -> tuple[int, int]:
    """Return the ends on the only day of the data that has these clock times."""
    if not data.absolute:
        raise CliError(f"the times here have no date: write --span in seconds, not {asked}")
    found = _days(asked, data)
    if len(found) == 1:
        return found[0]
    if not found:
        raise CliError(f"--span {asked} is outside of the data: {_extent(data)}")
    raise CliError(
        f"{asked} is in the data on {len(found)} days: write --span with the date, in RFC 3339"
    )


def _days(asked: Span, data: TimeRange) -> list[tuple[int, int]]:
    begin, end = (time.fromisoformat(_two_digits(part)) for part in (asked.begin, asked.end))
    day = datetime.fromtimestamp(data.first_ns // NS_PER_SECOND - 86_400, UTC).date()
    days = min(_MAX_DAYS, (data.last_ns - data.first_ns) // NS_PER_DAY + 3)
    found = []
    for number in range(days):
        date = day + timedelta(days=number)
        first = _ns(_in_zone(datetime.combine(date, begin), data.zone))
        later = date + timedelta(days=end < begin)  # over midnight
        last = _ns(_in_zone(datetime.combine(later, end), data.zone))
        if first <= data.last_ns and last >= data.first_ns:
            found.append((first, last))
    return found


def _in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    """Return a time in the zone of the data, else in this machine's zone."""
    return moment.replace(tzinfo=zone) if zone else moment.astimezone()


def _ns(moment: datetime) -> int:
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * NS_PER_SECOND + since.microseconds * 1000


def _two_digits(text: str) -> str:
    return text if text.index(":") == 2 else f"0{text}"


def _extent(data: TimeRange) -> str:
    if not data.absolute:
        return f"0 to {(data.last_ns - data.first_ns) / NS_PER_SECOND:g} s"
    return f"{rfc3339(data.first_ns)} to {rfc3339(data.last_ns)}"
