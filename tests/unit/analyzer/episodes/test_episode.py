"""What is known of a case apart from its values."""

from __future__ import annotations

from reveal_analyzer.episodes.episode import Episode
from reveal_analyzer.hypotheses.loader import load
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

RULES = {rule.name: rule for rule in load()}


def episode(**present_s: int) -> Episode:
    """Signatures of one case, each with the second in which it was present last."""
    found = Episode(0, 4000 * NS_PER_SECOND, Subsystem.CPU)
    found.add_matches(SignatureMatch(RULES[name], ()) for name in present_s)
    found.present_ns = {name: second * NS_PER_SECOND for name, second in present_s.items()}
    return found


def test_a_signature_that_matched_only_while_a_fault_began_is_not_the_cause_of_what_lasts() -> None:
    lasting = episode(OneCPUOverloaded=10, CPUContention=3900)
    assert lasting.current_matches == ["CPUContention"]


def test_signatures_of_the_last_minute_keep_their_order() -> None:
    assert episode(ForkStorm=50, CPUContention=100).current_matches == [
        "ForkStorm", "CPUContention"
    ]  # fmt: skip


def test_after_the_last_signature_the_cause_stays_while_harm_wears_off() -> None:
    assert episode(CPUContention=100).current_matches == ["CPUContention"]
    assert Episode(0, 1, Subsystem.CPU).current_matches == []


def test_a_cause_that_changes_is_worth_an_update() -> None:
    before = episode(OneCPUOverloaded=10, CPUContention=20)
    after = episode(OneCPUOverloaded=10, CPUContention=90)
    assert before.reported_state != after.reported_state
