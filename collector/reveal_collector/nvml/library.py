"""The edge to the driver: pynvml imported when first asked for, its errors sorted.

Return codes are those of ``nvmlReturn_t`` (nvml.h); pynvml carries them as ``NVMLError.value``.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any

from reveal_collector.kernel.errors import Unsupported

# pynvml as a module is untyped; what it returns is taken apart in ``queries`` and ``devices``
Library = Any
Handle = Any

DRIVER = "libnvidia-ml.so.1"
_NO_PERMISSION, _NOT_LOADED, _NO_LIBRARY, _MISMATCH = 4, 9, 12, 18
# what this card, driver or mode never gives: learned once
_ABSENT = {2, 3, _NO_PERMISSION, 13, 25, 26}
_LOST = {15, 16, 28}  # fallen off the bus, needs a reset, not there any more
_GONE = {1, _NOT_LOADED, _MISMATCH}  # the driver was unloaded or replaced below us
NOT_FOUND, TIMEOUT = 6, 10

_REFUSALS = {
    _NO_PERMISSION: (
        "the NVIDIA driver may not be used by this process",
        "give it access to /dev/nvidiactl and /dev/nvidia*",
    ),
    _NOT_LOADED: (
        "the NVIDIA kernel driver is not loaded",
        "modprobe nvidia; dmesg says why it is not",
    ),
    _NO_LIBRARY: (
        "no NVIDIA driver is installed (libnvidia-ml.so.1)",
        "install the driver; in a container set NVIDIA_DRIVER_CAPABILITIES=utility",
    ),
    _MISMATCH: (
        "the NVIDIA driver's library and its kernel module are of different versions",
        "reload the module or reboot, then restart the collector",
    ),
}


def load() -> Library:
    """The pynvml module; raises ``Unsupported`` where it or the driver's library is not there."""
    try:
        ctypes.CDLL(DRIVER)  # asked first: the module takes 2 MB, in vain on most hosts
    except OSError:
        raise Unsupported(*_REFUSALS[_NO_LIBRARY]) from None
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        raise Unsupported(
            "the Python package nvidia-ml-py is not installed", "pip install nvidia-ml-py"
        ) from None


def start(nvml: Library) -> None:
    """Initialise the library; raises ``Unsupported`` with the driver's reason."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        reason, remedy = _REFUSALS.get(error.value, (f"NVML: {error}", "nvidia-smi says more"))
        raise Unsupported(reason, remedy) from None


def stop(nvml: Library) -> None:
    """Give the library back; one that is gone already is no error."""
    try:
        nvml.nvmlShutdown()
    except nvml.NVMLError:
        return


def is_absent(code: int) -> bool:
    """Whether a return code says "never here" rather than "not now"."""
    return code in _ABSENT


def is_lost(code: int) -> bool:
    """Whether a return code says that the GPU does not answer any more."""
    return code in _LOST


def is_gone(code: int) -> bool:
    """Whether a return code says that the whole driver is not there any more."""
    return code in _GONE


def address(handle: Handle) -> int | None:
    """What tells handles apart: pynvml makes a new pointer of the same GPU each time."""
    return ctypes.cast(handle, ctypes.c_void_p).value


def text(value: str | bytes) -> str:
    """A string of pynvml, whose older versions give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
