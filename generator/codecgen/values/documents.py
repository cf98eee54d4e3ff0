"""Parsed values as JSON and as YAML, in the forms that examples have: what is printed can be built again."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from codecgen.runtime.enums import Enumeration

_NO_WORDS = ("true", "false", "null")
_WORD = re.compile(r"[a-z][a-z0-9_]*\Z")
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What JSON has as it is, and YAML does not."""


class Word(str):
    """A name of the schema: text that needs no quotes."""


def plain(value: Any) -> Any:
    """A value as mappings, lists, text, numbers, true, false and null. Bytes are text where they are text that can be
    printed, and ``{hex: ..}`` elsewhere; a value of an enum is its name."""
    if isinstance(value, Enumeration):
        return Word(value.name.lower())
    if isinstance(value, Mapping):
        return {
            str(name): plain(item) for name, item in value.items() if not str(name).startswith("_")
        }
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value))
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return repr(value)  # JSON has no number for it
    return value


def _bytes(data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": data.hex()}
    return text if text.replace("\n", "").isprintable() else {"hex": data.hex()}


def as_json(value: Any, *, indent: int | None = 2) -> str:
    """A value as one JSON document, which is YAML too."""
    return _quoted(plain(value), indent)


def _quoted(value: Any, indent: int | None = None) -> str:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_yaml(value: Any) -> str:
    """A value as one YAML document."""
    return "".join(f"{line}\n" for line in _block(plain(value)))


def _block(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            if _flat(item):
                yield f"{name}: {_scalar(item)}"
            else:
                yield f"{name}:"
                yield from (f"  {line}" for line in _block(item))
    elif isinstance(value, list) and value:
        for item in value:
            lines = [_scalar(item)] if _flat(item) else list(_block(item))
            yield f"- {lines[0]}"
            yield from (f"  {line}" for line in lines[1:])
    else:
        yield _scalar(value)


def _flat(value: Any) -> bool:
    """Whether a value stands on the line of its key."""
    return not value or not isinstance(value, dict | list) or list(value) == ["hex"]


def _scalar(value: Any) -> str:
    if isinstance(value, dict) and value:
        return f"{{hex: {_quoted(value['hex'])}}}"
    if isinstance(value, Word) and value not in _NO_WORDS and _WORD.match(value):
        return str(value)
    return _quoted(value)
