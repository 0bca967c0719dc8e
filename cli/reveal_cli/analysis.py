"""The result of ``reveal analyze`` for one input file, a recording or a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from reveal_analyzer.tables.ingest.open import FileKind, TableFileError, kind_of
from reveal_cli.errors import USAGE, CliError
from reveal_contract.finding import Finding

__all__ = ["Analysis", "FileKind", "baseline_recording", "file_kind"]


@dataclass(frozen=True)
class Analysis:
    """The findings of one file, and how to print them.

    ``blocks`` makes the text, ``scores`` the lines of a CSV; ``hints`` are configuration
    findings; ``lost_time`` rows are for JSON; ``warnings`` name the parts of the input that were
    not used.
    """

    findings: Sequence[Finding]
    blocks: Callable[[], list[RenderableType]]
    scores: Callable[[], Iterable[str]]
    hints: Sequence[Finding] = ()
    lost_time: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = field(default=())


def file_kind(path: Path) -> FileKind:
    """Return whether a file holds a recording or a table, by its content.

    Raises ``CliError`` where it holds neither.
    """
    try:
        return kind_of(path)
    except TableFileError as error:
        raise CliError(str(error)) from None


def baseline_recording(path: Path) -> Path:
    """Return the path of a baseline; raises ``CliError`` where it is not a recording."""
    if file_kind(path) is not FileKind.RECORDING:
        raise CliError(
            f"--baseline {path} is a table: the baseline of a recording must be a recording", USAGE
        )
    return path
