"""Decode keys and values with the format that the user names, or with the layouts of internal topics."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.sensitive import REDACTED
from kafka_log.inspect.dump import AUTO, INTERNAL, NONE
from kafka_log.logs.names import INTERNAL_TOPICS
from kafka_log.read.internal_topics import InternalTopic, internal_topic
from kafka_log.read.schemas import PARTS
from kafka_log.read.schemas.layout_names import is_layout_name
from kafka_log.read.schemas.registry import SchemaRegistry
from kafka_log.segment.control import read_control
from kafka_log.segment.similar_names import suggest_similar
from kafka_log.text.json_values import convert_bytes, format_json

if TYPE_CHECKING:
    from kafka_log.logs.partitions import Partition
    from kafka_log.read.schemas.decoding import PartDecoder
    from kafka_log.read.schemas.layouts import LayoutDecoder
    from kafka_log.read.schemas.registry import SchemaId

_LENGTHS = (1, 2, 4, 8)
_SHOWN = "shown as bytes"
_HIDDEN = "hidden, because it may contain secrets: add --show-secrets to see it"
_CONTROL_RECORD = "control record"
"""Noun of the control records that could not be decoded."""

Render = Callable[[bytes], str | None]
"""Format bytes that no format decodes. None leaves them out."""


def _decode_utf8(data: bytes) -> Any:
    """Return bytes as text. Raise UnicodeDecodeError if they are not UTF-8."""
    return data.decode("utf-8")


def _decode_json(data: bytes) -> Any:
    """Return the JSON value of UTF-8 bytes, parsed strictly. Raise ValueError for other bytes or
    text, duplicate names, NaN, infinities and numbers that overflow; RecursionError if it is nested
    too deep.
    """
    found = json.loads(
        data.decode("utf-8"), object_pairs_hook=_build_object, parse_constant=_reject_constant
    )
    json.dumps(found, allow_nan=False)  # 1e999 is no number that JSON has
    return found


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict. Raise ValueError if a name occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the JSON object has the name {repeated!r} more than once")
    return found


def _reject_constant(constant: str) -> Any:
    """Raise ValueError for a constant that is not JSON, such as NaN."""
    raise ValueError(f"{constant} is not a JSON value")


def _decode_int(data: bytes) -> Any:
    """Decode a signed big-endian integer of 1, 2, 4 or 8 bytes. Raise ValueError for other lengths."""
    if len(data) not in _LENGTHS:
        raise ValueError(
            f"{count_noun(len(data), 'byte is', 'bytes are')} not an integer, which has 1, 2, 4 or 8 bytes"
        )
    return int.from_bytes(data, "big", signed=True)


def _decode_confluent(data: bytes) -> Any:
    """Return the schema id or GUID of a value in Confluent's wire format, and its undecoded
    payload (a text, or Base64 if it is none), as a JSON object. Raise CodecError if the value does
    not begin with a known magic byte and an id. No schema is looked up.
    """
    from kafka_codecs import CONFLUENT_VALUE

    fields = CONFLUENT_VALUE.parse(data)
    payload = convert_bytes(fields.data)
    if fields.magic == 0:
        return {"schema_id": fields.schema_id, "payload": payload}
    return {"schema_guid": str(fields.schema_guid), "payload": payload}


FORMATS: Mapping[str, Callable[[bytes], Any]] = {
    "utf8": _decode_utf8,
    "json": _decode_json,
    "int": _decode_int,
    "hex": bytes.hex,
    "base64": lambda data: b64encode(data).decode("ascii"),
    "confluent": _decode_confluent,
}
"""Decoders by name: each returns the JSON value of bytes, or raises ValueError or CodecError."""


_MAX_DECODERS = 100
"""Maximum number of sets of schemas for which decoders are kept."""

SCHEMA_FORMATS = (AUTO, "avro", "json-schema", "protobuf")
"""Formats that need the schemas of a schema registry."""


@dataclass(frozen=True, slots=True)
class KeyValueFormats:
    """Formats of keys and values: names of :data:`FORMATS` or :data:`SCHEMA_FORMATS`, layouts of generated packages (``PACKAGE:LAYOUT``), one
    internal topic for both, ``internal`` (by the name of the topic) or ``none``.
    """

    key: str = INTERNAL
    value: str = INTERNAL

    @staticmethod
    def parse(text: str) -> KeyValueFormats:
        """Parse ``key=utf8,value=json`` (one that is not named is ``none``; of a repeated one the
        last counts), or one name for both, but a layout alone for values. Raise ValueError for
        unknown formats, layouts that cannot be loaded, other syntax, and the name of an internal
        topic after ``key=`` or ``value=``.
        """
        parts = dict.fromkeys(PARTS, NONE if "=" in text else text)
        if "=" not in text and is_layout_name(text):
            parts["key"] = NONE
        for part in text.split(",") if "=" in text else ():
            name, _, what = part.partition("=")
            if name not in parts or "=" in what:
                raise ValueError(
                    f"{part!r} is not a format of keys or values: write key=FORMAT or value=FORMAT"
                )
            parts[name] = what
        for what in parts.values():
            if what in INTERNAL_TOPICS and "=" in text:
                raise ValueError(
                    f"{what!r} is a format of keys and values together: write it alone, without key= or value="
                )
            known = [*FORMATS, *SCHEMA_FORMATS, INTERNAL, NONE, *INTERNAL_TOPICS]
            if is_layout_name(what):
                from kafka_log.read.schemas.layouts import load_layout

                load_layout(what)
            elif what not in known:
                raise ValueError(
                    f"{what!r} is not a format of keys and values; known: {', '.join(known)}, PACKAGE:LAYOUT"
                    + suggest_similar(what, known)
                )
        return KeyValueFormats(**parts)

    def internal_topic(self, named: str) -> InternalTopic | None:
        """Return the internal topic whose layouts decode records of the topic ``named``: with
        ``internal`` and ``auto`` that topic itself, else the one that the format names. Return None
        if that is no internal topic, or if keys and values have different formats.
        """
        if self.key != self.value:
            return None
        return internal_topic(named if self.key in (INTERNAL, AUTO) else self.key)

    @property
    def needs_schemas(self) -> bool:
        """Whether keys or values are decoded with the schemas of a registry."""
        return self.key in SCHEMA_FORMATS or self.value in SCHEMA_FORMATS

    @property
    def uses_columns(self) -> bool:
        """Whether keys or values are decoded as columns: by a layout, or with the schemas of a registry,
        which headers may name.
        """
        return _is_columnar(self.key) or _is_columnar(self.value)


def _is_columnar(what: str) -> bool:
    """Return whether a format is decoded as columns: with the schemas of a registry, or by a layout."""
    return what in SCHEMA_FORMATS or is_layout_name(what)


@dataclass(frozen=True, slots=True)
class DecodedColumns:
    """Decoded keys and values of rows.

    Attributes:
        texts: Texts of ``key`` and of ``value``; None for null.
        problems: The same for those of them that are decoded with schemas or by a layout: why the bytes are shown, None if
            they are not.
    """

    texts: Mapping[str, list[str | None]]
    problems: Mapping[str, list[str | None]]


@dataclass
class KeyValueDecoder:
    """Decoder of the keys and values of rows.

    Attributes:
        formats: Formats of keys and values.
        render_bytes: Formats bytes that are not decoded.
        format_value: Formats decoded values.
        show_secrets: Show secrets in records of internal topics.
        parts: Which of ``key`` and ``value`` are decoded with schemas or by a layout.
        read_schemas: Returns the schemas.
        find_partitions: Returns the partitions of a topic, whose first records show which schemas it uses.
        schema_version: Version of the subject to which Avro values are resolved. None: fields of all versions.
        failures: Counts what could not be decoded, by noun (such as "key") and problem, with the first reason.
        schema_parts: Answers of :meth:`find_schema_parts`, by topic.
        undecoded: Number of keys and values that could not be decoded with schemas or by a layout.
    """

    formats: KeyValueFormats
    render_bytes: Render
    format_value: Callable[[Any], str] = format_json
    show_secrets: bool = False
    parts: Sequence[str] = PARTS
    read_schemas: Callable[[], SchemaRegistry] = SchemaRegistry
    find_partitions: Callable[[str], Sequence[Partition]] = lambda topic: ()
    schema_version: int | None = None
    failures: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    schema_parts: dict[str, frozenset[str]] = field(default_factory=dict)
    undecoded: int = field(default=0, init=False)
    _decoders: dict[tuple[str, str, frozenset[SchemaId]], PartDecoder | LayoutDecoder] = field(
        default_factory=dict, init=False
    )

    def may_decode(self, topic: str, name: str) -> bool:
        """Return whether the column ``name`` (``key`` or ``value``) of records of a topic is decoded,
        or may be, which its schemas decide. No file is read.
        """
        own = self._formats_of(topic).internal_topic(topic)
        what = self._format_of(name)
        return own is not None or what in FORMATS or _is_columnar(what)

    def is_decoded(self, topic: str, name: str) -> bool:
        """Return whether the column ``name`` (``key`` or ``value``) of records of a topic is decoded.
        Raise what :meth:`find_schema_parts` raises.
        """
        own = self._formats_of(topic).internal_topic(topic)
        if own is None and _is_columnar(self._format_of(name)):
            return name in self.find_schema_parts(topic)
        return self.may_decode(topic, name)

    def find_schema_parts(self, topic: str) -> frozenset[str]:
        """Return which of ``parts`` of the records of a topic are decoded by a layout or with schemas.
        Under ``auto``, and if another part with the same format has schemas, these are the parts that have
        some: of their subjects, or by the ids in the first records. The answer is cached. Raise what
        ``read_schemas`` raises at the first call, SchemaError if the subject lacks
        ``schema_version`` or has too many fields, ModuleNotFoundError if a package is not installed.
        """
        found = self.schema_parts.get(topic)
        if found is None:
            found = self.schema_parts[topic] = frozenset(self._list_schema_parts(topic))
        return found

    def _list_schema_parts(self, topic: str) -> Iterator[str]:
        """Yield the parts that :meth:`find_schema_parts` returns, and raise what it raises."""
        if self._formats_of(topic).internal_topic(topic) is not None:
            return
        by_format: dict[str, list[str]] = {}
        for name in self.parts:
            if _is_columnar(self._format_of(name)):
                by_format.setdefault(self._format_of(name), []).append(name)
        for what, names in by_format.items():
            if is_layout_name(what):
                yield from names
                continue
            from kafka_log.read.schemas import decoding

            kind = decoding.parse_decoding("--decode", what)
            usage = decoding.find_usage(self.find_partitions(topic), topic, self._registry, names)
            seen = {part: found.ids for part, found in usage.items()}
            of_format = (topic, self._registry, names, seen, kind, self.schema_version)
            decoded = decoding.make_decoders(*of_format)
            if what == AUTO:
                decoding.warn_of_unknown_schemas(topic, usage, decoded)
            yield from decoded or ([] if what == AUTO else names)

    def _formats_of(self, topic: str) -> KeyValueFormats:
        """Return the formats for a topic. One with secrets is decoded by its layouts, which know
        them, unless no decoding or secrets are asked for.
        """
        own = internal_topic(topic)
        is_raw = self.formats == KeyValueFormats(NONE, NONE)
        hides = own is not None and own.has_secrets and not self.show_secrets and not is_raw
        return KeyValueFormats() if hides else self.formats

    def _format_of(self, name: str) -> str:
        """Return the format of ``key`` or ``value``."""
        return self.formats.key if name == "key" else self.formats.value

    @cached_property
    def _registry(self) -> SchemaRegistry:
        """The schemas, read on first access."""
        return self.read_schemas()

    def decode_columns(
        self,
        topic: str,
        file: str,
        keys: Any,
        values: Any,
        controls: Any,
        positions: Any,
        headers: Any = None,
    ) -> DecodedColumns:
        """Return the keys and the values of rows as texts, decoded in ``formats``. If the format
        names an internal topic, or is ``internal`` or ``auto`` and ``topic`` is one, its layouts
        decode both; other bytes are only rendered with ``internal`` or ``none``, and with ``auto``
        if the topic has no schemas. Control records are decoded as such, unless both formats are
        ``none``. Bytes that cannot be decoded are rendered (or redacted, if they may be secrets) and
        counted in ``failures``. A topic with secrets is decoded by its own layouts, whatever the
        formats are, unless both are ``none`` or ``show_secrets`` is True.
        Formats that use a schema registry need ``headers`` of the rows. They raise what
        :meth:`find_schema_parts` raises.

        Args:
            topic: Topic of all rows.
            file: Path of the segment, for errors.
            keys: Arrow array of the keys.
            values: Arrow array of the values.
            controls: Whether each row is a control record.
            positions: Position of the batch of each row, for errors.
            headers: Arrow array of the headers, if the formats use columns.
        """
        own = self._formats_of(topic).internal_topic(topic)
        texts: dict[str, list[str | None]] = {}
        problems: dict[str, list[str | None]] = {}
        if own is None and self.formats.uses_columns and len(keys):
            for name, data in zip(PARTS, (keys, values), strict=True):
                if name in self.find_schema_parts(topic):
                    texts[name], problems[name] = self._decode_by_schema(
                        topic, name, data, headers, controls
                    )
        decodes_controls = self.formats != KeyValueFormats(NONE, NONE)
        found: dict[str, list[str | None]] = {name: [] for name in PARTS}
        rows = zip(keys.to_pylist(), values.to_pylist(), controls, positions, strict=True)
        for row, (key, value, control, position) in enumerate(rows):
            if control and decodes_controls:
                decoded = self._decode_control(key, value, file, position)
            elif own is not None:
                decoded = self._decode_internal(own, key, value, file, position)
            else:
                decoded = (
                    texts["key"][row] if "key" in texts else self._decode_one("key", key),
                    texts["value"][row] if "value" in texts else self._decode_one("value", value),
                )
            found["key"].append(decoded[0])
            found["value"].append(decoded[1])
        return DecodedColumns(found, problems)

    def _decode_by_schema(
        self, topic: str, name: str, data: Any, headers: Any, controls: Any
    ) -> tuple[list[str | None], list[str | None]]:
        """Return keys or values (``name``) as JSON texts, decoded with the schemas that they name
        (None for null), and why some are not decoded (None for the others). These are rendered as
        bytes and counted as failures, except in control records, which have no schema: their texts
        are not to be used. Raise ModuleNotFoundError if the package of the format is not installed;
        SchemaError if the schemas of the subject have too many fields.
        """
        from kafka_log.read.schemas.decoding import split_by_parts
        from kafka_log.text.columns import format_json_column

        what = self._format_of(name)
        decoder = self._find_decoder(topic, name, data, headers)
        texts: list[str | None] = []
        reasons: list[str | None] = [None] * len(data)
        way = "with schemas" if what == AUTO else f"as {what}"
        for start, end in split_by_parts(decoder.estimate_parts(data, headers)):
            rows = slice(start, end)
            column, _, undecoded, problems = decoder.decode_columns(data[rows], headers[rows])
            texts += format_json_column(decoder.fields[0], column).to_pylist()
            failed = zip(undecoded.to_pylist(), problems.to_pylist(), controls[rows], strict=True)
            for row, (raw, problem, control) in enumerate(failed, start):
                if problem is not None and not control:
                    how = _HIDDEN if decoder.hides_bytes else _SHOWN
                    self._count_failure(name, f"cannot be decoded {way}", problem, how)
                    self.undecoded += 1
                    texts[row] = self.render_bytes(raw)
                    reasons[row] = problem
        return texts, reasons

    def _find_decoder(
        self, topic: str, name: str, data: Any, headers: Any
    ) -> PartDecoder | LayoutDecoder:
        """Return the decoder of keys or values (``name``) of a topic, which knows the schemas that
        they have. Raise what :meth:`_decode_by_schema` raises.
        """
        from kafka_log.read.schemas.decoding import PartDecoder, parse_decoding
        from kafka_log.read.schemas.framing import split_frames

        what = self._format_of(name)
        seen: frozenset[SchemaId] = frozenset()
        if not is_layout_name(what):
            ids = split_frames(data, headers, name, self._registry).ids
            seen = frozenset(one for one in ids if one is not None)
        decoder = self._decoders.get((topic, name, seen))
        if decoder is None:
            if is_layout_name(what):
                from kafka_log.read.schemas.layouts import LayoutDecoder

                decoder = LayoutDecoder(name, what, self.show_secrets)
            else:
                decoding = parse_decoding("--decode", what)
                is_resolved = bool(self._registry.subject_versions(f"{topic}-{name}"))
                version = self.schema_version if is_resolved else None
                decoder = PartDecoder(self._registry, topic, name, list(seen), decoding, version)
            if len(self._decoders) >= _MAX_DECODERS:
                self._decoders.clear()
            self._decoders[topic, name, seen] = decoder
        return decoder

    def _decode_one(self, name: str, data: bytes | None) -> str | None:
        """Return a key or value (``name``) as text; None for null. Bytes that its format cannot
        decode are rendered and counted as a failure; without a format in :data:`FORMATS` bytes are
        only rendered.
        """
        if data is None:
            return None
        what = self._format_of(name)
        read = FORMATS.get(what)
        if read is None:
            return self.render_bytes(data)
        try:
            return self.format_value(read(data))
        except (ValueError, CodecError, RecursionError) as error:
            self._count_failure(name, f"cannot be decoded as {what}", _describe_error(error))
            return self.render_bytes(data)

    def _decode_internal(
        self, own: InternalTopic, key: bytes | None, value: bytes | None, file: str, position: int
    ) -> tuple[str | None, str | None]:
        """Return key and value of a record of an internal topic as texts, None for null. What
        cannot be decoded is rendered as bytes and counted as a failure; an undecoded value is
        redacted if the topic may hold secrets and ``show_secrets`` is False.
        """
        decoded = own.decode(
            key, value, file=file, position=position, show_secrets=self.show_secrets
        )
        shown: Any = decoded.value
        how = _SHOWN
        if shown is None and value is not None and own.has_secrets and not self.show_secrets:
            shown = REDACTED  # any byte of an undecoded value may be a secret
            how = _HIDDEN
        if decoded.error is not None:
            self._count_failure(
                "record",
                f"cannot be decoded as a record of {own.name}",
                _describe_error(decoded.error),
                how,
            )
        return self._format(decoded.key, key), self._format(shown, value)

    def _decode_control(
        self, key: bytes | None, value: bytes | None, file: str, position: int
    ) -> tuple[str | None, str | None]:
        """Return key and value of a control record as texts, None for null. A record that cannot be
        decoded is rendered as bytes, and counted as a failure.
        """
        decoded = read_control(key, value, strict=False, file=file, position=position)
        if decoded.error is not None:
            self._count_failure(
                _CONTROL_RECORD, "cannot be decoded", _describe_error(decoded.error)
            )
        named = None if decoded.type is None else {"control": decoded.type}
        return self._format(named, key), self._format(decoded.value, value)

    def _format(self, decoded: Any, data: bytes | None) -> str | None:
        """Return the decoded value as text; without one the rendered bytes, or None for null."""
        if decoded is not None:
            return self.format_value(decoded)
        return None if data is None else self.render_bytes(data)

    def _count_failure(self, noun: str, problem: str, reason: str, how: str = _SHOWN) -> None:
        """Count a failure of a noun with a problem, and keep the reason of the first one. ``how``
        says how the bytes are shown; failures that differ in it are counted apart.
        """
        kind = noun, f"{problem} ({how})"
        count, first = self.failures.get(kind, (0, reason))
        self.failures[kind] = count + 1, first

    @property
    def has_invalid_control_records(self) -> bool:
        """Whether a control record could not be decoded, which is damage: Kafka refuses it too."""
        return any(noun == _CONTROL_RECORD for noun, _ in self.failures)

    def failure_messages(self) -> list[str]:
        """Return one line per kind of failure, in the order of first occurrence, with its count and
        first reason; ``[]`` without failures.
        """
        return [
            f"{count_noun(count, noun, spec=',')} {problem}; the first: {first}"
            for (noun, problem), (count, first) in self.failures.items()
        ]


def _describe_error(error: Exception) -> str:
    """Return what is wrong with which field of a key or value, and with the record of which batch."""
    if not isinstance(error, CodecError):
        return str(error)
    where = error.where
    said = f"field {where.path}: {error.reason}" if where.path else error.reason
    return (
        said if where.file is None else f"{said} (batch at byte {where.position} of {where.file})"
    )
