"""Keys and values of a DataFrame as typed columns, decoded with the schemas of a schema registry."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, StructField, StructType

from pyspark_kafka_log.columns import HEADERS_TYPE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_log.logs.partitions import Partition
    from kafka_log.read.schemas.decoding import Decoding, TopicDecoder
    from kafka_log.read.schemas.registry import SchemaId, SchemaRegistry

    Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def decode_values(
    frame: DataFrame,
    topic: str,
    path: Paths | None = None,
    *,
    schemas: str | os.PathLike[str] | None = None,
    decode: Decoding = "auto",
    schema_version: int | None = None,
) -> DataFrame:
    """Return a DataFrame with the keys and values of one topic as typed columns: each decoded
    column is followed by its schema id, its undecoded bytes and its problem. A value that cannot be
    decoded becomes null, with its bytes and the reason beside it; a row of another topic fails the
    query. Raise ValueError if there is nothing to decode, a column has another type than bytes or
    would appear twice, ``path`` lacks the topic, the schemas are invalid, or an argument is;
    DirectoryError if ``path`` or ``schemas`` does not exist or has no logs or schemas; OSError if
    one cannot be read; ModuleNotFoundError without the package for a type of schemas.

    ``value`` becomes a column of the type of its schemas. The columns ``value_schema_id``, ``value_undecoded`` (bytes that could not be decoded) and
    ``value_problem`` (the reason) follow it. The same holds for ``key`` if its subject has schemas; otherwise it stays bytes. The schemas are read
    once, by this call: a stream does not see later ones. Without the column ``topic`` no row is taken as one of another topic.

    Args:
        frame: Rows with the column ``key`` or ``value`` of bytes, in a batch query or stream, from any source. The column ``headers`` counts if it is
            there: serializers can put the id of a schema into it.
        topic: The topic.
        path: Log directory of the topic. It has the schemas in its topic ``_schemas``, unless ``schemas`` is given.
        schemas: Another source of the schemas: a directory or file with schemas, or the URL of a registry.
        decode: ``avro``, ``json-schema`` or ``protobuf`` for schemas of one type, ``auto`` for all; or ``PACKAGE:LAYOUT``, which
            decodes values by the layout of a package that codecgen generated and that all workers have.
        schema_version: Version of the subject to which Avro values are resolved. Default: columns of all versions.

    Raises:
        ValueError: If there is nothing to decode, a column has another type than bytes or would appear twice, ``path`` lacks the topic, the schemas
            are invalid (SchemaError), or an argument is.
        DirectoryError: If ``path`` or ``schemas`` does not exist or has no logs or schemas, or two replicas of a partition have different topic ids.
        OSError: If ``path``, a registry or a file of schemas cannot be read.
        ModuleNotFoundError: If the package for a type of schemas is not installed.

    Example:
        >>> orders = spark.read.format("kafka-log").option("subscribe", "orders").load("/var/lib/kafka/data")
        >>> decode_values(orders, "orders", "/var/lib/kafka/data").select("value.customer")
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    from kafka_log.read.scanning import check_decoding
    from kafka_log.read.schemas import PARTS
    from kafka_log.read.schemas.decoding import (
        find_usage,
        parse_decoding,
        warn_of_unknown_schemas,
    )
    from kafka_log.read.schemas.layout_names import is_layout_name
    from kafka_log.read.schemas.registry import SchemaRegistry
    from kafka_log.read.schemas.sources import read_registry

    decoding = parse_decoding("decode", decode)
    check_decoding(decoding, None, schemas, schema_version)
    by_layout = is_layout_name(decoding)
    if path is None and schemas is None and not by_layout:
        raise ValueError(
            "decode_values needs the schemas: give path, a directory with the topic _schemas, or schemas"
        )
    parts = [part for part in PARTS if part in frame.columns]
    if not parts:
        raise ValueError(
            "the DataFrame has no column key or value: select the one to decode under that name"
        )
    for part in parts:
        if frame.schema[part].dataType != BinaryType():
            found = frame.schema[part].dataType.simpleString()
            raise ValueError(
                f"the column {part} has the type {found}, but decode_values decodes binary: pass the bytes as they are in"
                " the log"
            )
    partitions = [] if path is None else _find_partitions(path)
    registry = SchemaRegistry() if by_layout else read_registry(partitions, schemas)
    own = _select_topic(partitions, topic)
    if path is not None and not own:
        known = ", ".join(sorted({one.topic for one in partitions})[:20])
        raise ValueError(f"{path} has no topic {topic!r}; it has: {known or 'none'}")
    names = tuple(frame.columns)
    usage = {} if by_layout else find_usage(own, topic, registry, names)
    seen = {part: found.ids for part, found in usage.items()}
    task = _Task(topic, registry, names, seen, decoding, schema_version)
    decoder = task.decoder()
    if not decoder.decoders:
        raise ValueError(
            f"no schema of {' or '.join(parts)} of topic {topic!r} is known: pass a path with the topic _schemas, or schemas, that has it"
        )
    warn_of_unknown_schemas(topic, usage, decoder.decoders)
    fields: list[StructField] = []
    for name in names:
        own_part = decoder.decoders.get(name)
        if own_part is None:
            fields.append(frame.schema[name])
        else:
            of_part = spark_types(pa.schema(own_part.fields))
            fields += from_arrow_schema(of_part, prefer_timestamp_ntz=True).fields
    added = [field.name for field in fields]
    twice = sorted({name for name in added if added.count(name) > 1})
    if twice:
        raise ValueError(f"the DataFrame has a column {twice[0]} already: rename or drop it")

    def decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task, decoded."""
        return _decode_batches(task, batches)

    return frame.mapInArrow(decode_batches, StructType(fields))


@dataclass(frozen=True)
class _Task:
    """What a task needs to decode rows."""

    topic: str
    registry: SchemaRegistry
    names: tuple[str, ...]
    seen: Mapping[str, Sequence[SchemaId]]
    decoding: Decoding
    schema_version: int | None

    def decoder(self) -> TopicDecoder:
        """Return a new decoder of the rows; under ``auto`` without a version it may decode nothing.
        Otherwise raise ValueError if there is nothing to decode. Raise SchemaError, a ValueError,
        if a subject has no such version in Avro, or its schemas have too many fields together.
        Raise ModuleNotFoundError without the package for a type of schemas.
        """
        from kafka_log.read.schemas.decoding import TopicDecoder

        return TopicDecoder(
            self.topic, self.registry, self.names, self.seen, self.decoding, self.schema_version
        )


def _find_partitions(path: Paths) -> list[Partition]:
    """Return the partitions that are live, in tiered storage, or whose directory is itself a path;
    ``[]`` if all are in other states. A partition whose directory cannot be read is returned with
    its ``error``. Raise DirectoryError if a path does not exist or holds no log; OSError if a path
    itself cannot be listed.
    """
    from kafka_log.logs.discovery import survey

    places = [path] if isinstance(path, str | os.PathLike) else list(path)
    return survey(places, ("remote",), unreadable_raises=False).partitions


def _select_topic(partitions: Sequence[Partition], topic: str) -> list[Partition]:
    """Return the partitions of a topic with their segments in tiered storage, of several live
    replicas only the one with the highest leader epoch, then end offset; ``[]`` if there are none.
    Raise DirectoryError if replicas have different topic ids.
    """
    from kafka_log.logs.replicas import select_replicas
    from kafka_log.logs.tiers import merge_tiered_segments

    own = [partition for partition in partitions if partition.topic == topic]
    return list(merge_tiered_segments(select_replicas(own, "newest")))


def _decode_batches(task: _Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task in order, decoded, with Spark's types. A batch may become several,
    and an empty one becomes none. Raise ValueError for a row of another topic, if there is a column
    ``topic``, and what :meth:`_Task.decoder` raises.
    """
    decoder = task.decoder()
    for batch in batches:
        _refuse_other_topics(batch, task.topic)
        if "headers" not in batch.schema.names:
            batch = batch.append_column("headers", pa.nulls(batch.num_rows, HEADERS_TYPE))
        for piece, decoded in decoder.decode_batch(batch):
            yield to_spark(piece, decoded, tuple(decoder.decoders))


def _refuse_other_topics(batch: pa.RecordBatch, topic: str) -> None:
    """Raise ValueError if a row has another topic. Rows with null as their topic pass, and all rows
    if there is no column ``topic``.
    """
    if "topic" not in batch.schema.names:
        return
    topics = batch.column("topic").cast(pa.string())
    others = topics.filter(pc.not_equal(topics, topic).fill_null(False))
    if len(others):
        raise ValueError(
            f"kafka-log: decode_values makes the columns of topic {topic!r}, and a row is of"
            f" {others[0].as_py()!r}: select the topic with the option subscribe, or a filter"
        )


def spark_types(schema: pa.Schema) -> pa.Schema:
    """Return an Arrow schema with the types that Spark has."""
    return pa.schema([pa.field(f.name, _spark_type(f.type), True) for f in schema])


def _spark_type(kind: Any) -> Any:
    """Return the Arrow type of a column in Spark, also inside lists, structs and values of maps.
    Times of day become int32 or int64, timestamps get microseconds, ``uint64`` becomes a decimal,
    decimals of 256 bits and columns of nulls text. Return other types unchanged.
    """
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _spark_type(f.type), True) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _spark_type(kind.value_type), True))
    if pa.types.is_map(kind):
        item = pa.field("value", _spark_type(kind.item_type), True)
        return pa.map_(kind.key_type, item)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if kind == pa.uint64():
        return pa.decimal128(20, 0)
    if pa.types.is_null(kind) or pa.types.is_decimal256(kind):
        return pa.string()
    return kind


def to_spark(rows: pa.RecordBatch, decoded: pa.RecordBatch, parts: Sequence[str]) -> pa.RecordBatch:
    """Return decoded rows with the types of :func:`spark_types`. A value that they cannot hold
    becomes null, with its bytes and the reason in the columns for them.

    Args:
        rows: The rows before, with the bytes.
        decoded: The same rows, decoded.
        parts: The decoded columns: ``key``, ``value``.
    """
    columns = dict(zip(decoded.schema.names, decoded.columns, strict=True))
    for part in parts:
        kind = _spark_type(columns[part].type)
        try:
            columns[part] = _cast(columns[part], kind)
        except pa.ArrowInvalid:
            problems = _find_problems(columns[part], kind)
            is_bad = pa.array([problem is not None for problem in problems])
            kept = pa.array([i if problem is None else None for i, problem in enumerate(problems)])
            columns[part] = _cast(columns[part].take(kept.cast(pa.int64())), kind)
            texts, data = columns[f"{part}_problem"], columns[f"{part}_undecoded"]
            columns[f"{part}_problem"] = pc.if_else(is_bad, pa.array(problems, pa.string()), texts)
            own = rows.column(part).cast(pa.binary())
            columns[f"{part}_undecoded"] = pc.if_else(is_bad, own, data)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _cast(array: Any, kind: Any) -> Any:
    """Return an array cast to a type of Spark, or the array itself if it has that type. Null stays
    null; fractions of microseconds are cut off, toward 0 also before 1970. Raise ArrowInvalid for a
    value that the type cannot hold.
    """
    if array.type == kind:
        return array
    return pc.cast(array, options=pc.CastOptions(target_type=kind, allow_time_truncate=True))


def _find_problems(array: Any, kind: Any) -> list[str | None]:
    """Return a list with the reason why a type of Spark cannot hold a value, cut to 500 characters,
    for each value of ``array``; None for a value that it can hold.
    """
    problems: list[str | None] = []
    for row in range(len(array)):
        try:
            _cast(array.take(pa.array([row])), kind)  # a slice would cast all elements of lists
            problems.append(None)
        except pa.ArrowInvalid as error:
            problems.append(f"Spark cannot hold the value: {error}"[:500])
    return problems
