"""Dataclasses as trees: a finding, an impact, a match, by the types of their fields.

Fields may be strings, numbers, truth values, string enumerations, dataclasses, tuples of one of
these, and each of them or ``None``.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from reveal_analyzer.state.tree import (
    StateError,
    StateTree,
    StateValue,
    flag,
    integer,
    number,
    section,
    text,
)

_Record = TypeVar("_Record")

_SCALARS = {str: text, bool: flag, float: number}


def save_record(record: Any) -> dict[str, StateValue]:
    """Return the tree of a dataclass."""
    return {each.name: _saved(getattr(record, each.name)) for each in dataclasses.fields(record)}


def restore_record(cls: type[_Record], tree: StateTree) -> _Record:
    """Return the dataclass of a tree; raises ``StateError`` if a field is missing or unfit.

    A field with a default may be missing: the state is then of an earlier version.
    """
    values = {
        each.name: _restored(hint, tree, each.name)
        for each, hint in _hints(cls)  # type: ignore[arg-type]  # mypy: a type is hashable
        if each.name in tree or not _has_default(each)
    }
    return cls(**values)


def restore_optional(cls: type[_Record], tree: StateTree, key: str) -> _Record | None:
    """Return the dataclass at ``key``; ``None`` where there is none."""
    return None if tree.get(key) is None else restore_record(cls, section(tree, key))


@cache  # to evaluate the annotations takes longer than to restore a record
def _hints(cls: type[Any]) -> tuple[tuple[dataclasses.Field[Any], Any], ...]:
    hints = get_type_hints(cls)
    return tuple((each, hints[each.name]) for each in dataclasses.fields(cls))


def _has_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def _saved(value: Any) -> StateValue:
    if dataclasses.is_dataclass(value):
        return save_record(value)
    if isinstance(value, tuple):
        return [_saved(each) for each in value]
    if isinstance(value, StrEnum):
        return value.value
    if value is None or isinstance(value, str | int | float):
        return value
    raise StateError(f"a value of type {type(value).__name__} cannot be saved")


def _restored(hint: Any, tree: StateTree, key: str) -> Any:
    """Return the value at ``key`` as the type that the field has."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = next(each for each in get_args(hint) if each is not types.NoneType)
        return None if key in tree and tree[key] is None else _restored(inner, tree, key)
    if get_origin(hint) is tuple:
        values = tree.get(key)
        if not isinstance(values, list | tuple):
            raise StateError(f"{key!r} is not a list")
        return tuple(_restored(get_args(hint)[0], {key: each}, key) for each in values)
    if dataclasses.is_dataclass(hint):
        inner = tree.get(key)
        if not isinstance(inner, Mapping):
            raise StateError(f"{key!r} is not a section")
        return restore_record(hint, inner)  # type: ignore[arg-type]
    if hint is int:
        return integer(tree, key, least=-(2**63))
    if hint in _SCALARS:
        return _SCALARS[hint](tree, key)
    return _enumerated(hint, text(tree, key), key)


def _enumerated(hint: Any, value: str, key: str) -> StrEnum:
    try:
        member: StrEnum = hint(value)
    except ValueError:
        raise StateError(f"{key!r} is not a {hint.__name__}") from None
    return member
