"""GPU-hours that jobs lose by a finding, all of them together and each pod, and what they cost."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from reveal_contract.foreign_names import PrintableRecord

_SECONDS_PER_HOUR = 3600
_PRICE = re.compile(r"[0-9]{1,7}(\.[0-9]{1,4})?( [A-Z]{3})?", re.ASCII)


def is_price(text: str) -> bool:
    """Return whether a text is a price: ``2.50``, or with a currency ``2.50 USD``."""
    return _PRICE.fullmatch(text) is not None


def amount_of(price: str, hours: float) -> tuple[float, str]:
    """Return what hours cost at a price of an hour, and its currency, "" if it has none."""
    number, _, currency = price.partition(" ")
    return float(number) * hours, currency


def amount_text(amount: float, currency: str) -> str:
    """Return ``4.50 USD``."""
    return f"{amount:.2f} {currency}".rstrip()


@dataclass(frozen=True, slots=True)
class Cost:
    """GPU-hours that jobs lost by a finding so far, between ``low`` and ``high``.

    ``gpus`` are those of the jobs that lose now, ``lost_gpus`` is how many of them this is worth.
    ``price`` is that of a GPU-hour, "" if it is not known.
    """

    gpus: int
    lost_gpus: float
    lost_gpu_hours: float
    low: float
    high: float
    price: str = ""

    @property
    def amount(self) -> str:
        """What was lost in money, ``4.50 USD``; "" if the price is not known."""
        return amount_text(*amount_of(self.price, self.lost_gpu_hours)) if self.price else ""

    def extended(self, seconds: float) -> Cost:
        """Return it ``seconds`` later, if jobs lose as much; the interval grows in proportion."""
        hours = self.lost_gpu_hours + self.lost_gpus * max(0.0, seconds) / _SECONDS_PER_HOUR
        factor = hours / self.lost_gpu_hours if self.lost_gpu_hours else 1.0
        high = max(hours, self.high * factor)
        return replace(self, lost_gpu_hours=hours, low=self.low * factor, high=high)

    def to_dict(self) -> dict[str, Any]:
        """Return the row without floats: parts of GPUs and hours are decimal strings."""
        row: dict[str, Any] = {
            "gpus": self.gpus,
            "lostGPUs": f"{self.lost_gpus:.2f}",
            "lostGPUHours": f"{self.lost_gpu_hours:.3f}",
            "lowGPUHours": f"{self.low:.3f}",
            "highGPUHours": f"{self.high:.3f}",
        }
        return {**row, "price": self.price, "amount": self.amount} if self.price else row


@dataclass(frozen=True, slots=True)
class PodCost(PrintableRecord):
    """GPU-hours that a pod (``namespace/name``) lost by a finding so far, as a part of its cost."""

    name: str
    lost_gpu_hours: float

    def to_dict(self) -> dict[str, Any]:
        """Return the row without floats: hours are decimal strings."""
        return {"name": self.name, "lostGPUHours": f"{self.lost_gpu_hours:.3f}"}
