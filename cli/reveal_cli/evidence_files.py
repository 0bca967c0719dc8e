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


def write_evidence(recording: Path, findings: Iterable[Finding], directory: Path) -> None:
    """Write ``ID.rvl`` for each finding, for the first ``MOST_FILES``; raises ``CliError``."""
    from reveal_analyzer.evidence.whole import evidence_of  # noqa: PLC0415 - heavy

    chosen = list(findings)[:MOST_FILES]
    if not chosen:
        return
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


def _of_node(slices: Slices, node: str) -> Iterator[tuple[Message, ChannelTable]]:
    return (each for each in slices if each[0].node == node)


def _create(directory: Path) -> None:
    try:
        directory.mkdir(exist_ok=True)
    except OSError as error:
        raise CliError(f"cannot write to {directory}: {error.strerror}") from None
