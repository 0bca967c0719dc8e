"""The state of a scan as a file: what the scan learned, and another one may start from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from reveal_cli.errors import USAGE, CliError
from reveal_cli.scan_directory import STATE

if TYPE_CHECKING:
    from reveal_analyzer.node import NodeAnalyzer
    from reveal_analyzer.state.codec import SavedState
    from reveal_contract.wire import Message

MAX_FILE_BYTES = 1 << 20  # real ones have at most 64 KiB
_REFUSED = "cannot be used: {}: scan without it to learn again"


def read_baseline(directory: Path, node: str) -> SavedState:
    """Return what the scan with this ``--output`` directory learned; raises ``CliError``."""
    from reveal_analyzer.state.codec import decode  # noqa: PLC0415 - numpy, for --help too
    from reveal_analyzer.state.tree import StateError  # noqa: PLC0415

    path = directory / STATE
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES)
        state = decode(data)
    except OSError as error:
        raise CliError(
            f"--baseline {directory}: {path} cannot be read ({error.strerror}):"
            " name the --output directory of an earlier scan",
            USAGE,
        ) from None
    except StateError as error:
        raise CliError(f"--baseline {directory} {_REFUSED.format(error)}", USAGE) from None
    if state.position.node != node:
        raise CliError(
            f"--baseline {directory} is of the host {state.position.node}, this is {node}:"
            " name a scan of this host",
            USAGE,
        )
    return state


def start_from(state: SavedState, analyzer: NodeAnalyzer) -> None:
    """Start an analysis from a state; raises ``CliError`` if the state does not fit."""
    from reveal_analyzer.state.tree import StateError  # noqa: PLC0415

    try:
        analyzer.restore_baseline(state.tree)
    except StateError as error:
        raise CliError(f"the baseline {_REFUSED.format(error)}", USAGE) from None


def encode_baseline(analyzer: NodeAnalyzer, last: Message) -> bytes:
    """Return the content of the file; raises ``StateError`` if it is too large."""
    from reveal_analyzer.node import OPTIONAL_STATE  # noqa: PLC0415 - heavy
    from reveal_analyzer.state.codec import Position, SavedState, encode  # noqa: PLC0415

    position = Position(last.node, last.boot, last.sequence, last.start_ns)
    return encode(SavedState(position, int(time.time()), analyzer.save()), OPTIONAL_STATE)
