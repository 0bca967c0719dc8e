"""``make images``: builds the base and the images, and says sizes and seconds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from images import store
from images.building import Built, build_all
from images.store import BuildError, Store


def main(argv: Sequence[str] | None = None) -> int:
    """0 built, 1 not."""
    arguments = parser().parse_args(argv)
    try:
        if reason := store.missing_tools():
            raise BuildError(f"no images can be built here: {reason}")
        images = Store(store.cache())
        built = build_all(images, _log)
        if arguments.save is not None:
            save(images, built, arguments.save)
    except BuildError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    argument_parser = argparse.ArgumentParser(prog="make images", description=__doc__)
    argument_parser.add_argument(
        "--save", type=Path, metavar="FOLDER",
        help="write each as FOLDER/NAME.tar, for `docker load` and `ctr images import`",
    )  # fmt: skip
    return argument_parser


def save(images: Store, built: Sequence[Built], folder: Path) -> None:
    """Archives in Docker's format; one of an earlier build is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    for item in built:
        file = folder / f"{item.image.name}.tar"
        file.unlink(missing_ok=True)  # buildah adds to one that is there
        images.buildah("push", "--quiet", item.full_name, f"docker-archive:{file}:{item.full_name}")
        _log(f"{file}: {file.stat().st_size >> 20} MiB")


def _log(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
