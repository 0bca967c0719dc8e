"""``reveal-collector``: samples this host and ships to Redis, into a recording, or both."""

from __future__ import annotations

import argparse
import json
import logging
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from reveal_collector.collector import Collector
from reveal_collector.kernel import memory_saving
from reveal_collector.kernel.scheduling import die_with_parent
from reveal_collector.kernel.signals import TerminationSignal
from reveal_collector.shipping.redis_sink import RedisSink
from reveal_collector.shipping.sinks import RecordingSink, Sink
from reveal_collector.subjects.pods.process_owner import own_pod_cgroups
from reveal_contract import VERSION
from reveal_contract.kube.names import NAMESPACE_VARIABLE, NODE_VARIABLE, POD_VARIABLE
from reveal_contract.names import REDIS_VARIABLE
from reveal_contract.recording import Writer
from reveal_contract.redis_address import with_credentials
from reveal_contract.runtime import logs
from reveal_contract.runtime.liveness import Pulse
from reveal_contract.settings import CollectorSettings, SettingsError

log = logging.getLogger(__name__)

# Less than the 5 ms of the interpreter: how long an encoder may hold up a tick.
SWITCH_SECONDS = 0.001
# For what waits for Redis at the end: a pod has 30 s unless told otherwise.
DRAIN_SECONDS = 20.0
_HELP_WIDTH = 98


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM, SIGINT or the end of ``--duration``; 0 done, 1 error, 2 usage.

    A second signal ends the process at once.
    """
    arguments = parser().parse_args(argv)
    logs.set_up(arguments.log_format)
    memory_saving.limit_allocator()
    try:
        if arguments.die_with_parent:
            die_with_parent()
        settings = settings_of(arguments, os.environ)
        pulse = Pulse(arguments.run_folder)
        collector = Collector(settings, sinks_of(settings, arguments.record), pulse=pulse)
        return run(collector, arguments.duration, arguments.drain_seconds)
    except SettingsError as error:
        logs.last_words(f"reveal-collector: {error}")
        return 2
    except OSError as error:
        logs.last_words(f"reveal-collector: {error}")
        return 1


def run(collector: Collector, duration: float | None, drain: float) -> int:
    """From start to clean stop, with the signals that end it; ``drain`` seconds are its end's."""
    sys.setswitchinterval(SWITCH_SECONDS)
    with TerminationSignal() as ending:
        collector.start()
        try:
            _announce(collector)
            if collector.settings.metrics_port:
                _serve(collector)
            memory_saving.release_startup_memory()
            ending.wait(duration)
        finally:
            collector.stop(drain)
    return 0


def _announce(collector: Collector) -> None:
    status = collector.status()
    log.info("%s: %d channels of %d sources", status.node, status.channels, len(status.sources))


def _serve(collector: Collector) -> None:
    """Answer scrapes; go without where the port of the host is taken, by another profile's."""
    # prometheus_client and its web server take 3 MB
    from reveal_collector.exporter.metrics import serve  # noqa: PLC0415

    try:
        serve(collector, collector.settings.metrics_port)
    except OSError as error:
        log.warning("no metrics are served: %s", error.strerror)


def parser() -> argparse.ArgumentParser:
    """One flag a setting, named as the setting, and what belongs to this run only."""
    made = argparse.ArgumentParser(
        prog="reveal-collector",
        description=__doc__,
        # asked for the terminal's width, argparse loads what unpacks archives: 0.5 MB
        formatter_class=partial(argparse.HelpFormatter, width=_HELP_WIDTH),
    )
    for spec in fields(CollectorSettings):
        kind: dict[str, Any] = {"type": int} if isinstance(spec.default, int) else {}
        if isinstance(spec.default, bool):
            kind = {"action": argparse.BooleanOptionalAction, "default": None}
        if isinstance(spec.default, tuple):
            kind = {"nargs": "*", "metavar": "NAME"}
        shown = "" if spec.default in (MISSING, (), "") else f"default {spec.default}"
        made.add_argument(f"--{spec.name.replace('_', '-')}", help=shown, **kind)
    made.add_argument("--settings", type=Path, metavar="FILE", help="settings as JSON; flags win")
    made.add_argument(
        "--redis-file", type=Path, metavar="FILE",
        help=f"file that holds the URL of Redis; as {REDIS_VARIABLE} in the environment,"
        " it keeps a password out of the list of processes",
    )  # fmt: skip
    made.add_argument("--record", type=Path, metavar="FILE", help="write a recording as well")
    _add_of_process(made)
    made.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    return made


def _add_of_process(made: argparse.ArgumentParser) -> None:
    """How the process lives and ends."""
    made.add_argument("--duration", type=float, metavar="SECONDS", help="end after this long")
    made.add_argument(
        "--drain-seconds", type=float, default=DRAIN_SECONDS, metavar="SECONDS",
        help="for the end: what waits for Redis still goes out (default %(default)g)",
    )  # fmt: skip
    made.add_argument(
        "--run-folder", type=Path, metavar="FOLDER", help="touch files there for a probe"
    )
    made.add_argument(
        "--die-with-parent", action="store_true", help="end when the parent process ends"
    )
    logs.add_flag(made)


def settings_of(arguments: argparse.Namespace, environment: Mapping[str, str]) -> CollectorSettings:
    """The file's settings, overridden by the environment and that by flags.

    The node is this host unless said.
    """
    given: dict[str, Any] = {"node": socket.gethostname(), "redisUrl": ""}
    if arguments.settings is not None:
        given |= file_settings(arguments.settings)
    if node := environment.get(NODE_VARIABLE):
        given["node"] = node
    given |= redis_elsewhere(arguments.redis_file, environment)
    flags: dict[str, Any] = {
        spec.name: tuple(value) if isinstance(value, list) else value
        for spec in fields(CollectorSettings)
        if (value := getattr(arguments, spec.name)) is not None
    }
    settings = replace(CollectorSettings.from_mapping(given), **flags)
    if problems := settings.problems():
        raise SettingsError("; ".join(problems))
    return replace(
        settings,
        redis_url=with_credentials(settings.redis_url, environment),
        leave_out_subjects=(*settings.leave_out_subjects, *ourselves(settings, environment)),
    )


def redis_elsewhere(file: Path | None, environment: Mapping[str, str]) -> dict[str, str]:
    """The Redis URL of a file, else of the environment, as settings."""
    if file is not None:
        return {"redisUrl": file.read_text(errors="replace").strip()}
    url = environment.get(REDIS_VARIABLE)
    return {"redisUrl": url} if url else {}


def ourselves(settings: CollectorSettings, environment: Mapping[str, str]) -> list[str]:
    """The pod we run in, by name and cgroup: what we cost is told as ``own``, not as a subject's.

    Only where the operator made it: who looks around by hand in a pod wants to see that one.
    """
    pod, namespace = environment.get(POD_VARIABLE), environment.get(NAMESPACE_VARIABLE)
    if not pod or not namespace:
        return []
    return [f"{namespace}/{pod}", *own_pod_cgroups(Path(settings.proc_root))]


def file_settings(path: Path) -> dict[str, Any]:
    """The JSON object in a settings file."""
    try:
        given = json.loads(path.read_bytes())
    except ValueError as error:
        raise SettingsError(f"{path} is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise SettingsError(f"{path} is not a JSON object")
    return given


def sinks_of(settings: CollectorSettings, recording: Path | None) -> list[Sink]:
    """Redis where a URL is given, a recording where a file is; one at least."""
    made: list[Sink] = []
    if settings.redis_url:
        made.append(RedisSink(settings))
    if recording is not None:
        made.append(RecordingSink(Writer(recording)))
    if not made:
        raise SettingsError("nowhere to ship to: give --redis-url or --record")
    return made
