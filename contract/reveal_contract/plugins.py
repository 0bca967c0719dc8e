"""A site's own metrics and sources: Python modules named in ``REVEAL_PLUGINS``.

``REVEAL_PLUGINS=ours.lustre,ours.fans`` (modules on the Python path, of collector and analyzer
alike).  Such a module has what a module of ours has, each part where it is wanted: ``ROWS`` and
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
    """The plugins, imported; raises ``SettingsError`` for one that cannot be."""
    named = os.environ.get(VARIABLE, "").split(",")
    return tuple(_imported(name.strip()) for name in named if name.strip())


def parts(name: str) -> list[Any]:
    """What the plugins that have it call ``name``."""
    return [getattr(module, name) for module in modules() if hasattr(module, name)]


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever a module of others does as it is imported
        raise SettingsError(f"{VARIABLE}: {name} cannot be imported: {error}") from error
