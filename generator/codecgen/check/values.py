"""Check numbers, constants and defaults: they fit the types that hold them."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.check.nulls import check_container_default, check_reach
from codecgen.check.references import check_value_known
from codecgen.diagnostics import Diagnostic, Span, unique
from codecgen.plan.type_text import constant_words
from codecgen.runtime.nouns import count_noun
from codecgen.schema.expression import Data, Expression, Null, Number
from codecgen.schema.lookup import (
    bytes_of,
    enum_uses,
    enum_values,
    integer_range,
    members,
)
from codecgen.schema.model import Enum, Field, Layout, Model
from codecgen.schema.types import (
    ZERO_TERMINATED,
    ArrayType,
    BitsType,
    BytesType,
    PaddingType,
    ScalarType,
)
from codecgen.spans import expression_span, place

MAX_BYTES = (1 << 31) - 1
DEEPEST = 16


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each constant, default, enum value, fixed length, minimum count,
    nesting or size limit that does not fit its type or range, for enums without values or with
    equal numbers, and for impossible sizes in overhead tables.
    """
    for enum in model.enums.values():
        yield from _check_enum(enum)
    for layout in model.layouts.values():
        for f in layout.fields:
            yield from unique(_check_field(f, model))
        yield from _check_enums_fit(layout, model)
        yield from _check_overhead(layout)


def _check_field(f: Field, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each constant, default, ``absent``, fixed length and limit of a field
    or bit member that does not fit. Each type that the field has in some version is checked.
    """
    for one in f.variants():
        yield from _check_numbers(one, model, f.nullable)
        yield from _check_lengths(one)
        yield from _check_limits(one)
        yield from _check_bit_defaults(one, model)


def _check_enum(enum: Enum) -> Iterator[Diagnostic]:
    """Yield a diagnostic if an enum has no values, for each value with the number of an earlier
    one, and for each number outside -2^63 to 2^64 - 1.
    """
    if not enum.values:
        message = f'the enum "{enum.name}" has no values'
        yield Diagnostic("C017", message, enum.span, help="add one: `values: {NAME: 0}`")
    seen: dict[int, tuple[str, Span]] = {}
    for value in enum.values:
        where = place(value, "value")
        if value.value in seen:
            name, first = seen[value.value]
            message = f'"{value.name}" is {value.value}, and so is "{name}"'
            yield Diagnostic("C017", message, where, help=f'"{name}" is at {first}')
        seen.setdefault(value.value, (value.name, value.span))
        if not -(1 << 63) <= value.value < 1 << 64:
            message = f"{value.value} does not fit any integer type"
            yield Diagnostic("C017", message, where)


def _check_enums_fit(layout: Layout, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each field with an enum that is no integer or cannot hold all allowed
    values, or with an empty ``only``. Bit members and unknown enums are not checked here.
    """
    for thing, name, only in enum_uses(layout):
        enum = model.enums.get(name)
        if enum is not None and isinstance(thing, Field):
            yield from unique(_check_enum_fits(thing, enum, only))


def _check_enum_fits(f: Field, enum: Enum, only: tuple[str, ...] | None) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a field with an enum is not an integer, for the first value (of
    ``only``, or all) that its type cannot hold, and if ``only`` is empty. Each type the field has
    in some version is checked.
    """
    for thing in f.variants():
        if not isinstance(thing.type, ScalarType):
            continue
        reach = integer_range(thing.type.name)
        if reach is None:
            message = f"an enum needs an integer type, and {thing.type.name} is not one"
            yield Diagnostic("C017", message, place(thing, "enum"))
            continue
        for value, number in enum_values(enum, only):
            if not reach[0] <= number <= reach[1]:
                message = f'"{value}" is {number}, which does not fit {thing.type.name}'
                yield Diagnostic(
                    "C017", message, place(thing, "type"), help=f"the enum is at {enum.span}"
                )
                break
        if only is not None and not only:
            yield Diagnostic(
                "C017", f'`only` is empty, so "{f.name}" could have no value', place(thing, "only")
            )


def _check_numbers(f: Field, model: Model, nullable: bool) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each mistake in the numbers of a field: a constant that does not fit
    its type or is no value of its enum; a number as ``none`` that does not fit, or for no integer
    or for an enum; a default that does not fit. The default of a field with ``none`` is not
    checked. ``nullable`` says whether the field can be null.
    """
    if f.const is not None and not isinstance(f.const, int):
        yield from _check_word(f, f.const, model)
    elif f.const is not None and (isinstance(f.const, bool) or _has_type(f, "bool")):
        yield from _check_boolean(f)
    for key, number in (("const", f.const), ("none", f.absent)):
        if not isinstance(number, int) or isinstance(number, bool) or _has_type(f, "bool"):
            continue
        where = place(f, key)
        reach = integer_range(f.type.name) if isinstance(f.type, ScalarType) else None
        if reach is None or not isinstance(f.type, ScalarType):
            message, help = '"none" needs an integer type', ""
            if key == "const":
                message, help = f'{number} does not fit "{f.name}"', _describe_fitting(f)
            yield Diagnostic("C017", message, where, help=help)
            continue
        yield from check_reach(number, f.type.name, reach, where)
        enum = model.enums.get(f.type.enum or "")
        if enum is None:
            continue
        if key == "none":
            message = '"none" is only allowed for a number without an enum'
            yield Diagnostic("C011", message, where, help="give the enum a value for it")
        elif number not in {n for _, n in enum_values(enum, f.type.only)}:
            message = f'{number} is not a value of the enum "{enum.name}"'
            yield Diagnostic("C017", message, where, help=f"it is declared at {enum.span}")
    if f.absent is None and f.default is not None:
        yield from _check_default(f, f.default, model, nullable)


def _short_text(value: int | str | bytes) -> str:
    """Return a constant as text, cut to 60 characters with ``...`` at the end."""
    words = constant_words(value)
    return words if len(words) <= 60 else words[:57] + "..."


def _has_type(f: Field, name: str) -> bool:
    """Return whether a field has the scalar type ``name``."""
    return isinstance(f.type, ScalarType) and f.type.name == name


def _check_boolean(f: Field) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless the constant and the type of a field are both boolean. Yield
    nothing without a constant.
    """
    if f.const is not None and not (_has_type(f, "bool") and isinstance(f.const, bool)):
        words = _short_text(f.const)
        yield Diagnostic(
            "C017", f'{words} does not fit "{f.name}"', place(f, "const"), help=_describe_fitting(f)
        )


def _check_word(f: Field, const: str | bytes, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the constant ``const`` does not fit a bytes or text field. For an enum
    field, it must be the name of one of its values; for any other field, an unknown enum, and bytes
    in an enum field, yield a diagnostic always.
    """
    where = place(f, "const")
    if isinstance(f.type, BytesType):
        yield from _check_data(f.type, const, where)
        return
    enum = model.enums.get(f.type.enum or "") if isinstance(f.type, ScalarType) else None
    if enum is None or not isinstance(const, str):
        message = f'{_short_text(const)} does not fit "{f.name}"'
        yield Diagnostic("C017", message, where, help=_describe_fitting(f))
    else:
        yield from check_value_known(const, enum, where)


def _describe_fitting(f: Field) -> str:
    """Return advice on which constants fit the type of a field, such as ``write true or false``;
    for types that take none, a list of what constants are.
    """
    match f.type:
        case ScalarType("bool"):
            return "write true or false"
        case ScalarType(name) if integer_range(name) is not None:
            return f"{name} is a number: 7, 0xff, or the name of a value of its enum"
        case BytesType(text=True):
            return 'write text in quotes: "text"'
        case BytesType():
            return 'write bytes: {hex: 4f62}, or text of ASCII in quotes: "Ob"'
    return "constants are numbers, true or false, bytes and text"


def _check_data(type_: BytesType, value: str | bytes, where: Span) -> Iterator[Diagnostic]:
    """Yield at most one diagnostic if a constant or default is bytes for text, or text for bytes;
    the loader turns ASCII text into bytes before. The same if it is not of the fixed length, longer
    than the length prefix can say, or of the length that means null. Padded and zero-terminated
    values are checked for size and zero bytes instead.
    """
    words = _short_text(value)
    if type_.text and isinstance(value, bytes):
        yield Diagnostic("C017", f"{words} is not text", where, help='write "text" in quotes')
        return
    if not type_.text and isinstance(value, str):
        message = f"{words} is not ASCII, so it could mean several bytes"
        utf8 = f"{{hex: {value.encode('utf-8', 'replace').hex()}}} for UTF-8"
        if all(ord(c) < 256 for c in value):
            utf8 = f"{{hex: {value.encode('latin-1').hex()}}}, or {utf8}"
        yield Diagnostic("C017", message, where, help=f"write {utf8}")
        return
    size = len(value.encode("utf-8", "replace") if isinstance(value, str) else value)
    length = type_.length
    if type_.padded or length == ZERO_TERMINATED:
        yield from _check_zeros(type_, value, where)
        return
    if isinstance(length, int):
        if size != length:
            there = count_noun(size, "byte")
            message = f"{words} has {there}, the field {length}"
            yield Diagnostic("C017", message, where, help=f"write {count_noun(length, 'byte')}")
        return
    reach = integer_range(length) or (0, MAX_BYTES)
    if size > reach[1]:
        message = f"{words} has {count_noun(size, 'byte')}, more than {length} can say ({reach[1]})"
        help = "write a shorter value, or a wider type of the length"
        yield Diagnostic("C017", message, where, help=help)
    elif size == type_.null and length != "compact":
        message = f"{words} has {count_noun(size, 'byte')}, which is the length that means null"
        help = "write a value of another length, or another number under `none`"
        yield Diagnostic("C017", message, where, help=help)


def _check_zeros(type_: BytesType, value: str | bytes, where: Span) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a value of zero-terminated bytes contains a zero byte, or if one of
    padded bytes is longer than the field or ends with a zero byte.
    """
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    if not isinstance(type_.length, int):
        if 0 in data:
            message = f"{_short_text(value)} has a zero byte, which would end it"
            yield Diagnostic("C017", message, where, help="write a value without zero bytes")
    elif len(data) > type_.length:
        message = f"{_short_text(value)} has {count_noun(len(data), 'byte')}, more than the field ({type_.length})"
        help = f"write at most {count_noun(type_.length, 'byte')}"
        yield Diagnostic("C017", message, where, help=help)
    elif data[-1:] == b"\0":
        message = f"{_short_text(value)} ends with a zero byte, which readers take for the zeros that fill the field up"
        yield Diagnostic("C017", message, where, help="write it without zeros at the end")


def _check_default(
    f: Field, default: Expression, model: Model, nullable: bool
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a bit field has a default, an array or layout has one other than null
    (where ``nullable``), bytes or text do not fit the type, or a number is out of range or no
    allowed value of the enum. Defaults that are other expressions are not checked here.
    """
    where = expression_span(model, default)
    if isinstance(f.type, BitsType):
        message = f'"{f.name}" has no default of its own: each of its members may have one'
        help = "move it into a member: `{at: 0-3, default: 1}`"
        yield Diagnostic("C017", message, where, help=help)
    elif not isinstance(f.type, ScalarType | BytesType | PaddingType):
        yield from check_container_default(
            f, where, nullable, is_null=isinstance(default.node, Null)
        )
    elif isinstance(f.type, BytesType) and isinstance(default.node, Data):
        yield from _check_data(f.type, default.node.value, where)
    elif isinstance(f.type, ScalarType) and isinstance(default.node, Number):
        number = default.node.value
        reach = integer_range(f.type.name)
        enum = model.enums.get(f.type.enum or "")
        if enum is not None and number not in {n for _, n in enum_values(enum, f.type.only)}:
            message = f'{number} is not a value of the enum "{enum.name}" that may stand here'
            yield Diagnostic("C017", message, where, help=f"it is declared at {enum.span}")
        elif reach is not None:
            yield from check_reach(number, f.type.name, reach, where)


def _check_bit_defaults(f: Field, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each bit member whose default is a number that is no allowed value of
    its enum or does not fit its bits. Defaults that are not number literals are skipped.
    """
    for m in members(f):
        if m.default is None or not isinstance(m.default.node, Number):
            continue
        number = m.default.node.value
        where = expression_span(model, m.default)
        enum = model.enums.get(m.enum or "")
        if enum is not None and number not in {n for _, n in enum_values(enum, m.only)}:
            message = f'{number} is not a value of the enum "{enum.name}" that may stand here'
            yield Diagnostic("C017", message, where, help=f"it is declared at {enum.span}")
        elif not 0 <= number < 1 << m.width:
            bits = count_noun(m.width, "bit")
            yield Diagnostic("C017", f"{number} does not fit {bits}", where)


def _check_lengths(f: Field) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the fixed length of bytes or text, or of array elements of these, is
    not 1 to ``MAX_BYTES``, or if ``at_least`` of an array is not 0 to ``MAX_BYTES``.
    """
    if isinstance(f.type, ArrayType) and not 0 <= f.type.at_least <= MAX_BYTES:
        message = f"{f.type.at_least} is not a number of elements"
        yield Diagnostic("C017", message, place(f, "at_least"))
    type_ = bytes_of(f)
    if type_ is None:
        return
    inside = "array." if type_ is not f.type else ""
    key = "string" if type_.text else "bytes"
    length = type_.length
    if isinstance(length, int) and not 0 < length <= MAX_BYTES:
        message = f"the length {length} is not from 1 to {MAX_BYTES}"
        yield Diagnostic("C017", message, place(f, f"{inside}{key}"))


def _check_limits(f: Field) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the nesting limit of an array is not 1 to ``DEEPEST``, and if its limit
    of decompressed bytes is not 1 to 2^40. Yield nothing for other fields.
    """
    if not isinstance(f.type, ArrayType):
        return
    if f.type.nesting is not None and not 1 <= f.type.nesting <= DEEPEST:
        message = f"the depth {f.type.nesting} is not from 1 to {DEEPEST}"
        yield Diagnostic("C017", message, place(f, "nesting"))
    compression = f.type.compression
    if compression is not None and not 0 < compression.limit <= 1 << 40:
        message = f"{compression.limit} is not a number of bytes to allow"
        yield Diagnostic("C017", message, place(f, "compressed.limit"))


def _check_overhead(layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each number of messages in an overhead table that is not 1 to 2^20,
    and for each size in bytes that is not 0 to ``MAX_BYTES``. Yield nothing if the layout has no
    such table.
    """
    if layout.overhead is None:
        return
    for size in layout.overhead.batch_sizes:
        if not 0 < size <= 1 << 20:
            yield Diagnostic("C017", f"{size} is not a number of messages", layout.overhead.span)
    for column in layout.overhead.columns:
        for name, size in column.sizes.items():
            if not 0 <= size <= MAX_BYTES:
                where = column.places.get(f"each.{name}", column.layout.span)
                yield Diagnostic("C017", f"{size} is not a number of bytes", where)
