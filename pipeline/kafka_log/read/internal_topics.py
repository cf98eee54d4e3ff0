"""Decoders of the records of Kafka's internal topics, by the name of the topic."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

from codecgen.runtime.construct import Array, Choice, Chosen, Field, Giving, Layout, Nullable
from codecgen.runtime.errors import CodecError, ValueRefused, Where
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.sensitive import REDACTED
from codecgen.runtime.tags import default_of
from kafka_codecs.columns import PAYLOAD_VIEWS
from kafka_log.logs.names import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    REMOTE_LOG_METADATA,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)

Json = dict[str, Any]

COORDINATOR_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})
"""Topics that coordinators write inside a broker. They are always compacted, and their batches have no sequence of a producer: a coordinator
writes the base sequence 0 into each batch of a transaction, and the broker does not check it."""

_VALUES: Mapping[str, str] = {
    "consumer_offsets_value": CONSUMER_OFFSETS,
    "transaction_state_value": TRANSACTION_STATE,
    "share_group_state_value": SHARE_GROUP_STATE,
    "metadata_record": CLUSTER_METADATA,
    "remote_log_metadata_record": REMOTE_LOG_METADATA,
}
"""Topics by the name that the schemas give to their values."""

VIEWS: Mapping[str, str] = {
    view: _VALUES[parts["value"]]
    for view, parts in PAYLOAD_VIEWS.items()
    if parts.get("value") in _VALUES
}
"""Topics by the names of their views (:mod:`kafka_log.read.topic_views`)."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded record.

    ``key`` and ``value`` are JSON objects as Kafka's tools print them, each with ``type`` or ``version`` next to ``data``; None if the record has
    none. ``error`` says which part cannot be read, None if all can.
    """

    key: Json | None = None
    value: Json | None = None
    error: CodecError | None = None


class InternalTopic:
    """Decoder of the records of one internal topic. Use :func:`internal_topic` to get one."""

    def __init__(
        self,
        name: str,
        read: Callable[[bytes | None, bytes | None, _Bytes], Decoded],
        *,
        has_secrets: bool = False,
    ) -> None:
        """Store the function that decodes a key and a value."""
        self.name = name
        self.has_secrets = has_secrets
        """Whether records of the topic may hold secrets."""
        self._read = read

    def decode(
        self,
        key: bytes | None,
        value: bytes | None,
        *,
        strict: bool = False,
        file: str = "",
        position: int = 0,
        show_secrets: bool = False,
    ) -> Decoded:
        """Return the decoded key and value of a record, with secrets only if ``show_secrets``.
        Never raise for invalid bytes or an unknown type or version, also if ``strict``: the error
        is in the result, with the part that could be read. So it is for a null key or value (None)
        that the topic does not allow. ``strict`` rejects bytes after a value and unknown forms;
        ``file`` and ``position`` are for the error.
        """
        return self._read(key, value, _Bytes(strict, file, position, show_secrets))


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Options for parsing and showing a key or value, and the place of its bytes for errors."""

    strict: bool
    file: str
    position: int
    show_secrets: bool

    def parse(self, codec: Layout | Choice, data: bytes, part: str) -> tuple[Layout, Any]:
        """Return the layout of a key or value that its type or version selects, and its fields.
        Raise CodecError, whose path begins with ``part``, if the bytes do not parse, the type or
        version is unknown, or bytes follow it and the reader is strict or the layout allows none.
        """
        session = Session(strict=self.strict, file=self.file)
        source = Source(data, session, inner=True, origin=self.position)
        try:
            layout: Any = codec
            while isinstance(layout, Choice):
                layout = layout.cases[self._number(layout, source)]
            fields = layout.read(source, None)
            if source.left and (self.strict or not layout.trailing):
                raise ValueRefused(
                    f"{count_noun(source.left, 'byte')} after the last field of the {part}: a newer Kafka or"
                    " another program has written the record, or it is damaged, so that it is not decoded",
                    source.where(),
                )
        except CodecError as error:
            path = f"{part}.{error.where.path}" if error.where.path else part
            at = error.where
            error.where = Where(path, self.position, at.stream_position, self.file, at.schema)
            raise
        return layout, fields

    def _number(self, choice: Choice, source: Source) -> int:
        """Return the type or version number that ``choice`` reads next, without consuming it. Raise
        ValueRefused if it is unknown; CodecError if the bytes end before it.
        """
        number = choice.peek(source)
        if number not in choice.cases:
            known = ", ".join(map(str, choice.cases))
            raise ValueRefused(
                f"the type or version {number} is unknown to this release of kafka-log; known: {known}",
                source.where(),
            )
        return number

    def to_json(self, layout: Layout, fields: Any, without: Container[str] = ()) -> Json:
        """Return the fields of a layout as JSON values, without the fields named in ``without``."""
        return to_json(layout, fields, without, show_secrets=self.show_secrets)

    def make_error(self, part: str, reason: str) -> CodecError:
        """Return the error that the ``part`` of the record cannot be read for this reason."""
        return ValueRefused(reason, Where(path=part, position=self.position, file=self.file))


def internal_topic(name: str) -> InternalTopic | None:
    """Return the decoder of an internal topic, None for any other topic."""
    make = _TOPICS.get(name)
    return None if make is None else make()


def one_line(part: Json) -> str:
    """Return a decoded key or value as JSON in one line."""
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"))


# ---------------------------------------------------------------- coordinators


def _make_coordinator_topic(
    name: str, key: Choice, values: Mapping[Any, Layout | Choice]
) -> InternalTopic:
    """Return the decoder of a topic such as ``__consumer_offsets``, whose keys begin with the type
    of the record, and whose values begin with their version. ``values`` has the layouts of values
    by type. A null value is a tombstone; a null key, and an unknown type or version, is an error in
    the result, the version beside the key.
    """

    def read(key_bytes: bytes | None, value_bytes: bytes | None, how: _Bytes) -> Decoded:
        """Return a decoded record. Its error says which of key and value cannot be parsed, or that the key is null."""
        if key_bytes is None:
            return Decoded(error=how.make_error("key", "a record of this topic has a key"))
        try:
            layout, fields = how.parse(key, key_bytes, "key")
        except CodecError as error:
            return Decoded(error=error.without_frames())
        decoded = {"type": str(int(fields["type"])), "data": how.to_json(layout, fields, ("type",))}
        if value_bytes is None:
            return Decoded(decoded)
        try:
            layout, fields = how.parse(values[int(fields["type"])], value_bytes, "value")
        except CodecError as error:
            return Decoded(decoded, error=error.without_frames())
        data = how.to_json(layout, fields, ("version",))
        _name_status(data, fields)
        _open_members(data, fields)
        return Decoded(decoded, {"version": str(int(fields["version"])), "data": data})

    return InternalTopic(name, read)


def _name_status(data: Json, fields: Any) -> None:
    """Replace the number of a transaction's status in ``data`` by its name, as Kafka's tools print it."""
    status = fields.get("transaction_status")
    if status is not None:
        data["transactionStatus"] = str(getattr(status, "label", int(status)))


def _open_members(data: Json, fields: Any) -> None:
    """Replace the bytes of subscriptions and assignments of group members in ``data`` by their
    fields, if the protocol type is ``consumer``. Bytes that do not parse stay bytes, as in Kafka's
    tools. Do nothing for other groups.
    """
    if data.get("protocolType") != "consumer":
        return
    from kafka_codecs import CONSUMER_PROTOCOL_ASSIGNMENT, CONSUMER_PROTOCOL_SUBSCRIPTION

    for shown, member in zip(data["members"], fields["members"], strict=True):
        for name, codec in (
            ("subscription", CONSUMER_PROTOCOL_SUBSCRIPTION),
            ("assignment", CONSUMER_PROTOCOL_ASSIGNMENT),
        ):
            found = _in_newest(codec, member[name])
            if found is not None:
                shown[name] = found


def _in_newest(codec: Choice, content: bytes) -> Json | None:
    """Return the fields of a subscription or an assignment of the consumer protocol without its
    version. An unknown higher version is read as the newest known one. Return None if the bytes do
    not parse.
    """
    if len(content) < 2:
        return None
    version = int.from_bytes(content[:2], "big", signed=True)
    newest = max(codec.cases)
    number = newest if version > newest else version
    try:
        layout, fields = _Bytes(False, "", 0, False).parse(
            codec, number.to_bytes(2, "big", signed=True) + content[2:], ""
        )
    except CodecError:
        return None
    return to_json(layout, fields, ("version",))


# ---------------------------------------------------------------- frames


def _make_framed_topic(name: str, layout: Layout, bodies: Mapping[Any, Any]) -> InternalTopic:
    """Return the decoder of a topic with null keys, whose values begin with type and version of the
    record, such as ``__cluster_metadata``. ``bodies`` has the layouts by type. A null value, and an
    unknown type or version, is an error in the result, the latter beside type and version. Keys are
    ignored.
    """

    def read(key_bytes: bytes | None, value_bytes: bytes | None, how: _Bytes) -> Decoded:
        """Return a decoded record. Its error says that the value is null, cannot be parsed, or has an unknown type or version."""
        if value_bytes is None:
            return Decoded(error=how.make_error("value", "a record of this topic has a value"))
        try:
            _, fields = how.parse(layout, value_bytes, "value")
        except CodecError as error:
            return Decoded(error=error.without_frames())
        kind, version, body = fields["api_key"], int(fields["version"]), fields["body"]
        decoded: Json = {"type": getattr(kind, "label", str(int(kind))), "version": version}
        found = bodies.get(kind)
        case = found.get(version) if isinstance(found, Mapping) else found
        if isinstance(body, bytes) or case is None:
            return Decoded(
                None, decoded, how.make_error("value.body", "no such record, or version, is known")
            )
        return Decoded(None, decoded | {"data": how.to_json(case, body)})

    return InternalTopic(name, read, has_secrets=any(map(has_secrets, bodies.values())))


def has_secrets(codec: Any, seen: frozenset[int] = frozenset()) -> bool:
    """Return whether a field of a layout, or of a layout inside of it, is a secret. A mapping or
    choice stands for all its layouts. ``seen`` are the ids of the layouts around it.
    """
    if isinstance(codec, Nullable | Giving):
        return has_secrets(codec.layout, seen)
    if isinstance(codec, Array):
        return has_secrets(codec.element, seen)
    if isinstance(codec, Chosen):
        return has_secrets(codec.find(), seen)
    if isinstance(codec, Choice):
        return has_secrets(codec.cases, seen)
    if isinstance(codec, Mapping):
        return any(has_secrets(case, seen) for case in codec.values())
    if not isinstance(codec, Layout) or id(codec) in seen:
        return False
    inner = seen | {id(codec)}
    return any(f.sensitive is not None or has_secrets(f.codec, inner) for f in codec.fields)


# ---------------------------------------------------------------- topics


def _consumer_offsets() -> InternalTopic:
    """Return the decoder of ``__consumer_offsets``: keys that begin with the type of the record,
    and values with their version.
    """
    from kafka_codecs import CONSUMER_OFFSETS_KEY, CONSUMER_OFFSETS_VALUE

    return _make_coordinator_topic(CONSUMER_OFFSETS, CONSUMER_OFFSETS_KEY, CONSUMER_OFFSETS_VALUE)


def _transaction_state() -> InternalTopic:
    """Return the decoder of ``__transaction_state``: keys that begin with the type of the record,
    and values with their version.
    """
    from kafka_codecs import TRANSACTION_STATE_KEY, TRANSACTION_STATE_VALUE

    return _make_coordinator_topic(
        TRANSACTION_STATE, TRANSACTION_STATE_KEY, TRANSACTION_STATE_VALUE
    )


def _share_group_state() -> InternalTopic:
    """Return the decoder of ``__share_group_state``: keys that begin with the type of the record,
    and values with their version.
    """
    from kafka_codecs import SHARE_GROUP_STATE_KEY, SHARE_GROUP_STATE_VALUE

    return _make_coordinator_topic(
        SHARE_GROUP_STATE, SHARE_GROUP_STATE_KEY, SHARE_GROUP_STATE_VALUE
    )


def _cluster_metadata() -> InternalTopic:
    """Return the decoder of ``__cluster_metadata``: null keys, and values that begin with type and
    version of the record.
    """
    from kafka_codecs import METADATA_BODY, METADATA_RECORD

    return _make_framed_topic(CLUSTER_METADATA, METADATA_RECORD, METADATA_BODY)


def _remote_log_metadata() -> InternalTopic:
    """Return the decoder of ``__remote_log_metadata``: null keys, and values that begin with type
    and version of the record.
    """
    from kafka_codecs import REMOTE_LOG_METADATA_BODY, REMOTE_LOG_METADATA_RECORD

    return _make_framed_topic(
        REMOTE_LOG_METADATA, REMOTE_LOG_METADATA_RECORD, REMOTE_LOG_METADATA_BODY
    )


_TOPICS: Mapping[str, Callable[[], InternalTopic]] = {
    CONSUMER_OFFSETS: _consumer_offsets,
    TRANSACTION_STATE: _transaction_state,
    SHARE_GROUP_STATE: _share_group_state,
    CLUSTER_METADATA: _cluster_metadata,
    REMOTE_LOG_METADATA: _remote_log_metadata,
}


def to_json(
    layout: Layout, fields: Any, without: Container[str] = (), *, show_secrets: bool = False
) -> dict[str, Any]:
    """Return the fields of a layout as JSON values, with the names of Kafka's JSON messages. Leave
    out hidden and missing fields, those in ``without``, and tagged fields with their default value.
    Secrets are :data:`~codecgen.runtime.sensitive.REDACTED` unless ``show_secrets``; bytes become
    Base64, UUIDs URL-safe Base64 without padding.
    """
    out: dict[str, Any] = {}
    for f in layout.fields:
        if f.hidden or f.name not in fields or f.name in without:
            continue
        value = fields[f.name]
        if f.tag is not None and f.codec.write(value, fields, Session()) == default_of(f):
            continue
        if value is not None and not show_secrets and is_secret(f, fields):
            out[f.spelled] = REDACTED
        else:
            out[f.spelled] = _json_value(f.codec, value, show_secrets)
    return out


def is_secret(f: Field, fields: Any) -> bool:
    """Return whether the value of a field is a secret: the schema marks the field as sensitive,
    always or by the value of another field among ``fields``.
    """
    if f.sensitive is None:
        return False
    named_by = f.sensitive.named_by
    return f.sensitive.covers(None if named_by is None else fields.get(named_by))


def _base64_text(data: bytes) -> str:
    """Return bytes as the text that JSON has for them: standard Base64."""
    return base64.b64encode(data).decode("ascii")


def _json_value(codec: Any, value: Any, show_secrets: bool) -> Any:
    """Return a parsed value as a JSON value: arrays as lists, layouts as objects as by
    :func:`to_json` (with secrets only if ``show_secrets``), bytes as Base64 text, UUIDs as URL-safe
    Base64 without padding. None, other values and a choice of an unknown case stay unchanged.
    """
    if value is None:
        return None
    if isinstance(codec, Nullable):
        return _json_value(codec.layout, value, show_secrets)
    if isinstance(codec, Array):
        return [_json_value(codec.element, item, show_secrets) for item in value]
    if isinstance(codec, Choice):
        case = codec.case_of(value[codec.by])
        return value if case is None else _json_value(case, value, show_secrets)
    if isinstance(codec, Layout):
        return to_json(codec, value, show_secrets=show_secrets)
    if isinstance(value, uuid.UUID):  # Kafka's spelling: URL-safe Base64 without padding
        return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")
    return _base64_text(value) if isinstance(value, bytes) else value
