from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reveal_contract.channels import ChannelTable
from scenariobench import clip_file
from scenariobench.clip import Clip, clip_of
from support.synthetic_clips import CACHED, PRESSURE, SWITCHES, USAGE, faulty, healthy


def _equal(left: Clip, right: Clip) -> bool:
    arrays = ("fast", "slow", "fast_missing", "slow_missing", "present")
    return left.channels == right.channels and all(
        np.array_equal(getattr(left, name), getattr(right, name)) for name in arrays
    )


def test_a_clip_is_read_as_it_was_written(tmp_path: Path) -> None:
    clip = faulty()
    clip.fast[3, 4, 1] = -7
    clip.fast[7, :, 0] = 2**40
    clip.slow[9, 0] = -(2**50)
    clip.slow_missing[2, 0] = clip.fast_missing[1, 1, 1] = True
    read = clip_file.read(clip_file.write(clip, tmp_path))
    assert _equal(read, clip)
    assert read.fault == clip.fault


def test_the_fault_of_a_clip_is_known_without_its_values(tmp_path: Path) -> None:
    path = clip_file.write(faulty(), tmp_path)
    assert clip_file.read_fault(path) == ("train", "one-storm", faulty().fault)
    assert clip_file.read_fault(clip_file.write(healthy(), tmp_path))[2] is None


@pytest.mark.parametrize("damage", [b"", b"RVLCLP\x00\x01", b"something else, long enough"])
def test_another_file_is_no_clip(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "broken.clip"
    path.write_bytes(damage)
    with pytest.raises(clip_file.ClipError, match=r"broken\.clip is not a clip"):
        clip_file.read(path)


def test_a_truncated_clip_is_refused(tmp_path: Path) -> None:
    path = clip_file.write(faulty(), tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(clip_file.ClipError, match="is not a clip"):
        clip_file.read(path)


def test_a_second_has_the_table_that_it_had() -> None:
    clip = faulty()
    assert clip.frame(0).table == ChannelTable((SWITCHES, PRESSURE), (CACHED,))
    assert clip.frame(6).table == ChannelTable((SWITCHES, PRESSURE, USAGE), (CACHED,))
    assert clip.frame(6).fast[0].tolist() == [60, 2000, 1_000_000]


def test_seconds_with_different_tables_make_a_clip() -> None:
    clip = faulty()
    frames = [clip.frame(second) for second in range(len(clip))]
    again = clip_of("one-storm", "train", frames, 100_000, clip.fault)
    assert [each.table for each in map(again.frame, range(len(again)))] == [
        each.table for each in frames
    ]
    assert all(
        np.array_equal(again.frame(second).fast, frame.fast) for second, frame in enumerate(frames)
    )
