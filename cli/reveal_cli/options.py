"""Argument types and groups of arguments that several commands share."""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from reveal_cli.errors import USAGE, CliError
from reveal_contract.finding import Severity
from reveal_contract.foreign_names import printable
from reveal_contract.kube.names import REDIS_PASSWORD_VARIABLE, REDIS_USERNAME_VARIABLE
from reveal_contract.redis_address import with_credentials
from reveal_contract.settings import MODES, SENSITIVITIES, AnalyzerSettings, SettingsError

_T = TypeVar("_T")

FOREVER = math.inf
OFFLINE = "offline"
# how a table is read; recordings need none of them
TABLE_FLAGS = (
    "time", "period", "entity", "value", "format", "day-first", "month-first", "excel-dates",
)  # fmt: skip
_MODE_ALIASES = {"report": OFFLINE}  # its name until version 0.1
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?\Z", re.ASCII)
_TIME = re.compile(
    r"(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,12}(?:\.\d{1,9})?)(s|ms|us|ns)?)?\Z", re.ASCII
)
_UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_MAX_NODE_BYTES = 253


def duration(text: str) -> float:
    """Return the seconds of "90", "90s", "3m", "1h30m"; infinity for "0" and "forever"."""
    word = text.strip().lower()
    if word == "forever":
        return FOREVER
    match = _DURATION.match(word)
    if not word or match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a duration: write 90s, 3m, 1h30m or forever"
        )
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(hours * 3600 + minutes * 60 + seconds) or FOREVER


def nanoseconds(text: str) -> int:
    """Return the nanoseconds of "0.5", "3s", "100ms", "2m", "1h30m"; a bare number is seconds."""
    match = _TIME.match(text.strip().lower())
    if match is None or not any(match.groups()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: write 100ms, 3s, 2m or 1h30m")
    hours, minutes, number, unit = match.groups()
    whole = (int(hours or 0) * 3600 + int(minutes or 0) * 60) * _UNITS["s"]
    return whole + int(Decimal(number or 0) * _UNITS[unit or "s"])


@dataclass(frozen=True)
class Length:
    """A number of samples, or a time; the other is 0."""

    samples: int = 0
    ns: int = 0

    def in_samples(self, period_ns: int) -> int:
        """Return the length in samples of this period, at least one."""
        return self.samples or max(1, round(self.ns / max(1, period_ns)))


def length(text: str) -> Length:
    """Return the samples of "30" or the time of "3s"; neither may be 0."""
    plain = text.isascii() and text.isdecimal()
    result = Length(samples=int(text)) if plain else Length(ns=nanoseconds(text))
    if result == Length():
        raise argparse.ArgumentTypeError(f"{text!r} is not a length: write 30 (samples) or 3s")
    return result


def severity(text: str) -> Severity:
    """Return the severity of this name, in any case."""
    return _choice(text, {level.value.lower(): level for level in Severity}, "severity")


def sensitivity(text: str) -> str:
    """Return the sensitivity of this name, in any case."""
    return _choice(text, {word.lower(): word for word in SENSITIVITIES}, "sensitivity")


def _choice(text: str, known: dict[str, _T], what: str) -> _T:
    if text.lower() not in known:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a {what}: choose one of {', '.join(known)}"
        )
    return known[text.lower()]


def add_judging(
    parser: argparse.ArgumentParser, warmup: str = "60s", *, offline: bool = False
) -> None:
    """Add the flags that decide how data is judged.

    ``offline`` adds the mode for recordings and tables, and makes ``None`` the default mode.
    """
    group = parser.add_argument_group("judging")
    group.add_argument(
        "--warmup", metavar="TIME", type=duration, default=duration(warmup),
        help=f"how long to learn the baseline before judging (default {warmup}, at least 10s)",
    )  # fmt: skip
    group.add_argument(
        "--sensitivity", metavar="LEVEL", type=sensitivity, default="Low",
        help="low (default: few false findings), medium or high (smaller faults are found, with"
        " more false findings)",
    )  # fmt: skip
    _add_mode(group, offline)
    group.add_argument(
        "--hypotheses", metavar="FILE", type=Path, action="append", default=[],
        help="a file of your own causes, or a folder of such files (docs/how-to/add-a-cause.md);"
        " can be given several times",
    )  # fmt: skip
    group.add_argument(
        "--fail-on", metavar="SEVERITY", type=severity,
        help="exit with 3 when a finding is at least this severe: low, medium, high or critical",
    )  # fmt: skip


def _add_mode(group: argparse._ArgumentGroup, offline: bool) -> None:
    if offline:
        group.add_argument(
            "--mode", choices=(OFFLINE, *MODES), type=lambda name: _MODE_ALIASES.get(name, name),
            help="offline (default for tables; alias: report): judge each second against the whole"
            " recording or table; online (default for recordings): against the time before it, and"
            " recordings also as a whole; paper: report where two of three detectors agree",
        )  # fmt: skip
        return
    group.add_argument(
        "--mode", choices=MODES, default="online",
        help="online (default): score the harm in amounts that matter; paper: report where two of"
        " three detectors agree",
    )  # fmt: skip


def add_redis(parser: argparse.ArgumentParser) -> None:
    """Add the flag of the Redis that is used instead of a private one."""
    parser.add_argument(
        "--redis", metavar="URL", default="",
        help="use this Redis instead of a private one: redis://host:6379/0, unix:///path,"
        " redis+sentinel://host:26379,host:26379/service or redis+cluster://host:6379,host:6379;"
        f" without user and password it takes those of {REDIS_USERNAME_VARIABLE} and"
        f" {REDIS_PASSWORD_VARIABLE} in the environment, which others cannot read",
    )  # fmt: skip


def with_login(url: str) -> str:
    """Return a URL of Redis with the login of the environment, unless it has its own.

    Everyone on the host can read the arguments of a process.  "", which is a private Redis, stays.
    """
    return with_credentials(url, os.environ)


def add_host(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose the host and its sources."""
    group = parser.add_argument_group("host and sources")
    group.add_argument(
        "--node", type=printable, default=platform.node() or "localhost", help=argparse.SUPPRESS
    )
    for name, path in (("proc", "/proc"), ("sys", "/sys"), ("cgroup", "/sys/fs/cgroup")):
        group.add_argument(
            f"--{name}-root", metavar="DIR", type=Path, default=Path(path),
            help=f"where {path} of the host is mounted (default {path})",
        )  # fmt: skip
    for word, what in (
        ("include", "read this source only"),
        ("exclude", "do not read this source"),
    ):
        group.add_argument(
            f"--{word}-source", metavar="NAME", action="append", default=[],
            help=f"{what}; can be given several times (`reveal catalog` lists the sources)",
        )  # fmt: skip


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how a table is read."""
    group = parser.add_argument_group("tables")
    group.add_argument(
        "--time", metavar="COLUMN",
        help="the column with the times, in RFC 3339 or as epoch numbers (default: detected)",
    )  # fmt: skip
    group.add_argument(
        "--period", metavar="TIME", type=nanoseconds,
        help="time between two rows of a table that has no times, such as 100ms (default 1s)",
    )  # fmt: skip
    group.add_argument(
        "--entity", metavar="COLUMN", action="append", default=[],
        help="a column that says which host, device or series a row is about; can be given several"
        " times (default: detected)",
    )  # fmt: skip
    group.add_argument(
        "--value", metavar="COLUMN", action="append", default=[],
        help="a column to judge, and no others; can be given several times (default: all columns"
        " of numbers)",
    )  # fmt: skip
    group.add_argument(
        "--format", metavar="NAME", default="",
        help="the tool that has written the table, such as sadf or nvidia-smi (default: detected);"
        " docs/reference/table-formats.md lists them",
    )  # fmt: skip
    order = group.add_mutually_exclusive_group()
    order.add_argument("--day-first", action="store_true", help="05/06/2026 is the 5th of June")
    order.add_argument("--month-first", action="store_true", help="05/06/2026 is the 6th of May")
    group.add_argument(
        "--excel-dates", action="store_true",
        help="times are days since 1900, as spreadsheets number them",
    )  # fmt: skip


def check_host(arguments: argparse.Namespace) -> None:
    """Raise ``CliError`` for a node name or root that cannot be used."""
    if not 1 <= len(arguments.node.encode()) <= _MAX_NODE_BYTES:
        raise CliError(f"--node must be a name of 1 to {_MAX_NODE_BYTES} bytes", USAGE)
    for name in ("proc", "sys", "cgroup"):
        root: Path = getattr(arguments, f"{name}_root")
        try:
            next(root.iterdir(), None)
        except OSError as error:
            raise CliError(
                f"--{name}-root {root} cannot be read ({error.strerror}):"
                f" name the directory where the host's {name} files are mounted"
            ) from None


def analyzer_settings(arguments: argparse.Namespace, **more: int) -> AnalyzerSettings:
    """Return the settings of these flags; one usage error lists all that is wrong with them."""
    if math.isinf(arguments.warmup):
        raise CliError("--warmup must end: give a time such as 60s", USAGE)
    try:
        return AnalyzerSettings.from_mapping(
            {
                "mode": arguments.mode if arguments.mode in MODES else "online",
                "sensitivity": arguments.sensitivity,
                "warmupSeconds": int(arguments.warmup),
                "hypotheses": _checked_hypotheses(arguments.hypotheses),
                **more,
            }
        )
    except SettingsError as error:
        raise CliError(str(error), USAGE) from None


def _checked_hypotheses(files: Sequence[Path]) -> list[str]:
    """Return the names of the files; raises ``CliError`` for a mistake in one of them."""
    from reveal_analyzer.hypotheses.loader import (  # noqa: PLC0415 - needs an extra
        HypothesisError,
        load,
    )

    names = [str(path) for path in files]
    try:
        if names:
            load(names)
    except HypothesisError as error:
        raise CliError(str(error), USAGE) from None
    return names


def format_duration(seconds: float) -> str:
    """Return seconds as 45s, 2m05s or 1h02m."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
