"""The samples of each finding of a scan, as recordings in its directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from reveal_cli.atomic_file import write_atomically
from reveal_cli.errors import CliError
from reveal_cli.recordings import Slices
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import Finding
from reveal_contract.wire import Message

MOST_FILES = 50
MOST_BYTES = 262_144  # of each: files are not packed, and a disk has more room than a Redis


def write_evidence(recording: Path, findings: Iterable[Finding], directory: Path) -> int:
    """Write ``ID.rvl`` for each finding, at most ``MOST_FILES``, the most severe ones.

    Returns how many findings have none for that reason.  Raises ``CliError``.
    """
    from reveal_analyzer.evidence.whole import evidence_of  # noqa: PLC0415 - heavy

    found = sorted(findings, key=lambda finding: -finding.severity.rank)
    chosen = found[:MOST_FILES]
    if not chosen:
        return 0
    whole = Slices(recording)
    for _ in whole:  # subjects are announced anywhere in it
        pass
    for finding in chosen:
        node = finding.node_name
        slices = _of_node(Slices(recording), node)
        data = evidence_of(finding, slices, whole.subjects(node), MOST_BYTES)
        if data:
            _create(directory)
            write_atomically(directory / f"{finding.id}.rvl", [data])
    return len(found) - len(chosen)


def _of_node(slices: Slices, node: str) -> Iterator[tuple[Message, ChannelTable]]:
    return (each for each in slices if each[0].node == node)


def _create(directory: Path) -> None:
    try:
        directory.mkdir(exist_ok=True)
    except OSError as error:
        raise CliError(f"cannot write to {directory}: {error.strerror}") from None
