"""Collector, analyzer and operator whose metrics only some may read."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from reveal_operator.app import Operator, OperatorOptions
from reveal_operator.kube import KubernetesClient
from reveal_operator.spec import Defaults
from support.component_processes import Process, answer, free_port, running
from support.polling import wait_until
from support.restricted_metrics import TOKEN, RestrictedMetrics


def assert_restricted(process: Process, given: RestrictedMetrics, port: int, sample: str) -> None:
    wait_until(lambda: given.get(port, "/healthz")[0] == 200, "it serves HTTPS")
    assert given.get(port, "/metrics")[0] == 401
    status, text = given.get(port, "/metrics", token=f"Bearer {TOKEN}")
    assert (status, sample in text) == (200, True)
    assert answer(port, "/metrics") == (0, "")
    assert "Traceback" not in process.text


def test_metrics_of_a_collector_need_the_token(tmp_path: Path) -> None:
    given, port = RestrictedMetrics(tmp_path, token=TOKEN), free_port()
    flags = [
        "--include", "loadavg", "--record", str(tmp_path / "r"), "--metrics-port", str(port),
        "--metrics-access-folder", str(given.folder),
    ]  # fmt: skip
    with running("reveal_collector", tmp_path, *flags) as process:
        assert_restricted(process, given, port, "reveal_collector_channels")


def test_a_collector_whose_folder_is_unusable_samples_without_metrics(tmp_path: Path) -> None:
    record = tmp_path / "r"
    flags = [
        "--include", "loadavg", "--record", str(record), "--metrics-port", str(free_port()),
        "--metrics-access-folder", str(tmp_path / "none"),
    ]  # fmt: skip
    with running("reveal_collector", tmp_path, *flags) as process:
        wait_until(lambda: process.has_logged("metrics are not served: "), "it is logged")
        wait_until(lambda: record.exists() and record.stat().st_size > 200, "a slice is recorded")
    assert "none: tls.crt and tls.key are not a certificate in PEM with its key" in process.text


def test_metrics_of_an_analyzer_need_the_token(redis_server: Path, tmp_path: Path) -> None:
    given, port = RestrictedMetrics(tmp_path, token=TOKEN), free_port()
    flags = [
        "--redis", f"unix://{redis_server}", "--metrics-port", str(port),
        "--metrics-access-folder", str(given.folder),
    ]  # fmt: skip
    with running("reveal_analyzer", tmp_path, *flags) as process:
        assert_restricted(process, given, port, "reveal_build_info")


def test_an_analyzer_whose_folder_is_unusable_ends_with_a_sentence(
    redis_server: Path, tmp_path: Path
) -> None:
    flags = [
        "--redis", f"unix://{redis_server}", "--metrics-port", str(free_port()),
        "--metrics-access-folder", str(tmp_path / "none"),
    ]  # fmt: skip
    with running("reveal_analyzer", tmp_path, *flags) as process:
        assert process.process.wait(60) == 1
    assert "none: tls.crt and tls.key are not a certificate in PEM with its key" in process.text


def test_metrics_of_the_operator_are_on_their_own_port_only(tmp_path: Path) -> None:
    given, ports = RestrictedMetrics(tmp_path, token=TOKEN), (free_port(), free_port())
    options = OperatorOptions(
        Defaults("n", "collector", "analyzer"), metrics_port=ports[0], health_port=ports[1],
        metrics_access_folder=str(given.folder),
    )  # fmt: skip
    Operator(cast(KubernetesClient, None), options)._serve()
    assert given.get(ports[0], "/metrics")[0] == 401
    status, text = given.get(ports[0], "/metrics", token=f"Bearer {TOKEN}")
    assert (status, "reveal_operator_build_info" in text) == (200, True)
    assert answer(ports[1], "/metrics")[0] == 404
    assert answer(ports[1], "/readyz")[0] == 503
