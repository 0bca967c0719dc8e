"""Requests to a receiver of OTLP over real HTTP."""

from __future__ import annotations

import json

import pytest

from reveal_analyzer.sinks.otlp.client import OtlpClient, OtlpError, headers_of
from support.otlp_receiver import OtlpReceiver, receiver

__all__ = ["receiver"]


def test_a_message_arrives_with_the_headers_of_the_environment(receiver: OtlpReceiver) -> None:
    environment = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x, team=ml"}
    OtlpClient(f"{receiver.url}/", environment).send("/v1/logs", {"text": "\ud800 \u00e4"})
    [request] = receiver.requests
    assert (request.path, request.headers["Authorization"]) == ("/v1/logs", "Bearer x")
    assert request.headers["team"] == "ml"
    assert request.headers["Content-Type"] == "application/json"
    assert json.loads(request.body) == {"text": "? \u00e4"}


@pytest.mark.parametrize(
    ("status", "final"), [(400, True), (401, True), (404, True), (429, False), (503, False)]
)
def test_the_status_decides_whether_a_message_may_be_sent_again(
    receiver: OtlpReceiver, status: int, final: bool
) -> None:
    receiver.status = status
    with pytest.raises(OtlpError, match=f"/v1/logs: {status}") as caught:
        OtlpClient(receiver.url, {}).send("/v1/logs", {})
    assert caught.value.is_final is final


def test_headers_are_not_sent_to_another_address(receiver: OtlpReceiver) -> None:
    receiver.status, receiver.location = 307, f"{receiver.url}/elsewhere"
    with pytest.raises(OtlpError, match="307"):
        OtlpClient(receiver.url, {}).send("/v1/logs", {})
    assert len(receiver.requests) == 1


def test_a_receiver_that_is_away_is_no_final_error() -> None:
    with pytest.raises(OtlpError, match="refused") as caught:
        OtlpClient("http://127.0.0.1:9", {}).send("/v1/logs", {})
    assert not caught.value.is_final


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("", {}),
        ("a=1", {"a": "1"}),
        (" a = 1 , b=x%3Dy%2C ", {"a": "1", "b": "x=y,"}),
        ("a,=1,b=", {}),
    ],
)
def test_headers_are_those_of_the_specification(text: str, headers: dict[str, str]) -> None:
    assert headers_of(text) == headers
