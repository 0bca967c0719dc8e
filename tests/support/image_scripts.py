"""The scripts of images/, which are no package and import each other as they do when they run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "images"


def load(name: str) -> ModuleType:
    """Import ``images/NAME.py``."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))
