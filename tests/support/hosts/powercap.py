"""RAPL zones of powercap (power/powercap/powercap.rst)."""

from __future__ import annotations

from support.hosts.tree import Moving, Tree

_DEVICES = "devices/virtual/powercap"
RANGE = 262_143_328_850  # microjoules, as a Xeon says


def add_powercap(
    tree: Tree, sockets: int = 1, dram: bool = True, watts: float = 200.0, start: int = 0
) -> None:
    """``start``: microjoules at first; near ``RANGE`` the counters wrap soon."""
    _control(tree, "intel-rapl")
    for socket in range(sockets):
        zone = f"intel-rapl/intel-rapl:{socket}"
        _zone(tree, zone, f"package-{socket}", wrapping(watts, start + socket))
        if dram:
            _zone(tree, f"{zone}/intel-rapl:{socket}:0", "dram", wrapping(watts / 10, start))


def add_zone(tree: Tree, zone: str, name: str, watts: float) -> None:
    """A zone of this name, ``intel-rapl:0`` or ``intel-rapl:0:0``."""
    _zone(tree, f"intel-rapl/{zone}", name, wrapping(watts))


def add_mmio_zone(tree: Tree, watts: float = 200.0) -> None:
    """The same package's energy once more, by another door: laptops and some Xeons."""
    _control(tree, "intel-rapl-mmio")
    _zone(tree, "intel-rapl-mmio/intel-rapl-mmio:0", "package-0", wrapping(watts))


def wrapping(watts: float, start: int = 0) -> Moving:
    return lambda now: f"{(start + int(watts * 1000 * now.work)) % (RANGE + 1)}\n"


def _control(tree: Tree, name: str) -> None:
    tree.write(f"sys/{_DEVICES}/{name}/enabled", 1)
    tree.link(f"sys/class/powercap/{name}", f"../../{_DEVICES}/{name}")


def _zone(tree: Tree, path: str, name: str, energy: Moving) -> None:
    folder = f"sys/{_DEVICES}/{path}"
    tree.write(f"{folder}/name", f"{name}\n")
    tree.write(f"{folder}/enabled", 1)
    tree.write(f"{folder}/max_energy_range_uj", RANGE)
    tree.write(f"{folder}/energy_uj", energy)
    tree.link(f"sys/class/powercap/{path.rpartition('/')[2]}", f"../../{_DEVICES}/{path}")
