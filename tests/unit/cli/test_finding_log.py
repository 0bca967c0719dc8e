"""The findings of a scan, and what is suspected."""

from dataclasses import replace

from reveal_cli.finding_log import FindingLog
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, State
from support import finding_factory


def finding(second: int = 1) -> Finding:
    return replace(finding_factory.finding(), id=f"cpu-{second}", first_observed_ns=second * 10**9)


def test_the_last_state_of_each_finding_is_kept_in_the_order_of_onset() -> None:
    log = FindingLog()
    late, early = finding(5), finding(1)
    assert log.update([FindingUpdate(FindingChange.OPENED, late)]) == [late]
    assert log.update([FindingUpdate(FindingChange.OPENED, early)]) == [early]
    resolved = replace(early, state=State.RESOLVED)
    assert log.update([FindingUpdate(FindingChange.RESOLVED, resolved)]) == []
    assert log.findings == [resolved, late]


def test_a_suspicion_stays_until_a_finding_opens_or_five_seconds_pass() -> None:
    log = FindingLog()
    log.update([FindingUpdate(FindingChange.SUSPECTED, finding())])
    assert log.suspected == [finding()]
    assert log.findings == []
    log.update([FindingUpdate(FindingChange.OPENED, finding())])
    assert log.suspected == []
    log.update([FindingUpdate(FindingChange.SUSPECTED, finding(9))])
    for _ in range(5):
        log.update([])
    assert log.suspected == []
