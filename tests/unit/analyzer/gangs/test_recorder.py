"""The windows of a node's subjects, from its ledger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveal_analyzer.gangs.rank import WINDOW_S, Rank
from reveal_analyzer.gangs.recorder import RankRecorder
from reveal_analyzer.heartbeat.reference import WindowReading
from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract import ledger
from reveal_contract.subjects import Identity, SubjectKind
from support.evidence_samples import FIRST_NS
from support.ledger_node import Times, accounts_of

POD = "/kubepods/pod1"
IDENTITY = Identity(POD, SubjectKind.POD, "u1", "ml", "train-0", owner="StatefulSet/train", gpus=8)
TIMES = {POD: Times(run=0.5, cpu={"/hog.service": 0.5}), "/hog.service": Times(run=1.0),
         "/idle.service": Times(run=0.01)}  # fmt: skip
STEP = StepTime(0.25, 0.2, "c", 1.0, (WindowReading(10, 25.0, 1.0, 3.0),))


def recorded(seconds: int, start: int = 0, identity: Identity = IDENTITY) -> list[Rank]:
    recorder = RankRecorder("n1", SubjectHistory(lambda: [identity]))
    accounts = accounts_of(TIMES)
    for second in range(start, start + seconds):
        recorder.push(FIRST_NS + second * 10**9, accounts, {POD: STEP})
    return recorder.pop_ended()


def test_a_window_has_what_each_busy_subject_desired_and_lost() -> None:
    ranks = {rank.name: rank for rank in recorded(WINDOW_S + 1)}
    assert ranks.keys() == {"train-0", "/hog.service"}
    pod = ranks["train-0"]
    assert (pod.job, pod.node, pod.uid) == ("ml/StatefulSet/train", "n1", "u1")
    assert (pod.step_s, pod.slower_percent) == (0.25, 25.0)
    assert (pod.gpus, ranks["/hog.service"].gpus) == (8, 0)
    assert pod.desired == pytest.approx(1.0, rel=0.01)
    [lost] = pod.lost
    assert (lost.part, lost.culprit) == (ledger.WAIT_OTHERS, "/hog.service")
    assert lost.share == pytest.approx(0.5, rel=0.01)
    assert ranks["/hog.service"].step_s == 0.0


def test_a_window_is_returned_once_and_only_if_half_of_it_was_read() -> None:
    assert recorded(WINDOW_S) == []
    assert recorded(5, start=6) == []


@pytest.mark.parametrize(
    ("owner", "job", "is_rank"),
    [("ReplicaSet/web-1", "", False), ("DaemonSet/agent", "", False), ("Node/n1", "", False),
     ("ReplicaSet/web-1", "Job/mine", True), ("Job/train", "", True), ("", "", True)],
)  # fmt: skip
def test_replicas_of_services_are_no_ranks(owner: str, job: str, is_rank: bool) -> None:
    identity = replace(IDENTITY, owner=owner, job=job)
    names = {rank.name for rank in recorded(WINDOW_S + 1, identity=identity)}
    assert ("train-0" in names) is is_rank


def test_a_rank_that_waits_all_the_time_is_still_a_rank() -> None:
    recorder = RankRecorder("n1", SubjectHistory(lambda: [IDENTITY]))
    for number, run in enumerate((0.2, 0.01, 0.01)):
        accounts = accounts_of({POD: Times(run=run), "/hog.service": Times(run=1.0)})
        for second in range(WINDOW_S):
            recorder.push(FIRST_NS + (number * WINDOW_S + second) * 10**9, accounts, {})
    waiting = next(rank for rank in recorder.pop_ended() if rank.name == "train-0")
    assert waiting.desired == pytest.approx(0.01, abs=0.001)
    assert waiting.lost == ()
