"""Conversion of partitions to record batches of another version or codec, with the same records at the same offsets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.compression import compress
from codecgen.runtime.construct import Array, Bits, Layout
from codecgen.runtime.editing import edit
from codecgen.runtime.errors import (
    BuildError,
    ChecksumError,
    CodecError,
    TrailingError,
    ValueRefused,
    Where,
)
from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs import LOG_ENTRY, Compression, TimestampType
from kafka_codecs.columns.records import RECORDS as RECORD_COLUMNS
from kafka_codecs.rows.batches import BATCHES
from kafka_codecs.rows.records import RECORDS
from kafka_log.logs.incomplete_tails import find_incomplete_tail, find_tail_loss
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.blocks import Block
from kafka_log.segment.framing import HeaderColumns
from kafka_log.segment.header_arrays import (
    Headers,
    concatenate_headers,
    header_row,
    headers_from_block,
    headers_from_rows,
)
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.positioned_reads import open_segment
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.reader import damage
from kafka_log.segment.row_masks import numbers
from kafka_log.segment.scanner import Scanner
from kafka_log.segment.versions import (
    BATCH_VERSIONS,
    WRITTEN_BATCH_VERSIONS,
    are_known,
    codecs_of,
    field_of,
    have_field,
    refuse_unwritten,
)
from kafka_log.write.encoding import CODECS, encode
from kafka_log.write.field_comparison import (
    Made,
    Rewritten,
    compare_defaults,
    compare_fields,
    has_computed_default,
    is_computed,
    read_ranges,
)
from kafka_log.write.log_writer import BOUNDS, MAX_SEGMENT, LogWriter, SegmentRoller
from kafka_log.write.rewrite.partition_writer import Advance, finish, note_epochs
from kafka_log.write.segment_contents import get_named_base_offset
from kafka_log.write.verification import (
    Written,
    columns_of,
    compare_bytes,
    compare_rows,
    constant_of,
    headers_written,
    read_headers,
    read_records,
    records_written,
)


@dataclass(frozen=True, slots=True)
class Target:
    """The format that batches are converted to.

    Attributes:
        codec: The compression codec. None: each batch keeps its own.
        level: The compression level; with a level all batches are compressed again.
        magic: The version of the format. None: record batches keep theirs, and legacy messages become batches of the newest version that can be written.
    """

    codec: Compression | None = None
    level: int | None = None
    magic: int | None = None

    @property
    def of_messages(self) -> int:
        """Return the version in which messages of the legacy formats are written."""
        return WRITTEN_BATCH_VERSIONS[-1] if self.magic is None else self.magic


def target(codec: str | None, level: int | None, magic: int | None = None) -> Target:
    """Return the format to convert to; None as ``codec`` or ``magic`` keeps that of each batch, but
    legacy messages become batches of the newest version. None as ``level`` is the codec's default.
    Raise ValueError if the codec, the level or the version does not exist, the version is no version
    of record batches or does not use the codec, the package of the codec is not installed, or a
    level is given without a codec.
    """
    if magic is not None and magic not in BATCH_VERSIONS:
        listed = ", ".join(map(str, BATCH_VERSIONS))
        raise ValueError(f"logs cannot be converted to version {magic}; known: {listed}")
    if magic is not None:
        refuse_unwritten(magic)
    if codec is None:
        if level is not None:
            raise ValueError(f"level {level} was given without a codec: name the codec too")
        return Target(magic=magic)
    if codec not in CODECS:
        raise ValueError(f"{codec!r} is not a codec; known: {', '.join(CODECS)}")
    if magic is not None and codec not in codecs_of(magic):
        raise ValueError(
            f"version {magic} of batches does not have the codec {codec}; it has: {', '.join(codecs_of(magic))}"
        )
    try:
        compress(codec, b"", level=level)
    except CodecError as error:
        raise ValueError(error.reason) from None
    return Target(Compression[codec.upper()], level, magic)


def recompress(data: bytes, magic: int, target: Target, *, file: str, position: int) -> bytes:
    """Return the bytes of a batch of version ``magic`` with its records compressed by the codec and
    level of ``target``. ``data`` is the batch, which lies at byte ``position`` of ``file``. Raise
    CodecError if its checksum is wrong, the records cannot be decompressed, or the version cannot
    use the codec. The decompressed records are not parsed.
    """
    session = Session(strict=False, file=file, level=target.level)
    changes = {field_of(magic, "codec"): target.codec}
    try:
        return edit(
            LOG_ENTRY.cases[magic],
            Source(data, session, origin=position),
            changes,
            recompress=True,
        )
    except BuildError as error:
        raise error.located(position=position, file=file) from None


def upgrade(data: bytes, magic: int, target: Target, *, file: str, position: int) -> bytes:
    """Return the bytes of a batch of version ``magic`` in the version of ``target``, which must be
    set, with the codec of ``target`` if that has one, else its own. Fields that only that version
    has get defaults. ``data`` is the batch at byte ``position`` of ``file``. Raise CodecError if it
    does not parse, a checksum in it is wrong, or that version has no field for a value.
    """
    assert target.magic is not None
    session = Session(strict=False, file=file)
    older, newer = LOG_ENTRY.cases[magic], LOG_ENTRY.cases[target.magic]
    batch = older.read(Source(data, session, origin=position), None)
    for finding in session.findings:
        if isinstance(finding, ChecksumError):
            raise finding
    try:
        values = _carry_value(batch, older, newer)
        if target.codec is not None:
            name, _, member = field_of(target.magic, "codec").partition(".")
            if member:
                values[name][member] = target.codec
            else:
                values[name] = target.codec
        return newer.build(values, level=target.level, strict=False)
    except BuildError as error:
        raise error.located(position=position, file=file) from None


def _carry_value(value: Any, older: Any, newer: Any) -> Any:
    """Return a value parsed by the codec ``older`` in the form that ``newer`` builds, without
    fields that builders compute, such as lengths. None, and values without fields, stay the same.
    Raise BuildError if ``newer`` has no field for a value other than null or the default.
    """
    if value is None:
        return None
    if isinstance(older, Array) and isinstance(newer, Array):
        return [_carry_value(one, older.element, newer.element) for one in value]
    if isinstance(older, Bits) and isinstance(newer, Bits):
        _refuse_lost({n: v for n, v in value.items() if n not in newer.by_name and v})
        return {name: value[name] for name in newer.by_name if name in value}
    if not isinstance(value, dict):
        return value
    before: Layout = older
    after: Layout = newer
    out = {}
    lost = {}
    for field in before.fields:
        target = after.by_name.get(field.name)
        if is_computed(field) or (target is not None and is_computed(target)):
            continue
        if target is not None:
            out[field.name] = _carry_value(value[field.name], field.codec, target.codec)
        elif value[field.name] not in (None, field.absent):
            lost[field.name] = value[field.name]
    _refuse_lost(lost)
    return out


def _refuse_lost(lost: dict[str, Any]) -> None:
    """Raise BuildError for the first value in ``lost``, which has the values that the newer version
    has no field for; do nothing if ``lost`` is empty.
    """
    for name, value in lost.items():
        raise BuildError(f"the newer version cannot hold {value!r}").located(path=name)


GROUP_BYTES = 16384
"""Bytes of keys and values of messages that are not compressed, which become one batch; one message may have more."""

_WHOLE = 1 << 28
_ROW = 8
"""Bytes of a record beside key and value, about."""

_COLUMNS = [c.name for c in RECORD_COLUMNS.columns if c.name != "position"]
_MADE = ("base_offset", "timestamp_type")
_WRITTEN = [name for name in _COLUMNS if name != "magic"]


def convert_messages(
    path: Path, start: int, stop: int, magic: int, codec: str | None, level: int | None
) -> Iterator[memoryview]:
    """Yield the legacy messages from byte ``start`` to ``stop`` (excluded) of a file as the bytes
    of record batches of version ``magic``, in pieces of whole batches. A compressed message becomes
    one batch; uncompressed ones share batches. Without ``codec`` (None) batches keep the codec of
    their messages; ``level`` None is the codec's default. Raise at once ValueError for an unknown
    version or codec; while iterating CodecError for damage (also a wrong checksum), an unreadable
    file, and rows that no batch can hold, FileNotFoundError if the file is missing.
    """
    scanner = Scanner(path, _COLUMNS, start=start, stop=stop)
    rows = (_group_rows(batch) for batch in scanner)
    schema = pa.schema([scanner.schema.field(name) for name in _WRITTEN])
    stream = pa.RecordBatchReader.from_batches(schema, rows)
    return encode(stream, magic=magic, codec=codec, level=level, batch_bytes=_WHOLE)


def _group_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of legacy messages in the columns that are encoded. The base offset is that
    of the new batch: of its wrapper's first message, or of the first uncompressed message in the
    group. The timestamp type is CreateTime if there is none.
    """
    offsets, kinds = numbers(rows, "offset"), numbers(rows, "timestamp_type")
    single = numbers(rows, "codec") == Compression.NONE
    base = numbers(rows, "base_offset").copy()
    first = _first_of_group(rows, single, kinds)
    base[single] = offsets[first[single]]
    made = {"base_offset": base, "timestamp_type": np.maximum(kinds, TimestampType.CREATE_TIME)}
    arrays = [
        pa.array(made[name], rows.schema.field(name).type) if name in _MADE else rows.column(name)
        for name in _WRITTEN
    ]
    return pa.RecordBatch.from_arrays(arrays, names=_WRITTEN)


def _first_of_group(rows: pa.RecordBatch, single: Any, kinds: Any) -> Any:
    """Return an array with the index of the first row of each row's new batch. Consecutive
    uncompressed messages share a batch of up to about GROUP_BYTES, while the timestamp type, and
    with LogAppendTime the timestamp, stays the same.
    """
    times = numbers(rows, "timestamp")
    begins = np.ones(rows.num_rows, bool)
    begins[1:] = ~(single[1:] & single[:-1]) | (kinds[1:] != kinds[:-1])
    begins[1:] |= (kinds[1:] == TimestampType.LOG_APPEND_TIME) & (times[1:] != times[:-1])
    before = np.cumsum(_sizes(rows)) - _sizes(rows)
    index = np.arange(rows.num_rows)
    of_run = before - before[np.maximum.accumulate(np.where(begins, index, 0))]
    full = of_run // GROUP_BYTES
    begins[1:] |= full[1:] != full[:-1]
    return np.maximum.accumulate(np.where(begins, index, 0))


def _sizes(rows: pa.RecordBatch) -> Any:
    """Return the approximate size of each row in bytes."""
    lengths = (pc.binary_length(rows.column(name)).fill_null(0) for name in ("key", "value"))
    return sum((numbers_of.to_numpy(zero_copy_only=False) for numbers_of in lengths), start=_ROW)


CONVERTED = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Partition number."}),
        pa.field("base_offset", pa.int64(), True, {"doc": "Base offset of the segment."}),
        pa.field(
            "what",
            pa.string(),
            False,
            {
                "doc": "kept: all batches unchanged. converted: some batches changed. refused: nothing of the partition is written. left out: a metadata snapshot."
            },
        ),
        pa.field(
            "records", pa.int64(), True, {"doc": "Number of records, including control records."}
        ),
        pa.field(
            "batches",
            pa.int64(),
            True,
            {"doc": "Number of batches, or of messages in formats 0 and 1, that were read."},
        ),
        pa.field("batches_out", pa.int64(), True, {"doc": "Number of batches that were written."}),
        pa.field("bytes", pa.int64(), True, {"doc": "Size of what was read."}),
        pa.field("bytes_out", pa.int64(), True, {"doc": "Size of what was written."}),
        pa.field("ratio", pa.float64(), True, {"doc": "bytes_out divided by bytes."}),
        pa.field(
            "reason",
            pa.string(),
            True,
            {
                "doc": "Why a partition is refused, or what was left out: a snapshot, or an unfinished end of a segment."
            },
        ),
    ]
)
"""One row per segment. A refused partition and a metadata snapshot have one row without numbers."""

_COPY, _RECODE, _UPGRADE, _OLD = range(4)


@dataclass(slots=True)
class Converted:
    """A row of :data:`CONVERTED` without topic and partition."""

    base_offset: int | None
    what: str
    records: int | None = None
    batches: int | None = None
    batches_out: int | None = None
    bytes: int | None = None
    bytes_out: int | None = None
    ratio: float | None = None
    reason: str | None = None


def write_converted(
    partition: Partition, out: Path, target: Target, advance: Advance = lambda _: None
) -> list[Converted]:
    """Convert a partition's segments to the codec, level and version of ``target`` into the empty
    directory ``out``. Return a report row for each segment, in order; none for metadata snapshots
    and for a segment without batches whose name has no base offset. Incomplete tails are left out.
    The files that a broker keeps beside segments are written too, and the result is read again.
    Raise CodecError for damage (also a wrong checksum), offsets out of order, a version unknown or
    newer than the target's, and output unlike its source; OSError if writing fails.

    What was written is read again, and has to say the same as what was there. Memory holds the
    batch headers of one segment, and one batch or a chunk.
    """
    segments = [s for s in partition.segments if s.state != "snapshot"]
    rows: list[Converted] = []
    epochs: list[tuple[int, int]] = []
    end = 0
    with LogWriter(out) as log:
        for i, segment in enumerate(segments):
            headers, counts, rest = _read(segment, end, _next_base(segments, i))
            _refuse_versions(segment, headers, target)
            base = get_named_base_offset(segment)
            end = max(end, base or 0, int(headers.last[-1]) + 1 if len(headers) else 0)
            if base is None and len(headers):
                base = int(headers.first[0])
            if base is not None:
                log.begin(base)
                kinds = _choose_conversions(headers, counts, target)
                mark = log.mark()
                roller = SegmentRoller(log, MAX_SEGMENT)
                made, places = _write(roller, segment, headers, counts, kinds, target, base)
                keeps_codec = target.codec is None
                written = log.since(mark)
                _verify(segment, headers, kinds, written, places, keeps_codec=keeps_codec)
                _verify_messages(segment, headers, kinds == _OLD, written, target.of_messages)
                if rest is not None:
                    made.reason = f"{utf8(segment.path.name)}: bytes {rest.start} to {rest.end} are left out: {rest.reason}"
                rows.append(made)
            note_epochs(epochs, headers, np.ones(len(headers), bool))
            advance(segment.size)
    finish(partition, out, log.segments, epochs, end)
    return rows


def _next_base(segments: Sequence[Segment], i: int) -> int:
    """Return the base offset of the segment after segment `i`."""
    found = (get_named_base_offset(segment) for segment in segments[i + 1 :])
    return next((base for base in found if base is not None), MAX_OFFSET)


def _read(segment: Segment, start: int, stop: int) -> tuple[Headers, Any, Lost | None]:
    """Return the batch headers of a segment, an array with the number of records of each batch, and
    its incomplete tail (None without one). Raise CodecError for damage, also a wrong checksum or an
    unreadable file, and if offsets do not ascend from ``start`` (included) on or are not below
    ``stop``.
    """
    reader = BlockReader(segment.path, policy=Policy.KAFKA, tail=segment.tail, size=segment.size)
    parts: list[Headers] = []
    counts = [np.empty(0, np.int64)]
    for item in reader.items():
        if isinstance(item, Block):
            parts.append(headers_from_block(item))
            counts.append(np.diff(item.starts()))
            continue
        for error in damage(item):
            raise _advise_salvage(error)
        parts.append(headers_from_rows([header_row(item)]))
        counts.append(np.array([len(item.records)]))
    if reader.end is not None and reader.end.error is not None:
        raise _advise_salvage(reader.end.error)
    headers = concatenate_headers([*parts, headers_from_rows([])])
    before = np.concatenate([[start - 1], headers.last[:-1]])
    before = before[: len(headers)]
    wrong = (headers.first <= before) | (headers.last < headers.first)
    wrong = np.flatnonzero(wrong | (headers.last >= stop))
    if len(wrong):
        where = Where(position=int(headers.position[wrong[0]]), file=os.fspath(segment.path))
        raise _advise_salvage(
            ValueRefused(
                "the offsets of the batch are not above those of the batch before it, or not below the next segment",
                where,
            )
        )
    return headers, np.concatenate(counts), _find_unfinished_tail(segment, reader)


def _find_unfinished_tail(segment: Segment, reader: BlockReader) -> Lost | None:
    """Return the incomplete tail of a segment that was read to its end: a torn batch or zeros that
    a broker would cut off. Return None if it ends with a whole batch. Raise TrailingError if the
    bytes after the last batch are damage.
    """
    if reader.end is None or reader.end.note is None:
        return None
    rest = find_incomplete_tail(segment, reader.end.iterated_bytes)
    if rest is None:
        where = Where(position=reader.end.iterated_bytes, file=os.fspath(segment.path))
        raise _advise_salvage(
            TrailingError("the bytes at the end are not the beginning of a batch", where)
        )
    loss = find_tail_loss(segment, rest)
    if loss is not None:
        where = Where(position=loss.start, file=os.fspath(segment.path))
        raise _advise_salvage(TrailingError(f"the bytes at the end are {loss.reason}", where))
    return rest


def _advise_salvage(error: CodecError) -> CodecError:
    """Return the error with the advice to salvage the log first."""
    error.reason += "; a log with damage is not converted: salvage it first"
    return error


class _Places(NamedTuple):
    """Where the batches of a segment are in what was written.

    Attributes:
        copied: Start and stop of adjacent batches in the segment, and the ranges of their copies.
        rewritten: Batches that were recompressed or upgraded.
    """

    copied: list[tuple[int, int, list[Written]]]
    rewritten: list[Rewritten]


def _write(
    out: SegmentRoller,
    segment: Segment,
    headers: Headers,
    counts: Any,
    kinds: Any,
    target: Target,
    base: int,
) -> tuple[Converted, _Places]:
    """Copy, recompress, upgrade or convert the batches of a segment, as the code of each batch in
    ``kinds`` says. Return the report row of the segment, and where the batches are now. Raise CodecError for a batch that cannot be converted or read; OSError if writing
    fails or the segment is gone.
    """
    name = os.fspath(segment.path)
    columns = HeaderColumns(BOUNDS, name)
    recoded = _find_recompressed(headers, counts, target)
    label = None if target.codec is None else target.codec.label
    places = _Places([], [])
    with open_segment(segment.path) as file:
        for low, high in _split_runs(kinds, headers):
            run = headers.take(slice(low, high))
            start, stop = int(run.position[0]), int(run.position[-1] + run.size[-1])
            if kinds[low] == _COPY:
                places.copied.append((start, stop, out.copy(file, run)))
            elif kinds[low] == _OLD:
                pieces = convert_messages(
                    segment.path, start, stop, target.of_messages, label, target.level
                )
                out.write_pieces(pieces, columns)
            else:
                is_upgrade = kinds[low] == _UPGRADE
                places.rewritten.extend(
                    _rewrite(out, segment, run, recoded[low:high], target, is_upgrade)
                )
    size = int(headers.size.sum())
    made = Converted(
        base,
        "kept" if (kinds == _COPY).all() else "converted",
        int(counts.sum()),
        len(headers),
        out.batches,
        size,
        out.bytes,
        round(out.bytes / size, 3) if size else None,
    )
    return made, places


def _rewrite(
    out: SegmentRoller,
    segment: Segment,
    headers: Headers,
    recoded: Any,
    target: Target,
    is_upgrade: bool,
) -> Iterator[Rewritten]:
    """Upgrade or recompress the batches of a segment that ``headers`` has, and yield the place of
    each and of what was written for it. Those in the mask ``recoded`` get the codec of ``target``.
    Raise CodecError for a batch that cannot be converted or read; OSError if writing fails.
    """
    name = os.fspath(segment.path)
    make = upgrade if is_upgrade else recompress
    as_is = Target(magic=target.magic)
    layouts, changes = {}, {}
    for magic in np.unique(headers.magic).tolist():
        newer = target.of_messages if is_upgrade else magic
        layouts[magic] = LOG_ENTRY.cases[magic], LOG_ENTRY.cases[newer]
        changes[magic] = {field_of(magic, "codec"): target.codec}
    starts, stops = headers.position.tolist(), (headers.position + headers.size).tolist()
    places = [Written(segment.path, *at) for at in zip(starts, stops, strict=True)]
    columns = (getattr(headers, n).tolist() for n in ("magic", "first", "last"))
    for at, data, magic, first, last, recode in zip(
        places, read_ranges(places), *columns, recoded.tolist(), strict=True
    ):
        to, changed = (target, changes[magic]) if recode else (as_is, {})
        made = make(bytes(data), magic, to, file=name, position=at.start)
        written = out.write(made, first, last)
        yield Rewritten(at, written, *layouts[magic], changed, first)


def _choose_conversions(headers: Headers, counts: Any, target: Target) -> Any:
    """Return an array with a code for each batch: copied, recompressed, upgraded to the target's
    version, or, for legacy messages, converted to record batches.
    """
    found = np.where(_find_recompressed(headers, counts, target), _RECODE, _COPY)
    if target.magic is not None:
        found[headers.magic != target.magic] = _UPGRADE
    found[~have_field(headers.magic, "record_count")] = _OLD
    return found


def _find_recompressed(headers: Headers, counts: Any, target: Target) -> Any:
    """Return a NumPy mask of the batches to compress again: the codec differs from the target's, or
    the target has a level. False for control batches and batches without records, which Kafka does
    not compress, and for all if the target has no codec.
    """
    if target.codec is None:
        return np.zeros(len(headers), bool)
    other = headers.codec != int(target.codec)
    if target.level is not None and target.codec is not Compression.NONE:
        other[:] = True
    return other & ~headers.is_control & (counts > 0)


def _refuse_versions(segment: Segment, headers: Headers, target: Target) -> None:
    """Raise ValueRefused for the first batch whose version is unknown, or else newer than the
    target's version. Do nothing for a newer one if the target has no version.
    """

    def refuse(rows: Any, reason: str) -> None:
        if len(rows):
            row = int(rows[0])
            where = Where(position=int(headers.position[row]), file=os.fspath(segment.path))
            told = f"the batch at offset {headers.first[row]} is of version {headers.magic[row]}, {reason}"
            raise ValueRefused(told, where)

    unknown = np.flatnonzero(~are_known(headers.magic))
    refuse(unknown, "which there is not: salvage the log first")
    if target.magic is not None:
        newer = np.flatnonzero(headers.magic > target.magic)
        refuse(newer, f"newer than {target.magic}: batches are not converted to an older version")


def _verify(
    segment: Segment,
    headers: Headers,
    kinds: Any,
    written: Sequence[Written],
    places: _Places,
    *,
    keeps_codec: bool,
) -> None:
    """Raise WrittenError if the batches written for a segment differ from their source. Copied
    batches are compared byte by byte, recompressed and upgraded ones in all fields. If not all are
    copied (by their codes in ``kinds``), the columns of all records are compared too (the codec
    only if ``keeps_codec``), and with an upgrade those of all headers except those of legacy messages; columns that the version changes
    are not. :func:`_verify_messages` compares the fields that legacy messages do not have. Raise other CodecErrors if they cannot be read.

    The views tell whether the fields of another version mean the same, and their readers share no code with writers.
    """
    for start, stop, copies in places.copied:
        compare_bytes(segment.path, headers, copies, start=start, stop=stop)
    if (kinds == _COPY).all():
        return
    compare_fields(places.rewritten)
    stop = int(headers.position[-1] + headers.size[-1])
    is_old = kinds == _OLD
    magics = set(headers.magic[(kinds == _UPGRADE) | is_old].tolist())
    columns = [*columns_of(RECORDS, magics), *(["codec"] if keeps_codec else [])]
    expected = iter(read_records(segment.path, columns, 0, stop))
    if is_old.any():
        expected = map(_with_timestamp_type, expected)
    compare_rows(expected, segment.path, records_written(written, columns), columns)
    if not (kinds == _UPGRADE).any():
        return
    columns = [*columns_of(BATCHES, magics - set(headers.magic[is_old].tolist())), "base_offset"]

    def batches(rows: pa.RecordBatch) -> pa.RecordBatch:
        at = np.searchsorted(headers.first, numbers(rows, "last_offset"), side="right") - 1
        return rows.filter(pa.array(~is_old[at]))

    compare_rows(
        map(batches, read_headers(segment.path, columns, 0, stop)),
        segment.path,
        ((path, batches(rows)) for path, rows in headers_written(written, columns)),
        columns,
        "batch",
    )


def _verify_messages(
    segment: Segment, headers: Headers, is_old: Any, written: Sequence[Written], magic: int
) -> None:
    """Raise WrittenError if a batch of version ``magic``, written for legacy messages of a segment
    (``is_old`` of ``headers``), has a value in a field that is not theirs. Raise other CodecErrors
    if a batch cannot be read.
    """
    if not is_old.any():
        return
    made = []
    for path, rows in headers_written(written, ["size"]):
        columns = (numbers(rows, n) for n in ("base_offset", "last_offset", "position", "size"))
        first, last, positions, sizes = columns
        row = np.searchsorted(headers.first, last, side="right") - 1
        for i in np.flatnonzero(is_old[row]).tolist():
            start = int(headers.position[row[i]])
            source = Written(segment.path, start, start + int(headers.size[row[i]]))
            place = Written(path, int(positions[i]), int(positions[i] + sizes[i]))
            made.append(Made(source, place, int(first[i])))
    older = np.unique(headers.magic[is_old]).tolist()
    compare_defaults(made, LOG_ENTRY.cases[magic], _list_carried(older, magic))


def _list_carried(older: Sequence[int], magic: int) -> set[str]:
    """Return the paths of the fields of version ``magic`` that hold values of entries of the versions
    ``older``. These are compared as columns of the view ``records``. A field whose default is
    computed is left out.
    """
    layout = LOG_ENTRY.cases[magic]
    layouts = [LOG_ENTRY.cases[number] for number in older]
    sources = [case for case in RECORDS.cases if case.layout in layouts]
    (case,) = (case for case in RECORDS.cases if case.layout is layout)
    carried = {path for path in case.writes if path.startswith(f"{case.each}.")}
    for name, column in case.columns.items():
        if any(constant_of(one.columns[name]) is ... for one in sources):
            carried.update(column.paths)
    return {
        path
        for path in carried
        if path not in layout.by_name or not has_computed_default(layout.by_name[path])
    }


def _with_timestamp_type(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in which the timestamp type is CreateTime where it is missing (-1), as in record
    batches.
    """
    at = rows.schema.get_field_index("timestamp_type")
    field = rows.schema.field(at)
    kinds = np.maximum(numbers(rows, "timestamp_type"), TimestampType.CREATE_TIME)
    return rows.set_column(at, field, pa.array(kinds, field.type))


def _split_runs(kinds: Any, headers: Headers) -> Iterator[tuple[int, int]]:
    """Yield the start and end index (excluded) of each run of adjacent batches that have the same
    code in ``kinds``, in order. Bytes between batches end a run.
    """
    if not len(kinds):
        return
    ends = headers.position + headers.size
    cuts = np.flatnonzero((kinds[1:] != kinds[:-1]) | (headers.position[1:] != ends[:-1])) + 1
    yield from zip([0, *cuts.tolist()], [*cuts.tolist(), len(kinds)], strict=True)
