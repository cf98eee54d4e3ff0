"""Where the log of a partition goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_log.logs.broker_files import read_checkpoint, read_producer_snapshot
from kafka_log.logs.discovery import discover
from kafka_log.logs.names import LOG_START
from kafka_log.logs.partitions import DirectoryError
from kafka_log.write.batch_rows import BatchRows
from kafka_log.write.checkpoints import LEADER_EPOCHS, leader_epochs


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a log goes on: the offset of its next record, the leader epoch there (None where no batch has one), and what is known of
    producers, as a snapshot."""

    offset: int = 0
    epoch: int | None = 0
    producers: bytes | None = None


def log_end(directory: Path, start: int) -> LogEnd:
    """Where the log of a partition's directory goes on; it does not go on before ``start``.

    Raises :class:`~kafka_log.logs.partitions.DirectoryError` for a log that does not end with a whole batch: nothing may come after
    that. Raises OSError.
    """
    (partition,) = discover(directory)
    if partition.error is not None:
        raise partition.error
    live = [segment for segment in partition.segments if segment.state == "live"]
    if not live:
        return LogEnd(start)
    last = live[-1]
    end, epoch = last.base_offset, None
    rows = BatchRows(replace(last, rolled=True), ("last_offset", "leader_epoch"))
    for offset, of_batch in rows:
        end = max(end, offset + 1)
        epoch = epoch if of_batch is None or of_batch < 0 else of_batch
    if rows.lost:
        at = rows.lost[0].start
        reason = f"from byte {at} on it holds no whole batches: salvage the log before something is added to it"
        raise DirectoryError(last.path, reason)
    said = leader_epochs(directory / LEADER_EPOCHS)
    if said:
        epoch = said[-1][0]
    elif epoch is None and end == 0:
        epoch = 0  # nothing was ever written
    snapshot = directory / f"{end:020d}.snapshot"
    producers = snapshot.read_bytes() if read_producer_snapshot(snapshot) is not None else None
    return LogEnd(max(start, end), epoch, producers if end >= start else None)


def log_starts(target: Path) -> Mapping[tuple[str, int], int]:
    """The first offsets of the logs in a broker's directory, as far as its checkpoint says them: records before them are deleted, and a
    log that ends before its start is deleted as a whole. Raises DirectoryError where
    that cannot be read, OSError."""
    path = target / LOG_START
    if not path.is_file():
        return {}
    try:
        return read_checkpoint(path)
    except CodecError as error:
        raise DirectoryError(path, f"it cannot be read: {error}") from None
