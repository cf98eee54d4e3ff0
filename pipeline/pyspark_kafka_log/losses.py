"""What tasks read, and what they pass over where damage is no error: counted, and said where the logs of a task go."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from kafka_log.segment.model import Lost

SAID = 10
"""Places of one task that are named; the others are counted."""


@dataclass
class Losses:
    """What one task has lost: how many bytes, in how many places, and the first of these; beside it how many bytes of segments it has
    read, and how many batches it did not decompress."""

    byte_count: int = 0
    places: int = 0
    first: list[str] = field(default_factory=list)
    bytes_read: int = 0
    batches_skipped: int = 0
    _seen: set[tuple[Path, int, int]] = field(default_factory=set)

    def add(self, path: Path, lost: Lost) -> None:
        """Count one place, once: a batch that is left out may have lost records before."""
        place = path, lost.start, lost.end
        if place in self._seen:
            return
        self._seen.add(place)
        self.byte_count += lost.end - lost.start
        self.places += 1
        if len(self.first) < SAID:
            self.first.append(f"{os.fspath(path)}: bytes {lost.start} to {lost.end}: {lost.reason}")

    def read(self, bytes_read: int, batches_skipped: int) -> None:
        """Count what was read of a file."""
        self.bytes_read += bytes_read
        self.batches_skipped += batches_skipped

    @property
    def metrics(self) -> dict[str, int]:
        """The numbers, as Spark's UI shows them."""
        return {
            "lostBytes": self.byte_count,
            "lostRanges": self.places,
            "readBytes": self.bytes_read,
            "skippedBatches": self.batches_skipped,
        }

    def warn(self) -> None:
        """Say it, if there is anything to say."""
        if self.places:
            more = f"; and {self.places - SAID} places more" if self.places > SAID else ""
            warnings.warn(
                f"kafka-log: {self.byte_count} bytes in {self.places} places could not be read whole, or are left out: {'; '.join(self.first)}{more}",
                stacklevel=2,
            )
