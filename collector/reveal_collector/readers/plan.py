"""Plans: how a kernel text file becomes int64 columns.

A source learns the layout of its file in slow code and describes it as a plan.  Two readers
execute plans: the one in ``reference_reader``, and the native scanner in C, which returns the
same rows at a fraction of the cost.

A text is first converted by its *form* and split at ASCII blanks.  It must have the learned number
of tokens, with the same *watched* tokens.  The *picked* tokens must be numbers: an optional minus
sign and digits that fit into 64 bits (a u64 keeps its bits).  Any other text gives no row.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

# A gate closes after QUIET reads of its leading file without a change; its files are then read at
# every BACK_OFF-th tick only.  The same applies to a single fast file behind an open gate that has
# not changed for as long (the throttling of a cgroup without a quota).
QUIET = 30
BACK_OFF = 5
EXTREMES = 3  # columns of a vector: the largest increment, its label, the spread


@dataclass(frozen=True)
class TextForm:
    """Conversion of a text before it is split into tokens.

    ``truncate``: lines that begin with one of these words are cut after their first number; the
    first line and an unterminated last line are not.  ``keep``: other lines are dropped.
    ``blanks`` are replaced by blanks, ``deleted`` are removed.  ``base`` is that of the numbers.
    ``words`` says whether tokens that are not numbers are names, which must not change.  ``ends``
    inserts a token ``;`` at the end of each line, for layouts of bare numbers that depend on line
    ends.
    """

    truncate: tuple[bytes, ...] = ()
    keep: bytes = b""
    blanks: bytes = b""
    deleted: bytes = b""
    base: int = 10
    words: bool = True
    ends: bool = False

    def apply(self, data: bytes) -> bytes:
        """Return the converted text."""
        for word in self.truncate:
            data = _truncate(data, b"\n" + word + b" ")
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


def _truncate(data: bytes, mark: bytes) -> bytes:
    start = 0
    while (start := data.find(mark, start)) >= 0:
        start += len(mark)
        stop, end = data.find(b" ", start), data.find(b"\n", start)
        if start <= stop < end:
            data = data[:stop] + data[end:]
    return data


@dataclass(frozen=True)
class Vector:
    """One number for each CPU, each a sum of values; its columns are extremes of the increments.

    Columns: the running sum of the largest increment of each reading; the label of the CPU that had
    it; the running sum of the spread (95th minus 50th percentile, nearest rank).  A number that
    decreased counts as no increment.
    """

    elements: tuple[tuple[int, ...], ...]
    labels: tuple[int, ...]


@dataclass(frozen=True)
class Columns:
    """How values become columns: the values or ``sums`` of them, then the ``vectors``.

    ``weights`` are factors of the values in all sums.
    """

    sums: tuple[tuple[int, ...], ...] | None = None
    vectors: tuple[Vector, ...] = ()
    weights: tuple[int, ...] = ()

    def width(self, values: int) -> int:
        """Return the number of columns for this many values."""
        columns = values if self.sums is None else len(self.sums)
        return columns + EXTREMES * len(self.vectors)


AS_READ = Columns()


@dataclass(frozen=True)
class TokenPlan:
    """Plan for a file of tokens: ``watched`` are (position, text), ``picks`` are positions."""

    count: int
    watched: tuple[tuple[int, bytes], ...]
    picks: tuple[int, ...]
    form: TextForm = PLAIN
    columns: Columns = AS_READ

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.columns.width(len(self.picks))


@dataclass(frozen=True)
class MatrixRow:
    """A line of a matrix: ``head``, then ``counts`` numbers separated by blanks, then ``rest``.

    The first number may follow the head without a blank.  A line without counts is all ``head``.
    ``counted`` says whether the total must be above 0 (True), must be 0 (False), or may be either
    (None).  ``repeats`` marks a line whose counts are those of other lines: they do not add to the
    columns.
    """

    head: bytes
    counts: int
    rest: bytes
    counted: bool | None
    repeats: bool = False


@dataclass(frozen=True)
class MatrixPlan:
    """Plan for a header and rows of counts; values: the total of each row, then of each column.

    Only rows with as many counts as there are ``wide`` columns add to the columns, and of these
    only rows that repeat no others.
    """

    header: bytes
    rows: tuple[MatrixRow, ...]
    wide: int
    columns: Columns = AS_READ

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.columns.width(len(self.rows) + self.wide)


@dataclass(frozen=True)
class SumPlan:
    """Plan for lines that begin with the name of a device: running sums over the devices.

    A line is of the last device (MAJOR:MINOR) that it begins with.
    Values: for each of ``keys``, a counter that grows with the number that follows it in the lines
    of ``devices``, device by device.  It starts from the sum of these numbers plus ``offsets``; the
    first text must have numbers of all devices.  Later a number that is not there keeps its last
    value: a device without a line, or with a line that is cut off, changes nothing.  Lines of
    ``ignored`` devices are skipped.  A key in the line of any other device gives no row, and so
    does a number that was not in the first text.
    """

    keys: tuple[bytes, ...]
    form: TextForm = PLAIN
    devices: tuple[bytes, ...] = ()
    ignored: tuple[bytes, ...] = ()
    offsets: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.keys)


@dataclass(frozen=True, eq=False)
class MemoryPlan:
    """Plan without a file: the current content of ``values`` (int64), which another thread writes.

    The buffer must stay in place: its length never changes.
    """

    values: array[int]

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.values)


@dataclass(frozen=True)
class Gated:
    """One of several files that rest together while their object (cgroup, network, disk) is idle.

    ``key`` is the same for all of them; ``leads`` marks the file whose change shows activity.  The
    files rest only while the leading one is read at every tick.
    """

    key: str
    leads: bool = False


@dataclass(frozen=True)
class FileScan:
    """An open file and its plan, for the native scanner; ``length`` is about that of its text."""

    plan: TokenPlan | MatrixPlan | SumPlan | MemoryPlan
    fd: int = -1
    length: int = 0
    gate: Gated | None = None


class Scannable(Protocol):
    """A source that the native scanner can read: its columns are those of ``scans``, in order.

    Where a plan fails, the source's own ``read`` learns the new layout; ``scans`` is called again
    afterwards.  A source may have a method ``stale``, called once a second.  It returns whether the
    source must be read because of a change that no plan can detect (a new cgroup, another NIC).
    """

    def scans(self) -> Sequence[FileScan] | None:
        """Return the scans, or None where they are not possible at the moment."""


@runtime_checkable
class WakingSource(Protocol):
    """A source that detects in a thread of its own that it is stale, and reports it at once.

    Until the next slice it is then read tick by tick by its own code, so that events that begin and
    end meanwhile are not lost.
    """

    def call_when_stale(self, call: Callable[[], None]) -> None:
        """Set the function to call as soon as the source is stale."""


@runtime_checkable
class ObservingSource(Protocol):
    """A scannable source that observes its own values once a slice."""

    def hidden_columns(self) -> Sequence[int]:
        """Return the indices of columns that are reported as 0 for now; called with the plans."""

    def observe(self, row: Sequence[int]) -> None:
        """Receive the last value of each column; ``MISSING`` where this slice has none."""

    def stop_observing(self) -> None:
        """Stop: from now on only the source's own code reads it."""


def scans_of(source: object) -> Sequence[FileScan] | None:
    """Return the source's scans; None where only its own code can read it."""
    scans = getattr(source, "scans", None)
    found: Sequence[FileScan] | None = scans() if scans else None
    return found


def is_stale(source: object) -> bool:
    """Return whether the source has a method ``stale`` that returns True."""
    stale = getattr(source, "stale", None)
    return bool(stale and stale())
