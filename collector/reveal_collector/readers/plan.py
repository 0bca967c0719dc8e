"""Plans: how a kernel text file becomes int64 columns, and the reader that says what they mean.

A source learns, in slow code, what stands where in its file and states it as a plan.  Both
readers execute plans and nothing else: the one here, and the scanner in C (``native``), which
gives the same rows at a fraction of the price.

A text is brought into its *form*, split at ASCII blanks, and must have as many tokens as were
learned, with the same *watched* ones.  The *picked* tokens must be numbers: an optional minus
sign and digits that fit into 64 bits (a u64 keeps its bits).  Anything else is no row at all.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter, mul, sub
from typing import Protocol, TypeVar, runtime_checkable

from reveal_collector.readers.raw_slice import MISSING, signed

_BITS = (1 << 64) - 1
_SIGN = 1 << 63
T = TypeVar("T")

# A gate is closed after QUIET reads of its leading file without a change, and looked behind at
# every BACK_OFF-th time only; so is a fast file behind it (the throttling of a cgroup without a
# quota) that was the same for as long, however much the leading one moves.
QUIET = 30
BACK_OFF = 5
EXTREMES = 3  # columns of a vector: the largest, whose it is, the spread


class Mismatch(ValueError):
    """The text is not of the layout that was learned, or a number in it is none."""


@dataclass(frozen=True)
class TextForm:
    """What is done to a text before it is split.

    ``cut``: of lines that begin with one of these words only the first number is kept (but of
    the first and of an unfinished last line); ``keep``: lines that do not begin so are left
    out; ``blanks`` count as blanks and ``deleted`` as nothing.  ``base`` is that of the numbers;
    ``words`` says whether tokens that are no numbers are names, which must stay what they are.
    ``ends`` puts a token ``;`` at the end of each line, for a layout that must watch where
    lines of bare numbers end.
    """

    cut: tuple[bytes, ...] = ()
    keep: bytes = b""
    blanks: bytes = b""
    deleted: bytes = b""
    base: int = 10
    words: bool = True
    ends: bool = False

    def shape(self, data: bytes) -> bytes:
        for word in self.cut:
            data = _cut(data, b"\n" + word + b" ")
        if self.ends:
            data = data.replace(b"\n", b" ;\n")
        if self.keep:
            lines = data.split(b"\n")
            data = b"\n".join(line for line in lines if line.startswith(self.keep))
        if self.blanks or self.deleted:
            blanked = bytes.maketrans(self.blanks, b" " * len(self.blanks))
            data = data.translate(blanked, self.deleted)
        return data


PLAIN = TextForm()


def _cut(data: bytes, mark: bytes) -> bytes:
    at = 0
    while (at := data.find(mark, at)) >= 0:
        at += len(mark)
        stop, end = data.find(b" ", at), data.find(b"\n", at)
        if at <= stop < end:
            data = data[:stop] + data[end:]
    return data


@dataclass(frozen=True)
class Vector:
    """One number a CPU, each a sum of values; shown are the extremes of its steps only.

    Columns: the largest step of each reading, added up; the label of whose it was; the spread
    (95th less 50th percentile, nearest rank) of each reading, added up.  A number that fell
    made no step.
    """

    elements: tuple[tuple[int, ...], ...]
    labels: tuple[int, ...]


@dataclass(frozen=True)
class Columns:
    """What of the values a table shows: themselves, or ``sums`` of them, then ``vectors``.

    ``weights`` are factors of the values in all sums.
    """

    sums: tuple[tuple[int, ...], ...] | None = None
    vectors: tuple[Vector, ...] = ()
    weights: tuple[int, ...] = ()

    def width(self, values: int) -> int:
        shown = values if self.sums is None else len(self.sums)
        return shown + EXTREMES * len(self.vectors)


AS_READ = Columns()


@dataclass(frozen=True)
class TokenPlan:
    """A file of tokens: ``watched`` are (place, text), ``picks`` places of the values."""

    count: int
    watched: tuple[tuple[int, bytes], ...]
    picks: tuple[int, ...]
    form: TextForm = PLAIN
    columns: Columns = AS_READ

    @property
    def width(self) -> int:
        return self.columns.width(len(self.picks))


@dataclass(frozen=True)
class MatrixRow:
    """A line of a matrix: ``head``, then ``counts`` numbers set apart by blanks, then ``rest``.

    A line without counts is all ``head``.  ``counted`` says whether the total must be above 0,
    must be 0, or may be either (``None``).
    """

    head: bytes
    counts: int
    rest: bytes
    counted: bool | None


@dataclass(frozen=True)
class MatrixPlan:
    """A file of a header and rows of counts; values: each row's total, then each column's.

    Only rows of as many counts as there are ``wide`` columns add to the columns.
    """

    header: bytes
    rows: tuple[MatrixRow, ...]
    wide: int
    columns: Columns = AS_READ

    @property
    def width(self) -> int:
        return self.columns.width(len(self.rows) + self.wide)


@dataclass(frozen=True)
class SumPlan:
    """A file of words and numbers, in whatever order and however often: a line a device.

    Values: of each of ``keys`` the sum of all numbers that follow it, 0 where there is none.
    """

    keys: tuple[bytes, ...]
    form: TextForm = PLAIN

    @property
    def width(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, eq=False)
class MemoryPlan:
    """No file: values another thread puts into ``values`` (int64), taken as they are now.

    The buffer must stay where it is: its length never changes.
    """

    values: array[int]

    @property
    def width(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Gated:
    """One of several files that rest together while nothing happens (a cgroup, a network, a disk).

    ``key`` is the same for all of them; ``leads`` marks the file whose change says that
    something does.  They rest only while that one is read every tick.
    """

    key: str
    leads: bool = False


@dataclass(frozen=True)
class FileScan:
    """An open file and its plan, for the scanner; ``length`` is about that of its text."""

    plan: TokenPlan | MatrixPlan | SumPlan | MemoryPlan
    fd: int = -1
    length: int = 0
    gate: Gated | None = None


class Scannable(Protocol):
    """A source the scanner in C can read: its columns are those of ``scans``, one by one.

    Where a plan fails, the source's own ``read`` is called, which learns anew; ``scans`` is
    asked again afterwards.  A source may have a ``stale``, which says once a second whether it
    must be read so because of something no plan can see (a new cgroup, another NIC).
    """

    def scans(self) -> Sequence[FileScan] | None: ...


@runtime_checkable
class WakingSource(Protocol):
    """A source that learns from a thread of its own that it is stale, and says so at once.

    From then to the next slice it is read tick by tick by its own code, so that nothing is
    lost of what begins and ends meanwhile.
    """

    def call_when_stale(self, call: Callable[[], None]) -> None: ...


@runtime_checkable
class ObservingSource(Protocol):
    """A scannable source with a say in what is shown of it, once a slice.

    ``took`` is told what the scanner read last of each column, ``MISSING`` where it read
    nothing in this slice; ``hidden``, asked with the plans, names columns that show 0 for now;
    from ``unwatched`` on its own code reads it alone.
    """

    def hidden_columns(self) -> Sequence[int]: ...

    def observe(self, row: Sequence[int]) -> None: ...

    def stop_observing(self) -> None: ...


def scans_of(source: object) -> Sequence[FileScan] | None:
    """The source's scans, none where it can be read by its own code only."""
    scans = getattr(source, "scans", None)
    found: Sequence[FileScan] | None = scans() if scans else None
    return found


def is_stale(source: object) -> bool:
    stale = getattr(source, "stale", None)
    return bool(stale and stale())


def packed(values: Sequence[int]) -> array[int]:
    try:
        return array("q", values)
    except OverflowError:
        return array("q", map(signed, values))


class ColumnMaker:
    """Values to a row of columns, reading after reading."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._sums = [picker(group) for group in columns.sums or ()]
        self._vectors = [_Extremes(vector) for vector in columns.vectors]

    @property
    def remembers(self) -> bool:
        """Whether a row depends on the readings before."""
        return bool(self._vectors)

    def make(self, values: Sequence[int]) -> array[int]:
        if self._columns.weights:
            values = list(map(mul, values, self._columns.weights))
        if self._columns.sums is None:
            row = packed(values)
        else:
            row = packed([sum(pick(values)) for pick in self._sums])
        for vector in self._vectors:
            row.extend(vector.take(values))
        return row


@dataclass
class _Extremes:
    """What is left of a vector, reading by reading."""

    vector: Vector
    _before: list[int] | None = None
    _largest: int = 0
    _spread: int = 0
    _pick: list[Callable[[Sequence[int]], tuple[int, ...]]] = field(init=False)

    def __post_init__(self) -> None:
        self._pick = [picker(element) for element in self.vector.elements]

    def take(self, values: Sequence[int]) -> tuple[int, int, int]:
        now = [sum(pick(values)) for pick in self._pick]
        before, self._before = self._before, now
        if before is None:
            return 0, MISSING, 0
        steps = [max(0, signed(step)) for step in map(sub, now, before)]
        most = max(steps)
        self._largest = signed(self._largest + most)
        if most:
            self._spread = signed(self._spread + spread(steps))
        return self._largest, self.vector.labels[steps.index(most)], self._spread


def spread(steps: Sequence[int]) -> int:
    """95th less 50th percentile, each the nearest rank."""
    ordered, count = sorted(steps), len(steps)
    return ordered[(95 * count + 99) // 100 - 1] - ordered[(count + 1) // 2 - 1]


class TokenReader:
    """Executes a ``TokenPlan``: the reference for the scanner in C."""

    def __init__(self, plan: TokenPlan) -> None:
        self.plan = plan
        self._pick = picker(plan.picks)
        self._pick_watched = picker([place for place, _ in plan.watched])
        self._watched = tuple(text for _, text in plan.watched)
        self._maker = ColumnMaker(plan.columns)
        self._last: bytes | None = None
        self._values: Sequence[int] = ()
        self._row = array("q")

    def row(self, data: bytes) -> array[int]:
        """The columns of a text; raises ``Mismatch``."""
        if data == self._last:
            if self._maker.remembers:
                self._row = self._maker.make(self._values)
            return self._row
        self._last = None
        tokens = self.plan.form.shape(data).split()
        if len(tokens) != self.plan.count or self._pick_watched(tokens) != self._watched:
            raise Mismatch("another layout")
        self._values = numbers(self._pick(tokens), self.plan.form.base)
        self._row = self._maker.make(self._values)
        self._last = data
        return self._row


def sum_row(plan: SumPlan, data: bytes) -> array[int]:
    """Executes a ``SumPlan``, the reference for the scanner in C; raises ``Mismatch``."""
    found: dict[bytes, list[bytes]] = {key: [] for key in plan.keys}
    tokens = iter(plan.form.shape(data).split())
    for token in tokens:
        if token in found:
            found[token].append(next(tokens, b""))
    return packed([sum(numbers(each)) for each in found.values()])


def numbers(tokens: Sequence[bytes], base: int = 10) -> list[int]:
    """Tokens as integers; raises ``Mismatch`` for one that is none, or not of 64 bits."""
    if base == 10 and b"".join(tokens).isdigit() and b"" not in tokens:
        values = list(map(int, tokens))
    else:
        values = [_number(token, base) for token in tokens]
    if values and (max(values) > _BITS or min(values) < -_SIGN):
        raise Mismatch("a number of more than 64 bits")
    return values


_DIGITS = {10: frozenset(b"0123456789"), 16: frozenset(b"0123456789abcdefABCDEF")}


def _number(token: bytes, base: int) -> int:
    digits = token.removeprefix(b"-") if base == 10 else token
    if not digits or not _DIGITS[base].issuperset(digits):
        raise Mismatch(f"{token[:40]!r} is no number")
    return int(token, base)


def picker(places: Sequence[int]) -> Callable[[Sequence[T]], tuple[T, ...]]:
    """``itemgetter`` that gives a tuple for any number of places, one and none too."""
    if len(places) > 1:
        return itemgetter(*places)
    if places:
        only = places[0]
        return lambda items: (items[only],)
    return lambda _: ()
