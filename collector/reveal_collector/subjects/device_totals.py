"""I/O of one cgroup, summed over devices that come and go, and counted in one layer only.

Kernel documents: admin-guide/cgroup-v2.rst (``io.stat``), cgroup-v1/blkio-controller.rst.  A device
has a line from its first I/O on.  A request to a stacked device (LVM, dm-crypt, md, bcache, loop)
has a second line for the device below; the lines of the upper devices are left out, and for arrays
of RAID 4, 5 and 6 those of their disks (``devices.block_devices``).  Lines of ``(unknown)`` are the
paths below a device of NVMe multipath, and repeat its line.  A line whose numbers have an unknown
form is left out, too: its device keeps its last numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from reveal_collector.readers.plan import SumPlan
from reveal_collector.readers.raw_slice import signed
from reveal_collector.readers.reference_reader import (
    DeviceNumbers,
    Mismatch,
    SumReader,
    device_numbers,
    is_device,
)
from reveal_collector.readers.textfile import decoded

_UNKNOWN = b"(unknown)"  # no name: a path of NVMe multipath

IsRepeated = Callable[
    [str], bool
]  # MAJOR:MINOR -> whether its requests are counted elsewhere as well


class DeviceTotals:
    """Running sums over the devices of one cgroup; ``keys`` names what is summed.

    A device with its first line adds all that it counted.  A device that was known, left the text
    and is back adds what it counts from then on.  ``unfit`` are the lines of the last text that are
    left out because of their form.
    """

    def __init__(self, keys: SumPlan, is_repeated: IsRepeated) -> None:
        self._is_repeated = is_repeated
        self.unfit: tuple[str, ...] = ()
        self._known: set[bytes] = set()  # devices that were ever added
        self._reader = SumReader(replace(keys, ignored=(_UNKNOWN,)))

    def __call__(self, data: bytes) -> Sequence[int | None]:
        totals, last = self._reader.totals, self._reader.last
        try:
            row = self._reader.row(data)
        except Mismatch:
            data = self._fitting(data)
            plan, numbers = self._learned(data)
            if last is None:
                self._join(plan, numbers)
            else:
                self._extend(plan, numbers, totals, last)
            return self._reader.row(data)
        self.unfit = ()
        return row

    def plan(self, data: bytes, columns: Sequence[int]) -> SumPlan:
        """Return the scanner's plan for these columns; ``data`` is the last text read here.

        The scanner continues the sums from that text on, and so does the next text read here.
        """
        reader = self._reader
        if reader.last is not None:
            self._restart(reader.plan, self._numbers(self._fitting(data)), reader.totals)
        plan = self._reader.plan
        return replace(
            plan,
            keys=tuple(plan.keys[column] for column in columns),
            offsets=tuple(plan.offsets[column] for column in columns) if plan.offsets else (),
        )

    def _fitting(self, data: bytes) -> bytes:
        """Return the lines whose form is known; note the others in ``unfit``.

        Raises ``Mismatch`` where there are others only: then the sums are unknown.
        """
        lines = list(filter(None, data.split(b"\n")))
        fitting = [line for line in lines if _fits(self._reader.plan, line)]
        self.unfit = tuple(decoded(line) for line in lines if line not in fitting)
        if lines and not fitting:
            raise Mismatch("no line has the known form")
        return b"\n".join([*fitting, b""]) if self.unfit else data

    def _numbers(self, data: bytes) -> DeviceNumbers:
        plan = self._reader.plan
        found = device_numbers(plan, data, plan.ignored)
        return {(device, key): number for device, key, number in found}

    def _learned(self, data: bytes) -> tuple[SumPlan, DeviceNumbers]:
        """Return the plan with the new devices that are left out, and the numbers of the others."""
        plan, numbers = self._reader.plan, self._numbers(data)
        new = {device for device, _ in numbers}.difference(plan.devices)
        upper = {device for device in new if self._is_repeated(device.decode("ascii", "replace"))}
        plan = replace(plan, ignored=(*plan.ignored, *sorted(upper)))
        return plan, {cell: now for cell, now in numbers.items() if cell[0] not in upper}

    def _join(self, plan: SumPlan, numbers: DeviceNumbers) -> None:
        """Continue the sums of the scanner, which added the devices of the plan."""
        totals = _by_key(plan)
        for (device, key), now in numbers.items():
            if device in plan.devices or device not in self._known:
                totals[key] += now
        self._restart(plan, numbers, totals)

    def _extend(
        self, plan: SumPlan, numbers: DeviceNumbers, totals: dict[bytes, int], last: DeviceNumbers
    ) -> None:
        """Add the new devices of a text; a device that is back starts from its numbers now."""
        offsets = _by_key(plan)
        new = {cell: now for cell, now in numbers.items() if cell not in last}
        for (device, key), now in new.items():
            offsets[key] -= now if device in self._known else 0
        devices = dict.fromkeys((*plan.devices, *(device for device, _ in new)))
        plan = replace(plan, devices=tuple(devices), offsets=tuple(map(signed, offsets.values())))
        self._reader = SumReader(plan)
        self._reader.totals = totals
        self._reader.last = last | {
            cell: now if cell[0] in self._known else 0 for cell, now in new.items()
        }
        self._known.update(devices)

    def _restart(self, plan: SumPlan, numbers: DeviceNumbers, totals: Mapping[bytes, int]) -> None:
        """Start with these devices so that the same numbers give these totals."""
        devices = tuple(dict.fromkeys(device for device, _ in numbers))
        offsets = dict(totals)
        for (_, key), now in numbers.items():
            offsets[key] -= now
        self._known.update(devices)
        self._reader = SumReader(
            replace(plan, devices=devices, offsets=tuple(map(signed, offsets.values())))
        )


def _fits(plan: SumPlan, line: bytes) -> bool:
    """Return whether a line has numbers of a device, or none."""
    try:
        return all(is_device(device) for device, _, _ in device_numbers(plan, line, plan.ignored))
    except Mismatch:
        return False


def _by_key(plan: SumPlan) -> dict[bytes, int]:
    """Return the offset of each key."""
    return dict(zip(plan.keys, plan.offsets or (0,) * len(plan.keys), strict=True))
