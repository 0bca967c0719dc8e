"""Columns of ``/proc/net/dev`` after the interface name (net/core/net-procfs.c)."""

from __future__ import annotations

FIELDS = (
    "rx_bytes", "rx_packets", "rx_errs", "rx_drop", "rx_fifo", "rx_frame", "rx_compressed",
    "rx_multicast",
    "tx_bytes", "tx_packets", "tx_errs", "tx_drop", "tx_fifo", "tx_colls", "tx_carrier",
    "tx_compressed",
)  # fmt: skip
