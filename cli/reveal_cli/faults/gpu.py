"""Faults of a GPU: other programs compute, hold memory or copy on the one that a job uses."""

from __future__ import annotations

from collections.abc import Callable

from reveal_cli.faults.base import Fault, Injection, Needs, program
from reveal_cli.faults.cuda import no_gpu
from reveal_contract.metric import Subsystem

_GPU = frozenset({Subsystem.GPU})
_SLOWER = "other programs on the first GPU become slower"
_FULL = "other programs on the first GPU may run out of its memory"


def _fault(
    name: str,
    kind: str,
    about: str,
    inject: Callable[[Injection], None],
    *,
    weak: bool = False,
    host_wide: str = _SLOWER,
) -> Fault:
    needs = Needs(check=lambda _: no_gpu())
    return Fault(name, kind, _GPU, about, inject, weak, needs, host_wide=host_wide)


FAULTS: tuple[Fault, ...] = (
    _fault(
        "gpu_shared", "GPU shared", "another process computes on the GPU",
        program("gpu_compute", 1),
    ),
    _fault(
        "gpu_shared_weak", "GPU shared", "another process computes a quarter of the time",
        program("gpu_compute", 0.25), weak=True,
    ),
    _fault(
        "gpu_memory", "GPU memory held", "another process holds the free memory of the GPU",
        program("gpu_hold"), host_wide=_FULL,
    ),
    _fault(
        "gpu_pcie", "PCIe contention", "another process copies to and from the GPU",
        program("gpu_copy"),
    ),
)  # fmt: skip
