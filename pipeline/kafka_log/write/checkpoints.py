"""Small files of a partition directory: leader epoch checkpoint and partition.metadata."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kafka_codecs import LEADER_EPOCH_CHECKPOINT
from kafka_log.logs.broker_files import find_epoch, read_leader_epochs, read_topic_id
from kafka_log.logs.names import LEADER_EPOCHS
from kafka_log.write.output_files import write_file

PARTITION_METADATA = "partition.metadata"

Epochs = Sequence[tuple[int, int]]
"""Leader epochs and their first offsets, both rising."""


def copy_partition_metadata(source: Path, out: Path) -> None:
    """Copy ``partition.metadata``, the file with the topic id, from the partition directory
    ``source`` to ``out``, in place of a file there. Do nothing if it is missing, invalid or
    unreadable, or has the nil id. Raise OSError if the copy cannot be written.
    """
    if read_topic_id(source) is not None:
        data = (source / PARTITION_METADATA).read_bytes()
        write_file(out / PARTITION_METADATA, data)


def write_leader_epochs(source: Path, out: Path, batches: Epochs, first: int, end: int) -> None:
    """Write the leader epoch checkpoint for the offsets ``first`` to ``end`` (excluded) into
    ``out``; an epoch that starts at ``end`` stays. Its epochs come from the checkpoint in
    ``source``; or from ``batches`` if that is missing, invalid or empty, contradicts those batches
    that do not lie before its first epoch, or begins after ``end``. Write nothing if it is missing
    or invalid and ``batches`` is empty. Raise OSError if the file cannot be written.

    Args:
        source: The partition directory that was read.
        out: The partition directory to write to.
        batches: The leader epochs of the batches, each with its first offset.
        first: The first offset of the log.
        end: The offset after the last one.
    """
    said = read_leader_epochs(source / LEADER_EPOCHS)
    if said is None and not batches:
        return
    epochs = list(said or batches)
    start = epochs[0][1] if epochs else end  # the log start offset may lie inside of the log
    if not all(find_epoch(epochs, offset) == epoch for epoch, offset in batches if offset >= start):
        epochs = list(batches)
    kept = _truncate_epochs(epochs, first, end) or _truncate_epochs(batches, first, end)
    entries = [{"epoch": epoch, "start_offset": start} for epoch, start in kept]
    built = LEADER_EPOCH_CHECKPOINT.build({"epochs": entries})
    write_file(out / LEADER_EPOCHS, bytes(built))


def _truncate_epochs(epochs: Epochs, first: int, end: int) -> list[tuple[int, int]]:
    """Return the (epoch, start offset) pairs that hold from offset ``first`` to ``end``, as a
    broker truncates its checkpoint. The epoch of ``first``, if it is known, starts there. An epoch
    that starts at ``end`` stays; later ones do not. Return ``[]`` if none is left.
    """
    after = [(epoch, start) for epoch, start in epochs if first < start <= end]
    before = [epoch for epoch, start in epochs if start <= first]
    return [(before[-1], first), *after] if before else after
