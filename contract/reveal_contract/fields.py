"""Read dataclasses from mappings (JSON, YAML); every bad field is named with its path.

A ``Reader`` checks one value.  ``read_fields`` reads all keys of a mapping, for formats in which
each dataclass field has one reader.  ``Fields`` reads key by key, for formats that need more than
the value to judge it.  Both collect problems, so that one attempt finds every mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
Reader = Callable[[Any, str], T]  # takes the value and its path, raises FieldError

_MAX_LENGTH = 60  # characters of a bad value in a message


class FieldError(ValueError):
    """One field has a bad value; the text is ``path: sentence``."""

    def __init__(self, path: str, sentence: str) -> None:
        super().__init__(f"{path}: {sentence}" if path else sentence)


def describe(value: object) -> str:
    """Return a value as messages show it: short, ASCII, on one line."""
    try:
        text = ascii(value)
    except (RecursionError, ValueError):  # an alias to itself in YAML; a number of 5,000 digits
        text = type(value).__name__
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 3]}..."


def string(value: Any, path: str, choices: Sequence[str] = ()) -> str:
    """Return a string, where there are ``choices`` one of them."""
    if not isinstance(value, str):
        raise FieldError(path, f"must be a string, not {describe(value)}")
    if choices and value not in choices:
        allowed = ", ".join(str(choice) for choice in choices if choice)
        raise FieldError(path, f"must be one of {allowed}, not {describe(value)}")
    return value


def boolean(value: Any, path: str) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise FieldError(path, f"must be true or false, not {describe(value)}")
    return value


def integer(value: Any, path: str, least: int | None = None, most: int | None = None) -> int:
    """Return an integer, both bounds included."""
    # True is an int in Python, but no number in JSON
    if not isinstance(value, int) or isinstance(value, bool):
        raise FieldError(path, f"must be an integer, not {describe(value)}")
    if least is not None and value < least:
        raise FieldError(path, f"must be at least {least}, not {describe(value)}")
    if most is not None and value > most:
        raise FieldError(path, f"must be at most {most}, not {describe(value)}")
    return value


def mapping(value: Any, path: str) -> Mapping[str, Any]:
    """Return an object, unchecked."""
    if not isinstance(value, Mapping):
        raise FieldError(path, f"must be an object, not {describe(value)}")
    return value


def items(value: Any, path: str, item: Reader[T], least: int = 0) -> tuple[T, ...]:
    """Return the items of a list, each read by ``item``."""
    if not isinstance(value, list | tuple):
        raise FieldError(path, f"must be a list, not {describe(value)}")
    if len(value) < least:
        raise FieldError(path, f"must have at least {least} items")
    return tuple(item(each, f"{path}[{index}]") for index, each in enumerate(value))


def non_empty_string(value: Any, path: str) -> str:
    """Return a string that is not empty."""
    if not string(value, path):
        raise FieldError(path, "must not be empty")
    return str(value)


def strings(value: Any, path: str) -> tuple[str, ...]:
    """Return a list of strings."""
    return items(value, path, string)


def read_fields(
    given: Mapping[str, Any],
    readers: Mapping[str, Reader[Any]],
    required: Collection[str] = (),
    path: str = "",
    unknown: str = "unknown field",
) -> tuple[dict[str, Any], list[str]]:
    """Return the good values by key, and a sentence for each problem.

    Problems are unknown keys, which ``unknown`` describes, bad values and ``required`` keys that
    are missing.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in given.items():
        where = f"{path}{key}"
        if (reader := readers.get(key)) is None:
            problems.append(f"{where}: {unknown}")
            continue
        try:
            values[key] = reader(value, where)
        except FieldError as error:
            problems.append(str(error))
    problems += [f"{path}{key}: is required" for key in required if key not in given]
    return values, problems


class Fields:
    """The fields of one object; a bad one is noted in ``problems`` and its default is used.

    ``problems`` is shared by all objects of a document.  A field that is null counts as left out,
    as the API server treats it.
    """

    def __init__(self, given: object, path: str, problems: list[str]) -> None:
        self.path, self.problems = path, problems
        self._given: Mapping[str, Any] = {}
        if isinstance(given, Mapping):
            self._given = given
        elif given is not None:
            problems.append(f"{path}: must be an object, not {describe(given)}")

    def has(self, name: str) -> bool:
        """Whether the field is given."""
        return self._given.get(name) is not None

    def refuse(self, name: str, sentence: str) -> None:
        """Note what is wrong with a field."""
        self.problems.append(str(FieldError(f"{self.path}.{name}", sentence)))

    def read(self, name: str, reader: Reader[T], default: T) -> T:
        """Return the field read by ``reader``, or the default."""
        if not self.has(name):
            return default
        try:
            return reader(self._given[name], f"{self.path}.{name}")
        except FieldError as error:
            self.problems.append(str(error))
            return default

    def object(self, name: str) -> Fields:
        """Return the fields of an object inside this one."""
        return Fields(self._given.get(name), f"{self.path}.{name}", self.problems)

    def string(self, name: str, default: str = "", choices: Sequence[str] = ()) -> str:
        """Return a string, where there are ``choices`` one of them."""
        return self.read(name, partial(string, choices=choices), default)

    def required(self, name: str) -> str:
        """Return a string that must be given and not be empty."""
        value = self.string(name)
        if not value and isinstance(self._given.get(name), str | None):
            self.refuse(name, "is required")
        return value

    def boolean(self, name: str, default: bool) -> bool:
        """Return a boolean."""
        return self.read(name, boolean, default)

    def integer(
        self, name: str, default: int, least: int | None = None, most: int | None = None
    ) -> int:
        """Return an integer, both bounds included."""
        return self.read(name, partial(integer, least=least, most=most), default)

    def strings(self, name: str) -> tuple[str, ...]:
        """Return a list of strings, none of them empty; bad items are left out."""
        return self._items(name, non_empty_string, ())

    def mapping(self, name: str, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Return an object, unchecked."""
        return self.read(name, mapping, default or {})

    def mappings(
        self, name: str, default: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[Mapping[str, Any], ...]:
        """Return a list of objects, unchecked; bad items are left out."""
        return self._items(name, mapping, tuple(default))

    def _items(self, name: str, item: Reader[T], default: tuple[T, ...]) -> tuple[T, ...]:
        given = self._given.get(name)
        if not isinstance(given, list | tuple):
            return self.read(name, partial(items, item=item), default)
        good: list[T] = []
        for index, each in enumerate(given):
            try:
                good.append(item(each, f"{self.path}.{name}[{index}]"))
            except FieldError as error:
                self.problems.append(str(error))
        return tuple(good)
