"""``reveal-collector``: samples this host and ships to Redis, to a recording, or both."""

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
from reveal_collector.kernel_interfaces import memory_saving
from reveal_collector.kernel_interfaces.scheduling import die_with_parent
from reveal_collector.kernel_interfaces.signals import TerminationSignal
from reveal_collector.shipping.redis_sink import RedisSink
from reveal_collector.shipping.sinks import RecordingSink, Sink
from reveal_collector.subjects.pods.process_owner import own_pod_cgroups
from reveal_contract import VERSION
from reveal_contract.foreign_names import printable
from reveal_contract.kube.names import NAMESPACE_VARIABLE, NODE_VARIABLE, POD_VARIABLE
from reveal_contract.names import REDIS_VARIABLE
from reveal_contract.recording import RecordingWriter
from reveal_contract.redis_address import with_credentials
from reveal_contract.runtime import logs, thread_defects
from reveal_contract.runtime.liveness import LivenessFiles
from reveal_contract.settings import CollectorSettings, SettingsError

log = logging.getLogger(__name__)

# The longest time that an encoder may delay a tick; the interpreter's default is 5 ms.
SWITCH_SECONDS = 0.001
# For slices that wait for Redis at the end: a pod has 30 s by default.
DRAIN_SECONDS = 20.0
_HELP_WIDTH = 98


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM, SIGINT or the end of ``--duration``; return the exit status.

    0 means success, 1 an error, 2 a usage error.  A second signal ends the process at once.
    """
    arguments = parser().parse_args(argv)
    logs.set_up(arguments.log_format)
    thread_defects.end_on_defects()
    memory_saving.limit_allocator()
    try:
        if arguments.die_with_parent:
            die_with_parent()
        settings = settings_of(arguments, os.environ)
        pulse = LivenessFiles(arguments.run_folder)
        collector = Collector(settings, sinks_of(settings, arguments.record), pulse=pulse)
        return run(collector, arguments.duration, arguments.drain_seconds)
    except SettingsError as error:
        logs.last_words(f"reveal-collector: {error}")
        return 2
    except OSError as error:
        logs.last_words(f"reveal-collector: {error}")
        return 1


def run(collector: Collector, duration: float | None, drain: float) -> int:
    """Start the collector, wait for a signal or the duration, and stop within ``drain`` seconds."""
    sys.setswitchinterval(SWITCH_SECONDS)
    with TerminationSignal() as termination:
        collector.start()
        try:
            _announce(collector)
            if collector.settings.metrics_port:
                _serve(collector)
            memory_saving.release_startup_memory()
            termination.wait(duration)
        finally:
            collector.stop(drain)
    return 0


def _announce(collector: Collector) -> None:
    status = collector.status()
    log.info("%s: %d channels of %d sources", status.node, status.channels, len(status.sources))


def _serve(collector: Collector) -> None:
    """Serve scrapes; continue without them where another collector on this host has the port."""
    # prometheus_client and its web server take 3 MB
    from reveal_collector.exporter.metrics import serve  # noqa: PLC0415

    try:
        serve(collector, collector.settings.metrics_port)
    except OSError as error:
        log.warning("metrics are not served: %s", error.strerror)


def parser() -> argparse.ArgumentParser:
    """Return the parser: one flag for each setting, named like it, and flags of this run only."""
    command = argparse.ArgumentParser(
        prog="reveal-collector",
        description=__doc__,
        # to find the terminal's width, argparse loads shutil and its archive modules: 0.5 MB
        formatter_class=partial(argparse.HelpFormatter, width=_HELP_WIDTH),
    )
    for spec in fields(CollectorSettings):
        kind: dict[str, Any] = {"type": int} if isinstance(spec.default, int) else {}
        if isinstance(spec.default, bool):
            kind = {"action": argparse.BooleanOptionalAction, "default": None}
        if isinstance(spec.default, tuple):
            kind = {"nargs": "*", "metavar": "NAME"}
        text = "" if spec.default in (MISSING, (), "") else f"default {spec.default}"
        command.add_argument(f"--{spec.name.replace('_', '-')}", help=text, **kind)
    command.add_argument(
        "--settings", type=Path, metavar="FILE", help="settings as JSON; flags override them"
    )
    command.add_argument(
        "--redis-file", type=Path, metavar="FILE",
        help=f"file with the URL of Redis; like {REDIS_VARIABLE} in the environment,"
        " it keeps a password out of the process list",
    )  # fmt: skip
    command.add_argument(
        "--record", type=Path, metavar="FILE", help="also write a recording to this new file"
    )
    _add_process_flags(command)
    command.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    return command


def _add_process_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags that control how the process lives and stops."""
    command.add_argument("--duration", type=float, metavar="SECONDS", help="stop after this time")
    command.add_argument(
        "--drain-seconds", type=float, default=DRAIN_SECONDS, metavar="SECONDS",
        help="time to deliver buffered slices to Redis at the end (default %(default)g)",
    )  # fmt: skip
    command.add_argument(
        "--run-folder", type=Path, metavar="FOLDER", help="touch files there for probes"
    )
    command.add_argument(
        "--die-with-parent", action="store_true", help="stop when the parent process ends"
    )
    logs.add_flag(command)


def settings_of(arguments: argparse.Namespace, environment: Mapping[str, str]) -> CollectorSettings:
    """Return the settings of the file, overridden by the environment, overridden by flags.

    The default node name is the host name.
    """
    given: dict[str, Any] = {"node": socket.gethostname(), "redisUrl": ""}
    if arguments.settings is not None:
        given |= read_settings(arguments.settings)
    if node := environment.get(NODE_VARIABLE):
        given["node"] = node
    given |= redis_settings(arguments.redis_file, environment)
    flags: dict[str, Any] = {
        spec.name: tuple(value) if isinstance(value, list) else value
        for spec in fields(CollectorSettings)
        if (value := getattr(arguments, spec.name)) is not None
    }
    settings = replace(CollectorSettings.from_mapping(given), **flags)
    settings = replace(settings, node=printable(settings.node))
    if problems := settings.problems():
        raise SettingsError("; ".join(problems))
    return replace(
        settings,
        redis_url=with_credentials(settings.redis_url, environment),
        leave_out_subjects=(*settings.leave_out_subjects, *own_subjects(settings, environment)),
    )


def redis_settings(file: Path | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the Redis URL of a file or else of the environment, as settings."""
    if file is not None:
        return {"redisUrl": file.read_text(errors="replace").strip()}
    url = environment.get(REDIS_VARIABLE)
    return {"redisUrl": url} if url else {}


def own_subjects(settings: CollectorSettings, environment: Mapping[str, str]) -> list[str]:
    """Return the collector's own pod by name and cgroup, to exclude it from the subjects.

    The ``own`` metrics report its cost.  Only the operator sets the variables: someone who runs the
    collector manually in a pod wants to see that pod.
    """
    pod, namespace = environment.get(POD_VARIABLE), environment.get(NAMESPACE_VARIABLE)
    if not pod or not namespace:
        return []
    return [f"{namespace}/{pod}", *own_pod_cgroups(Path(settings.proc_root))]


def read_settings(path: Path) -> dict[str, Any]:
    """Return the JSON object of a settings file; raises ``SettingsError`` for other content."""
    try:
        given = json.loads(path.read_bytes())
    except ValueError as error:
        raise SettingsError(f"{path} is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise SettingsError(f"{path} is not a JSON object")
    return given


def sinks_of(settings: CollectorSettings, recording: Path | None) -> list[Sink]:
    """Return the Redis sink where a URL is given and the recording where a file is given.

    Raises ``SettingsError`` where neither is given, or the file has content already.
    """
    sinks: list[Sink] = []
    if settings.redis_url:
        sinks.append(RedisSink(settings))
    if recording is not None:
        if recording.is_file() and recording.stat().st_size:
            raise SettingsError(f"--record {recording} exists already: name another file")
        sinks.append(RecordingSink(RecordingWriter(recording)))
    if not sinks:
        raise SettingsError("no destination: give --redis-url or --record")
    return sinks
