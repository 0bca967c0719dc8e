"""The findings of a folder of scans: directories of ``reveal scan --output``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from reveal_cli.errors import CliError
from reveal_cli.finding_rows import read_findings
from reveal_cli.jobs import affected_job
from reveal_cli.report_file import scan_page
from reveal_cli.scan_directory import FINDINGS, REPORT, SUMMARY
from reveal_cli.ui.source import ListedFinding, Listing
from reveal_contract.finding import FindingKind

MOST_SCANS = 1000


class ScanFolder:
    """A folder with scans in it, or a scan itself; raises ``CliError`` if there is none."""

    nodes = None

    def __init__(self, folder: Path) -> None:
        self.title = str(folder)
        self._folder = folder
        if not self._scans():
            raise CliError(
                f"{folder} has no scans: name a directory of `reveal scan --output`, or a folder of"
                " such directories"
            )

    def listing(self) -> Listing:
        """Return the findings of all scans; a scan that cannot be read is a warning."""
        findings: list[ListedFinding] = []
        nodes: dict[str, None] = {}
        warnings = []
        for name, directory in self._scans().items():
            try:
                findings += _listed(name, directory)
            except CliError as error:
                warnings.append(str(error))
            nodes |= dict.fromkeys(_node(directory))
        return Listing(findings, tuple(nodes), warnings)

    def page(self, key: str) -> str:
        """Return the page of a scan; its own one, if that is there."""
        name = key.rpartition("#")[0]
        directory = self._scans().get(name)
        if directory is None:
            raise CliError("there is no such scan any more")
        report = directory / REPORT
        try:
            return report.read_text("utf-8") if report.is_file() else scan_page(directory)
        except (OSError, UnicodeDecodeError) as error:
            raise CliError(f"cannot read {report}: {error}") from None

    def _scans(self) -> dict[str, Path]:
        """Return the scans by name, the newest first."""
        if (self._folder / FINDINGS).is_file():
            return {self._folder.name: self._folder}
        try:
            found = [each for each in self._folder.iterdir() if (each / FINDINGS).is_file()]
        except OSError as error:
            raise CliError(f"cannot read {self._folder}: {error.strerror}") from None
        newest = sorted(found, key=lambda each: (each / FINDINGS).stat().st_mtime, reverse=True)
        return {each.name: each for each in newest[:MOST_SCANS]}


def _listed(name: str, directory: Path) -> Iterator[ListedFinding]:
    for finding in read_findings(directory / FINDINGS):
        if finding.kind is FindingKind.ANOMALY:
            yield ListedFinding(f"{name}#{finding.id}", finding, affected_job(finding), name)


def _node(directory: Path) -> list[str]:
    """Return the node of a scan; none where its summary cannot be read."""
    try:
        summary = json.loads((directory / SUMMARY).read_bytes())
        return [str(summary["node"])]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
