"""``reveal report``: a page that shows findings with their evidence, for people to share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from reveal_cli.errors import USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import add_judging, analyzer_settings
from reveal_cli.output_paths import check_outputs
from reveal_cli.scan_directory import RECORDING, REPORT, SCAN_FILES
from reveal_cli.stderr_lines import note
from reveal_cli.summary_text import exit_code

_JUDGING = ("mode", "sensitivity", "warmup")

if TYPE_CHECKING:
    from reveal_cli.page_data.finding_parts import Judged


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "report",
        help="write a page (HTML) that shows findings with their evidence",
        description="Writes one HTML file without a network that shows what was found, what to do,"
        " what was ruled out and why, a timeline, and the evidence in samples of 100 ms. It is"
        " readable without scripts and prints. A recording is judged as `reveal analyze` does; a"
        " directory of `reveal scan --output` shows the findings of that scan.",
        epilog="Example: reveal report out -o report.html. docs/how-to/read-a-report.md explains"
        " the page.",
    )
    parser.add_argument(
        "input", metavar="INPUT", type=Path,
        help="a recording (.rvl), or the --output directory of a scan",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE.html", type=Path, default=Path(REPORT),
        help=f"the file to write (default {REPORT})",
    )  # fmt: skip
    add_judging(parser)
    parser.set_defaults(run=run, judging={name: parser.get_default(name) for name in _JUDGING})


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Judge the input and write the page."""
    if arguments.input.is_dir():
        _refuse_judging(arguments)
    check_outputs({"--output": arguments.output}, [*_read(arguments.input), *arguments.hypotheses])
    with interrupt.raising():
        from reveal_cli.report_file import (  # noqa: PLC0415 - heavy, and needs an extra
            write_report,
            write_scan_report,
        )

        if arguments.input.is_dir():
            files = analyzer_settings(arguments).hypotheses
            judged = write_scan_report(arguments.input, arguments.output, files)
        else:
            judged = _judged(arguments)
            write_report(judged, arguments.output)
    note(f"{arguments.output} is written")
    return exit_code([*judged.findings, *judged.hints], arguments.fail_on)


def _refuse_judging(arguments: argparse.Namespace) -> None:
    """Raise ``CliError`` for flags that would judge what a scan has judged."""
    given = [
        f"--{name}"
        for name, default in arguments.judging.items()
        if getattr(arguments, name) != default
    ]
    if given:
        raise CliError(
            f"{' and '.join(given)} cannot change what a scan has judged: name"
            f" {arguments.input / RECORDING} to judge its recording again",
            USAGE,
        )


def _read(path: Path) -> list[Path]:
    """Return the files that are read: a scan's directory may take the page, beside them."""
    if not path.is_dir():
        return [path]
    return [path / name for name in SCAN_FILES if name != REPORT]


def _judged(arguments: argparse.Namespace) -> Judged:
    from reveal_cli import recording_analysis  # noqa: PLC0415 - heavy, and needs an extra
    from reveal_cli.analysis import FileKind, file_kind  # noqa: PLC0415
    from reveal_cli.page_data.finding_parts import Judged  # noqa: PLC0415

    path: Path = arguments.input
    if file_kind(path) is not FileKind.RECORDING:
        raise CliError(f"{path} is a table: a report needs a recording or a scan's files", USAGE)
    result = recording_analysis.judge(path, analyzer_settings(arguments))
    files = [str(file) for file in arguments.hypotheses]
    return Judged(path, path.name, result.findings, result.hints, result.coverage, files)
