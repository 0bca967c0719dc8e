"""The conditions of a profile: status, reason, message and transition times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_operator.conditions import (
    ANALYZER_AVAILABLE,
    COLLECTORS_AVAILABLE,
    DEGRADED,
    FINDINGS_RECUR,
    LEARNING,
    MAX_MESSAGE,
    NODES_REPORTING,
    READY,
    SPEC_ACCEPTED,
    STREAM_REACHABLE,
    Condition,
    ConditionInputs,
    ProfileOverlap,
    SilentNodes,
    conditions,
    find,
    is_failing,
)
from reveal_operator.observed import Workload
from reveal_operator.pod_failures import Failure
from reveal_operator.recurrence import Recurrence

NOW, LATER = "2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z"
TYPES = [
    READY,
    SPEC_ACCEPTED,
    COLLECTORS_AVAILABLE,
    ANALYZER_AVAILABLE,
    STREAM_REACHABLE,
    NODES_REPORTING,
    DEGRADED,
    LEARNING,
    FINDINGS_RECUR,
]


def pods(desired: int, available: int, updated: int | None = None, **more: Any) -> Workload:
    known = {
        "current": True,
        "desired": desired,
        "created": desired,
        "updated": desired if updated is None else updated,
        "ready": available,
        "available": available,
    }
    return Workload(**(known | more))


TELEMETRY = {"streamReachable": True, "nodesReporting": 3, "nodesLearning": 0}
GOOD = ConditionInputs(
    generation=4, collectors=pods(3, 3), analyzer=pods(1, 1), telemetry=TELEMETRY
)


def of(facts: ConditionInputs, kind: str) -> tuple[str, str]:
    found = find(conditions(facts, [], NOW), kind)
    return found["status"], found["reason"]


def message(facts: ConditionInputs, kind: str) -> str:
    return str(find(conditions(facts, [], NOW), kind)["message"])


def test_all_are_set_from_the_first_visit_on() -> None:
    first = conditions(ConditionInputs(generation=1), [], NOW)
    assert [condition["type"] for condition in first] == TYPES
    for condition in first:
        assert condition["observedGeneration"] == 1
        assert condition["lastTransitionTime"] == NOW
        assert condition["reason"] and condition["message"]
    assert of(ConditionInputs(generation=1), READY) == ("Unknown", "Pending")
    assert of(ConditionInputs(generation=1), SPEC_ACCEPTED) == ("True", "Accepted")


def test_all_is_well() -> None:
    assert of(GOOD, READY) == ("True", "Watching")
    assert message(GOOD, READY) == "3 nodes are watched"
    assert of(GOOD, DEGRADED) == ("False", "Complete")
    assert of(GOOD, LEARNING) == ("False", "Learned")


def test_times_change_with_the_status_alone() -> None:
    before = conditions(GOOD, [], NOW)
    fewer = replace(GOOD, collectors=pods(3, 1), generation=5)
    after = conditions(fewer, before, LATER)
    for kind in TYPES:
        was, is_now = find(before, kind), find(after, kind)
        same = was["status"] == is_now["status"]
        assert is_now["lastTransitionTime"] == (NOW if same else LATER)
        assert is_now["observedGeneration"] == 5
    assert find(after, READY)["lastTransitionTime"] == LATER
    assert find(after, LEARNING)["lastTransitionTime"] == NOW


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"rejected": Failure("RedisMissing", "no Redis")}, ("False", "RedisMissing")),
        ({"refused": Failure("ImmutableField", "no")}, ("False", "ImmutableField")),
        ({"collectors": pods(3, 2)}, ("False", "Starting")),
        ({"collectors": pods(0, 0)}, ("False", "NoNodes")),
        ({"analyzer": pods(1, 0)}, ("False", "Starting")),
        ({"telemetry": {"streamReachable": False}}, ("False", "Unreachable")),
        ({"telemetry": TELEMETRY | {"nodesReporting": 2}}, ("False", "NodesSilent")),
        ({"telemetry": None}, ("Unknown", "TelemetryPending")),
        ({"collectors": None}, ("Unknown", "Pending")),
        ({"paused": True}, ("True", "Paused")),
        ({"paused": True, "collectors": None}, ("False", "Paused")),
    ],
)
def test_ready_has_the_reason_of_the_first_failed_check(
    change: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert of(replace(GOOD, **change), READY) == expected


def test_a_failed_check_precedes_an_unknown_check() -> None:
    facts = replace(GOOD, collectors=None, analyzer=pods(1, 0))
    assert of(facts, COLLECTORS_AVAILABLE) == ("Unknown", "Pending")
    assert of(facts, READY) == ("False", "Starting")


def test_a_profile_rejected_later_keeps_what_it_has() -> None:
    facts = replace(GOOD, rejected=Failure("InvalidSpec", "spec.x: no"))
    assert of(facts, READY) == of(facts, SPEC_ACCEPTED) == ("False", "InvalidSpec")
    assert of(facts, COLLECTORS_AVAILABLE) == ("True", "Available")


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (pods(9, 9), ("True", "Available")),
        (pods(9, 8), ("False", "Starting")),
        (pods(10, 9), ("True", "MostAvailable")),
        (pods(10, 8), ("False", "Starting")),
        (pods(1000, 900), ("True", "MostAvailable")),
        (pods(1000, 899), ("False", "Starting")),
        (pods(9, 8, updated=3), ("True", "RollingOut")),
        (pods(9, 7, updated=3), ("False", "Starting")),
        (pods(1, 0, updated=0), ("False", "Starting")),
        (pods(9, 9, current=False), ("True", "RollingOut")),
        (pods(0, 0, current=False), ("Unknown", "Pending")),
    ],
)
def test_a_tenth_of_the_collectors_may_be_missing(
    workload: Workload, expected: tuple[str, str]
) -> None:
    assert of(replace(GOOD, collectors=workload), COLLECTORS_AVAILABLE) == expected


def test_the_message_has_the_cause_of_missing_pods() -> None:
    problem = Failure("ImagePullFailed", "2 without an image (n1: ErrImagePull)")
    facts = replace(GOOD, collectors=pods(3, 1), collectors_failure=problem)
    assert of(facts, READY) == ("False", "ImagePullFailed")
    expected = "1 of 3 collectors are available: 2 without an image (n1: ErrImagePull)"
    assert message(facts, READY) == expected


def test_a_single_analyzer_of_several_is_enough_but_degraded() -> None:
    facts = replace(GOOD, analyzer=pods(3, 1))
    assert of(facts, ANALYZER_AVAILABLE) == ("True", "MostAvailable")
    assert of(facts, READY) == ("True", "Watching")
    assert of(facts, DEGRADED) == ("True", "AnalyzersMissing")


def test_telemetry_is_ignored_without_a_running_analyzer() -> None:
    facts = replace(GOOD, analyzer=pods(1, 0))
    assert of(facts, STREAM_REACHABLE) == ("Unknown", "TelemetryPending")
    assert of(facts, LEARNING) == ("Unknown", "TelemetryPending")


@pytest.mark.parametrize(
    ("reporting", "expected", "degraded"),
    [
        (100, ("True", "Reporting"), "Complete"),
        (101, ("True", "Reporting"), "Complete"),  # one outside of the cluster
        (99, ("True", "MostReporting"), "NodesSilent"),
        (90, ("True", "MostReporting"), "NodesSilent"),
        (89, ("False", "NodesSilent"), "NodesSilent"),
        (40, ("False", "NodesSilent"), "NodesSilent"),
        (0, ("False", "NodesSilent"), "NodesSilent"),
    ],
)
def test_nodes_that_are_not_heard_are_not_watched(
    reporting: int, expected: tuple[str, str], degraded: str
) -> None:
    """A collector that cannot reach Redis is ready for the kubelet, and says so to nobody."""
    telemetry = TELEMETRY | {"nodesReporting": reporting}
    facts = replace(GOOD, collectors=pods(100, 100), telemetry=telemetry)
    assert of(facts, NODES_REPORTING) == expected
    assert of(facts, READY) == (expected if expected[0] == "False" else ("True", "Watching"))
    assert of(facts, DEGRADED)[1] == degraded
    assert f"{reporting} of 100 nodes report" in message(facts, NODES_REPORTING)
    if expected[0] == "True":
        assert message(facts, READY) == f"{reporting} nodes are watched"


NAMES = tuple(f"n{number}" for number in range(1, 8))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (NAMES, "no samples of n1, n2, n3, n4, n5 and 2 more arrive"),
        (NAMES[:2], "no samples of n1, n2 and 5 more arrive"),
        ((), "no samples of the others arrive"),
    ],
)
def test_silent_nodes_are_named_as_far_as_they_are_known(
    known: tuple[str, ...], expected: str
) -> None:
    facts = replace(
        GOOD, collectors=pods(100, 100), telemetry=TELEMETRY | {"nodesReporting": 93},
        silent=SilentNodes(known, known[:1]),
    )  # fmt: skip
    assert expected in message(facts, NODES_REPORTING)
    named = " (n1 and 6 more)" if known else ""
    assert f"7 of 100 nodes with a collector send no samples{named}: " in message(facts, DEGRADED)


def test_silent_nodes_are_counted_once_among_missing_collectors() -> None:
    facts = replace(GOOD, collectors=pods(100, 95), telemetry=TELEMETRY | {"nodesReporting": 93})
    assert of(facts, NODES_REPORTING) == ("True", "MostReporting")
    text = message(facts, DEGRADED)
    assert "5 of 100 collectors are not available" in text
    assert "2 of 95 nodes with a collector send no samples" in text


@pytest.mark.parametrize("status", ["True", "Unknown"])
def test_a_silence_of_a_moment_changes_no_status(status: str) -> None:
    telemetry = TELEMETRY | {"nodesReporting": 0}
    facts = replace(GOOD, telemetry=telemetry, settling=status)
    assert of(facts, NODES_REPORTING) == (status, "Starting")
    assert of(facts, DEGRADED) == ("False", "Complete")


def test_learning_is_unknown_while_no_node_reports() -> None:
    facts = replace(GOOD, telemetry=TELEMETRY | {"nodesReporting": 0})
    assert of(facts, LEARNING) == ("Unknown", "NodesSilent")


def test_learning_counts_the_nodes_in_warm_up() -> None:
    facts = replace(GOOD, telemetry=TELEMETRY | {"nodesLearning": 2})
    assert of(facts, LEARNING) == ("True", "NodesLearning")
    assert of(facts, READY) == ("True", "Watching")


def test_degraded_lists_all_losses_with_overlaps_first() -> None:
    loss = {"reason": "PerfUnavailable", "nodes": 2, "message": "no perf events"}
    facts = replace(
        GOOD,
        telemetry=TELEMETRY | {"nodesReporting": 19, "degraded": [loss]},
        overlaps=(ProfileOverlap("other", 2, "n1"),),
        collectors=pods(20, 19),
    )
    assert of(facts, DEGRADED) == ("True", "NodesOverlap")
    text = message(facts, DEGRADED)
    assert "profile other selects 2 of the same nodes (such as n1)" in text
    assert "1 of 20 collectors are not available" in text
    assert "no perf events (on 2 nodes)" in text


def test_a_rollout_degrades_only_when_it_is_stuck() -> None:
    heard = TELEMETRY | {"nodesReporting": 9}
    rolling = replace(GOOD, collectors=pods(9, 8, updated=1), telemetry=heard)
    assert of(rolling, DEGRADED)[0] == "False"
    new = replace(rolling, collectors_failure=Failure("Waiting", "1 starting (n1)"))
    assert of(new, DEGRADED)[0] == "False"
    stuck = replace(rolling, collectors_failure=Failure("ImagePullFailed", "1 without an image"))
    assert of(stuck, DEGRADED) == ("True", "CollectorsMissing")
    assert "1 without an image" in message(stuck, DEGRADED)


def test_a_rollout_that_cannot_proceed_is_visible_while_all_old_pods_work() -> None:
    """A Deployment keeps its old pod until the new one is ready."""
    rolling = replace(GOOD, analyzer=pods(1, 1, created=2))
    assert of(rolling, ANALYZER_AVAILABLE) == ("True", "RollingOut")
    assert of(rolling, DEGRADED)[0] == "False"
    new = replace(rolling, analyzer_failure=Failure("Waiting", "1 starting (n1)"))
    assert of(new, DEGRADED)[0] == "False"
    stuck = replace(rolling, analyzer_failure=Failure("ImagePullFailed", "1 without an image"))
    assert of(stuck, DEGRADED) == ("True", "RollOutStuck")
    assert "1 without an image" in message(stuck, DEGRADED)
    assert of(stuck, READY) == ("True", "Watching")


def test_overlaps_are_reported_before_the_first_telemetry() -> None:
    facts = ConditionInputs(generation=1, overlaps=(ProfileOverlap("b", 1, "n"),))
    assert of(facts, DEGRADED) == ("True", "NodesOverlap")
    assert of(ConditionInputs(generation=1), DEGRADED) == ("Unknown", "TelemetryPending")


@pytest.mark.parametrize(
    ("facts", "failing"),
    [
        (GOOD, False),
        (replace(GOOD, collectors=pods(3, 1)), False),  # it may just be starting
        (replace(GOOD, collectors=pods(0, 0)), False),
        (replace(GOOD, collectors=None), False),
        (
            replace(
                GOOD, collectors=pods(3, 1), collectors_failure=Failure("CrashLooping", "2 crash")
            ),
            True,
        ),
        (replace(GOOD, collectors=None, refused=Failure("Forbidden", "no")), True),
    ],
)
def test_only_failures_that_need_an_action_are_failing(
    facts: ConditionInputs, failing: bool
) -> None:
    known = conditions(facts, [], NOW)
    assert is_failing(find(known, COLLECTORS_AVAILABLE)) is failing


numbers = st.integers(0, 20)
workloads = st.none() | st.builds(
    Workload, st.booleans(), numbers, numbers, numbers, numbers, numbers
)
problems = st.none() | st.builds(
    Failure, st.sampled_from(("CrashLooping", "Waiting")), st.text(min_size=1, max_size=4000)
)
overlaps = st.lists(
    st.builds(ProfileOverlap, st.just("p" * 52), numbers, st.just("n" * 253)), max_size=50
)
any_facts = st.builds(
    ConditionInputs,
    generation=st.integers(1, 9),
    paused=st.booleans(),
    rejected=problems,
    refused=problems,
    collectors=workloads,
    collectors_failure=problems,
    analyzer=workloads,
    analyzer_failure=problems,
    telemetry=st.none()
    | st.fixed_dictionaries(
        {},
        optional={
            "streamReachable": st.booleans(),
            "nodesReporting": numbers,
            "nodesLearning": numbers,
        },
    ),
    settling=st.sampled_from(("", "True", "Unknown")),
    overlaps=overlaps.map(tuple),
)


@given(any_facts, any_facts)
def test_the_schema_takes_the_conditions_of_any_facts(
    facts: ConditionInputs, later: ConditionInputs
) -> None:
    before: list[Condition] = conditions(facts, [], NOW)
    after = conditions(later, before, LATER)
    assert [condition["type"] for condition in after] == TYPES
    for condition in after:
        assert condition["status"] in ("True", "False", "Unknown")
        assert condition["reason"].isalnum() and condition["reason"][0].isupper()
        assert condition["message"]
        assert len(condition["message"].encode()) <= MAX_MESSAGE
    ready, others = after[0], after[1:6]
    if ready["status"] == "True":
        assert all(condition["status"] == "True" for condition in others)
    assert conditions(later, after, "2030-01-01T00:00:00Z") == after


def test_causes_that_return_are_named_with_their_nodes() -> None:
    onset = "2026-01-02T03:04:05.678Z"
    found = tuple(Recurrence(f"gpu-{n}", "PacketLoss", 9 - n, onset) for n in range(7))
    facts = replace(GOOD, recurring=found)
    assert of(facts, FINDINGS_RECUR) == ("True", "CausesReturn")
    text = message(facts, FINDINGS_RECUR)
    assert text.startswith("PacketLoss on gpu-0: 9 findings since 2026-01-02T03:04Z; ")
    assert text.endswith("; and 2 more")
    assert of(facts, READY) == ("True", "Watching")
    assert of(replace(GOOD, recurring=()), FINDINGS_RECUR) == ("False", "NoneRecurs")
    assert of(GOOD, FINDINGS_RECUR) == ("Unknown", "Pending")
