"""A changed ConfigMap or Secret that pods read on start changes their template."""

from __future__ import annotations

from reveal_contract.kube.names import ANNOTATION_HYPOTHESES
from reveal_operator.drift import content, intent_of_live
from reveal_operator.observed import ObservedProfile, observed_profile
from reveal_operator.plan import PlanCache, plan_of, with_hypotheses
from support.api_objects import profile as object_of
from support.profile_factory import DEFAULTS

HYPOTHESES = {"analyzer": {"hypothesesConfigMapRef": {"name": "mine"}}}


def observed(name: str, spec: dict[str, object]) -> ObservedProfile:
    manifest = object_of(spec, name)
    manifest["metadata"] |= {"uid": name, "generation": 1}
    return observed_profile(manifest)


def test_changed_hypotheses_change_only_the_analyzers() -> None:
    plan = plan_of(observed("a", HYPOTHESES), DEFAULTS)
    assert plan.hypotheses == "mine"
    first, again, second = (
        with_hypotheses(plan.manifests, content({"data": {"f": text}})) for text in ("1", "1", "2")
    )
    assert first == again
    for planned, before, after in zip(plan.manifests, first, second, strict=True):
        is_analyzer = planned["kind"] == "Deployment"
        assert (intent_of_live(before) != intent_of_live(after)) == is_analyzer
        assert (before != planned) == is_analyzer
        if is_analyzer:
            annotations = before["spec"]["template"]["metadata"]["annotations"]
            assert annotations[ANNOTATION_HYPOTHESES] == content({"data": {"f": "1"}})
            assert (
                annotations.keys() > planned["spec"]["template"]["metadata"]["annotations"].keys()
            )


def test_a_missing_config_map_changes_nothing() -> None:
    plan = plan_of(observed("a", HYPOTHESES), DEFAULTS)
    assert with_hypotheses(plan.manifests, "") == plan.manifests


def test_a_config_map_concerns_its_owner_and_its_readers() -> None:
    plans = PlanCache(DEFAULTS)
    for name, spec in (("a", HYPOTHESES), ("b", HYPOTHESES), ("c", {})):
        plans.of(observed(name, spec))
    assert plans.concerned("ConfigMap", "mine") == {"a", "b"}
    assert plans.concerned("ConfigMap", "reveal-settings-c") == {"c"}
    assert plans.concerned("DaemonSet", "mine") == set()
    plans.forget("a")
    assert plans.concerned("ConfigMap", "mine") == {"b"}
