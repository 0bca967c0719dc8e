"""Build hook: compile the collector's C part into the wheel if there is a C compiler."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path("collector/reveal_collector/native")


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compile the C part beside its sources, so that an editable install finds it, too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, str(Path(self.root) / NATIVE))
        try:
            from build import build  # noqa: PLC0415 - it lies beside the C sources
        finally:
            del sys.path[0]
        try:
            library = build()
        except OSError as error:
            self.app.display_warning(
                f"C scanner not built ({error}): the Python path costs about twice the CPU"
            )
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"  # no Python.h: any Python of this platform
        build_data["pure_python"] = False
        build_data["artifacts"].append(str(library.relative_to(self.root)))
