"""RevealProfiles on a real API server: accepted values, defaults and messages of refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from reveal_contract.kube import names
from reveal_operator import spec as operator_spec
from reveal_operator.manifests import security
from support import goldens
from support.api_objects import apply_status, profile
from support.api_server import ApiError, Kube
from support.crd_schema import DEFINITIONS, EXAMPLES, defaulted, schema
from support.profile_spec_cases import BAD, GOOD, REDIS, Bad

Object = dict[str, Any]


def refusal(api: Kube, document: Object) -> str:
    """Return the message with which the server refuses the object."""
    with pytest.raises(ApiError) as refused:
        api.apply(document, dry_run=True)
    assert refused.value.status == 422, refused.value
    return refused.value.message


def test_the_definitions_are_established(api: Kube) -> None:
    for path in DEFINITIONS:
        name = yaml.safe_load(path.read_text())["metadata"]["name"]
        found = api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
        assert found is not None
        conditions = {c["type"]: c["status"] for c in found["status"]["conditions"]}
        # NonStructuralSchema stands there only where something is wrong
        assert conditions == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_taken_and_filled_in(
    api: Kube, to_delete: list[Object], example: Path
) -> None:
    given = yaml.safe_load(example.read_text())
    to_delete.append(given)
    stored = api.create(given)
    assert stored["spec"] == defaulted(schema(names.PROFILES), given)["spec"]
    text = yaml.safe_dump({"spec": stored["spec"]}, sort_keys=True)
    goldens.compare(f"crds/{example.stem}.yaml", text)
    # and the operator takes it
    parsed = operator_spec.parse(stored)
    assert (parsed.name, parsed.generation) == (given["metadata"]["name"], 1)


def test_the_example_of_least_privilege_has_only_its_stated_privileges() -> None:
    [example] = [path for path in EXAMPLES if path.stem == "least-privilege"]
    parsed = operator_spec.parse(yaml.safe_load(example.read_text()))
    context = security.of_collector(parsed.collector, minor=34)
    assert context["privileged"] is False
    assert "PERFMON" not in context["capabilities"]["add"]
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}


def test_every_golden_belongs_to_an_example() -> None:
    kept = {path.stem for path in (goldens.FIXTURES / "crds").iterdir()}
    assert kept == {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("spec", GOOD.values(), ids=GOOD.keys())
def test_valid_values_are_accepted(api: Kube, spec: Object) -> None:
    [stored] = api.apply(profile(spec), dry_run=True)
    operator_spec.parse(stored)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.what)
def test_invalid_values_are_refused_with_the_messages_of_the_schema(api: Kube, bad: Bad) -> None:
    message = refusal(api, profile(bad.spec))
    assert bad.where in message
    assert bad.words in message
    # one mistake is reported once
    assert message.count("Invalid value") + message.count("Forbidden") <= 1, message


def test_a_name_too_long_for_owned_objects_is_refused(api: Kube) -> None:
    api.apply(profile(name="p" * 52), dry_run=True)
    message = refusal(api, profile(name="p" * 53))
    assert "the name of a profile has at most 52 characters" in message


def test_unknown_fields_are_refused_by_name(api: Kube) -> None:
    for spec, field in (
        ({"colector": {}}, "spec.colector"),
        ({"collector": {"samplePeriod": 100}}, "spec.collector.samplePeriod"),
        ({"redis": {"url": REDIS, "password": "x"}}, "spec.redis.password"),
    ):
        with pytest.raises(ApiError) as refused:
            api.create(profile(spec))
        assert refused.value.status == 400
        assert f'unknown field "{field}"' in refused.value.message


def test_two_managers_share_the_status(api: Kube, to_delete: list[Object]) -> None:
    """The analyzer writes ``telemetry``, the operator the rest; neither removes the other's."""
    given = profile()
    to_delete.append(given)
    api.create(given)
    ready = {
        "type": "Ready", "status": "True", "reason": "AllReady", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    }  # fmt: skip
    of_operator = {"observedGeneration": 1, "conditions": [ready]}
    of_analyzer = {"telemetry": {"streamReachable": True, "nodesReporting": 3}}
    apply_status(api, {**given, "status": of_operator}, names.OPERATOR_MANAGER)
    stored = apply_status(api, {**given, "status": of_analyzer}, names.ANALYZER_MANAGER)
    assert stored["status"] == {**of_operator, **of_analyzer}
    with pytest.raises(ApiError, match="conflict"):
        other = {"streamReachable": False}
        apply_status(api, {**given, "status": {"telemetry": other}}, names.OPERATOR_MANAGER)
    with pytest.raises(ApiError, match="Duplicate value"):
        api.patch(given, {"status": {"conditions": [ready, ready]}}, "status")
