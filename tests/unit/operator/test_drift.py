"""Whether a live object still covers the intended one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_operator.drift import covers, fingerprint, intent_of, intent_of_live, stamped
from reveal_operator.manifests import owned_manifests
from reveal_operator.spec import Defaults, parse

DEFAULTS = Defaults(
    namespace="reveal-system",
    collector_image="reveal-collector:1",
    analyzer_image="reveal-analyzer:1",
    redis_url="redis://redis:6379/0",
)
PROFILE = {
    "metadata": {"name": "gpus", "uid": "u-1", "generation": 3},
    "spec": {"analyzer": {"replicas": 3}},
}
CHILDREN = [stamped(child) for child in owned_manifests(parse(PROFILE, DEFAULTS), DEFAULTS)]


@pytest.fixture(params=CHILDREN, ids=lambda child: child["kind"])
def intent(request: pytest.FixtureRequest) -> dict[str, Any]:
    return copy.deepcopy(request.param)


@pytest.fixture
def live(intent: dict[str, Any]) -> dict[str, Any]:
    """Return the object as a server returns it: with bookkeeping, defaults and a status."""
    result = copy.deepcopy(intent)
    result["metadata"] |= {
        "uid": "x",
        "resourceVersion": "7",
        "generation": 1,
        "managedFields": [{}],
    }
    result["status"] = {"anything": 1}
    if "template" in result.get("spec", {}):
        pod = result["spec"]["template"]["spec"]
        pod["schedulerName"] = "default-scheduler"
        for container in pod["containers"]:
            container["terminationMessagePath"] = "/dev/termination-log"
    return result


def test_the_fingerprint_of_the_intent_is_in_the_object(intent: dict[str, Any]) -> None:
    assert len(intent_of_live(intent)) == 16
    bare = copy.deepcopy(intent)
    del bare["metadata"]["annotations"]["reveal.dev/intent-hash"]
    if not bare["metadata"]["annotations"]:
        del bare["metadata"]["annotations"]
    assert intent_of(bare) == intent_of_live(intent)


def test_what_the_server_adds_is_no_drift(intent: dict[str, Any], live: dict[str, Any]) -> None:
    assert covers(live, intent)


def test_items_of_lists_come_without_kind(intent: dict[str, Any], live: dict[str, Any]) -> None:
    del live["kind"], live["apiVersion"]
    assert covers(live, intent)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        yield from leaves(inner, (*path, key))
    if not isinstance(value, dict | list):
        yield path


def value_of(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@pytest.mark.parametrize("change", ["other", "gone"])
def test_a_change_of_any_intended_field_is_drift(
    intent: dict[str, Any], live: dict[str, Any], change: str
) -> None:
    paths = [path for path in leaves(intent) if path[0] not in ("kind", "apiVersion")]
    paths = [path for path in paths if path[:2] not in _NAMING]
    assert len(paths) > 5
    missed = []
    for path in paths:
        edited = copy.deepcopy(live)
        inner = value_of(edited, path[:-1])
        value = inner[path[-1]]
        if change == "other":
            inner[path[-1]] = not value if isinstance(value, bool) else f"{value}0"
        elif isinstance(inner, dict):
            del inner[path[-1]]
        else:
            inner.pop(path[-1])
        if covers(edited, intent) and value not in ("", None):
            missed.append(path)
    assert missed == []


_NAMING = (("metadata", "name"), ("metadata", "namespace"))  # another name is another object


def test_lists_that_are_merged_by_a_key_may_grow(live: dict[str, Any]) -> None:
    intent = next(child for child in CHILDREN if child["kind"] == "DaemonSet")
    grown = copy.deepcopy(intent)
    grown["spec"]["template"]["spec"]["containers"].insert(0, {"name": "sidecar"})
    assert covers(grown, intent)


def test_other_lists_may_not_grow() -> None:
    intent = next(child for child in CHILDREN if child["kind"] == "DaemonSet")
    grown = copy.deepcopy(intent)
    grown["spec"]["template"]["spec"]["tolerations"].append({"operator": "Exists"})
    assert not covers(grown, intent)
    longer = copy.deepcopy(intent)
    longer["spec"]["template"]["spec"]["containers"][0]["command"].append("--more")
    assert not covers(longer, intent)


@pytest.mark.parametrize(
    ("meant", "kept", "same"),
    [
        ("1000m", "1", True),
        ("0.5", "500m", True),
        ("1Gi", "1024Mi", True),
        ("1k", "1000", True),
        ("1e3", "1k", True),
        ("1", 1, True),
        ("100m", "100", False),
        ("1Gi", "1G", False),
        ("64Mi", "65Mi", False),
        ("strange", "strange", True),
        ("strange", "1", False),
    ],
)
def test_amounts_are_compared_as_amounts(meant: str, kept: str | int, same: bool) -> None:
    intent = {"metadata": {}, "spec": {"limits": {"cpu": meant}}}
    assert covers({"metadata": {}, "spec": {"limits": {"cpu": kept}}}, intent) is same


def test_amounts_elsewhere_are_compared_as_text() -> None:
    intent = {"metadata": {}, "data": {"limit": "1000m"}}
    assert not covers({"metadata": {}, "data": {"limit": "1"}}, intent)


def test_an_empty_volume_is_not_any_volume() -> None:
    intent = {"metadata": {}, "spec": {"volumes": [{"name": "run", "emptyDir": {}}]}}
    edited = {"metadata": {}, "spec": {"volumes": [{"name": "run", "hostPath": {"path": "/"}}]}}
    assert not covers(edited, intent)


@pytest.mark.parametrize("empty", [None, {}, [], ""])
def test_empty_values_may_be_omitted(empty: object) -> None:
    intent = {"metadata": {"annotations": None}, "spec": {"nodeSelector": empty}}
    assert covers({"metadata": {}, "spec": {}}, intent)
    assert not covers({"metadata": {}, "spec": {"nodeSelector": {"a": "b"}}}, intent)


def test_a_fingerprint_changes_only_with_the_content(live: dict[str, Any]) -> None:
    before = fingerprint(live)
    quiet = copy.deepcopy(live)
    quiet["metadata"] |= {"resourceVersion": "8", "managedFields": [], "generation": 2}
    quiet["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "4"
    quiet["status"] = {"numberReady": 5}
    assert fingerprint(quiet) == before
    for edit in (
        {"labels": {}},
        {"annotations": {"a": "b"}},
        {"ownerReferences": []},
        {"uid": "y"},
    ):
        edited = copy.deepcopy(live)
        edited["metadata"] |= edit
        assert fingerprint(edited) != before
    edited = copy.deepcopy(live)
    edited["spec" if "spec" in live else "data"]["x"] = "y"
    assert fingerprint(edited) != before


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
)


@given(st.dictionaries(st.text(max_size=5), values, max_size=4))
def test_everything_covers_itself(spec: dict[str, Any]) -> None:
    thing = {"metadata": {"labels": {}}, "spec": spec}
    assert covers(copy.deepcopy(thing), thing)


@given(values, values)
def test_any_two_things_can_be_compared(live: Any, intent: Any) -> None:
    covers({"metadata": {}, "limits": live}, {"metadata": {}, "limits": intent})
