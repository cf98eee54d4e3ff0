"""Run a command again each time its input changes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from codecgen.cli.common import COULD_NOT_RUN, GOOD, print_message, report_errors

POLL_SECONDS = 0.3
"""Time between two looks at the input."""

SETTLE_SECONDS = 0.05
"""Time for which the input has to stay the same before a run: editors write a file in several steps."""


def watch(read_input: Callable[[], object], run: Callable[[], int], what: str) -> int:
    """Call ``run`` now and after each change of the input until Ctrl-C, then return 0. Return 2 at
    once if the first run could not run. Findings of any run (code 1), and errors of later runs, are
    printed and do not end it. Raise BrokenPipeError if nobody reads the output. ``what`` names the
    input.

    ``read_input`` returns all that ``run`` reads. It is compared as a whole, so a file that is only touched starts no run.
    """
    try:
        seen = _read_stable(read_input)
        if _run_once(run) == COULD_NOT_RUN:
            return COULD_NOT_RUN
        print_message(f"codecgen: watching {what}; Ctrl-C ends it")
        while True:
            time.sleep(POLL_SECONDS)
            if read_input() != seen:
                seen = _read_stable(read_input)  # what changes during the run starts the next one
                if _run_once(run) != GOOD:
                    print_message("codecgen: nothing was written; waiting for the next change")
    except KeyboardInterrupt:
        return GOOD


def _run_once(run: Callable[[], int]) -> int:
    """Call ``run`` and return its exit code, or 2 after printing why it could not run (UsageError,
    TemplateFilesError, OutputError or OSError). Its output is flushed, so that it can be read
    through a pipe. Raise BrokenPipeError if nobody reads it.
    """
    code = report_errors(run)
    sys.stdout.flush()
    return code


def _read_stable(read_input: Callable[[], object]) -> object:
    """Return the input once it stays the same for ``SETTLE_SECONDS`` (0.05 s). Wait as long as it
    keeps changing.
    """
    found = read_input()
    while True:
        time.sleep(SETTLE_SECONDS)
        before, found = found, read_input()
        if before == found:
            return found
