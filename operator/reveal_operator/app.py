"""The operator's parts, and the loop around kopf.

kopf watches.  When it gives up (the CRDs are gone, a right is missing, the API server fails for
long) it is started again, after a pause, in the same process.  Collectors, analyzers and reports
work without the operator, and a process that logs what it waits for is more useful than one that
crashes.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import kopf

from reveal_contract.kube.errors import ApiError
from reveal_contract.kube.names import GROUP, PROFILE_KIND, PROFILES, REPORTS, VERSION
from reveal_contract.runtime import http_endpoints
from reveal_contract.runtime.backoff import Backoff
from reveal_contract.runtime.ignored_signals import without_ignored
from reveal_operator.handlers import OWNED, SELECTOR, Indices, register
from reveal_operator.health import OperatorHealth
from reveal_operator.inspection import WorkloadInspector
from reveal_operator.kube import KubernetesClient
from reveal_operator.metrics import OperatorMetrics
from reveal_operator.node_conditions import NodeConditionSweep
from reveal_operator.owned_objects import OwnedObjects
from reveal_operator.plan import PlanCache
from reveal_operator.profile_events import EventSender
from reveal_operator.profile_status import StatusWriter
from reveal_operator.reconcile import Reconciler
from reveal_operator.report_records import ReportIndex, ReportWatcher
from reveal_operator.retention import SWEEP_S, Retention
from reveal_operator.rollout import RolloutOrder
from reveal_operator.shared_nodes import SharedNodes
from reveal_operator.silence import SilenceTracker
from reveal_operator.silent_nodes import SilentNodeFinder
from reveal_operator.spec import Defaults
from reveal_operator.workqueue import KeyedQueue, work

WORKERS = 4
THREADS = 8  # concurrent requests
RESYNC_S = 600.0
REPORTS_S = 5.0  # until a change of reports is in the profile's status
CRDS_S = 5.0  # between two checks for the CRDs
REMIND_S = 60.0  # between two log lines that say what the operator waits for
STOP_S = 1.0  # time limit of the shutdown: an unanswered request must not delay it longer
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
KOPF_PREFIX = f"operator.{GROUP}"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OperatorOptions:
    """How the operator was started; a port of 0 means none.  ``instance`` is its pod."""

    defaults: Defaults
    metrics_port: int = 0
    metrics_access_folder: str = ""
    health_port: int = 0
    instance: str = ""
    resync_s: float = RESYNC_S
    sweep_s: float = SWEEP_S


class Operator:
    """All parts, for one run of the process; created inside the event loop."""

    def __init__(self, api: KubernetesClient, options: OperatorOptions) -> None:
        self._api, self._options = api, options
        self._namespace = options.defaults.namespace
        self._metrics, self._indices, self._queue = OperatorMetrics(), Indices(), KeyedQueue()
        self._gate, self._stopping = asyncio.Event(), asyncio.Event()
        self._reports = ReportIndex(lambda name: self._queue.add(name, REPORTS_S))
        instance = options.instance or socket.gethostname()
        self._events = EventSender(api, instance, self._metrics)
        self._plans = PlanCache(options.defaults)
        self._reconcile = Reconciler(
            view=self._indices,
            plans=self._plans,
            objects=OwnedObjects(api, self._namespace, self._metrics),
            rollout=RolloutOrder(),
            statuses=StatusWriter(api, self._metrics),
            inspector=WorkloadInspector(api, self._namespace),
            shared_nodes=SharedNodes(api),
            silence=SilenceTracker(),
            silent_nodes=SilentNodeFinder(api, self._namespace),
            reports=self._reports,
            events=self._events,
            metrics=self._metrics,
            revisit=self._queue.add,
        )
        self._health = OperatorHealth(self._queue, self._gate, options.resync_s)
        self._metrics.watch(self._gauges())

    async def run(self) -> None:
        """Work until SIGTERM or SIGINT.  Raises ``OSError`` where a port is in use."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="api"))
        self._catch_signals()
        self._serve()
        follower = ReportWatcher(self._api, self._reports, loop)
        follower.start()
        conditions = NodeConditionSweep(self._api)
        retention = Retention(self._api, self._reports, self._reconcile.limits, self._metrics)
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(part)
            for part in (
                work(self._queue, self._reconcile, self._gate, WORKERS),
                self._resync(),
                self._events.run(),
                retention.run(self._options.sweep_s),
                conditions.run(self._options.sweep_s),
                self._health.beat(),
                self._watch_forever(),
                self._stopping.wait(),
            )
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a part that ended by itself raised an error
        finally:
            follower.stop()
            await _cancel(tasks)

    def _serve(self) -> None:
        """Serve metrics and probes on both ports, so that one of them is enough.

        With a folder that restricts access, metrics are on their own port only.
        """
        options, health = self._options, self._health
        for port in sorted({options.metrics_port, options.health_port} - {0}):
            folder = options.metrics_access_folder if port == options.metrics_port else ""
            open_to_all = not folder and bool(options.metrics_access_folder)
            registry = None if open_to_all else self._metrics.registry
            http_endpoints.serve(registry, port, health.unhealthy, health.unready, folder)

    async def _watch_forever(self) -> None:
        """Run kopf again and again until the operator stops."""
        retry = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        while not self._stopping.is_set():
            await self._wait_for_crds()
            problem = ""
            try:
                await self._watch()
            except Exception as error:
                problem = _sentence(error)
                if self._gate.is_set():  # this run had listed everything: no failure in a row
                    retry.reset()
            finally:
                self._gate.clear()
            pause = retry.next()
            if problem:
                _log.error("the watch ended, will retry in %.0f s: %s", pause, problem)
            await self._stopped_within(pause)

    async def _watch(self) -> None:
        """Run kopf once; open the gate once its indices are complete.

        It runs in a thread with its own event loop: at its end it cancels all tasks of its loop.
        """
        loop, stop = asyncio.get_running_loop(), threading.Event()

        def add(key: str, after: float = 0.0) -> None:
            loop.call_soon_threadsafe(self._queue.add, key, after)

        self._indices.use({})  # those of the previous run are out of date
        registry = register(add, self._indices, self._plans.concerned, configure)
        self._register_login(registry)
        thread = ThreadPoolExecutor(1, thread_name_prefix="kopf")
        try:
            async with asyncio.TaskGroup() as tasks:
                opener = tasks.create_task(self._open())
                await loop.run_in_executor(thread, self._run_kopf, registry, stop)
                opener.cancel()
        finally:
            stop.set()
            thread.shutdown(wait=False)

    def _run_kopf(self, registry: kopf.OperatorRegistry, stop: threading.Event) -> None:
        async def run() -> None:
            try:
                await kopf.operator(
                    registry=registry,
                    namespaces=[self._namespace],
                    standalone=True,
                    stop_flag=stop,
                )
            finally:
                stop.set()  # a thread of this loop waits for it

        asyncio.run(run())

    def _register_login(self, registry: kopf.OperatorRegistry) -> None:
        @kopf.on.login(registry=registry)
        async def login(**_: object) -> kopf.ConnectionInfo:
            known = self._api.access()
            return kopf.ConnectionInfo(
                server=known.server,
                ca_path=known.ca_path,
                insecure=known.insecure,
                scheme=known.scheme,
                token=known.token,
                certificate_path=known.certificate_path,
                private_key_path=known.key_path,
            )

    async def _wait_for_crds(self) -> None:
        """Return once the API server serves our CRDs; log from time to time that it does not."""
        reminded = -REMIND_S
        while not self._stopping.is_set():
            try:
                served = await asyncio.to_thread(self._api.serves, GROUP, VERSION)
                missing = sorted({PROFILES, REPORTS} - served)
                problem = f"no {' and '.join(missing)} of {GROUP}/{VERSION}: apply the CRDs"
            except ApiError as error:
                verb = "refuses" if error.status else "does not respond"
                missing, problem = ["api"], f"the API server {verb}: {error}"
            if not missing:
                await self._use_version()
                return
            if time.monotonic() - reminded >= REMIND_S:
                reminded = time.monotonic()
                _log.warning("waiting: %s", problem)
            await self._stopped_within(CRDS_S)

    async def _use_version(self) -> None:
        """Build manifests for the version of the API server: some fields are new."""
        with suppress(ApiError):
            minor = await asyncio.to_thread(self._api.minor_version)
            self._plans.use(replace(self._options.defaults, kubernetes_minor=minor))

    async def _open(self) -> None:
        """Open the gate once kopf's indices are complete: kopf itself does not signal it."""
        while True:
            try:
                expected = await asyncio.to_thread(self._list)
            except ApiError as error:
                _log.debug("the first list failed: %s", error)
                await asyncio.sleep(1.0)
                continue
            if await self._indexed(expected):
                break
        for profile in self._indices.profiles():
            self._queue.add(profile.name)
        self._health.synced()
        self._gate.set()
        _log.info("watching %s in namespace %s", PROFILES, self._namespace)

    def _list(self) -> set[str]:
        """Return the uids of all profiles and of the objects that they own."""
        kinds = [(PROFILE_KIND, "", ""), *((kind, self._namespace, SELECTOR) for kind in OWNED)]
        return {
            item["metadata"]["uid"]
            for kind, namespace, labels in kinds
            for page in self._api.pages(kind, namespace, labels, metadata=True)
            for item in page.items
        }

    async def _indexed(self, expected: set[str]) -> bool:
        """Wait until the indices have these uids; False if one may have been deleted meanwhile."""
        for _ in range(100):
            known = {each.uid for each in self._indices.profiles()}
            known |= {each.uid for each in self._indices.all_owned()}
            if expected <= known:
                return True
            await asyncio.sleep(0.05)
        return False

    async def _resync(self) -> None:
        """Visit all profiles from time to time: this fixes what no watch shows."""
        while True:
            await asyncio.sleep(self._options.resync_s)
            if self._gate.is_set():
                for profile in self._indices.profiles():
                    self._queue.add(profile.name)
                self._health.synced()

    def stop(self) -> None:
        """Shut down; at once if that takes too long, as no write is ever incomplete."""
        if not self._stopping.is_set():
            _log.info("shutting down")
            self._stopping.set()
            signal.signal(signal.SIGALRM, _give_up)
            signal.setitimer(signal.ITIMER_REAL, STOP_S)
            # without threads nothing delays the exit, and nobody would handle the signal
            atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, *without_ignored([signal.SIGINT])):
            with suppress(NotImplementedError, ValueError, RuntimeError):  # not the main thread
                loop.add_signal_handler(number, self.stop)

    async def _stopped_within(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    def _gauges(self) -> dict[str, tuple[str, Callable[[], float]]]:
        queue, reports = self._queue, self._reports
        return {
            "queue_depth": ("Profiles due for a visit.", lambda: queue.depth),
            "queue_oldest_seconds": (
                "Time that the oldest of them has been due.",
                lambda: queue.oldest,
            ),
            "profiles": ("RevealProfiles.", lambda: self._indices.count),
            "reports": ("AnomalyReports.", lambda: reports.total.reports),
            "reports_open": ("AnomalyReports that are open.", lambda: reports.total.open),
            "watching": ("1 while the watches are complete.", self._gate.is_set),
        }


def configure(settings: kopf.OperatorSettings) -> None:
    """Set up kopf; each setting has its reason."""
    # kopf removes finalizers of the default name from all objects, so two kopf operators conflict
    settings.persistence.finalizer = f"{KOPF_PREFIX}/none"
    # nothing is stored; if it ever were, then under our name
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(
        prefix=KOPF_PREFIX, v1=False
    )
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix=KOPF_PREFIX, v1=False
    )
    # its Events all have one action, no series, and for cluster objects the wrong namespace
    settings.posting.enabled = False
    # the default of five minutes is too long
    settings.networking.request_timeout = 30.0
    settings.networking.connect_timeout = 5.0
    # the loop around kopf has its own pauses, and logs the error
    settings.networking.error_backoffs = (0.5, 1.0, 2.0, 4.0)
    # bookmarks and the inactivity timeout, which keep their defaults, find dead streams
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 310
    settings.watching.connect_timeout = 5.0
    settings.watching.chunk_size = 200
    for kind, (_, _, resource) in OWNED.items():
        if kind != "ConfigMap":  # ConfigMaps that profiles name have none of our labels
            settings.watching.label_selectors[resource] = SELECTOR
    # one namespace and known resources: it need not list namespaces and CRDs, and has no right to
    settings.scanning.disabled = True
    # worker_limit stays None: with fewer workers than objects kopf never finishes the first list
    settings.queueing.idle_timeout = 1.0
    settings.queueing.exit_timeout = 0.5
    settings.execution.max_workers = 1  # all handlers are async
    settings.peering.standalone = True  # a peering object named default would pause the operator
    # else kopf kills the process ten minutes after one of its runs ended
    settings.process.ultimate_exiting_timeout = None


def _give_up(*_: object) -> None:
    _log.warning("ended before all requests were finished")
    logging.shutdown()
    os._exit(0)


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _sentence(error: BaseException) -> str:
    """Return the message of an error; that of the API server for errors of kopf's requests."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    message = str(error.args[0]) if error.args else ""
    if "forbidden" in message:
        return f"the operator has no right that the chart's ClusterRole and Role grant: {message}"
    return message or repr(error)
