"""Keys and values as typed columns: decoded with the schema that each names."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.nouns import count_noun
from kafka_log.logs.partitions import Partition
from kafka_log.read.schemas import PARTS
from kafka_log.read.schemas.avro import MIN_VALUES_FOR_KERNEL, AvroSchema, use_kernel
from kafka_log.read.schemas.framing import MAX_INFLATED, NOT_FRAMED, inflate, split_frames
from kafka_log.read.schemas.json_schema import JsonSchema
from kafka_log.read.schemas.layout_names import is_layout_name
from kafka_log.read.schemas.layouts import LayoutDecoder, load_layout
from kafka_log.read.schemas.part_columns import (
    VALUE_ERRORS,
    build_column,
    list_fields,
    shorten,
)
from kafka_log.read.schemas.protobuf import MessageDecoder, ProtobufSchema
from kafka_log.read.schemas.registry import (
    AVRO,
    JSON_SCHEMA,
    PROTOBUF,
    SchemaError,
    SchemaId,
    SchemaRegistry,
    SchemaVersion,
)
from kafka_log.read.schemas.shapes import (
    MAX_FIELDS,
    MAX_JSON,
    MAX_PARTS,
    JsonTexts,
    Shape,
    Size,
    merge,
)
from kafka_log.read.schemas.usage import DEFAULT_RECORDS, Usage, count_ids
from kafka_log.segment.similar_names import suggest_similar

if TYPE_CHECKING:
    from kafka_log.read.schemas.avro_columns import DecodedValues
    from kafka_log.read.schemas.avro_programs import Program

Decoding = Literal["auto", "avro", "json-schema", "protobuf"] | str
"""Which keys and values are decoded: those with a schema of a type that is decoded, or of this type; or values by the layout of a
generated package, ``PACKAGE:LAYOUT``.
"""

_TYPES: dict[str, tuple[str, ...]] = {
    "auto": (AVRO, JSON_SCHEMA, PROTOBUF),
    "avro": (AVRO,),
    "json-schema": (JSON_SCHEMA,),
    "protobuf": (PROTOBUF,),
}
_MAX_PARTS = 2_000_000
"""Maximum number of parts of the values that are decoded at once, unless one value has more."""

_MAX_KNOWN = 10_000
"""Maximum number of ids whose schemas, or whose problems, are kept."""

NEXT_STEP = "another schema wrote it, or it is damaged: give the right schema (--schemas), or read its bytes"
"""What a value that does not fit its schema means, and what to do."""


def parse_decoding(name: str, value: Any) -> Decoding:
    """Return ``value`` if it is one of the values of :data:`Decoding`. Raise ValueError, which names
    the argument, for others, and for a layout that cannot be loaded.
    """
    if isinstance(value, str) and is_layout_name(value):
        load_layout(value)
    elif value not in _TYPES:
        known = ", ".join(_TYPES)
        raise ValueError(
            f"{name} is {value!r}: it must be one of {known}, or PACKAGE:LAYOUT"
            + suggest_similar(str(value), _TYPES)
        )
    found: Decoding = value
    return found


@dataclass(frozen=True)
class _Schema:
    """Schema of values, ready to decode."""

    shape: Shape
    decode: Callable[[bytes], Any]
    measure: Callable[[Shape], Size]
    compile: Callable[[], Program | None] | None = None


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

    hides_bytes = False
    """Whether undecoded bytes are redacted: schemas of a registry have no secrets."""

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
        self._seen = tuple(seen)
        self._reader: AvroSchema | None = None
        self._compiled: dict[SchemaVersion, ProtobufSchema | SchemaError] = {}
        self._is_wrapped = self._has_messages(seen)
        if schema_version is not None:
            version = registry.find_version(self._subject, schema_version)
            if version.type != AVRO:
                raise SchemaError(f"version {schema_version} of {self._subject!r} is {version.type}: only Avro values can be resolved to a version, so leave schema_version (--schema-version) out")  # fmt: skip
            self._reader = AvroSchema(version, registry, is_reader=True)
            self.shape: Shape | None = self._reader.shape
        else:
            self.shape = self._merge_shapes(seen)
        self._texts = JsonTexts()
        self._convert = None if self.shape is None else self.shape.converter(self._texts)
        self._sizes: dict[SchemaId | None, Size] = {}
        self._avro_values = 0

    def _has_messages(self, seen: Sequence[SchemaId]) -> bool:
        """Return whether a Protobuf schema of the subject or of the ids has several messages.
        Invalid and unknown schemas are ignored; False if Protobuf is not decoded. Raise
        ModuleNotFoundError if the compiler is not installed.
        """
        versions = list(self._registry.subject_versions(self._subject))
        for schema_id in seen:
            with suppress(SchemaError):
                versions.append(self._registry.find(schema_id, self._subject))
        for version in versions if PROTOBUF in self._types else ():
            with suppress(SchemaError):
                if version.type == PROTOBUF and len(self._compile(version).names) > 1:
                    return True
        return False

    def _compile(self, version: SchemaVersion) -> ProtobufSchema:
        """Return a compiled schema of Protobuf; each version is compiled once. Raise SchemaError if
        it is invalid, also at later calls; ModuleNotFoundError if the compiler is not installed.
        """
        found = self._compiled.get(version)
        if found is None:
            try:
                found = ProtobufSchema(version, self._registry)
            except SchemaError as error:
                found = error
            self._compiled[version] = found
        if isinstance(found, SchemaError):
            raise found
        return found

    def _merge_shapes(self, seen: Sequence[SchemaId]) -> Shape | None:
        """Return one shape that holds values of all schemas of the subject and of the ids ``seen``;
        None if none is valid and of a type that is decoded. Raise SchemaError if they have more
        than 10,000 fields together; ModuleNotFoundError if the package for a type is not
        installed.
        """
        shapes = []
        for version in self._registry.subject_versions(self._subject):
            try:
                shapes.append(self._parse(version).shape)
            except SchemaError:
                continue  # a row with its id has the reason
        for schema_id in seen:
            found = self._load(schema_id)
            if isinstance(found, _Schema):
                shapes.append(found.shape)
        if not shapes:
            return None
        merged = merge(shapes)
        if merged is None:
            raise SchemaError(
                f"the schema versions of subject {self._subject!r} together have more than {MAX_FIELDS:,} fields: read its"
                " values as bytes (without decode, --decode none), or, if they are Avro, resolve them to one version"
                " (schema_version, --schema-version)"
            )
        return merged

    def _load(self, schema_id: SchemaId) -> _Schema | str:
        """Return the schema of an id, or a text that says why its values cannot be decoded: it is
        not registered, ambiguous, invalid, or of a type that is not decoded. The answer is cached.
        Raise ModuleNotFoundError if the package for its type is not installed.
        """
        found = self._known.get(schema_id)
        if found is None:
            try:
                version = self._registry.find(schema_id, self._subject)
                found = self._parse(version, schema_id)
            except SchemaError as error:
                found = shorten(str(error))
            if len(self._known) < _MAX_KNOWN:
                self._known[schema_id] = found
        return found

    def _parse(self, version: SchemaVersion, schema_id: SchemaId | None = None) -> _Schema:
        """Return the decoder of a version for values with ``schema_id``, after decompression. None
        stands for any id of the version. Raise SchemaError if the type is not decoded, the schema
        is invalid, values are to be resolved to a version and it is not Avro, or values are not
        decoded in the form that the id has. Raise ModuleNotFoundError if the package for its type
        is not installed.
        """
        form = SchemaId() if schema_id is None else schema_id
        if version.type not in self._types:
            raise SchemaError(
                f"schema {version.label} has the type {version.type}, which is not decoded: decode (--decode) selects only {', '.join(self._types)}"
            )
        if version.type != AVRO and self._reader is not None:
            raise SchemaError(f"schema {version.label} is no Avro schema, so its values cannot be resolved to a version: leave schema_version (--schema-version) out")  # fmt: skip
        if version.type == PROTOBUF:
            if form.writer == "apicurio":
                raise SchemaError(
                    "Protobuf values of Apicurio's serializers are not decoded: read the bytes (--decode none)"
                )
            compiled = self._compile(version)
            read_name = compiled.read_number if form.writer == "glue" else compiled.read_path
            decoder = MessageDecoder(compiled, read_name, self._is_wrapped)
            indexes = form.indexes
            return _Schema(
                decoder.shape, lambda data: decoder.decode(indexes + data), compiled.measure
            )
        if form.indexes:
            raise SchemaError(
                "the record header with the schema's GUID has more bytes after it, which only Protobuf values have: the value is not decoded"
            )
        if version.type == JSON_SCHEMA:
            found = JsonSchema(version, self._registry)
            return _Schema(found.shape, found.decoder(), found.measure)
        if not form.is_binary:
            raise SchemaError(
                "a record header says that the value has not Avro's binary encoding, and others are not decoded: read"
                " it as text or bytes (--decode utf8, none)"
            )
        schema = AvroSchema(version, self._registry)

        @cache
        def compile() -> Program | None:
            """Return the program for the columns."""
            return None if self.shape is None else schema.compile(self.shape, self._reader)

        return _Schema(schema.shape, schema.decoder(self._reader), schema.measure, compile)

    def _measure(self, schema_id: SchemaId | None) -> Size:
        """Return bounds for the number of cells that values with a schema id fill in the columns;
        those of null if the id is None or its values cannot be decoded. The answer is cached. Raise
        ModuleNotFoundError if the package for the schema's type is not installed.
        """
        size = self._sizes.get(schema_id)
        if size is None:
            found = NOT_FRAMED if schema_id is None else self._load(schema_id)
            if isinstance(found, _Schema) and self.shape is not None:
                size = found.measure(self.shape)
            else:
                size = Size(1 if self.shape is None else self.shape.width, 0, 0)
            if len(self._sizes) < _MAX_KNOWN:
                self._sizes[schema_id] = size
        return size

    def estimate_parts(self, values: Any, headers: Any) -> Any:
        """Return how many cells each key or value could fill in the columns at most, by its length
        and schema, as a NumPy array of float64. Values that cannot be decoded count as null. A
        compressed value counts more cells if it takes that share of the memory after decompression.
        Raise ModuleNotFoundError if the package for a schema's type is not installed.
        """
        frames = split_frames(values, headers, self.part, self._registry)
        lengths = pc.fill_null(pc.binary_length(frames.data), 0).to_numpy(zero_copy_only=False)
        found = np.full(len(lengths), self._measure(None).estimate(0), np.float64)
        for schema_id, rows in frames.rows_by_id():
            if schema_id is not None and self._is_inflated(schema_id):
                data = frames.data.take(pa.array(rows))
                sizes = np.array([_inflated_size(item) for item in data.to_pylist()], np.int64)
                cells = self._measure(schema_id).estimate(sizes)
                found[rows] = np.maximum(cells, sizes * (_MAX_PARTS / MAX_INFLATED))
            else:
                found[rows] = self._measure(schema_id).estimate(lengths[rows])
        return found

    def _is_inflated(self, schema_id: SchemaId) -> bool:
        """Return whether values with an id are decompressed: they are compressed and have a schema.
        Raise ModuleNotFoundError if the package for the schema's type is not installed.
        """
        return schema_id.is_compressed and isinstance(self._load(schema_id), _Schema)

    @property
    def has_schemas(self) -> bool:
        """Whether the registry has schemas of the subject or of the ids, valid or not."""
        return bool(self._registry.subject_versions(self._subject)) or any(
            self._is_registered(schema_id) for schema_id in self._seen
        )

    def _is_registered(self, schema_id: SchemaId) -> bool:
        """Return whether the registry has one schema for an id; False if it has none, or several
        that differ. Others do not count if the subject has the id, nor those of other contexts if
        the default one has it.
        """
        try:
            self._registry.find(schema_id, self._subject)
        except SchemaError:
            return False
        return True

    @property
    def fields(self) -> list[Any]:
        """Arrow fields of what a key or value becomes: the decoded column ``key`` or ``value`` (of
        type null if there is no schema), then its schema id, its undecoded bytes and its problem
        (:data:`~kafka_log.read.schemas.part_columns.ADDED`).
        """
        return list_fields(self.part, self.shape)

    def decode_columns(self, values: Any, headers: Any) -> list[Any]:
        """Return the arrays of :attr:`fields` for keys or values (Arrow binary) and headers of the
        same rows. A value is null if the record has none, or if it cannot be decoded, or the
        columns lack a field of its schema; then its bytes are in ``undecoded`` and the reason is in
        ``problem``. The schema id is null without a frame, and if the frame has a GUID. Raise
        ModuleNotFoundError if the package for a schema's type is not installed.
        """
        values = values.cast(pa.binary())
        frames = split_frames(values, headers, self.part, self._registry)
        found: list[Any] = [None] * len(values)
        problems: list[str | None] = [None] * len(values)
        data = frames.data
        pieces: list[tuple[Any, DecodedValues]] = []
        self._texts.left = MAX_JSON
        for schema_id, rows in frames.rows_by_id():
            schema = NOT_FRAMED if schema_id is None else self._load(schema_id)
            if isinstance(schema, _Schema) and self._reader is None and self._lacks(schema):
                schema = (
                    f"schema {schema_id} has fields without a column: columns are made for the versions of subject {self._subject!r},"
                    " or, if there are none, for the ids of the first records"
                )
            if isinstance(schema, str):
                for row in rows.tolist():
                    problems[row] = schema
                continue
            size = self._measure(schema_id)
            longest = (MAX_PARTS - size.parts) / size.per_byte if size.per_byte else math.inf
            of_schema = data if len(rows) == len(data) else data.take(pa.array(rows))
            if schema_id is not None and schema_id.is_compressed:
                rows, of_schema = _inflate_rows(schema_id, rows, of_schema, problems)
            program = self._compile_program(schema, len(rows))
            if program is not None:
                from kafka_log.read.schemas.avro_columns import run_program

                too_long = pc.greater(pc.binary_length(of_schema), longest)
                decoded = run_program(program, of_schema, too_long.to_numpy(zero_copy_only=False))
                pieces.append((rows, decoded))
                rows = rows[decoded.rejected]
                of_schema = of_schema.filter(pa.array(decoded.rejected))
            decode, convert = schema.decode, self._convert
            for row, item in zip(rows.tolist(), of_schema.to_pylist(), strict=True):
                if len(item) > longest:
                    problems[row] = (
                        f"its {count_noun(len(item), 'byte', spec=',')} could have more than {MAX_PARTS:,} parts"
                    )
                    continue
                left = self._texts.left
                try:
                    value = decode(item)
                    found[row] = value if convert is None else convert(value)
                except VALUE_ERRORS as error:
                    self._texts.left = left
                    problems[row] = _describe_failure(schema_id, error)
        column = self._join(pieces, found, problems)
        ids = np.array(
            [-1 if i is None or i.number is None else i.number for i in [*frames.ids, None]]
        )
        numbers = ids[frames.codes]
        texts = pa.array(problems, pa.string())
        undecoded = pc.if_else(texts.is_valid(), values, pa.scalar(None, pa.binary()))
        return [column, pa.array(numbers, mask=numbers < 0), undecoded, texts]

    def _lacks(self, schema: _Schema) -> bool:
        """Return whether the columns cannot hold values of a schema, or would have too many fields with it."""
        return self.shape is None or merge([self.shape, schema.shape]) != self.shape

    def _compile_program(self, schema: _Schema, count: int) -> Program | None:
        """Return the program for ``count`` values of an Avro schema, and count them for later
        calls. Return None if the kernel cannot decode them, if they are too few, in this call or in
        all, for it to be faster than fastavro, and for another type of schema.
        """
        if schema.compile is None:
            return None
        self._avro_values += count
        few = count < MIN_VALUES_FOR_KERNEL
        return None if few or not use_kernel(self._avro_values) else schema.compile()

    def _join(
        self,
        pieces: Sequence[tuple[Any, DecodedValues]],
        found: list[Any],
        problems: list[str | None],
    ) -> Any:
        """Return the Arrow array of all rows: those that the kernel has decoded (``pieces``: row
        indexes and values), and the others from ``found``. A value of these that the column cannot
        hold becomes null, and its reason is set in ``problems``.
        """
        if len(pieces) == 1 and len(pieces[0][0]) == len(found):
            decoded = pieces[0][1]
            if not decoded.rejected.any():
                return decoded.array
        at = np.full(len(found), -1)
        start = 0
        for rows, decoded in pieces:
            at[rows] = np.where(decoded.rejected, -1, np.arange(start, start + len(rows)))
            start += len(rows)
        others = np.flatnonzero(at < 0)
        at[others] = np.arange(start, start + len(others))
        array = build_column(self.fields[0].type, found, problems, others.tolist())
        if not pieces:
            return array
        return pa.concat_arrays([*(d.array for _, d in pieces), array]).take(pa.array(at))


def _describe_failure(schema_id: SchemaId | None, error: Exception) -> str:
    """Return the problem of a value that is none of its schema."""
    return f"{shorten(f'it is no value of schema {schema_id}: {error}')}; {NEXT_STEP}"


def _inflated_size(data: bytes) -> int:
    """Return the bytes of compressed data after decompression; 0 if it cannot be decompressed."""
    try:
        return len(inflate(data))
    except ValueError:
        return 0


def _inflate_rows(
    schema_id: SchemaId, rows: Any, values: Any, problems: list[str | None]
) -> tuple[Any, Any]:
    """Return the rows whose values can be decompressed, and these values (Arrow binary). The
    reasons of the others are set in ``problems``.
    """
    kept, found = [], []
    for row, item in zip(rows.tolist(), values.to_pylist(), strict=True):
        try:
            found.append(inflate(item))
        except ValueError as error:
            problems[row] = _describe_failure(schema_id, error)
        else:
            kept.append(row)
    return np.array(kept, np.int64), pa.array(found, pa.binary())


def make_decoders(
    topic: str,
    registry: SchemaRegistry,
    parts: Sequence[str],
    seen: Mapping[str, Sequence[SchemaId]],
    decoding: Decoding,
    schema_version: int | None = None,
    show_secrets: bool = False,
) -> dict[str, PartDecoder | LayoutDecoder]:
    """Return the decoders of those ``parts`` of a topic (``key``, ``value``) that have a schema to
    decode; under ``auto`` also of those that have only invalid ones; of all for a layout. Raise
    ValueError for a layout that cannot be loaded; SchemaError if a subject
    lacks ``schema_version`` or its schemas have too many fields together; ModuleNotFoundError if
    the package for a type of schemas is not installed. The arguments are those of
    :class:`TopicDecoder`.
    """
    if is_layout_name(decoding):
        return {part: LayoutDecoder(part, decoding, show_secrets) for part in parts}
    decoders: dict[str, PartDecoder | LayoutDecoder] = {}
    for part in parts:
        versions = registry.subject_versions(f"{topic}-{part}")
        of_part = schema_version if versions else None
        ids = () if versions else seen.get(part, ())
        decoder = PartDecoder(registry, topic, part, ids, decoding, of_part)
        if decoder.shape is not None or (decoding == "auto" and decoder.has_schemas):
            decoders[part] = decoder
    return decoders


class TopicDecoder:
    """Decoder of the rows of one topic: typed columns in place of its keys and values.

    Args:
        topic: The topic.
        registry: The schemas.
        names: Columns of the rows. The columns :data:`~kafka_log.read.schemas.part_columns.ADDED` follow each decoded part.
        seen: Ids that keys and values of the topic have, by part. They count if the subject of the part has no version.
        decoding: Which types of schemas are decoded. Under ``auto``, a part without a schema stays bytes. A layout decodes values.
        schema_version: As of :class:`PartDecoder`, for the parts whose subject has this version.
        show_secrets: As of :class:`LayoutDecoder`.

    Raises:
        ValueError: If there is nothing to decode though a type or version is asked for.
    """

    def __init__(
        self,
        topic: str,
        registry: SchemaRegistry,
        names: Sequence[str],
        seen: Mapping[str, Sequence[SchemaId]],
        decoding: Decoding,
        schema_version: int | None = None,
        show_secrets: bool = False,
    ) -> None:
        self._names = tuple(names)
        decoded = ("value",) if is_layout_name(decoding) else PARTS
        parts = [part for part in decoded if part in names]
        self.decoders = make_decoders(
            topic, registry, parts, seen, decoding, schema_version, show_secrets
        )
        if parts and not self.decoders and (decoding != "auto" or schema_version is not None):
            subjects = [f"{topic}-{part}" for part in parts]
            types = sorted({v.type for s in subjects for v in registry.subject_versions(s)})
            reason = (
                f"the schemas of the topic are invalid or of another type ({', '.join(types)}): correct them, or choose another format (decode, --decode)"
                if types
                else f"none of the {len(registry.versions)} known schemas is of subject {subjects[-1]!r} or has an id of its records: give"
                " other schemas (schemas, --schemas)"
            )
            raise ValueError(
                f"no schema of {' or '.join(parts)} of topic {topic!r} can be decoded as {decoding}: {reason}"
            )

    @classmethod
    def of_partitions(
        cls,
        partitions: Sequence[Partition],
        registry: SchemaRegistry,
        names: Sequence[str],
        decoding: Decoding,
        schema_version: int | None = None,
        show_secrets: bool = False,
    ) -> TopicDecoder:
        """Return the decoder of the columns ``names`` of partitions of one topic, with the types of
        schemas that ``decoding`` selects. A part (key or value) whose subject has no version in
        ``registry`` gets the schemas of the ids in the first records. Warn if a part is not decoded
        although it begins like one with a schema. Avro values are resolved to
        ``schema_version`` (None: not). Raise ValueError if the partitions are of several topics or
        none, there is nothing to decode, a subject lacks that version, or its schemas have too many
        fields together; ModuleNotFoundError if a package for a type of schemas is not installed.
        """
        topics = sorted({partition.topic for partition in partitions})
        if len(topics) > 1:
            raise ValueError(
                f"decode makes the columns of one topic, and {len(topics)} are read"
                f" ({', '.join(topics[:5])}): select one topic"
            )
        (topic,) = topics
        usage = {} if is_layout_name(decoding) else find_usage(partitions, topic, registry, names)
        seen = {part: found.ids for part, found in usage.items()}
        decoder = cls(topic, registry, names, seen, decoding, schema_version, show_secrets)
        warn_of_unknown_schemas(topic, usage, decoder.decoders)
        return decoder

    @property
    def needed(self) -> list[str]:
        """Columns of the rows to decode."""
        return list(dict.fromkeys((*self._names, *(("headers",) if self.decoders else ()))))

    def decode_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the Arrow schema of decoded rows, from that of the undecoded ones: the columns of
        the decoder in order, each decoded key or value replaced by the columns
        :attr:`PartDecoder.fields`. Other columns are left out. Raise KeyError if ``schema`` lacks a
        column that is not decoded.
        """
        fields: list[Any] = []
        for name in self._names:
            own = self.decoders.get(name)
            fields += [schema.field(name)] if own is None else own.fields
        return pa.schema(fields)

    def decode_rows(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return a stream of ``rows``, which have the columns :attr:`needed`, in which each decoded
        key or value is replaced by the columns :attr:`PartDecoder.fields`. Reading it raises what
        reading ``rows`` raises, and ModuleNotFoundError if the package for a schema's type is not
        installed; a value that cannot be decoded has its reason in the column ``problem``. ``rows``
        is closed at the end.
        """

        def batches() -> Iterator[pa.RecordBatch]:
            """Yield the rows, decoded. Close the undecoded rows at the end."""
            with rows:
                for batch in rows:
                    for _, decoded in self.decode_batch(batch):
                        yield decoded

        return pa.RecordBatchReader.from_batches(self.decode_schema(rows.schema), batches())

    def decode_batch(
        self, batch: pa.RecordBatch
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Yield pairs for the slices of a batch, in order: the rows with the columns
        :attr:`needed`, and the same rows decoded, with the schema of :meth:`decode_schema`. Yield
        nothing for a batch without rows. A value that cannot be decoded has its reason in the
        column ``problem``. Iterating raises ModuleNotFoundError if the package for a schema's type
        is not installed.
        """
        schema = self.decode_schema(batch.schema)
        for piece in self._split_rows(batch):
            arrays: list[Any] = []
            for name in self._names:
                column, own = piece.column(name), self.decoders.get(name)
                if own is None:
                    arrays.append(column)
                else:
                    arrays += own.decode_columns(column, piece.column("headers"))
            yield piece, pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _split_rows(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a batch in order, in slices that are decoded at once: each fills a
        limited number of cells, or has one row.
        """
        parts = np.zeros(batch.num_rows)
        for name, own in self.decoders.items():
            parts += own.estimate_parts(batch.column(name), batch.column("headers"))
        for start, end in split_by_parts(parts):
            yield batch.slice(start, end - start)


def split_by_parts(parts: Any) -> Iterator[tuple[int, int]]:
    """Yield half-open ranges of rows, in order, that cover all rows. Each has as many rows as fill
    at most 2,000,000 cells together, by the estimate for each row in ``parts``, or one row that
    fills more.

    Args:
        parts: Number of parts of each row, as of :meth:`PartDecoder.estimate_parts`.
    """
    ends = np.cumsum(parts)
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        end = max(int(np.searchsorted(ends, before + _MAX_PARTS, "right")), start + 1)
        yield start, end
        start = end


def find_usage(
    partitions: Sequence[Partition], topic: str, registry: SchemaRegistry, names: Sequence[str]
) -> dict[str, Usage]:
    """Return, for the parts in ``names`` whose subject (``topic-key``, ``topic-value``) has no
    version in ``registry``, the schema ids in the first 10,000 records of each partition. Damaged
    records and files are passed over: reading them reports them.
    """
    parts = [p for p in PARTS if p in names and not registry.subject_versions(f"{topic}-{p}")]
    usage: dict[tuple[str, str], Usage] = defaultdict(Usage)
    for partition in partitions if parts else ():
        count_ids(partition, DEFAULT_RECORDS, registry, usage, lambda _: None)
    return {part: usage[topic, part] for part in parts}


def warn_of_unknown_schemas(
    topic: str, usage: Mapping[str, Usage], decoded: Collection[str]
) -> None:
    """Warn of keys and values of a topic that are not among the ``decoded`` parts, but of which more
    than half begin like those of a schema registry.
    """
    for part, found in usage.items():
        ids = [i for i in found.ids if i.number != 0]  # small numbers of 8 bytes begin with 0
        framed, every = sum(found.counts[i] for i in ids), found.unframed + found.counts.total()
        if part in decoded or framed * 2 <= every:
            continue
        noun = f"ids {', '.join(map(str, ids[:3]))}" if len(ids) > 1 else f"id {ids[0]}"
        more = " and others" if len(ids) > 3 else ""
        warnings.warn(
            f"kafka-log: topic {topic}: {part}s stay bytes: no schema is known, and {framed:,} of the first {every:,} begin like"
            f" those of a schema registry, with the {noun}{more}. If they are, give the schemas (schemas, --schemas)",
            stacklevel=2,
        )
