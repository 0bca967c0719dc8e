"""State as a tree: what a part of the analysis saves, and checked access to what it restores.

``save()`` of a part returns a ``StateTree`` of JSON values and numpy arrays.  ``restore(tree)``
reads it with the functions below.  A tree may come from another version or be damaged, so each of
them checks type and size, and raises ``StateError`` if the value does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

StateValue: TypeAlias = (
    "str | int | float | NDArray[Any] | Sequence[StateValue] | Mapping[str, StateValue] | None"
)
StateTree: TypeAlias = Mapping[str, StateValue]

_Scalar = TypeVar("_Scalar", bound=np.generic)


class StateError(ValueError):
    """The state cannot be used; the message says why."""


class Stateful(Protocol):
    """A part of the analysis whose state is saved."""

    def save(self) -> StateTree:
        """Return what ``restore`` of another process continues with."""

    def restore(self, tree: StateTree) -> None:
        """Continue with what ``save`` returned; raises ``StateError``."""


def section(tree: StateTree, key: str) -> StateTree:
    """Return the subtree at ``key``."""
    return _section(_value(tree, key), key)


def sections(tree: StateTree, key: str) -> list[StateTree]:
    """Return the list of subtrees at ``key``."""
    return [_section(each, key) for each in _list(tree, key)]


def named_sections(tree: StateTree, key: str) -> dict[str, StateTree]:
    """Return the subtrees at ``key`` by name."""
    return {name: _section(each, name) for name, each in section(tree, key).items()}


def integer(tree: StateTree, key: str, least: int = 0, most: int = 2**63 - 1) -> int:
    """Return the integer at ``key``, from ``least`` to ``most``."""
    value = _value(tree, key)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise _unfit(key, f"an integer from {least} to {most}")
    return value


def number(tree: StateTree, key: str) -> float:
    """Return the finite number at ``key``."""
    value = _value(tree, key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise _unfit(key, "a finite number")
    return float(value)


def flag(tree: StateTree, key: str) -> bool:
    """Return the truth value at ``key``."""
    value = _value(tree, key)
    if not isinstance(value, bool):
        raise _unfit(key, "true or false")
    return value


def text(tree: StateTree, key: str) -> str:
    """Return the string at ``key``."""
    value = _value(tree, key)
    if not isinstance(value, str):
        raise _unfit(key, "a string")
    return value


def octets(tree: StateTree, key: str) -> bytes:
    """Return the bytes at ``key``, saved as a string of hexadecimal digits."""
    try:
        return bytes.fromhex(text(tree, key))
    except ValueError as error:
        raise StateError(f"{key!r} is not hexadecimal: {error}") from None


def texts(tree: StateTree, key: str) -> tuple[str, ...]:
    """Return the strings at ``key``."""
    values = _list(tree, key)
    if not all(isinstance(value, str) for value in values):
        raise _unfit(key, "a list of strings")
    return tuple(str(value) for value in values)


def array(
    tree: StateTree, key: str, dtype: type[_Scalar], shape: tuple[int | None, ...]
) -> NDArray[_Scalar]:
    """Return a copy of the array at ``key`` as ``dtype``; ``None`` in ``shape`` fits any length.

    Another type of the same kind is converted (half to single precision, 16 to 64 bits), never a
    number to a truth value, nor a fraction to an integer.
    """
    value = _value(tree, key)
    if not isinstance(value, np.ndarray) or not np.can_cast(value.dtype, dtype, "same_kind"):
        raise _unfit(key, f"an array of {np.dtype(dtype)}")
    fits = len(value.shape) == len(shape) and all(
        expected is None or expected == length
        for expected, length in zip(shape, value.shape, strict=True)
    )
    if not fits:
        raise StateError(f"{key!r} has the shape {value.shape}, {shape} is expected")
    return value.astype(dtype)


def finite_array(
    tree: StateTree, key: str, dtype: type[_Scalar], shape: tuple[int | None, ...]
) -> NDArray[_Scalar]:
    """Return what ``array`` returns; every number is finite."""
    values = array(tree, key, dtype, shape)
    if not np.isfinite(values).all():
        raise _unfit(key, "an array of finite numbers")
    return values


def _value(tree: StateTree, key: str) -> StateValue:
    if key not in tree:
        raise StateError(f"{key!r} is missing")
    return tree[key]


def _section(value: StateValue, key: str) -> StateTree:
    if not isinstance(value, Mapping):
        raise _unfit(key, "a section")
    return value


def _list(tree: StateTree, key: str) -> Sequence[StateValue]:
    value = _value(tree, key)
    if not isinstance(value, list | tuple):
        raise _unfit(key, "a list")
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the range of doubles
        return False


def _unfit(key: str, expected: str) -> StateError:
    return StateError(f"{key!r} is not {expected}")
