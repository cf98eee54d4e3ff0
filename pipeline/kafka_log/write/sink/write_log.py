"""Arrow tables written to a log directory in one call."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal

import pyarrow as pa

from kafka_log.logs.partitions import DirectoryError
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
    """Write Arrow rows with the columns of Spark's Kafka sink into logs as a broker does, and
    return their number. ``mode`` is ``append``, or ``overwrite`` to replace all partitions of the
    written topics; ``topic`` overrides the column. All other arguments are settings of LogFormat.
    Without rows the topic of ``topic`` is still created, or overwritten. Raise SinkError for rows or
    columns that cannot be written; FormatError, ValueError or TypeError for arguments;
    DirectoryError if ``path`` cannot be appended to, a broker runs there, or another job commits
    there for a minute;
    CodecError if the result does not read as the rows; OSError if a file cannot be read or written.
    After an error the logs are unchanged, unless it comes in the final moves of files: the rows are
    committed then, and this or the next job completes the moves.

    ``data`` is a ``pyarrow`` Table, RecordBatch or RecordBatchReader, anything else that gives an Arrow stream, or an iterable of
    RecordBatches with one schema. Its columns are those of Spark's Kafka sink: ``value``, which has to be there, and ``key`` (binary or
    strings), ``headers`` (lists of structs of ``key`` and ``value``), ``topic``, ``partition``, ``offset``, ``timestamp``. The argument
    ``topic`` takes the place of the column. Columns that :func:`read_table` gives beside these are passed over.

    Rows without a partition go where Kafka's producers send them: by the murmur2 hash of the key, or, without a key, to one partition
    after the other, ``batch_bytes`` each. ``partitions`` None: over as many as the topic has there, or one. Rows without a timestamp get
    the current time in milliseconds. Offsets go on after the last one of the log; offsets that are given have to rise, and may leave
    gaps.

    ``mode`` overwrite replaces the topics that are written, with all their partitions; other topics stay. ``codec``, ``level``,
    ``batch_bytes`` and ``magic`` are as for :func:`encode`; a batch ends after ``batch_records`` records too, and a segment before it has
    more than ``segment_bytes`` bytes, unless one batch has more. ``timestamp_type`` is CreateTime or LogAppendTime, ``topic_id`` the id of
    the topic in a cluster, as Kafka prints it; a new topic gets a new one.

    Nothing is seen of it before all is written. Memory holds 64 MiB of rows, and one batch of ``data``. A directory in which a broker runs
    is refused.

    Raises :class:`~kafka_log.write.sink.rows.SinkError` (a ValueError) with ``row`` and ``column`` for rows that cannot be written,
    :class:`~kafka_log.write.sink.log_format.FormatError` (a ValueError) for settings, DirectoryError for a directory that is none of logs, or
    a log that does not end with a whole batch, OSError. Then nothing is changed.
    """
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
