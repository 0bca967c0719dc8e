"""Programs that use the first GPU, through the driver API (docs.nvidia.com/cuda/cuda-driver-api).

They need the driver alone, no toolkit and no package, so they act within a second.  They take plain
memory only, wait without spinning, and leave all settings of the GPU alone.
"""

from __future__ import annotations

import ctypes
import signal
import time
from pathlib import Path
from typing import Any

_DRIVER, _CONTROL = "libcuda.so.1", Path("/dev/nvidiactl")
_BLOCKING_SYNC = 4  # CU_CTX_SCHED_BLOCKING_SYNC
_CHUNK, _LEFT = 1 << 30, 2 << 30  # bytes of one allocation, and bytes that stay free
_COPY = 256 << 20
_THREADS, _BLOCKS, _ROUNDS = 256, 2048, 1 << 17  # some milliseconds of a large GPU
# One chain of multiply-adds a thread; the store keeps the compiler from removing it.
_SPIN = b"""
.version 6.3
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 out, .param .u32 rounds)
{
    .reg .pred %p1;
    .reg .b32 %r<3>;
    .reg .f32 %f<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %tid.x;
    cvt.rn.f32.u32 %f1, %r2;
    mov.f32 %f2, 0f3F7FFF00;
again:
    fma.rn.f32 %f1, %f1, %f2, %f2;
    fma.rn.f32 %f1, %f1, %f2, %f2;
    fma.rn.f32 %f1, %f1, %f2, %f2;
    fma.rn.f32 %f1, %f1, %f2, %f2;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd2, %rd2, %rd3;
    st.global.f32 [%rd2], %f1;
    ret;
}
"""


def no_gpu() -> str:
    """Return why this host has no GPU that CUDA could use; "" if it has one."""
    if not _CONTROL.exists():
        return "this host has no NVIDIA GPU"
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return f"the CUDA driver ({_DRIVER}) is not installed"
    return ""


class _Cuda:
    """The context of the first GPU; each call raises ``OSError`` with CUDA's error."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(_DRIVER)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxSetFlags_v2", device, _BLOCKING_SYNC)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        """Call the function ``name`` of the driver."""
        if status := getattr(self._library, name)(*arguments):
            raise OSError(f"{name} failed with CUDA error {status}")

    def memory(self, size: int, function: str = "cuMemAlloc_v2") -> ctypes.c_uint64:
        """Return the address of ``size`` bytes of the GPU, or of the host's pinned memory."""
        address = ctypes.c_uint64()
        self.call(function, ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def free_bytes(self) -> int:
        """Return the bytes that can still be allocated."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def stream(self) -> ctypes.c_void_p:
        """Return a new stream: work of several streams overlaps."""
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 0)
        return stream

    def kernel(self, code: bytes, name: bytes) -> ctypes.c_void_p:
        """Return a kernel that the driver compiles from PTX."""
        module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), code)
        self.call("cuModuleGetFunction", ctypes.byref(kernel), module, name)
        return kernel


def gpu_compute(share: str) -> None:
    """Compute on all multiprocessors for ``share`` of the time."""
    cuda = _Cuda()
    kernel, out = cuda.kernel(_SPIN, b"spin"), cuda.memory(4 * _THREADS)
    rounds = ctypes.c_uint32(_ROUNDS)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(rounds))
    grid = (_BLOCKS, 1, 1, _THREADS, 1, 1)
    while True:
        start = time.monotonic()
        cuda.call("cuLaunchKernel", kernel, *grid, 0, None, values, None)
        cuda.call("cuCtxSynchronize")
        time.sleep((time.monotonic() - start) * (1 / float(share) - 1))


def gpu_hold() -> None:
    """Hold all memory that is free, except for a small rest."""
    cuda = _Cuda()
    while cuda.free_bytes() > _LEFT + _CHUNK:
        cuda.call("cuMemsetD8_v2", cuda.memory(_CHUNK), 1, ctypes.c_size_t(_CHUNK))
    signal.pause()


def gpu_copy() -> None:
    """Copy pinned memory to the GPU and back at the same time."""
    cuda = _Cuda()
    sent, received = (cuda.memory(_COPY, "cuMemAllocHost_v2") for _ in range(2))
    source, target = (cuda.memory(_COPY) for _ in range(2))
    there, back = cuda.stream(), cuda.stream()
    size = ctypes.c_size_t(_COPY)
    while True:
        cuda.call("cuMemcpyHtoDAsync_v2", target, sent, size, there)
        cuda.call("cuMemcpyDtoHAsync_v2", received, source, size, back)
        cuda.call("cuCtxSynchronize")
