"""The CPU shares of the subjects of a node, as its collector announces them."""

from __future__ import annotations

from collections.abc import Callable

from reveal_analyzer.ledger.accounts import LedgerLayout
from reveal_analyzer.ledger.entitlement import ShareTree
from reveal_contract.cpu_shares import EQUAL_SHARES, CpuShares
from reveal_contract.time_units import NS_PER_SECOND

ShareSource = Callable[[], CpuShares]
_KEPT_NS = 10 * NS_PER_SECOND  # collectors look for changed weights as often


def equal_shares() -> CpuShares:
    """Return no shares: the source where none are announced."""
    return EQUAL_SHARES


class AnnouncedShares:
    """Asks ``source`` when the subjects change, and every ten seconds in which it is needed."""

    def __init__(self, source: ShareSource = equal_shares) -> None:
        self._source = source
        self._layout: LedgerLayout | None = None
        self._shares = EQUAL_SHARES
        self._tree = ShareTree.of((), EQUAL_SHARES)
        self._asked_ns = 0

    def tree(self, layout: LedgerLayout, start_ns: int) -> ShareTree:
        """Return the tree of the subjects of a layout in the second that begins at ``start_ns``."""
        is_new = layout is not self._layout
        if is_new or not 0 <= start_ns - self._asked_ns < _KEPT_NS:
            shares, self._asked_ns = self._source(), start_ns
            if is_new or shares != self._shares:
                self._tree = ShareTree.of(layout.subjects, shares)
            self._layout, self._shares = layout, shares
        return self._tree
