"""Format values as JSON and YAML in the form of examples, and build bytes from them."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from codecgen.diagnostics import Diagnostic, Span, format_value
from codecgen.examples.trial import Mismatch, built, place_of
from codecgen.runtime.enums import Enumeration
from codecgen.runtime.errors import CodecError
from codecgen.schema import forms, yaml_tree
from codecgen.values.named_codec import NamedCodec

_NO_WORDS = ("true", "false", "null")
_WORD = re.compile(r"[a-z][a-z0-9_]*\Z")
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What JSON has as it is, and YAML does not."""


class Word(str):
    """A name from the schema, which YAML shows without quotes."""


def to_plain(value: Any) -> Any:
    """Return a value as mappings, lists, text, numbers, booleans and None, recursively. Enum values
    become names in lower case, uuids and non-finite floats text, bytes text if they are printable
    UTF-8 (line feeds allowed) and ``{hex: ..}`` otherwise. Keys that begin with ``_`` are left out.
    Values of other types are returned as they are.
    """
    if isinstance(value, Enumeration):
        return Word(value.name.lower())
    if isinstance(value, Mapping):
        return {
            str(name): to_plain(item)
            for name, item in value.items()
            if not str(name).startswith("_")
        }
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes_to_plain(bytes(value))
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return repr(value)  # JSON has no number for it
    return value


def _bytes_to_plain(data: bytes) -> Any:
    """Return bytes as text if they are UTF-8 whose characters are all printable or line feeds, and
    as ``{hex: ..}`` otherwise.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": data.hex()}
    return text if text.replace("\n", "").isprintable() else {"hex": data.hex()}


def format_json(value: Any, *, indent: int | None = 2) -> str:
    """Return a value as one JSON document, which is also valid YAML."""
    return _format_quoted(to_plain(value), indent)


def _format_quoted(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON, with characters escaped that YAML does not allow."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def format_yaml(value: Any) -> str:
    """Return a value as one YAML document."""
    return "".join(f"{line}\n" for line in _format_block(to_plain(value)))


def _format_block(value: Any) -> Iterator[str]:
    """Yield the YAML lines, without line feeds, of a value from :func:`to_plain` in block style,
    nested ones indented by 2. Scalars, empty mappings and lists, and ``{hex: ..}`` take one line.
    Raise TypeError for a value that JSON does not have.
    """
    if isinstance(value, dict) and value:
        for name, item in value.items():
            if _is_inline(item):
                yield f"{name}: {_format_inline(item)}"
            else:
                yield f"{name}:"
                yield from (f"  {line}" for line in _format_block(item))
    elif isinstance(value, list) and value:
        for item in value:
            lines = [_format_inline(item)] if _is_inline(item) else list(_format_block(item))
            yield f"- {lines[0]}"
            yield from (f"  {line}" for line in lines[1:])
    else:
        yield _format_inline(value)


def _is_inline(value: Any) -> bool:
    """Return whether a value fits on the line of its key: a scalar, an empty collection or ``{hex: ..}``."""
    return not value or not isinstance(value, dict | list) or list(value) == ["hex"]


def _format_inline(value: Any) -> str:
    """Return a value for the line of its key: ``{hex: ..}`` in braces, names of the schema without
    quotes where YAML allows it, all other values as JSON.
    """
    if isinstance(value, dict) and value:
        return f"{{hex: {_format_quoted(value['hex'])}}}"
    if isinstance(value, Word) and value not in _NO_WORDS and _WORD.match(value):
        return str(value)
    return _format_quoted(value)


MAX_TEXT_BYTES = 1 << 26
"""The bytes of values that are taken. Each takes some hundred bytes of memory as YAML."""
MAX_DEPTH = 100


class BuildError(Exception):
    """The values cannot be built. ``diagnostics`` says why."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics


def build_all(named: NamedCodec, file: str, text: str) -> bytes:
    """Return the encoded values of all documents of a YAML file, joined in order. Raise BuildError
    if the text is larger than 64 MiB, nested deeper than 100 levels or not valid YAML, has no
    document, or values do not fit the layout or are not read back as given. ``file`` is the name in
    diagnostics; no file is read.
    """
    documents, found = yaml_tree.load(file, text, max_bytes=MAX_TEXT_BYTES, deepest=MAX_DEPTH)
    if not documents and not found:
        found = [Diagnostic("", "there are no values", Span(file, 1, 1, 2))]
    if found:
        raise BuildError(found)
    return b"".join(_build_documents(named, documents))


def _build_documents(named: NamedCodec, documents: list[yaml_tree.Mapping]) -> Iterator[bytes]:
    """Yield the bytes of each document. Raise BuildError, with a diagnostic, at the first document
    that is no mapping of fields, selects no layout, does not fit it, or does not read back as
    given.
    """
    for document in documents:
        values = forms.to_python(document)
        try:
            if not isinstance(values, Mapping):  # {hex: ..} is
                found = format_value(values)
                raise Mismatch(f"the top level: a mapping of fields is needed, not {found}")
            plan, codec = named.layout_of_values(values)
            yield built(named.plan, plan, codec, values)
        except Mismatch as error:
            raise BuildError([_build_diagnostic(document, error.reason, error.path, "")]) from None
        except CodecError as error:
            schema = error.where.schema
            help = f"{schema} says what stands here" if schema else ""
            path = error.where.path or ""
            reason = f"{path}: {error.reason}" if path else error.reason
            raise BuildError([_build_diagnostic(document, reason, path, help)]) from None


def _build_diagnostic(document: yaml_tree.Mapping, reason: str, path: str, help: str) -> Diagnostic:
    """Return a diagnostic at the value with a path, or at the document."""
    places = {"values": document.span, **dict(forms.value_places(document, "values"))}
    return Diagnostic("", reason, place_of(places, path) or document.span, help=help)
