"""``kubectl reveal evidence``, ``report`` and ``trace``: samples through a forwarded port."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from reveal_analyzer.evidence.endpoint import application
from reveal_cli.errors import DONE, ERROR
from reveal_cli.kubectl import cluster, evidence
from reveal_cli.kubectl.__main__ import main
from reveal_cli.recordings import Slices
from reveal_contract.finding import EvidenceRef
from reveal_contract.kube.errors import ForbiddenError, UnavailableError
from reveal_contract.runtime.http_endpoints import serve_locally
from support.evidence_samples import FixedNodes, MemoryStore, finding, whole_recording
from support.html_pages import ParsedPage
from support.perfetto_trace import decoded
from support.reports_api import ReportsApi

NAME = "cpu-1"
KEPT = finding(100, end=130, id=NAME, evidence_ref=EvidenceRef("Redis", NAME))
BARE = finding(100, end=130, id="bare")
REPORT, UNKEPT = "p-n1-cpu-1", "p-n1-bare"


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore(kept={NAME: whole_recording(KEPT, 200)})


@pytest.fixture
def api(store: MemoryStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ReportsApi:
    """A cluster with an analyzer that keeps the samples of one of two findings."""
    found = ReportsApi(KEPT, BARE)
    found.pods["reveal-analyzer-p-x"] = serve_locally(0, application(store, FixedNodes()))
    monkeypatch.setattr(evidence, "connect", lambda _: cluster.Cluster(found))
    monkeypatch.chdir(tmp_path)
    return found


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the only line of the error."""
    assert main(list(words)) == ERROR
    [line] = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.usefixtures("api")
def test_samples_are_a_recording(store: MemoryStore, tmp_path: Path) -> None:
    assert main(["evidence", REPORT]) == DONE
    file = tmp_path / f"{REPORT}.rvl"
    assert file.read_bytes() == store.kept[NAME]
    assert len(list(Slices(file))) > 100


@pytest.mark.usefixtures("api")
def test_a_page_shows_the_finding_with_its_samples(tmp_path: Path) -> None:
    file = tmp_path / "slow.html"
    assert main(["report", REPORT, "--file", str(file)]) == DONE
    page = ParsedPage(file.read_text())
    assert any("cpu.pressure.some" in each.text for each in page.all("bdi"))
    assert [each for each in page.all("figure") if each.attributes["class"] == "chart"]
    assert "kept of one finding" in page.visible


@pytest.mark.usefixtures("api")
def test_a_trace_has_the_finding(tmp_path: Path) -> None:
    assert main(["trace", REPORT]) == DONE
    trace = decoded([(tmp_path / f"{REPORT}.pftrace").read_bytes()])
    assert len(trace.of("finding")) == 1


def test_an_analyzer_that_does_not_answer_is_followed_by_the_next(
    api: ReportsApi, tmp_path: Path
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        api.pods = {"a": closed.getsockname()[1], **api.pods}
    assert main(["evidence", REPORT]) == DONE
    assert (tmp_path / f"{REPORT}.rvl").exists()


def test_errors_are_sentences_with_the_remedy(
    api: ReportsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no samples are kept of report p-n1-bare" in refused(capsys, "evidence", UNKEPT)
    other = refused(capsys, "evidence", REPORT, "--reveal-namespace", "other")
    assert "give the namespace of Reveal with --reveal-namespace" in other
    api.errors["FORWARD"] = ForbiddenError("no", 403)
    assert "you may not forward ports of pods" in refused(capsys, "evidence", REPORT)
    api.errors["FORWARD"] = UnavailableError("connection refused")
    assert "connection refused" in refused(capsys, "evidence", REPORT)
    api.errors["PODS"] = ForbiddenError("no", 403)
    assert "the Role reveal-samples" in refused(capsys, "evidence", REPORT)


def test_samples_that_are_no_longer_kept_are_a_sentence(
    api: ReportsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.pods["reveal-analyzer-p-x"] = serve_locally(0, application(MemoryStore(), FixedNodes()))
    assert "there are no samples of this finding" in refused(capsys, "evidence", REPORT)


def test_incomplete_samples_are_no_file(
    api: ReportsApi, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def answer(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 10\r\n\r\nabc")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        api.pods = {"a": listening.getsockname()[1]}
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        assert "responds: IncompleteRead" in refused(capsys, "evidence", REPORT)
        thread.join()
    assert list(tmp_path.iterdir()) == []
