"""What commands do where an answer depends on bytes that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from codecgen.runtime.errors import CodecError
from kafka_log.cli.common import GOOD, PROBLEMS
from kafka_log.cli.messages import print_message


def reported(
    run: Callable[[], int], salvage: Callable[[], int] | None = None, told: Iterable[str] = ()
) -> int:
    """Run, and return the exit code. Damage is told on the standard error, and makes it 1; then ``salvage`` gives the answer
    from what can be read. ``told`` are lines about what the answer is without."""
    try:
        code = run()
    except CodecError as error:
        print_message(error)
    else:
        return say_damage(told) or code
    if salvage is not None:
        print_message("what cannot be read is left out")
        salvage()
    say_damage(told)
    return PROBLEMS


def say_damage(lines: Iterable[str]) -> int:
    """Say on the standard error what could not be read, each once. Returns the exit code."""
    said = list(dict.fromkeys(lines))
    for line in said:
        print_message(line)
    return PROBLEMS if said else GOOD
