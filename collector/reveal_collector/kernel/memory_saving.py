"""Memory given back: a collector shares its node with what the node is there for.

glibc's allocator keeps an arena a thread and never returns what start-up needed; both are
tunable (mallopt(3), malloc_trim(3)).  Other C libraries lack the calls and are left alone.

Some modules of the standard library import others that they seldom need: ``dataclasses`` asks
``inspect`` for the docstring of a class without one (ours all have theirs), ``logging`` asks
``traceback`` how an error came, ``urllib.parse`` asks ``ipaddress`` of an address in brackets.
With what these import they are 1.4 MB: they are loaded with the first question.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from importlib import import_module
from threading import Lock
from types import ModuleType

from reveal_contract.runtime.malloc_trim import give_back

_STEPPING_ASIDE = Lock()
_SELDOM_ASKED = ("inspect", "traceback", "ipaddress")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # malloc.h
_KEPT_FREE = 64 << 10  # bytes at the heap's end; more goes back to the kernel
_OWN_PAGES = 64 << 10  # blocks from this size on are mapped, and unmapped when freed
# The buffer of one read: of _OWN_PAGES, each read would map it, fault, shrink and unmap it.
READ_SIZE = _OWN_PAGES // 2


def defer_rare_imports() -> None:
    """To be called before ``dataclasses`` is imported, in a process of our own."""
    for name in _SELDOM_ASKED:
        if name not in sys.modules:
            sys.modules[name] = _loaded_when_asked(name)


def _loaded_when_asked(name: str) -> ModuleType:
    """A module that becomes the one it stands for with the first question (PEP 562)."""
    stand_in = ModuleType(name)

    def answer(attribute: str) -> object:
        with _STEPPING_ASIDE:
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]
        return getattr(import_module(name), attribute)

    stand_in.__dict__["__getattr__"] = answer
    return stand_in


def limit_allocator() -> None:
    """To be called first: the threads started later share one arena."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_FREE)
        mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES)


def release_startup_memory() -> None:
    """Once all is running: start-up's garbage goes, what is left is never walked again."""
    gc.collect()
    gc.freeze()
    give_back()
