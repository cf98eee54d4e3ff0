"""Build the parts of layouts and views from records: one function for each form, and the literals of fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from codecgen.diagnostics import Span
from codecgen.runtime.checksums import Mask
from codecgen.runtime.sensitive import Sensitive
from codecgen.schema import yaml_tree
from codecgen.schema.expression import Data, Expression, data_text
from codecgen.schema.expression import parse as parse_expression
from codecgen.schema.model import (
    AcceptedBreak,
    Column,
    Derived,
    Example,
    Field,
    Fill,
    Message,
    Overhead,
    OverheadOf,
    Rows,
    Rule,
    Write,
)
from codecgen.schema.reader import Ranged, Reader, Record, Value, parse_hex, parse_integer
from codecgen.schema.scalars import SCALARS
from codecgen.schema.types import (
    ArrayType,
    BitMember,
    BytesType,
    ChoiceType,
    Compression,
    FieldRange,
    Formerly,
    Misprint,
    Reference,
    ScalarType,
    Since,
    Versions,
)


def words(value: object) -> tuple[str, ...]:
    """Return a list of words as a tuple, or ``()`` if the key is missing."""
    return tuple(str(v.value) for v in cast(tuple[Value, ...], value or ()))


def one_or_more(value: object) -> tuple[str, ...]:
    """Return a word, or a list of words, as a tuple; ``()`` if the key is missing."""
    return (value,) if isinstance(value, str) else words(value)


def entries(value: object) -> list[tuple[str, Any]]:
    """Return the (key, value) pairs of a mapping in its order, or ``[]`` if the key is missing."""
    entries = cast(dict[str, Value], value or {})
    return [(key, cast(Any, entry.value)[1].value) for key, entry in entries.items()]


def key_spans(value: object) -> dict[str, Span]:
    """Return the place of each key of a mapping that was read; ``{}`` if the key is missing (None)."""
    return {key: entry.span for key, entry in cast(dict[str, Value], value or {}).items()}


def to_python(node: yaml_tree.Node) -> object:
    """Return the values of an example as Python objects: lists, dicts, str, int, bool, None. Quoted
    text stays str. ``{hex: ..}`` becomes bytes if its digits are valid, else a dict. Unquoted words
    that are no integer, such as ``1.5``, stay str.
    """
    if isinstance(node, yaml_tree.Sequence):
        return [to_python(item) for item in node.items]
    if isinstance(node, yaml_tree.Mapping):
        if [key.text for key, _ in node.entries] == ["hex"]:
            value = node.entries[0][1]
            data = parse_hex(value.text) if isinstance(value, yaml_tree.Scalar) else None
            if data is not None:
                return data
        return {key.text: to_python(child) for key, child in node.entries}
    if not node.plain:
        return node.text
    words: dict[str, object] = {"null": None, "~": None, "": None, "true": True, "false": False}
    if node.text in words:
        return words[node.text]
    number = parse_integer(node.text)
    return node.text if number is None else number


def value_places(node: yaml_tree.Node, path: str) -> Iterator[tuple[str, Span]]:
    """Yield (path, place) for each value inside an example: ``is.records[0].key``. A mapping value
    has the place of its key. ``path`` is the prefix; the root itself is not yielded.
    """
    if isinstance(node, yaml_tree.Mapping):
        for key, child in node.entries:
            yield f"{path}.{key.text}", key.span
            yield from value_places(child, f"{path}.{key.text}")
    elif isinstance(node, yaml_tree.Sequence):
        for i, child in enumerate(node.items):
            yield f"{path}[{i}]", child.span
            yield from value_places(child, f"{path}[{i}]")


def reference(value: object, span: Span) -> Reference:
    """Return the reference to a layout that ``value``, a pair of name and version (None for no
    version), makes.
    """
    name, version = cast(tuple[str, int | None], value)
    return Reference(name, version, span)


def bytes_type(r: Record) -> BytesType:
    """Return the type of a field or element with the key ``string`` or ``bytes``: length, null
    number (``none``), and whether it is padded. A length that is a value from outside, or a field
    plus or minus a number, becomes ``rest``, with the name in ``sized_by``. Nothing is checked.
    """
    key = "string" if "string" in r else "bytes"
    length, null = r[key], cast(int | None, r["none"])
    text, padded = key == "string", bool(r["padded"])
    if isinstance(length, tuple):  # of a field, or from outside
        return BytesType("rest", text, null, padded, sized_by=length[0], plus=-length[1])
    return BytesType(cast(str | int, length), text, null, padded)


def choice_type(r: Record) -> ChoiceType:
    """Return the type of a field or array element that is one of the layouts of a choice, from a
    record that already matches its form; nothing is checked, and missing keys become None. The
    cases stay empty until they are inferred; ``unknown: bytes`` accepts values without a case.
    """
    return ChoiceType(
        choice=str(r["choice"]),
        span=r.at("choice"),
        version=cast(Expression | None, r["version"]),
        length=cast(str | None, r["length"]),
        null=cast(int | None, r["none"]),
        unknown=r["unknown"] == "bytes",
    )


def given_values(value: object) -> tuple[Field, ...]:
    """Return the values that a layout is given, in order, as fields without bytes. A value has the
    type that its word names, the enum of that name if there is no such type, or an array. Return
    ``()`` if the key is missing (None).
    """
    return tuple(
        Field(
            name,
            _given_type(type_),
            entry.span,
            is_given=True,
            places={"enum": cast(Any, entry.value)[1].span},
        )
        for (name, type_), entry in zip(
            entries(value), cast(dict[str, Value], value or {}).values(), strict=True
        )
    )


def _given_type(type_: object) -> ScalarType | ArrayType:
    """Return the type of a value from outside: a scalar for the name of a scalar type, an array for
    a record. Any other word is an ``i64`` with the enum of that name, which need not exist.
    """
    if isinstance(type_, Record):
        element = str(type_["array"])
        if element in ("string", "bytes"):
            return ArrayType(BytesType("i32", text=element == "string"), count="i32")
        return ArrayType(ScalarType(element), count="i32")
    return ScalarType(str(type_)) if type_ in SCALARS else ScalarType("i64", str(type_))


def absent_number(r: Record) -> int | None:
    """Return the number under ``none`` of a field with the key ``type``. Return None if it has no
    ``none``, and for fields without ``type``.
    """
    return cast(int | None, r["none"]) if "type" in r else None


def absent_default(r: Record) -> Expression | None:
    """Return the number that stands for no value, as a default expression, or None if a field has
    no such number.
    """
    number = absent_number(r)
    if number is None:
        return None
    span = r.at("none")
    return parse_expression(str(number), span.file, span.line, span.column)


def field_range(r: Record, key: str) -> FieldRange | None:
    """Return the field range under ``key``, or None if the key is missing. For the word ``rest``
    its first name is empty, which stands for the field after this one, and its end is the end of
    the layout.
    """
    value = r[key]
    if value is None:
        return None
    if isinstance(value, Record):
        return _explicit_range(value)
    return FieldRange("", None, r.at(key))  # "rest": from the next field on


def covered(r: Record) -> tuple[FieldRange, ...]:
    """Return the field ranges that a checksum covers, in order, or ``()`` if the field has no
    ``covers``.
    """
    value = r["covers"]
    if not isinstance(value, tuple):
        one = field_range(r, "covers")
        return () if one is None else (one,)
    return tuple(_explicit_range(cast(Record, part.value)) for part in value)


def _explicit_range(r: Record) -> FieldRange:
    """Return the field range from ``from`` to ``to`` (None for the last field), with the fields
    under ``zero`` that count as zero bytes.
    """
    last = cast(str | None, r["to"])
    return FieldRange(str(r["from"]), last, r.at("from"), words(r["zero"]))


def documentation(r: Record) -> Record:
    """Return the record under the key ``documentation``, with what only pages say of a layout, a
    field or a bit. Return an empty record if the key is missing.
    """
    found = r["documentation"]
    return found if isinstance(found, Record) else Record("documentation", {}, r.span)


def formerly(value: object) -> Formerly | None:
    """Return the former name of a field and the release until which it had it, or None if ``value``
    is no record (the key is missing).
    """
    return Formerly(str(value["name"]), str(value["until"])) if isinstance(value, Record) else None


def misprint(value: object) -> Misprint | None:
    """Return the Misprint in a record: what a document says wrongly about a field, until which
    release and in which versions. Return None if ``value`` is not a record.
    """
    if not isinstance(value, Record):
        return None
    until = cast(str | None, value["until"])
    return Misprint(
        value.text("as"), value.text("doc"), until, cast(Versions | None, value["versions"])
    )


def message(value: object) -> Message | None:
    """Return the Message (role in a request and response protocol) of a record, or None if
    ``value`` is not a record. A header that is given for all versions has the range ``0+``; without
    one ``headers`` is ``()``.
    """
    if not isinstance(value, Record):
        return None
    header = value["header"]
    headers: tuple[tuple[Versions, Reference], ...] = ()
    if isinstance(header, Ranged):
        headers = tuple(
            (versions, reference(one.value, one.span)) for versions, one, _ in header.parts
        )
    elif header is not None:
        headers = ((Versions(0, None), reference(header, value.at("header"))),)
    return Message(
        role=cast(Any, value["role"]),
        key=cast(int | None, value["key"]),
        span=value.span,
        headers=headers,
        key_field=cast(str | None, value["key_field"]),
        version_field=cast(str | None, value["version_field"]),
        unstable=cast(Versions | None, value["unstable"]),
        facts={
            name: tuple(str(word.value) for word in words)
            for name, words in entries(value["facts"])
        },
        places=value.places(),
    )


def sensitive(value: object) -> Sensitive | None:
    """Return which values of a field are secret: all, or those that another field names. None if none is."""
    if isinstance(value, Record):
        return Sensitive(str(value["named_by"]), words(value["endings"]))
    return Sensitive() if value else None


def mask(value: object) -> Mask | None:
    """Return how a checksum is changed before it is stored, or None if it is stored as it is. A
    record gives a rotation and an addend, each 0 if it is missing; a number gives the bits to keep.
    """
    if isinstance(value, Record):
        return Mask(
            rotate_right=cast(int | None, value["rotate_right"]) or 0,
            add=cast(int | None, value["add"]) or 0,
        )
    return None if value is None else Mask(keep=cast(int, value))


def compression(r: Record) -> Compression:
    """Return how an array is compressed: the expression that selects the codec, size limit,
    excluded codecs, variants. Its enum is ``""`` until it is inferred.
    """
    variants = tuple(
        (codec, cast(Versions | None, v["versions"]), str(v["write"]), str(v["read"]))
        for codec, v in entries(r["variants"])
    )
    by = cast(Expression, r["by"])
    limit = cast(int, r["limit"])
    return Compression(by, "", limit, words(r["except"]), variants, r.places())


def declared_names(node: yaml_tree.Node | None) -> set[str]:
    """Return the names that a document declares, from the value of its key: the text of a scalar,
    or the keys of a mapping. Return an empty set for other nodes and for None.
    """
    if isinstance(node, yaml_tree.Scalar):
        return {node.text.strip()}
    return {key.text for key, _ in node.entries} if isinstance(node, yaml_tree.Mapping) else set()


def derived(name: str, r: Record, span: Span, array: tuple[str, Span] | None) -> Derived:
    """Return a derived value from its record ``r``: of a layout, or of each element of ``array``
    (its name and place).
    """
    return Derived(
        name=name,
        type=str(r["type"]),
        value=cast(Expression, r["is"]),
        span=span,
        array=None if array is None else array[0],
        doc=r.text("doc"),
        unit=cast(str | None, r["unit"]),
        versions=cast(Versions | None, r["versions"]),
        since=cast(Since | None, r["since"]),
        places=r.places() if array is None else {**r.places(), "array": array[1]},
    )


def rule(name: str, r: Record, span: Span) -> Rule:
    """Return a rule of a layout from its record ``r``. It has a condition or a path that ascends;
    the other one is None.
    """
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


def accepted_breaks(value: object) -> Iterator[AcceptedBreak]:
    """Yield each breaking change that a manifest accepts, in order, with its rule, its place in the
    schemas, the reason, and its place in the manifest. Yield nothing if the key is missing (None).
    """
    for item in cast(tuple[Value, ...], value or ()):
        r = cast(Record, item.value)
        yield AcceptedBreak(r.text("rule"), r.text("at"), r.text("reason"), r.span)


def fills(value: object) -> Iterator[Fill]:
    """Yield a Fill for each value that builders write into the elements of arrays, in order.
    ``otherwise`` is None for ``index``. Yield nothing if ``value`` is None.
    """
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
    """Return the columns of a view, struct or list of structs, in order. Return ``()`` if ``value``
    is the name of a type, as for a list of plain values, or missing (None).
    """
    if isinstance(value, str):
        return ()  # the type of what is in a list
    spans = key_spans(value)
    return tuple(
        Column(
            name=name,
            type=str(c["type"] or ("struct" if "struct" in c else "list")),
            span=spans[name],
            members=columns(c["struct"] if "struct" in c else c["list"]),
            element=_list_element(c),
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
    """Return the layout or choice of each payload part by name, or ``{}`` if ``of`` is a single name."""
    return {name: str(value) for name, value in entries(of)} if isinstance(of, dict) else {}


def _list_element(c: Record) -> Column | None:
    """Return the column for the elements of a list of plain values, or None for other columns."""
    if not isinstance(c["list"], str):
        return None
    return Column("element", c["list"], c.at("list"))


def rows(r: Record) -> Rows:
    """Return one section of rows of a view. Rows of a layout have ``layout``; rows of payload parts
    have ``parts``, and an empty layout.
    """
    arrays = one_or_more(r["each"])
    return Rows(
        layout="" if isinstance(r["of"], dict) else str(r["of"]),
        each=arrays[0] if arrays else None,
        other_arrays=arrays[1:],
        values={name: cast(Expression, code) for name, code in entries(r["columns"])},
        span=r.span,
        when=cast(Expression | None, r["when"]),
        full_check=cast(Expression | None, r["full_check"]),
        header_only=bool(r["header_only"]),
        write=_make_write(r["write"]),
        parts=parts(r["of"]),
        places=r.places(),
    )


def _make_write(r: object) -> Write | None:
    """Return how rows are written: expressions for fields of the entry and of the item, with bits
    named ``field.bit``. Return None if ``r`` is not a record.
    """
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
    """Return a bit member with its lowest and highest bit. A member without ``at`` (a reserved one)
    has 0 for both until its bits are inferred.
    """
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
        misprint=misprint(documentation(r)["misprint"]),
        places=r.places(),
    )


def example(r: Record) -> Example:
    """Return an example of a layout from its record, with its values as Python objects. ``data`` is
    None if the builder makes the bytes. ``version`` is None if the record names none.
    """
    return Example(
        name=r.text("name"),
        doc=r.text("doc"),
        data=cast(bytes | None, r["hex"]),
        value=to_python(cast(yaml_tree.Node, r["values"])),
        version=cast(int | None, r["version"]),
        since=cast(Since | None, r["since"]),
        span=r.at("name"),
        places=r.places("version", "hex", "build", "values")
        | dict(value_places(cast(yaml_tree.Node, r["values"]), "values")),
    )


def overhead(r: Record) -> Overhead:
    """Return the overhead table of a layout from its record, with columns and batch sizes in order.
    Nothing is checked.
    """
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
    """Return the constant of a field: int, bool, text, or bytes (for ``{hex: ..}`` and ASCII text
    of bytes fields). Return None if the field has none. Report null, an empty value without quotes,
    lists, and mappings other than a valid ``{hex: ..}``, and return None. Nothing checks that the
    constant fits the field.
    """
    node = r["const"]
    if isinstance(node, yaml_tree.Scalar):
        if not node.plain:
            return _encode_text(node.text, r)
        if node.text in ("true", "false"):
            return node.text == "true"
        number = parse_integer(node.text)
        if number is not None:
            return number
        if node.text not in _NOTHING:
            return _encode_text(node.text, r)
    elif isinstance(node, yaml_tree.Mapping):
        return _literal_bytes(reader, node)
    elif node is None:
        return None
    message = "a number, true or false, text, or {hex: ..} is expected"
    reader.report("C006", message, r.at("const"))
    return None


def default(reader: Reader, r: Record) -> Expression | None:
    """Return the default of a field as an expression. Return None if it has none or it is ``[]``
    for an array or ``{}`` for a tagged layout; report these for other fields, and values that are
    invalid, and return None. Nothing checks that the default fits the field.
    """
    node = r["default"]
    if isinstance(node, yaml_tree.Sequence):
        # The empty list, which is what a builder takes for arrays anyway.
        if node.items or "array" not in r:
            message = "the empty list is the only list that can be a default, and only of an array"
            reader.report("C017", message, node.span, help="take out the default")
        return None
    value: str | bytes | None = None
    if isinstance(node, yaml_tree.Mapping) and not node.entries:
        if "tag" not in r or not ("layout" in r or "fields" in r):
            message = "`default: {}` is only allowed for layouts under `tagged`"
            reader.report("C017", message, node.span, help="take out the default")
        return None
    if isinstance(node, yaml_tree.Mapping):
        value = _literal_bytes(reader, node)
    elif isinstance(node, yaml_tree.Scalar):
        is_text = "bytes" in r or "string" in r
        if node.plain or not is_text:
            help = "if this is meant as text, write it in quotes" if is_text else ""
            code = reader.read_code(node, help)
            return None if code is None else code.value  # type: ignore[return-value]
        value = _encode_text(node.text, r)
    if value is None:
        return None
    span = r.at("default")
    return Expression(Data(value), data_text(value), span.file, span.line, span.column)


def is_filled(r: Record) -> bool:
    """Return whether the record of a field has the default ``{}``: all fields of the layout that it
    holds have their own defaults.
    """
    node = r["default"]
    return isinstance(node, yaml_tree.Mapping) and not node.entries


def _encode_text(text: str, r: Record) -> str | bytes:
    """Return text as bytes if the field holds bytes and the text is ASCII, and unchanged otherwise."""
    return text.encode("ascii") if "bytes" in r and text.isascii() else text


def _literal_bytes(reader: Reader, node: yaml_tree.Mapping) -> bytes | None:
    """Return the bytes of ``{hex: ..}``. Report other keys and bad hexadecimal digits, and return
    None.
    """
    message, help = "bytes are {hex: 0123}, with one key", ""
    if len(node.entries) == 1:
        key, child = node.entries[0]
        data = parse_hex(child.text) if isinstance(child, yaml_tree.Scalar) else None
        if key.text == "hex" and data is not None:
            return data
        if key.text != "hex":
            message = f'bytes have the key "hex", not "{key.text}"'
            help = "write {hex: 0123}"
        else:
            found = f'"{child.text}"' if isinstance(child, yaml_tree.Scalar) else "the value"
            message = f"{found} is not an even number of hexadecimal digits"
            help = "two digits are one byte: {hex: 0123}"
    reader.report("C006", message, node.span, help=help)
    return None
