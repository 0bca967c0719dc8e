"""Access to the driver: imports pynvml on first use and classifies its errors.

Return codes are those of ``nvmlReturn_t`` (nvml.h); pynvml gives them as ``NVMLError.value``.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any

from reveal_collector.kernel_interfaces.errors import Unsupported

# pynvml is untyped: ``queries`` and ``devices`` convert what it returns.
Library = Any
Handle = Any

DRIVER = "libnvidia-ml.so.1"
_NO_PERMISSION, _NOT_LOADED, _NO_LIBRARY, _MISMATCH = 4, 9, 12, 18
# this card, driver or mode never answers the call
_UNSUPPORTED = {2, 3, _NO_PERMISSION, 13, 25, 26}
_LOST = {15, 16, 28}  # fallen off the bus, needs a reset, does not exist any more
_GONE = {1, _NOT_LOADED, _MISMATCH}  # the driver was unloaded or replaced while in use
NOT_FOUND, TIMEOUT = 6, 10

_REFUSALS = {
    _NO_PERMISSION: (
        "this process is not permitted to use the NVIDIA driver",
        "grant access to /dev/nvidiactl and /dev/nvidia*",
    ),
    _NOT_LOADED: (
        "the NVIDIA kernel driver is not loaded",
        "run modprobe nvidia; see dmesg for the reason",
    ),
    _NO_LIBRARY: (
        "no NVIDIA driver is installed (libnvidia-ml.so.1)",
        "install the driver; in a container set NVIDIA_DRIVER_CAPABILITIES=utility",
    ),
    _MISMATCH: (
        "the NVIDIA library and the kernel module have different versions",
        "reload the module or reboot, then restart the collector",
    ),
}


def load() -> Library:
    """Return the pynvml module; raises ``Unsupported`` without it or the driver's library."""
    try:
        ctypes.CDLL(DRIVER)  # first: pynvml takes 2 MB, which hosts without a driver save
    except OSError:
        raise Unsupported(*_REFUSALS[_NO_LIBRARY]) from None
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        raise Unsupported(
            "the Python package nvidia-ml-py is not installed", "pip install nvidia-ml-py"
        ) from None


def start(nvml: Library) -> None:
    """Initialize the library; raises ``Unsupported`` with the reason of the driver."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        default = (f"NVML: {error}", "run nvidia-smi for details")
        reason, remedy = _REFUSALS.get(error.value, default)
        raise Unsupported(reason, remedy) from None


def stop(nvml: Library) -> None:
    """Shut the library down."""
    try:
        nvml.nvmlShutdown()
    except nvml.NVMLError:  # the driver is gone already
        return


def is_unsupported(code: int) -> bool:
    """Return whether a code means that the call never works here."""
    return code in _UNSUPPORTED


def is_refused(code: int) -> bool:
    """Return whether a code means that this process may not use the GPU."""
    return code == _NO_PERMISSION


def is_gpu_lost(code: int) -> bool:
    """Return whether a code means that the GPU does not answer any more."""
    return code in _LOST


def is_driver_gone(code: int) -> bool:
    """Return whether a code means that the whole driver is gone."""
    return code in _GONE


def address(handle: Handle) -> int | None:
    """Return the address of a handle: pynvml creates a new pointer to a GPU each time."""
    return ctypes.cast(handle, ctypes.c_void_p).value


def text(value: str | bytes) -> str:
    """Return a pynvml string; older versions give bytes."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
