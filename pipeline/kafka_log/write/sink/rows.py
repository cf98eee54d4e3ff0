"""Rows with the columns of Spark's Kafka sink, divided by partition."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from codecgen.runtime.arrow.casts import explain_extension_type
from codecgen.runtime.nouns import count_noun
from kafka_codecs.columns.records import RECORDS
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.versions import has_field
from kafka_log.write.sink.log_format import TIMESTAMP_TYPES, TOPIC_RULE, WriteJob, is_topic
from kafka_log.write.sink.partitioner import StickyPartitioner, partition_by_key

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
COLUMNS = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")
"""What is written."""

_TYPE_COLUMNS = ("timestamp_type", "timestampType")
_CONTROL = ("is_control", "isControl")
_PASSED = tuple(column.name for column in RECORDS.columns if column.name not in COLUMNS)
MAX_PARTITION = (1 << 31) - 1
_PARTITION_BITS = 32
_RECORD = 8
"""Bytes of a record beside key and value, about."""


class SinkError(ValueError):
    """Raised for rows that cannot be written.

    Attributes:
        reason: What is wrong.
        row: Number of the row, counted from 0 in the rows of the task; None if the error is about a column.
        column: The column; None if the error is about none.
    """

    def __init__(self, reason: str, row: int | None = None, column: str | None = None) -> None:
        super().__init__(reason, row, column)
        self.reason = reason
        self.row = row
        self.column = column

    def __str__(self) -> str:
        at = [] if self.row is None else [f"row {self.row}"]
        at += [] if self.column is None else [f"column {self.column}"]
        return f"{', '.join(at)}: {self.reason}" if at else self.reason


class PartitionRows(NamedTuple):
    """Rows of one partition, with the columns that are encoded, and the numbers of the rows."""

    topic: str
    partition: int
    rows: pa.RecordBatch
    numbers: Any


def check_columns(schema: pa.Schema, job: WriteJob) -> None:
    """Raise SinkError if a column is unknown, repeated or of a wrong type, if ``value`` is missing,
    or if neither a column nor the job's settings name the topic. Other columns of the view
    ``records``, and names in the job's ``passed``, are allowed: they are not written.
    """
    names = schema.names
    known = (*COLUMNS, *_TYPE_COLUMNS)
    for name in names:
        if names.count(name) > 1:
            raise SinkError("two columns have this name: rename or drop one", column=name)
        if name not in known and name not in _PASSED and name not in job.passed:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            reason = f"no record has such a column; {hint}known: {', '.join(COLUMNS)}"
            raise SinkError(reason, column=name)
    if "value" not in names:
        raise SinkError("there is no column value: select what is to be written as value")
    if "topic" not in names and job.format.topic is None:
        raise SinkError("there is no topic: give the option topic, or a column topic")
    for name in names:
        wanted = _WANTED.get(name)
        kind = schema.field(name).type
        if wanted is not None and not wanted[0](_value_type(kind)):
            reason = explain_extension_type(kind) or f"it is {kind}, it must be {wanted[1]}"
            raise SinkError(reason, column=name)


def _value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary type, and any other type itself."""
    return kind.value_type if pt.is_dictionary(kind) else kind


def _is_bytes(kind: pa.DataType) -> bool:
    """Return whether values of an Arrow type are bytes or text."""
    tests = (pt.is_binary, pt.is_large_binary, pt.is_binary_view, pt.is_fixed_size_binary)
    return _is_text(kind) or any(test(kind) for test in tests)


def _is_text(kind: pa.DataType) -> bool:
    """Return whether values of an Arrow type are text."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def _is_headers(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is a list, also a large one, of structs with exactly ``key``
    (text) and ``value`` (bytes or text), in this order.
    """
    if not (pt.is_list(kind) or pt.is_large_list(kind)) or not pt.is_struct(kind.value_type):
        return False
    inner = kind.value_type
    names = [inner.field(i).name for i in range(inner.num_fields)]
    return (
        names == ["key", "value"]
        and _is_text(inner.field(0).type)
        and _is_bytes(inner.field(1).type)
    )


_WANTED = {
    "key": (_is_bytes, "binary or a string"),
    "value": (_is_bytes, "binary or a string"),
    "headers": (_is_headers, "a list of structs of key (a string) and value (binary)"),
    "topic": (_is_text, "a string"),
    "partition": (pt.is_integer, "an integer"),
    "offset": (pt.is_integer, "an integer"),
    "timestamp": (pt.is_timestamp, "a timestamp"),
    **dict.fromkeys(_TYPE_COLUMNS, (pt.is_integer, "an integer")),
}


class SinkRows:
    """Divides the rows of one task by partition. Rows of a partition keep their order."""

    def __init__(self, job: WriteJob, task: int) -> None:
        self.job = job
        self.rows = 0
        """Rows that were taken."""
        self._sticky = StickyPartitioner(task, job.format.batch_bytes)

    def of(self, batch: pa.RecordBatch) -> Iterator[PartitionRows]:
        """Yield the rows of a batch by topic partition: topics in the order of their first rows,
        partitions ascending, rows of one in their order. Iterating raises SinkError, before any row
        is yielded, for an invalid column, for fewer partitions in the settings than the topic has,
        and for a row that cannot be written: a null or invalid topic or offset, an invalid partition
        or timestamp, or a control record.
        """
        check_columns(batch.schema, self.job)
        given = {
            name: _decode_dictionary(column)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        first, count = self.rows, batch.num_rows
        self.rows += count
        for name in _CONTROL:
            if name in given and pc.any(given[name]).as_py():
                at = first + given[name].index(True).as_py()
                raise SinkError(
                    "control records, such as transaction markers, cannot be written: filter these rows out",
                    at,
                    name,
                )
        key = _to_binary(given["key"]) if "key" in given else pa.nulls(count, pa.binary())
        value = _to_binary(given["value"])
        columns = self._encode_columns(given, first, key, value)
        topics: list[str] = []
        places = np.empty(count, np.int64)
        for topic, rows in self._topics(given, first, count):
            here = np.arange(count) if rows is None else rows
            of_topic = self._partitions(topic, given, here, first, key, value)
            places[here] = len(topics) << _PARTITION_BITS | of_topic
            topics.append(topic)
        order = np.argsort(places, kind="stable")
        ordered = places[order]
        cuts = np.flatnonzero(np.diff(ordered)) + 1
        taken = columns.take(pa.array(order)) if len(cuts) else columns
        for start, end in pairwise([0, *cuts.tolist(), count]):
            if start < end:
                number, partition = divmod(int(ordered[start]), 1 << _PARTITION_BITS)
                part = taken.slice(start, end - start)
                yield PartitionRows(topics[number], partition, part, first + order[start:end])

    def _topics(self, given: dict[str, Any], first: int, count: int) -> Iterator[tuple[str, Any]]:
        """Yield each topic with an array of the indexes of its rows, or with None if all ``count``
        rows have it. It is the topic of the settings, else those of the column in ``given``. Raise
        SinkError, which counts rows from ``first``, for a null or a name that Kafka does not allow.
        """
        if self.job.format.topic is not None:
            yield self.job.format.topic, None
            return
        column = given["topic"]
        if column.null_count:
            at = first + column.is_null().index(True).as_py()
            raise SinkError("it is null: each row needs a topic, or the option topic", at, "topic")
        codes = column.cast(pa.string()).dictionary_encode()
        indices = codes.indices.to_numpy()
        for code, name in enumerate(codes.dictionary.to_pylist()):
            rows = np.flatnonzero(indices == code)
            if not len(rows):
                continue
            if not is_topic(name):
                reason = f"{name!r} is not a topic name: {TOPIC_RULE}"
                raise SinkError(reason, first + int(rows[0]), "topic")
            yield name, None if len(rows) == count else rows

    def _partitions(
        self,
        topic: str,
        given: dict[str, Any],
        here: Any,
        first: int,
        key: pa.Array,
        value: pa.Array,
    ) -> Any:
        """Return an array with the partition number of each row of ``topic`` (those with the
        indexes ``here``). It is the given one, else by key hash, else (null key) sticky. Raise
        SinkError, which counts rows from ``first``, if a given partition is negative, or not below
        the setting ``partitions`` (2**31 without it); and if the settings ask for fewer partitions
        than the topic has, unless it is overwritten.
        """
        count = self.job.partitions_of(topic)
        there = self.job.counts.get(topic, 0)
        if count < there and not self.job.overwrite:
            reason = f"{topic} has {count_noun(there, 'partition')}: with {count} its keys would go elsewhere"
            raise SinkError(reason)
        found = np.full(len(here), -1, np.int64)
        if "partition" in given:
            column = given["partition"].cast(pa.int64()).take(pa.array(here))
            said = column.fill_null(-1).to_numpy()
            wanted = ~np.asarray(column.is_null())
            most = MAX_PARTITION if self.job.format.partitions is None else count - 1
            wrong = np.flatnonzero(wanted & ((said < 0) | (said > most)))
            if len(wrong):
                reason = f"{said[wrong[0]]} is not in 0..{most}"
                raise SinkError(reason, first + int(here[wrong[0]]), "partition")
            found[wanted] = said[wanted]
        left = np.flatnonzero(found < 0)
        if not len(left):
            return found
        keys = key.take(pa.array(here[left]))
        null = np.asarray(keys.is_null())
        found[left[~null]] = partition_by_key(keys, count)[~null]
        if null.any():
            values = value.take(pa.array(here[left[null]]))
            sizes = pc.binary_length(values).fill_null(0).to_numpy().astype(np.int64) + _RECORD
            found[left[null]] = self._sticky.of(sizes, count)
        return found

    def _encode_columns(
        self, given: dict[str, Any], first: int, key: pa.Array, value: pa.Array
    ) -> pa.RecordBatch:
        """Return all rows in the columns that are encoded: key, value, timestamp and its type, and
        headers and offset if given. A missing or null timestamp becomes the job's time, or -1 if the
        version has none. Raise SinkError for a null or negative offset or one of 2**63 - 1, or a
        timestamp below -1 ms. ``first`` is the number of the first row in the task, for errors.
        """
        columns = {"key": key, "value": value}
        if "headers" in given:
            columns["headers"] = _headers(given["headers"])
        if "offset" in given:
            columns["offset"] = _offsets(given["offset"], first)
        magic = self.job.format.magic
        count = len(value)
        none = self.job.created_ms if has_field(magic, "max_timestamp") else -1
        times = _times(given["timestamp"], first, none) if "timestamp" in given else None
        made = np.full(count, none) if times is None else times
        columns["timestamp"] = pa.array(made, pa.timestamp("ms", "UTC"))
        columns["timestamp_type"] = pa.array(self._types(given, count), pa.int8())
        return pa.RecordBatch.from_pydict(columns)

    def _types(self, given: dict[str, Any], count: int) -> Any:
        """Return an array with the timestamp type of each row, -1 if the version has none. It is
        that of the settings, else LogAppendTime (1) where a column says so, else CreateTime (0),
        also for null and any other number.
        """
        if not has_field(self.job.format.magic, "timestamp_type"):
            return np.full(count, -1, np.int8)
        wanted = self.job.format.timestamp_type
        name = next((name for name in _TYPE_COLUMNS if name in given), None)
        if wanted is not None or name is None:
            return np.full(count, TIMESTAMP_TYPES.index(wanted or TIMESTAMP_TYPES[0]), np.int8)
        said = given[name].cast(pa.int64()).fill_null(0).to_numpy()
        return (said == TIMESTAMP_TYPES.index("LogAppendTime")).astype(np.int8)


def _decode_dictionary(column: pa.Array) -> pa.Array:
    """Return a column without dictionary encoding."""
    return column.dictionary_decode() if pt.is_dictionary(column.type) else column


def _to_binary(column: pa.Array) -> pa.Array:
    """Return keys or values as binary values; text becomes UTF-8."""
    if pt.is_string_view(column.type):
        column = column.cast(pa.string())
    return column.cast(pa.binary())


def _headers(column: pa.Array) -> pa.Array:
    """Return an array of record headers cast to the type that is encoded, with an empty list in
    place of null.
    """
    column = column.cast(HEADERS)
    if not column.null_count:
        return column
    lengths = pc.list_value_length(column).fill_null(0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), column.flatten(), type=HEADERS)


def _offsets(column: pa.Array, first: int) -> pa.Array:
    """Return offsets as an array of 64-bit integers. Raise SinkError for the first null, or else
    the first offset that is negative or after which no offset is left; ``first`` is the number of
    the first row in the task.
    """
    if column.null_count:
        at = first + column.is_null().index(True).as_py()
        reason = "it is null: give each row its offset, or leave out the column for new ones"
        raise SinkError(reason, at, "offset")
    numbers = column.to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero((numbers < 0) | (numbers >= MAX_OFFSET))
    if len(wrong):
        at = int(wrong[0])
        reason = (
            f"{numbers[at]} is not an offset: offsets are 0 and above; leave out the column for new ones"
            if numbers[at] < 0
            else f"{numbers[at]} is too large: no offset is left after it; leave out the column for new ones"
        )
        raise SinkError(reason, first + at, "offset")
    return column.cast(pa.int64())


def _times(column: pa.Array, first: int, none: int) -> Any:
    """Return a NumPy array of times in milliseconds since 1970, rounded down, with ``none`` in
    place of null. Raise SinkError for a time before -1 ms, and for one whose milliseconds exceed 64
    bits; ``first`` is the number of the first row in the task.
    """
    per_second = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}[column.type.unit]
    null = np.asarray(column.is_null())
    raw = column.cast(pa.int64()).fill_null(0).to_numpy()
    if per_second == 1:
        late = np.flatnonzero(raw > np.iinfo(np.int64).max // 1000)
        if len(late):
            reason = f"{raw[late[0]]} seconds are too many: Kafka counts milliseconds in 64 bits"
            raise SinkError(reason, first + int(late[0]), "timestamp")
        raw = np.maximum(raw, -1)  # all times before 1970 are refused below
    millis = raw * 1000 if per_second == 1 else raw // (per_second // 1000)
    wrong = np.flatnonzero(~null & (millis < -1))
    if len(wrong):
        raise SinkError(
            "it is before 1970, which Kafka does not accept: give a later time or null",
            first + int(wrong[0]),
            "timestamp",
        )
    return np.where(null, none, millis)
