"""The operator's parts put together, and the loop around kopf.

kopf watches; when it gives up (the kinds are gone, rights are missing, the API server is ill for
long) it is started anew, after pauses, in the same process: children, analyzers and reports need
no operator to go on, and a process that crashes says less than one that says what it waits for.
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
from reveal_operator.children import Children
from reveal_operator.events import Recorder
from reveal_operator.handlers import CHILDREN, SELECTOR, Indices, register
from reveal_operator.health import Health
from reveal_operator.inspection import Inspection
from reveal_operator.kube import KubernetesClient
from reveal_operator.metrics import Metrics
from reveal_operator.neighbours import Neighbours
from reveal_operator.plan import Plans
from reveal_operator.reconcile import Reconciler
from reveal_operator.reports import Follower, Reports
from reveal_operator.retention import SWEEP_S, Retention
from reveal_operator.spec import Defaults
from reveal_operator.status import Statuses
from reveal_operator.workqueue import KeyedQueue, work

WORKERS = 4
THREADS = 8  # requests at a time
RESYNC_S = 600.0
REPORTS_S = 5.0  # until a change of reports shows in the profile's status
LOOK_S = 5.0  # between two looks for the kinds
REMIND_S = 60.0  # between two lines that say what is waited for
STOP_S = 1.0  # what an orderly end may take: an unanswered request must not hold us longer
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
KOPF_PREFIX = f"operator.{GROUP}"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """How the operator was started; a port of 0 means none.  ``instance`` is our pod."""

    defaults: Defaults
    metrics_port: int = 0
    health_port: int = 0
    instance: str = ""
    resync_s: float = RESYNC_S
    sweep_s: float = SWEEP_S


class Operator:
    """All parts, for one run of the process; made inside the event loop."""

    def __init__(self, api: KubernetesClient, options: Options) -> None:
        self._api, self._options = api, options
        self._namespace = options.defaults.namespace
        self._metrics, self._indices, self._queue = Metrics(), Indices(), KeyedQueue()
        self._gate, self._stopping = asyncio.Event(), asyncio.Event()
        self._reports = Reports(lambda name: self._queue.add(name, REPORTS_S))
        instance = options.instance or socket.gethostname()
        self._recorder = Recorder(api, instance, self._metrics)
        self._plans = Plans(options.defaults)
        self._reconcile = Reconciler(
            view=self._indices,
            plans=self._plans,
            children=Children(api, self._namespace, self._metrics),
            statuses=Statuses(api, self._metrics),
            inspection=Inspection(api, self._namespace),
            neighbours=Neighbours(api),
            reports=self._reports,
            recorder=self._recorder,
            metrics=self._metrics,
            revisit=self._queue.add,
        )
        self._health = Health(self._queue, self._gate, options.resync_s)
        self._metrics.watch(self._gauges())

    async def run(self) -> None:
        """Work until SIGTERM or SIGINT.  Raises ``OSError`` where a port is taken."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="api"))
        self._catch_signals()
        self._serve()
        follower = Follower(self._api, self._reports, loop)
        follower.start()
        retention = Retention(self._api, self._reports, self._reconcile.limits, self._metrics)
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(part)
            for part in (
                work(self._queue, self._reconcile, self._gate, WORKERS),
                self._resync(),
                self._recorder.run(),
                retention.run(self._options.sweep_s),
                self._health.beat(),
                self._watch_for_ever(),
                self._stopping.wait(),
            )
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a part that ended by itself has a reason to tell
        finally:
            follower.stop()
            await _cancel(tasks)

    def _serve(self) -> None:
        """Metrics and probes on both ports, so that one of them is enough."""
        for port in sorted({self._options.metrics_port, self._options.health_port} - {0}):
            health = self._health
            http_endpoints.serve(self._metrics.registry, port, health.ailment, health.unready)

    async def _watch_for_ever(self) -> None:
        """kopf, again and again until we are to stop."""
        retry = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        while not self._stopping.is_set():
            await self._kinds()
            problem = ""
            try:
                await self._watch()
            except Exception as error:
                problem = _said(error)
                if self._gate.is_set():  # this run had listed everything: not one failure in a row
                    retry.reset()
            finally:
                self._gate.clear()
            pause = retry.next()
            if problem:
                _log.error("watching ended, again in %.0f s: %s", pause, problem)
            await self._stopped_within(pause)

    async def _watch(self) -> None:
        """One run of kopf, with the gate open once its indices are whole.

        In a thread with a loop of its own: when a run ends, it cancels whatever else its loop has.
        """
        loop, stop = asyncio.get_running_loop(), threading.Event()

        def add(key: str, after: float = 0.0) -> None:
            loop.call_soon_threadsafe(self._queue.add, key, after)

        self._indices.use({})  # those of the run before know too much
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

    async def _kinds(self) -> None:
        """Return when the API server serves our kinds; say from time to time that it does not."""
        reminded = -REMIND_S
        while not self._stopping.is_set():
            try:
                served = await asyncio.to_thread(self._api.serves, GROUP, VERSION)
                missing = sorted({PROFILES, REPORTS} - served)
                told = f"no {' and '.join(missing)} of {GROUP}/{VERSION}: apply the CRDs"
            except ApiError as error:
                said = "refuses" if error.status else "does not answer"
                missing, told = ["api"], f"the API server {said}: {error}"
            if not missing:
                await self._use_version()
                return
            if time.monotonic() - reminded >= REMIND_S:
                reminded = time.monotonic()
                _log.warning("waiting: %s", told)
            await self._stopped_within(LOOK_S)

    async def _use_version(self) -> None:
        """Manifests for the API server as it is: some fields came lately."""
        with suppress(ApiError):
            minor = await asyncio.to_thread(self._api.minor_version)
            self._plans.use(replace(self._options.defaults, kubernetes_minor=minor))

    async def _open(self) -> None:
        """Open the gate when kopf's indices hold all there is, as it does not say so itself."""
        while True:
            try:
                expected = await asyncio.to_thread(self._list)
            except ApiError as error:
                _log.debug("first listing: %s", error)
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
        """The uids of all profiles and children."""
        kinds = [(PROFILE_KIND, "", ""), *((kind, self._namespace, SELECTOR) for kind in CHILDREN)]
        return {
            item["metadata"]["uid"]
            for kind, namespace, labels in kinds
            for page in self._api.pages(kind, namespace, labels, metadata=True)
            for item in page.items
        }

    async def _indexed(self, expected: set[str]) -> bool:
        """Whether the indices come to hold these; False where one of them may be gone again."""
        for _ in range(100):
            known = {seen.uid for seen in self._indices.profiles()}
            known |= {seen.uid for seen in self._indices.all_children()}
            if expected <= known:
                return True
            await asyncio.sleep(0.05)
        return False

    async def _resync(self) -> None:
        """Visit all from time to time: what no watch shows is put right then."""
        while True:
            await asyncio.sleep(self._options.resync_s)
            if self._gate.is_set():
                for profile in self._indices.profiles():
                    self._queue.add(profile.name)
                self._health.synced()

    def stop(self) -> None:
        """End in order; at once where that takes too long, as nothing is ever half written."""
        if not self._stopping.is_set():
            _log.info("ending")
            self._stopping.set()
            signal.signal(signal.SIGALRM, _give_up)
            signal.setitimer(signal.ITIMER_REAL, STOP_S)
            # once no thread is left, nothing can hold us up, and nobody would handle the signal
            atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError, ValueError, RuntimeError):  # not the main thread
                loop.add_signal_handler(number, self.stop)

    async def _stopped_within(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    def _gauges(self) -> dict[str, tuple[str, Callable[[], float]]]:
        queue, reports = self._queue, self._reports
        return {
            "queue_depth": ("Profiles due for a visit.", lambda: queue.depth),
            "queue_oldest_seconds": ("How long the oldest has been due.", lambda: queue.oldest),
            "profiles": ("RevealProfiles.", lambda: self._indices.count),
            "reports": ("AnomalyReports.", lambda: reports.total.reports),
            "reports_open": ("AnomalyReports that are open.", lambda: reports.total.open),
            "watching": ("1 while all that is watched is known.", self._gate.is_set),
        }


def configure(settings: kopf.OperatorSettings) -> None:
    """The settings of kopf, each with its reason."""
    # it takes finalizers of the default name off whatever it sees, so two kopf operators fight
    settings.persistence.finalizer = f"{KOPF_PREFIX}/none"
    # nothing is stored; where it ever were, then under our name and in no other's
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(
        prefix=KOPF_PREFIX, v1=False
    )
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix=KOPF_PREFIX, v1=False
    )
    # its Events have one action for all, no series, and for cluster objects the wrong namespace
    settings.posting.enabled = False
    # five minutes by default: too long to wait for an answer
    settings.networking.request_timeout = 30.0
    settings.networking.connect_timeout = 5.0
    # the loop around it has pauses of its own, and says what is wrong
    settings.networking.error_backoffs = (0.5, 1.0, 2.0, 4.0)
    # ends of streams: bookmarks and the inactivity timeout, which stay as they are, find dead ones
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 310
    settings.watching.connect_timeout = 5.0
    settings.watching.chunk_size = 200
    for kind, (_, _, resource) in CHILDREN.items():
        if kind != "ConfigMap":  # those that profiles name have no labels of ours
            settings.watching.label_selectors[resource] = SELECTOR
    # one namespace and known kinds: it need not list namespaces and CRDs, nor may it
    settings.scanning.disabled = True
    # worker_limit stays None: below the number of objects it never gets through the first listing
    settings.queueing.idle_timeout = 1.0
    settings.queueing.exit_timeout = 0.5
    settings.execution.max_workers = 1  # all handlers are async
    settings.peering.standalone = True  # a peering object named default would pause us
    # else it kills the process ten minutes after one of its runs ended
    settings.process.ultimate_exiting_timeout = None


def _give_up(*_: object) -> None:
    _log.warning("ended before all requests were answered")
    logging.shutdown()
    os._exit(0)


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _said(error: BaseException) -> str:
    """Errors of kopf's requests carry the sentence of the API server; others their own."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    told = error.args[0] if error.args else ""
    if "forbidden" in str(told):
        return f"the operator lacks rights, which the chart's ClusterRole and Role give: {told}"
    return str(told) or repr(error)
