"""Describe types and sizes of fields in words."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.plan.layouts import FieldPlan
from codecgen.plan.size_bounds import scalar_bounds
from codecgen.schema.expression import data_text
from codecgen.schema.model import Field
from codecgen.schema.scalars import COMPACT, SCALARS, is_integer, is_varint
from codecgen.schema.types import (
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    ChoiceType,
    Element,
    FieldType,
    PaddingType,
    Reference,
    ScalarType,
    StructType,
    TagsType,
)

_NAMES = {
    "f32": "float32",
    "f64": "float64",
    "bool": "boolean",
    "compact": "compact length",
    "uvarint": "unsigned varint",
    "uvarlong": "unsigned varlong",
    "vlq32": "VLQ of 32 bits",
    "vlq64": "VLQ of 64 bits",
    "bijective_vlq32": "bijective VLQ of 32 bits",
    "bijective_vlq64": "bijective VLQ of 64 bits",
}


def format_number(value: int) -> str:
    """Return a number as text, with a blank between groups of three digits from 100 000 on."""
    return f"{value:,}".replace(",", " ") if abs(value) >= 100_000 else str(value)


def format_byte_count(n: int) -> str:
    """Return a number of bytes in words: ``1 byte``, ``61 bytes``, ``268 435 456 bytes (256 MiB)``.
    The unit in parentheses is added only if the number is a multiple of KiB, MiB or GiB.
    """
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size and n % size == 0:
            return f"{format_number(n)} bytes ({n // size} {unit})"
    return "1 byte" if n == 1 else f"{format_number(n)} bytes"


def constant_words(value: int | str | bytes) -> str:
    """Return the constant of a field as text: ``7``, ``true``, ``"text"``, ``hex 4f62``."""
    if isinstance(value, int):
        return str(value).lower()
    return data_text(value)


def scalar_name(name: str) -> str:
    """Return the usual name of a scalar type: ``int64``, ``uint32``, ``boolean``. Names without
    another form, unknown ones included, are returned unchanged.
    """
    if is_integer(name):
        return f"{'int' if SCALARS[name].signed else 'uint'}{SCALARS[name].bits}"
    return _NAMES.get(name, name)


def scalar_words(name: str) -> str:
    """Return a scalar type in words: ``int64``, ``varint (zigzag, at most 5 bytes)``; compact
    lengths as unsigned varints of one more.
    """
    words = scalar_name(name)
    if name == COMPACT.name:
        return f"{words} (unsigned varint of one more)"
    if is_varint(name):
        zigzag = "zigzag, " if SCALARS[name].signed else ""
        return f"{words} ({zigzag}at most {SCALARS[name].max_size} bytes)"
    return words


def given_type_words(f: Field) -> str:
    """Return the type of a value that a layout gets from outside in words: ``a value of color``,
    ``int32``, ``array of strings``.
    """
    if isinstance(f.type, ArrayType):
        element = f.type.element
        if isinstance(element, BytesType):
            return f"array of {'strings' if element.text else 'bytes'}"
        assert isinstance(element, ScalarType)
        return f"array of {scalar_words(element.name)}"
    assert isinstance(f.type, ScalarType)
    return f"a value of {f.type.enum}" if f.type.enum is not None else scalar_words(f.type.name)


def type_words(type_: FieldType) -> str:
    """Return a type in words, such as ``int64`` or ``array of record with int32 count``; layouts
    and choices by name.
    """
    return "".join(map(str, type_pieces(type_)))


def type_pieces(type_: FieldType) -> Iterator[str | Reference]:
    """Yield the words of a type in order, to be joined without separators; layouts and choices come
    as references for links. Example: ``array of ``, reference, `` with int32 count``.
    """
    match type_:
        case ScalarType(name):
            yield scalar_words(name)
        case BitsType(base):
            yield f"{scalar_name(base)}, bits"
        case BytesType():
            yield _bytes_words(type_)
        case PaddingType(multiple):
            yield f"zero bytes to the next multiple of {multiple}"
        case ArrayType(element, count, _, length):
            yield "array of "
            if isinstance(element, ChoiceType):
                yield from _choice_pieces(element)
            else:
                yield element if isinstance(element, Reference) else element_words(element)
            if isinstance(element, BytesType | ChoiceType) and (
                count is not None or length is not None
            ):
                yield ","
            if type_.fixed is not None:
                yield f", {format_number(type_.fixed)} of them"
            if count is not None:
                yield f" with {scalar_name(count).replace(' length', '')} count"
            if length is not None:
                yield f" with {scalar_name(length)} length in bytes"
            if type_.to_the_end:
                yield " to the end"
            if type_.until is not None:
                yield f" up to one for which {type_.until}"
            if type_.null is not None:
                yield f", null as {type_.null}"
        case TagsType():
            yield "tagged fields"
        case StructType(ref, present, null):
            yield ref
            if present is not None:
                yield f" after {scalar_name(present)} 1, or null as {null}"
            yield from _version_words(type_)
        case ChoiceType():
            yield from _choice_pieces(type_)


_FEW = 3
"""So many cases of a choice are named where a field is one of them."""


def _choice_pieces(type_: ChoiceType) -> Iterator[str | Reference]:
    """Yield the words of a choice: its name, its layouts if they are at most three, its
    discriminator, version, length prefix, null, and whether unknown cases are bytes. References
    stand for names.
    """
    yield "one of "
    yield Reference(type_.choice, None, type_.span)
    if len(type_.layouts) <= _FEW:
        for i, ref in enumerate(type_.layouts):
            yield ", " if i else " ("
            yield ref
        yield ")"
    if type_.given is not None:
        yield f", by {type_.given}"
    elif type_.by is not None:
        yield f", by its {type_.by}"
    yield from _version_words(type_)
    if type_.length is not None:
        yield f", with {scalar_name(type_.length)} length in bytes"
    if type_.null is not None:
        yield f", null as {type_.null}"
    if type_.unknown:
        yield ", or bytes where no case is known"


def _version_words(type_: StructType | ChoiceType) -> Iterator[str]:
    """Yield ``, in the version that .. says`` if an expression gives the version of the held
    layout, else nothing.
    """
    if type_.version is not None:
        yield f", in the version that {type_.version} says"


def _bytes_words(type_: BytesType) -> str:
    """Return a bytes or text type in words with its length and null: ``bytes with int32 length,
    null as -1``, ``text (UTF-8) up to a zero byte``, ``16 bytes``.
    """
    what = "text (UTF-8)" if type_.text else "bytes"
    match type_.length:
        case int(length):
            tail = ", filled up with zeros" if type_.padded else ""
            words = (
                f"text (UTF-8) of {format_byte_count(length)}"
                if type_.text
                else format_byte_count(length)
            )
            return words + tail
        case "zero_terminated":
            return f"{what} up to a zero byte"
        case "rest" | "from_outside" if type_.sized_by is not None:
            return f"{what}, {type_.sized_by}{amount_words(type_)} of them"
        case "rest":
            return f"{what}, all that is left"
        case "compact":
            return f"{what} with compact length" + (", null as 0" if type_.null is not None else "")
        case length:
            tail = "" if type_.null is None else f", null as {type_.null}"
            return f"{what} with {scalar_name(length)} length{tail}"


def amount_words(type_: ArrayType | BytesType) -> str:
    """Return what is added to the field that counts an array or bytes, ``" - 1"`` or ``" + 2"``; ``""`` if nothing is."""
    return f" {'-' if type_.plus > 0 else '+'} {abs(type_.plus)}" if type_.plus else ""


def element_words(element: Element) -> str:
    """Return the type of an array element in words: ``int32``, ``text (UTF-8) with int16 length``,
    the name of a layout, or ``one of`` with the name of a choice.
    """
    if isinstance(element, BytesType):
        return _bytes_words(element)
    if isinstance(element, ChoiceType):
        return f"one of {element.choice}"
    return scalar_name(element.name) if isinstance(element, ScalarType) else str(element)


def range_words(low: int, high: int | None) -> str:
    """Return a range of numbers in words: ``4``, ``1 to 5``, or ``1 or more`` if ``high`` is None."""
    return str(low) if low == high else f"{low} to {high}" if high is not None else f"{low} or more"


def size_words(fp: FieldPlan) -> str:
    """Return the size of a field in bytes in words: ``8``, ``1 to 5``, ``the rest``. Prefixes come
    first: ``4, + length``, for arrays ``4, + elements``, for structs and choices ``4, + what it
    holds``. Arrays without prefix are ``elements``, bytes up to a zero byte ``1 or more``. Structs
    and choices without prefix, and bytes with a length from outside, are ``varies``. Sections of
    tagged fields are ``1 to 5, + tagged fields``.
    """
    if fp.size is not None:
        return str(fp.size)
    match fp.field.type:
        case ScalarType(name) | BitsType(name):
            return range_words(*scalar_bounds(name))
        case BytesType(prefix=str(prefix)):
            return f"{range_words(*scalar_bounds(prefix))}, + length"
        case BytesType("zero_terminated"):
            return "1 or more"
        case BytesType("from_outside"):
            return "varies"
        case BytesType():
            return "the rest"
        case PaddingType(multiple):
            return range_words(0, multiple - 1)
        case ArrayType(_, count, _, length):
            prefixes = [range_words(*scalar_bounds(n)) for n in (count, length) if n]
            return ", + ".join([*prefixes, "elements"])
        case TagsType():
            return f"{range_words(*scalar_bounds('uvarint'))}, + tagged fields"
        case StructType(_, str(present)) | ChoiceType(length=str(present)):
            return f"{range_words(*scalar_bounds(present))}, + what it holds"
        case _:
            return "varies"


# ---------------------------------------------------------------- relations


def checksum_words(f: Field) -> str:
    """Return the algorithm and the mask of a checksum: ``crc32 & 0x7fffffff``, or ``crc32c >>> 15 + 0xa282ead8``."""
    words = f"{f.checksum}"
    if f.mask is not None:
        words += f" >>> {f.mask.rotate_right}" if f.mask.rotate_right else ""
        words += f" + {f.mask.add:#x}" if f.mask.add else ""
        words += "" if f.mask.keep is None else f" & {f.mask.keep:#x}"
    return words


def bits_words(m: BitMember) -> str:
    """Return the position of bits: ``bit 3`` or ``0-2``."""
    return f"bit {m.low}" if m.low == m.high else f"{m.low}-{m.high}"
