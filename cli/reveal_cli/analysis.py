"""What ``reveal analyze`` knows of one input, be it a recording or a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reveal_analyzer.tables.ingest.open import FileKind, TableFileError, kind_of
from reveal_cli.errors import USAGE, CliError
from reveal_contract.finding import Finding

__all__ = ["FileKind", "Judged", "healthy_recording", "kind"]


@dataclass(frozen=True)
class Judged:
    """Findings, hints on how nodes are set up, and how to show them.

    ``lines`` makes the text for people of a width in columns; ``scores`` the rows of a CSV;
    ``warnings`` say what of the input was not used.
    """

    findings: Sequence[Finding]
    lines: Callable[[int], list[str]]
    scores: Callable[[], Iterable[str]]
    hints: Sequence[Finding] = ()
    warnings: Sequence[str] = field(default=())


def kind(path: Path) -> FileKind:
    """What a file is by its content; raises ``CliError`` where it is of no use."""
    try:
        return kind_of(path)
    except TableFileError as error:
        raise CliError(str(error)) from None


def healthy_recording(path: Path) -> Path:
    """The baseline of a recording, if it is one too; raises ``CliError``."""
    if kind(path) is not FileKind.RECORDING:
        raise CliError(f"--baseline {path} is a table: a recording needs a recording", USAGE)
    return path
