"""What pods of the tests run: programs that the workload image can, one a file.

Those that do harm after a while print the time at which they begin.
"""

from __future__ import annotations

from pathlib import Path


def command(program: str, *arguments: str) -> list[str]:
    """The command of a container that runs it; nothing of it is in the image."""
    return [
        "python3",
        "-u",
        "-c",
        Path(__file__).with_name(f"{program}.py").read_text(),
        *arguments,
    ]
