"""The directory of ``reveal scan --output DIR``: the names of its files, and who may write them."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from reveal_cli.errors import CliError

FINDINGS, RECORDING, SUMMARY, STATE, REPORT = (
    "findings.jsonl", "recording.rvl", "summary.json", "state.rvs", "report.html"
)  # fmt: skip
EVIDENCE = "evidence"  # a folder with a recording for each finding
SCAN_FILES = (FINDINGS, RECORDING, SUMMARY, STATE, REPORT)


def claim_directory(directory: Path) -> Path:
    """Create the directory and its recording; whoever creates that file owns the other files.

    Raises ``CliError`` where a file of a scan exists, or nothing can be written.
    """
    recording = directory / RECORDING
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _check_owner(directory)
        for name in (*SCAN_FILES, EVIDENCE):
            if os.path.lexists(directory / name):
                raise CliError(_exists(directory / name))
        os.close(os.open(recording, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        raise CliError(
            _exists(recording)
            if recording.exists()
            else f"{directory} is not a directory: name a directory for --output"
        ) from None
    except OSError as error:
        raise CliError(f"cannot write to {directory}: {error.strerror}") from None
    return recording


def _check_owner(directory: Path) -> None:
    """Raise ``CliError`` if root would write where somebody else can replace the files by links."""
    if os.geteuid() != 0:
        return
    found = directory.stat()
    owners = {0, int(os.environ.get("SUDO_UID") or 0)}
    if found.st_uid not in owners or _others_write(found):
        raise CliError(
            f"other users can replace files in {directory}: name a directory that its owner alone"
            " can write to (chmod go-w)"
        )


def _exists(path: Path) -> str:
    return f"{path} exists already: name another directory or remove it"


def recording_of(path: Path) -> Path:
    """Return the recording of a scan's directory, or the path itself if it is none.

    Raises ``CliError`` for a directory without a recording.
    """
    if not path.is_dir():
        return path
    if not (path / RECORDING).is_file():
        raise CliError(f"{path} has no {RECORDING}: name a recording, or a directory of a scan")
    return path / RECORDING


def release_directory(directory: Path) -> None:
    """Remove the files of a scan that never began, so that the next one can use the directory."""
    for name in SCAN_FILES:
        with contextlib.suppress(OSError):
            (directory / name).unlink()


def _others_write(found: os.stat_result) -> bool:
    """Return whether another user than the owner and root may replace files of a directory."""
    if found.st_mode & stat.S_ISVTX:  # only the owner of a file may: proc(5), protected_symlinks
        return False
    # a group with the number of its user is that user alone, as most distributions make them
    is_private = found.st_gid in (0, found.st_uid)
    return bool(found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not is_private))
