"""The part of structural schemas (OpenAPI v3 of CRDs) that our definitions use, without a server.

``faults`` says what is wrong with a value, ``defaulted`` fills in what an API server would. CEL
rules are not evaluated here: those need a real one.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Schema = Mapping[str, Any]

ROOT = Path(__file__).parents[2]
DEFINITIONS = tuple(sorted((ROOT / "crds").glob("*.yaml")))
EXAMPLES = tuple(sorted((ROOT / "examples").glob("*.yaml")))
_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
}


def definition(plural: str) -> dict[str, Any]:
    """The CustomResourceDefinition of ``revealprofiles`` or ``anomalyreports``."""
    return copy.deepcopy(_loaded(plural))


def schema(plural: str, *path: str) -> Schema:
    """The schema of its only version, or of a field: ``schema("anomalyreports", "status")``."""
    [version] = _loaded(plural)["spec"]["versions"]
    part: Schema = version["schema"]["openAPIV3Schema"]
    for name in path:
        part = part["properties"][name]
    return part


@cache
def _loaded(plural: str) -> dict[str, Any]:
    [found] = [item for item in DEFINITIONS if item.stem.endswith(f"_{plural}")]
    loaded: dict[str, Any] = yaml.safe_load(found.read_text())
    return loaded


def parts(of: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema within, by its path: ``.spec.tolerations[].key``; a map's values are ``{}``."""
    yield path, of
    for name, part in of.get("properties", {}).items():
        yield from parts(part, f"{path}.{name}")
    if "items" in of:
        yield from parts(of["items"], f"{path}[]")
    if "additionalProperties" in of:
        yield from parts(of["additionalProperties"], f"{path}{{}}")


def leaves(value: Any, path: str = "") -> set[str]:
    """The paths of all plain values of an object, as ``parts`` writes them."""
    if isinstance(value, dict):
        return {leaf for name, part in value.items() for leaf in leaves(part, f"{path}.{name}")}
    if isinstance(value, list):
        return {leaf for part in value for leaf in leaves(part, f"{path}[]")}
    return {path}


def schema_leaves(of: Schema) -> set[str]:
    """The paths of all plain values that a schema without maps has room for."""
    return {path for path, part in parts(of) if "properties" not in part and "items" not in part}


def defaulted(of: Schema, value: Any) -> Any:
    """The value with what the API server would fill in."""
    if isinstance(value, dict):
        filled = dict(value)
        for name, part in of.get("properties", {}).items():
            if name not in filled and "default" in part:
                filled[name] = part["default"]
            if name in filled:
                filled[name] = defaulted(part, filled[name])
        return filled
    if isinstance(value, list):
        return [defaulted(of["items"], part) for part in value]
    return value


def faults(of: Schema, value: Any, path: str = "") -> list[str]:
    """Return what the schema does not allow of a value, apart from CEL rules."""
    if of.get("x-kubernetes-int-or-string"):
        types: type | tuple[type, ...] = (int, str)
    else:
        types = _TYPES[of["type"]]
    if not isinstance(value, types) or (types is int and isinstance(value, bool)):
        return [f"{path}: {value!r} is no {of.get('type', 'integer or string')}"]
    found = [f"{path}: {text}" for text in _plain_faults(of, value)]
    if isinstance(value, dict):
        found += _object_faults(of, value, path)
    if isinstance(value, list):
        for index, part in enumerate(value):
            found += faults(of["items"], part, f"{path}[{index}]")
    return found


def _plain_faults(of: Schema, value: Any) -> Iterator[str]:
    if "enum" in of and value not in of["enum"]:
        yield f"{value!r} is none of {of['enum']}"
    if isinstance(value, int) and not of.get("minimum", value) <= value <= of.get("maximum", value):
        yield f"{value} is not between {of.get('minimum')} and {of.get('maximum')}"
    if isinstance(value, list) and not (
        of.get("minItems", 0) <= len(value) <= of.get("maxItems", len(value))
    ):
        yield f"has {len(value)} entries"
    if isinstance(value, str):
        yield from _text_faults(of, value)


def _text_faults(of: Schema, value: str) -> Iterator[str]:
    if not of.get("minLength", 0) <= len(value) <= of.get("maxLength", len(value)):
        yield f"has {len(value)} characters"
    if "pattern" in of and not re.search(of["pattern"], value):
        yield f"{value!r} does not match {of['pattern']}"
    if of.get("format") == "date-time":
        try:
            datetime.fromisoformat(value)
        except ValueError:
            yield f"{value!r} is no time"


def _object_faults(of: Schema, value: Mapping[str, Any], path: str) -> list[str]:
    found = [f"{path}.{name}: is required" for name in of.get("required", ()) if name not in value]
    if "properties" not in of and "additionalProperties" not in of:  # metadata
        return found
    for name, part in value.items():
        inner = of.get("properties", {}).get(name) or of.get("additionalProperties")
        if inner is None:
            found.append(f"{path}.{name}: there is no such field")
        else:
            found += faults(inner, part, f"{path}.{name}")
    return found
