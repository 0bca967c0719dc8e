"""The page of a recording, or of the files of a scan, as a file."""

from __future__ import annotations

from pathlib import Path

from reveal_cli.atomic_file import write_atomically
from reveal_cli.page.document import document
from reveal_cli.page_data.collect import page_data
from reveal_cli.page_data.finding_parts import Judged
from reveal_cli.page_data.scan_files import scanned


def write_report(judged: Judged, output: Path) -> None:
    """Write the page of a recording; raises ``CliError``."""
    write_atomically(output, [document(page_data(judged))])


def write_scan_report(directory: Path, output: Path) -> Judged:
    """Write the page of a scan from its files and return what it found; raises ``CliError``."""
    judged = scanned(directory)
    write_report(judged, output)
    return judged
