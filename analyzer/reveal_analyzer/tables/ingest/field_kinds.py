"""What the fields of a table hold, as far as its layout shows: numbers, times, text or nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

# in addition to those of pandas: "", NA, N/A, NaN, null, None ...
MISSING = (
    "-", "--", "?", r"\N", "(null)", "[N/A]", "[Not Supported]", "[Unknown Error]", "NaN%",
    "<not counted>", "<not supported>", "#DIV/0!", "#N/A", "#VALUE!", "Infinity%",
)  # fmt: skip
_PLAIN = re.compile(r"[-+]?\d+(?:\.\d+)?\Z")
_NUMBER = re.compile(r"['\"]?[-+]?(?:\d[\d.,']*|\.\d+)(?:e[-+]?\d+)?\s?(?:%|[a-zµ°]{0,4})?\Z", re.I)
_CLOCK = (
    r"\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?\s?(?:[AP]M)?"
    r"\s?(?:Z|[A-Z]{3,4}|[+-]\d\d:?\d\d(?:\s[A-Z]{2,5})?)?"
)
_TIME = re.compile(
    r"['\[]?(?:\d{4}([-/.]?)\d\d\1\d\d|\d\d?[./-]\d\d?[./-]\d{4})"
    rf"(?:T\d{{4,6}}Z?|[T ]{_CLOCK}|[T _-]\d\d([-.:]?)\d\d\2\d\d)?['\]]?\Z|{_CLOCK}\Z"
    # with the name of the month, as in RFC 1123 and in logs of web servers
    rf"|(?:[a-z]{{3}},?\s)?\d\d?[\s/-][a-z]{{3}}[\s/-]\d{{4}}(?:[\s:]{_CLOCK})?\Z",
    re.IGNORECASE,
)
_NOTHING = frozenset(
    word.casefold()
    for word in (*MISSING, "", "na", "n/a", "nan", "-nan", "null", "none", "inf", "-inf", "+inf")
)
_MOST_ROWS = 200  # and of a wide table fewer
MOST_FIELDS = 200_000  # that are looked at
_MOST = 0.6  # of the values of a column are of its kind


class ColumnKinds(NamedTuple):
    """The kind of each column: number, time, text, or nothing that is known."""

    kinds: tuple[str, ...]

    @classmethod
    def of(cls, rows: Sequence[tuple[str, ...]]) -> ColumnKinds:
        """Return the kinds by the last rows, which may begin below a header."""
        if not rows:
            return cls(())
        count = max(3, min(_MOST_ROWS, MOST_FIELDS // max(1, len(rows[0]))))
        return cls(tuple(_kind_of_column(column) for column in zip(*rows[-count:], strict=True)))

    def odd(self, fields: Sequence[str]) -> float | None:
        """Return the share of words where numbers are usual; None for a line without values."""
        found = [
            (kind, kind_of_field(field)) for kind, field in zip(self.kinds, fields, strict=True)
        ]
        times = [of in ("time", "") for kind, of in found if kind == "time"]
        numbers = [of == "number" for kind, of in found if kind == "number" and of]
        if not all(times) or not (numbers or any(of for kind, of in found if kind == "time")):
            return None
        return 1 - sum(numbers) / len(numbers) if numbers else 0.0


def _kind_of_column(column: Sequence[str]) -> str:
    kinds = Counter(kind for field in column if (kind := kind_of_field(field)))
    if not kinds:
        return ""
    kind, count = kinds.most_common(1)[0]
    return kind if count >= _MOST * sum(kinds.values()) else "text"


def kind_of_field(field: str) -> str:
    """Return ``number``, ``time``, ``text``, or "" for a field without a value."""
    if _PLAIN.match(field):  # most fields are, and a wide table has many
        return "number"
    if is_missing(field):
        return ""
    if _TIME.match(field) and not field.isdigit():
        return "time"
    return (
        "number" if _NUMBER.match(field) or field in ("true", "false", "True", "False") else "text"
    )


def is_missing(field: str) -> bool:
    """Return whether a field says that there is no value."""
    return field.casefold() in _NOTHING
