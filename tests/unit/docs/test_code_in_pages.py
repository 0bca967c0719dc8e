"""What pages repeat from the code and the schemas: columns, labels, keys and limits."""

from __future__ import annotations

import re

import pytest

from reveal_contract import names
from reveal_contract.kube.names import PROFILES, REPORTS
from reveal_operator.manifests.nodes import GPU_LABELS
from support.crd_schema import ROOT, definition, schema


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


def test_every_key_of_redis_is_listed_with_its_owner_and_its_end() -> None:
    table = page("reference/redis-keys.md").replace("PROFILE:SHARD", "p:1").replace("PROFILE", "p")
    keys = [
        names.samples_key("p", 1), names.owner_key("p", 1), names.node_states_key("p", 1),
        names.table_key("p", b"").removesuffix(":"), names.analyzers_key("p"), names.fleet_key("p"),
        *(names.fleet_key("p", part) for part in ("leader", "cases", "groups", "states")),
        "reveal:{p}:changes:TABLE:NODE", "reveal:{p:1}:node:NODE",
        names.EARLIER_TABLES_KEY, *names.EARLIER_NODE_KEYS.values(),
    ]  # fmt: skip
    assert names.node_key("p", "NODE").endswith("}:node:NODE")
    assert names.table_changes_key("p", b"", "NODE") == "reveal:{p}:changes::NODE"
    assert [key for key in keys if f"`{key}" not in table] == []


@pytest.mark.parametrize("field", ["reportsPerMinute", "maxReports"])
def test_the_largest_number_of_reports_is_stated(field: str) -> None:
    most = schema(PROFILES, "spec", "reporting", field)["maximum"]
    stated = re.compile(rf"`reporting\.{field}`(,| \() ?at most {most:,}")
    for path in ("explanation/sizing.md", "reference/limits-and-retention.md"):
        assert stated.search(page(path)), path
