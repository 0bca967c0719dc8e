"""What a scan says of lost time at its end."""

from __future__ import annotations

from reveal_analyzer.ledger.lost_time import Loss, LostTime
from reveal_cli.lost_time_text import lost_time_lines, lost_time_of, lost_time_rows
from reveal_cli.summary_text import Coverage, summary_blocks
from reveal_cli.terminal import plain_text
from reveal_contract import ledger

JOB = LostTime(
    "/job", 1.0, 0.62,
    (
        Loss(ledger.WAIT_OTHERS, 0.40, "/compile"), Loss(ledger.IO_OTHERS, 0.12, "/hog"),
        Loss(ledger.THROTTLED, 0.09), Loss(ledger.IRQ, 0.006),
    ),
)  # fmt: skip
CALM = LostTime("/calm", 0.5, 0.004, ())
COVERAGE = Coverage(watched=180, judged=120, warmup=60, slices=180, channels=702)


def test_a_line_names_the_parts_and_those_who_took_them() -> None:
    assert lost_time_lines({"n1": [JOB, CALM]}) == [
        "Lost time: /job lost 62 % of the time that it wanted: 40 % waiting for a CPU that"
        " /compile used, 12 % waiting for storage that /hog kept busy, 9 % held back by its CPU"
        " quota."
    ]


def test_nobody_losing_time_has_a_line() -> None:
    line = "Lost time: none of 1 busy subject lost 1 % of the time that it wanted."
    assert lost_time_lines({"n1": [CALM]}) == [line]
    assert lost_time_lines({"n1": []}) == []


def test_those_without_a_name_are_others_but_the_kernel_is_named() -> None:
    losses = (Loss(ledger.WAIT_OTHERS, 0.1, ledger.KERNEL), Loss(ledger.IO_OTHERS, 0.05))
    (line,) = lost_time_lines({"n1": [LostTime("/job", 1.0, 0.15, losses)]})
    assert line.partition(": ")[2].partition(": ")[2] == (
        "10 % waiting for a CPU that the kernel used,"
        " 5 % waiting for storage that others kept busy."
    )


def test_with_several_nodes_each_line_has_its_own() -> None:
    lines = lost_time_lines({"n1": [JOB], "n2": [CALM], "n3": []})
    assert [line.split(":")[0] for line in lines] == ["Lost time on n1", "Lost time on n2"]


def test_only_the_largest_are_named() -> None:
    lines = lost_time_lines({"n1": [JOB] * 7})
    assert len(lines) == 6
    assert lines[-1] == "Lost time: 2 more lost less."


def test_nothing_is_wrong_is_stated_only_where_little_was_lost() -> None:
    def first(lost: list[LostTime]) -> str:
        coverage = Coverage(**{**vars(COVERAGE), "lost_time": {"n1": lost}})
        return plain_text(*summary_blocks([], coverage)).splitlines()[0]

    assert first([CALM]).startswith("Nothing is wrong")
    assert first([]).startswith("Nothing is wrong")
    assert first([CALM, JOB]).startswith("No finding, but time was lost, see below:")


def test_lost_time_comes_back_from_the_rows_of_a_summary() -> None:
    assert lost_time_of(lost_time_rows([JOB, CALM])) == [JOB, CALM]


def test_rows_of_another_form_are_left_out() -> None:
    odd = {"subject": "/x", "desiredCPUs": 1, "lostShare": 0.5, "losses": [{"reason": "weather"}]}
    assert lost_time_of([None, "x", {}, odd, *lost_time_rows([CALM])]) == [CALM]
