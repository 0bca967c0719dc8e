"""Which folders of the cgroup trees are watched, and that none is requested twice."""

from __future__ import annotations

import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.inotify import Inotify
from reveal_collector.subjects.cgroup_watch import CgroupWatches


class Counting(Inotify):
    """Notes what is asked for; refuses folders of one name, as the kernel does at its limit."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Path] = []
        self.refuses = ""

    def watch(self, folder: Path) -> bool:
        self.asked.append(folder)
        return folder.name != self.refuses and super().watch(folder)

    @property
    def fired(self) -> bool:
        """Return whether an event arrived since the last call."""
        waiting = select.poll()
        waiting.register(self.fileno(), select.POLLIN)
        happened = bool(waiting.poll(0))
        self.drain()
        return happened


@pytest.fixture
def inotify() -> Iterator[Counting]:
    with Counting() as counting:
        yield counting


def tree(folder: Path, *paths: str) -> Path:
    for path in paths:
        (folder / path).mkdir(parents=True)
    return folder


def test_a_second_walk_asks_for_nothing_again(tmp_path: Path, inotify: Counting) -> None:
    watches = CgroupWatches(inotify, {"cpu": tree(tmp_path, "a/b")})
    assert list(watches.walk()) == ["/a", "/a/b"]
    assert sorted(inotify.asked) == [tmp_path, tmp_path / "a", tmp_path / "a/b"]
    inotify.asked.clear()
    assert list(watches.walk()) == ["/a", "/a/b"]
    assert inotify.asked == []
    assert watches.complete


@pytest.mark.parametrize("path", ["", "a", "a/b", "kubepods/burstable/x/y"])
def test_a_new_folder_in_a_watched_folder_is_an_event(
    tmp_path: Path, inotify: Counting, path: str
) -> None:
    watches = CgroupWatches(inotify, {"cpu": tree(tmp_path, "a/b", "kubepods/burstable/x/y")})
    watches.walk()
    assert not inotify.fired
    tree(tmp_path / path, "new")
    assert inotify.fired
    assert f"/{path}/new".replace("//", "/") in watches.walk()


def test_far_below_and_inside_of_pods_nothing_is_watched(tmp_path: Path, inotify: Counting) -> None:
    pod = f"kubepods/pod{'0' * 8}-0000-0000-0000-{'0' * 12}"
    watches = CgroupWatches(inotify, {"cpu": tree(tmp_path, "a/b/c/d", f"{pod}/x/y/z")})
    watches.walk()
    tree(tmp_path / "a/b/c/d", "new")
    tree(tmp_path / pod / "x/y", "new")
    assert not inotify.fired


def test_a_folder_recreated_under_an_old_name_is_watched(tmp_path: Path, inotify: Counting) -> None:
    watches = CgroupWatches(inotify, {"cpu": tree(tmp_path, "a")})
    watches.walk()
    (tmp_path / "a").rename(tmp_path / "gone")
    tree(tmp_path, "a")
    watches.walk()
    inotify.drain()
    tree(tmp_path, "a/new")
    assert inotify.fired


def test_a_folder_added_to_another_hierarchy_later_is_watched_there(
    tmp_path: Path, inotify: Counting
) -> None:
    cpu, memory = tree(tmp_path / "cpu", "a"), tree(tmp_path / "memory", "b")
    watches = CgroupWatches(inotify, {"cpu": cpu, "memory": memory})
    assert list(watches.walk()) == ["/a", "/b"]
    tree(memory, "a")
    watches.walk()
    inotify.drain()
    tree(memory, "a/new")
    assert inotify.fired


def test_a_folder_created_while_watches_are_set_is_found_and_watched(
    tmp_path: Path, inotify: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = inotify.watch

    def late(folder: Path) -> bool:
        monkeypatch.undo()
        tree(tmp_path, "a/late")
        return ask(folder)

    monkeypatch.setattr(inotify, "watch", late)
    watches = CgroupWatches(inotify, {"cpu": tree(tmp_path, "a")})
    assert list(watches.walk()) == ["/a", "/a/late"]
    inotify.drain()
    tree(tmp_path, "a/late/new")
    assert inotify.fired


def test_watches_are_incomplete_until_every_folder_is_granted(
    tmp_path: Path, inotify: Counting
) -> None:
    watches = CgroupWatches(inotify, {"cpu": tree(tmp_path, "a", "b")})
    inotify.refuses = "a"
    assert list(watches.walk()) == ["/a", "/b"]
    assert not watches.complete
    inotify.asked.clear()
    inotify.refuses = ""
    watches.walk()
    assert watches.complete
    assert inotify.asked == [tmp_path / "a"]
