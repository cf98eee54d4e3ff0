"""Control records: parsed keys and values of the records that brokers write for themselves."""

from __future__ import annotations

import base64
import uuid
from typing import Any

from codecgen.runtime.construct import Enumeration, Layout
from codecgen.runtime.errors import CodecError, ValueRefused, Where
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.nouns import count_noun
from kafka_codecs import CONTROL_RECORD_KEY, CONTROL_RECORD_VALUE, ControlRecordType
from kafka_log.segment.model import Control

UNKNOWN = "UNKNOWN"


def read_control(
    key: bytes | None, value: bytes | None, *, strict: bool, file: str, position: int
) -> Control:
    """Return the parsed key and value of a control record. With an unknown type (``UNKNOWN``) the
    value is ignored, even if it is None. Raise CodecError under ``strict`` if the key, or the value
    of a known type, is None, cannot be parsed, or is longer than its layout allows. Otherwise extra
    bytes are ignored, and the result has any other error, with the type if the key could be read.
    """
    try:
        fields = _parse(CONTROL_RECORD_KEY, key, "key", strict, file, position)
    except CodecError as error:
        if strict:
            raise
        return Control(None, None, error=error.without_frames())
    kind = fields["type"]
    known = isinstance(kind, Enumeration) and int(kind) in CONTROL_RECORD_VALUE
    name = kind.label if isinstance(kind, Enumeration) else UNKNOWN
    number = int(kind)
    if not known:
        return Control(number, name)
    layout = CONTROL_RECORD_VALUE[ControlRecordType(kind)]
    try:
        parsed = _parse(layout, value, "value", strict, file, position)
    except CodecError as error:
        if strict:
            raise
        return Control(number, name, error=error.without_frames())
    return Control(number, name, to_json_fields(layout, parsed))


def _parse(
    layout: Layout, data: bytes | None, part: str, strict: bool, file: str, position: int
) -> Any:
    """Return the fields of the ``part`` (``key`` or ``value``) of a control record, parsed with
    ``layout``. Raise CodecError, whose path begins with ``part``, if ``data`` is None or cannot be
    parsed, or, under ``strict``, if bytes follow the fields and the layout does not allow them.
    """
    if data is None:
        where = Where(path=part, position=position, file=file)
        content = "type" if part == "key" else "content"
        raise ValueRefused(
            f"the {part} is null, where brokers write the {content} of a control record:"
            " the record is damaged, or no broker wrote it",
            where,
        )
    session = Session(strict=strict, file=file)
    source = Source(data, session, inner=True, origin=position)
    try:
        fields = layout.read(source, None)
        if source.left and strict and not layout.trailing:
            raise ValueRefused(
                f"{count_noun(source.left, 'byte')} after the last field of the {part} of a control record:"
                " a newer Kafka has written the record, or it is damaged; the policy strict does not accept this",
                source.where(),
            )
        return fields
    except CodecError as error:
        path = f"{part}.{error.where.path}" if error.where.path else part
        error.where = Where(path, position, error.where.stream_position, file, error.where.schema)
        raise


def to_json_fields(layout: Layout, fields: Any) -> dict[str, Any]:
    """Return parsed fields as a dict of JSON values, with the names of Kafka's documents: UUIDs as
    URL-safe Base64 without padding, bytes as standard Base64, nested layouts as dicts, lists item
    by item, anything else unchanged. Hidden and missing fields are left out.
    """
    out: dict[str, Any] = {}
    for f in layout.fields:
        if not f.hidden and f.name in fields:
            inner = getattr(f.codec, "element", f.codec)
            out[f.spelled] = _json_value(inner, fields[f.name])
    return out


def _json_value(codec: Any, value: Any) -> Any:
    """Return a field as a JSON value: a UUID as URL-safe Base64 without padding, other bytes as
    Base64, a nested layout as a dict, a list item by item, and anything else unchanged.
    """
    if isinstance(value, list):
        return [_json_value(codec, item) for item in value]
    if isinstance(codec, Layout):
        return to_json_fields(codec, value)
    if isinstance(value, uuid.UUID):  # Kafka's spelling: URL-safe Base64 without padding
        return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value
