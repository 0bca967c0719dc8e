"""Real, bounded, self-cleaning faults: ``reveal demo`` and the fault bench inject them.

    stage = Stage(workload=..., link=..., scratch=directory)
    fault = find("cpu_contend")
    if not fault.why_not(stage):
        with fault.on(stage) as injection:      # start() ... stop()
            ...                                 # injection.subject: whom a finding should name

``sweep`` undoes what killed runs left behind; call it before the first injection.
"""

from __future__ import annotations

import difflib

from reveal_cli.faults import cpu, memory, network, storage
from reveal_cli.faults.base import Culprit, Fault, FaultError, Injection, Needs, Stage
from reveal_cli.faults.ledger import Ledger, LedgerError, Undo, sweep

__all__ = [
    "FAULTS", "Culprit", "Fault", "FaultError", "Injection", "Ledger", "LedgerError", "Needs",
    "Stage", "Undo", "UnknownFaultError", "find", "sweep",
]  # fmt: skip

FAULTS: tuple[Fault, ...] = (*cpu.FAULTS, *memory.FAULTS, *storage.FAULTS, *network.FAULTS)


class UnknownFaultError(KeyError):
    """No fault has this name; the text names the ones there are."""

    def __str__(self) -> str:
        return str(self.args[0])


def find(name: str) -> Fault:
    """The fault of this name; raises ``UnknownFaultError``."""
    for fault in FAULTS:
        if fault.name == name:
            return fault
    names = [fault.name for fault in FAULTS]
    near = difflib.get_close_matches(name, names, 1)
    hint = f", did you mean {near[0]}?" if near else ""
    raise UnknownFaultError(f"no fault is called {name!r}{hint} There are: {', '.join(names)}")
