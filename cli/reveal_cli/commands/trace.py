"""``reveal trace``: a recording and its findings for the viewer of Perfetto."""

from __future__ import annotations

import argparse
from pathlib import Path

from reveal_cli.atomic_file import write_atomically
from reveal_cli.errors import DONE, USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.output_paths import check_outputs
from reveal_cli.scan_directory import FINDINGS, recording_of
from reveal_cli.stderr_lines import note
from reveal_contract.finding import rfc3339
from reveal_contract.settings import AnalyzerSettings


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "trace",
        help="write a recording and its findings as a trace for ui.perfetto.dev",
        description="Writes a Perfetto trace: nodes as processes, subsystems as tracks, findings"
        " as slices with arrows from who causes them and to whom they slow, the metrics of their"
        " evidence as counters, and the steps of jobs. docs/how-to/see-a-trace.md lays it over a"
        " trace of PyTorch.",
        epilog="Example: reveal trace out/ -o slow.pftrace",
    )
    parser.add_argument(
        "input", metavar="INPUT", type=Path,
        help="a recording (.rvl), or the directory of `reveal scan --output`",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True,
        help="the file to write, such as slow.pftrace",
    )  # fmt: skip
    parser.add_argument(
        "--findings", metavar="FILE.jsonl", type=Path,
        help="the findings to draw, as `reveal analyze --findings` writes them (default: those of"
        " the scan; a recording is judged)",
    )  # fmt: skip
    parser.add_argument(
        "--origin", metavar="NS", type=_origin,
        help="the time that is 0 in the trace, in ns since 1970: `baseTimeNanoseconds` of a PyTorch"
        " trace (default: when this host booted, or 1970 for a recording of another boot)",
    )  # fmt: skip
    parser.set_defaults(run=run)


def _origin(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of nanoseconds since 1970")
    return int(text)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Write the trace."""
    path = recording_of(arguments.input)
    findings = _findings_file(arguments)
    inputs = [path] if findings is None else [path, findings]
    check_outputs({"--output": arguments.output}, inputs)
    with interrupt.raising():
        from reveal_cli.trace import recording  # noqa: PLC0415 - heavy, and needs an extra
        from reveal_cli.trace.findings import read  # noqa: PLC0415

        given = None if findings is None else read(findings)
        traced = recording.read(path, AnalyzerSettings(), given)
        origin_ns: int | None = arguments.origin
        if origin_ns is None:
            origin_ns = recording.boot_time_ns(traced.boot)
        if origin_ns > traced.first_ns:
            began = rfc3339(traced.first_ns)
            raise CliError(f"--origin {origin_ns} is after the recording begins ({began})", USAGE)
        packets = traced.timeline.packets(traced.first_ns, origin_ns)
        write_atomically(arguments.output, packets)
        for line in traced.warnings:
            note(line)
    return DONE


def _findings_file(arguments: argparse.Namespace) -> Path | None:
    """Return the file of the findings to draw; none where the recording must be judged."""
    if arguments.findings is not None:
        return Path(arguments.findings)
    beside = arguments.input / FINDINGS
    return beside if arguments.input.is_dir() and beside.is_file() else None
