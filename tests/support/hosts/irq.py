"""Where interrupts are served and may be: /proc/irq, /sys/kernel/irq, a device's msi_irqs."""

from __future__ import annotations

from collections.abc import Sequence

from support.hosts.machine import mask, ranges
from support.hosts.tree import Tree


def add_vectors(
    tree: Tree,
    pci: str,
    first: int,
    served: Sequence[int],
    allowed: Sequence[int] | None = None,
    idle: int = 0,
) -> None:
    """Vectors from ``first`` on, one for each CPU in ``served``, and ``idle`` ones never requested.

    ``allowed`` is the mask of each; without one only the CPU that serves it.
    """
    folder = f"sys/bus/pci/devices/{pci}/msi_irqs"
    for index, cpu in enumerate(served):
        number = first + index
        cpus = [cpu] if allowed is None else allowed
        tree.write(f"{folder}/{number}", "msix\n")
        tree.write(f"sys/kernel/irq/{number}/actions", f"queue{index}@pci:{pci}\n")
        tree.write(f"proc/irq/{number}/effective_affinity_list", f"{cpu}\n")
        tree.write(f"proc/irq/{number}/smp_affinity_list", ranges(cpus) + "\n")
        tree.write(f"proc/irq/{number}/smp_affinity", mask(cpus) + "\n")
        tree.write(f"proc/irq/{number}/node", 0)
    for number in range(first + len(served), first + len(served) + idle):
        tree.write(f"{folder}/{number}", "msix\n")
        tree.write(f"sys/kernel/irq/{number}/actions", "\n")
        tree.write(f"proc/irq/{number}/effective_affinity_list", "\n")
        tree.write(f"proc/irq/{number}/smp_affinity_list", "0\n")
