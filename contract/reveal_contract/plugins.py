"""Metrics and sources of plugins: Python modules named in ``REVEAL_PLUGINS``.

``REVEAL_PLUGINS=ours.lustre,ours.fans`` (modules on the Python path, of collector and analyzer
alike).  Such a module has the same parts as a built-in module, each optional: ``ROWS`` and
``PATTERNS`` as a module of the catalogue, ``sources(roots)`` as a module of sources,
``PLATFORMS`` as a table of a CPU vendor's events.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from types import ModuleType
from typing import Any

from reveal_contract.settings import SettingsError

VARIABLE = "REVEAL_PLUGINS"


@cache
def modules() -> tuple[ModuleType, ...]:
    """Import and return the plugins; raises ``SettingsError`` for one that fails."""
    named = os.environ.get(VARIABLE, "").split(",")
    return tuple(_imported(name.strip()) for name in named if name.strip())


def parts(name: str) -> list[Any]:
    """Return the attribute ``name`` of each plugin that has it."""
    return [getattr(module, name) for module in modules() if hasattr(module, name)]


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:  # the import of a plugin may raise anything
        raise SettingsError(f"{VARIABLE}: {name} cannot be imported: {error}") from error
