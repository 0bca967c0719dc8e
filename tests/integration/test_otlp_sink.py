"""Findings of a real analyzer on a real Redis arrive at a receiver of OTLP."""

from __future__ import annotations

import json

from reveal_analyzer.__main__ import build
from reveal_contract.runtime.liveness import LivenessFiles
from reveal_contract.settings import AnalyzerSettings
from support.ledger_node import Times
from support.ledger_stream import send_seconds
from support.otlp_receiver import OtlpReceiver, receiver
from support.polling import wait_until
from support.redis_streams import Stream

__all__ = ["receiver"]

JOB, HOG = "/train.service", "/hog.service"
TIMES = {JOB: Times(run=0.6, cpu={HOG: 0.3}), HOG: Times(run=1.5, threads=2)}
SECONDS = 15


def test_findings_of_an_analyzer_arrive(stream: Stream, receiver: OtlpReceiver) -> None:
    send_seconds(stream, TIMES, SECONDS)
    settings = AnalyzerSettings(redis_url=stream.url, otlp_endpoint=receiver.url)
    worker = build(settings, None, "one", LivenessFiles(None))

    def has_arrived() -> bool:
        worker.turn()
        return bool(receiver.requests)

    try:
        wait_until(has_arrived, "the finding arrives", 30)
    finally:
        worker.close()
    request = receiver.requests[0]
    assert request.path == "/v1/logs"
    [resource] = json.loads(request.body)["resourceLogs"]
    [record] = resource["scopeLogs"][0]["logRecords"]
    assert record["eventName"] == "reveal.finding.opened"
    assert HOG in record["body"]["stringValue"]
    assert {"key": "reveal.culprit", "value": {"stringValue": HOG}} in record["attributes"]
