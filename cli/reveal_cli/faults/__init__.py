"""Real, bounded, self-cleaning faults, which ``reveal demo`` and the fault bench inject.

    target = FaultTarget(workload=..., link=..., scratch=directory)
    fault = find("cpu_contend")
    if not fault.unsupported_reason(target):
        with fault.on(target) as injection:     # start() ... stop()
            ...                                 # injection.subject: what a finding should name

``sweep`` undoes what killed runs left behind; call it before the first injection.
"""

from __future__ import annotations

import difflib

from reveal_cli.faults import cpu, gpu, memory, network, storage
from reveal_cli.faults.base import Culprit, Fault, FaultError, FaultTarget, Injection, Needs
from reveal_cli.faults.ledger import Ledger, LedgerError, Undo, sweep

__all__ = [
    "FAULTS",
    "Culprit",
    "Fault",
    "FaultError",
    "FaultTarget",
    "Injection",
    "Ledger",
    "LedgerError",
    "Needs",
    "Undo",
    "UnknownFaultError",
    "find",
    "sweep",
]  # fmt: skip

FAULTS: tuple[Fault, ...] = (
    *cpu.FAULTS, *memory.FAULTS, *storage.FAULTS, *network.FAULTS, *gpu.FAULTS,
)  # fmt: skip


class UnknownFaultError(KeyError):
    """No fault has this name; the text lists the existing ones."""

    def __str__(self) -> str:
        return str(self.args[0])


def find(name: str) -> Fault:
    """Return the fault of this name; raises ``UnknownFaultError``."""
    for fault in FAULTS:
        if fault.name == name:
            return fault
    names = [fault.name for fault in FAULTS]
    near = difflib.get_close_matches(name, names, 1)
    hint = f", did you mean {near[0]}?" if near else ""
    raise UnknownFaultError(f"no fault is called {name!r}{hint} There are: {', '.join(names)}")
