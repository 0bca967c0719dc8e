"""Reading an object of JSON field by field: what is bad is noted, its default taken.

So that one look at an object finds all that is wrong with it, and not the first thing only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Fields:
    """The fields of one object; ``problems`` is shared by all objects of a document.

    A field that is null counts as left out, as it does for the API server.
    """

    def __init__(self, given: object, path: str, problems: list[str]) -> None:
        self.path, self.problems = path, problems
        self._given: Mapping[str, Any] = {}
        if isinstance(given, Mapping):
            self._given = given
        elif given is not None:
            problems.append(f"{path}: must be an object, not {_shown(given)}")

    def has(self, name: str) -> bool:
        return self._given.get(name) is not None

    def refuse(self, name: str, sentence: str) -> None:
        """Note what is wrong with a field."""
        self.problems.append(f"{self.path}.{name}: {sentence}")

    def object(self, name: str) -> Fields:
        return Fields(self._given.get(name), f"{self.path}.{name}", self.problems)

    def text(self, name: str, default: str = "", among: Sequence[str] = ()) -> str:
        value = self._typed(name, str, default, "a text")
        if among and value not in among:
            self.refuse(name, f"must be one of {', '.join(among)}, not {_shown(value)}")
            return default
        return value

    def required(self, name: str) -> str:
        """A text that must be there and not be empty."""
        value = self.text(name)
        if not value and not self._is_of_another_type(name, str):
            self.refuse(name, "is required")
        return value

    def flag(self, name: str, default: bool) -> bool:
        return self._typed(name, bool, default, "true or false")

    def number(
        self, name: str, default: int, least: int | None = None, most: int | None = None
    ) -> int:
        value = self._typed(name, int, default, "a whole number")
        if least is not None and value < least:
            self.refuse(name, f"must be at least {least}, not {value}")
        elif most is not None and value > most:
            self.refuse(name, f"must be at most {most}, not {value}")
        else:
            return value
        return default

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._typed(name, list, [], "a list")
        good = tuple(item for item in value if isinstance(item, str) and item)
        if len(good) < len(value):
            self.refuse(name, "must be a list of texts, none of them empty")
        return good

    def mapping(self, name: str, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """An object that goes through as it is."""
        value: Mapping[str, Any] = self._typed(name, dict, dict(default or {}), "an object")
        return value

    def mappings(
        self, name: str, default: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[Mapping[str, Any], ...]:
        """A list of objects that go through as they are."""
        value = self._typed(name, list, list(default), "a list")
        good = tuple(item for item in value if isinstance(item, Mapping))
        if len(good) < len(value):
            self.refuse(name, "must be a list of objects")
        return good

    def _typed(self, name: str, kind: type[T], default: T, wanted: str) -> T:
        value = self._given.get(name)
        if value is None:
            return default
        if self._is_of_another_type(name, kind):
            self.refuse(name, f"must be {wanted}, not {_shown(value)}")
            return default
        return value  # type: ignore[no-any-return]

    def _is_of_another_type(self, name: str, kind: type) -> bool:
        value = self._given.get(name)
        if value is None:
            return False
        # true is an int in Python, and none in JSON
        return not isinstance(value, kind) or (kind is int and isinstance(value, bool))


def _shown(value: object) -> str:
    """A value as a message shows it: short, on one line."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
