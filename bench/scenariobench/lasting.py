"""Lasting causes as layers: a throttled pod, and a GPU that waits for its reset.

Both are channels of their own, added to the seconds of the host.  The pod's are those that a
throttled workload had in its recording, under another name and without its CPU time in the host's.
The GPU's are constants with a little noise, as no recorded host of the set has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reveal_contract.catalogue import find
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Lane, Subsystem
from scenariobench.clip import Clip, RecordedFault

THROTTLED_POD = "/kubepods/pod-batch"
GPU = "GPU0"
_QUIET_S, _ACTIVE_S, _TICKS = 8, 30, 10
_POD_USAGE = 0.2  # the pod is smaller than the workload that it is taken from


def throttled_pod(clip: Clip) -> Clip:
    """Return the subject that a clip throttles, alone and as another pod."""
    assert clip.fault is not None
    subject = clip.fault.subject
    fast = [i for i, channel in enumerate(clip.channels.fast) if channel.instance == subject]
    slow = [i for i, channel in enumerate(clip.channels.slow) if channel.instance == subject]
    width = len(clip.channels.fast)
    values = clip.fast[:, :, fast].copy()
    for position, index in enumerate(fast):
        if clip.channels.fast[index].metric == "cpu.subject.usage":
            values[:, :, position] = np.round(values[:, :, position] * _POD_USAGE)
    return replace(
        clip,
        name=f"throttled-pod-{clip.name}",
        workload="pod",
        channels=ChannelTable(
            _as_pod(clip.channels.fast, fast), _as_pod(clip.channels.slow, slow)
        ),
        fast=values, slow=clip.slow[:, slow],
        fast_missing=clip.fast_missing[:, :, fast], slow_missing=clip.slow_missing[:, slow],
        present=np.concatenate(
            [clip.present[:, fast], clip.present[:, [width + i for i in slow]]], axis=1
        ),
        fault=replace(clip.fault, subject=THROTTLED_POD),
    )  # fmt: skip


def _as_pod(channels: Sequence[Channel], indices: Sequence[int]) -> tuple[Channel, ...]:
    return tuple(replace(channels[index], instance=THROTTLED_POD) for index in indices)


# metric -> (level before, level while the remapping is pending, noise)
_LEVELS = {
    "gpu.count": (1, 1, 0),
    "gpu.utilization": (85, 85, 6),
    "gpu.memory.used": (40 << 30, 40 << 30, 0),
    "gpu.power": (330, 330, 12),
    "gpu.temperature": (62, 62, 1),
    "gpu.ecc.corrected.volatile": (0, 0, 0),
    "gpu.ecc.uncorrected.volatile": (0, 0, 0),
    "gpu.remapped_rows.corrected": (0, 0, 0),
    "gpu.remapped_rows.uncorrected": (0, 1, 0),
    "gpu.remapped_rows.pending": (0, 1, 0),
    "gpu.remapped_rows.failure": (0, 0, 0),
}


def pending_row_remap(tick_us: int = 100_000) -> Clip:
    """Return a GPU whose row waits for its remapping from the fault's onset on."""
    rng = np.random.default_rng(7)
    seconds = _QUIET_S + _ACTIVE_S + 3
    ended = _QUIET_S + _ACTIVE_S
    fast = tuple(_channel(name) for name in _LEVELS if find(name).lane is Lane.FAST)
    slow = tuple(_channel(name) for name in _LEVELS if find(name).lane is not Lane.FAST)
    clip = Clip(
        "pending-row-remap", "gpu", tick_us, ChannelTable(fast, slow),
        np.zeros((seconds, _TICKS, len(fast)), np.int64), np.zeros((seconds, len(slow)), np.int64),
        np.zeros((seconds, _TICKS, len(fast)), np.bool_), np.zeros((seconds, len(slow)), np.bool_),
        np.ones((seconds, len(fast) + len(slow)), np.bool_),
        RecordedFault(
            "row_remap", "pending row remap", False, frozenset({Subsystem.GPU}), None,
            float(_QUIET_S), float(ended),
        ),
    )  # fmt: skip
    for values, channels in ((clip.fast, fast), (clip.slow, slow)):
        for position, channel in enumerate(channels):
            before, pending, noise = _LEVELS[channel.metric]
            column = values[..., position]
            column[:] = before
            column[_QUIET_S:ended] = pending
            if noise:
                column += rng.integers(-noise, noise + 1, column.shape)
    return clip


def _channel(metric: str) -> Channel:
    row = find(metric)
    instance = "" if metric == "gpu.count" else GPU
    return Channel(metric, instance, row.kind, 1.0, row.lane)
