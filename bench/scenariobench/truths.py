"""What is right about the fault of a span: the truth that findings are compared with."""

from __future__ import annotations

from reveal_contract.channels import ChannelTable
from scenariobench.clip import Clip
from scenariobench.expected import causes_of, culprits_of
from scenariobench.timeline import Span, Truth

_RESOLVED_S = 30.0
UNOBSERVED_S = 110.0  # a minute without evidence, and some


def truth_of(span: Span, number: int, base: Clip) -> Truth:
    """Return what is right about the fault of a span; ``number`` makes its name unique."""
    fault = span.clip.fault
    assert fault is not None
    return Truth(
        f"{fault.name}#{number}", fault.subsystems, causes_of(fault.name), culprits_of(fault),
        span.onset, span.end,
        resolve_within=UNOBSERVED_S if _brings_device(span.clip, base) else _RESOLVED_S,
    )  # fmt: skip


def _brings_device(clip: Clip, base: Clip) -> bool:
    """Return whether a disk or NIC exists only during the fault: its end cannot be observed."""
    fault = clip.fault
    assert fault is not None
    return bool(devices_of(clip.frame(fault.last - 1).table) - devices_of(base.frame(0).table))


def devices_of(table: ChannelTable) -> set[str]:
    """Return the disks and NICs that have channels."""
    return {
        channel.instance
        for channel in table.fast
        if channel.metric.startswith(("storage.disk.", "network.nic.")) and channel.instance
    }
