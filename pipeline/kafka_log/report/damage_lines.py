"""What is wrong with a segment, as lines for people: ``!`` for what this policy takes, ``!!`` for what is lost, ``--`` for notes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_log.segment.model import Batch, End


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
