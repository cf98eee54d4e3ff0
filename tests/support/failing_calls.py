"""System calls of writers that fail once."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from kafka_log.write import output_files


class Failing:
    """A call that fails the ``nth`` time, after it has done its work."""

    def __init__(self, plain: Callable[..., object], nth: int) -> None:
        self.plain, self.left = plain, nth

    def __call__(self, *arguments: object) -> object:
        done = self.plain(*arguments)
        self.left -= 1
        if self.left == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return done


@contextmanager
def failing_fsync(nth: int) -> Iterator[Failing]:
    with pytest.MonkeyPatch.context() as patch:
        failing = Failing(os.fsync, nth)
        patch.setattr(os, "fsync", failing)
        yield failing


@contextmanager
def failing_close(nth: int) -> Iterator[Failing]:
    class File(output_files._NamedFile):
        def close(self) -> None:
            was_open = not self.closed
            super().close()
            if was_open:
                with output_files.name_errors(self.name):
                    failing()

    with pytest.MonkeyPatch.context() as patch:
        failing = Failing(lambda: None, nth)
        patch.setattr(output_files, "_NamedFile", File)
        yield failing


Fault = Callable[[int], AbstractContextManager[Failing]]
