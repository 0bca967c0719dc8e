"""The samples of the findings of a scan, in its directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_analyzer.evidence.samples import Samples
from reveal_cli.errors import CliError
from reveal_cli.evidence_files import MOST_BYTES, MOST_FILES, write_evidence
from reveal_contract.finding import Severity
from reveal_contract.recording import RecordingWriter
from reveal_contract.wire import encode, gauges
from support.evidence_samples import FIRST_NS, finding, slices


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scan") / "recording.rvl"
    with RecordingWriter(path) as writer:
        for message, table in slices(400):
            writer.message(encode(message, gauges(table)), table)
    return path


def seconds(file: Path) -> dict[int, int]:
    kept = Samples.from_recording(file.read_bytes()).slices
    return {(each.start_ns - FIRST_NS) // 10**9: each.ticks for each in kept}


def test_each_finding_has_a_recording_of_its_time(recording: Path, tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    write_evidence(recording, [finding(100, end=300), finding(330, id="cpu-later")], folder)
    kept = seconds(folder / "cpu-0123456789.rvl")
    assert set(kept) == set(range(40, 361))
    assert {second for second, ticks in kept.items() if ticks == 1} == set(range(161, 240))
    assert set(seconds(folder / "cpu-later.rvl")) == set(range(270, 400))
    assert all(file.stat().st_size <= MOST_BYTES for file in folder.iterdir())


def test_without_a_finding_or_its_slices_there_is_no_folder(
    recording: Path, tmp_path: Path
) -> None:
    write_evidence(recording, [], tmp_path / "a")
    write_evidence(recording, [finding(9000), finding(100, node_name="other")], tmp_path / "b")
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()


def test_the_number_of_files_is_limited(recording: Path, tmp_path: Path) -> None:
    many = [finding(390, id=f"cpu-{number}") for number in range(MOST_FILES + 1)]
    worst = finding(390, id="cpu-worst", severity=Severity.CRITICAL)
    assert write_evidence(recording, [*many, worst], tmp_path / "evidence") == 2
    names = {file.stem for file in (tmp_path / "evidence").iterdir()}
    assert len(names) == MOST_FILES
    assert "cpu-worst" in names


def test_a_folder_that_cannot_be_written_is_an_error(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "evidence").write_bytes(b"a file")
    with pytest.raises(CliError, match="cannot write to"):
        write_evidence(recording, [finding(100)], tmp_path / "evidence")
