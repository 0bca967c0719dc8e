"""A libnvidia-ml.so.1 without a GPU, loaded by the real pynvml: built here, scripted by a file."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ctypes import CDLL
from pathlib import Path
from typing import Any

import pytest

SCRIPT = "REVEAL_FAKE_NVML"
GIB = 1 << 30
_SOURCE = Path(__file__).with_name("nvml.c")
# per link and for all: ids of nvml.h
_LINKS = 18
TX, RX, ALL_LINKS = 138, 139, 0xFFFF_FFFF


def build(folder: Path) -> Path:
    """The library, as a file of the driver's name in ``folder``; skips without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the fake driver library with")
    library = folder / "libnvidia-ml.so.1"
    # no soname: where the machine has the driver too, the loader must not take one for the other
    subprocess.run(
        [compiler, "-std=gnu11", "-O1", "-shared", "-fPIC", "-pthread", "-o", library, _SOURCE],
        check=True,
    )
    return library


@contextmanager
def loaded(library: Path, script: Path) -> Iterator[Any]:
    """pynvml with this library for the driver's."""
    import pynvml

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SCRIPT, str(script))
        patch.setattr("reveal_collector.nvml.library.DRIVER", str(library))
        patch.setattr(pynvml, "nvmlLib", CDLL(str(library)))
        patch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        yield pynvml


class Script:
    """What the fake driver answers: keys as nvml.c describes them."""

    def __init__(self, path: Path, answers: Mapping[str, object]) -> None:
        self.path = path
        self.answers = dict(answers)
        self.write()

    def set(self, **answers: object) -> None:
        """Keys with ``__`` for a dot and ``gN__`` for a GPU; ``None`` takes one away."""
        self.change({_key(name): value for name, value in answers.items()})

    def change(self, answers: Mapping[str, object]) -> None:
        self.answers |= answers
        self.answers = {key: value for key, value in self.answers.items() if value is not None}
        self.write()

    def write(self) -> None:
        text = "".join(f"{key} {value}\n" for key, value in self.answers.items())
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self.path)


def _key(name: str) -> str:
    parts = name.split("__")
    if parts[0][:1] == "g" and parts[0][1:].isdigit():
        parts[0] = parts[0][1:]
    return ".".join(parts)


def hgx_h100(gpus: int = 8) -> dict[str, object]:
    """A board of H100 SXM: no fans, 18 NVLinks, errors by link, GPM."""
    answers: dict[str, object] = {"gpus": gpus}
    for n in range(gpus):
        answers |= {f"{n}.{key}": value for key, value in _h100(n).items()}
    return answers


def _h100(n: int) -> dict[str, object]:
    fields = {
        186: 412_000 + n, 83: 9_000_000 + n, 82: 71, 3: 0, 4: 0, 5: 2, 6: 0, 94: 1, 173: 0,
        179: 0, 180: 0, 230: 0, 74: 5_000_000, 75: 0, 76: 0, 77: 0, 79: 0, 142: 0, 143: 0,
        144: 0, 145: 0, f"{TX}.{ALL_LINKS}": 4096 + n,
        f"{RX}.{ALL_LINKS}": 8192 + n,
    }  # fmt: skip
    for link in range(_LINKS):
        suffix = f".{link}" if link else ""
        fields |= {f"161{suffix}": 0, f"162{suffix}": 0, f"163{suffix}": link == 3}
    figures: dict[str, object] = {
        "uuid": f"GPU-{n:08x}-0000-0000-0000-000000000000",
        "name": "NVIDIA H100 80GB HBM3",
        "bus": f"00000000:{0x19 + 0x11 * n:02X}:00.0",
        "mig": 0, "utilization": 90 + n, "utilization.memory": 40, "memory.total": 80 * GIB,
        "memory.used": 60 * GIB, "clock.1": 1980, "clock.2": 2619, "clock_maximum.1": 1980,
        "clock_maximum.2": 2619, "temperature.0": 55, "threshold.0": 92, "threshold.1": 89,
        "reasons": "0x4", "power.limit": 700_000, "performance_state": 0, "encoder": 0,
        "decoder": 0, "pcie.generation": 5, "pcie.generation_maximum": 5, "pcie.width": 16,
        "pcie.width_maximum": 16, "pcie.bytes.0": 1200, "pcie.bytes.1": 3400, "gpm": 1,
        "gpm.2": 87.5, "gpm.3": 41.25, "gpm.5": 63.0, "gpm.10": 55.5,
        "busy.0": "0 1 0",
    }  # fmt: skip
    figures |= {f"nvlink.{link}": 1 for link in range(_LINKS)}
    return figures | {f"field.{key}": int(value) for key, value in fields.items()}


def old_card() -> dict[str, object]:
    """One Kepler card: no field values, no energy, pages retired by call, a fan."""
    return {
        "gpus": 1, "0.uuid": "GPU-0ld", "0.name": "Tesla K80", "0.bus": "0000:05:00.0",
        "0.call.nvmlDeviceGetFieldValues": 3, "call.nvmlDeviceGetMemoryInfo_v2": 13,
        "0.utilization": 12, "0.utilization.memory": 3, "0.memory.total": 12 * GIB,
        "0.memory.used": GIB, "0.power": 61_000, "0.clock.1": 562, "0.clock.2": 2505,
        "0.temperature.0": 44, "0.reasons": "0x1", "0.fan": 31, "0.pcie.replays": 0,
    }  # fmt: skip


def partitioned(*instances: int) -> dict[str, object]:
    """One H100 in MIG mode with a compute instance for each GPU instance given."""
    answers = hgx_h100(1) | {"0.mig": 1}
    for key in ("0.utilization", "0.busy.0", "0.encoder", "0.decoder"):
        del answers[key]  # not available of the whole while it is cut up
    for index, instance in enumerate(instances):
        part = f"0.mig.{index}"
        answers |= {
            f"{part}.uuid": f"MIG-{instance:04d}", f"{part}.name": "NVIDIA H100 MIG 1g.10gb",
            f"{part}.gpu_instance": instance, f"{part}.compute_instance": 0,
            f"{part}.memory.total": 10 * GIB, f"{part}.memory.used": instance * GIB,
            f"0.gi.{instance}.gpm.2": 10.5 * index, f"0.gi.{instance}.gpm.3": 5.0,
        }  # fmt: skip
    return answers
