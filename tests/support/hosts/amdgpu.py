"""AMD GPUs by the files of the amdgpu driver."""

from __future__ import annotations

from support.hosts.pci import Function, add_function
from support.hosts.tree import Tree, rising, swinging

_GIB = 1 << 30


def add_amd_gpu(
    tree: Tree,
    card: int = 0,
    address: str = "0000:c1:00.0",
    port: str = "",
    memory: int = 192 * _GIB,
    instinct: bool = True,
) -> str:
    """A data-centre card, or one that draws a picture and has fewer sensors; gives its folder."""
    path = add_function(tree, Function(address, "0x038000", "amdgpu", port=port, vendor="0x1002"))
    tree.link(f"sys/class/drm/card{card}", f"../../{path.removeprefix('sys/')}/drm/card{card}")
    tree.link(f"{path}/drm/card{card}/device", "../..")
    tree.folder(f"{path}/drm/renderD{128 + card}")
    tree.write(f"{path}/power/runtime_status", "active\n")
    tree.write(f"{path}/gpu_busy_percent", swinging(90, 8))
    tree.write(f"{path}/mem_busy_percent", swinging(40, 10))
    tree.write(f"{path}/mem_info_vram_total", memory)
    tree.write(f"{path}/mem_info_vram_used", swinging(memory // 2, memory // 64))
    tree.write(f"{path}/pcie_replay_count", 0)
    tree.write(f"{path}/pp_dpm_sclk", "0: 132Mhz\n1: 1700Mhz *\n2: 2100Mhz\n")
    tree.write(f"{path}/pp_dpm_mclk", "0: 900Mhz\n1: 1300Mhz *\n")
    sensors = f"{path}/hwmon/hwmon{card + 3}"
    tree.write(f"{sensors}/name", "amdgpu\n")
    if instinct:
        tree.write(f"{sensors}/power1_cap", 750_000_000)
        tree.write(f"{sensors}/power1_input", swinging(600_000_000, 40_000_000))
        for number, label in enumerate(("junction", "mem"), 2):
            tree.write(f"{sensors}/temp{number}_label", label + "\n")
            tree.write(f"{sensors}/temp{number}_input", 61_000 + 1000 * number)
        for block in ("umc", "gfx", "xgmi_wafl"):
            tree.write(f"{path}/ras/{block}_err_count", "ue: 0\nce: 0\n")
        tree.write(f"{path}/ras/features", "feature mask: 0x7\n")
    else:
        tree.write(f"{sensors}/power1_average", swinging(90_000_000, 5_000_000))
        tree.write(f"{sensors}/freq1_label", "sclk\n")
        tree.write(f"{sensors}/freq1_input", rising(0, 2_100_000_000))
        tree.write(f"{sensors}/temp1_label", "edge\n")
        tree.write(f"{sensors}/temp1_input", 54_000)
    return path
