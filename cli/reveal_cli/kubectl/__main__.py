"""The kubectl plugin ``kubectl reveal``: data goes to stdout, errors go to stderr."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from reveal_cli.program import Program
from reveal_contract import VERSION

_PROGRAM = Program("kubectl reveal", extras="local,kubernetes")

try:
    from reveal_cli.kubectl import (
        cost,
        evidence,
        explain,
        flags,
        node_history,
        open_findings,
        silence,
        top,
        ui,
        unsilence,
        why,
    )
except ModuleNotFoundError as error:
    sys.exit(_PROGRAM.missing(error))


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with all verbs; without a verb it lists the open findings."""
    parser = argparse.ArgumentParser(
        prog="kubectl reveal",
        description="Shows what slows down the jobs of a cluster. Without a verb it lists the open"
        " findings by job, the worst first. It has the rights of your kubeconfig, and no others.",
        epilog="Exit codes: 0 done, 1 error, 2 wrong usage.",
    )
    parser.add_argument("--version", action="version", version=f"kubectl-reveal {VERSION}")
    flags.add_common(parser)
    flags.add_output(parser)
    parser.set_defaults(run=open_findings.run, **flags.DEFAULTS)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    for verb in (why, cost, explain, top, node_history, evidence, ui, silence, unsilence):
        verb.add(verbs)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb and return its exit code."""
    return _PROGRAM.main(build_parser, argv)


if __name__ == "__main__":
    sys.exit(main())
