"""Work that is done in a process of its own, and killed at one of its steps."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

STEPS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"}
KILLED = 113


def fork(work: Callable[[], int]) -> int:
    """Return the exit code of ``work`` in a process of its own, which prints nothing."""
    child = os.fork()
    if not child:
        code = 99
        try:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(nth: int, out: Path, work: Callable[[], int]) -> int:
    """Run ``work`` in a process that ends, without any cleanup, before its ``nth`` change of a file below ``out``."""
    left = nth

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event == "open":
            path, _, flags = arguments
            is_step = isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))
        else:
            path, is_step = (arguments or ("",))[0], event in STEPS
        if is_step and isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(os.fspath(out)):  # fmt: skip
            left -= 1
            if not left:
                os._exit(KILLED)

    def run() -> int:
        sys.addaudithook(count)
        return work()

    return fork(run)
