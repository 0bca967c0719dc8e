"""What of a second is no harm, whatever its values: discards, late writes, reads of the cache."""

from __future__ import annotations

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.live.cache_reads import CacheReads
from reveal_analyzer.live.discards import Discards
from reveal_analyzer.live.writeback import Writeback
from reveal_contract.metric import Subsystem


class Unscored:
    """The last seconds of one node, as far as they decide what is no harm."""

    def __init__(self) -> None:
        self._discards, self._writeback, self._reads = Discards(), Writeback(), CacheReads()

    def push(self, second: Second) -> frozenset[Subsystem]:
        """Add a second; return the subsystems whose score is suppressed in it."""
        return self._discards.push(second) | self._writeback.push(second)

    def scorable(self, second: Second, values: Floats, highest: Floats) -> Floats:
        """Return the values (columns,) that may be scored, the others NaN: see ``CacheReads``."""
        return self._reads.scorable(second, values, highest)
