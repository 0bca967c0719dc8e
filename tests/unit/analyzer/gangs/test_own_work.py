"""A rank that works longer for the same steps, and loses no time to others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.gangs.baseline_work import key_of
from reveal_analyzer.gangs.judge import RankJudge
from reveal_analyzer.gangs.own_work import longer_work
from reveal_analyzer.gangs.rank import Rank
from reveal_contract.finding import FindingChange, FindingUpdate
from support.ranks import rank

STEP_S, WORK_S = 0.5, (0.3, 0.25, 0.2, 0.3)


def job(extra: Sequence[float] = (0.0,) * 4, *, read: bool = True, window: int = 100) -> list[Rank]:
    """Return four ranks in a window in which some work longer in each step, by so many seconds."""
    step = STEP_S + max(extra)
    percent = 100 * (step / STEP_S - 1)
    return [
        rank(
            number, window=window, desired=(work + more) / step,
            step_s=step if read else 0.0, slower_percent=percent if read else 0.0,
        )
        for number, (work, more) in enumerate(zip(WORK_S, extra, strict=True))
    ]  # fmt: skip


BASELINE = {key_of(each): each.desired for each in job()}


@pytest.mark.parametrize("number", range(4))
def test_the_rank_that_works_longer_is_found_with_what_it_costs(number: int) -> None:
    extra = [0.1 if each == number else 0.0 for each in range(4)]
    found = longer_work(job(extra), BASELINE)
    assert found is not None
    assert found.rank.name == f"train-{number}"
    assert found.slowdown == pytest.approx(0.2)
    assert found.baseline == pytest.approx(WORK_S[number] / STEP_S)


def test_nobody_is_named_while_nothing_changed() -> None:
    assert longer_work(job(), BASELINE) is None


def test_two_ranks_that_work_longer_are_no_straggler() -> None:
    assert longer_work(job((0.1, 0.1, 0.0, 0.0)), BASELINE) is None


def test_work_that_grows_on_all_ranks_delays_nobody() -> None:
    assert longer_work(job((0.1,) * 4), BASELINE) is None


def test_steps_that_are_longer_by_waiting_alone_name_nobody() -> None:
    """All ranks wait for a link: each wants less, and none works longer."""
    waiting = [
        rank(number, desired=work / 0.6, slower_percent=20.0) for number, work in enumerate(WORK_S)
    ]
    assert longer_work(waiting, BASELINE) is None


def test_a_checkpoint_of_a_rank_is_no_straggler() -> None:
    """No steps are read while the others wait for it."""
    assert longer_work(job((0.5, 0.0, 0.0, 0.0), read=False), BASELINE) is None


def test_ranks_with_a_new_rank_are_not_compared() -> None:
    some = dict(list(BASELINE.items())[1:])
    assert longer_work(job((0.1, 0.0, 0.0, 0.0)), some) is None


def run(judge: RankJudge, windows: Sequence[list[Rank]]) -> list[FindingUpdate]:
    return [
        update for ranks in windows for update in judge.add({each.node: [each] for each in ranks})
    ]


def test_a_rank_that_becomes_slower_opens_a_finding_and_ends_it() -> None:
    judge = RankJudge()
    slow = (0.0, 0.0, 0.1, 0.0)
    assert run(judge, [job(window=number) for number in range(100, 106)]) == []
    [opened] = run(judge, [job(slow, window=number) for number in range(106, 110)])
    assert opened.change is FindingChange.OPENED
    assert opened.finding.claim == (
        "ml/train-2 on n2 delays ml/Job/train by 20 % (4 ranks): its own work takes 50 % longer,"
        " without loss to others"
    )
    assert opened.finding.lost_time == ()
    assert [each.metric for each in opened.finding.evidence] == ["ledger.run"]
    [resolved] = run(judge, [job(window=number) for number in range(110, 114)])
    assert resolved.change is FindingChange.RESOLVED


def test_a_rank_that_has_more_work_from_the_start_is_as_baseline() -> None:
    judge = RankJudge()
    assert run(judge, [job((0.1, 0.0, 0.0, 0.0), window=n) for n in range(100, 110)]) == []


def test_a_finding_of_own_work_survives_a_new_leader() -> None:
    judge, following = RankJudge(), RankJudge()
    run(judge, [job(window=number) for number in range(100, 104)])
    run(judge, [job((0.1, 0.0, 0.0, 0.0), window=number) for number in range(104, 106)])
    following.load(judge.rows())
    assert following.open == judge.open != frozenset()


@given(
    st.lists(st.floats(0, 8), min_size=2, max_size=8),
    st.lists(st.floats(0, 8), min_size=8, max_size=8),
    st.floats(-50, 500),
)
def test_a_job_is_no_slower_than_its_steps(
    now: list[float], before: list[float], percent: float
) -> None:
    ranks = [rank(n, desired=desired, slower_percent=percent) for n, desired in enumerate(now)]
    baseline = {key_of(each): desired for each, desired in zip(ranks, before, strict=False)}
    found = longer_work(ranks, baseline)
    if found is not None:
        assert 0 < 100 * found.slowdown <= percent + 1e-9
