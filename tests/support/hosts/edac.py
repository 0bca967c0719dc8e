"""Memory controllers that report their errors, in the three shapes kernels give them."""

from __future__ import annotations

from support.hosts.tree import Tree

_ROOT = "sys/devices/system/edac/mc"


def add_edac(
    tree: Tree,
    controllers: int = 2,
    modules: int = 4,
    shape: str = "dimm",
    labels: bool = True,
    driver: str = "i10nm_edac",
) -> None:
    """``shape``: ``dimm``, ``rank`` (drivers that see no sockets) or ``csrow`` (old kernels).

    With firmware first there is one controller, ``ghes_edac``, that has all modules.
    """
    for controller in range(controllers):
        folder = f"{_ROOT}/mc{controller}"
        tree.write(f"{folder}/mc_name", f"{driver}\n")
        tree.write(f"{folder}/size_mb", 16_384 * modules)
        tree.write(f"{folder}/seconds_since_reset", 86_400)
        for name in ("ce_count", "ue_count", "ce_noinfo_count", "ue_noinfo_count"):
            tree.write(f"{folder}/{name}", 0)
        for module in range(modules):
            label = f"CPU_SrcID#{controller}_MC#0_Chan#{module}_DIMM#0" if labels else ""
            _module(tree, folder, module, shape, label)


def _module(tree: Tree, folder: str, number: int, shape: str, label: str) -> None:
    if shape == "csrow":
        row = f"{folder}/csrow{number}"
        tree.write(f"{row}/ue_count", 0)
        tree.write(f"{row}/ce_count", 0)
        for lane in range(2):
            tree.write(f"{row}/ch{lane}_ce_count", 0)
            tree.write(f"{row}/ch{lane}_dimm_label", label + "\n")
        return
    module = f"{folder}/{shape}{number}"
    tree.write(f"{module}/dimm_label", label + "\n")
    tree.write(f"{module}/dimm_location", f"channel {number} slot 0\n")
    for name in ("dimm_ce_count", "dimm_ue_count"):
        tree.write(f"{module}/{name}", 0)
