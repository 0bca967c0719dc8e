"""The page of a recording, or of the files of a scan, as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reveal_cli.atomic_file import write_atomically
from reveal_cli.page.document import document
from reveal_cli.page_data.collect import page_data
from reveal_cli.page_data.finding_parts import Judged
from reveal_cli.page_data.scan_files import scanned


def page(judged: Judged) -> str:
    """Return the page of a recording; raises ``CliError``."""
    return document(page_data(judged))


def write_report(judged: Judged, output: Path) -> None:
    """Write the page of a recording; raises ``CliError``."""
    write_atomically(output, [page(judged)])


def scan_page(directory: Path) -> str:
    """Return the page of a scan from its files; raises ``CliError``."""
    return page(scanned(directory))


def write_scan_report(directory: Path, output: Path, hypotheses: Sequence[str] = ()) -> Judged:
    """Write the page of a scan from its files and return what it found; raises ``CliError``.

    ``hypotheses`` are the files of one's own causes that the scan had.
    """
    judged = replace(scanned(directory), hypotheses=hypotheses)
    write_report(judged, output)
    return judged
