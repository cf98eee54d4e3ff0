"""Constants and defaults as a person writes them: numbers, words, text, bytes."""

from __future__ import annotations

from codecgen.schema import yaml_tree
from codecgen.schema.expression import Data, Expression, data_text
from codecgen.schema.reader import Reader, Record, hex_bytes, integer

Constant = int | str | bytes
"""A number (also true or false), text or the name of an enum's value, bytes."""

_NOTHING = ("", "null", "~")


def constant(reader: Reader, r: Record) -> Constant | None:
    """The constant of a field; None when there is none, and after a report."""
    node = r["const"]
    if isinstance(node, yaml_tree.Scalar):
        if not node.plain:
            return _as_held(node.text, r)
        if node.text in ("true", "false"):
            return node.text == "true"
        number = integer(node.text)
        if number is not None:
            return number
        if node.text not in _NOTHING:
            return _as_held(node.text, r)
    elif isinstance(node, yaml_tree.Mapping):
        return _hex(reader, node)
    elif node is None:
        return None
    message = "a number, true or false, text, or {hex: ..} is expected"
    reader.report("C006", message, r.at("const"))
    return None


def default(reader: Reader, r: Record) -> Expression | None:
    """What is written when no value is given; None when that is not said, and after a report."""
    node = r["default"]
    if isinstance(node, yaml_tree.Sequence):
        # The empty list, which is what a builder takes for arrays anyway.
        if node.items or "array" not in r:
            message = "the empty list is the only list that can be a default, and only of an array"
            reader.report("C017", message, node.span)
        return None
    value: str | bytes | None = None
    if isinstance(node, yaml_tree.Mapping) and not node.entries:
        if "tag" not in r or not ("layout" in r or "fields" in r):
            message = "no fields at all are a default of tagged layouts only"
            reader.report("C017", message, node.span)
        return None
    if isinstance(node, yaml_tree.Mapping):
        value = _hex(reader, node)
    elif isinstance(node, yaml_tree.Scalar):
        if node.plain or not ("bytes" in r or "string" in r):
            code = reader.code(node)
            return None if code is None else code.value  # type: ignore[return-value]
        value = _as_held(node.text, r)
    if value is None:
        return None
    span = r.at("default")
    return Expression(Data(value), data_text(value), span.file, span.line, span.column)


def is_filled(r: Record) -> bool:
    """Whether the default of a layout is the one whose fields all hold their defaults: ``{}``."""
    node = r["default"]
    return isinstance(node, yaml_tree.Mapping) and not node.entries


def _as_held(text: str, r: Record) -> str | bytes:
    """Text as a field holds it. In bytes it is ASCII: other text is left, for the checks to say so."""
    return text.encode("ascii") if "bytes" in r and text.isascii() else text


def _hex(reader: Reader, node: yaml_tree.Mapping) -> bytes | None:
    child = node.get("hex")
    if len(node.entries) == 1 and isinstance(child, yaml_tree.Scalar):
        data = hex_bytes(child.text)
        if data is not None:
            return data
    message = "{hex: ..} with an even number of hexadecimal digits is expected"
    reader.report("C006", message, node.span)
    return None
