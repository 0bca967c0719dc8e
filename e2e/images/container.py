"""Runs a container of an image in runc or crun, and looks after it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from images.pod import Json, Node, bounding_set, specification
from images.store import Store

RUNTIMES = ("runc", "crun")


def runtime() -> str | None:
    """The first of ``RUNTIMES`` that is on PATH; buildah's package brings one of them."""
    return next((name for name in RUNTIMES if shutil.which(name)), None)


class Container:
    """A started container; ``log`` is what it wrote to both outputs."""

    def __init__(self, program: str, folder: Path) -> None:
        self._folder = folder
        self._name = f"reveal-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self._runtime = [program, "--root", str(folder / "state")]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*self._runtime, "run", "--bundle", str(folder), self._name],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def execute(self, command: list[str]) -> int:
        """The exit status of a further process inside, as an exec probe asks for it."""
        whole = [*self._runtime, "exec", self._name, *command]
        return subprocess.run(whole, capture_output=True, check=False, timeout=20).returncode

    def wait(self, seconds: float) -> int:
        """The exit status of one that ends by itself."""
        return self._process.wait(seconds)

    def stop(self, seconds: float) -> int:
        """SIGTERM, which the runtime passes on, and the exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(seconds)

    def delete(self) -> None:
        """Gone whatever state it is in."""
        with contextlib.suppress(OSError):
            delete = [*self._runtime, "delete", "--force", self._name]
            subprocess.run(delete, capture_output=True, check=False)
        self._process.kill()
        self._process.wait()


@contextmanager
def running(store: Store, image: str, pod: Json, node: Node) -> Iterator[Container]:
    """The only container of ``pod``, from ``image`` whatever the pod names."""
    program = runtime()
    assert program is not None, f"no {' and no '.join(RUNTIMES)}"
    own = bounding_set(Path("/proc/self/status").read_text())
    with tempfile.TemporaryDirectory(prefix="reveal-image-") as name, store.mounted(image) as root:
        folder = Path(name)
        config = store.config(image)["config"]
        spec = specification(pod, config, root, replace(node, capabilities=own))
        (folder / "config.json").write_text(json.dumps(spec))
        container = Container(program, folder)
        try:
            yield container
        finally:
            container.delete()
