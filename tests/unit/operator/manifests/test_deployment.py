"""The Deployment of the analyzers: what a profile changes in it."""

from __future__ import annotations

import json

from support.profile_factory import built, container

ENDPOINT = "http://otel:4318"


def test_a_receiver_of_opentelemetry_is_a_setting_and_its_headers_come_from_a_secret() -> None:
    otlp = {"endpoint": ENDPOINT, "headersSecretRef": {"name": "of-otel", "key": "k"}}
    manifests = built({"reporting": {"otlp": otlp}})
    assert ENDPOINT in json.dumps(manifests["ConfigMap"])
    [variable] = [
        each
        for each in container(manifests["Deployment"])["env"]
        if each["name"] == "OTEL_EXPORTER_OTLP_HEADERS"
    ]
    assert variable["valueFrom"]["secretKeyRef"] == {"name": "of-otel", "key": "k"}


def test_without_a_receiver_there_is_neither() -> None:
    manifests = built()
    assert '\\"otlpEndpoint\\": \\"\\"' in json.dumps(manifests["ConfigMap"])
    assert "OTEL_EXPORTER_OTLP_HEADERS" not in json.dumps(manifests)
