"""What a collector reports of itself, from any version of it."""

from reveal_cli.collector_state import unanswered_sources


def test_sources_that_do_not_answer_are_read_from_any_state_of_a_collector() -> None:
    row = {"source": "nvml", "reason": "has not answered since 12:03:05Z"}
    assert unanswered_sources({"failing": [row, "odd"]}) == [
        "nvml: has not answered since 12:03:05Z"
    ]
    assert unanswered_sources({"failing": "odd"}) == unanswered_sources({}) == []
