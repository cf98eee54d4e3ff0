"""Answer the questions of the columnar connector's JVM, on the socket of a Python worker of Spark's pool.

A question is JSON after its length, then the bytes of a task after theirs. An answer is chunks with their lengths (32 bits, big-endian), then 0,
or -1 and the text of an error. Before the end of a task come -2 and its metrics as JSON.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kafka_log.read.plan import Split
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.urls import is_url
from kafka_log.write.sink.commit import Micro
from kafka_log.write.sink.log_format import WriteJob
from pyspark_kafka_log.losses import Losses
from pyspark_kafka_log.moved_files import locate_splits
from pyspark_kafka_log.options import Session, default_columns, parse
from pyspark_kafka_log.reader import PROBLEM, KafkaLogReader, Task
from pyspark_kafka_log.reports import ReportReader
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.source import DefaultSource, make_reader
from pyspark_kafka_log.splits.filters import parse_filters
from pyspark_kafka_log.splits.query_logs import QueryLogs
from pyspark_kafka_log.stream.options import parse_stream
from pyspark_kafka_log.stream.polling import LogStream
from pyspark_kafka_log.task_reader import OnRead
from pyspark_kafka_log.totals import EXTREMES, TIMESTAMP, Totals, can_total, totals_of
from pyspark_kafka_log.worker_memory import explain_memory_errors
from pyspark_kafka_log.write import abort_rows, commit_rows, make_job, write_rows

_INT = struct.Struct(">i")
_SIZE = struct.Struct(">qq")
MAX_CHUNK_BYTES = 1 << 30

PACKAGES = ("codecgen", "kafka_codecs", "kafka_log", "pyspark_kafka_log")
"""Packages whose errors have a complete message: problem, place and remedy."""


class AnswerStream:
    """Connection to the JVM as a file: writes the bytes of one answer, and reads the bytes that
    follow its request.
    """

    closed = False

    def __init__(self, out: BinaryIO, given: BinaryIO) -> None:
        self.out = out
        self.given = given

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes that follow the question."""
        return self.given.read(size)

    def write(self, data: Any) -> int:
        """Send bytes to the JVM, without flushing, in chunks of at most MAX_CHUNK_BYTES, each with
        its length as 4 bytes before it; nothing for no bytes. Return the number of bytes of
        ``data``. End the process at any OSError: the JVM has closed the connection.
        """
        view = memoryview(data).cast("B")
        for at in range(0, len(view), MAX_CHUNK_BYTES):
            piece = view[at : at + MAX_CHUNK_BYTES]
            _send(self.out, _INT.pack(len(piece)), piece)
        return len(view)

    def send_metrics(self, losses: Losses) -> None:
        """Warn of the losses of a task, and send its metrics."""
        losses.warn()
        text = json.dumps(losses.metrics).encode()
        _send(self.out, _INT.pack(-2) + _INT.pack(len(text)) + text)

    def flush(self) -> None:
        """Send buffered bytes. End the process at any OSError."""
        _flush(self.out)

    def close(self) -> None:
        """Do nothing: the socket stays open for the next answer."""


def main(infile: BinaryIO, outfile: BinaryIO) -> None:
    """Read requests of the JVM from ``infile``, and write answers to ``outfile``. Send an exception
    of a request as an error message, and continue. Exit the process with code 1 when the JVM closes
    the socket; never return, since Spark's daemon would call it again.
    """
    answers: Mapping[str, Answer] = {**ANSWERS, "stream": StreamAnswers()}
    while True:
        size = infile.read(4)
        if len(size) < 4:
            sys.exit(1)
        request = json.loads(infile.read(_INT.unpack(size)[0]))
        task = infile.read(_INT.unpack(infile.read(4))[0])
        pieces = AnswerStream(outfile, infile)
        try:
            with explain_memory_errors():
                answers[request["ask"]](request, task, pieces)
            _send(outfile, _INT.pack(0))
            _flush(outfile)
        except Exception as error:
            text = error_text(error).encode("utf-8", "replace")
            _send(outfile, _INT.pack(-1) + _INT.pack(len(text)) + text)
            _flush(outfile)


def _send(out: BinaryIO, *parts: bytes | memoryview) -> None:
    """Write parts to the JVM without flushing. End the process at once, with exit code 1, at any
    OSError: the JVM has closed the connection, as a query with enough rows does.
    """
    try:
        for part in parts:
            out.write(part)
    except OSError:
        os._exit(1)  # a query that has enough hangs up: nobody is left to tell


def _flush(out: BinaryIO) -> None:
    """Flush the output to the JVM. End the process at once, with exit code 1, at any OSError: the
    JVM has closed the connection.
    """
    try:
        out.flush()
    except OSError:
        os._exit(1)


def error_text(error: Exception) -> str:
    """Return the message of an error for users. Append the traceback unless the class of the error
    belongs to this project's packages, or it is an OSError that names a file.
    """
    ours = type(error).__module__.partition(".")[0] in PACKAGES
    if ours or (isinstance(error, OSError) and error.filename is not None):
        return str(error)
    return f"{error}\n\n{''.join(traceback.format_exception(error))}"


def _source(request: Mapping[str, Any]) -> DefaultSource:
    """Return the data source with the options of a question."""
    return DefaultSource(_query_options(request))


def _query_options(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of a query. They override the JVM's settings of stores."""
    return {**request.get("stores", {}), **request["options"]}


def _session(request: Mapping[str, Any]) -> Session:
    """Return the settings of the JVM's session."""
    return Session.from_settings(request["session"])


def _answer_hello(request: Mapping[str, Any], _: bytes, out: AnswerStream) -> None:
    """Handshake. An empty answer proves that this Python can import its dependencies."""


def _schema(request: Mapping[str, Any], _: bytes, out: AnswerStream) -> None:
    """Send a Spark schema as JSON: the source's default schema, or the request's own one once its
    columns are checked. Raise SchemaError if the given schema has no column, or one that is
    unknown, of another type, NOT NULL or named twice; OptionError for an invalid option.
    """
    source = _source(request)
    if request["schema"] is None:
        schema = source.schema()
    else:
        schema = StructType.fromJson(json.loads(request["schema"]))
        source.projected_columns(schema)
    out.write(schema.json().encode())


def _plan(request: Mapping[str, Any], found: bytes, out: AnswerStream) -> None:
    """Send three things: the logs that the query has found so far, the size of the scan, and the
    splits of each task. ``found`` has the logs that earlier scans of the query sent. A query of
    aggregates gets one empty task if there are no splits. Raise OptionError for an invalid option;
    OptionError, DirectoryError or OSError if the logs cannot be found or listed; OptionError if
    they lack offsets or times that the options name; DataLossError if records are lost that no task
    misses and ``failOnDataLoss`` is set; CodecError for damage in transactions, or
    before the record of a time, unless the mode or ``ignoreCorruptFiles`` accepts it.
    """
    reader = _reader(request)
    seen = QueryLogs.from_bytes(found)
    if isinstance(reader, KafkaLogReader):
        tasks = reader.partitions(seen)
    else:
        tasks = reader.partitions()  # answers are of the moment when tasks run
    found = seen.to_bytes()
    out.write(_INT.pack(len(found)) + found)
    splits = [task.splits for task in tasks if isinstance(task, Task)]
    if Aggregates.from_request(request) is not None:
        splits = splits or [()]  # the values of no rows
    out.write(_SIZE.pack(*_size(request, reader, splits)))
    _send_tasks(splits, out)


def _size(
    request: Mapping[str, Any],
    reader: KafkaLogReader | ReportReader,
    tasks: Sequence[tuple[Any, ...]],
) -> tuple[int, int]:
    """Return the bytes of segments that tasks read, and the maximum number of rows; -1 if unknown.
    Views and reports have (-1, -1); aggregates -1 bytes, and one row for each split or for a task
    without splits; records have bytes, and -1 rows.
    """
    if not isinstance(reader, KafkaLogReader) or reader.options.view is not None:
        return -1, -1
    if Aggregates.from_request(request) is not None:
        return -1, sum(max(1, len(splits)) for splits in tasks)
    return sum(part.size for splits in tasks for part in splits), -1


def _aggregates(request: Mapping[str, Any], _: bytes, out: AnswerStream) -> None:
    """Send the schema of the requested aggregates as JSON, if totals of batches suffice to compute
    them. Send nothing if no aggregates are asked for, or the rows themselves must be read. Raise
    OptionError for an invalid option.
    """
    asked = Aggregates.from_request(request)
    if asked is None:
        return
    reader = _reader(request)
    if isinstance(reader, KafkaLogReader) and asked.can_compute(reader.scan):
        out.write(from_arrow_schema(asked.schema).json().encode())


def _send_tasks(tasks: Iterable[tuple[Any, ...]], out: AnswerStream) -> None:
    """Send the number of tasks, then the pickled splits of each after their length."""
    data = [pickle.dumps(splits) for splits in tasks]
    out.write(_INT.pack(len(data)) + b"".join(_INT.pack(len(one)) + one for one in data))


def _read(request: Mapping[str, Any], task: bytes, out: AnswerStream) -> None:
    """Send the rows of a task (its pickled splits), or its partial aggregates, as an Arrow stream;
    then its metrics. If no columns are requested, send only the number of rows of each batch. Stop
    after the request's limit of rows, if any. Raise OptionError for an invalid option; CodecError
    for damage and unreadable files unless the options accept them.
    """
    reader = _reader(request)
    losses = Losses()
    splits = pickle.loads(task)
    if "stream" in request:
        stream = parse_stream(request["options"], _session(request))
        splits = locate_splits(splits, stream.reading, fails=stream.fails)
    asked = Aggregates.from_request(request)
    if asked is not None and isinstance(reader, KafkaLogReader):
        rows = asked.compute(reader.locate(splits), reader.scan, losses.add_read)
        _send_rows([rows], asked.schema, out)
        out.send_metrics(losses)
        return
    batches: Iterable[pa.RecordBatch]
    fields = request.get("metadata")
    if fields is not None and isinstance(reader, KafkaLogReader):
        batches = with_metadata(reader, splits, losses, fields)
    else:
        batches = reader.read_rows(Task(splits), losses)
    if request["limit"] is not None:
        batches = first_rows(batches, request["limit"])
    names = request["columns"]
    if not names:
        for batch in batches:
            out.write(_INT.pack(batch.num_rows))
        out.send_metrics(losses)
        return
    schema = pa.schema(
        [
            reader.schema.field(name) if name != METADATA else metadata_field(fields or ())
            for name in names
        ]
    )
    _send_rows((batch.select(names) for batch in batches), schema, out)
    out.send_metrics(losses)


def _send_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: AnswerStream) -> None:
    """Send record batches as one Arrow IPC stream with ``schema``, flushed after each batch. If
    ``batches`` raises an error, end the stream as usual, and raise the error again: the message
    after the stream tells the JVM.
    """
    with pa.ipc.new_stream(pa.PythonFile(out, "w"), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            out.flush()


def _job(request: Mapping[str, Any], _: bytes, out: AnswerStream) -> None:
    """Send the JSON of a write job for the schema and options of a question."""
    schema = StructType.fromJson(json.loads(request["schema"]))
    job = make_job(request["options"], schema, request["overwrite"], request["query"])
    out.write(job.to_json().encode())


def _write(request: Mapping[str, Any], _: bytes, out: AnswerStream) -> None:
    """Read the Arrow stream of rows that follows the request, write the rows as the request's
    WriteJob says, and send the result of the task. If writing fails, read and drop the remaining
    rows, then raise the error again.
    """
    job = WriteJob.from_json(request["job"])
    rows = pa.ipc.open_stream(pa.PythonFile(out, "r"))
    try:
        told = write_rows(job, request["task"], request["batch"], rows)
    except Exception:
        for _rest in rows:  # the next question comes after them
            pass
        raise
    out.write(told.encode())


def _commit(request: Mapping[str, Any], _: bytes, out: AnswerStream) -> None:
    """Commit the results of all tasks, of a micro-batch if the question has one."""
    batch = request["batch"]
    micro = None if batch is None else Micro(request["query"], batch)
    commit_rows(WriteJob.from_json(request["job"]), request["messages"], micro)


def _abort(request: Mapping[str, Any], _: bytes, out: AnswerStream) -> None:
    """Remove what the tasks of a job have staged."""
    abort_rows(WriteJob.from_json(request["job"]), request.get("batch"))


def _reader(request: Mapping[str, Any]) -> KafkaLogReader | ReportReader:
    """Return a reader of the requested columns, or of the first default column if none is
    requested. Add columns of the table that decide which rows exist: the timestamp, and with kept
    damage the problem columns. Raise OptionError for an invalid option.

    The selected columns must not change the rows: a record without a timestamp fails a query or is dropped, and damage adds a row only if a column describes it.
    """
    given = _query_options(request)
    asks_rows = request.get("aggregates") is None
    session = _session(request)
    is_stream = "stream" in request
    options = parse_stream(given, session).reading if is_stream else parse(given, session=session)
    deciding = {"timestamp"}
    if options.selection.damage == "keep":
        deciding |= {PROBLEM, options.corrupt_record}
    names = [
        *(n for n in request["columns"] if asks_rows and n != METADATA),
        *(name for name in request["table"] if name in deciding),
    ]
    columns = tuple(dict.fromkeys(names)) or default_columns(options)[:1]
    query = parse_filters(
        (column, operator, _decode_value(value)) for column, operator, value in request["filters"]
    )
    if (limit := request["limit"]) is not None:
        options = replace(options, batch_rows=max(1, min(limit, options.batch_rows)))
    return make_reader(options, columns, query, request["parallelism"])


class StreamAnswers:
    """Answers for one stream. It keeps the :class:`LogStream` between questions."""

    def __init__(self) -> None:
        self._stream: LogStream | None = None

    def __call__(self, request: Mapping[str, Any], _: bytes, out: AnswerStream) -> None:
        """Send the tasks of a micro-batch, or the JSON of the other questions."""
        if self._stream is None:
            options = parse_stream(_query_options(request), _session(request))
            self._stream = LogStream(options, request["parallelism"])
            if request["target"] is not None:
                self._stream.end_at(json.loads(request["target"]))
        stream = self._stream
        start, end = (
            None if text is None else json.loads(text)
            for text in (request["start"], request["end"])
        )
        if request["do"] == "tasks":
            _send_tasks(stream.tasks(start, end), out)
            return
        answers: dict[str, Callable[[], Any]] = {
            "initial": stream.initial,
            "latest": lambda: stream.latest(start, limited=request["limited"]),
            "report": stream.report,
            "prepare": stream.prepare,
            "limits": lambda: asdict(stream.limits),
            "behind": lambda: stream.lag_metrics(end),
        }
        out.write(json.dumps(answers[request["do"]]()).encode())


def first_rows(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Yield batches until they have ``limit`` rows together, the last one shortened. Read no
    further batch. Yield nothing if ``limit`` is 0.
    """
    for batch in batches if limit > 0 else ():
        yield batch.slice(0, limit)
        limit -= batch.num_rows
        if limit <= 0:
            return


def _decode_value(value: Any) -> Any:
    """Return a filter value from the JVM's JSON. Times come as ``{"us": microseconds since 1970}``."""
    if isinstance(value, list):
        return [_decode_value(one) for one in value]
    return value["us"] if isinstance(value, dict) else value


GROUPS: Mapping[str, Any] = {"topic": pa.string(), "partition": pa.int32()}
_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Aggregates:
    """Aggregates that a query computes from a log: ``functions`` are pairs of ``count``, ``min`` or
    ``max`` and a column (or ``*``), ``groups`` the columns of GROUP BY.
    """

    functions: tuple[tuple[str, str], ...]
    groups: tuple[str, ...] = ()

    @classmethod
    def from_request(cls, request: Mapping[str, Any]) -> Aggregates | None:
        """Return the aggregates that a request of the JVM asks for; None if it has no
        ``aggregates``, which means that it asks for rows.
        """
        if request.get("aggregates") is None:
            return None
        functions = tuple((name, column) for name, column in request["aggregates"])
        return cls(functions, tuple(request["groups"]))

    def can_compute(self, scan: Scan) -> bool:
        """Return whether totals of batches give the same values as all rows. True only if all
        functions are count of ``*``, or count, min or max of offset or timestamp; groups are at
        most topic and partition; the scan raises damage, has the policy ``kafka``, reads no view,
        and does not ignore corrupt files.
        """
        known = all(
            column in ("*", *EXTREMES) if name == "count" else column in EXTREMES
            for name, column in self.functions
        )
        return known and set(self.groups) <= GROUPS.keys() and can_total(scan)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result: the columns of GROUP BY with their own types, then one
        column for each function, named like ``max(offset)``. The minimum and maximum of the
        timestamp are timestamps, all other functions are int64.
        """
        fields = [pa.field(name, GROUPS[name]) for name in self.groups]
        for name, column in self.functions:
            is_time = name != "count" and column == TIMESTAMP
            fields.append(pa.field(f"{name}({column})", _TIME if is_time else pa.int64()))
        return pa.schema(fields)

    def compute(
        self, parts: Iterable[Split], scan: Scan, on_read: OnRead | None = None
    ) -> pa.RecordBatch:
        """Return the partial aggregates of a task, one row for each group that has rows. Without
        ``groups``, return exactly one row, also if there are no rows. Raise CodecError for damage
        and unreadable files; damage inside of a batch with a valid checksum may stay unseen. The
        caller checks :meth:`can_compute`.

        ``on_read`` is called with the bytes and skipped batches of each file.
        """
        columns = {column for name, column in self.functions if name != "count"}
        by_log = totals_of(parts, scan, columns, on_read)
        found: dict[tuple[Any, ...], Totals] = {} if self.groups else {(): Totals()}
        for (topic, partition), of_log in by_log.items():
            if of_log.rows or not self.groups:
                values = {"topic": utf8(topic), "partition": partition}
                key = tuple(values[name] for name in self.groups)
                found[key] = found.get(key, Totals()) + of_log
        rows = [
            (*key, *(_aggregate(one, *function) for function in self.functions))
            for key, one in found.items()
        ]
        return _aggregate_rows(rows, self.schema)


def _aggregate(of: Totals, name: str, column: str) -> int | None:
    """Return one aggregate of the totals ``of``: the number of rows if ``name`` is ``count``, the
    extreme of ``column`` (offset, or timestamp in microseconds since 1970) if it is ``min`` or
    ``max``. Return None for an extreme of no rows, or of a column for which totals were not
    requested.
    """
    if name == "count":
        return of.rows
    extremes = of.extremes(column)
    return None if extremes is None else extremes[name == "max"]


def _aggregate_rows(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows, tuples in the order of the schema's fields, as a record batch. Timestamps are
    given as integers in the column's unit.
    """
    arrays = []
    for i, field in enumerate(schema):
        values = [row[i] for row in rows]
        arrays.append(
            pa.array(values, pa.int64()).cast(field.type)
            if field.type == _TIME
            else pa.array(values, field.type)
        )
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


METADATA = "_metadata"

_METADATA_TYPES = {
    "file_path": pa.string(),
    "file_name": pa.string(),
    "file_size": pa.int64(),
    "file_block_start": pa.int64(),
    "file_block_length": pa.int64(),
    "file_modification_time": pa.timestamp("us", tz="UTC"),
}


def metadata_field(names: Sequence[str]) -> pa.Field:
    """Return the Arrow field ``_metadata`` with the given inner fields."""
    return pa.field(METADATA, pa.struct([(name, _METADATA_TYPES[name]) for name in names]))


def with_metadata(
    reader: KafkaLogReader, splits: Sequence[Split], losses: Losses, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of splits with a struct column ``_metadata`` appended that has the fields
    ``names``, as in Spark's file sources. It describes the file as the plan lists it, even if the
    file has moved. A batch never spans two splits. Raise CodecError for damage and unreadable files
    unless the options accept them.
    """
    column = metadata_field(names)
    for split in splits:
        values = None
        for batch in reader.read_rows(Task((split,)), losses):
            values = values or _metadata_of(split, names)  # only of a file that has rows
            arrays = [
                pa.repeat(pa.scalar(values[name], _METADATA_TYPES[name]), batch.num_rows)
                for name in names
            ]
            made = pa.StructArray.from_arrays(arrays, fields=list(column.type))
            yield batch.append_column(column, made)


def _metadata_of(split: Split, names: Sequence[str]) -> dict[str, Any]:
    """Return all values of ``_metadata`` for the rows of a split: URI, name and size of its listed
    file, start and length of the split in bytes. The modification time, in microseconds since 1970,
    is None unless it is in ``names`` and the system can tell it.
    """
    path = split.segment.path
    written: int | None = None
    if "file_modification_time" in names:
        with suppress(OSError):  # it is gone by now
            written = path.stat().st_mtime_ns // 1000
    return {
        "file_path": _uri(path),
        "file_name": _uri(path).rpartition("/")[2],
        "file_size": split.segment.size,
        "file_block_start": split.start,
        "file_block_length": split.size,
        "file_modification_time": written,
    }


def _uri(path: Path) -> str:
    """Return a path as Spark's file sources write it: a percent-encoded URI."""
    return os.fspath(path) if is_url(path) else Path(os.path.abspath(path)).as_uri()  # noqa: PTH100 (no links are followed)


Answer = Callable[[Mapping[str, Any], bytes, AnswerStream], None]

ANSWERS: Mapping[str, Answer] = {
    "hello": _answer_hello,
    "schema": _schema,
    "plan": _plan,
    "aggregates": _aggregates,
    "read": _read,
    "job": _job,
    "write": _write,
    "commit": _commit,
    "abort": _abort,
}
