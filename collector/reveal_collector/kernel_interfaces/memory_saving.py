"""Functions that reduce the memory of a collector, which shares its node with the jobs.

glibc's allocator keeps one arena for each thread and never returns the memory that the start-up
needed.  Both are tunable (mallopt(3), malloc_trim(3)).  Other C libraries have no such calls.

Some modules of the standard library import others that they rarely need.  ``dataclasses`` needs
``inspect`` for the docstring of a class without one (all classes here have one), ``logging``
needs ``traceback`` for exceptions, ``urllib.parse`` needs ``ipaddress`` for addresses in brackets.
With their own imports these modules take 1.4 MB: they are loaded at the first use.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from importlib import import_module
from threading import Lock
from types import ModuleType

from reveal_contract.runtime.malloc_trim import give_back

_REPLACING = Lock()
_RARELY_NEEDED = ("inspect", "traceback", "ipaddress")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # malloc.h
_KEPT_FREE = 64 << 10  # bytes kept at the end of the heap; more is returned to the kernel
_OWN_PAGES = 64 << 10  # blocks of this size and larger are mapped, and unmapped when freed
# The buffer of one read.  A buffer of _OWN_PAGES would be mapped and unmapped for each read.
READ_SIZE = _OWN_PAGES // 2


def defer_rare_imports() -> None:
    """Replace rarely needed modules by lazy ones; call this before ``dataclasses`` is imported.

    It changes ``sys.modules``, so call it only in a process of the collector's own.
    """
    for name in _RARELY_NEEDED:
        if name not in sys.modules:
            sys.modules[name] = _lazy_module(name)


def _lazy_module(name: str) -> ModuleType:
    """Return a proxy that the real module replaces at the first attribute access (PEP 562)."""
    proxy = ModuleType(name)

    def load_attribute(attribute: str) -> object:
        with _REPLACING:
            if sys.modules.get(name) is proxy:
                del sys.modules[name]
        return getattr(import_module(name), attribute)

    proxy.__dict__["__getattr__"] = load_attribute
    return proxy


def limit_allocator() -> None:
    """Let all threads share one malloc arena; call this before any thread is started."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_FREE)
        mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES)


def release_startup_memory() -> None:
    """Free the garbage of the start-up; exclude the remaining objects from later collections."""
    gc.collect()
    gc.freeze()
    give_back()
