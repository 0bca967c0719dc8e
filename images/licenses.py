"""Licenses of the packages of the images, and whether images/licenses.toml permits them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from license_expression import ExpressionError, get_spdx_licensing
from locked_packages import ROOT

FILE = ROOT / "images" / "licenses.toml"
_SPDX = get_spdx_licensing()


class UnknownLicenseError(Exception):
    """No SPDX expression is known for a package; the text says what to do."""


@dataclass(frozen=True)
class Native:
    """Native code of another project inside packages; ``files`` of their folder NAME.libs."""

    name: str
    packages: tuple[str, ...]
    license: str
    files: str = ""


@dataclass(frozen=True)
class Policy:
    """Content of images/licenses.toml."""

    permitted: frozenset[str]
    accepted: Mapping[str, str]
    stated: Mapping[str, str]
    native: tuple[Native, ...]

    def native_of(self, package: str) -> list[Native]:
        """Return the native code that the package brings."""
        return [native for native in self.native if package in native.packages]


def load(file: Path = FILE) -> Policy:
    """Return the content of the file."""
    content: dict[str, Any] = tomllib.loads(file.read_text())
    native = (Native(**{**row, "packages": tuple(row["packages"])}) for row in content["native"])
    accepted, stated = content["accepted"], content["stated"]
    return Policy(frozenset(content["permitted"]), accepted, stated, tuple(native))


def license_of(package: str, policy: Policy) -> str:
    """Return the SPDX expression of a package, from its metadata or as the policy states it.

    Raises ``UnknownLicenseError`` if there is neither.
    """
    metadata = _distribution(package)
    declared = [metadata.metadata.get(key) for key in ("License-Expression", "License")]
    expressions = [text for text in declared if text and is_expression(text)]
    if expressions:
        return expressions[0]
    if package in policy.stated:
        return policy.stated[package]
    raise UnknownLicenseError(
        f"{package}: its metadata has no SPDX license: read its license file and add it to"
        f" [stated] of {FILE.name}"
    )


def is_expression(text: str) -> bool:
    """Return whether the text is an SPDX expression of known licenses."""
    try:
        _SPDX.parse(text, validate=True, strict=True)
    except ExpressionError:
        return False
    return True


def is_permitted(name: str, expression: str, policy: Policy) -> bool:
    """Return whether a package or library of this name may have this license."""
    if policy.accepted.get(name) == expression:
        return True
    return is_expression(expression) and _holds(_SPDX.parse(expression), policy.permitted)


def _holds(node: Any, permitted: frozenset[str]) -> bool:
    if isinstance(node, _SPDX.AND):
        return all(_holds(part, permitted) for part in node.args)
    if isinstance(node, _SPDX.OR):
        return any(_holds(part, permitted) for part in node.args)
    return node.render() in permitted


def problems(packages: Iterable[str], policy: Policy) -> list[str]:
    """Return what is wrong with the licenses of these packages, a sentence for each."""
    found = []
    for package in packages:
        try:
            licenses = list(components(package, policy))
        except UnknownLicenseError as error:
            found.append(str(error))
            continue
        found += [
            f"{package}: the license of {name}, {expression}, is not permitted by {FILE.name}"
            for name, expression in licenses
            if not is_permitted(name, expression, policy)
        ]
        found += _unlisted_libraries(package, policy)
    return found


def components(package: str, policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield name and license of the package and of what is inside it."""
    yield package, license_of(package, policy)
    yield from ((native.name, native.license) for native in policy.native_of(package))
    yield from _own_sboms(_distribution(package))


def _own_sboms(package: Distribution) -> Iterator[tuple[str, str]]:
    """Yield what the SBOMs of a wheel state, such as compiled Rust crates (PEP 770)."""
    for file in package.files or ():
        if "sboms" in file.parts and file.suffix == ".json":
            for component in json.loads(file.read_text()).get("components", ()):
                for choice in component.get("licenses", ()):
                    yield component["name"], _text(choice)


def _text(choice: dict[str, Any]) -> str:
    """Return the license of an SBOM's component: an expression, an id, or any name."""
    named = choice.get("license", {})
    return str(choice.get("expression") or named.get("id") or named.get("name", "none"))


def _unlisted_libraries(package: str, policy: Policy) -> list[str]:
    known = [native.files for native in policy.native_of(package) if native.files]
    return [
        f"{package}: the shared library {file.name} has no entry [[native]] in {FILE.name}"
        for file in _distribution(package).files or ()
        if file.parts[0].endswith(".libs") and not any(fnmatch(file.name, each) for each in known)
    ]


def _distribution(package: str) -> Distribution:
    try:
        return distribution(package)
    except PackageNotFoundError:
        raise UnknownLicenseError(
            f"{package}: not installed, so its license is not known: install the extra dev"
        ) from None
