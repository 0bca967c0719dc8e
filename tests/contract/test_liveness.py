"""Files for a liveness probe: at most one touch a second, and none left by an earlier process."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from reveal_contract.runtime.liveness import ALIVE_FILE, READY_FILE, STALLED_SECONDS, LivenessFiles
from support.fake_clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def backdate(file: Path) -> None:
    os.utime(file, (1, 1))


def is_touched(file: Path) -> bool:
    return file.stat().st_mtime > 1


def test_a_beat_touches_the_file_once_a_second(tmp_path: Path, clock: FakeClock) -> None:
    pulse, file = LivenessFiles(tmp_path, clock), tmp_path / ALIVE_FILE
    for passed, touched in ((0.0, True), (0.5, False), (0.5, True), (0.9, False), (5.0, True)):
        backdate(file)
        clock.now += passed
        pulse.beat()
        assert is_touched(file) is touched


def test_readiness_is_a_file_that_stays(tmp_path: Path, clock: FakeClock) -> None:
    pulse, file = LivenessFiles(tmp_path, clock), tmp_path / READY_FILE
    assert not pulse.is_ready
    assert not file.exists()
    pulse.ready()
    assert pulse.is_ready
    backdate(file)
    pulse.ready()
    assert not is_touched(file)


def test_a_restarted_container_removes_the_ready_file_of_its_predecessor(tmp_path: Path) -> None:
    LivenessFiles(tmp_path).ready()
    backdate(tmp_path / ALIVE_FILE)
    pulse = LivenessFiles(tmp_path)
    assert not pulse.is_ready
    assert not (tmp_path / READY_FILE).exists()
    assert is_touched(tmp_path / ALIVE_FILE)


def test_a_removed_file_is_created_again(tmp_path: Path, clock: FakeClock) -> None:
    pulse = LivenessFiles(tmp_path, clock)
    (tmp_path / ALIVE_FILE).unlink()
    pulse.beat()
    assert (tmp_path / ALIVE_FILE).exists()


def test_an_unwritable_folder_is_a_readable_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"run folder .*missing: No such file or directory"):
        LivenessFiles(tmp_path / "missing")


def test_a_missing_folder_is_logged_once_and_stops_nothing(
    tmp_path: Path, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    pulse = LivenessFiles(folder, clock)
    (folder / ALIVE_FILE).unlink()
    folder.rmdir()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            clock.now += 2
            pulse.beat()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(folder) in caplog.text


def test_a_process_without_a_recent_beat_is_stalled(clock: FakeClock) -> None:
    pulse = LivenessFiles(clock=clock)
    clock.now += STALLED_SECONDS
    assert pulse.stalled() == ""
    clock.now += 1
    assert pulse.stalled() == "nothing was done for 31 s"
    pulse.beat()
    assert pulse.stalled() == ""
