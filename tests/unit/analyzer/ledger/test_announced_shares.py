"""Announced shares: asked for when they are needed, not each second."""

from __future__ import annotations

from reveal_analyzer.ledger.accounts import LedgerLayout
from reveal_analyzer.ledger.announced_shares import AnnouncedShares
from reveal_contract.cpu_shares import CpuMember, CpuShares
from support.ledger_node import ledger_table

SECOND = 1_000_000_000


def layout(*names: str) -> LedgerLayout:
    found = LedgerLayout.of(ledger_table(names).slow)
    assert found is not None
    return found


def test_they_are_read_for_new_subjects_and_every_ten_seconds() -> None:
    asked: list[int] = []
    weights = [2.0]

    def source() -> CpuShares:
        asked.append(len(asked))
        return CpuShares((), (CpuMember("/a", weight=weights[0]),))

    shares, first = AnnouncedShares(source), layout("/a", "/b")
    trees = [shares.tree(first, second * SECOND) for second in range(5, 15)]
    assert (len(asked), len({*map(id, trees)})) == (1, 1)
    assert shares.tree(first, 15 * SECOND) is trees[0]
    weights[0] = 4.0
    assert shares.tree(first, 24 * SECOND) is trees[0]
    assert shares.tree(first, 25 * SECOND).weights.tolist() == [4.0, 1024.0]
    assert len(asked) == 3
    assert shares.tree(layout("/a"), 26 * SECOND).weights.tolist() == [4.0]
    assert len(asked) == 4


def test_a_clock_that_went_back_does_not_keep_old_shares() -> None:
    asked: list[None] = []
    shares, first = AnnouncedShares(lambda: asked.append(None) or CpuShares()), layout("/a")
    shares.tree(first, 100 * SECOND)
    shares.tree(first, 50 * SECOND)
    assert len(asked) == 2
