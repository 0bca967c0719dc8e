"""inotify watches on the cgroup directories below which subjects can appear or end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reveal_collector.kernel_interfaces.inotify import Inotify
from reveal_collector.subjects.cgroup_walk import FoundCgroup, should_watch, walk

# Path and inode in each hierarchy: a directory that was created again needs a new watch.
WatchedDirectory = tuple[str, tuple[int, ...]]
_ROOTS: WatchedDirectory = ("", ())


class CgroupWatches:
    """Walks the trees and adds a watch for each directory that has none yet."""

    def __init__(self, inotify: Inotify, trees: Mapping[str, Path]) -> None:
        self.complete = True
        self._inotify, self._trees = inotify, trees
        self._watched: set[WatchedDirectory] = set()

    def walk(self) -> dict[str, FoundCgroup]:
        """Return every cgroup; afterwards ``complete`` says whether no watch was refused.

        A cgroup created between the walk and the watch of its parent would go unnoticed.
        Therefore the walk repeats until it finds no directory without a watch.
        """
        refused: set[WatchedDirectory] = set()
        while True:
            found = walk(self._trees)
            present = {
                (path, tuple(cgroup.inodes)) for path, cgroup in found.items() if should_watch(path)
            }
            present.add(_ROOTS)
            self._watched &= present
            new = present - self._watched - refused
            if not new:
                self.complete = not refused
                return found
            added = {directory for directory in new if self._watch(directory[0])}
            self._watched |= added
            refused |= new - added

    def _watch(self, path: str) -> bool:
        """Watch a path in every hierarchy; return whether the kernel refused none."""
        folders = (tree / path[1:] for tree in self._trees.values())
        refused = [
            folder for folder in folders if not self._inotify.watch(folder) and folder.is_dir()
        ]
        return not refused
