"""Plans as the scanner in C takes them: flat arrays and the structs of ``scan.h``."""

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

_TOKENS, _MATRIX, _HELD, _SUMS = 0, 1, 2, 3
_SKIPPED, _FIRST_WATCHED = -1, -2
_AS_VALUES = -1
_ROOM = 512  # a text grows as its numbers get longer
_WORD = 8  # bytes that are compared at once


# Addresses are plain numbers: a pointer of ctypes would be an object of 150 bytes for each.


class Lists(Structure):
    _fields_ = [("ends", c_void_p), ("items", c_void_p), ("count", c_int32)]


class Strings(Structure):
    _fields_ = [("ends", c_void_p), ("bytes", c_void_p), ("count", c_int32)]


class CForm(Structure):
    _fields_ = [
        ("keep", c_void_p),
        ("keep_length", c_int32),
        ("base", c_int32),
        ("ends", c_int32),
        ("cut", Strings),
        ("translate", c_void_p),
    ]


class CMatrixRow(Structure):
    _fields_ = [("counts", c_int32), ("by_column", c_int32), ("shown", c_int32)]


class CFile(Structure):
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
        ("held", c_void_p),
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
    """Fills structs; what they point to, and the files, live as long as the packer is open.

    Descriptors are doubled: a source that closes its own, whose number another file then gets,
    must not make the scanner read that one.
    """

    def __init__(self) -> None:
        self._kept: list[object] = []
        self._fds: list[int] = []

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds = []

    def file(self, scan: FileScan, room: int = 1) -> CFile:
        """All of a file but its place in the table; ``room`` times the usual space for text."""
        made = CFile(fd=self._doubled(scan.fd), capacity=room * (2 * scan.length + _ROOM), gate=-1)
        plan = scan.plan
        made.width = plan.width
        if isinstance(plan, MemoryPlan):
            self._kept.append(memoryview(plan.values))  # which keeps them where they are
            made.kind, made.held = _HELD, plan.values.buffer_info()[0]
            return made
        if isinstance(plan, SumPlan):
            made.kind, made.values = _SUMS, len(plan.keys)
            made.watched, made.form = self._strings(plan.keys), self._form(plan.form)
            self._columns(made, AS_READ)
            return made
        if isinstance(plan, MatrixPlan):
            self._matrix(made, plan)
        else:
            self._tokens(made, plan)
        self._columns(made, plan.columns)
        return made

    def _doubled(self, fd: int) -> int:
        try:
            doubled = os.dup(fd)
        except OSError:  # closed meanwhile: reading it fails, and is said
            return -1
        self._fds.append(doubled)
        return doubled

    def _tokens(self, made: CFile, plan: TokenPlan) -> None:
        ops = [_SKIPPED] * plan.count
        for value, place in enumerate(plan.picks):
            ops[place] = value
        for number, (place, _) in enumerate(plan.watched):
            ops[place] = _FIRST_WATCHED - number
        made.kind, made.tokens, made.values = _TOKENS, plan.count, len(plan.picks)
        made.ops = self._ints(ops)
        made.watched = self._strings(text for _, text in plan.watched)
        made.form = self._form(plan.form)

    def _matrix(self, made: CFile, plan: MatrixPlan) -> None:
        made.kind, made.tokens = _MATRIX, len(plan.rows)
        made.values = len(plan.rows) + plan.wide
        texts = [plan.header]
        rows = (CMatrixRow * max(len(plan.rows), 1))()
        for into, row in zip(rows, plan.rows, strict=False):
            texts += [row.head, row.rest]
            into.counts, into.by_column = row.counts, row.counts == plan.wide
            into.shown = -1 if row.counted is None else row.counted
        self._kept.append(rows)
        made.rows = ctypes.addressof(rows)
        made.watched = self._strings(texts)
        made.form.base = 10

    def _form(self, form: TextForm) -> CForm:
        made = CForm(keep_length=len(form.keep), base=form.base, ends=form.ends)
        made.keep = self._bytes(form.keep)
        made.cut = self._strings(word + b" " for word in form.truncate)
        if form.blanks or form.deleted:
            table = array("h", range(256))
            for byte in form.blanks:
                table[byte] = ord(" ")
            for byte in form.deleted:
                table[byte] = -1
            made.translate = self._address(table)
        return made

    def _columns(self, made: CFile, columns: Columns) -> None:
        if columns.weights:
            made.weights = self._ints(columns.weights)
        made.sums = self._lists(columns.sums or ())
        if columns.sums is None:
            made.sums.count = _AS_VALUES
        ends: list[int] = []
        elements: list[tuple[int, ...]] = []
        labels: list[int] = []
        for vector in columns.vectors:
            elements += vector.elements
            labels += vector.labels
            ends.append(len(elements))
        made.elements = self._lists(elements)
        made.vectors, made.labels = self._ints(ends), self._ints(labels)
        made.vector_count = len(columns.vectors)

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

    def _address(self, values: array[int]) -> int | None:
        if not values:
            return None
        self._kept.append(values)
        return values.buffer_info()[0]
