"""Batches moved to other offsets, where they lie: what says the offset of a batch is not under its checksum."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from codecgen.runtime.construct import Layout
from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs.arrow.records import RECORDS
from kafka_log.disk.directory import Segment
from kafka_log.segment.batch_headers import entries
from kafka_log.segment.columnar import Scanner
from kafka_log.write.encoding import encode
from kafka_log.write.indexes import write_indexes
from kafka_log.write.log_format import LogFormat

_EPOCH = "partition_leader_epoch"
_OFFSETS = ("base_offset", "offset")
_ROWS = [c.name for c in RECORDS.columns if c.name not in ("position", "base_offset")]


def rebase(path: Path, shift: int, epoch: int | None, written: LogFormat) -> None:
    """Add ``shift`` to all offsets of a segment that was ``written`` by us, and give its batches a leader epoch, if that is not None. The
    segment and its indexes keep their names: entries of indexes count from there. The caller has them synced.

    Raises OSError, CodecError.
    """
    if shift and written.magic == 0 and written.codec != "none":
        _rewrite(path, shift, written)
        return
    session = Session(strict=False)
    with path.open("r+b", buffering=0) as file:
        for entry in entries(path):
            layout = entry.frame.layout
            source = Source(entry.data, session, origin=entry.position)
            changed = {}
            if shift:
                name = next(name for name in _OFFSETS if name in layout.by_name)
                changed[name] = _value(layout, name, source) + shift
            if epoch is not None and _EPOCH in layout.by_name:
                changed[_EPOCH] = epoch
            for name, value in changed.items():
                data = layout.by_name[name].codec.write(value, None, session)
                file.seek(entry.position + layout.offset_of(name))
                file.write(data)


def _value(layout: Layout, name: str, source: Source) -> int:
    at = layout.offset_of(name)
    inner = Source(source.data, source.session, pos=at, origin=source.origin)
    value: int = layout.by_name[name].codec.read(inner, None)
    return value


def _rewrite(path: Path, shift: int, written: LogFormat) -> None:
    """The messages in a compressed message of the first version have offsets of their own, which are compressed too."""
    scanner = Scanner(path, _ROWS)
    schema = scanner.schema
    at = schema.get_field_index("offset")

    def moved(rows: pa.RecordBatch) -> pa.RecordBatch:
        offsets = pa.array(rows.column(at).to_numpy() + shift, schema.field(at).type)
        return rows.set_column(at, schema.field(at), offsets)

    stream = pa.RecordBatchReader.from_batches(schema, map(moved, scanner))
    beside = path.with_suffix(".moved")
    with beside.open("wb") as file:
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
