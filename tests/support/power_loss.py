"""Power losses that lose all changes of directories that no fsync has written to the disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class PowerLoss(BaseException):
    """The end of the process."""


class _Directories:
    """Changes of directories by the methods of Path, and those of them that are not on the disk yet.

    Args:
        steps: Renames and removals before the power goes. The last one is on the disk, as file systems may write it before earlier ones.
    """

    def __init__(self, steps: int) -> None:
        self._left = steps
        self._pending: set[Path] = set()
        self._undo: list[tuple[Path, Callable[[], Any]]] = []
        self._plain = {name: getattr(Path, name) for name in ("replace", "unlink", "mkdir", "open")}

    def replace(self, path: Path, to: Path) -> Path:
        before = to.read_bytes() if to.exists() else None
        self._plain["replace"](path, to)

        def undo() -> None:
            if to.exists():  # the last step has not removed it
                self._plain["replace"](to, path)
            if before is not None:
                to.write_bytes(before)

        self._step(to, undo)
        return to

    def unlink(self, path: Path, missing_ok: bool = False) -> None:
        before = path.read_bytes() if path.is_file() else None
        self._plain["unlink"](path, missing_ok)
        if before is not None:
            self._step(path, lambda: path.write_bytes(before))

    def mkdir(self, path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:  # fmt: skip
        is_new = not path.exists()
        self._plain["mkdir"](path, mode, parents, exist_ok)
        if is_new:
            self._pending.add(path)

    def open(self, path: Path, mode: str = "r", *more: Any, **named: Any) -> Any:
        if mode.startswith("x"):
            self._pending.add(path)
            self._undo.append((path, lambda: self._plain["unlink"](path, missing_ok=True)))
        return self._plain["open"](path, mode, *more, **named)

    def synced(self, number: int) -> None:
        """Note that an open file or directory was synced."""
        place = os.fstat(number)
        self._pending = {
            path
            for path in self._pending
            if not path.parent.exists() or not os.path.samestat(path.parent.stat(), place)
        }

    def _step(self, path: Path, undo: Callable[[], Any]) -> None:
        self._left -= 1
        if self._left == 0:
            lost = self._pending.difference(path.parents)
            for earlier, undo_earlier in reversed(self._undo):
                if not lost.isdisjoint((earlier, *earlier.parents)):
                    undo_earlier()
            raise PowerLoss
        self._pending.add(path)
        self._undo.append((path, undo))


@contextmanager
def power_loss(steps: int) -> Iterator[None]:
    """Let the power go after so many renames and removals in the ``with`` block, which then raises PowerLoss."""
    directories, fsync = _Directories(steps), os.fsync

    def fsync_and_note(number: int) -> None:
        fsync(number)
        directories.synced(number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync_and_note)
        for name in ("replace", "unlink", "mkdir", "open"):
            method = getattr(directories, name)
            patch.setattr(Path, name, lambda *given, _call=method, **named: _call(*given, **named))
        yield
