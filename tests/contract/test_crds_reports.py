"""AnomalyReports on a real API server: identity, bounds, size and selectors."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from reveal_contract.finding import Finding
from reveal_contract.kube import names
from reveal_contract.kube.anomaly_report import MAX_BYTES
from support import finding_factory
from support.api_objects import apply_status, report_of
from support.api_server import ApiError, Kube, unique
from support.finding_factory import largest

Object = dict[str, Any]


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        ("nodeName", "gpu-08", "the spec says which finding this is and never changes"),
        ("subsystem", "GPU", "the spec says which finding this is and never changes"),
        ("firstSeenTime", "2026-01-01T00:00:00Z", "never changes: delete the report"),
        ("profileRef", {"name": "other"}, "never changes: delete the report"),
    ],
)
def test_the_spec_of_a_report_is_immutable(
    api: Kube, to_delete: list[Object], where: str, value: Any, words: str
) -> None:
    body, _ = report_of(finding_factory.cpu_contention(time.time_ns()), unique("crds"))
    to_delete.append(body)
    api.create(body)
    with pytest.raises(ApiError) as refused:
        api.patch(body, {"spec": {where: value}})
    assert refused.value.status == 422
    assert "Forbidden" in refused.value.message
    assert words in refused.value.message
    # labels and all else may
    api.patch(body, {"metadata": {"labels": {"team": "a"}}, "spec": body["spec"]})


def test_the_spec_does_not_touch_the_status_and_the_other_way_round(
    api: Kube, to_delete: list[Object]
) -> None:
    body, applied = report_of(finding_factory.cpu_contention(time.time_ns()), unique("crds"))
    to_delete.append(body)
    created = api.create({**body, "status": applied["status"]})
    assert "status" not in created
    spec = {"spec": {**body["spec"], "nodeName": "other"}}
    patched = api.patch(body, {"status": applied["status"], **spec}, "status")
    assert patched["spec"] == body["spec"]
    assert patched["status"] == applied["status"]


BAD_STATUS: list[tuple[str, Object, str]] = [
    ("resolved, but when", {"state": "Resolved"}, "a resolved report needs resolvedTime"),
    ("no such state", {"state": "Closed"}, 'supported values: "Open", "Resolved"'),
    ("fraction", {"scorePercent": 1.5}, "must be of type integer"),
    ("over all", {"scorePercent": 101}, "less than or equal to 100"),
    ("no time", {"lastSeenTime": "yesterday"}, "must be of type date-time"),
    ("too long", {"claim": "x" * 513}, "may not be more than 512"),
    (
        "too many",
        {"evidence": [{"metric": "m", "value": "1"}] * 11},
        "must have at most 10 items",
    ),
]


@pytest.mark.parametrize(
    ("what", "status", "words"), BAD_STATUS, ids=[row[0] for row in BAD_STATUS]
)
def test_a_status_that_breaks_a_bound_is_refused(
    api: Kube, to_delete: list[Object], what: str, status: Object, words: str
) -> None:
    body, applied = report_of(finding_factory.cpu_contention(time.time_ns()), unique("crds"))
    to_delete.append(body)
    api.create(body)
    with pytest.raises(ApiError) as refused:
        api.patch(body, {"status": {**applied["status"], **status}}, "status")
    assert refused.value.status == 422
    assert words in refused.value.message


@pytest.mark.parametrize(
    "finding",
    [finding_factory.finding_with_all_fields(1_700_000_000 * 10**9), largest()],
    ids=["whole", "largest"],
)
def test_a_whole_finding_is_stored_and_is_small(
    api: Kube, to_delete: list[Object], finding: Finding
) -> None:
    body, applied = report_of(finding, f"{'p' * 40}-{unique('x')}")
    to_delete.append(body)
    api.create(body)
    stored = apply_status(api, applied)
    assert stored["status"] == applied["status"]
    assert stored["spec"] == body["spec"]
    fields = stored["metadata"].pop("managedFields")
    size = len(json.dumps(stored, separators=(",", ":"), ensure_ascii=False).encode())
    assert size <= MAX_BYTES
    assert len(json.dumps(fields)) < 4096  # field ownership, which the server adds


def test_reports_are_selected_by_their_selectable_fields(
    api: Kube, to_delete: list[Object]
) -> None:
    owner = unique("crds")
    now = time.time_ns()
    for finding in finding_factory.example_findings(now):
        body, applied = report_of(finding, owner)
        to_delete.append(body)
        api.create(body)
        apply_status(api, applied)
    path = api.path(names.API_VERSION, names.REPORT_KIND)

    def nodes(**query: str) -> set[str]:
        label = f"{names.LABEL_PROFILE}={owner}"
        query["labelSelector"] = ",".join(filter(None, (label, query.get("labelSelector"))))
        return {item["spec"]["nodeName"] for item in api.request("GET", path, query=query)["items"]}

    assert len(nodes()) == 4
    assert nodes(fieldSelector="status.state=Resolved") == {"gpu-03"}
    assert nodes(fieldSelector="status.state!=Resolved,status.severity=Critical") == {"gpu-09"}
    assert nodes(fieldSelector="spec.nodeName=gpu-07") == {"gpu-07"}
    assert nodes(fieldSelector="spec.subsystem=Memory") == {"gpu-01"}
    assert nodes(labelSelector=f"{names.LABEL_STATE}=Resolved") == {"gpu-03"}
    assert nodes(labelSelector=f"{names.LABEL_NODE} in (gpu-01,gpu-09)") == {"gpu-01", "gpu-09"}
    with pytest.raises(ApiError, match="field label not supported"):
        nodes(fieldSelector="status.claim=x")
