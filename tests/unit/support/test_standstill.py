"""Standstills of the host, as the collector and the commands say them."""

from __future__ import annotations

from support.standstill import skipped_seconds, without_lost_slices


def test_the_seconds_of_all_standstills_are_added() -> None:
    line = '{"message": "no sample for %d s: the host or this process stood still"}\n'
    assert skipped_seconds(line % 2 + "another\n" + line % 11) == 13
    assert skipped_seconds("") == 0


def test_only_warnings_of_lost_slices_are_removed() -> None:
    warned = "reveal: 2 slices lost before 18:41:26\nreveal: no perf events\n"
    assert without_lost_slices(warned) == ("reveal: no perf events\n", 2)
    assert without_lost_slices("") == ("", 0)
