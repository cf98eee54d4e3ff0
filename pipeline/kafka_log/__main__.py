"""Entry point of the command ``kafka-log`` and of ``python -m kafka_log``."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any


class _WithoutPandas:
    """Import hook that hides pandas. pyarrow imports it if it is installed, which takes 0.5 s, and no command needs it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise ModuleNotFoundError for pandas. Return None for any other module, which is then imported as usual."""
        if name == "pandas":
            raise ModuleNotFoundError(
                f"kafka-log does not need {name}, and blocks its import to start faster", name=name
            )


class _Interrupt(KeyboardInterrupt):
    """KeyboardInterrupt of a class of its own, so that the exit code of the command counts.

    Python remembers a plain KeyboardInterrupt that leaves ``exec`` of a text, as in ``dataclass``. ``python -m`` then ends by the signal,
    whatever exit code the command returns.
    """


def _raise_interrupt(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT: raise _Interrupt."""
    raise _Interrupt


TERMINATED = 128 + signal.SIGTERM
"""Exit code after SIGTERM, the one that shells report for a process ended by it."""


class _Termination:
    """Handler of SIGTERM. It ends the command as Ctrl-C does, so that staged output is removed.

    Attributes:
        came: Whether the signal was received.
    """

    came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not stop the cleanup
        raise _Interrupt


def main() -> int:
    """Run the command line of this process and return its exit code; TERMINATED (143) after
    SIGTERM, which interrupts the command as Ctrl-C does. Signal handlers are set in the main thread
    only, and only if the default ones are in place. Raise SystemExit for invalid arguments,
    ``--help`` and ``--version``.
    """
    termination = _Termination()
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _raise_interrupt)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, termination)
    code = _run_command()
    return TERMINATED if termination.came else code


def _run_command() -> int:
    """Import and run the command, with pandas hidden from imports. Return its exit code; 2, with a
    message, if it was interrupted during the import. Raise SystemExit for invalid arguments,
    ``--help`` and ``--version``.
    """
    sys.meta_path.insert(0, _WithoutPandas())
    try:
        from kafka_log.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("kafka-log: interrupted: nothing is done yet\n")
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
