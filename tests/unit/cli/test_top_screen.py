"""The frame of ``reveal top``, and the lost time that it follows."""

from __future__ import annotations

from reveal_analyzer.ledger.lost_time import Loss, LostTime
from reveal_cli.live_ledger import IN_FORCE, LiveLedger
from reveal_cli.progress import ProgressView
from reveal_cli.terminal import plain_text
from reveal_cli.top_screen import frame
from reveal_contract import ledger
from reveal_contract.ledger import Tier
from reveal_contract.metric import Subsystem
from support.ledger_node import Times, accounts_of

BPF = IN_FORCE[Tier.BPF]
JOB = LostTime(
    "default/train-0", 1.02, 0.62,
    (
        Loss(ledger.WAIT_OTHERS, 0.40, "/compile"), Loss(ledger.IO_OTHERS, 0.12, "/hog"),
        Loss(ledger.THROTTLED, 0.09), Loss(ledger.WAIT_OTHERS, 0.01, "/hog"),
    ),
)  # fmt: skip
CALM = LostTime("/calm", 0.5, 0.004, ())
KERNEL = LostTime("/reader", 0.3, 0.2, (Loss(ledger.WAIT_OTHERS, 0.2, ledger.KERNEL),))


def lines(lost: tuple[LostTime, ...], state: str = BPF, width: int = 80) -> list[str]:
    view = ProgressView(
        "n", "watching", 72.0, float("inf"), scores={Subsystem.CPU: 0.4}, lost_time=lost,
        ledger=state,
    )  # fmt: skip
    return plain_text(frame(view), width=width).splitlines()


def test_a_row_has_the_reasons_that_occur_and_who_took_the_most() -> None:
    text = lines((JOB, KERNEL, CALM))
    assert text[0] == "reveal · n · 1m12s · watching"
    assert text[1].split()[0] == "CPU"
    title, head, _, *rows = text[4:]
    assert title == f"Lost time of the last 10 s (ledger: {BPF})"
    assert " ".join(head.split()) == "SUBJECT CPUS WANTED LOST CPU QUOTA STORAGE MOST TO"
    assert [" ".join(row.split()) for row in rows] == [
        "default/train-0 1.02 62 % 41 % 9 % 12 % /compile 40 %",
        "/reader 0.30 20 % 20 % the kernel 20 %",
        "/calm 0.50 0 %",
    ]


def test_only_the_largest_have_rows() -> None:
    assert sum("train" in line for line in lines((JOB,) * 40)) == 12


def test_a_host_without_a_ledger_has_the_reason() -> None:
    assert lines((), "needs CAP_BPF")[-1] == "Lost time is not known: needs CAP_BPF"
    assert lines((), "")[-1] == "Lost time: not known yet"
    assert lines(())[-1] == "nobody is busy"


def test_the_tier_has_what_is_not_known() -> None:
    live = LiveLedger()
    live.add(accounts_of({"/job": Times(run=0.4)})._replace(tier=Tier.SCHEDSTAT))
    live.end_second()
    assert live.tier == IN_FORCE[Tier.SCHEDSTAT]
    assert lines((JOB,), live.tier)[4].startswith("Lost time of the last 10 s (ledger: tier 0, ")


def test_the_tier_is_that_of_the_last_second() -> None:
    missing = {"missing": [{"source": "ledger", "reason": "needs CAP_BPF", "remedy": ""}]}
    live = LiveLedger()
    assert (live.tier, live.is_due) == ("", False)
    live.add(accounts_of({"/job": Times(run=0.4, cpu={"/hog": 0.4}), "/hog": Times(run=0.9)}))
    live.end_second()
    assert (live.tier, live.is_due) == (BPF, False)
    assert live.lost[0].subject == "/job"
    live.end_second()  # the programs were detached
    assert (live.lost, live.is_due) == ((), True)
    live.explain(missing)
    assert (live.tier, live.is_due) == ("needs CAP_BPF", False)
    live.explain({})
    assert live.tier == "the collector does not read the ledger now"
    asked = 0
    for _ in range(10):
        live.end_second()
        asked += live.is_due
    assert asked == 2
