"""Keys and values as typed columns: decoded with the schema that each names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.logs.partitions import Partition
from kafka_log.read.schemas.avro import AvroSchema
from kafka_log.read.schemas.framing import NOT_FRAMED, SchemaId, split_frames
from kafka_log.read.schemas.registry import AVRO, SchemaError, SchemaRegistry, SchemaVersion
from kafka_log.read.schemas.shapes import Shape, merge
from kafka_log.read.schemas.usage import DEFAULT_RECORDS, Usage, count_ids

Decoding = Literal["auto", "avro"]
"""Which keys and values are decoded: those with a schema of a type that is decoded, or of this type."""

_TYPES = {"auto": (AVRO,), "avro": (AVRO,)}
PARTS = ("key", "value")
ADDED = ("schema_id", "undecoded", "problem")
"""Columns that follow the decoded column of a part; their names begin with ``key_`` or ``value_``."""

_ERRORS = (ArithmeticError, LookupError, TypeError, ValueError, RecursionError)


def parse_decoding(name: str, value: Any) -> Decoding:
    """Return ``value`` if it is one of the values of :data:`Decoding`. Raise ValueError, which names
    the argument, for others.
    """
    if value not in get_args(Decoding):
        known = ", ".join(get_args(Decoding))
        raise ValueError(f"{name} is {value!r}: it must be one of {known}")
    found: Decoding = value
    return found


@dataclass(frozen=True)
class _Schema:
    """Schema of values, ready to decode. ``convert`` converts a decoded value for Arrow."""

    shape: Shape
    decode: Callable[[bytes], Any]


class PartDecoder:
    """Decoder of the keys or values of one topic.

    Args:
        registry: The schemas.
        topic: Topic, for the subject ``TOPIC-key`` or ``TOPIC-value``.
        part: ``key`` or ``value``.
        seen: Ids that records of the topic have. Schemas of the subject count even if no record has them.
        decoding: Which types of schemas are decoded.
        schema_version: Version of the subject to which values are resolved. None: columns of all versions.

    Raises:
        SchemaError: If the subject has no such version, or its schema is invalid.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        topic: str,
        part: str,
        seen: Sequence[SchemaId],
        decoding: Decoding = "auto",
        schema_version: int | None = None,
    ) -> None:
        self.part = part
        self._registry = registry
        self._subject = f"{topic}-{part}"
        self._types = _TYPES[decoding]
        self._known: dict[SchemaId, _Schema | str] = {}
        self._reader: AvroSchema | None = None
        if schema_version is not None:
            version = registry.find_version(self._subject, schema_version)
            if version.type != AVRO:
                raise SchemaError(f"version {schema_version} of {self._subject!r} is {version.type}: only Avro values can be resolved to a version")  # fmt: skip
            self._reader = AvroSchema(version, registry)
            self.shape: Shape | None = self._reader.shape
        else:
            self.shape = self._merge_shapes(seen)
        self._convert = None if self.shape is None else self.shape.converter()

    def _merge_shapes(self, seen: Sequence[SchemaId]) -> Shape | None:
        """Return the shape of all schemas of the subject and of the ids; None if there is none that
        is valid and of a type that is decoded.
        """
        shapes = []
        for version in self._registry.subject_versions(self._subject):
            if version.type in self._types:
                try:
                    shapes.append(AvroSchema(version, self._registry).shape)
                except SchemaError:
                    continue  # a row with its id has the reason
        for schema_id in seen:
            found = self._load(schema_id)
            if isinstance(found, _Schema):
                shapes.append(found.shape)
        return merge(shapes) if shapes else None

    def _load(self, schema_id: SchemaId) -> _Schema | str:
        """Return the schema of an id, or why its values cannot be decoded."""
        if schema_id not in self._known:
            try:
                self._known[schema_id] = self._parse(self._find(schema_id))
            except SchemaError as error:
                self._known[schema_id] = str(error)
        return self._known[schema_id]

    def _find(self, schema_id: SchemaId) -> SchemaVersion:
        """Return the version with an id. Raise SchemaError if there is none, or several that differ."""
        if schema_id.number is None:
            return self._registry.find_by_guid(str(schema_id.guid))
        return self._registry.find_by_id(schema_id.number, self._subject)

    def _parse(self, version: SchemaVersion) -> _Schema:
        """Return the decoder of a version. Raise SchemaError if its type is not decoded, or it is
        invalid.
        """
        if version.type not in self._types:
            raise SchemaError(
                f"schema {version.id} has the type {version.type}, which is not decoded"
            )
        schema = AvroSchema(version, self._registry)
        return _Schema(schema.shape, schema.decoder(self._reader))

    def decode_value(self, data: bytes, headers: Any = None) -> tuple[Any, str | None]:
        """Return the decoded value of one key or value and None, or None and why it cannot be
        decoded.
        """
        frames = split_frames(pa.array([data], pa.binary()), headers, self.part)
        schema_id = frames.ids[int(frames.codes[0])]
        schema = NOT_FRAMED if schema_id is None else self._load(schema_id)
        if isinstance(schema, str):
            return None, schema
        try:
            return schema.decode(frames.data[0].as_py()), None
        except ValueError as error:
            return None, f"it is no value of schema {schema_id}: {error}"

    @property
    def fields(self) -> list[Any]:
        """Arrow fields of the decoded column and of :data:`ADDED`."""
        shape = Shape(pa.null()) if self.shape is None else self.shape
        types = (pa.int64(), pa.binary(), pa.string())
        added = [
            pa.field(f"{self.part}_{name}", kind) for name, kind in zip(ADDED, types, strict=True)
        ]
        return [pa.field(self.part, shape.arrow), *added]

    def decode_columns(self, values: Any, headers: Any) -> list[Any]:
        """Return the arrays of :attr:`fields` for keys or values (Arrow binary) and headers of the
        same rows. A value is null if the record has none, or if it cannot be decoded; then its bytes
        are in ``undecoded`` and the reason is in ``problem``.
        """
        values = values.cast(pa.binary())
        frames = split_frames(values, headers, self.part)
        found: list[Any] = [None] * len(values)
        problems: list[str | None] = [None] * len(values)
        data = frames.data
        for code, schema_id in enumerate(frames.ids):
            rows = np.flatnonzero(frames.codes == code)
            schema = NOT_FRAMED if schema_id is None else self._load(schema_id)
            if isinstance(schema, _Schema) and self._reader is None and self._lacks(schema):
                schema = (
                    f"schema {schema_id} has fields without a column: it is not of subject {self._subject!r}, and was not among"
                    " the first records"
                )
            if isinstance(schema, str):
                for row in rows.tolist():
                    problems[row] = schema
                continue
            decode, convert = schema.decode, self._convert
            for row, item in zip(rows.tolist(), data.take(pa.array(rows)).to_pylist(), strict=True):
                try:
                    value = decode(item)
                    found[row] = value if convert is None else convert(value)
                except _ERRORS as error:
                    problems[row] = f"it is no value of schema {schema_id}: {error}"
        column = self._build(found, problems)
        ids = np.array(
            [-1 if i is None or i.number is None else i.number for i in [*frames.ids, None]]
        )
        numbers = ids[frames.codes]
        texts = pa.array(problems, pa.string())
        undecoded = pc.if_else(texts.is_valid(), values, pa.scalar(None, pa.binary()))
        return [column, pa.array(numbers, mask=numbers < 0), undecoded, texts]

    def _lacks(self, schema: _Schema) -> bool:
        """Return whether the columns cannot hold values of a schema."""
        return self.shape is None or merge([self.shape, schema.shape]) != self.shape

    def _build(self, found: list[Any], problems: list[str | None]) -> Any:
        """Return the Arrow array of decoded values. Values that its type cannot hold become null and
        get a problem.
        """
        kind = self.fields[0].type
        try:
            return pa.array(found, kind)
        except (pa.ArrowException, *_ERRORS):
            for row, value in enumerate(found):
                try:
                    pa.array([value], kind)
                except (pa.ArrowException, *_ERRORS) as error:
                    found[row] = None
                    problems[row] = f"the column cannot hold the value: {error}"
            return pa.array(found, kind)


class TopicDecoder:
    """Decoder of the rows of one topic: typed columns in place of its keys and values.

    Args:
        partitions: The partitions to read, all of one topic.
        registry: The schemas.
        names: Columns of the rows. The columns :data:`ADDED` follow each decoded part.
        decoding: Which types of schemas are decoded. Under ``auto``, a part without a schema stays bytes.
        schema_version: As of :class:`PartDecoder`, for the parts whose subject has this version.

    Raises:
        ValueError: If the partitions are of several topics, or there is nothing to decode though a type or version is asked for.
    """

    def __init__(
        self,
        partitions: Sequence[Partition],
        registry: SchemaRegistry,
        names: Sequence[str],
        decoding: Decoding,
        schema_version: int | None = None,
    ) -> None:
        topics = sorted({partition.topic for partition in partitions})
        if len(topics) > 1:
            raise ValueError(
                f"decode makes the columns of one topic, and {len(topics)} are read"
                f" ({', '.join(topics[:5])}): select one"
            )
        (topic,) = topics
        self._names = tuple(names)
        self.decoders: dict[str, PartDecoder] = {}
        parts = [part for part in PARTS if part in names]
        for part in parts:
            versions = registry.subject_versions(f"{topic}-{part}")
            of_part = schema_version
            if schema_version is not None and not versions:
                of_part = None
            seen = [] if versions else _find_ids(partitions, part)
            decoder = PartDecoder(registry, topic, part, seen, decoding, of_part)
            if decoder.shape is not None:
                self.decoders[part] = decoder
        if parts and not self.decoders and (decoding != "auto" or schema_version is not None):
            raise ValueError(
                f"no schema of {' or '.join(parts)} of topic {topic!r} can be decoded: the {len(registry.versions)} known"
                f" schemas have none for subject {topic + '-' + parts[-1]!r} or for the ids of its records"
            )

    @property
    def needed(self) -> list[str]:
        """Columns of the rows to decode."""
        return list(dict.fromkeys((*self._names, *(("headers",) if self.decoders else ()))))

    def decode_rows(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return a stream of rows with the columns :attr:`needed`, decoded."""
        fields: list[Any] = []
        for name in self._names:
            own = self.decoders.get(name)
            fields += [rows.schema.field(name)] if own is None else own.fields
        schema = pa.schema(fields)

        def batches() -> Iterator[pa.RecordBatch]:
            """Yield the rows, decoded. Close the undecoded rows at the end."""
            with rows:
                for batch in rows:
                    arrays: list[Any] = []
                    for name in self._names:
                        column, own = batch.column(name), self.decoders.get(name)
                        if own is None:
                            arrays.append(column)
                        else:
                            arrays += own.decode_columns(column, batch.column("headers"))
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())


def _find_ids(partitions: Sequence[Partition], part: str) -> list[SchemaId]:
    """Return the ids of the first keys or values of each partition, the most frequent one first.
    Damaged records and files are passed over: reading them reports them.
    """
    usage: dict[tuple[str, str], Usage] = defaultdict(Usage)
    for partition in partitions:
        count_ids(partition, DEFAULT_RECORDS, usage, lambda _: None)
    found: Counter[SchemaId] = Counter()
    for (_, name), of_part in usage.items():
        if name == part:
            found += of_part.counts
    return [schema_id for schema_id, _ in found.most_common()]
