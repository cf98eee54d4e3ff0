"""Parsed values as plain JSON values, with the names of Kafka's own documents: as Kafka's JSON of a message has them."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Container
from typing import Any

from codecgen.runtime.construct import Array, Choice, Field, Layout, Nullable
from codecgen.runtime.located_bytes import Session
from codecgen.runtime.sensitive import REDACTED
from codecgen.runtime.tags import default_of


def to_json(
    layout: Layout, fields: Any, without: Container[str] = (), *, show_secrets: bool = False
) -> dict[str, Any]:
    """Return the fields of a layout as JSON values. Leave out hidden fields, and tagged ones that hold their default, as they have no bytes.

    Secrets are :data:`~codecgen.runtime.sensitive.REDACTED` unless ``show_secrets``.
    """
    out: dict[str, Any] = {}
    for f in layout.fields:
        if f.hidden or f.name not in fields or f.name in without:
            continue
        value = fields[f.name]
        if f.tag is not None and f.codec.write(value, fields, Session()) == default_of(f):
            continue
        if value is not None and not show_secrets and _is_secret(f, fields):
            out[f.spelled] = REDACTED
        else:
            out[f.spelled] = _json_value(f.codec, value, show_secrets)
    return out


def _is_secret(f: Field, fields: Any) -> bool:
    if f.sensitive is None:
        return False
    named_by = f.sensitive.named_by
    return f.sensitive.covers(None if named_by is None else fields.get(named_by))


def text_of(data: bytes) -> str:
    """Bytes as JSON has them: standard Base64."""
    return base64.b64encode(data).decode("ascii")


def _json_value(codec: Any, value: Any, show_secrets: bool) -> Any:
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
    return text_of(value) if isinstance(value, bytes) else value


__all__ = ["text_of", "to_json"]
