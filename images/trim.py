"""Remove from a virtual environment the files that no process of its image reads.

``build.sh`` runs ``trim.py FOLDER PACKAGE...``: FOLDER is the environment; of the project's
packages the named ones stay.  pip's list of installed files (RECORD) is updated, so that scanners
can check it.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

OURS = "reveal_"
# sources and stubs of compiled modules: for compilers and type checkers
SOURCES = frozenset({".a", ".c", ".cpp", ".h", ".hpp", ".pxd", ".pyi", ".pyx"})
# Only the transport of the Kubernetes client is used, with plain objects (``kube/transport.py`` of
# the contract): not the asynchronous client, not the generated method of each call
UNUSED = ("kubernetes/aio", "kubernetes/client/api")
STRIPPED_MIN_BYTES = 1 << 16  # stripping a smaller file saves nothing


def main(home: Path, kept: Collection[str]) -> None:
    """Trim the environment at ``home``; of the project's packages those in ``kept`` stay."""
    site = next(home.glob("lib/python3.*/site-packages"))
    for path in [*others(site, kept), *unused(site)]:
        remove(path)
    for path in scripts(home, site, kept):
        path.unlink()
    for library in strippable(site):
        strip(library)
    for distribution in distributions(path=[str(site)]):
        rewrite_record(site, distribution)


def others(site: Path, kept: Collection[str]) -> list[Path]:
    """Return the project's packages that this image does not use."""
    ours = [path for path in site.iterdir() if path.is_dir() and path.name.startswith(OURS)]
    if missing := set(kept) - {path.name for path in ours}:
        raise SystemExit(f"the project has no package {', '.join(sorted(missing))}")
    return [path for path in ours if path.name not in kept and not path.name.endswith(".dist-info")]


def unused(site: Path) -> list[Path]:
    """Return tests, sources of compiled modules, and the paths in ``UNUSED``."""
    found = [site / name for name in UNUSED]
    for path in site.rglob("*"):
        is_tests = path.name == "tests" and path.is_dir() and path.parent != site
        if is_tests or (path.suffix in SOURCES and path.is_file()):
            found.append(path)
    return found


def remove(path: Path) -> None:
    """Delete a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)  # it may have been in a deleted folder


def scripts(home: Path, site: Path, kept: Collection[str]) -> list[Path]:
    """Return the commands of other packages and of removed packages of the project."""
    needed = {
        point.name
        for distribution in distributions(path=[str(site)])
        for point in distribution.entry_points
        if point.group == "console_scripts" and point.value.partition(".")[0] in kept
    }
    return [
        path
        for path in sorted((home / "bin").iterdir())
        if path.name not in needed and not path.name.startswith("python")
    ]


def strippable(site: Path) -> Iterator[Path]:
    """Yield the libraries that strip(1) can handle.

    strip(1) may break a library that auditwheel patched (its wheel has a folder ``NAME.libs``):
    patchelf moves sections to where strip does not expect them.
    """
    patched = {name for folder in site.glob("*.libs") for name in _beside(site, folder.name)}
    for path in sorted(site.rglob("*.so*")):
        top = path.relative_to(site).parts[0]
        large = path.stat().st_size >= STRIPPED_MIN_BYTES
        if large and top not in patched and not top.endswith(".libs"):
            yield path


def strip(library: Path) -> None:
    """Remove symbols and debugging sections if the library still loads as before."""
    stripped = library.with_name(f"{library.name}.stripped")
    subprocess.run(["strip", "--strip-unneeded", "-o", stripped, library], check=True)
    smaller = stripped.stat().st_size < library.stat().st_size
    if smaller and loads(stripped) == loads(library):
        stripped.chmod(library.stat().st_mode & 0o777)
        stripped.replace(library)
    else:
        stripped.unlink()


def loads(library: Path) -> bool:
    """Return whether a process like those of the image can load the library."""
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    command = [sys.executable, "-B", "-c", code, library]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def rewrite_record(site: Path, distribution: Distribution) -> None:
    """Update the list of installed files: drop deleted files, restate changed ones."""
    text = distribution.read_text("RECORD")
    if text is None:
        return
    rows = [_true_row(site, row) for row in csv.reader(text.splitlines()) if _is_there(site, row)]
    record = next(path for path, *_ in rows if path.endswith("/RECORD"))
    with Path(str(distribution.locate_file(record))).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(sorted(rows))


def _is_there(site: Path, row: list[str]) -> bool:
    return (site / row[0]).exists()


def _true_row(site: Path, row: list[str]) -> list[str]:
    name, digest, size = row
    content = site / name
    if not size or content.stat().st_size == int(size):
        return row
    data = content.read_bytes()
    encoded = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return [name, f"sha256={encoded.decode()}", str(len(data))] if digest else row


def _beside(site: Path, libs: str) -> set[str]:
    """Return the top-level names of the wheel that brought the folder ``libs``."""
    for distribution in distributions(path=[str(site)]):
        names = {file.parts[0] for file in distribution.files or ()}
        if libs in names:
            return names
    return set()


if __name__ == "__main__":
    main(Path(sys.argv[1]), frozenset(sys.argv[2:]))
