"""JSON of others: one function, so that all readers refuse the same things."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

MOST_BYTES = 64 << 20
_MOST_DIGITS = 300  # of an integer: float() takes all of these


class ForeignJsonError(ValueError):
    """The text is not JSON (RFC 8259) with finite numbers; the text of the error says why."""


def loads(data: bytes | str, most_bytes: int = MOST_BYTES) -> Any:
    """Return the value of a JSON text; raises ``ForeignJsonError`` for anything else.

    Python's parser also takes NaN, Infinity and 1e999, which become integers nowhere, and integers
    that become no float; and it does not catch texts that are nested too deeply.
    """
    if len(data) > most_bytes:
        raise ForeignJsonError(f"{len(data)} bytes, {most_bytes} are the most")
    try:
        if isinstance(data, bytes):
            data = data.decode(json.detect_encoding(data), "surrogatepass")
        return _DECODER.decode(data)
    except RecursionError:
        raise ForeignJsonError("nested too deeply") from None
    except ForeignJsonError:
        raise
    except ValueError as error:
        raise ForeignJsonError(str(error)) from None


def _refuse(constant: str) -> NoReturn:
    raise ForeignJsonError(f"{constant} is no number")


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ForeignJsonError(f"{text[:32]}... is no number of {_MOST_DIGITS} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ForeignJsonError(f"{text[:32]} is no number")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, parse_int=_integer)
