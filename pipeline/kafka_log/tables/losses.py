"""What a reader passed over, told to whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_log.segment.model import Batch, Lost

if TYPE_CHECKING:
    from kafka_log.segment.columnar import Scanner

OnLost = Callable[[Path, Lost], None]
"""Is called with a path and what of it is lost."""

OnRead = Callable[[int, int], None]
"""Is called with how many bytes of a file were read, and how many of its batches were skipped, when no more of it is read."""


def tell_lost(records: Scanner, on_lost: OnLost | None) -> None:
    """Tell what a scanner passed over, now that it is done."""
    end = records.end
    if on_lost is None or end is None:
        return
    for lost in end.lost:
        on_lost(records.reader.path, lost)
    if end.error is not None and records.keep:
        start = end.iterated_bytes
        on_lost(records.reader.path, Lost(start, start + end.trailing_bytes, str(end.error)))


def tell_dropped(records: Scanner, on_lost: OnLost) -> None:
    """Let a scanner that drops damaged batches tell each of them as it comes by."""
    from kafka_log.segment.reader import damage

    def tell(batch: Batch) -> None:
        wrong = damage(batch)
        if wrong:
            end = batch.position + batch.size
            reason = f"a batch that is left out: {wrong[0]}"
            on_lost(records.reader.path, Lost(batch.position, end, reason))

    records.on_batch = tell
