"""Reports are written also where the schema in the cluster is older than the analyzer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from reveal_analyzer.sinks.kube.older_schema import OlderSchema
from reveal_contract.kube.errors import ApiError, UnavailableError

REFUSED = "failed to create typed patch object (/r; reveal.dev/v1alpha1, Kind=AnomalyReport): {}"
BODY = {"metadata": {"name": "r"}, "status": {"state": "Open", "lostTime": [], "peers": {}}}


class Server:
    """Refuses the fields that it does not have, and keeps what it took."""

    def __init__(self, missing: Collection[str] = ()) -> None:
        self.missing, self.taken, self.requests = missing, [], 0

    def take(self, body: dict[str, Any]) -> None:
        self.requests += 1
        unknown = [name for name in self.missing if name in body["status"]]
        if unknown:
            text = "\n".join(f".status.{name}: field not declared in schema" for name in unknown)
            raise UnavailableError(REFUSED.format(text), 500)
        self.taken.append(sorted(body["status"]))


def test_a_field_that_the_schema_does_not_have_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    schema, server = OlderSchema("AnomalyReport"), Server(["lostTime", "peers"])
    schema.send(BODY, server.take)
    schema.send(BODY, server.take)
    assert server.taken == [["state"], ["state"]]
    assert server.requests == 3
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 2
    assert "AnomalyReport has no status.lostTime and is older" in warnings[0]
    assert "crds/" in warnings[0]


def test_a_part_of_a_list_is_named_with_its_index() -> None:
    def take(body: dict[str, Any]) -> None:
        if "lostTime" in body["status"]:
            text = ".status.lostTime[0].slowdownPercent: field not declared in schema"
            raise UnavailableError(REFUSED.format(text), 500)
        server.take(body)

    server = Server()
    OlderSchema("AnomalyReport").send(BODY, take)
    assert server.taken == [["peers", "state"]]


def test_the_field_is_tried_again_after_an_upgrade() -> None:
    now = [0.0]
    schema, server = OlderSchema("AnomalyReport", lambda: now[0]), Server(["lostTime"])
    schema.send(BODY, server.take)
    server.missing, now[0] = (), 601.0
    schema.send(BODY, server.take)
    assert server.taken == [["peers", "state"], ["lostTime", "peers", "state"]]


def test_other_errors_are_raised() -> None:
    def take(_: dict[str, Any]) -> None:
        raise ApiError("the object is too large", 413)

    with pytest.raises(ApiError, match="too large"):
        OlderSchema("AnomalyReport").send(BODY, take)
