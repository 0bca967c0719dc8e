"""``reveal-analyzer``: reads the slices of all nodes from Redis and reports anomalies.

Several may run on one Redis: they share the nodes, and take over the nodes of one that dies.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from reveal_analyzer.sinks import Sink
from reveal_analyzer.sinks.jsonl import JsonlSink
from reveal_analyzer.sinks.kube.sink import KubeSink, sink_of
from reveal_analyzer.sinks.metrics import KubeSinkMetrics, Metrics, OtlpMetrics
from reveal_analyzer.sinks.otlp.sink import sink_of as otlp_sink_of
from reveal_analyzer.stream.node_admission import NodeAdmission, nodes_that_fit
from reveal_analyzer.stream.origin import OriginCheck
from reveal_analyzer.stream.reader import StreamReader
from reveal_analyzer.stream.slice_admission import SliceAdmission
from reveal_analyzer.telemetry.degraded import Degradation
from reveal_analyzer.telemetry.snapshot import Snapshot
from reveal_analyzer.worker import Worker
from reveal_contract import VERSION
from reveal_contract.foreign_names import printable
from reveal_contract.kube.names import POD_VARIABLE
from reveal_contract.names import REDIS_VARIABLE
from reveal_contract.redis_address import with_credentials
from reveal_contract.runtime import logs, thread_defects
from reveal_contract.runtime.ignored_signals import without_ignored
from reveal_contract.runtime.liveness import LivenessFiles
from reveal_contract.runtime.memory import usable_bytes
from reveal_contract.settings import (
    MODES,
    PUBLISH,
    SENSITIVITIES,
    AnalyzerSettings,
    SettingsError,
)

if TYPE_CHECKING:
    from reveal_analyzer.ledger.gpu_time_metrics import GpuTimeMetrics
    from reveal_analyzer.ledger.subject_metrics import SubjectMetrics
    from reveal_analyzer.node import NodeAnalyzer

# time limit of an orderly shutdown: less than the 30 s of a pod, more than a few hung commands
DRAIN_SECONDS = 5.0
_FLAGS = (
    "redis_url", "profile", "mode", "sensitivity", "metrics_port", "metrics_access_folder",
    "publish",
)  # fmt: skip


class Overdue(BaseException):
    """The orderly shutdown took too long; the next analyzer reads what was not acknowledged."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; the second one ends it at once.  0 done, 1 error, 2 usage."""
    arguments = parser().parse_args(argv)
    logs.set_up(arguments.log_format)
    thread_defects.end_on_defects()
    # before the imports, which take seconds: a signal during them is an orderly shutdown too
    stopping = _stop_on_signals(arguments.drain_seconds)
    try:
        settings = settings_of(arguments, os.environ)
        pulse = LivenessFiles(arguments.run_folder)
        cluster = sink_of(settings, arguments.owner, arguments.kubeconfig, arguments.run_folder)
        worker = build(settings, arguments.jsonl, arguments.owner, pulse, cluster)
        run(worker, stopping, pulse)
    except SettingsError as error:
        return _fail(str(error), 2)
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        return _fail(f"{file}{error.strerror or error}", 1)
    except Overdue:
        logging.warning("ended before all was acknowledged; the next analyzer reads the rest")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        gc.freeze()  # else the collection at exit takes 0.7 s for the objects of libraries
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    flags = argparse.ArgumentParser(prog="reveal-analyzer", description=__doc__)
    _add_settings(flags)
    _add_process(flags)
    logs.add_flag(flags)
    flags.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    return flags


def _add_settings(flags: argparse.ArgumentParser) -> None:
    """Add the flags that override settings."""
    flags.add_argument(
        "--redis",
        dest="redis_url",
        metavar="URL",
        help="redis://, unix://, redis+sentinel:// or redis+cluster://, with rediss in place of"
        " redis for TLS"
        f" (default: environment variable {REDIS_VARIABLE})",
    )
    flags.add_argument("--profile", metavar="NAME", help="whose nodes to read (default: default)")
    flags.add_argument("--mode", choices=MODES, help="online (default), or the paper's decision")
    flags.add_argument("--sensitivity", choices=SENSITIVITIES)
    flags.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="port of /metrics, /healthz and /readyz (default: none)",
    )
    flags.add_argument(
        "--metrics-access-folder",
        metavar="FOLDER",
        help="serve HTTPS, by the files tls.crt, tls.key, client-ca.crt and token of this folder",
    )
    flags.add_argument(
        "--settings", type=Path, metavar="FILE", help="settings as JSON; flags override them"
    )
    flags.add_argument(
        "--publish",
        "--report",  # its former name
        choices=PUBLISH,
        help="kubernetes: write findings as AnomalyReports and Events; observe: write only the"
        " telemetry of the profile; none (default): write nothing to the Kubernetes API",
    )


def _add_process(flags: argparse.ArgumentParser) -> None:
    """Add the flags of this one process."""
    flags.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the cluster to write to (default: the cluster of this pod)",
    )
    flags.add_argument("--jsonl", type=Path, metavar="FILE", help="append findings as JSON rows")
    host = os.environ.get(POD_VARIABLE) or socket.gethostname()
    flags.add_argument(
        "--owner",
        type=printable,
        default=f"{host}-{os.getpid()}",
        metavar="NAME",
        help="name, unique among analyzers (default: name of the pod or host, and process id)",
    )
    flags.add_argument(
        "--run-folder",
        type=Path,
        metavar="FOLDER",
        help="folder for the files that probes check, and for pending reports",
    )
    flags.add_argument(
        "--drain-seconds",
        type=float,
        default=DRAIN_SECONDS,
        metavar="SECONDS",
        help="time limit of the shutdown after a signal (default: %(default)g)",
    )


def settings_of(arguments: argparse.Namespace, environment: Mapping[str, str]) -> AnalyzerSettings:
    """Return the settings: flags override the environment, which overrides the file."""
    read = AnalyzerSettings()
    if arguments.settings is not None:
        read = AnalyzerSettings.from_json(arguments.settings.read_bytes())
    if url := environment.get(REDIS_VARIABLE):
        read = replace(read, redis_url=url)
    given = {name: getattr(arguments, name) for name in _FLAGS}
    chosen = {name: value for name, value in given.items() if value is not None}
    settings = AnalyzerSettings.from_mapping({**vars(read), **chosen})
    if not settings.redis_url:
        raise SettingsError(f"redisUrl: is required, give --redis URL or {REDIS_VARIABLE}")
    return replace(settings, redis_url=with_credentials(settings.redis_url, environment))


@dataclass
class _Outputs:
    """Where findings and snapshots go."""

    gpu_time: GpuTimeMetrics
    sinks: list[Sink] = field(default_factory=list)
    observers: list[Callable[[Snapshot], None]] = field(default_factory=list)
    degradations: list[Callable[[], Iterable[Degradation]]] = field(default_factory=list)
    by_subject: SubjectMetrics | None = None

    def observe(self, snapshot: Snapshot) -> None:
        """Give a snapshot to all who want one."""
        for observe in self.observers:
            observe(snapshot)


def build(
    settings: AnalyzerSettings,
    jsonl: Path | None,
    owner: str,
    pulse: LivenessFiles,
    cluster: KubeSink | None = None,
) -> Worker:
    """Return the worker with all its parts; metrics are served, nothing is read yet."""
    from reveal_analyzer.detectors import isolation_forest  # noqa: PLC0415
    from reveal_analyzer.evidence.factory import keep_samples  # noqa: PLC0415
    from reveal_analyzer.fleet.fleet import Fleet  # noqa: PLC0415
    from reveal_analyzer.kernels.selection import use_fastest  # noqa: PLC0415 - a second of imports
    from reveal_analyzer.node import OPTIONAL_STATE  # noqa: PLC0415

    logging.info(use_fastest())
    isolation_forest.preload()  # else the first finding waits for it, and so do all nodes
    metrics = Metrics()
    outputs = _outputs(settings, jsonl, cluster, metrics)
    admission = _admission_of(settings, cluster)
    reader = StreamReader(settings, owner, admission=admission)
    if cluster is not None and cluster.pods is not None:
        reader.records.complete = cluster.pods.completed
    if settings.metrics_port:
        ready = partial(not_ready, pulse, reader)
        folder = settings.metrics_access_folder
        metrics.serve(settings.metrics_port, pulse.stalled, ready, folder)
    analysis = _analysis_of(settings, reader, outputs)
    client = reader.connection.client
    fleet = Fleet(client, settings.profile, owner, records=reader.records)
    observe = outputs.observe if outputs.observers else None
    worker = Worker(reader, analysis, outputs.sinks, metrics, fleet, observe, OPTIONAL_STATE)
    for degradations in (*outputs.degradations, admission.degradations):
        worker.report_degradations(degradations)
    kept = keep_samples(settings, admission.is_credible)
    if kept.recorder is not None:
        worker.keep_evidence(kept.recorder)
    if kept.keeper is not None:
        worker.keep_history(kept.keeper)
    return worker


def _outputs(
    settings: AnalyzerSettings, jsonl: Path | None, cluster: KubeSink | None, metrics: Metrics
) -> _Outputs:
    """Return the outputs that settings and flags ask for, and register their metrics."""
    from reveal_analyzer.ledger.gpu_time_metrics import GpuTimeMetrics  # noqa: PLC0415
    from reveal_analyzer.ledger.subject_metrics import SubjectMetrics  # noqa: PLC0415

    outputs = _Outputs(GpuTimeMetrics())
    metrics.registry.register(outputs.gpu_time)
    if jsonl is not None:
        outputs.sinks.append(JsonlSink(jsonl))
    if cluster is not None:
        outputs.sinks.append(cluster)
        outputs.observers.append(cluster.observe)
        outputs.degradations.append(cluster.degradations)
        metrics.registry.register(KubeSinkMetrics(cluster.counts))
    if settings.metrics_subjects:
        outputs.by_subject = SubjectMetrics(settings.metrics_subjects)
        outputs.sinks.append(outputs.by_subject)
        metrics.registry.register(outputs.by_subject)
    if (otlp := otlp_sink_of(settings)) is not None:
        outputs.sinks.append(otlp)
        outputs.observers.append(otlp.observe)
        outputs.degradations.append(otlp.degradations)
        metrics.registry.register(OtlpMetrics(otlp.counts))
    return outputs


def _admission_of(settings: AnalyzerSettings, cluster: KubeSink | None) -> SliceAdmission:
    """Return which slices are taken; without a cluster any that fit into memory."""
    most = nodes_that_fit(usable_bytes())
    if cluster is None:
        return SliceAdmission(NodeAdmission(most))
    nodes = NodeAdmission(most, cluster.is_node)
    if settings.origin_proof == "off":
        return SliceAdmission(nodes)
    required = settings.origin_proof == "required"
    origin = OriginCheck(settings.profile, cluster.tokens.owner, required=required)
    admission = SliceAdmission(nodes, origin)
    cluster.check_origin(admission.is_credible)
    return admission


def _analysis_of(
    settings: AnalyzerSettings, reader: StreamReader, outputs: _Outputs
) -> Callable[[str], NodeAnalyzer]:
    """Return what begins the analysis of a node; raises ``SettingsError`` for bad causes."""
    from reveal_analyzer.hypotheses import loader  # noqa: PLC0415
    from reveal_analyzer.node import Announced, NodeAnalyzer  # noqa: PLC0415
    from reveal_analyzer.paper.fit_budget import FitBudget  # noqa: PLC0415

    try:
        rules = loader.load(settings.hypotheses)  # once for all nodes
    except loader.HypothesisError as error:
        raise SettingsError(str(error)) from None
    # in paper mode every node needs its detectors all the time
    fit_budget = None if settings.mode == "paper" else FitBudget()

    def analysis(node: str) -> NodeAnalyzer:
        known = Announced(partial(reader.subjects, node), partial(reader.shares, node))
        result = NodeAnalyzer(node, settings, rules=rules, announced=known, fit_budget=fit_budget)
        result.on_gpu_hours = outputs.gpu_time.add
        if outputs.by_subject is not None:
            result.on_accounts = partial(outputs.by_subject.add, node)
        return result

    return analysis


def run(worker: Worker, stopping: Callable[[], bool], pulse: LivenessFiles) -> None:
    """Run the loop until a signal, then release everything."""
    while not stopping():
        worker.turn()
        pulse.beat()
        if worker.connected:
            pulse.ready()
    worker.close()


def not_ready(pulse: LivenessFiles, reader: StreamReader) -> str:
    """Return why it is not ready yet; "" once it has read its stream."""
    return "" if pulse.is_ready else f"has not read its stream yet: {reader.connection.reason}"


def _stop_on_signals(seconds: float) -> Callable[[], bool]:
    asked: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if asked:
            os._exit(128 + number)  # process 1 of a container has no default action for signals
        asked.append(number)
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))  # 0 would mean never

    def overdue(number: int, frame: FrameType | None) -> None:
        raise Overdue

    signal.signal(signal.SIGALRM, overdue)
    for number in (signal.SIGTERM, *without_ignored([signal.SIGINT])):
        signal.signal(number, stop)
    return lambda: bool(asked)


def _fail(sentence: str, code: int) -> int:
    logs.last_words(f"reveal-analyzer: {sentence}")
    return code


if __name__ == "__main__":
    sys.exit(main())
