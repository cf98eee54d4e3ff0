"""The journal of a commit: a list of moves that is written first, so that any later job can finish an interrupted commit.

A job is committed when its journal has its name. Whoever writes to the target next makes the remaining moves.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kafka_log.logs.partitions import DirectoryError
from kafka_log.write.output_files import sync
from kafka_log.write.output_lock import locked_output
from kafka_log.write.sink.staging import PREFIX, SUFFIX
from kafka_log.write.staged_output import open_staged_file

try:
    import fcntl
except ImportError:  # Windows: nothing keeps two jobs apart
    fcntl = None  # type: ignore[assignment]

DECIDED = "commit.json"
LOCK = ".lock"
"""The file that a broker locks too, for as long as it runs."""

PATIENCE_S = 60.0
"""A commit takes some milliseconds, with thousands of files some seconds."""

_POLL_S = 0.05

_FLOCK = "hhqqi4x"
_OF_OPEN_FILES = (
    (fcntl.F_OFD_SETLK, fcntl.F_OFD_GETLK)
    if sys.platform == "linux" and sys.maxsize > 1 << 32 and hasattr(fcntl, "F_OFD_SETLK")
    else None
)
"""To take, and to ask for, a lock of an open file. Others, which Java takes, are of a process, and tell which."""

STALE_S = 86_400
"""Seconds after which a job is over that was not committed and has no new file. Tasks that write mark their directories more often."""


class Move(NamedTuple):
    """A move of a file or directory; both paths are relative to the target. ``away`` marks what makes room for a replacement."""

    source: str
    target: str
    away: bool = False


@contextmanager
def lock_target(target: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Create a log directory if needed, and hold its lock as an output directory and the lock that
    its broker would take during the ``with`` block; on Windows only the first. Wait while another
    job commits. The broker's lock file stays. If the block raises, remove it if it is new, and the
    directory if it is new and empty. Raise OutputLockedError, which names the process, if another
    one still writes there after ``patience_s`` seconds; DirectoryError if a broker runs in the
    directory (at once on 64-bit Linux); OSError if the directory or a lock file cannot be created
    or locked.
    """
    path = target / LOCK
    with locked_output(target, patience_s):
        is_new = not path.exists()
        file = _open_locked(target, patience_s)
        with file:
            try:
                yield
            except BaseException:
                if is_new:
                    with suppress(OSError):  # Windows does not remove open files
                        path.unlink(missing_ok=True)
                raise


def _open_locked(target: Path, patience_s: float) -> BinaryIO:
    """Return the lock file of a log directory, created if needed, open and locked (on Windows not
    locked). Raise DirectoryError if a broker runs in the directory (at once on 64-bit Linux), or if
    the lock is not free after ``patience_s`` seconds; OSError if the file cannot be opened or locked.
    """
    until = time.monotonic() + patience_s
    while True:
        file = (target / LOCK).open("ab")
        try:
            while not _try_lock(file):
                process = _find_broker(file)
                if process is not None:
                    raise DirectoryError(
                        target, f"a broker is running in it (process {process}): stop it first"
                    )
                if time.monotonic() >= until:
                    reason = f"for {patience_s:g} s a broker has been running in it, or an older release has been committing there: try again when that is over"
                    raise DirectoryError(target, reason)
                time.sleep(_POLL_S)
            # A job that failed may have removed the file before it was locked: then it locks nothing.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), (target / LOCK).stat()):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()


def _try_lock(file: BinaryIO) -> bool:
    """Lock an open file for this job without waiting, and return True; return False if another
    process has the lock, on 64-bit Linux also if another job of this one has it. Return True
    without locking on systems without such locks (Windows). Raise OSError for other errors.
    """
    try:
        if _OF_OPEN_FILES is not None:
            fcntl.fcntl(file, _OF_OPEN_FILES[0], _build_flock(fcntl.F_WRLCK))
        elif fcntl is not None:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def _find_broker(file: BinaryIO) -> int | None:
    """Return the process id of the broker that holds the lock of an open file. Return None if
    nobody or another job of this package holds it, or the system is not 64-bit Linux, where this
    is unknown.
    """
    if _OF_OPEN_FILES is None:
        return None
    found = fcntl.fcntl(file, _OF_OPEN_FILES[1], _build_flock(fcntl.F_WRLCK))
    kind, *_, process = struct.unpack(_FLOCK, found)
    return process if kind != fcntl.F_UNLCK and process > 0 else None


def _build_flock(kind: int) -> bytes:
    """Return a ``struct flock`` for a lock of the whole file."""
    return struct.pack(_FLOCK, kind, os.SEEK_SET, 0, 0, 0)


def write_journal(target: Path, place: Path, moves: Sequence[Move]) -> None:
    """Commit a job: write its moves (at least one) as the file DECIDED into the job's directory
    ``place``. The file is complete under its final name at once; ``place`` and ``target`` are
    synced. Nothing is moved yet; make_moves does that. All files to be moved must be on the disk
    before. Raise OSError if the file cannot be written or synced.
    """
    with open_staged_file(place / DECIDED) as file:
        file.write(json.dumps(moves).encode("ascii"))
    sync(place)
    sync(target)


def make_moves(target: Path, place: Path) -> None:
    """Make those moves of a committed job that are not made yet, sync the directories of all, and
    remove the job's directory. A move counts as made if its source is gone, or if it is ``away`` and its
    target exists. Raise DirectoryError if the journal is damaged; OSError if it cannot be read, or
    a file cannot be moved, and a later call goes on from there.
    """
    folders = set()
    for move in _read_moves(place / DECIDED):
        source, goal = target / move.source, target / move.target
        folders |= {source.parent, goal.parent}
        if not os.path.lexists(source) or (move.away and os.path.lexists(goal)):
            continue
        source.replace(goal)
    for folder in sorted(folders):
        with suppress(FileNotFoundError):  # the log was removed since
            sync(folder)
    _remove(place)


def _read_moves(journal: Path) -> list[Move]:
    """Return the moves that a journal lists, at least one. Raise DirectoryError if it is damaged;
    OSError if it cannot be read.
    """
    try:
        moves = [Move(*one) for one in json.loads(journal.read_bytes())]
    except (ValueError, TypeError):
        moves = []
    if not moves or not all(isinstance(path, str) for move in moves for path in move[:2]):
        reason = (
            "it is damaged and does not list the moves of a committed job, so rows of that job may be missing from the"
            " logs: move its directory away, compare the logs with what was written, and write the missing rows again"
        )
        raise DirectoryError(journal, reason)
    return moves


def recover(target: Path, own: Path | None = None) -> None:
    """Finish jobs in ``target`` that were committed but interrupted. Remove directories of other
    jobs that have not changed for more than a day (STALE_S), except ``own``; errors of removing are
    ignored. Raise DirectoryError if a journal is damaged; OSError if one cannot be read, a file
    cannot be moved, or the age of a job cannot be reason.

    Ages are measured by the clock of the file system, which may be another one than this
    machine's.
    """
    for place in sorted(target.glob(f"{PREFIX}*{SUFFIX}")):
        if (place / DECIDED).exists():
            make_moves(target, place)
        elif place != own and _file_system_time(target) - _find_newest_time(place) > STALE_S:
            shutil.rmtree(place, ignore_errors=True)


def _file_system_time(directory: Path) -> float:
    """Return the time that the file system gives to a file that is made now, in seconds since 1970.
    Raise OSError if no file can be made.
    """
    path = directory / f"{PREFIX}{uuid.uuid4().hex}.clock"
    path.touch(exist_ok=False)
    try:
        return path.stat().st_mtime
    finally:
        path.unlink()


def remove_job(place: Path) -> None:
    """Remove the directory of a job that is not committed; do nothing if it is committed. It is
    renamed first, so that a task that goes on finds nothing to write into. Errors are ignored.
    """
    if (place / DECIDED).exists():
        return
    away = place.with_name(f"{PREFIX}{uuid.uuid4()}{SUFFIX}")
    with suppress(OSError):
        place = place.rename(away)
    shutil.rmtree(place, ignore_errors=True)


def _remove(place: Path) -> None:
    """Remove the directory of a finished job, its journal first, so that the moves are not made again."""
    (place / DECIDED).unlink()
    sync(place)
    shutil.rmtree(place, ignore_errors=True)


def _find_newest_time(place: Path) -> float:
    """Return the latest modification time of a directory and everything below it, in seconds since
    1970. Ignore files that disappear. Raise OSError if the directory is gone.
    """
    found = [place.stat().st_mtime]
    for path in place.rglob("*"):
        with suppress(FileNotFoundError):
            found.append(path.stat().st_mtime)
    return max(found)
