"""Plans in the form of the native scanner: flat arrays and the structs of ``scan.h``."""

from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Iterable, Sequence
from ctypes import Structure, c_int32, c_void_p

from reveal_collector.readers.plan import (
    AS_READ,
    Columns,
    FileScan,
    MatrixPlan,
    MemoryPlan,
    SumPlan,
    TextForm,
    TokenPlan,
)

_TOKENS, _MATRIX, _MEMORY, _SUMS = 0, 1, 2, 3
_SKIPPED, _FIRST_WATCHED = -1, -2
_AS_VALUES = -1
_ROOM = 512  # spare bytes: a text grows with its numbers
_WORD = 8  # bytes that the scanner compares at once


# Addresses are plain integers: a ctypes pointer would be an object of 150 bytes for each.


class Lists(Structure):
    """``struct lists``."""

    _fields_ = [("ends", c_void_p), ("items", c_void_p), ("count", c_int32)]


class Strings(Structure):
    """``struct strings``."""

    _fields_ = [("ends", c_void_p), ("bytes", c_void_p), ("count", c_int32)]


class CForm(Structure):
    """``struct form``."""

    _fields_ = [
        ("keep", c_void_p),
        ("keep_length", c_int32),
        ("base", c_int32),
        ("ends", c_int32),
        ("truncate", Strings),
        ("translate", c_void_p),
    ]


class CMatrixRow(Structure):
    """``struct matrix_row``."""

    _fields_ = [("counts", c_int32), ("by_column", c_int32), ("required", c_int32)]


class CFile(Structure):
    """``struct file``."""

    _fields_ = [
        ("fd", c_int32),
        ("kind", c_int32),
        ("slot", c_int32),
        ("owner", c_int32),
        ("gate", c_int32),
        ("leads", c_int32),
        ("column", c_int32),
        ("tokens", c_int32),
        ("values", c_int32),
        ("width", c_int32),
        ("ops", c_void_p),
        ("watched", Strings),
        ("rows", c_void_p),
        ("memory", c_void_p),
        ("form", CForm),
        ("weights", c_void_p),
        ("sums", Lists),
        ("elements", Lists),
        ("vectors", c_void_p),
        ("labels", c_void_p),
        ("vector_count", c_int32),
        ("capacity", c_int32),
    ]


class CShape(Structure):
    """``struct shape``."""

    _fields_ = [
        ("fast", c_int32),
        ("slow", c_int32),
        ("owners", c_int32),
        ("fast_owners", c_int32),
        ("gates", c_int32),
        ("quiet", c_int32),
        ("back_off", c_int32),
    ]


class Packer:
    """Fills structs; the memory they refer to, and the files, live until ``close``.

    Descriptors are duplicated.  If a source closes its descriptor and another file gets the same
    number, the scanner must not read that file.
    """

    def __init__(self) -> None:
        self._kept: list[object] = []
        self._fds: list[int] = []

    def close(self) -> None:
        """Close the duplicated descriptors."""
        for fd in self._fds:
            os.close(fd)
        self._fds = []

    def file(self, scan: FileScan, room: int = 1) -> CFile:
        """Return the struct of a file without its position in the table.

        ``room`` is a factor of the space for its text.
        """
        packed = CFile(
            fd=self._duplicate(scan.fd), capacity=room * (2 * scan.length + _ROOM), gate=-1
        )
        plan = scan.plan
        packed.width = plan.width
        if isinstance(plan, MemoryPlan):
            # an array with an exported buffer cannot move
            self._kept.append(memoryview(plan.values))
            packed.kind, packed.memory = _MEMORY, plan.values.buffer_info()[0]
            return packed
        if isinstance(plan, SumPlan):
            packed.kind, packed.values = _SUMS, len(plan.keys)
            packed.tokens = len(plan.devices)
            packed.watched = self._strings((*plan.keys, *plan.devices, *plan.ignored))
            packed.form, packed.memory = self._form(plan.form), self._long_ints(plan.offsets)
            self._columns(packed, AS_READ)
            return packed
        if isinstance(plan, MatrixPlan):
            self._matrix(packed, plan)
        else:
            self._tokens(packed, plan)
        self._columns(packed, plan.columns)
        return packed

    def _duplicate(self, fd: int) -> int:
        try:
            duplicate = os.dup(fd)
        except OSError:  # closed meanwhile: the scanner reports the failed read
            return -1
        self._fds.append(duplicate)
        return duplicate

    def _tokens(self, packed: CFile, plan: TokenPlan) -> None:
        ops = [_SKIPPED] * plan.count
        for value, position in enumerate(plan.picks):
            ops[position] = value
        for number, (position, _) in enumerate(plan.watched):
            ops[position] = _FIRST_WATCHED - number
        packed.kind, packed.tokens, packed.values = _TOKENS, plan.count, len(plan.picks)
        packed.ops = self._ints(ops)
        packed.watched = self._strings(text for _, text in plan.watched)
        packed.form = self._form(plan.form)

    def _matrix(self, packed: CFile, plan: MatrixPlan) -> None:
        packed.kind, packed.tokens = _MATRIX, len(plan.rows)
        packed.values = len(plan.rows) + plan.wide
        texts = [plan.header]
        rows = (CMatrixRow * max(len(plan.rows), 1))()
        for into, row in zip(rows, plan.rows, strict=False):
            texts += [row.head, row.rest]
            into.counts = row.counts
            into.by_column = row.counts == plan.wide and not row.repeats
            into.required = -1 if row.counted is None else row.counted
        self._kept.append(rows)
        packed.rows = ctypes.addressof(rows)
        packed.watched = self._strings(texts)
        packed.form.base = 10

    def _form(self, form: TextForm) -> CForm:
        packed = CForm(keep_length=len(form.keep), base=form.base, ends=form.ends)
        packed.keep = self._bytes(form.keep)
        packed.truncate = self._strings(word + b" " for word in form.truncate)
        if form.blanks or form.deleted:
            table = array("h", range(256))
            for byte in form.blanks:
                table[byte] = ord(" ")
            for byte in form.deleted:
                table[byte] = -1
            packed.translate = self._address(table)
        return packed

    def _columns(self, packed: CFile, columns: Columns) -> None:
        if columns.weights:
            packed.weights = self._ints(columns.weights)
        packed.sums = self._lists(columns.sums or ())
        if columns.sums is None:
            packed.sums.count = _AS_VALUES
        ends: list[int] = []
        elements: list[tuple[int, ...]] = []
        labels: list[int] = []
        for vector in columns.vectors:
            elements += vector.elements
            labels += vector.labels
            ends.append(len(elements))
        packed.elements = self._lists(elements)
        packed.vectors, packed.labels = self._ints(ends), self._ints(labels)
        packed.vector_count = len(columns.vectors)

    def _lists(self, groups: Sequence[Sequence[int]]) -> Lists:
        items: list[int] = []
        ends = []
        for group in groups:
            items += group
            ends.append(len(items))
        return Lists(self._ints(ends), self._ints(items), len(ends))

    def _strings(self, texts: Iterable[bytes]) -> Strings:
        parts = list(texts)
        ends, length = [], 0
        for part in parts:
            length += len(part)
            ends.append(length)
        return Strings(self._ints(ends), self._bytes(b"".join(parts) + bytes(_WORD)), len(parts))

    def _bytes(self, data: bytes) -> int | None:
        return self._address(array("B", data))

    def _ints(self, values: Sequence[int]) -> int | None:
        return self._address(array("i", values))

    def _long_ints(self, values: Sequence[int]) -> int | None:
        return self._address(array("q", values))

    def _address(self, values: array[int]) -> int | None:
        if not values:
            return None
        self._kept.append(values)
        return values.buffer_info()[0]
