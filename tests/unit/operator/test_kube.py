"""How the client reads responses, and how kopf is configured."""

from __future__ import annotations

import json

import kopf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.kube.errors import ApiError, error_of
from reveal_contract.kube.paths import path
from reveal_contract.kube.transport import lines
from reveal_operator.app import configure


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("ConfigMap", "ns", "a"), "/api/v1/namespaces/ns/configmaps/a"),
        (("DaemonSet", "ns"), "/apis/apps/v1/namespaces/ns/daemonsets"),
        (("RevealProfile", "", "p"), "/apis/reveal.dev/v1alpha1/revealprofiles/p"),
        (("Node",), "/api/v1/nodes"),
    ],
)
def test_paths(asked: tuple[str, ...], expected: str) -> None:
    assert path(*asked) == expected


@given(st.lists(st.integers()), st.lists(st.integers(1, 9), min_size=1))
def test_lines_survive_any_chunking(values: list[int], sizes: list[int]) -> None:
    stream = b"".join(json.dumps({"v": value}).encode() + b"\n" for value in values)
    chunks, offset = [], 0
    while offset < len(stream):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(stream[offset : offset + size])
        offset += size
    assert [json.loads(line)["v"] for line in lines(iter(chunks))] == values


def test_a_refusal_has_the_message_of_the_server() -> None:
    body = {
        "kind": "Status",
        "reason": "Forbidden",
        "message": "no",
        "details": {"causes": [{"reason": "NamespaceTerminating"}]},
    }
    error = error_of("PATCH /x", 403, json.dumps(body).encode(), "Forbidden")
    assert (error.status, error.reason, error.message) == (403, "Forbidden", "no")
    assert str(error) == "PATCH /x: 403 Forbidden: no"
    assert error.causes == ("NamespaceTerminating",)


@pytest.mark.parametrize("body", [b"", b"<html>bad gateway", b"[1]", b"\xff"])
def test_a_refusal_has_the_text_of_a_proxy(body: bytes) -> None:
    error = error_of("GET /x", 502, body, "Bad Gateway")
    assert error.status == 502
    assert error.transient


@pytest.mark.parametrize(
    ("status", "transient"),
    [(0, True), (409, True), (410, True), (429, True), (500, True), (503, True), (504, True),
     (400, False), (403, False), (404, False), (422, False)],
)  # fmt: skip
def test_which_errors_are_transient(status: int, transient: bool) -> None:
    assert ApiError("", status).transient is transient


def test_kopf_writes_nothing_and_scans_no_other_resource() -> None:
    settings = kopf.OperatorSettings()
    configure(settings)
    assert settings.persistence.finalizer.startswith("operator.reveal.dev/")
    assert not settings.posting.enabled
    assert settings.scanning.disabled
    assert settings.peering.standalone
    assert settings.queueing.worker_limit is None
    assert settings.process.ultimate_exiting_timeout is None
    selectors = settings.watching.label_selectors
    assert selectors["daemonsets"] == "app.kubernetes.io/managed-by=reveal-operator"
