"""``reveal export``: the values of a recording as a table for other tools."""

from __future__ import annotations

import argparse
from pathlib import Path

from reveal_cli.atomic_file import write_atomically
from reveal_cli.errors import DONE, USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.output_paths import check_outputs
from reveal_cli.scan_directory import recording_of
from reveal_cli.stderr_lines import note

_CSV, _PARQUET = ".csv", ".parquet"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "export",
        help="write the values of a recording as CSV or Parquet",
        description="Writes a table of a recording: a row for each second, a column for each metric"
        " and instance, such as cpu.user{3}, and its time in UTC. Values are in base units (ns,"
        " bytes), those of counters per second. `reveal analyze` and `reveal explain` read it.",
        epilog="Example: reveal export slow.rvl --metric 'network.*' -o slow.csv",
    )
    parser.add_argument(
        "input", metavar="INPUT", type=Path,
        help="a recording (.rvl), or the directory of `reveal scan --output`",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True,
        help="the file to write: .csv or .parquet, which needs pyarrow",
    )  # fmt: skip
    parser.add_argument(
        "--metric", metavar="GLOB", action="append", default=[],
        help="write these metrics only: 'cpu.*', or with instances '*{eth0}'; can be given several"
        " times",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Write the table."""
    output: Path = arguments.output
    if output.suffix not in (_CSV, _PARQUET):
        raise CliError(f"--output {output} must end in {_CSV} or {_PARQUET}", USAGE)
    recording = recording_of(arguments.input)
    check_outputs({"--output": output}, [recording])
    with interrupt.raising():
        from reveal_cli.recording_export import (  # noqa: PLC0415 - heavy, and needs an extra
            RecordingRows,
            csv_lines,
            parquet_parts,
        )

        rows = RecordingRows(recording, arguments.metric)
        write_atomically(output, csv_lines(rows) if output.suffix == _CSV else parquet_parts(rows))
        for line in rows.warnings:
            note(line)
    return DONE
