r"""Names that this project did not choose: cgroups, interfaces, disks, processes, mounts.

For the kernel a name is bytes; anyone who may create a cgroup chooses them.  Inside the collector a
name keeps its bytes (``os.fsdecode``: a byte that is no UTF-8 is a lone surrogate), so that the
kernel can be asked with it again.  ``printable`` is the form in which a name leaves the collector.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from typing import Any

_BYTES = range(0xDC80, 0xDD00)  # lone surrogates of os.fsdecode, 0xDC00 above their bytes


def printable(name: str) -> str:
    r"""Return a name that can be encoded and displayed on one line.

    A printable name stays as it is.  In any other, each byte that is no UTF-8 and each ASCII
    control character becomes ``\xff``, and any other unprintable character ``\u2028`` or
    ``\U000e0001``.  So names that differ stay different, unless one of them contains the escape
    itself.
    """
    if name.isprintable():  # almost always: the only cost of a normal name
        return name
    return "".join(each if each.isprintable() else _escape(ord(each)) for each in _joined(name))


def make_printable(record: object, fields: Iterable[str]) -> None:
    """Make texts of a frozen dataclass printable, in its ``__post_init__``."""
    for field in fields:
        text = getattr(record, field)
        if not text.isprintable():
            object.__setattr__(record, field, printable(text))


class PrintableRecord:
    """A frozen dataclass all of whose texts and lists of texts are printable."""

    __slots__ = ()

    def __post_init__(self) -> None:
        kind: Any = type(self)
        texts, lists = _text_fields(kind)
        make_printable(self, texts)
        for name in lists:
            found = getattr(self, name)
            if not all(map(str.isprintable, found)):
                object.__setattr__(self, name, tuple(map(printable, found)))


@cache
def _text_fields(kind: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of a dataclass' texts, and of its lists of texts."""
    by_type = {spec.name: spec.type for spec in fields(kind)}
    texts = tuple(name for name, type_ in by_type.items() if type_ == "str")
    return texts, tuple(name for name, type_ in by_type.items() if type_ == "tuple[str, ...]")


def _joined(name: str) -> str:
    """Return the characters whose bytes were decoded separately; such a name is read as ASCII."""
    try:
        return name.encode(errors="surrogateescape").decode(errors="surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return name


def _escape(code: int) -> str:
    if code < 0x80:
        return f"\\x{code:02x}"
    if code in _BYTES:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
