"""The objects of a list from the API, one after the other while they arrive.

A list of pods may have a hundred megabytes, as anyone who may create pods can make them large.
Parsed as a whole, it takes several times that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

LARGEST_OBJECT = 8 << 20  # bytes; the API server takes requests of 3 MB
# a string, which has no quote at its end where it is cut off; or a bracket
_TOKEN = re.compile(rb'"(?:[^"\\]+|\\.)*+(?P<end>"?)|[\[\]{}]', re.DOTALL)
_IN_LIST = [ord("{"), ord("[")]  # what is open around an object of the list


class ListStream:
    """Iterates over the objects of the list; afterwards ``rest`` is the list without them.

    Raises ``ValueError`` where it is no JSON, is cut off, or has an object that is too large.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._open: list[int] = []  # brackets that are open where the buffer begins
        self._around = bytearray()
        self._had_object = False
        self.rest: Any = None

    def __iter__(self) -> Iterator[Any]:
        buffer = b""
        for chunk in self._chunks:
            buffer += chunk
            used = 0
            for begin, end, is_object in self._parts(buffer):
                if is_object:
                    yield json.loads(buffer[begin:end])
                    self._had_object = True
                else:
                    self._add_around(buffer[begin:end])
                used = end
            buffer = buffer[used:]
            if len(buffer) > LARGEST_OBJECT:
                raise ValueError(f"an object of the list has more than {LARGEST_OBJECT} bytes")
        self._add_around(buffer)
        self.rest = json.loads(bytes(self._around))

    def _parts(self, buffer: bytes) -> Iterator[tuple[int, int, bool]]:
        """Yield begin and end of objects, and of what is around them, as far as they are whole."""
        stack, object_begin, used = self._open, -1, 0
        for token in _TOKEN.finditer(buffer):
            if token["end"] is not None:
                if not token["end"]:
                    break
            elif token[0] in b"[{":
                stack.append(token[0][0])
                if stack[:-1] == _IN_LIST and token[0] == b"{":
                    object_begin = token.start()
                    yield used, object_begin, False
            else:
                _close(stack)
                if object_begin >= 0 and len(stack) == len(_IN_LIST):
                    yield object_begin, token.end(), True
                    object_begin, used = -1, token.end()
                    continue
            if object_begin < 0:
                yield used, token.end(), False
                used = token.end()
        if object_begin >= 0:  # it is read again from its beginning, with more of it
            del stack[len(_IN_LIST) :]

    def _add_around(self, text: bytes) -> None:
        if not (self._had_object and text.strip() in (b"", b",")):  # between two objects
            self._around += text


def _close(stack: list[int]) -> None:
    if not stack:
        raise ValueError("a bracket closes nothing")
    stack.pop()
