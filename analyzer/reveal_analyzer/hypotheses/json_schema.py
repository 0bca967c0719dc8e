"""JSON Schema of hypotheses files, for editors: derived from the dataclasses of ``model``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING
from enum import StrEnum
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from reveal_analyzer.hypotheses.model import (
    FORMAT_VERSION,
    CertainSignature,
    HypothesisRule,
    Removal,
)
from reveal_analyzer.hypotheses.parser import LONGEST, NAME, keys

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {bool: "boolean", float: "number", str: "string"}
_SECONDS = {"type": "integer", "minimum": 1, "maximum": LONGEST}
_KINDS: dict[str, dict[str, Any]] = {
    "metric": {"type": "string"},
    "subject metric": {"type": "string", "pattern": r"\.subject\."},
    "name": {"type": "string", "pattern": f"^{NAME}$"},
    "claim": {"type": "string", "minLength": 1},
    "hold": {"type": "array", "items": _SECONDS, "minItems": 2, "maxItems": 2},
}


def json_schema() -> dict[str, Any]:
    """Return the schema of a whole file."""
    return {
        "$schema": _DRAFT,
        "title": "Hypotheses: known causes",
        "type": "object",
        "additionalProperties": False,
        "required": ["version"],
        "properties": {
            "version": {"const": FORMAT_VERSION},
            "hypotheses": {"type": "array", "items": {"anyOf": [_entry(), _removal()]}},
        },
    }


def _entry() -> dict[str, Any]:
    result = _object(HypothesisRule)
    result["properties"]["disabled"]["const"] = False
    return result


def _removal() -> dict[str, Any]:
    """Return the schema of an entry that removes a hypothesis: its other keys are ignored."""
    result = _object(Removal)
    result["required"].append("disabled")
    result["properties"]["disabled"] = {"const": True}
    result["additionalProperties"] = True
    return result


def _object(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    known = keys(cls)
    result: dict[str, Any] = {
        "type": "object",
        "description": (cls.__doc__ or "").partition("\n")[0].replace("``", "`"),
        "additionalProperties": False,
        "required": [name for name, spec in known.items() if spec.default is MISSING],
        "properties": {
            name: {**_value(hints[spec.name], spec.metadata), "description": spec.metadata["doc"]}
            for name, spec in known.items()
        },
    }
    if cls is CertainSignature:
        result["anyOf"] = [{"required": ["all"]}, {"required": ["any"]}]
    return result


def _value(hint: Any, limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a field's values."""
    kind = limits.get("kind", "")
    if get_origin(hint) is tuple and kind != "hold":
        items = _value(get_args(hint)[0], limits)
        least = {"minItems": limits["least"]} if "least" in limits else {}
        return {"type": "array", "items": items, **least}
    options = [each for each in get_args(hint) if each is not NoneType]
    if options and get_origin(hint) is not tuple:
        return _value(options[0], limits)
    if kind:
        return dict(_KINDS[kind])
    if choices := _choices(hint, limits):
        return {"enum": choices}
    if hint not in _PLAIN:
        nested = _object(hint)
        return {"anyOf": [{"type": "string"}, nested]} if limits["short"] else nested
    lowest = limits.get("above", -math.inf)
    bounds = {"exclusiveMinimum": lowest} if math.isfinite(lowest) else {}
    return {"type": _PLAIN[hint], **bounds}


def _choices(hint: Any, limits: Mapping[str, Any]) -> list[str]:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return [each.value for each in hint]
    return [each for each in limits.get("choices", ()) if each]
