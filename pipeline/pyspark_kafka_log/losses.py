"""Counters of what a task reads and loses, and the warning of losses."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from codecgen.runtime.nouns import count_noun
from kafka_log.segment.model import Lost

NAMED = 10
"""Maximum number of losses that a warning or an error describes."""


class DataLossError(Exception):
    """A query cannot read records that are gone, or a stream has read records that were replaced by others."""

    def __init__(self, losses: Iterable[str]) -> None:
        """Store the descriptions of the losses."""
        self.losses = tuple(losses)
        super().__init__(self.losses)

    def __str__(self) -> str:
        """Return the first NAMED losses, the number of others, and what ``failOnDataLoss`` does."""
        more = len(self.losses) - NAMED
        listed = "; ".join(self.losses[:NAMED]) + (f"; and {more} more" if more > 0 else "")
        return (
            f"kafka-log: data is lost: {listed}. With failOnDataLoss set to false this is a warning, and what is there"
            " is read"
        )


@dataclass
class Losses:
    """Counters of one task: lost bytes and places, bytes read, and batches that were not decompressed.

    The offsets around a place bound its lost records: compaction, transaction markers and aborted transactions take offsets too. ``uncounted`` counts the
    places without such offsets, ``first`` describes the first places.
    """

    byte_count: int = 0
    places: int = 0
    uncounted: int = 0
    first: list[str] = field(default_factory=list)
    bytes_read: int = 0
    batches_skipped: int = 0
    _seen: set[tuple[Path, int, int, int | None]] = field(default_factory=set)
    _offsets: dict[Path, list[tuple[int, int]]] = field(default_factory=dict)
    """The first lost offset and the one after the last, for each place."""
    _read: int = 0
    """Number of records in these places that could be read."""

    def add(self, path: Path, lost: Lost) -> None:
        """Count a lost range of a file: its bytes, and the offsets between its neighboring offsets.
        Count it as uncounted if one of these is unknown, or they do not ascend. Describe the first
        10 ranges in ``first``. Ignore a range that was reported before.
        """
        at_record = lost.after_offset if lost.start == lost.end else None
        place = path, lost.start, lost.end, at_record
        if place in self._seen:
            return
        self._seen.add(place)
        self.byte_count += lost.end - lost.start
        self.places += 1
        after, before = lost.after_offset, lost.before_offset
        if after is None or before is None or after >= before:
            self.uncounted += 1
        else:
            self._offsets.setdefault(path, []).append((after + 1, before))
            self._read += lost.read
        if len(self.first) < NAMED:
            self.first.append(f"{os.fspath(path)}: {lost.describe_bytes()}{lost.reason}")

    def add_read(self, bytes_read: int, batches_skipped: int) -> None:
        """Add the bytes read and batches skipped in a file."""
        self.bytes_read += bytes_read
        self.batches_skipped += batches_skipped

    @property
    def record_count(self) -> int:
        """Return the greatest number of records that places with known offsets can have lost.
        Overlapping offsets count once, and records that could be read there are subtracted.
        """
        return max(0, sum(map(_count_covered, self._offsets.values())) - self._read)

    @property
    def metrics(self) -> dict[str, int]:
        """Return the counters by the names of Spark's metrics, zeros included: ``lostBytes``,
        ``lostRanges``, ``lostRows`` (at most, in ranges with known offsets), ``uncountedRanges``
        (those without), ``readBytes`` and ``skippedBatches``.
        """
        return {
            "lostBytes": self.byte_count,
            "lostRanges": self.places,
            "lostRows": self.record_count,
            "uncountedRanges": self.uncounted,
            "readBytes": self.bytes_read,
            "skippedBatches": self.batches_skipped,
        }

    def warn(self) -> None:
        """Emit one Python warning that gives the lost bytes and an upper limit of lost records, and
        describes the first 10 ranges. The limit leaves out ranges whose neighboring offsets are
        unknown, and the warning says so. Do nothing if nothing was lost.
        """
        if self.places:
            more = f"; and {self.places - NAMED} more" if self.places > NAMED else ""
            warnings.warn(
                f"kafka-log: {count_noun(self.byte_count, 'byte')} in {count_noun(self.places, 'place')} could not be read, or were left out, with"
                f" {self._describe_records}: {'; '.join(self.first)}{more}",
                stacklevel=2,
            )

    @property
    def _describe_records(self) -> str:
        """Return the number of lost records in words: an upper limit, "an unknown number of
        records" if no range has known offsets, or both if only some have.
        """
        if self.uncounted == self.places:
            return "an unknown number of records"
        known = f"at most {count_noun(self.record_count, 'record')}"
        if not self.uncounted:
            return known
        return f"{known} in {self.places - self.uncounted} of them, and an unknown number in the others"


def _count_covered(spans: list[tuple[int, int]]) -> int:
    """Return how many non-negative integers lie in at least one of the half-open spans ``(first,
    end)``, which may overlap and come in any order.
    """
    total = reached = 0
    for first, end in sorted(spans):
        if end > max(first, reached):
            total += end - max(first, reached)
            reached = end
    return total
