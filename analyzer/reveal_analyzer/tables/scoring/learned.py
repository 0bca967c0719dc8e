"""What scoring has learned of a table, so that a ranking need not learn it once more."""

from __future__ import annotations

from dataclasses import dataclass, field

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.scoring.forecast import Forecast
from reveal_analyzer.tables.scoring.preparation import Prepared
from reveal_analyzer.tables.scoring.scales import Spreads

_MOST_BYTES = 64 << 20  # of all blocks: what more would hold is learned again


@dataclass(frozen=True)
class _Block:
    changed: Floats | None  # prepared values; None if nothing is taken from the values
    spreads: Spreads
    forecast: Forecast


@dataclass
class LearnedBlocks:
    """What was learned of the first blocks of a table with its baseline, in bounded memory."""

    _blocks: list[_Block] = field(default_factory=list)
    _bytes: int = 0
    _complete: bool = False  # no later block is kept

    def add(self, values: Floats, prepared: Prepared, forecast: Forecast) -> None:
        """Keep what was learned of the next block, if there is room for it."""
        changed = None if prepared.values is values else prepared.values
        self._bytes += forecast.nbytes + (0 if changed is None else changed.nbytes)
        self._complete |= self._bytes > _MOST_BYTES
        if not self._complete:
            self._blocks.append(_Block(changed, prepared.spreads, forecast))

    def of(self, index: int, values: Floats) -> tuple[Prepared, Forecast] | None:
        """Return what was learned of the values of a block; None if it was not kept."""
        if index >= len(self._blocks):
            return None
        block = self._blocks[index]
        prepared = values if block.changed is None else block.changed
        return Prepared(prepared, block.spreads, None), block.forecast
