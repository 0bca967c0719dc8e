"""What the ledger says of a job in some time of a recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from faultbench.sessions import Slice
from ledgerbench.step_truth import Span
from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.ledger.accounts import AccountReader, Accounts
from reveal_analyzer.ledger.totals import LedgerTotals, Totals
from reveal_contract import ledger
from reveal_contract.time_units import NS_PER_SECOND

OWN = (ledger.WAIT_SELF, ledger.WAIT_IDLE, ledger.IO_OWN, ledger.LOCKED)


@dataclass(frozen=True)
class Account:
    """Shares of the time that the job wanted, by part and by culprit (of CPU or storage).

    ``unbalanced`` is how far its parts are from its thread time, of that time.  ``refused`` are
    seconds whose parts did not add up, which are not in the rest.
    """

    seconds: int = 0
    refused: int = 0
    parts: dict[str, float] = field(default_factory=dict)
    culprits: dict[str, float] = field(default_factory=dict)
    unbalanced: float = 0.0

    @property
    def lost(self) -> float:
        """The share that was lost to others, to limits or to the host."""
        return sum(self.parts.get(part, 0.0) for part in ledger.LOST)

    @property
    def waited(self) -> float:
        """The share in which it did not run, its own waits included."""
        return 1 - self.parts[ledger.RUN] + self.parts[ledger.STOLEN] if self.parts else 0.0


class RecordedLedger:
    """The ledger of each second of a recording."""

    def __init__(self, slices: Iterable[Slice]) -> None:
        deriver, reader = Deriver(), AccountReader()
        self._rows: list[tuple[Span, Accounts]] = []
        for each in slices:
            second = deriver.second(each.message, each.table)
            accounts = reader.read(second)
            if accounts is not None:
                start = each.message.start_ns / NS_PER_SECOND
                self._rows.append(((start, start + 1.0), accounts))

    def spans(self, begin: float, end: float) -> list[Span]:
        """Return the seconds that lie within this time."""
        return [span for span, _ in self._rows if begin <= span[0] and span[1] <= end]

    def account(self, subject: str, spans: Sequence[Span]) -> Account:
        """Return what the ledger says of a subject in these seconds."""
        chosen, totals, refused = set(spans), LedgerTotals(), 0
        for span, accounts in self._rows:
            if span in chosen:
                totals.add(accounts)
                names = accounts.layout.subjects
                known = subject in names
                refused += not (known and accounts.valid[names.index(subject)])
        return _account(totals.totals(), subject, refused)


def _account(totals: Totals, subject: str, refused: int) -> Account:
    desired = sum(totals.time(subject, part) for part in ledger.DESIRED)
    if not desired:
        return Account(totals.seconds, refused)
    existed = totals.time(subject, ledger.THREAD_TIME)
    total = sum(totals.time(subject, part) for part in ledger.PARTS)
    culprits: dict[str, float] = {}
    for metric in ledger.PAIRS:
        for name, time in totals.taken[metric].get(subject, {}).items():
            culprits[name] = culprits.get(name, 0.0) + time / desired
    parts = {
        part: totals.time(subject, part) / desired for part in (*ledger.DESIRED, ledger.STOLEN)
    }
    return Account(totals.seconds, refused, parts, culprits, total / existed - 1)
