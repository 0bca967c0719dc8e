"""Chips of /sys/class/hwmon (hwmon/sysfs-interface.rst): CPUs, drives, modules, power meters."""

from __future__ import annotations

from collections.abc import Mapping

from support.hosts.machine import Machine
from support.hosts.tree import Content, Moving, Tree, swinging

_CLASS = "sys/class/hwmon"


def add_chip(
    tree: Tree,
    device: str,
    name: str,
    files: Mapping[str, Content | Moving],
    in_device: bool = False,
) -> str:
    """A chip below ``devices/{device}``; drivers get hwmonN in the order in which they load.

    ``in_device``: the attributes are the device's own, as with drivers of the old kind.
    """
    number = sum(1 for _ in (tree.root / _CLASS).glob("hwmon*"))
    folder = f"devices/{device}/hwmon/hwmon{number}"
    tree.write(f"sys/{folder}/name", f"{name}\n")
    for file, content in files.items():
        target = f"devices/{device}" if in_device else folder
        tree.write(f"sys/{target}/{file}", content)
    tree.link(f"sys/{folder}/device", "../..")
    tree.link(f"{_CLASS}/hwmon{number}", f"../../{folder}")
    return f"sys/{folder}"


def add_coretemp(tree: Tree, machine: Machine) -> None:
    """One chip a package: its own sensor first, then one a core; millidegrees."""
    per_socket = machine.cores // machine.sockets
    for socket in range(machine.sockets):
        files: dict[str, Content | Moving] = {
            "temp1_label": f"Package id {socket}\n",
            "temp1_input": swinging(60_000 + 1000 * socket, 2000),
            "temp1_max": 95_000,
            "temp1_crit": 105_000,
            "temp1_crit_alarm": 0,
        }
        for core in range(per_socket):
            files[f"temp{core + 2}_label"] = f"Core {core}\n"
            files[f"temp{core + 2}_input"] = swinging(50_000 + 100 * core, 1000)
        add_chip(tree, f"platform/coretemp.{socket}", "coretemp", files)


def add_k10temp(tree: Tree, sockets: int = 1, dies: int = 8, offset: int = 0) -> None:
    """One chip a package; with an ``offset`` (millidegrees) of Tctl the kernel has Tdie, too."""
    for socket in range(sockets):
        files: dict[str, Content | Moving] = {
            "temp1_label": "Tctl\n",
            "temp1_input": swinging(55_000 + 1000 * socket + offset, 2000),
        }
        if offset:
            files["temp2_label"] = "Tdie\n"
            files["temp2_input"] = swinging(55_000 + 1000 * socket, 2000)
        for die in range(dies):
            files[f"temp{die + 3}_label"] = f"Tccd{die + 1}\n"
            files[f"temp{die + 3}_input"] = 48_000 + 250 * die
        add_chip(tree, f"pci0000:00/0000:00:{0x18 + socket:02x}.3", "k10temp", files)


def add_nvme_sensor(tree: Tree, pci: str, name: str) -> None:
    files: dict[str, Content | Moving] = {
        "temp1_label": "Composite\n",
        "temp1_input": 38_850,
        "temp1_crit": 84_850,
        "temp1_alarm": 0,
    }
    add_chip(tree, f"pci0000:00/{pci}/nvme/{name}", "nvme", files)


def add_nic_sensor(tree: Tree, pci: str) -> None:
    files: dict[str, Content | Moving] = {
        "temp1_label": "asic\n",
        "temp1_input": 61_000,
        "temp1_crit": 105_000,
        "temp2_label": "Module0\n",
        "temp2_input": 43_000,
    }
    add_chip(tree, f"pci0000:00/{pci}", "mlx5", files)


def add_power_meters(tree: Tree, sockets: int = 1) -> None:
    """ACPI power meters of NVIDIA Grace: module, CPU and SoC I/O of each socket; microwatts."""
    parts = (("Module Power", 380), ("Grace Power", 250), ("CPU Power", 180), ("SysIO Power", 40))
    for socket in range(sockets):
        for index, (label, watts) in enumerate(parts):
            files: dict[str, Content | Moving] = {
                "power1_average": swinging(watts * 1_000_000, 5_000_000),
                "power1_average_interval": 50,
                "power1_oem_info": f"{label} Socket {socket}\n",
            }
            device = f"LNXSYSTM:00/LNXSYBUS:00/ACPI000D:{socket * len(parts) + index:02x}"
            add_chip(tree, device, "power_meter", files, in_device=True)
