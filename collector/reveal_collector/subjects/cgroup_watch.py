"""The folders of the cgroup trees that inotify watches: wherever a subject may come or go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reveal_collector.kernel.inotify import Inotify
from reveal_collector.subjects.cgroup_walk import Found, leads_on, walk

Folder = tuple[str, tuple[int, ...]]  # its path, and which one of that name in each hierarchy
_ROOTS: Folder = ("", ())


class Watches:
    """Keeps watches up to date as it walks: what is watched already is not asked for again."""

    def __init__(self, inotify: Inotify, trees: Mapping[str, Path]) -> None:
        self.complete = True
        self._inotify, self._trees = inotify, trees
        self._known: set[Folder] = set()

    def walk(self) -> dict[str, Found]:
        """Every cgroup; those too that were made before their folder was watched.

        ``complete`` says afterwards whether the kernel refused no watch.
        """
        refused: set[Folder] = set()
        while True:
            found = walk(self._trees)
            here = {(path, tuple(one.inodes)) for path, one in found.items() if leads_on(path)}
            here.add(_ROOTS)
            self._known &= here
            new = here - self._known - refused
            if not new:
                self.complete = not refused
                return found
            watched = {folder for folder in new if self._watch(folder[0])}
            self._known |= watched
            refused |= new - watched

    def _watch(self, path: str) -> bool:
        folders = (tree / path[1:] for tree in self._trees.values())
        refused = [one for one in folders if not self._inotify.watch(one) and one.is_dir()]
        return not refused
