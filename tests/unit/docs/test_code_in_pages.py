"""What pages repeat from the code and the schemas: columns, labels, keys and limits."""

from __future__ import annotations

import re

import pytest

from reveal_contract import names
from reveal_contract.kube.names import PROFILES, REPORTS
from reveal_operator.manifests.nodes import GPU_LABELS
from support.crd_schema import ROOT, definition, schema

_COMMANDS = re.compile(r"^```sh\n(profile=.*?)^```", re.MULTILINE | re.DOTALL)


def page(path: str) -> str:
    """Return the text of a page below ``docs/``."""
    return (ROOT / "docs" / path).read_text()


@pytest.mark.parametrize(
    ("plural", "command"),
    [(PROFILES, "kubectl get rvp"), (REPORTS, "kubectl get anomalies")],
)
def test_the_columns_of_kubectl_are_all_named_in_their_order(plural: str, command: str) -> None:
    [version] = definition(plural)["spec"]["versions"]
    columns = version["additionalPrinterColumns"]
    always = ", ".join(each["name"] for each in columns if not each.get("priority"))
    wide = ", ".join(each["name"] for each in columns if each.get("priority"))
    row = f"| `{command}` | {always}; with `-o wide` also {wide} |"
    assert row in page("reference/api.md").splitlines()


def test_the_labels_of_the_default_selection_are_all_named() -> None:
    text = page("how-to/choose-nodes.md")
    assert [label for label in GPU_LABELS if f"`{label}`" not in text] == []


def test_the_commands_that_forget_a_node_have_all_keys_that_do_not_expire() -> None:
    [commands] = _COMMANDS.findall(page("explanation/security.md"))
    keys = [
        names.FACTS_KEY, names.NODES_KEY, names.SUBJECTS_KEY, names.CATALOGUE_KEY,
        *(names.node_key("$profile", part) for part in (names.NODES, names.SUBJECTS)),
    ]  # fmt: skip
    assert [key for key in keys if key not in commands] == []


@pytest.mark.parametrize("field", ["reportsPerMinute", "maxReports"])
def test_the_largest_number_of_reports_is_stated(field: str) -> None:
    most = schema(PROFILES, "spec", "reporting", field)["maximum"]
    stated = re.compile(rf"`reporting\.{field}`(,| \() ?at most {most:,}")
    for path in ("explanation/sizing.md", "reference/limits-and-retention.md"):
        assert stated.search(page(path)), path
