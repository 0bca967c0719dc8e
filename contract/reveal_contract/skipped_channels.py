"""The log of skipped channels: a line for kinds and lanes that were not logged before.

Each start of a pod makes a new table with the same kinds, so a process logs each of them once.
"""

from __future__ import annotations

import logging
from itertools import chain

from reveal_contract.channels import ChannelTable, announced_row

log = logging.getLogger(__name__)

_MOST_LOGGED = 64  # kinds and lanes of a process; a faulty collector can announce any number
_logged: set[str] = set()


def log_skipped(table: ChannelTable) -> None:
    """Log the kinds and lanes of a table that this version does not know, unless they were."""
    found: dict[str, str] = {}
    for channel in chain(table.fast, table.slow):
        for word in channel.unknown:
            found.setdefault(word, announced_row(channel)[0])
    new = [word for word in found if word not in _logged][: _MOST_LOGGED - len(_logged)]
    if new:
        _logged.update(new)
        words = ", ".join(f"{word} (as of {found[word]})" for word in new)
        log.warning("channels of a later version are not used: %s", words)
