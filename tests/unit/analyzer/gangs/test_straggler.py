"""Which rank delays its job."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.gangs.rank import LostPart
from reveal_analyzer.gangs.straggler import LEAST_PERCENT, NO_RHYTHM, NO_WAITING, judge, slowdown
from reveal_contract import ledger
from support.ranks import judged, rank, slow, waiting


def test_a_straggler_has_the_gpus_of_all_ranks_that_were_judged() -> None:
    straggler = judged([slow(0, gpus=8), *waiting(2, gpus=4), rank(3, desired=0.6)]).straggler
    assert straggler is not None
    assert straggler.gpus == 16


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_rank_that_waits_least_and_lost_time_delays_the_others(count: int) -> None:
    straggler = judged([slow(0), *waiting(count)]).straggler
    assert straggler is not None
    assert (straggler.rank.name, straggler.count) == ("train-0", count + 1)
    assert straggler.percent == pytest.approx(100 * 0.3 / 0.7)


def test_what_is_more_than_the_others_wait_is_no_loss_of_the_job() -> None:
    straggler = judged([slow(0, 0.3), *waiting(3, 0.9)]).straggler
    assert straggler is not None
    assert straggler.percent == pytest.approx(100 * 0.1 / 0.9)


def test_a_rank_that_also_sleeps_loses_a_smaller_part_of_each_step() -> None:
    """Of 220 ms it runs for 30 and sleeps for 70 by itself; without the loss 100 remain."""
    sleeping = slow(0, 120 / 150, desired=150 / 220)
    straggler = judged([sleeping, *waiting(3, 30 / 220)]).straggler
    assert straggler is not None
    assert straggler.percent == pytest.approx(120.0)


def test_threads_side_by_side_lose_the_same_time() -> None:
    straggler = judged([slow(0, 0.25, desired=4.0), *waiting(3, 3.0)]).straggler
    assert straggler is not None
    assert straggler.percent == pytest.approx(100 / 3)


def test_what_all_ranks_lose_delays_nobody() -> None:
    assert judged([slow(number) for number in range(4)]).straggler is None
    others = [slow(number, 0.49, desired=0.6) for number in range(1, 4)]
    assert judged([slow(0, 0.3), *others]).straggler is None


def test_a_rank_with_more_work_by_its_role_delays_nobody() -> None:
    judgement = judged([rank(0), *waiting(3)])
    assert (judgement.straggler, judgement.unknown) == (None, "")


def test_a_rank_with_slack_may_lose_time() -> None:
    """It would wait otherwise: as a stage of a pipeline that is not the slowest one."""
    assert judged([rank(0), slow(1, 0.2, desired=0.7), rank(2, desired=0.6)]).straggler is None


def test_where_steps_became_longer_the_only_rank_that_lost_time_is_the_straggler() -> None:
    """A parameter server wants less than its workers, and all wait for it."""
    server = slow(0, 0.5, desired=0.4)
    workers = [rank(number, desired=0.7, slower_percent=25.0) for number in range(1, 4)]
    straggler = judged([server, *workers]).straggler
    assert straggler is not None
    assert straggler.rank == server
    assert straggler.percent == pytest.approx(25.0)
    assert judged([server, *(rank(n, desired=0.7) for n in range(1, 4))]).straggler is None


def test_ranks_without_a_common_rhythm_are_not_judged() -> None:
    """Replicas of a server have loads of their own."""
    steps = (0.5, 0.7, 0.9)
    own = [
        slow(0, step_s=0.0),
        *(rank(n, desired=0.5, step_s=step) for n, step in enumerate(steps)),
    ]
    assert judged(own).unknown == NO_RHYTHM
    assert judged([slow(0, step_s=0.0), *waiting(3, step_s=0.0)]).unknown == NO_RHYTHM


def test_an_unreadable_rhythm_does_not_hide_the_others() -> None:
    assert judged([slow(0, step_s=0.0), *waiting(3)]).straggler is not None
    assert judged([slow(0, step_s=1.0), *waiting(3)]).straggler is not None


def test_a_common_rhythm_is_remembered() -> None:
    own = [slow(0, step_s=0.0), rank(1, desired=0.6)]
    assert judged(own).unknown == NO_RHYTHM
    assert judge(own, synchronous=True).straggler is not None


def test_what_ranks_lose_to_each_other_is_the_jobs_own() -> None:
    lost = (LostPart(ledger.WAIT_OTHERS, 0.3, "ml/train-1"),)
    assert judged([rank(0, lost=lost), *waiting(3)]).straggler is None


def test_ranks_that_run_while_they_wait_cannot_be_compared() -> None:
    assert judged([slow(0), *waiting(3, desired=1.0)]).unknown == NO_WAITING


@given(
    st.lists(
        st.builds(
            slow,
            st.integers(0, 9),
            st.floats(0, 1),
            desired=st.floats(0, 64),
            step_s=st.sampled_from([0.0, 0.5, 0.51, 2.0]),
            slower_percent=st.floats(-50, 500),
        ),
        min_size=2,
        max_size=9,
    )
)
def test_a_job_is_never_slower_than_its_straggler(ranks: list) -> None:  # type: ignore[type-arg]
    straggler = judge(ranks, synchronous=True).straggler
    if straggler is not None:
        assert LEAST_PERCENT <= straggler.percent <= slowdown(straggler.rank.lost_share) + 1e-9
