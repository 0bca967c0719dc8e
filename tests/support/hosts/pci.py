"""PCIe devices with their links and error counters, below ports where there are any."""

from __future__ import annotations

from dataclasses import dataclass

from support.hosts.tree import Tree

GPU, DISPLAY, NETWORK, INFINIBAND, NVME = "0x030200", "0x030000", "0x020000", "0x020700", "0x010802"
_BRIDGE = "0x060400"
_COLUMNS = {
    "correctable": ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr",
                    "CorrIntErr", "HeaderOF"),
    "fatal": ("Undefined", "DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt",
              "RxOF", "MalfTLP", "ECRC", "UnsupReq", "ACSViol", "UncorrIntErr", "BlockedTLP",
              "AtomicOpBlocked", "TLPBlockedErr", "PoisonTLPBlocked"),
}  # fmt: skip
_COLUMNS["nonfatal"] = _COLUMNS["fatal"]
_TOTALS = {"correctable": "COR", "fatal": "FATAL", "nonfatal": "NONFATAL"}
# how Linux 4.19 wrote them
_LONG = {"RxErr": "Receiver Error", "BadTLP": "Bad TLP", "BadDLLP": "Bad DLLP",
         "Rollover": "RELAY_NUM Rollover", "Timeout": "Replay Timer Timeout"}  # fmt: skip


@dataclass(frozen=True)
class Function:
    """One function of a card; ``port`` is the address of what it is plugged into."""

    address: str
    code: str = GPU
    driver: str = "nvidia"
    speed: str = "32.0 GT/s PCIe"
    width: int = 16
    most_speed: str = "32.0 GT/s PCIe"
    most_width: int = 16
    port: str = ""
    numa: int = 0
    errors: bool = True
    vendor: str = "0x10de"

    @property
    def folder(self) -> str:
        """Its folder: below its port, or right below its bus."""
        if self.port:
            return f"sys/devices/pci{self.port[:7]}/{self.port}/{self.address}"
        return f"sys/devices/pci{self.address[:7]}/{self.address}"


def add_function(tree: Tree, card: Function) -> str:
    """A function and, where it has one, its port; gives the function's folder."""
    if card.port:
        above = f"sys/devices/pci{card.port[:7]}/{card.port}"
        _common(tree, above, _BRIDGE, "pcieport", card.numa)
        _link(tree, above, card, 16)
        if card.errors:
            add_errors(tree, above)
    _common(tree, card.folder, card.code, card.driver, card.numa)
    tree.write(f"{card.folder}/vendor", card.vendor + "\n")
    _link(tree, card.folder, card, card.most_width)
    if card.errors:
        add_errors(tree, card.folder)
    return card.folder


def add_errors(tree: Tree, folder: str, long_names: bool = False, **counts: int) -> None:
    """The AER files of a device: counts by the kernel's name, of whichever file has it."""
    for severity, names in _COLUMNS.items():
        rows = [(_LONG.get(name, name) if long_names else name, counts.get(name, 0))
                 for name in names]  # fmt: skip
        total = f"TOTAL_ERR_{_TOTALS[severity]} {sum(count for _, count in rows)}"
        lines = [f"{name} {count}" for name, count in rows]
        tree.write(f"{folder}/aer_dev_{severity}", "\n".join([*lines, total, ""]))


def _common(tree: Tree, folder: str, code: str, driver: str, numa: int) -> None:
    address = folder.rpartition("/")[2]
    tree.write(f"{folder}/class", code + "\n")
    tree.write(f"{folder}/numa_node", numa)
    tree.write(f"{folder}/uevent", f"DRIVER={driver}\nPCI_SLOT_NAME={address}\n")
    tree.folder(f"sys/bus/pci/drivers/{driver}")
    up = "../" * folder.count("/")
    tree.link(f"{folder}/driver", f"{up}bus/pci/drivers/{driver}")
    tree.link(f"sys/bus/pci/devices/{address}", "../../../" + folder.removeprefix("sys/"))


def _link(tree: Tree, folder: str, card: Function, most_width: int) -> None:
    tree.write(f"{folder}/current_link_speed", card.speed + "\n")
    tree.write(f"{folder}/current_link_width", card.width)
    tree.write(f"{folder}/max_link_speed", card.most_speed + "\n")
    tree.write(f"{folder}/max_link_width", most_width)
