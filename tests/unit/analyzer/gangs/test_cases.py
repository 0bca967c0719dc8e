"""Cases of ranks: when they open, change and end."""

from __future__ import annotations

import pytest

from reveal_analyzer.gangs.cases import GangCases
from reveal_analyzer.gangs.findings import finding, identity
from reveal_analyzer.gangs.straggler import Judgement
from reveal_contract.finding import FindingChange, FindingScope, Resolution, State
from reveal_contract.kube.anomaly_report import report
from reveal_contract.kube.report_parser import parse_report, parse_row
from reveal_contract.metric import Subsystem
from support.ranks import JOB, judged, rank, slow, waiting

SLOW = judged([slow(0), *waiting(3)])
SLOW_GPUS = judged([slow(0, gpus=8), *waiting(3, gpus=8)])
SLOWER_GPUS = judged([slow(0, 0.4, gpus=8), *waiting(3, gpus=8)])
OTHER = judged([slow(9), *waiting(3)])
CALM = Judgement()
OPENED, CHANGED, RESOLVED = (
    FindingChange.OPENED, FindingChange.CHANGED, FindingChange.RESOLVED,
)  # fmt: skip


def changes(cases: GangCases, *judged: Judgement, start: int = 1) -> list[list[FindingChange]]:
    """Return the changes of each window."""
    return [
        [each.change for each in cases.update({JOB: judgement}, window)]
        for window, judgement in enumerate(judged, start)
    ]


def test_two_windows_open_a_case_and_three_calm_windows_end_it() -> None:
    found = changes(GangCases(), SLOW, SLOW, SLOW, CALM, CALM, SLOW, CALM, CALM, CALM)
    assert found == [[], [OPENED], [], [], [], [], [], [], [RESOLVED]]


def test_two_of_three_windows_are_enough_and_two_of_four_are_not() -> None:
    assert changes(GangCases(), SLOW, CALM, SLOW) == [[], [], [OPENED]]
    assert changes(GangCases(), SLOW, CALM, CALM, SLOW) == [[], [], [], []]


def test_another_rank_is_another_case() -> None:
    found = changes(GangCases(), SLOW, SLOW, OTHER, OTHER, OTHER)
    assert found == [[], [OPENED], [], [OPENED], [RESOLVED]]


def test_a_case_that_grows_worse_is_reported_after_a_minute() -> None:
    mild = judged([slow(0, 0.05), *waiting(3)])
    cases = GangCases()
    assert changes(cases, mild, mild) == [[], [OPENED]]
    later = changes(cases, *[SLOW] * 10, start=3)
    assert [number for number, each in enumerate(later, 3) if each] == [8]


def test_a_job_that_is_not_judged_is_unobserved() -> None:
    cases = GangCases()
    changes(cases, SLOW, SLOW)
    assert cases.update({}, 8) == []
    [change] = cases.update({}, 9)
    over = finding(change.case, resolved=True)
    assert (over.resolution, over.state) == (Resolution.UNOBSERVED, State.RESOLVED)
    assert cases.opened == []


def test_the_next_leader_continues_with_the_same_finding() -> None:
    cases, following = GangCases(), GangCases()
    changes(cases, SLOW, SLOW)
    following.load([*cases.rows(), {"job": 1}, "x"])
    assert list(map(identity, following.opened)) == list(map(identity, cases.opened))
    assert changes(following, SLOW, CALM, CALM, CALM, start=3)[-1] == [RESOLVED]


def test_the_claim_has_the_rank_its_job_and_the_reason() -> None:
    cases = GangCases()
    changes(cases, SLOW, SLOW)
    found = finding(cases.opened[0])
    assert found.claim == (
        "ml/train-0 on n0 delays ml/Job/train by 43 % (4 ranks): 30 % of its time waiting for a"
        " CPU that /hog.service took"
    )
    assert (found.scope, found.node_name, found.subsystem) == (
        FindingScope.JOB, "n0", Subsystem.CPU,
    )  # fmt: skip
    assert [pod.name for pod in found.pods] == ["train-0"]
    assert found.delayed_job is not None
    assert (found.delayed_job.name, found.delayed_job.ranks) == (JOB, 4)


def test_the_finding_is_a_report_and_a_row() -> None:
    cases = GangCases()
    changes(cases, SLOW, SLOW)
    found = finding(cases.opened[0])
    written = report(found, "p", 1)
    read = parse_report({**written.to_create(), "status": written.status})
    assert read is not None
    assert read.finding.delayed_job == parse_row(found.to_dict()).delayed_job  # type: ignore[union-attr]
    assert read.cross_node


def test_the_cost_is_that_of_the_whole_job_since_its_first_window() -> None:
    cases = GangCases()
    changes(cases, SLOW_GPUS, SLOWER_GPUS, SLOW_GPUS)
    cost = finding(cases.opened[0]).cost
    assert cost is not None
    assert (cost.gpus, cost.lost_gpus) == (32, pytest.approx(32 * 0.3))
    hours = 30 / 3600  # three windows
    expected = (32 * 0.3 * hours, 32 * 0.3 * hours, 32 * 0.4 * hours)
    assert (cost.lost_gpu_hours, cost.low, cost.high) == pytest.approx(expected)


def test_without_known_gpus_a_delayed_job_has_no_cost() -> None:
    cases = GangCases()
    changes(cases, SLOW, SLOW)
    assert finding(cases.opened[0]).cost is None


def test_a_case_of_an_earlier_version_has_no_gpus() -> None:
    cases, following = GangCases(), GangCases()
    changes(cases, SLOW_GPUS, SLOW_GPUS)
    [row] = cases.rows()
    del row["straggler"]["gpus"], row["straggler"]["rank"]["gpus"]
    following.load([row])
    [case] = following.opened
    assert (case.straggler.gpus, finding(case).cost) == (0, None)


def test_a_process_is_a_subject() -> None:
    own = [slow(0, namespace="", kind="Unit", name="/train.service"), *waiting(3)]
    cases = GangCases()
    changes(cases, judged(own), judged(own))
    [subject] = finding(cases.opened[0]).subjects
    assert (subject.kind, subject.name) == ("Unit", "/train.service")
    assert rank(0).subject == "ml/train-0"
