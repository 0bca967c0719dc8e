"""Text and tables on stdout, through rich.

Output has colors on a terminal only, and none where ``NO_COLOR`` is set.  In a file or pipe it is
plain text of a fixed width, so that it does not depend on where the command runs.  Names that
strangers chose (columns of a table, hosts) cannot control the terminal.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Column, Table

from reveal_cli.stderr_lines import inert

MAX_WIDTH = 120
_MIN_WIDTH = 20
_GAP = 2  # columns between two cells


class InertConsole(Console):
    """A console whose only control sequences are its own."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            clean = segment.control or segment.text.isprintable()
            yield segment if clean else Segment(inert(segment.text), segment.style)


def show(*blocks: RenderableType) -> None:
    """Print blocks to stdout."""
    if sys.stdout.isatty():
        width = max(_MIN_WIDTH, min(shutil.get_terminal_size().columns, MAX_WIDTH))
        sys.stdout.write(_rendered(console(sys.stdout, width), blocks))
    else:
        sys.stdout.write(plain_text(*blocks, stream=sys.stdout))


def plain_text(
    *blocks: RenderableType, width: int = MAX_WIDTH, stream: TextIO | None = None
) -> str:
    """Return blocks as text without colors, in the characters that ``stream`` can encode."""
    plain = InertConsole(
        file=stream, width=width, force_terminal=False, color_system=None,
        markup=False, highlight=False, emoji=False,
    )  # fmt: skip
    # cells are padded: the lines of a file need not be
    return "".join(f"{line.rstrip()}\n" for line in _rendered(plain, blocks).splitlines())


def console(stream: TextIO, width: int | None = None) -> Console:
    """Return a console that prints text as it is: no markup, emoji or highlighted numbers."""
    return InertConsole(
        file=stream, width=width, force_terminal=stream.isatty(),
        markup=False, highlight=False, emoji=False,
    )  # fmt: skip


def table(*columns: str | Column, expand: bool = False) -> Table:
    """Return an empty table in the style of all commands: a rule below the titles, no borders."""
    result = Table(
        *columns, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=expand,
        padding=(0, _GAP - 1, 0, 0),  # the box adds one column
    )  # fmt: skip
    for column in result.columns:
        column.overflow = "fold"  # rather than cut words that are longer than their column
    return result


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines whose cells are as wide as their columns; a line is never folded."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return ["   ".join(map(set_cell_size, row, widths)).rstrip() for row in rows]


def grid(rows: Iterable[tuple[RenderableType, RenderableType]], indent: int = 0) -> Padding:
    """Return labels with their texts in two columns, without titles."""
    pairs = Table.grid(padding=(0, _GAP, 0, 0))
    pairs.add_column(no_wrap=True)
    pairs.add_column(overflow="fold")
    for label, text in rows:
        pairs.add_row(label, text)
    return Padding(pairs, (0, 0, 0, indent), expand=False)


def _rendered(target: Console, blocks: Iterable[RenderableType]) -> str:
    with target.capture() as captured:
        for block in blocks:
            target.print(block)
    return captured.get()
