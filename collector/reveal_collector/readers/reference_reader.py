"""The reader of plans in Python: the reference for the native scanner, and its fallback."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from operator import itemgetter, mul, sub
from typing import TypeVar

from reveal_collector.readers.plan import Columns, SumPlan, TokenPlan, Vector
from reveal_collector.readers.raw_slice import MISSING, signed

_BITS = (1 << 64) - 1
_SIGN = 1 << 63
T = TypeVar("T")


class Mismatch(ValueError):
    """The text does not have the learned layout, or a token is not a number."""


def packed(values: Sequence[int]) -> array[int]:
    """Return the values as an array of int64; unsigned values keep their bits."""
    try:
        return array("q", values)
    except OverflowError:
        return array("q", map(signed, values))


class ColumnMaker:
    """Converts the values of successive readings to rows of columns."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._sums = [picker(group) for group in columns.sums or ()]
        self._vectors = [_Extremes(vector) for vector in columns.vectors]

    @property
    def remembers(self) -> bool:
        """Whether a row depends on earlier readings."""
        return bool(self._vectors)

    def make(self, values: Sequence[int]) -> array[int]:
        """Return the row of these values."""
        if self._columns.weights:
            values = list(map(mul, values, self._columns.weights))
        if self._columns.sums is None:
            row = packed(values)
        else:
            row = packed([sum(pick(values)) for pick in self._sums])
        for vector in self._vectors:
            row.extend(vector.update(values))
        return row


@dataclass
class _Extremes:
    """The running columns of one vector."""

    vector: Vector
    _previous: list[int] | None = None
    _largest: int = 0
    _spread: int = 0
    _pick: list[Callable[[Sequence[int]], tuple[int, ...]]] = field(init=False)

    def __post_init__(self) -> None:
        self._pick = [picker(element) for element in self.vector.elements]

    def update(self, values: Sequence[int]) -> tuple[int, int, int]:
        """Return the columns after this reading."""
        current = [sum(pick(values)) for pick in self._pick]
        previous, self._previous = self._previous, current
        if previous is None:
            return 0, MISSING, 0
        steps = [max(0, signed(step)) for step in map(sub, current, previous)]
        largest = max(steps)
        self._largest = signed(self._largest + largest)
        if largest:
            self._spread = signed(self._spread + spread(steps))
        return self._largest, self.vector.labels[steps.index(largest)], self._spread


def spread(steps: Sequence[int]) -> int:
    """Return the 95th minus the 50th percentile, each as the nearest rank."""
    ordered, count = sorted(steps), len(steps)
    return ordered[(95 * count + 99) // 100 - 1] - ordered[(count + 1) // 2 - 1]


class TokenReader:
    """Executes a ``TokenPlan``: the reference for the native scanner."""

    def __init__(self, plan: TokenPlan) -> None:
        self.plan = plan
        self._pick = picker(plan.picks)
        self._pick_watched = picker([position for position, _ in plan.watched])
        self._watched = tuple(text for _, text in plan.watched)
        self._maker = ColumnMaker(plan.columns)
        self._last: bytes | None = None
        self._values: Sequence[int] = ()
        self._row = array("q")

    def row(self, data: bytes) -> array[int]:
        """Return the columns of a text; raises ``Mismatch``."""
        if data == self._last:
            if self._maker.remembers:
                self._row = self._maker.make(self._values)
            return self._row
        self._last = None
        tokens = self.plan.form.apply(data).split()
        if len(tokens) != self.plan.count or self._pick_watched(tokens) != self._watched:
            raise Mismatch("the layout has changed")
        self._values = numbers(self._pick(tokens), self.plan.form.base)
        self._row = self._maker.make(self._values)
        self._last = data
        return self._row


DeviceNumbers = dict[tuple[bytes, bytes], int]  # by device and key


class SumReader:
    """Executes a ``SumPlan``: the reference for the native scanner."""

    def __init__(self, plan: SumPlan) -> None:
        self.plan = plan
        self._devices, self._ignored = frozenset(plan.devices), frozenset(plan.ignored)
        self.totals: dict[bytes, int] = {}
        self.last: DeviceNumbers | None = None  # None before the first text
        self._text: bytes | None = None

    def row(self, data: bytes) -> array[int]:
        """Return the running sums after a text; raises ``Mismatch``, and then starts again."""
        last, self.last = self.last, None
        is_same = last is not None and data == self._text
        found = [] if is_same else list(device_numbers(self.plan, data, self._ignored))
        for device, key, _ in found:
            if device not in self._devices or (last is not None and (device, key) not in last):
                raise Mismatch(f"{device[:40]!r} is new")
        if last is None:
            if self._devices != {device for device, _, _ in found}:
                raise Mismatch("a device has no numbers")
            offsets = self.plan.offsets or (0,) * len(self.plan.keys)
            last, self.totals = {}, dict(zip(self.plan.keys, offsets, strict=True))
        for device, key, now in found:
            before = last.get((device, key))
            self.totals[key] += now if before is None else max(0, signed(now - before))
            last[device, key] = now
        self.last, self._text = last, data
        return packed([signed(self.totals[key]) for key in self.plan.keys])


def device_numbers(
    plan: SumPlan, data: bytes, ignored: Container[bytes] = ()
) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield device, key and number; raises ``Mismatch`` for a key without a number.

    A line is of the last device that it begins with: Linux 5.15 does not end the line of a device
    without numbers, so the next device follows in the same line.
    """
    for line in plan.form.apply(data).split(b"\n"):
        tokens = line.split() or [b""]
        leading = sum(1 for _ in takewhile(is_device, tokens))
        device, *rest = tokens[max(0, leading - 1) :]
        if device in ignored:
            continue
        remaining = iter(rest)
        for key in remaining:
            if key in plan.keys:
                number = signed(numbers([next(remaining, b"")])[0])
                if number == MISSING:
                    raise Mismatch(f"{number} marks a missing number")
                yield device, key, number


def is_device(token: bytes) -> bool:
    """Return whether a token is the number of a device, MAJOR:MINOR."""
    major, colon, minor = token.partition(b":")
    return bool(colon) and major.isdigit() and minor.isdigit()


def numbers(tokens: Sequence[bytes], base: int = 10) -> list[int]:
    """Return tokens as integers; raises ``Mismatch`` for a token that is not a 64-bit number."""
    if base == 10 and b"".join(tokens).isdigit() and b"" not in tokens:
        values = list(map(int, tokens))
    else:
        values = [_number(token, base) for token in tokens]
    if values and (max(values) > _BITS or min(values) < -_SIGN):
        raise Mismatch("a number has more than 64 bits")
    return values


_DIGITS = {10: frozenset(b"0123456789"), 16: frozenset(b"0123456789abcdefABCDEF")}


def _number(token: bytes, base: int) -> int:
    digits = token.removeprefix(b"-") if base == 10 else token
    if not digits or not _DIGITS[base].issuperset(digits):
        raise Mismatch(f"{token[:40]!r} is not a number")
    return int(token, base)


def picker(positions: Sequence[int]) -> Callable[[Sequence[T]], tuple[T, ...]]:
    """Return an ``itemgetter`` that returns a tuple also for one position or none."""
    if len(positions) > 1:
        return itemgetter(*positions)
    if positions:
        only = positions[0]
        return lambda items: (items[only],)
    return lambda _: ()
