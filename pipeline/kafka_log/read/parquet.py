"""Writers of rows as Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Compression = Literal["zstd", "lz4", "snappy", "none"]
"""Compression of pages: ``zstd`` makes the smallest files, ``lz4`` is the fastest, and ``snappy`` is supported by all readers."""

ROW_GROUP = 1 << 20
"""Maximum rows of a row group. Each has its own dictionaries: with 65,536 rows writing takes a third more time."""

HELD_BYTES = 32 << 20
"""Approximate maximum bytes of a row group, which are buffered until it is written."""

LONGEST_ID = 64
"""Maximum length of values of one length that count as ids: a SHA-256 digest as text."""

SAMPLE_ROWS, SAMPLE_BYTES = 1 << 16, 4 << 20
"""Maximum sample of a column for the choice of its encoding."""


class _Sink:
    """Binary file for a Parquet writer. It counts the position itself, as a pipe has none. After :meth:`close` nothing more is written."""

    def __init__(self, file: BinaryIO) -> None:
        """Start at position 0 of an open file."""
        self.closed = False
        self._file = file
        self._position = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write the bytes; drop them if the sink is closed. Return their number in both cases."""
        size = memoryview(data).nbytes
        if not self.closed:
            self._file.write(data)
        self._position += size
        return size

    def tell(self) -> int:
        """Return the number of bytes so far, as the position."""
        return self._position

    def flush(self) -> None:
        """Flush the file unless the sink is closed."""
        if not self.closed:
            self._file.flush()

    def close(self) -> None:
        """Ignore all further writes. The file stays open."""
        self.closed = True


class GroupedWriter:
    """Writer of Parquet into a binary file. Rows are buffered until :meth:`flush`, which writes them as one or more row groups.

    :meth:`write` flushes when a row group is full; with :meth:`hold` the caller must flush in time. After an error nothing more is written.
    """

    def __init__(
        self, file: BinaryIO, schema: pa.Schema, compression: Compression = "zstd"
    ) -> None:
        """Prepare a writer from the start of ``file`` on. The file is not written to before the first flush."""
        self.rows_held = self.bytes_held = 0
        self._sink = _Sink(file)
        self._schema = schema
        self._compression: Compression = compression
        self._metadata: list[Any] = []
        self._held: list[pa.RecordBatch] = []
        self._writer: pq.ParquetWriter | None = None

    def hold(self, rows: pa.RecordBatch) -> int:
        """Buffer rows without writing anything. Return their size in bytes."""
        size = int(rows.nbytes)
        self._held.append(rows)
        self.rows_held += rows.num_rows
        self.bytes_held += size
        return size

    def write(self, rows: pa.RecordBatch) -> None:
        """Buffer rows, and flush if they suffice for a row group."""
        self.hold(rows)
        if self.rows_held >= ROW_GROUP or self.bytes_held >= HELD_BYTES:
            self.flush()

    def flush(self) -> int:
        """Write the buffered rows as row groups of at most 1,048,576 rows, and return the bytes
        that they took in memory; do nothing and return 0 if none are buffered. On an error of
        writing abandon the file, and raise the error.
        """
        import pyarrow as pa

        if self._held:
            table = pa.Table.from_batches(self._held, self._schema)
            with self._abandoned_on_error():
                self._open_writer(table).write_table(table, row_group_size=ROW_GROUP)
        size, self._held, self.bytes_held, self.rows_held = self.bytes_held, [], 0, 0
        return size

    def close(self) -> pq.FileMetaData:
        """Write the buffered rows and the Parquet footer, also if there was no row, and return the
        file's metadata. The binary file stays open. On an error of writing abandon the Parquet
        file, and raise the error.
        """
        self.flush()
        with self._abandoned_on_error():
            self._open_writer(None).close()
        (found,) = self._metadata
        return found

    def abandon(self) -> None:
        """Discard the buffered rows, and write nothing more to the file, not even the footer that
        pyarrow writes when it collects an open writer. The file stays incomplete.
        """
        self._held = []
        self._sink.close()
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()
            self._writer.is_open = False

    @contextmanager
    def _abandoned_on_error(self) -> Iterator[None]:
        """Return a context that abandons the file if its block raises; the error is raised
        again.
        """
        try:
            yield
        except BaseException:
            self.abandon()
            raise

    def _open_writer(self, sample: pa.Table | None) -> pq.ParquetWriter:
        """Return the Parquet writer, opened at the first call. Encodings are chosen then, by the
        rows ``sample``; None chooses dictionaries for keys and values.
        """
        if self._writer is None:
            self._writer = parquet_writer(
                self._sink, self._schema, self._metadata, self._compression, sample
            )
        return self._writer


def parquet_writer(
    sink: Any,
    schema: pa.Schema,
    metadata: list[Any] | None = None,
    compression: Compression = "zstd",
    sample: pa.Table | None = None,
) -> pq.ParquetWriter:
    """Return an open pyarrow writer of rows of ``schema`` into a path or a file, with
    ``compression`` (zstd: at level 1). When it is closed, the file's metadata is appended to the
    list ``metadata``, if given. 64-bit integers and timestamps are delta-encoded; binary columns
    have no statistics, and no dictionary if their values in ``sample`` hardly repeat (None: always
    a dictionary).

    Offsets and timestamps ascend: their differences take less space, and a quarter less time, than a dictionary that is given up. Minimum and
    maximum keys and values help no query, as rows are ordered by offset, so they are left out. Keys and values that hardly repeat in the
    ``sample``, the first rows, get no dictionary.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    leaves = [leaf for field in schema for leaf in _leaves(field.name, field.type)]
    encodings = {path: "DELTA_BINARY_PACKED" for path, kind in leaves if _rises(kind)}
    for field in schema:
        if sample is not None and pa.types.is_binary(field.type):
            encoding = _encoding(sample.column(field.name), compression)
            if encoding is not None:
                encodings[field.name] = encoding
    return pq.ParquetWriter(
        sink,
        schema,
        compression=compression,
        compression_level=1 if compression == "zstd" else None,
        use_dictionary=[path for path, _ in leaves if path not in encodings],
        column_encoding=encodings,
        metadata_collector=metadata,
        write_statistics=[path for path, kind in leaves if not pa.types.is_binary(kind)],
    )


def _encoding(column: pa.ChunkedArray, compression: Compression) -> str | None:
    """Return the Parquet encoding of a binary column by its first values: None (a dictionary) if at
    most half of them differ; DELTA_LENGTH_BYTE_ARRAY if all have one length of at most 64
    bytes, and compression is on; else PLAIN. Null values are ignored.

    A dictionary costs time for nothing if most values differ. Short values of one length are often UUIDs, in which compressors find nothing
    to match but the lengths between them; without lengths they take half the time. For longer values the copy costs more.
    """
    import pyarrow.compute as pc

    some = column.slice(0, SAMPLE_ROWS)
    if some.nbytes > SAMPLE_BYTES:
        some = some.slice(0, max(1, len(some) * SAMPLE_BYTES // some.nbytes))
    some = some.drop_null()
    if 2 * pc.count_distinct(some).as_py() <= len(some):
        return None
    lengths = pc.min_max(pc.binary_length(some)).as_py()
    if compression != "none" and lengths["min"] == lengths["max"] <= LONGEST_ID:
        return "DELTA_LENGTH_BYTE_ARRAY"
    return "PLAIN"


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield Parquet path and Arrow type of each leaf column that Parquet stores for an Arrow
    column: the leaves of structs and lists, the value type of dictionaries, else the column itself.
    """
    import pyarrow as pa

    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_dictionary(kind):
        yield path, kind.value_type
    else:
        yield path, kind


def _rises(kind: pa.DataType) -> bool:
    """Return whether a column of this type usually ascends: 64-bit integers and timestamps."""
    import pyarrow as pa

    return bool(pa.types.is_int64(kind) or pa.types.is_uint64(kind) or pa.types.is_timestamp(kind))
