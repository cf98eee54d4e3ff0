"""Damage of segments as lines between rows or on stderr, and the exit codes for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_log.cli.common import GOOD, PROBLEMS
from kafka_log.cli.messages import print_message
from kafka_log.logs.partitions import Segment
from kafka_log.segment.model import Batch, End, Lost, describe_lost
from kafka_log.segment.printable import escape_unprintable
from kafka_log.segment.reader import damage


def run_with_damage(run: Callable[[], int], salvage: Callable[[], int] | None = None) -> int:
    """Run ``run`` and return its exit code. If it raises CodecError, print the error, run
    ``salvage`` for an answer from what is readable, and return 1; if ``salvage`` is None, the error
    names the option for it. Raise all other errors of ``run``, and those of ``salvage``.

    Args:
        run: Prints the answer and returns the exit code. If it raises CodecError, the error is
            printed.
        salvage: Prints the answer from readable records after such an error; None: it is not
            asked for.
    """
    try:
        return run()
    except CodecError as error:
        print_message(
            f"{error}; add --policy salvage to answer from what is readable"
            if salvage is None
            else error
        )
    if salvage is not None:
        print_message("the answer below omits what cannot be read")
        salvage()
    return PROBLEMS


@contextmanager
def report_damage_after(lines: Iterable[str]) -> Iterator[None]:
    """Print each distinct line of ``lines`` to stderr at the end of the block, which adds them,
    also if the block raises an error: an unknown name may be in what cannot be read.
    """
    try:
        yield
    finally:
        report_damage(lines)


def report_damage(lines: Iterable[str]) -> int:
    """Print each distinct line to stderr. Return exit code 1 if there is any line, else 0."""
    distinct = list(dict.fromkeys(lines))
    for line in distinct:
        print_message(line)
    return PROBLEMS if distinct else GOOD


def batch_lines(batch: Batch) -> Iterator[str]:
    """Yield a line for each tolerated (``!``) problem of a batch, such as a wrong checksum, and
    then for each fatal (``!!``) one; nothing if it has none.
    """
    for finding in batch.findings:
        yield f"  ! {finding}"
    for problem in batch.problems:
        yield f"  !! {problem.at}: {problem.error}"


def end_lines(end: End, path: Path) -> Iterator[str]:
    """Yield the lines about a file that was read; nothing if it ended at its last byte without
    loss. They name each lost range, the error that stopped the reading or an incomplete end
    (``!!``), or are a note about the end (``--``).
    """
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
        yield f"!! {count_noun(end.trailing_bytes, 'byte at the end is', 'bytes at the end are')} not a complete batch (from byte {end.iterated_bytes} of {path})"


def error_line(error: CodecError) -> str:
    """Return the line about a file that cannot be read at all."""
    return f"!! {error}"


class DamageReporter:
    """Reporter of damage while segments are read. ``found`` is the exit code so far."""

    def __init__(self, print_line: Callable[[str], None], advance: Callable[[int], None]) -> None:
        self.print_line = print_line
        self.advance = advance
        self.found = GOOD

    def unreadable(self, error: CodecError) -> None:
        """Write a line about a file or directory that cannot be read, and set ``found`` to 1."""
        self.found = PROBLEMS
        self.print_line(error_line(error))

    def missing(self, path: Path, lost: Lost) -> None:
        """Write a line about offsets that no segment has, and set ``found`` to 1."""
        self.found = PROBLEMS
        self.print_line(f"!! {describe_lost(path, lost)}")

    def batch(self, batch: Batch) -> None:
        """Write a line for each tolerated and each fatal problem of a batch. Set ``found`` to 1 if
        a consumer would reject the batch, because it has damage or a wrong checksum.
        """
        if damage(batch) or not batch.is_valid:
            self.found = PROBLEMS
        for line in batch_lines(batch):
            self.print_line(line)

    def end(self, segment: Segment, end: End | None) -> None:
        """Advance the progress by the size of the segment, and write lines about lost ranges, an
        error or an incomplete tail at its end. Set ``found`` to 1 if the end is not normal. ``end``
        None (the reading was stopped on purpose) writes nothing.
        """
        self.advance(segment.size)
        if end is None:
            return
        if not end.is_normal:
            self.found = PROBLEMS
        for line in end_lines(end, segment.path):
            self.print_line(line)


def print_damage(line: str) -> None:
    """Print a line about damage to stderr; used if programs read the rows on stdout."""
    print_message(line.strip())


def write_damage(out: BinaryIO, line: str) -> None:
    """Write a line about damage between the rows, with unprintable characters escaped."""
    out.write(escape_unprintable(line).encode() + b"\n")
