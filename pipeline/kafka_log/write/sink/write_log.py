"""Arrow tables written to a log directory in one call."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal

import pyarrow as pa

from kafka_log.logs.partitions import DirectoryError
from kafka_log.segment.paths import refuse_no_path
from kafka_log.segment.versions import NEWEST
from kafka_log.write.sink.commit import abort, commit, new_job
from kafka_log.write.sink.log_format import LogFormat
from kafka_log.write.sink.rows import check_columns
from kafka_log.write.sink.staging import write_task

Mode = Literal["append", "overwrite"]


def write_log(
    path: str | os.PathLike[str],
    data: Any,
    *,
    topic: str | None = None,
    partitions: int | None = None,
    mode: Mode = "append",
    codec: str = "none",
    level: int | None = None,
    batch_bytes: int = 16384,
    batch_records: int | None = None,
    segment_bytes: int = 1 << 30,
    magic: int = NEWEST,
    timestamp_type: str | None = None,
    topic_id: str | None = None,
) -> int:
    """Write Arrow rows into the logs of a directory as a broker does, and return their number.
    Without rows the topic of ``topic`` is still created, or overwritten. After an error the logs
    are unchanged, unless it comes in the final moves of files: the rows are committed then, and
    this or the next job completes the moves. Raise SinkError for rows or columns; FormatError,
    ValueError or TypeError for arguments; DirectoryError if the directory cannot be appended to;
    CodecError if the result does not read as the rows; OSError if a file cannot be read or written.

    Readers see the rows only when all are written. Memory holds 64 MiB of rows, and one batch of ``data``.

    Args:
        path: A log directory. It is created if it is missing.
        data: A ``pyarrow`` Table, RecordBatch or RecordBatchReader, another object that gives an Arrow stream, or an iterable of
            RecordBatches with one schema. Columns are those of Spark's Kafka sink: ``value`` (required), ``key`` (binary or
            strings), ``headers`` (lists of structs of ``key`` and ``value``), ``topic``, ``partition``, ``offset``, ``timestamp`` and
            ``timestamp_type``. Extension types are refused. Other columns of :func:`read_table` are ignored. Rows without a partition go by the murmur2 hash of the key, as Kafka's
            producers send them, or, without a key, to one partition after the other, ``batch_bytes`` each. Rows without a timestamp
            get the current time. Given offsets must ascend and may leave gaps; others continue the log.
        topic: Topic of all rows. It replaces the column.
        partitions: Number of partitions for rows without one. All of them are created. Default: as many as the topic has in the directory, or 1.
        mode: ``append``, or ``overwrite`` to replace all partitions of the written topics. Other topics stay.
        codec: As for :func:`encode`. Default: ``none``.
        level: As for :func:`encode`.
        batch_bytes: As for :func:`encode`.
        batch_records: Maximum number of records in a batch. Default: no limit.
        segment_bytes: Maximum size of a segment in bytes. A larger batch has a segment of its own.
        magic: As for :func:`encode`. Default: the newest version.
        timestamp_type: ``CreateTime`` or ``LogAppendTime``. Default: the column ``timestamp_type``, or without one ``CreateTime``.
        topic_id: Id of the topic in a cluster, as Kafka prints it. Default: a new topic gets a new id.

    Returns:
        The number of written rows.

    Raises:
        SinkError: With ``row`` and ``column``, for rows or columns that cannot be written.
        FormatError: For a setting that cannot be used, or another ``topic_id`` than that of the topic.
        ValueError: For an unknown ``mode``.
        TypeError: If ``data`` is neither Arrow nor iterable.
        DirectoryError: If the directory is not one of logs, a log does not end with a whole batch, damage hides the topic id of a
            partition, partitions of a topic have different ids, a broker runs there, or another job commits there for a minute.
        CodecError: If the result does not read as the rows.
        OSError: If a file cannot be read or written.
    """
    refuse_no_path(path)
    if mode not in ("append", "overwrite"):
        raise ValueError(f"mode is {mode!r}: it must be append or overwrite")
    to = LogFormat(
        topic,
        partitions,
        codec,
        level,
        batch_bytes,
        batch_records,
        segment_bytes,
        magic,
        timestamp_type,
        topic_id,
    )
    schema, batches = _stream(data)
    job = new_job(path, to, overwrite=mode == "overwrite")
    if schema is not None:
        check_columns(schema, job)
    try:
        staged = write_task(job, 0, batches)
        commit(job, [staged])
    except BaseException:
        with suppress(OSError, DirectoryError):  # what went wrong first says more
            abort(job)
        raise
    return sum(one.records for one in staged)


def _stream(data: Any) -> tuple[pa.Schema | None, Iterable[pa.RecordBatch]]:
    """Return the schema of ``data`` and its record batches. The schema is None for an iterable of
    batches. Raise TypeError for anything but Arrow data or an iterable.
    """
    if isinstance(data, pa.RecordBatch):
        return data.schema, [data]
    if isinstance(data, pa.Table):
        return data.schema, data.to_batches()
    if isinstance(data, pa.RecordBatchReader):
        return data.schema, data
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return reader.schema, reader
    if isinstance(data, Iterable):
        return None, data
    raise TypeError(f"a table or a stream of Arrow is needed, not {type(data).__name__}")
