"""The samples of each finding of a scan, as recordings in its directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from reveal_cli.atomic_file import write_atomically
from reveal_cli.errors import CliError
from reveal_cli.recordings import Slices
from reveal_contract.finding import Finding

MOST_FILES = 50
_TOGETHER = 8  # findings of a pass over the recording: one that lasts takes 10 MB an hour
MOST_BYTES = 262_144  # of each: files are not packed, and a disk has more room than a Redis


def write_evidence(recording: Path, findings: Iterable[Finding], directory: Path) -> int:
    """Write ``ID.rvl`` for each finding, at most ``MOST_FILES``, the most severe ones.

    Returns how many findings have none for that reason.  Raises ``CliError``.
    """
    found = sorted(findings, key=lambda finding: -finding.severity.rank)
    chosen = found[:MOST_FILES]
    if not chosen:
        return 0
    whole = Slices(recording)
    for _ in whole:  # subjects are announced anywhere in it
        pass
    for first in range(0, len(chosen), _TOGETHER):
        part = chosen[first : first + _TOGETHER]
        for finding, data in _recordings(recording, part, whole):
            _create(directory)
            write_atomically(directory / f"{finding.id}.rvl", [data])
    return len(found) - len(chosen)


def _recordings(
    recording: Path, findings: Sequence[Finding], whole: Slices
) -> Iterator[tuple[Finding, bytes]]:
    """Yield the findings that have samples, from one pass over the recording."""
    from reveal_analyzer.evidence.whole import WholeEvidence  # noqa: PLC0415 - heavy

    by_node: dict[str, list[WholeEvidence]] = {}
    for finding in findings:
        subjects = whole.subjects(finding.node_name)
        own = by_node.setdefault(finding.node_name, [])
        own.append(WholeEvidence(finding, subjects, MOST_BYTES))
    for message, table in Slices(recording):
        for evidence in by_node.get(message.node, ()):
            evidence.add((message, table))
    for evidence in chain.from_iterable(by_node.values()):
        if data := evidence.recording():
            yield evidence.finding, data


def _create(directory: Path) -> None:
    if directory.is_symlink():
        raise CliError(f"{directory} is a link: samples are kept in the directory of the scan")
    try:
        directory.mkdir(exist_ok=True)
    except OSError as error:
        raise CliError(f"cannot write to {directory}: {error.strerror}") from None
