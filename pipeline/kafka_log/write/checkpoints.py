"""The small files of a partition that a broker wants beside its segments."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_codecs import LEADER_EPOCH_CHECKPOINT
from kafka_log.logs.broker_files import read_small_file, read_topic_id
from kafka_log.logs.metadata_snapshots import find_snapshot_damage, list_snapshots
from kafka_log.segment.arrow_text import utf8
from kafka_log.write.output_files import write_file
from kafka_log.write.rewrite.report import Said

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

Epochs = Sequence[tuple[int, int]]
"""Leader epochs and their first offsets, both rising."""


def copy_partition_metadata(source: Path, out: Path) -> None:
    """Copy the file that says which topic a partition belongs to, if it is there and can be read. Raises OSError."""
    if read_topic_id(source) is not None:
        data = (source / PARTITION_METADATA).read_bytes()
        write_file(out / PARTITION_METADATA, data)


QUORUM_STATE = "quorum-state"


def copy_snapshots(source: Path, out: Path) -> list[Said]:
    """Copy the snapshots of the metadata log, older ones too: what its records before its first segment add up to stands there only.
    What the node had voted is left out. Raises OSError."""
    said = []
    for snapshot in list_snapshots(source):
        name, size = utf8(snapshot.path.name), snapshot.path.stat().st_size
        why = find_snapshot_damage(snapshot)
        if why is None:
            shutil.copyfile(snapshot.path, out / snapshot.path.name)
            said.append(Said(name, "copied", bytes=size, last_offset=snapshot.end_offset - 1))
        else:
            reason = f"this snapshot of the metadata is not whole: {why}"
            said.append(Said(name, "lost", bytes=size, reason=utf8(reason)))
    votes = source / QUORUM_STATE
    if votes.is_file():
        reason = "a vote of the node, no part of its log: copy it where the same node goes on with this log"
        said.append(Said(QUORUM_STATE, "left out", bytes=votes.stat().st_size, reason=reason))
    return said


def write_leader_epochs(source: Path, out: Path, batches: Epochs, first: int, end: int) -> None:
    """Write the leader epochs of a log that begins at the offset ``first`` and ends before ``end``, from what the broker wrote. Where
    that is missing, does not agree with the ``batches``, or begins after them, it is made from these: an epoch and the first offset of
    its first batch.

    Raises OSError.
    """
    said = leader_epochs(source / LEADER_EPOCHS)
    if said is None and not batches:
        return
    epochs = list(said or batches)
    start = epochs[0][1] if epochs else end  # the log start offset may lie inside of the log
    if not all(_epoch_at(epochs, offset) == epoch for epoch, offset in batches if offset >= start):
        epochs = list(batches)
    kept = _cut(epochs, first, end) or _cut(batches, first, end)
    entries = [{"epoch": epoch, "start_offset": start} for epoch, start in kept]
    built = LEADER_EPOCH_CHECKPOINT.build({"epochs": entries})
    write_file(out / LEADER_EPOCHS, bytes(built))


def _cut(epochs: Epochs, first: int, end: int) -> list[tuple[int, int]]:
    """As a broker cuts them: the epoch of the first offset begins there; one may begin where the log ends."""
    after = [(epoch, start) for epoch, start in epochs if first < start <= end]
    before = [epoch for epoch, start in epochs if start <= first]
    return [(before[-1], first), *after] if before else after


def _epoch_at(epochs: Epochs, offset: int) -> int | None:
    found = [epoch for epoch, start in epochs if start <= offset]
    return found[-1] if found else None


def leader_epochs(path: Path) -> list[tuple[int, int]] | None:
    """What such a file says; None when it is missing, or is not what it should be."""
    try:
        parsed = LEADER_EPOCH_CHECKPOINT.parse(
            read_small_file(path), file=os.fspath(path), strict=False
        )
        found = [(e.epoch, e.start_offset) for e in parsed.epochs or ()]
    except (OSError, CodecError):
        return None
    rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in itertools.pairwise(found))
    return found if rising else None
