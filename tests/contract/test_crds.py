"""The custom resource definitions are strict, bounded, described and named as in the contract."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from reveal_contract.kube import names
from support.crd_schema import (
    DEFINITIONS,
    EXAMPLES,
    Schema,
    defaulted,
    definition,
    faults,
    parts,
    schema,
)

PLURALS = (names.PROFILES, names.REPORTS)
OF_THE_SERVER = (".apiVersion", ".kind", ".metadata")  # it checks these itself
# spelled as in their other users: findings, conditions, fields of nodes
OF_METADATA = (
    ".metadata.creationTimestamp",
    ".metadata.annotations." + names.ANNOTATION_SILENCED_UNTIL.replace(".", r"\."),
)
NOT_PASCAL_CASE = {"up", "down", "metadata.name"}


def every_part(plural: str) -> list[tuple[str, Schema]]:
    return [(path, part) for path, part in parts(schema(plural)) if path not in OF_THE_SERVER]


def of_type(plural: str, kind: str) -> list[tuple[str, Schema]]:
    found = [(path, part) for path, part in every_part(plural) if part.get("type") == kind]
    assert found
    return found


def test_there_are_two_definitions_named_as_the_contract_names_them() -> None:
    found = {file.name: definition(file.stem.rpartition("_")[2]) for file in DEFINITIONS}
    assert set(found) == {f"{names.GROUP}_{plural}.yaml" for plural in PLURALS}
    for plural, kind in zip(PLURALS, (names.PROFILE_KIND, names.REPORT_KIND), strict=True):
        crd = definition(plural)
        assert crd["metadata"]["name"] == f"{plural}.{names.GROUP}"
        assert crd["spec"]["group"] == names.GROUP
        assert crd["spec"]["scope"] == "Cluster"
        assert crd["spec"]["names"]["kind"] == kind
        assert crd["spec"]["names"]["plural"] == plural
        assert crd["spec"]["names"]["singular"] == kind.lower()
        assert crd["spec"]["names"]["categories"] == ["reveal"]
        [version] = crd["spec"]["versions"]
        assert version["name"] == names.VERSION
        assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("plural", PLURALS)
def test_no_object_takes_unknown_fields_and_no_field_is_a_float(plural: str) -> None:
    for path, part in every_part(plural):
        assert "x-kubernetes-preserve-unknown-fields" not in part, path
        assert "nullable" not in part, path
        assert part.get("type") != "number", path
        assert part.get("type") or part.get("x-kubernetes-int-or-string"), path
    for path, part in of_type(plural, "object"):
        assert ("properties" in part) != ("additionalProperties" in part), path


@pytest.mark.parametrize("plural", PLURALS)
def test_every_field_has_a_bound(plural: str) -> None:
    for path, part in of_type(plural, "string"):
        assert {"maxLength", "enum", "format"} & part.keys(), path
    for path, part in of_type(plural, "integer"):
        assert part["format"] in ("int32", "int64"), path
        assert "minimum" in part, path
    for path, part in of_type(plural, "array"):
        assert "maxItems" in part, path
        assert part["x-kubernetes-list-type"] in ("atomic", "set", "map"), path
    for path, part in every_part(plural):
        if "additionalProperties" in part:
            assert "maxProperties" in part, path


@pytest.mark.parametrize("plural", PLURALS)
def test_every_field_has_a_description(plural: str) -> None:
    for path, part in every_part(plural):
        plain_entry = path.endswith(("[]", "{}")) and "properties" not in part
        if not plain_entry:
            assert part.get("description", "").endswith("."), path


@pytest.mark.parametrize("plural", PLURALS)
def test_enumerations_are_pascal_case(plural: str) -> None:
    words = [word for _, part in every_part(plural) for word in part.get("enum", ())]
    assert words
    for word in words:
        assert word in NOT_PASCAL_CASE or re.fullmatch(r"[A-Z][A-Za-z]*", word), word


@pytest.mark.parametrize("plural", PLURALS)
def test_every_rule_has_a_remedy_and_names_its_field(plural: str) -> None:
    rules = [
        (path, part, rule)
        for path, part in parts(schema(plural))
        for rule in part.get("x-kubernetes-validations", ())
    ]
    assert rules
    for path, part, rule in rules:
        assert len(rule["message"]) >= 20, path
        assert "\n" not in rule["message"], path
        assert not rule["message"].endswith("."), path  # the server goes on behind it
        field: Any = part
        for name in rule.get("fieldPath", "").split(".")[1:]:
            field = field["properties"][name]


def sections(of: Schema) -> list[str]:
    return [
        name for name, part in of["properties"].items()
        if any("default" in inner for _, inner in parts(part))
    ]  # fmt: skip


def test_an_empty_spec_is_a_whole_profile() -> None:
    """The API server applies a default only if every parent has one."""
    spec = schema(names.PROFILES, "spec")
    filled = defaulted(schema(names.PROFILES), {})["spec"]
    # a Redis is the operator's or wholly the profile's
    assert set(filled) == set(sections(spec)) - {"redis"}
    assert filled["collector"]["sources"] == {"include": [], "exclude": []}
    assert faults(spec, filled) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_fits_its_schema_and_is_explained(example: Any) -> None:
    text = example.read_text()
    parsed = yaml.safe_load(text)
    assert parsed["apiVersion"] == names.API_VERSION
    assert parsed["kind"] == names.PROFILE_KIND
    assert faults(schema(names.PROFILES), defaulted(schema(names.PROFILES), parsed)) == []
    comments = [line for line in text.splitlines() if line.strip().startswith("#")]
    assert f"kubectl apply -f {example.name}" in text
    assert len(comments) >= 4
    assert max(map(len, text.splitlines())) <= 110


def test_examples_have_names_of_their_own() -> None:
    metadata_names = [
        yaml.safe_load(example.read_text())["metadata"]["name"] for example in EXAMPLES
    ]
    assert len(set(metadata_names)) == len(metadata_names) == 5


def test_lines_that_older_servers_refuse_stand_between_two_marks() -> None:
    """The chart leaves these lines out before Kubernetes 1.32."""
    [path] = [item for item in DEFINITIONS if item.stem.endswith(names.REPORTS)]
    head, block, rest = re.split(
        r"^ *# selectableFields: (?:begin|end)\n", path.read_text(), flags=re.M
    )
    [version] = yaml.safe_load(head + rest)["spec"]["versions"]
    [whole] = definition(names.REPORTS)["spec"]["versions"]
    assert yaml.safe_load(block).keys() == {"selectableFields"}
    assert version == {key: part for key, part in whole.items() if key != "selectableFields"}
    selectable = [item["jsonPath"] for item in whole["selectableFields"]]
    known = dict(parts(schema(names.REPORTS)))
    assert all(known[path]["type"] == "string" for path in selectable)


@pytest.mark.parametrize(
    ("plural", "default", "wide"),
    [
        (
            names.PROFILES,
            ["Ready", "Reason", "Nodes", "Desired", "Open", "Age"],
            ["Paused", "Mode", "Learning", "Message"],
        ),
        (
            names.REPORTS,
            ["Node", "Subsystem", "Severity", "State", "Cause", "Last", "Age"],
            ["GPU-h", "Resolution", "Silenced", "Agree", "Metric", "Pods", "Claim"],
        ),
    ],
)
def test_columns(plural: str, default: list[str], wide: list[str]) -> None:
    [version] = definition(plural)["spec"]["versions"]
    columns = version["additionalPrinterColumns"]
    assert [column["name"] for column in columns if not column.get("priority")] == default
    assert [column["name"] for column in columns if column.get("priority")] == wide
    known = dict(parts(schema(plural)))
    for column in columns:
        path = re.sub(r"\[[^]]*\]", "[]", column["jsonPath"])
        assert path in known or path in OF_METADATA, path


@pytest.mark.parametrize("plural", PLURALS)
def test_the_page_on_the_api_names_every_field(plural: str) -> None:
    folder = DEFINITIONS[0].parents[1] / "docs/reference"
    page = (folder / f"api-{plural.removesuffix('s')}.md").read_text()
    named = set(re.findall(r"[A-Za-z]+", " ".join(re.findall(r"`[^`]+`", page))))
    # of Kubernetes' own, which its documentation has
    own = ("[].", ".nodeAffinity.", ".conditions[]", ".resources.", ".metadata")
    fields = [
        path
        for path, _ in every_part(plural)
        if path and not any(part in f"{path}." for part in own) and not path.endswith(("[]", "{}"))
    ]
    assert [path for path in fields if path.rpartition(".")[2] not in named] == []
