"""A feed of the rare lane: another thread reads it, and the tick thread takes its last values."""

from __future__ import annotations

from collections.abc import Callable

from reveal_collector.readers.source import HUNG_NS
from reveal_collector.sampling.feed import Feed, Values
from reveal_contract.channels import Channel

RARE_PERIOD_NS = 10_000_000_000
# A value is sent again until the next read is due, and for so much longer: reads are some time
# late on a busy host.  An older value is missing, as nobody knows whether it still holds.
TOLERANCE_NS = 5_000_000_000


class RareFeed:
    """A feed that the rare lane's thread reads and the tick thread takes the last values of.

    Columns, values and their time are replaced as one tuple, so that the tick thread never combines
    values with the columns of another layout.
    """

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.due_ns = 0
        self.release_requested = self.released = False
        feed.adopt_columns()
        self._latest: tuple[tuple[Channel, ...], Values, int] = (feed.table_columns, feed.blank, 0)
        self.table_columns = feed.table_columns

    def refresh(self, clock: Callable[[], int]) -> None:
        """Read the source; for the thread of the rare lane, where a read may take long."""
        began_ns = clock()
        values = self.feed.read()
        if self.feed.changed:
            self.feed.adopt_columns()
            values = self.feed.read()
        now_ns = clock()
        if now_ns - began_ns >= HUNG_NS:
            # The first of its files may have been read long before the last one: read all again.
            values, self.due_ns = self.feed.blank, 0
        self._latest = (self.feed.table_columns, values, now_ns)

    @property
    def changed(self) -> bool:
        """Whether the last read has other columns than the table."""
        return self._latest[0] is not self.table_columns

    def adopt_columns(self) -> None:
        """Record that the columns of the last read are in the table; for the tick thread."""
        self.table_columns = self._latest[0]

    def latest_values(self, now_ns: int) -> Values:
        """Return the last values; blanks where they are too old or have columns of no table."""
        columns, values, read_ns = self._latest
        if columns is self.table_columns and now_ns - read_ns <= RARE_PERIOD_NS + TOLERANCE_NS:
            return values
        return (None,) * len(self.table_columns)
