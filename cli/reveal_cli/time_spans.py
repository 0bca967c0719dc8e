"""Spans of time as people write them: ``FROM/TO``, found in what a table or recording covers."""

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
_MOST_DAYS = 4000  # a clock time is looked for on so many; who records longer names the day


@dataclass(frozen=True)
class Covered:
    """What there is to look at: from the first to the last sample, ``zone`` that of clock times.

    ``absolute`` is false where times count from a start of their own.
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
    """An argument's type: two ends of one kind with a slash between them."""
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


def resolve(wanted: Span, covered: Covered) -> tuple[int, int]:
    """Both ends in nanoseconds, the end included; raises ``CliError`` where they fit nowhere."""
    match _kind(wanted.begin):
        case "clock":
            return _by_clock(wanted, covered)
        case "moment":
            begin, end = (_moment(part, covered) for part in (wanted.begin, wanted.end))
        case _:
            begin, end = (
                covered.first_ns + nanoseconds(part) for part in (wanted.begin, wanted.end)
            )
    if end < begin:
        raise CliError(f"--span {wanted} ends before it begins")
    if end < covered.first_ns or begin > covered.last_ns:
        raise CliError(f"--span {wanted} lies outside of what there is: {_extent(covered)}")
    return begin, end


def _kind(text: str) -> str:
    """``clock``, ``offset`` or ``moment``; raises ``ValueError`` for what is none."""
    if _CLOCK.match(text):
        time.fromisoformat(_two_digits(text))
        return "clock"
    try:
        nanoseconds(text)
    except argparse.ArgumentTypeError:
        datetime.fromisoformat(text)
        return "moment"
    return "offset"


def _moment(text: str, covered: Covered) -> int:
    if not covered.absolute:
        raise CliError(
            f"the times here count from a start of their own: write --span in seconds, not {text}"
        )
    moment = datetime.fromisoformat(text)
    return _ns(moment if moment.tzinfo else _in_zone(moment, covered.zone))


def _by_clock(wanted: Span, covered: Covered) -> tuple[int, int]:
    """The one day on which these clock times were seen."""
    if not covered.absolute:
        raise CliError(f"the times here count from a start of their own: {wanted} is on no clock")
    found = _days(wanted, covered)
    if len(found) == 1:
        return found[0]
    if not found:
        raise CliError(f"--span {wanted} lies outside of what there is: {_extent(covered)}")
    raise CliError(f"{wanted} came on {len(found)} days: write --span with the date, in RFC 3339")


def _days(wanted: Span, covered: Covered) -> list[tuple[int, int]]:
    begin, end = (time.fromisoformat(_two_digits(part)) for part in (wanted.begin, wanted.end))
    day = datetime.fromtimestamp(covered.first_ns // NS_PER_SECOND - 86_400, UTC).date()
    days = min(_MOST_DAYS, (covered.last_ns - covered.first_ns) // NS_PER_DAY + 3)
    found = []
    for after in range(days):
        date = day + timedelta(days=after)
        first = _ns(_in_zone(datetime.combine(date, begin), covered.zone))
        later = date + timedelta(days=end < begin)  # over midnight
        last = _ns(_in_zone(datetime.combine(later, end), covered.zone))
        if first <= covered.last_ns and last >= covered.first_ns:
            found.append((first, last))
    return found


def _in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    """In the zone of the data, else in this machine's."""
    return moment.replace(tzinfo=zone) if zone else moment.astimezone()


def _ns(moment: datetime) -> int:
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * NS_PER_SECOND + since.microseconds * 1000


def _two_digits(text: str) -> str:
    return text if text.index(":") == 2 else f"0{text}"


def _extent(covered: Covered) -> str:
    if not covered.absolute:
        return f"0 to {(covered.last_ns - covered.first_ns) / NS_PER_SECOND:g} s"
    return f"{rfc3339(covered.first_ns)} to {rfc3339(covered.last_ns)}"
