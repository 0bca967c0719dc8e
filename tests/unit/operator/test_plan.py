"""What a profile names and its pods read when they start makes other pods when it is another."""

from __future__ import annotations

from reveal_contract.kube.names import ANNOTATION_HYPOTHESES
from reveal_operator.drift import content, intent_seen
from reveal_operator.plan import Plans, plan_of, reading
from reveal_operator.seen import ProfileSeen, profile_seen
from support.api_objects import profile as object_of
from support.profile_factory import DEFAULTS

HYPOTHESES = {"analyzer": {"hypothesesConfigMapRef": {"name": "mine"}}}


def seen(name: str, spec: dict[str, object]) -> ProfileSeen:
    made = object_of(spec, name)
    made["metadata"] |= {"uid": name, "generation": 1}
    return profile_seen(made)


def test_only_analyzers_are_others_where_hypotheses_are() -> None:
    plan = plan_of(seen("a", HYPOTHESES), DEFAULTS)
    assert plan.hypotheses == "mine"
    first, again, second = (
        reading(plan.children, content({"data": {"f": text}})) for text in ("1", "1", "2")
    )
    assert first == again
    for planned, one, other in zip(plan.children, first, second, strict=True):
        is_analyzer = planned["kind"] == "Deployment"
        assert (intent_seen(one) != intent_seen(other)) == is_analyzer
        assert (one != planned) == is_analyzer
        if is_analyzer:
            annotations = one["spec"]["template"]["metadata"]["annotations"]
            assert annotations[ANNOTATION_HYPOTHESES] == content({"data": {"f": "1"}})
            assert (
                annotations.keys() > planned["spec"]["template"]["metadata"]["annotations"].keys()
            )


def test_what_is_not_there_changes_nothing() -> None:
    plan = plan_of(seen("a", HYPOTHESES), DEFAULTS)
    assert reading(plan.children, "") == plan.children


def test_a_config_map_concerns_whose_child_it_is_and_who_reads_it() -> None:
    plans = Plans(DEFAULTS)
    for name, spec in (("a", HYPOTHESES), ("b", HYPOTHESES), ("c", {})):
        plans.of(seen(name, spec))
    assert plans.concerned("ConfigMap", "mine") == {"a", "b"}
    assert plans.concerned("ConfigMap", "reveal-settings-c") == {"c"}
    assert plans.concerned("DaemonSet", "mine") == set()
    plans.forget("a")
    assert plans.concerned("ConfigMap", "mine") == {"b"}
