"""Batches moved to other offsets, where they lie."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from codecgen.runtime.editing import edit
from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs.columns.records import RECORDS
from kafka_codecs.rows.batches import BATCHES
from kafka_log.logs.partitions import Segment
from kafka_log.segment.batch_headers import entries
from kafka_log.segment.framing import HeaderColumns
from kafka_log.segment.positioned_reads import read_exactly
from kafka_log.segment.scanner import Scanner
from kafka_log.segment.versions import columns_from, field_of, has
from kafka_log.write.encoding import encode
from kafka_log.write.indexes import write_indexes
from kafka_log.write.log_format import LogFormat
from kafka_log.write.output_files import named_errors, open_output
from kafka_log.write.verification import WrittenError

_SAID = [c for c in BATCHES.columns if c not in ("crc", "position", "size")]
_ROWS = [c.name for c in RECORDS.columns if c.name not in ("position", "base_offset")]


def rebase(path: Path, shift: int, epoch: int | None, written: LogFormat) -> None:
    """Add ``shift`` to all offsets of a segment that was ``written`` by us, and give its batches a leader epoch, if that is not None. The
    segment and its indexes keep their names: entries of indexes count from there. The caller has them synced.

    Raises OSError; CodecError where a batch would not say the same at its new place.
    """
    is_batch = has(written.magic, "record_count")
    if shift and written.codec != "none" and not is_batch:
        _rewrite(path, shift, written)
        return
    if not has(written.magic, "leader_epoch"):
        epoch = None
    offset = field_of(written.magic, "base_offset" if is_batch else "last_offset")
    moved_too = columns_from(written.magic, offset) & set(_SAID)
    columns = HeaderColumns(_SAID, os.fspath(path))
    session = Session(strict=False, file=os.fspath(path))
    with named_errors(path), path.open("r+b", buffering=0) as file:
        for entry in entries(path):
            before = dict(zip(_SAID, columns.read(entry), strict=True))
            changes: dict[str, int] = {}
            if shift:
                changes[offset] = before["last_offset" if not is_batch else "base_offset"] + shift
            if epoch is not None:
                changes[field_of(written.magic, "leader_epoch")] = epoch
            data = read_exactly(file, entry.position, entry.frame.size)
            source = Source(data, session, origin=entry.position)
            moved = edit(entry.frame.layout, source, changes)
            after = columns.read(entry._replace(data=moved))
            wanted = before | {n: before[n] + shift for n in moved_too if before[n] is not None}
            wanted |= {} if epoch is None else {"leader_epoch": epoch}
            if len(moved) != len(data) or after != tuple(wanted.values()):
                reason = f"the batch at offset {before['last_offset']} cannot be moved by {shift} offsets: its header says other things then"
                raise WrittenError(reason, source.where(0))
            file.seek(entry.position)
            file.write(moved)


def _rewrite(path: Path, shift: int, written: LogFormat) -> None:
    """Write a segment anew: messages in a compressed message may have offsets of their own, which are compressed too."""
    scanner = Scanner(path, _ROWS)
    schema = scanner.schema
    at = schema.get_field_index("offset")

    def moved(rows: pa.RecordBatch) -> pa.RecordBatch:
        offsets = pa.array(rows.column(at).to_numpy() + shift, schema.field(at).type)
        return rows.set_column(at, schema.field(at), offsets)

    stream = pa.RecordBatchReader.from_batches(schema, map(moved, scanner))
    beside = path.with_suffix(".moved")
    with open_output(beside) as file:
        for piece in encode(stream, level=written.level, batch_bytes=written.batch_bytes):
            file.write(piece)
    beside.replace(path)
    base = int(path.stem) + shift
    moved_segment = Segment(path, "", 0, base, path.stat().st_size, rolled=True)
    if write_indexes([moved_segment], path.parent):
        raise OSError(f"{path}: what was written there cannot be read again")
    for end in (".index", ".timeindex"):  # under the names that the segment still has
        (path.parent / f"{base:020d}{end}").replace(path.with_suffix(end))
    for snapshot in path.parent.glob("*.snapshot"):
        snapshot.unlink()
