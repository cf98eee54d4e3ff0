"""What is wrong with logs, said while they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from codecgen.runtime.errors import CodecError
from kafka_log.cli.common import GOOD, PROBLEMS
from kafka_log.cli.messages import print_message
from kafka_log.logs.partitions import Segment
from kafka_log.report import damage_lines
from kafka_log.segment.model import Batch, End
from kafka_log.segment.reader import damage


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
        from kafka_log.text.printing import printable  # takes time to load

        line = printable(line)
    out.write(line.encode() + b"\n")
