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


def main() -> int:
    """Run the command in a process of its own. Returns the exit code."""
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        signal.signal(signal.SIGINT, _interrupt)
    sys.meta_path.insert(0, _WithoutPandas())
    try:
        from kafka_log.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("kafka-log: interrupted: nothing is done yet\n")
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
