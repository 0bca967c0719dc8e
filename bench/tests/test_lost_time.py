"""The evaluation of the lost-time bench: truth by steps, accounts of windows, findings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from faultbench.evaluation import TimedUpdate
from faultbench.sessions import Case, Slice
from ledgerbench.host_states import STATES, commands
from ledgerbench.judged_faults import JUDGES, WITH, Verdict, others, verdict, without_ledger
from ledgerbench.step_truth import NOTHING, StepLog, Work, cost, read_steps
from ledgerbench.truth_evaluation import Around, CaseResult, SessionResult, fault_span, quiet_spans
from ledgerbench.truth_faults import COSTLY, EXPECTED, FAULTS, QUICK, Expected
from ledgerbench.truth_summary import row, totals
from ledgerbench.window_accounts import Account, RecordedLedger
from reveal_cli.faults import Culprit
from reveal_contract import ledger
from reveal_contract.finding import (
    Confidence,
    Finding,
    FindingChange,
    Hypothesis,
    Severity,
    State,
    Subject,
)
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND
from support.ledger_node import Times, ledger_node, ledger_values

JOB, HOG = "/reveal-work-train1-quiet", "/reveal-fault-hog"
CASE = Case("hog", "", False, frozenset(), HOG, 0.0, begin=60, onset=66, offset=78, end=82)
OWN = Expected(frozenset({"CPUTakenByNeighbor"}), Culprit.OWN)


def steps(text: str, folder: Path) -> StepLog:
    path = folder / "job.steps"
    path.write_text(text)
    return read_steps(path)


def update(
    seconds: float, cause: str = "CPUTakenByNeighbor", culprit: str = HOG,
    change: FindingChange = FindingChange.OPENED, identity: str = "a",
) -> TimedUpdate:  # fmt: skip
    finding = Finding(
        identity, "bench", Subsystem.CPU, Severity.LOW, State.OPEN, 0, 0, "claim",
        hypothesis=Hypothesis(cause, 90, ""),
        subjects=(Subject("Cgroup", culprit, 50, 50, Confidence.MEASURED),),
    )  # fmt: skip
    return TimedUpdate(seconds, change, finding)


class TestSteps:
    def test_the_part_of_a_step_inside_a_window_counts(self, tmp_path: Path) -> None:
        log = steps("100 1 0.5\n101 2 0.5\nTraceback (most recent call last):\n", tmp_path)
        work = log.work([(100.5, 102.0)])
        assert work == (1.0, 1.5, 0.5)
        assert log.work([(100.0, 100.5), (102.5, 110.0)]) == (0.75, 1.0, 0.375)

    def test_a_stopped_job_lost_all_though_its_step_has_an_end(self, tmp_path: Path) -> None:
        work = steps("100 20 0.02\n", tmp_path).work([(104.0, 116.0)])
        assert work.lost(0.0) == pytest.approx(0.999)

    def test_own_waits_are_not_lost(self) -> None:
        work = Work(steps=10, duration=1.0, cpu=0.4)
        assert work.waited == pytest.approx(0.6)
        assert work.lost(0.0) == pytest.approx(0.6)
        assert work.lost(0.05) == pytest.approx(0.1)
        assert work.lost(0.09) == 0.0  # a little faster than on the quiet host

    def test_the_work_of_the_kernel_in_its_threads_is_lost(self) -> None:
        assert Work(steps=10, duration=1.0, cpu=0.9).lost(0.0, cpu=0.02) == pytest.approx(0.8)

    def test_a_job_without_steps_lost_nothing_known(self) -> None:
        assert (NOTHING.lost(0.1), NOTHING.waited, NOTHING.waits_per_step) == (0.0, 0.0, 0.0)

    def test_the_cost_of_a_fault_is_beside_what_was_lost_before(self) -> None:
        assert cost(0.5, 0.75) == pytest.approx(0.5)
        assert cost(1.0, 1.0) == 0.0


def test_windows_leave_the_edges_of_a_fault_out() -> None:
    assert fault_span(CASE, 1000.0) == (1067.5, 1078.0)
    assert quiet_spans(CASE, 1000.0) == [(1060.0, 1066.0), (1080.0, 1082.0)]


class TestAccounts:
    def slices(self) -> list[Slice]:
        node = ledger_node(JOB, HOG)
        quiet = ledger_values({JOB: Times(run=1.0), HOG: Times()})
        taken = Times(run=0.4, cpu={HOG: 0.5}, others={ledger.WAIT_SELF: 0.1})
        busy = ledger_values({JOB: taken, HOG: Times(run=1.0)})
        torn = busy | {f"{ledger.THREAD_TIME}{{{JOB}}}": 20_000.0}
        messages = [node.slice(values) for values in (quiet, quiet, busy, busy, torn)]
        return [Slice(float(n), message, node.table) for n, message in enumerate(messages, 1)]

    def account(self, first: int, last: int) -> Account:
        slices = self.slices()
        recorded = RecordedLedger(slices)
        starts = [each.message.start_ns / NS_PER_SECOND for each in slices]
        return recorded.account(JOB, recorded.spans(starts[first], starts[last] + 1.0))

    def test_shares_are_of_the_time_that_the_job_desired(self) -> None:
        account = self.account(2, 3)
        assert (account.seconds, account.refused) == (2, 0)
        assert account.lost == pytest.approx(0.5)
        assert account.waited == pytest.approx(0.6)
        assert account.culprits[HOG] == pytest.approx(0.5)
        assert account.unbalanced == pytest.approx(0.0, abs=1e-3)

    def test_a_window_has_only_whole_seconds(self) -> None:
        slices = self.slices()
        start = slices[0].message.start_ns / NS_PER_SECOND
        spans = RecordedLedger(slices).spans(start + 0.5, start + 3.5)
        assert spans == [(start + 1, start + 2), (start + 2, start + 3)]

    def test_a_second_that_does_not_add_up_is_refused(self) -> None:
        account = self.account(3, 4)
        assert account.refused == 1
        assert account.lost == pytest.approx(0.5)

    def test_without_its_channels_there_is_no_ledger(self) -> None:
        stripped = list(without_ledger(self.slices()))
        assert len(stripped) == 5
        assert not RecordedLedger(stripped).spans(0, 1e12)
        for each in stripped:
            assert each.message.table == each.table.key
            assert len(each.message.slow) == len(each.table.slow) > 0


class TestVerdicts:
    def test_the_first_right_finding_counts_also_after_others(self) -> None:
        heard = [update(68, culprit="/other"), update(71, identity="b"), update(74, identity="c")]
        found = verdict(CASE, OWN, heard)
        assert (found.seconds, found.right, found.culprit) == (5, True, HOG)

    def test_a_finding_that_names_the_culprit_later_counts_from_then_on(self) -> None:
        heard = [update(68, culprit="/other"), update(72, change=FindingChange.CHANGED)]
        assert verdict(CASE, OWN, heard).seconds == 6

    @pytest.mark.parametrize(
        ("heard", "cause_right", "culprit_right"),
        [
            ([update(70, cause="ForkStorm")], False, True),
            ([update(70, culprit="/other")], True, False),
            ([update(70, change=FindingChange.SUSPECTED)], False, False),
            ([update(66)], False, False),  # before the fault
            ([update(80)], False, False),  # when it is over
            ([update(60), update(70, change=FindingChange.CHANGED)], False, False),  # lasts
        ],
    )
    def test_others_are_not_right(
        self, heard: list[TimedUpdate], cause_right: bool, culprit_right: bool
    ) -> None:
        found = verdict(CASE, OWN, heard)
        assert (found.cause_right, found.culprit_right) == (cause_right, culprit_right)
        assert not found.right

    def test_findings_without_a_fault(self) -> None:
        neighbour = "/reveal-work-compile"
        heard = [update(30), update(61, culprit=neighbour), update(62), update(70), update(89)]
        found = others([CASE], heard, [neighbour], since=60)
        assert [each.seconds for each in found] == [62]
        assert [each.seconds for each in others([CASE], heard, [], since=60)] == [61, 62]


class TestTotals:
    def result(self, lost: float, error: float, found: Verdict) -> CaseResult:
        def around(share: float, accounted: float) -> Around:
            parts = dict.fromkeys((*ledger.DESIRED, ledger.STOLEN), 0.0)
            parts |= {ledger.RUN: 1 - accounted, ledger.WAIT_OTHERS: accounted}
            return Around(share, Account(10, 0, parts), Work(10, 1.0, 1 - share))

        return CaseResult(
            "train1", "quiet", CASE, around(0.0, 0.0), around(lost, lost + error),
            {name: found if name == WITH else Verdict() for name in JUDGES},
        )  # fmt: skip

    def test_errors_are_points_and_only_harmful_faults_need_be_found(self) -> None:
        right = Verdict(4.0, "CPUTakenByNeighbor", HOG, True, True)
        cases = (self.result(0.5, 0.01, right), self.result(0.4, -0.03, Verdict()),
                 self.result(0.02, 0.0, Verdict()))  # fmt: skip
        (found,) = totals([SessionResult("train1-quiet-1", 100, {}, cases)])
        assert (found["cases"], found["harmful"]) == (3, 2)
        assert found["error mean"] == pytest.approx(4 / 3, abs=0.01)
        assert found["error worst"] == 3.0
        assert found[f"{WITH}: right"] == "1 of 2"
        assert found[f"{WITH}: s"] == 4.0

    def test_a_case_whose_ledger_was_off_has_no_error(self) -> None:
        result = self.result(0.5, 0.0, Verdict())
        during = Around(0.5, Account(10, 10), result.during.work)
        off = replace(result, during=during)
        assert (row(off)["ledger"], row(off)["error"]) == ("off", "")
        (found,) = totals([SessionResult("train1-quiet-1", 100, {}, (off,))])
        assert (found["ledger off"], found["harmful"], found["error mean"]) == (1, 1, "")

    def test_a_wrong_finding_is_displayed_with_what_is_wrong(self) -> None:
        wrong = Verdict(4.0, "CPUTakenByNeighbor", "/reveal-work-half0", True, False)
        assert row(self.result(0.5, 0.0, wrong))[WITH] == "(CPUTakenByNeighbor by half0)"


def test_every_fault_has_causes_that_exist() -> None:
    from reveal_analyzer.hypotheses import loader

    names = {rule.name for rule in loader.load(())}
    assert {cause for each in EXPECTED.values() for cause in each.causes} <= names
    assert len(FAULTS) >= 15
    assert {*QUICK, *COSTLY} <= EXPECTED.keys()


def test_neighbours_of_each_state_have_commands(tmp_path: Path) -> None:
    for neighbours in STATES.values():
        for neighbour in neighbours:
            assert all(commands(neighbour, tmp_path))
    assert (tmp_path / "generated.c").exists()
