"""``reveal evidence``: get the samples that an analyzer kept of a finding."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from reveal_cli.atomic_file import write_atomically
from reveal_cli.errors import DONE, USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import with_login
from reveal_cli.output_paths import check_outputs
from reveal_contract.names import DEFAULT_PROFILE, REDIS_VARIABLE
from reveal_contract.redis_address import AddressError
from reveal_contract.settings import AnalyzerSettings

if TYPE_CHECKING:
    from reveal_analyzer.evidence.store import EvidenceStore


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "evidence",
        help="get the samples that an analyzer kept of a finding",
        description="Writes the samples around a finding to a recording, which analyze and explain"
        " read. The name is the id of the finding: status.evidenceRef.name of its AnomalyReport,"
        " or id in findings.jsonl.",
        epilog="Example: reveal evidence cpu-25e4b7961a --profile gpu-nodes -o slow.rvl",
    )
    parser.add_argument("name", metavar="NAME", help="id of the finding")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="the recording to write"
    )
    parser.add_argument(
        "--redis", metavar="URL",
        help=f"the Redis of the analyzers (default: environment variable {REDIS_VARIABLE})",
    )  # fmt: skip
    parser.add_argument(
        "--profile", metavar="NAME",
        help=f"the profile of the node (default: {DEFAULT_PROFILE})",
    )  # fmt: skip
    parser.add_argument(
        "--folder", metavar="DIR", type=Path, help="read the folder of the store Folder instead"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Write the recording."""
    from reveal_analyzer.evidence.store import load_evidence  # noqa: PLC0415 - redis is an extra
    from reveal_analyzer.stream.redis_connection import OUTAGE  # noqa: PLC0415
    from reveal_contract.recording import RecordingError  # noqa: PLC0415

    check_outputs({"--output": arguments.output}, [arguments.folder] if arguments.folder else [])
    with interrupt.raising():
        store = _store(arguments)
        try:
            data = load_evidence(store, arguments.name)
        except KeyError:
            raise CliError(
                f"there are no samples of {arguments.name}: they are kept for spec.evidence"
                ".retentionSeconds, of the newest 500 findings"
            ) from None
        except RecordingError as error:
            raise CliError(str(error)) from None
        except OUTAGE as error:
            raise CliError(f"cannot read the samples: {error}") from None
        finally:
            store.close()
        write_atomically(arguments.output, [data])
    return DONE


def _store(arguments: argparse.Namespace) -> EvidenceStore:
    from reveal_analyzer.evidence.factory import store_of  # noqa: PLC0415 - redis is an extra

    if arguments.folder is not None:
        if arguments.redis or arguments.profile is not None:
            raise CliError("--folder excludes --redis and --profile", USAGE)
        if not arguments.folder.is_dir():
            raise CliError(f"--folder {arguments.folder} is not a directory", USAGE)
        settings = AnalyzerSettings(evidence_store="folder", evidence_folder=str(arguments.folder))
        return store_of(settings)
    url = arguments.redis or os.environ.get(REDIS_VARIABLE, "")
    if not url:
        raise CliError(f"give --redis URL, {REDIS_VARIABLE} or --folder DIR", USAGE)
    try:
        profile = arguments.profile or DEFAULT_PROFILE
        return store_of(AnalyzerSettings(redis_url=with_login(url), profile=profile))
    except AddressError as error:
        raise CliError(f"--redis: {error}", USAGE) from None
