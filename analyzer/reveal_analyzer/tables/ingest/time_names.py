"""Names of columns that say that they hold times, and in which unit."""

from __future__ import annotations

import re

from reveal_contract.time_units import NS_PER_SECOND

UNITS = {
    "ns": 1, "us": 1_000, "ms": 1_000_000, "s": NS_PER_SECOND, "min": 60 * NS_PER_SECOND,
    "h": 3600 * NS_PER_SECOND,
}  # fmt: skip
_SHORT_UNITS = (
    ("min", "min"), ("mic", "us"), ("u", "us"), ("m", "ms"), ("n", "ns"), ("s", "s"), ("h", "h"),
)  # fmt: skip
NAME = re.compile(
    r"[\W_]*(time|date|ts|t|epoch|datetime|date[_ ]?time|time[_ ]?stamp|unix[_ ]?time(stamp)?"
    r"|elapsed|elapsed[_ ]?time|epoch[_ ]?time|duration|(?P<bare>seconds|minutes|hours)"
    r"|wall[_ ]?time|relative[_ ]time(?:[_ ]\(\w+\))?"
    r"|time[_ ]of[_ ]day)[\W_]*"
    r"(?P<unit>s|sec|secs|seconds?|ms|msec|millis|milliseconds?|us|usec|micros|microseconds?"
    r"|ns|nsec|nanos|nanoseconds?|min|mins|minutes?|h|hrs?|hours?|utc)?[\W_]*\Z",
    re.IGNORECASE,
)
INDEX = re.compile(r"(index|row|sample|step|no\.?|#|id|)\Z|Unnamed: 0\Z", re.IGNORECASE)
OF_TRAINING = re.compile(r"\W*epoch\W*\Z", re.IGNORECASE)  # unless since 1970
NUMBERED = re.compile(r"c\d+\Z")  # of a table without a header
SHORT = re.compile(r"ts?\Z", re.IGNORECASE)  # a temperature may be called so, too
ELAPSED = re.compile(r"[\W_]*(elapsed|duration|relative)", re.IGNORECASE)


def unit_named(name: str) -> int:
    """Return the ns of the unit in the name of a column of times; 0 if it has none."""
    match = NAME.match(name)
    return UNITS.get(_short(match["unit"] or match["bare"] or ""), 0) if match else 0


def _short(unit: str) -> str:
    """Return the short unit: ``milliseconds``, ``msec`` and ``ms`` are the same."""
    word = unit.lower()
    return (
        ""
        if word == "utc"
        else next((short for begin, short in _SHORT_UNITS if word.startswith(begin)), "")
    )
