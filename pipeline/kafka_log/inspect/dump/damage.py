"""What is wrong with a segment, as lines for people: ``!`` for what this policy takes, ``!!`` for what is lost, ``--`` for notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from codecgen.runtime.errors import CodecError
from kafka_log.cli.common import GOOD, PROBLEMS
from kafka_log.cli.messages import print_message
from kafka_log.disk.directory import Segment
from kafka_log.inspect.dump import damage as damage_lines
from kafka_log.segment.model import Batch, End
from kafka_log.segment.reader import damage


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
        self.say(damage_lines.error_line(error))

    def batch(self, batch: Batch) -> None:
        if damage(batch) or not batch.is_valid:
            self.found = PROBLEMS
        for line in damage_lines.batch_lines(batch):
            self.say(line)

    def end(self, segment: Segment, end: End | None) -> None:
        self.advance(segment.size)
        if end is None:
            return
        if not end.is_normal:
            self.found = PROBLEMS
        for line in damage_lines.end_lines(end, segment.path):
            self.say(line)


def on_stderr(line: str) -> None:
    """A line for people, where programs read the rows."""
    print_message(line.strip())


def say(out: BinaryIO, line: str) -> None:
    """Write a line among the rows. Escape what a terminal would not print."""
    if not line.isprintable():
        from kafka_log.report.printing import printable  # takes time to load

        line = printable(line)
    out.write(line.encode() + b"\n")
