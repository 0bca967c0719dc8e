"""``kubectl reveal evidence``, ``report`` and ``trace``: files from the samples of a finding."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from reveal_cli.atomic_file import write_atomically
from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import connect
from reveal_cli.kubectl.pod_samples import samples_of
from reveal_cli.kubectl.reports import ClusterReport
from reveal_cli.stderr_lines import note

if TYPE_CHECKING:
    from reveal_cli.page_data.finding_parts import Judged

Write = Callable[[bytes, ClusterReport, Path], None]
_ONLY = (
    "These are the samples that were kept of one finding: channels of its node that show it, from a"
    " minute before it to a minute after it."
)


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verbs and their flags."""
    _add(
        verbs, "evidence", ".rvl", write_samples,
        "write the samples that were kept of a finding",
        "Writes the samples of 100 ms around a finding to a recording, which `reveal analyze`,"
        " `explain`, `report` and `export` read.",
    )  # fmt: skip
    _add(
        verbs, "report", ".html", write_page,
        "write a page (HTML) that shows a finding with its evidence",
        "Writes one HTML file without a network: what was found, what to do, what was ruled out,"
        " and the evidence in samples of 100 ms.",
    )  # fmt: skip
    _add(
        verbs, "trace", ".pftrace", write_trace,
        "write the samples of a finding as a trace for ui.perfetto.dev",
        "Writes a Perfetto trace of the samples that were kept of a finding.",
    )  # fmt: skip


def _add(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    ending: str,
    write: Write,
    help_: str,
    description: str,
) -> None:
    parser = verbs.add_parser(name, help=help_, description=description)
    parser.add_argument("name", metavar="REPORT", help="the name of the report")
    parser.add_argument(
        "-f", "--file", metavar="FILE", type=Path,
        help=f"the file to write (default: REPORT{ending})",
    )  # fmt: skip
    flags.add_reveal_namespace(parser)
    flags.add_common(parser)
    parser.set_defaults(run=run, write=write, ending=ending)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Write the file of a verb."""
    with interrupt.raising():
        cluster = connect(arguments)
        item = cluster.report(arguments.name)
        samples = samples_of(cluster.requests, item, arguments.reveal_namespace)
        file: Path = arguments.file or Path(f"{item.name}{arguments.ending}")
        arguments.write(samples, item, file)
        note(f"{file} is written", "kubectl reveal")
    return DONE


def write_samples(samples: bytes, _: ClusterReport, file: Path) -> None:
    """Write the recording."""
    write_atomically(file, [samples])


def write_page(samples: bytes, item: ClusterReport, file: Path) -> None:
    """Write the page of the finding."""
    write_atomically(file, [page_of(samples, item)])


def page_of(samples: bytes, item: ClusterReport) -> str:
    """Return the page of a finding from its samples."""
    from reveal_cli.report_file import page  # noqa: PLC0415 - heavy

    with tempfile.TemporaryDirectory(prefix="reveal-") as folder:
        recording = Path(folder) / "samples.rvl"
        recording.write_bytes(samples)
        return page(_judged(recording, item))


def write_trace(samples: bytes, item: ClusterReport, file: Path) -> None:
    """Write the trace of the finding; its origin is 1970: the node is another host."""
    from reveal_cli.trace import recording as traced_recording  # noqa: PLC0415 - heavy
    from reveal_contract.settings import AnalyzerSettings  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="reveal-") as folder:
        recording = Path(folder) / "samples.rvl"
        recording.write_bytes(samples)
        rows = [item.finding.to_dict()]
        traced = traced_recording.read(recording, AnalyzerSettings(), rows)
        write_atomically(file, traced.timeline.packets(traced.first_ns, 0))


def _judged(recording: Path, item: ClusterReport) -> Judged:
    """Return the finding of a report as what was judged from its samples."""
    from reveal_cli.page_data.finding_parts import Judged  # noqa: PLC0415 - heavy
    from reveal_cli.recordings import Slices  # noqa: PLC0415
    from reveal_cli.summary_text import Coverage  # noqa: PLC0415

    starts_ns, channels = [], 0
    for message, table in Slices(recording):
        starts_ns.append(message.start_ns)
        channels = max(channels, len(table.fast) + len(table.slow))
    seconds = 1 + (max(starts_ns) - min(starts_ns)) / 1e9 if starts_ns else 0.0
    coverage = Coverage(seconds, seconds, 0.0, len(starts_ns), channels, recorded=True)
    return Judged(recording, item.name, [item.finding], [], coverage, notes=[_ONLY])
