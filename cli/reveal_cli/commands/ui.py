"""``reveal ui``: the findings of scans in a browser, served on this machine only."""

from __future__ import annotations

import argparse
from pathlib import Path

from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "ui",
        help="show the findings of scans in a browser",
        description="Serves the findings of a folder of scans on 127.0.0.1, for a browser of this"
        " machine: nodes by their health, findings with filters, jobs, and a page with the evidence"
        " of each finding. The printed address has a token: nobody else can read it. Ctrl-C ends"
        " it.",
        epilog="Example: reveal ui /var/lib/reveal/scans",
    )
    parser.add_argument(
        "dir", metavar="DIR", type=Path,
        help="a directory of `reveal scan --output`, or a folder of such directories",
    )  # fmt: skip
    parser.add_argument(
        "--port", metavar="PORT", type=int, default=0, help="the port (default: any free one)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Serve until the user interrupts."""
    from reveal_cli.ui.scan_folder import ScanFolder  # noqa: PLC0415 - heavy
    from reveal_cli.ui.serving import serve  # noqa: PLC0415

    serve(ScanFolder(arguments.dir), arguments.port, interrupt)
    return DONE
