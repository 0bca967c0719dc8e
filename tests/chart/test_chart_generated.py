"""What the chart holds twice is generated, current, and undone where a server is too old."""

from __future__ import annotations

import copy
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from support.helm_chart import CHART, ROOT, Helm, find_object

DEFINITIONS = sorted((ROOT / "crds").glob("*.yaml"))
GENERATOR = ROOT / "charts" / "generate.py"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


def test_chart_and_crds_and_readme_are_in_step() -> None:
    done = subprocess.run(
        [sys.executable, GENERATOR, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def without_metadata(definition: dict[str, Any]) -> dict[str, Any]:
    kept = copy.deepcopy(definition)
    kept["metadata"] = {"name": kept["metadata"]["name"]}
    return kept


def without_selectable(definition: dict[str, Any]) -> dict[str, Any]:
    kept = copy.deepcopy(definition)
    for version in kept["spec"]["versions"]:
        version.pop("selectableFields", None)
    return kept


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_a_rendered_definition_equals_its_file(helm: Helm, path: Path) -> None:
    source = yaml.safe_load(path.read_text())
    name = source["metadata"]["name"]
    newest = find_object(helm.render(kubernetes="1.34.0"), "CustomResourceDefinition", name)
    assert without_metadata(newest) == source
    assert newest["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    for version in ("1.29.0", "1.31.9"):
        older = find_object(helm.render(kubernetes=version), "CustomResourceDefinition", name)
        assert without_metadata(older) == without_selectable(source)
    exact = find_object(helm.render(kubernetes="1.32.0-gke.1"), "CustomResourceDefinition", name)
    assert without_metadata(exact) == source


def test_some_definition_has_selectable_fields() -> None:
    # else the test above would compare nothing
    assert any("selectableFields:" in path.read_text() for path in DEFINITIONS)


def test_values_control_keeping_and_installing_definitions(helm: Helm) -> None:
    objects = helm.render("--set", "crds.keep=false")
    for path in DEFINITIONS:
        name = yaml.safe_load(path.read_text())["metadata"]["name"]
        result = find_object(objects, "CustomResourceDefinition", name)
        assert "annotations" not in result["metadata"]
    without = helm.render("--set", "crds.enabled=false")
    assert all(each["kind"] != "CustomResourceDefinition" for each in without)


def test_braces_in_a_description_stay_braces(generate: ModuleType) -> None:
    text = "metadata:\n  name: a\nspec:\n  description: uses {{ braces }}\n"
    assert "uses {{ `{{` }} braces }}" in generate.template(text)


def test_a_definition_with_labels_is_refused(generate: ModuleType) -> None:
    with pytest.raises(generate.ChartError, match="a name and nothing else"):
        generate.template("metadata:\n  name: a\n  labels: {a: b}\n")


@pytest.mark.parametrize(
    "block",
    [
        "    - name: v1\n      selectableFields:\n        - jsonPath: .a\n      served: true\n",
        "    - name: v1\n      selectableFields:\n      - jsonPath: .a\n      served: true\n",
        "    - name: v1\n      served: true\n      selectableFields:\n        - jsonPath: .a\n",
    ],
)
def test_the_block_of_selectable_fields_is_found_however_it_is_indented(
    generate: ModuleType, block: str
) -> None:
    result = generate.template(f"metadata:\n  name: a\nspec:\n  versions:\n{block}").splitlines()
    begin = next(index for index, line in enumerate(result) if "semverCompare" in line)
    end = next(
        index for index, line in enumerate(result) if line.strip() == "{{- end }}" and index > begin
    )
    inside = [line.strip() for line in result[begin + 1 : end]]
    assert inside == ["selectableFields:", "- jsonPath: .a"]


def test_a_value_without_a_description_is_refused(generate: ModuleType) -> None:
    rows = generate.values("# -- Of a\n# and more.\na: 1\nb:\n  # -- Of c.\n  c: []\n")
    assert [(row.path, row.default, row.meaning) for row in rows] == [
        ("a", "1", "Of a and more."), ("b.c", "[]", "Of c."),
    ]  # fmt: skip
    with pytest.raises(generate.ChartError, match="line 3: no `# --` above b"):
        generate.values("# -- Of a.\na: 1\nb: 2\n")
    with pytest.raises(generate.ChartError, match="above c"):
        generate.values("# a remark\nc: {}\n")


def test_the_readme_of_the_chart_lists_every_value(generate: ModuleType) -> None:
    rows = generate.values((CHART / "values.yaml").read_text())
    page = (CHART / "README.md").read_text()
    assert len(rows) > 60
    assert all(f"| `{row.path}` |" in page for row in rows)


def test_the_schema_of_a_profile_is_closed_and_whole(generate: ModuleType) -> None:
    definition = next(path for path in DEFINITIONS if "revealprofiles" in path.name).read_text()
    [version] = yaml.safe_load(definition)["spec"]["versions"]
    source = version["schema"]["openAPIV3Schema"]["properties"]["spec"]

    def compare(result: dict[str, Any], given: dict[str, Any]) -> int:
        assert result.get("required", []) == given.get("required", [])
        if "properties" not in given:
            return 1
        assert result["additionalProperties"] is False
        assert result["properties"].keys() == given["properties"].keys()
        return sum(compare(result["properties"][name], given["properties"][name])
                   for name in given["properties"])  # fmt: skip

    assert compare(generate.profile_schema(definition), source) > 40
