"""Copies of the metadata snapshots of a partition directory."""

from __future__ import annotations

import shutil
from pathlib import Path

from kafka_log.logs.metadata_snapshots import (
    MetadataSnapshot,
    find_snapshot_damage,
    list_snapshots,
)
from kafka_log.segment.arrow_text import utf8
from kafka_log.write.rewrite.report import ReportRow

QUORUM_STATE = "quorum-state"


def copy_snapshots(source: Path, out: Path) -> list[ReportRow]:
    """Copy the complete metadata snapshots from directory ``source`` to ``out``. Return a report
    row for each snapshot, the newest first: ``copied``, or ``lost`` if it is damaged, incomplete,
    unreadable or gone. A last row ``left out`` is for the quorum state file, if any, which is not
    copied. Raise OSError if ``source`` cannot be listed or a copy cannot be written.

    Older snapshots are copied too: records before the first segment are in no other file. The
    quorum state holds the vote of the node.
    """
    said = []
    for snapshot in list_snapshots(source):
        try:
            said.append(_copy_snapshot(snapshot, out))
        except FileNotFoundError as error:  # a broker deletes snapshots
            reason = f"the metadata snapshot is gone: {error.strerror}"
            said.append(ReportRow(utf8(snapshot.path.name), "lost", reason=utf8(reason)))
    votes = source / QUORUM_STATE
    if votes.is_file():
        reason = "a vote of the node, no part of its log: copy it where the same node goes on with this log"
        said.append(ReportRow(QUORUM_STATE, "left out", bytes=votes.stat().st_size, reason=reason))
    return said


def _copy_snapshot(snapshot: MetadataSnapshot, out: Path) -> ReportRow:
    """Copy a metadata snapshot to the directory ``out`` and return its report row ``copied``. If it
    is incomplete, damaged (batch checksums are verified) or unreadable, copy nothing and return its
    row ``lost``. Raise FileNotFoundError if it is gone; OSError if the copy cannot be written.
    """
    name, size = utf8(snapshot.path.name), snapshot.path.stat().st_size
    why = find_snapshot_damage(snapshot)
    if why is not None:
        reason = f"the metadata snapshot is incomplete: {why}"
        return ReportRow(name, "lost", bytes=size, reason=utf8(reason))
    shutil.copyfile(snapshot.path, out / snapshot.path.name)
    return ReportRow(name, "copied", bytes=size, last_offset=snapshot.end_offset - 1)
