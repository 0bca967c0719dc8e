"""The busiest subjects are selected, whoever came first, and the selection is stable."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from reveal_analyzer.heartbeat.job_selection import MOST_JOBS, JobSelection

FULL = {f"/subject{number:02}": 0.03 + number / 1000 for number in range(MOST_JOBS)}


class Played:
    """JobSelection, and how often subjects got one."""

    def __init__(self) -> None:
        self.selection, self.changes = JobSelection(), 0

    def add(self, uses: Mapping[str, float], seconds: int, read: Collection[str] = ()) -> Played:
        for _ in range(seconds):
            self.changes += len(self.selection.update(uses, lambda subject: subject in read))
        return self


def test_a_late_job_is_selected_if_it_is_busier() -> None:
    played = Played().add(FULL, 60, read=FULL)
    played.add({**FULL, "/train": 4.0}, 30, read=FULL)
    assert "/train" in played.selection
    assert played.selection.waiting == ["/subject00"]


def test_a_burst_replaces_no_job() -> None:
    played = Played().add(FULL, 60).add({**FULL, "/burst": 4.0}, 5).add(FULL, 20)
    assert "/burst" not in played.selection


def test_a_read_job_stays_selected_beside_a_slightly_busier_job() -> None:
    played = Played().add(FULL, 60, read=FULL)
    played.add({**FULL, "/other": 0.05}, 60, read=FULL)
    assert "/other" not in played.selection
    assert played.selection.waiting == ["/other"]


def test_any_other_subject_replaces_a_subject_without_a_rhythm_which_then_waits() -> None:
    servers = {f"/server{number:02}": 2.0 for number in range(MOST_JOBS)}
    played = Played().add(servers, 170)
    played.add({**servers, "/train": 0.1}, 9)
    assert "/train" not in played.selection
    played.add({**servers, "/train": 0.1}, 30, read={"/train"})
    assert "/train" in played.selection
    played.add({**servers, "/train": 0.1}, 300, read={"/train"})
    assert "/train" in played.selection
    assert played.changes == MOST_JOBS + 1


def test_uses_that_scatter_change_few_selection() -> None:
    draw, played = np.random.default_rng(0), Played()
    for _ in range(600):
        uses = {f"/subject{n}": 0.3 * float(draw.normal(1, 0.1)) for n in range(MOST_JOBS + 4)}
        played.add(uses, 1, read=[f"/subject{n}" for n in range(MOST_JOBS + 4)])
    assert played.changes == MOST_JOBS


def test_a_job_is_deselected_after_a_minute_of_idleness() -> None:
    played = Played().add({"/train": 1.0}, 5).add({}, 60)
    assert "/train" in played.selection
    assert "/train" not in played.add({}, 2).selection
    assert not played.selection


def test_subjects_that_were_tracked_before_have_their_selection() -> None:
    selection = JobSelection.of(FULL)
    assert selection.update({**FULL, "/late": 0.04}, lambda _: True) == []
    assert all(subject in selection for subject in FULL)
