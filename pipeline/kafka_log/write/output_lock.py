"""The lock of an output directory or file: only one process at a time writes to it."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from codecgen.runtime.file_lock import LockedError, NoLocksError, hidden_path, locked
from kafka_log.logs.partitions import DirectoryError
from kafka_log.write.output_files import created_directory

OUTPUT_LOCK = ".kafka-log.lock"
"""The lock file of a directory; that of a file has its name before this one. It is there while a process writes, and after a process that was killed. It says who holds the lock."""

_SUFFIX_BYTES = len(f".{uuid.UUID(int=0).hex}.partial")
_STAGED = re.compile(r"\..*\.[0-9a-f]{32}\.partial", re.DOTALL)


class OutputLockedError(DirectoryError):
    """Raised if another process writes to the output, or if its file system has no locks. ``path`` is the directory or file."""


@contextmanager
def locked_output(out: Path, patience_s: float = 0.0) -> Iterator[None]:
    """Create an output directory if needed, and hold its lock during the ``with`` block. Remove
    staged files that dead processes left there, and at the end the lock file. If the block raises, remove the directory if it is
    new and empty. Raise OutputLockedError if another process or job still holds the lock after ``patience_s`` seconds, or at
    once if the file system has no locks; OSError if the directory cannot be created or listed, or the lock file cannot be opened or written.

    The operating system releases the lock when its process ends, however it ends.
    """
    with created_directory(out), _locked(_Lock(out, out / OUTPUT_LOCK, "directory"), patience_s):
        _remove_staged(child for child in out.iterdir() if is_staged(child.name))
        yield


@contextmanager
def locked_file(path: Path) -> Iterator[None]:
    """Hold the lock of an output file during the ``with`` block; its directory must exist. Remove
    staged files that dead processes left for it, and at the end the lock file. Raise
    OutputLockedError if another process or job holds the lock, or if the file system has no locks;
    OSError if the lock file cannot be opened or written.
    """
    with _locked(_Lock(path, hidden_path(path, OUTPUT_LOCK), "file"), 0.0):
        staged = (child for child in path.parent.iterdir() if is_staged(child.name))
        _remove_staged(
            child for child in staged if child == hidden_path(path, child.name[-_SUFFIX_BYTES:])
        )
        yield


def staged_path(path: Path) -> Path:
    """Return a new path beside ``path`` for a file or directory that is renamed to ``path`` when it is whole. No two calls return the same path."""
    return hidden_path(path, f".{uuid.uuid4().hex}.partial")


def is_staged(name: str) -> bool:
    """Return whether :func:`staged_path` makes names like this one."""
    return _STAGED.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class _Lock:
    """A lock: the output, the path of the lock file, and whether the output is a ``directory`` or a ``file``."""

    out: Path
    path: Path
    noun: str


@contextmanager
def _locked(lock: _Lock, patience_s: float) -> Iterator[None]:
    """Hold a lock during the ``with`` block, and remove the lock file at the end. Raise
    OutputLockedError, which names the holder, if another job has the lock after ``patience_s``
    seconds, or at once if the file system has no locks; OSError if the lock file cannot be opened or
    written.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(lock.path, patience_s))
        except LockedError as error:
            advice = f"wait until it is done, or choose another {lock.noun}"
            raise OutputLockedError(lock.out, f"{error}: {advice}") from None
        except NoLocksError as error:
            reason = f"its file system has no locks ({error}): choose a directory on another one"
            raise OutputLockedError(lock.out, reason) from None
        yield


def _remove_staged(staged: Iterable[Path]) -> None:
    """Remove files and directories with temporary names: dead processes left them, as the caller
    holds the lock. Ignore those that cannot be removed.
    """
    for child in staged:
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child, ignore_errors=True)
        else:
            with suppress(OSError):
                child.unlink()
