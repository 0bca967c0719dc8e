"""Metrics of lost time: from a profile and slices in a real Redis to a scrape."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from reveal_analyzer.__main__ import build
from reveal_analyzer.worker import Worker
from reveal_contract import ledger
from reveal_contract.runtime.liveness import LivenessFiles
from reveal_operator.settings import analyzer_settings
from reveal_operator.spec import parse
from support.component_processes import answer, free_port
from support.ledger_node import Times
from support.ledger_stream import send_seconds
from support.polling import wait_until
from support.profile_factory import profile
from support.redis_streams import Stream

JOB, HOG = 'job "a"\\', "/hog"  # a name may have any character
TIMES = {JOB: Times(run=0.6, cpu={HOG: 0.3}), HOG: Times(run=1.5, threads=2)}
SECONDS = 12


@contextmanager
def analyzer(stream: Stream, subjects: int) -> Iterator[tuple[Worker, int]]:
    """Yield an analyzer of a profile, and its port."""
    spec = {"analyzer": {"metricsSubjects": subjects}} if subjects else {}
    settings = analyzer_settings(parse(profile(spec)), stream.url)
    port = free_port()
    settings = replace(
        settings, profile="default", publish="none", metrics_port=port, samples_port=0
    )
    worker = build(settings, None, "one", LivenessFiles(None))
    try:
        yield worker, port
    finally:
        worker.close()


def scraped(stream: Stream, subjects: int) -> str:
    """Return the metrics of an analyzer that has read all seconds."""
    send_seconds(stream, TIMES, SECONDS)
    with analyzer(stream, subjects) as (worker, port):

        def has_read() -> bool:
            worker.turn()
            return f"reveal_slices_total {SECONDS:.1f}" in answer(port, "/metrics")[1]

        wait_until(has_read, "all slices are read")
        return answer(port, "/metrics")[1]


def subjects_of(text: str) -> set[str]:
    return {
        sample.labels["subject"]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "subject" in sample.labels
    }


@pytest.mark.parametrize(
    ("most", "named"), [(0, set()), (1, {HOG, ledger.OTHER}), (8, {JOB, HOG, ledger.OTHER})]
)
def test_as_many_subjects_have_series_as_the_profile_has_it(
    stream: Stream, most: int, named: set[str]
) -> None:
    assert subjects_of(scraped(stream, most)) == named


def test_promtool_reports_no_problem(stream: Stream) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("no promtool on PATH (Debian, Ubuntu: apt install prometheus)")
    text = scraped(stream, 8)
    assert "reveal_subject_lost_seconds_total{" in text
    command = ["promtool", "check", "metrics"]
    checked = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (checked.stderr, checked.returncode) == ("", 0)
