"""Parts of layouts, from what the reader gives: one function for each small form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from codecgen.runtime.sensitive import Sensitive
from codecgen.schema import yaml_tree
from codecgen.schema.expression import Data, Expression, data_text
from codecgen.schema.expression import parse as parse_expression
from codecgen.schema.model import (
    Column,
    Derived,
    Example,
    Fill,
    Overhead,
    OverheadOf,
    Rows,
    Rule,
    Write,
)
from codecgen.schema.reader import Reader, Record, Value, hex_bytes, integer
from codecgen.schema.types import (
    BitMember,
    BytesType,
    ChoiceType,
    Compression,
    FieldRange,
    Formerly,
    Misprint,
    Reference,
    Since,
    Span,
    Versions,
)


def words(value: object) -> tuple[str, ...]:
    return tuple(str(v.value) for v in cast(tuple[Value, ...], value or ()))


def entries(value: object) -> list[tuple[str, Any]]:
    """The entries of a MapOf: (key, value)."""
    entries = cast(dict[str, Value], value or {})
    return [(key, cast(Any, entry.value)[1].value) for key, entry in entries.items()]


def key_spans(value: object) -> dict[str, Span]:
    return {key: entry.span for key, entry in cast(dict[str, Value], value or {}).items()}


def plain(node: yaml_tree.Node) -> object:
    """Example values as Python: ``{hex: ..}`` is bytes, when it has hexadecimal digits; text stays text (a bytes
    field takes it as UTF-8)."""
    if isinstance(node, yaml_tree.Sequence):
        return [plain(item) for item in node.items]
    if isinstance(node, yaml_tree.Mapping):
        if [key.text for key, _ in node.entries] == ["hex"]:
            value = node.entries[0][1]
            data = hex_bytes(value.text) if isinstance(value, yaml_tree.Scalar) else None
            if data is not None:
                return data
        return {key.text: plain(child) for key, child in node.entries}
    if not node.plain:
        return node.text
    words: dict[str, object] = {"null": None, "~": None, "": None, "true": True, "false": False}
    if node.text in words:
        return words[node.text]
    number = integer(node.text)
    return node.text if number is None else number


def value_places(node: yaml_tree.Node, path: str) -> Iterator[tuple[str, Span]]:
    """Where the values of an example stand: ``is.records[0].key`` is the place of that key."""
    if isinstance(node, yaml_tree.Mapping):
        for key, child in node.entries:
            yield f"{path}.{key.text}", key.span
            yield from value_places(child, f"{path}.{key.text}")
    elif isinstance(node, yaml_tree.Sequence):
        for i, child in enumerate(node.items):
            yield f"{path}[{i}]", child.span
            yield from value_places(child, f"{path}[{i}]")


def reference(value: object, span: Span) -> Reference:
    name, version = cast(tuple[str, int | None], value)
    return Reference(name, version, span)


def bytes_type(r: Record) -> BytesType:
    """Bytes or text, of a field or of the elements of an array."""
    key = "string" if "string" in r else "bytes"
    length, null = cast(str | int, r[key]), cast(int | None, r["null"])
    return BytesType(length, key == "string", null, bool(r["padded"]))


def choice_type(r: Record) -> ChoiceType:
    """One of the layouts of a choice, in the place of a field or as the elements of an array."""
    return ChoiceType(
        choice=str(r["choice"]),
        span=r.at("choice"),
        given=cast(Expression | None, r["given"]),
        version=cast(Expression | None, r["version"]),
        length=cast(str | None, r["length"]),
        null=cast(int | None, r["null"]),
        unknown=r["unknown"] == "bytes",
    )


def absent_default(r: Record) -> Expression | None:
    if "absent" not in r:
        return None
    span = r.at("absent")
    return parse_expression(str(r["absent"]), span.file, span.line, span.column)


def field_range(r: Record, key: str) -> FieldRange | None:
    value = r[key]
    if value is None:
        return None
    if isinstance(value, Record):
        return _field_range(value)
    return FieldRange("", None, r.at(key))  # "rest": from the next field on


def covered(r: Record) -> tuple[FieldRange, ...]:
    """The ranges that a checksum is taken over."""
    value = r["covers"]
    if not isinstance(value, tuple):
        one = field_range(r, "covers")
        return () if one is None else (one,)
    return tuple(_field_range(cast(Record, part.value)) for part in value)


def _field_range(r: Record) -> FieldRange:
    last = cast(str | None, r["to"])
    return FieldRange(str(r["from"]), last, r.at("from"), words(r["zero"]))


def formerly(value: object) -> Formerly | None:
    return Formerly(str(value["name"]), str(value["until"])) if isinstance(value, Record) else None


def misprint(value: object) -> Misprint | None:
    if not isinstance(value, Record):
        return None
    until = cast(str | None, value["until"])
    return Misprint(
        value.text("as"), value.text("doc"), until, cast(Versions | None, value["versions"])
    )


def sensitive(value: object) -> Sensitive | None:
    if isinstance(value, Record):
        return Sensitive(str(value["named_by"]), words(value["endings"]))
    return Sensitive() if value else None


def compression(r: Record) -> Compression:
    variants = tuple(
        (codec, cast(Versions | None, v["versions"]), str(v["write"]), str(v["read"]))
        for codec, v in entries(r["variants"])
    )
    by = cast(Expression, r["by"])
    limit = cast(int, r["limit"])
    return Compression(by, "", limit, words(r["except"]), variants, r.places())


def key_names(node: yaml_tree.Node | None) -> set[str]:
    """The names that a document declares."""
    if isinstance(node, yaml_tree.Scalar):
        return {node.text.strip()}
    return {key.text for key, _ in node.entries} if isinstance(node, yaml_tree.Mapping) else set()


def derived(name: str, r: Record, span: Span, array: str | None) -> Derived:
    return Derived(
        name=name,
        type=str(r["type"]),
        value=cast(Expression, r["is"]),
        span=span,
        array=array,
        doc=r.text("doc"),
        unit=cast(str | None, r["unit"]),
        versions=cast(Versions | None, r["versions"]),
        since=cast(Since | None, r["since"]),
        places=r.places(),
    )


def rule(name: str, r: Record, span: Span) -> Rule:
    return Rule(
        name=name,
        about=str(r["about"]),
        span=span,
        condition=cast(Expression | None, r["is"]),
        ascending=cast(Expression | None, r["ascending"]),
        doc=r.text("doc"),
        versions=cast(Versions | None, r["versions"]),
        since=cast(Since | None, r["since"]),
        places=r.places(),
    )


def fills(value: object) -> Iterator[Fill]:
    """Return what builders put into the elements of arrays."""
    for array, fields in entries(value):
        for name, r in entries(fields):
            yield Fill(
                array=array,
                target=name,
                given=str(r["from"]),
                base=str(r["less"]),
                otherwise=None if r["otherwise"] == "index" else cast(int, r["otherwise"]),
                span=key_spans(fields)[name],
                places=r.places(),
            )


def columns(value: object) -> tuple[Column, ...]:
    if isinstance(value, str):
        return ()  # the type of what is in a list
    spans = key_spans(value)
    return tuple(
        Column(
            name=name,
            type=str(c["type"] or ("struct" if "struct" in c else "list")),
            span=spans[name],
            members=columns(c["struct"] if "struct" in c else c["list"]),
            element=_element(c),
            nullable=bool(c["nullable"]),
            on_request=bool(c["on_request"]),
            unit=cast(str | None, c["unit"]),
            doc=c.text("doc"),
            default=cast(Expression | None, c["default"]),
            places=c.places(),
        )
        for name, c in entries(value)
    )


def parts(of: object) -> dict[str, str]:
    """What each part of a payload is, or of rows of it: a choice or a layout by its name."""
    return {name: str(value) for name, value in entries(of)} if isinstance(of, dict) else {}


def _element(c: Record) -> Column | None:
    """What is in the lists of a column, where that is no struct."""
    if not isinstance(c["list"], str):
        return None
    return Column("element", c["list"], c.at("list"))


def rows(r: Record) -> Rows:
    return Rows(
        layout="" if isinstance(r["of"], dict) else str(r["of"]),
        each=cast(str | None, r["each"]),
        values={name: cast(Expression, code) for name, code in entries(r["columns"])},
        span=r.span,
        when=cast(Expression | None, r["when"]),
        full_check=cast(Expression | None, r["full_check"]),
        header_only=bool(r["header_only"]),
        write=_write(r["write"]),
        parts=parts(r["of"]),
        places=r.places(),
    )


def _write(r: object) -> Write | None:
    if not isinstance(r, Record):
        return None
    places: dict[str, Span] = {}
    parts: dict[str, dict[str, Expression]] = {"entry": {}, "item": {}}
    for part, out in parts.items():
        spans = key_spans(r[part])
        for name, value in entries(r[part]):
            if isinstance(value, Expression):
                out[name] = value
                places[f"{part}.{name}"] = spans[name]
                continue
            inner = key_spans(value)
            for member, code in entries(value):
                out[f"{name}.{member}"] = code
                places[f"{part}.{name}.{member}"] = inner[member]
    return Write(parts["entry"], parts["item"], r.span, places)


def bit(name: str, r: Record, span: Span) -> BitMember:
    low, high = cast(tuple[int, int], r["at"] or (0, 0))
    return BitMember(
        name=name,
        low=low,
        high=high,
        span=span,
        doc=r.text("doc"),
        enum=cast(str | None, r["enum"]),
        only=words(r["only"]) if "only" in r else None,
        reserved="reserved" in r,
        versions=cast(Versions | None, r["versions"]),
        since=cast(Since | None, r["since"]),
        spelled=cast(str | None, r["spelled"]),
        default=cast(Expression | None, r["default"]),
        misprint=misprint(r["misprint"]),
        places=r.places(),
    )


def example(r: Record) -> Example:
    return Example(
        name=r.text("name"),
        doc=r.text("doc"),
        data=cast(bytes | None, r["hex"]),
        value=plain(cast(yaml_tree.Node, r["values"])),
        version=cast(int | None, r["version"]),
        since=cast(Since | None, r["since"]),
        span=r.at("name"),
        places=r.places("version", "hex", "build", "values")
        | dict(value_places(cast(yaml_tree.Node, r["values"]), "values")),
    )


def overhead(r: Record) -> Overhead:
    columns = []
    for value in cast(tuple[Value, ...], r["columns"]):
        c = cast(Record, value.value)
        columns.append(
            OverheadOf(
                title=c.text("title"),
                layout=reference(c["layout"], c.at("layout")),
                sizes={key: int(size) for key, size in entries(c["each"])},
                array=cast(str | None, c["array"]),
                number=cast(str | None, c["number"]),
                places=c.places(),
            )
        )
    sizes = tuple(int(cast(int, v.value)) for v in cast(tuple[Value, ...], r["sizes"]))
    return Overhead(r.text("doc"), sizes, tuple(columns), r.text("notes"), r.span)


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
        return _literal_bytes(reader, node)
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
        value = _literal_bytes(reader, node)
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


def _literal_bytes(reader: Reader, node: yaml_tree.Mapping) -> bytes | None:
    child = node.get("hex")
    if len(node.entries) == 1 and isinstance(child, yaml_tree.Scalar):
        data = hex_bytes(child.text)
        if data is not None:
            return data
    message = "{hex: ..} with an even number of hexadecimal digits is expected"
    reader.report("C006", message, node.span)
    return None
