"""What commands do where an answer depends on bytes that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from codecgen.runtime.errors import CodecError
from kafka_log.cli.common import GOOD, PROBLEMS
from kafka_log.cli.messages import print_message
from kafka_log.logs.partitions import Segment
from kafka_log.segment.model import Batch, End
from kafka_log.segment.reader import damage


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


def batch_lines(batch: Batch) -> Iterator[str]:
    """What there is to say of a batch."""
    for finding in batch.findings:
        yield f"  ! {finding}"
    for problem in batch.problems:
        yield f"  !! {problem.at}: {problem.error}"


def end_lines(end: End, path: Path) -> Iterator[str]:
    """What there is to say where a file ends."""
    for lost in end.lost:
        around = ""
        if lost.after_offset is not None or lost.before_offset is not None:
            around = f", offsets after {lost.after_offset} and before {lost.before_offset}"
        yield f"!! lost: bytes {lost.start} to {lost.end}{around}: {lost.reason}"
    if end.error is not None:
        yield f"!! stopped at byte {end.iterated_bytes}: {end.error}"
    elif end.note is not None:
        yield f"-- {end.note} (from byte {end.iterated_bytes} of {path})"
    elif end.trailing_bytes:
        yield f"!! {end.trailing_bytes} bytes at the end are no whole batch (byte {end.iterated_bytes} of {path})"


def error_line(error: CodecError) -> str:
    """The line for what cannot be read at all."""
    return f"!! {error}"


class Told:
    """What is wrong, in its place: between the rows of a text, else on stderr. ``found`` is the exit code."""

    def __init__(self, say: Callable[[str], None], advance: Callable[[int], None]) -> None:
        self.say = say
        self.advance = advance
        self.found = GOOD

    def unreadable(self, error: CodecError) -> None:
        self.found = PROBLEMS
        self.say(error_line(error))

    def batch(self, batch: Batch) -> None:
        if damage(batch) or not batch.is_valid:
            self.found = PROBLEMS
        for line in batch_lines(batch):
            self.say(line)

    def end(self, segment: Segment, end: End | None) -> None:
        self.advance(segment.size)
        if end is None:
            return
        if not end.is_normal:
            self.found = PROBLEMS
        for line in end_lines(end, segment.path):
            self.say(line)


def on_stderr(line: str) -> None:
    """A line for people, where programs read the rows."""
    print_message(line.strip())


def say(out: BinaryIO, line: str) -> None:
    """Write a line among the rows. Escape what a terminal would not print."""
    if not line.isprintable():
        from kafka_log.text.values import escape_unprintable

        line = escape_unprintable(line)
    out.write(line.encode() + b"\n")
