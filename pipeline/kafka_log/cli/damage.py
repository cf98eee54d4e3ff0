"""What commands do where an answer depends on bytes that cannot be read."""

from __future__ import annotations

import sys
from collections.abc import Callable

from codecgen.runtime.errors import CodecError
from kafka_log.cli.common import PROBLEMS


def reported(run: Callable[[], int], salvage: Callable[[], int] | None = None) -> int:
    """Run, and return the exit code. Damage is told on the standard error, and makes it 1; then ``salvage`` gives the answer
    from what can be read."""
    try:
        return run()
    except CodecError as error:
        print(f"kafka-log: {error}", file=sys.stderr)
    if salvage is not None:
        print("kafka-log: what cannot be read is left out", file=sys.stderr)
        salvage()
    return PROBLEMS
