"""Arrow to the bytes of a log, in any version of the format.

    for piece in kafka_log.encode(table, codec="zstd"):
        file.write(piece)

The columns are those of the view ``records`` (:data:`kafka_codecs.columns.records.RECORDS`), what :mod:`kafka_log.scan`
gives: reading what was written gives every column of the table again, and a row that the format has no place for is an
error.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_codecs import Compression
from kafka_log.segment.control import read_control
from kafka_log.segment.kernels import load_writer
from kafka_log.segment.paths import refuse_no_path
from kafka_log.segment.versions import NEWEST, has_field, refuse_unwritten
from kafka_log.write.output_files import open_output

if TYPE_CHECKING:
    import pyarrow as pa

CODECS = tuple(codec.label for codec in Compression)
"""The codecs, by their numbers. Record batches take them all, the older messages no zstd."""

_SPLIT = 1 << 30
"""Bytes of a record batch of Arrow from which on it is worked on in parts."""


def encode(
    data: Any,
    *,
    magic: int | None = None,
    codec: str | None = None,
    level: int | None = None,
    batch_bytes: int = 16384,
    **constants: object,
) -> Iterator[memoryview]:
    """Yield the bytes of a log segment with the rows of ``data``, in pieces of whole batches.
    Yield nothing without rows. The order of offsets is not checked. Raise at once TypeError if
    ``data`` is not Arrow, and ValueError for an unknown codec or version, or a constant
    ``position``. While iterating raise ValueError for another constant, a column or
    ``batch_bytes``; RowRefused for a row; another CodecError for a codec or level that cannot be
    used; ImportError if numpy is missing or the codecs lack target arrow.

    A batch also ends before a row that would not be read from it unchanged: columns that belong to the batch differ, sequence
    numbers do not go on, a delta is too large, or the batch would break a rule of the format. Memory holds one piece and one
    record batch of Arrow, in parts of at most 1 GiB.

    Args:
        data: A ``pyarrow`` Table, RecordBatch or RecordBatchReader, or another object that gives an Arrow stream. Its columns
            are those of the view ``records``, of which only ``offset`` is required. A missing column means: no timestamp (-1),
            set by the producer, null key and value, no headers, no producer, leader epoch -1, not transactional, no control
            record, no delete horizon, and a base offset that is the offset of the first record. Types may be wider, or views, if
            no value is lost; extension types are refused. The column ``position`` is ignored.
        magic: Version of the format. Default: the column ``magic``, or without one the newest version.
        codec: ``none``, ``gzip``, ``snappy``, ``lz4`` or ``zstd``. Default: the column ``codec``, or without one ``none``.
        level: Compression level. Default: that of the codec.
        batch_bytes: Maximum size of a batch in bytes, uncompressed. A larger row has a batch of its own.
        constants: Columns with one value for all rows, such as ``leader_epoch=7``. They replace columns of ``data``.

    Yields:
        The bytes of one or more batches, in the order of the rows.

    Raises:
        TypeError: At once, if ``data`` is not Arrow.
        ValueError: At once for an unknown codec or version, or a constant ``position``; while iterating for another invalid
            constant, an invalid column, or an invalid ``batch_bytes``.
        RowRefused: While iterating, with ``row`` and ``column``, for a row that no batch can hold, or a control record whose
            key or value is none of a control record.
        CodecError: While iterating, for a codec or level that cannot be used.
        ImportError: While iterating, if numpy is missing or the codecs were generated without target arrow.
    """
    return _encode(_batches(data), magic, codec, level, batch_bytes, constants)


def _encode(
    batches: Iterable[pa.RecordBatch],
    magic: int | None,
    codec: str | None,
    level: int | None,
    batch_bytes: int,
    constants: dict[str, object],
) -> Iterator[memoryview]:
    """Check the arguments of :func:`encode`, and return its iterator of pieces. Raise ValueError
    for an unknown codec, for a version that is unknown or only read, and for magic, codec or
    position among ``constants``. The iterator raises what :func:`encode` says of iterating.
    """
    given = dict(constants)
    for name in ("magic", "codec", "position"):
        if name in given:
            raise ValueError(
                f"{name} cannot be given as a constant: encode decides it from its own arguments and the rows"
            )
    if codec is not None:
        if codec not in CODECS:
            raise ValueError(f"{codec!r} is not a codec; known: {', '.join(CODECS)}")
        given["codec"] = int(Compression[codec.upper()])
    if magic is not None:
        refuse_unwritten(magic)
    return _encode_versions(batches, magic, given, level, batch_bytes)


def _encode_versions(
    batches: Iterable[pa.RecordBatch],
    magic: int | None,
    constants: dict[str, object],
    level: int | None,
    batch_bytes: int,
) -> Iterator[memoryview]:
    """Yield the bytes of the rows, with a new encoder for each run of rows of one format version.
    The version is ``magic``, else (None) that of the column ``magic``, else the newest; ``level``
    None is the codec's default. Raise ValueError for an invalid column or argument; RowRefused for
    a row that no batch can hold, or an invalid control record; another CodecError for a codec or
    level that cannot be used; NotGeneratedError (an ImportError) if the codecs were generated
    without target arrow.
    """
    from codecgen.runtime.arrow.encoder import Encoder

    writer = load_writer("records")
    row = 0
    for version, group in groupby(_by_magic(batches, magic), key=lambda pair: pair[0]):
        encoder = Encoder(
            writer, version, constants=constants, batch_bytes=batch_bytes, level=level
        )
        rows: Iterator[pa.RecordBatch] = (batch for _, batch in group)
        is_control = constants.get("is_control")  # replaces the column
        if has_field(version, "is_control") and is_control != 0:
            rows = _check_control_records(rows, row, is_control == 1)
        yield from encoder.encode(rows, row)
        row = encoder.rows


def _by_magic(
    batches: Iterable[pa.RecordBatch], magic: int | None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield pairs of a format version and consecutive rows that have it, without the column
    ``magic``. The argument ``magic`` replaces the column, which is not checked then; without both
    it is the newest version. Raise RowRefused for a row whose version is null, no integer, unknown
    or only read. Raise ValueError for a column ``magic`` of a type that has no integers, or a
    broken record batch with that column. Rows before the error have been yielded.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from codecgen.runtime.arrow.casts import RowRefused, cast_plain, refuse_broken

    row = 0
    for whole in batches:
        at = whole.schema.get_field_index("magic")
        if at < 0:
            yield NEWEST if magic is None else magic, whole
            continue
        column = whole.column(at)
        rest = whole.drop_columns(["magic"])
        if magic is not None:
            yield magic, rest
            continue
        refuse_broken(whole, {"magic": pa.int64()})
        runs = pc.run_end_encode(cast_plain(column, pa.int64(), "magic", row))
        start = 0
        for end, version in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
            try:
                refuse_unwritten(version)
            except ValueError as error:
                raise RowRefused(str(error), row + start, "magic") from None
            yield version, rest.slice(start, end - start)
            start = end
        row += whole.num_rows


def _batches(data: Any) -> Iterator[pa.RecordBatch]:
    """Return an iterator of the record batches of a table, batch, reader or Arrow stream, divided
    into parts of at most 1 GiB or one row. Raise TypeError if ``data`` is none of these.
    """
    import pyarrow as pa

    if isinstance(data, pa.RecordBatch):
        found: Iterable[pa.RecordBatch] = [data]
    elif isinstance(data, pa.Table):
        found = data.to_batches()
    elif isinstance(data, pa.RecordBatchReader):
        found = data
    elif hasattr(data, "__arrow_c_stream__"):
        found = pa.RecordBatchReader.from_stream(data)
    else:
        raise TypeError(f"a table or a stream of Arrow is needed, not {type(data).__name__}")
    return (part for batch in found for part in split_batch(batch))


def _refuse_second_row(
    batches: Iterable[pa.RecordBatch], offset: object
) -> Iterator[pa.RecordBatch]:
    """Yield ``batches`` unchanged. Raise RowRefused for the second row, which would have the same
    ``offset`` as the first.
    """
    from codecgen.runtime.arrow.casts import RowRefused

    rows = 0
    for batch in batches:
        rows += batch.num_rows
        if rows > 1:
            reason = f"each row has the offset {offset}, and offsets ascend in a segment: give them in a column"
            raise RowRefused(reason, 1, "offset")
        yield batch


def _check_offsets(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield ``batches`` unchanged. Raise RowRefused for the first row whose offset does not fit
    int64, or is not above that of the row before, also in an earlier batch. Batches without the
    column ``offset``, or with nulls in it, are not checked for order. Raise ValueError if the
    column is damaged or cannot be cast to integers.
    """
    import numpy as np
    import pyarrow as pa

    from codecgen.runtime.arrow.casts import RowRefused, cast_plain, refuse_broken

    row = 0
    before = np.empty(0, np.int64)
    for batch in batches:
        if batch.schema.get_field_index("offset") >= 0:
            refuse_broken(batch, {"offset": pa.int64()})
            column = cast_plain(batch.column("offset"), pa.int64(), "offset", row)
            if column.null_count == 0:  # the encoder refuses rows without an offset
                offsets = np.concatenate((before, column.to_numpy()))
                for at in np.flatnonzero(offsets[1:] <= offsets[:-1])[:1].tolist():
                    reason = (
                        f"{offsets[at + 1]} is not above {offsets[at]}, the offset of the row before: offsets ascend in a "
                        "segment, so sort the rows by offset"
                    )
                    raise RowRefused(reason, row + at + 1 - len(before), "offset")
                before = offsets[-1:]
        row += batch.num_rows
        yield batch


def _check_control_records(
    batches: Iterable[pa.RecordBatch], row: int, are_all: bool
) -> Iterator[pa.RecordBatch]:
    """Yield ``batches`` unchanged. Raise RowRefused for the first control record whose key or value
    does not parse as one: null too, but any value passes with a key of an unknown type. Rows count
    from ``row`` in the error; ``are_all`` makes every row a control record. Raise ValueError if one
    of the columns has a wrong type or is damaged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from codecgen.runtime.arrow.casts import RowRefused, cast_plain, refuse_broken

    wanted = {"is_control": pa.bool_(), "key": pa.binary(), "value": pa.binary()}
    for batch in batches:
        types = {n: kind for n, kind in wanted.items() if batch.schema.get_field_index(n) >= 0}
        refuse_broken(batch, types)
        found: Iterable[int] = range(batch.num_rows) if are_all else ()
        if not are_all and "is_control" in types:
            marks = cast_plain(batch.column("is_control"), pa.bool_(), "is_control", row)
            found = pc.indices_nonzero(marks).to_pylist()
        for at in found:
            key, value = (
                cast_plain(batch.column(name).slice(at, 1), pa.binary(), name, row + at)[0].as_py()
                if name in types
                else None
                for name in ("key", "value")
            )
            control = read_control(key, value, strict=False, file="", position=0)
            if control.error is not None:
                column = "key" if control.type_id is None else "value"
                reason = f"the row is marked as a control record, but its {column} is not one of a control record: {control.error.reason}"
                raise RowRefused(reason, row + at, column)
        row += batch.num_rows
        yield batch


def split_batch(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a record batch in order, halved until each part has at most 1 GiB or one
    row. Yield the batch itself if it is small enough.
    """
    # the bytes of the rows alone take a look at offsets, which may be broken
    if batch.num_rows <= 1 or batch.get_total_buffer_size() <= _SPLIT or batch.nbytes <= _SPLIT:
        yield batch
        return
    half = batch.num_rows // 2
    yield from split_batch(batch.slice(0, half))
    yield from split_batch(batch.slice(half))


def write_segment(
    path: str | os.PathLike[str],
    data: Any,
    *,
    overwrite: bool = False,
    magic: int | None = None,
    codec: str | None = None,
    level: int | None = None,
    batch_bytes: int = 16384,
    **constants: object,
) -> int:
    """Write a log segment with the rows of ``data`` to a new file, and return its size in bytes.
    The size is 0, of an empty file, without rows. The file gets its name only when it is complete.
    Raise FileExistsError if the file exists and ``overwrite`` is False, RowRefused also for an
    offset that does not ascend, OSError if the file cannot be written, and what :func:`encode`
    raises.

    Brokers name a segment after its first offset, in 20 digits (``00000000000000000000.log``). The caller chooses the name.

    Args:
        path: Path of the file.
        data: Rows as for :func:`encode`, in ascending order of offsets.
        overwrite: Replace a file that exists. Default: False.
        magic: As for :func:`encode`.
        codec: As for :func:`encode`.
        level: As for :func:`encode`.
        batch_bytes: As for :func:`encode`.
        constants: As for :func:`encode`. ``offset`` is possible for a single row.

    Returns:
        The size of the file in bytes.

    Raises:
        FileExistsError: If the file exists and ``overwrite`` is False.
        ValueError: If ``path`` is no path; also as for :func:`encode`.
        RowRefused: If an offset is not above that of the row before, also one constant offset of several rows, or no batch can
            hold a row.
        OSError: If the file cannot be written.
    """
    refuse_no_path(path)
    target = Path(path)
    batches = _batches(data)
    if "offset" in constants:
        batches = _refuse_second_row(batches, constants["offset"])
    else:
        batches = _check_offsets(batches)
    pieces = _encode(batches, magic, codec, level, batch_bytes, constants)
    _refuse_existing(target, overwrite)
    staged = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    size = 0
    try:
        with open_output(staged, "x") as file:
            for piece in pieces:
                size += file.write(piece)
            file.sync()
        _refuse_existing(target, overwrite)
        staged.replace(target)
    finally:
        staged.unlink(missing_ok=True)
    return size


def _refuse_existing(target: Path, overwrite: bool) -> None:
    """Raise FileExistsError if `target` exists, unless `overwrite`."""
    if not overwrite and target.exists():
        raise FileExistsError(f"{target} exists: pass overwrite=True to replace it")
