"""Lost time of the last seconds."""

from __future__ import annotations

import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.ledger.accounts import AccountReader
from reveal_analyzer.ledger.recent import RecentLosses
from support.ledger_node import Times, ledger_node, ledger_values

JOB, HOG = "/job", "/hog"


class Feed:
    """The last three seconds of a node."""

    def __init__(self) -> None:
        self.recent = RecentLosses(3)
        self._node, self._reader, self._deriver = ledger_node(JOB, HOG), AccountReader(), Deriver()

    def run(self, seconds: int, lost: float) -> None:
        times = {JOB: Times(run=0.8 - lost, cpu={HOG: lost}), HOG: Times(run=0.01)}
        for _ in range(seconds):
            second = self._deriver.second(self._node.slice(ledger_values(times)), self._node.table)
            accounts = self._reader.read(second)
            assert accounts is not None
            self.recent.add(accounts)


def test_only_the_last_seconds_count() -> None:
    feed = Feed()
    feed.run(20, 0.0)
    assert [each.share for each in feed.recent.lost_time()] == [0.0]
    feed.run(1, 0.6)
    assert feed.recent.lost_time()[0].share == pytest.approx(0.25)
    feed.run(2, 0.6)
    (job,) = feed.recent.lost_time()
    assert (job.subject, job.losses[0].culprit) == (JOB, HOG)
    assert job.share == pytest.approx(0.75)


def test_nothing_is_known_after_a_second_without_a_ledger() -> None:
    feed = Feed()
    assert feed.recent.lost_time() == ()
    feed.run(2, 0.2)
    feed.recent.clear()
    assert feed.recent.lost_time() == ()
