"""``python -m kafka_log``: the command kafka-log."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any


class _WithoutPandas:
    """pyarrow imports pandas where it is installed, and no command needs it: half a second."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("kafka-log does without it", name=name)


class _CtrlC(KeyboardInterrupt):
    """Python remembers a KeyboardInterrupt itself, not one of a class of its own, that comes out of ``exec`` of a text, as where a dataclass is
    made, and ``python -m`` ends by the signal then, whatever exit code the command gives."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise _CtrlC


TERMINATED = 128 + signal.SIGTERM
"""The exit code after SIGTERM, as shells have it for a process that the signal ended."""


class _Termination:
    """Ends the command as Ctrl-C does when SIGTERM comes, so that it removes what it staged. ``came`` says whether it came."""

    came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # another one must not stop the removal
        raise _CtrlC


def main() -> int:
    """Run the command in a process of its own. Returns the exit code."""
    termination = _Termination()
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupt)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, termination)
    code = _run()
    return TERMINATED if termination.came else code


def _run() -> int:
    sys.meta_path.insert(0, _WithoutPandas())
    try:
        from kafka_log.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("kafka-log: interrupted: nothing is done yet\n")
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
