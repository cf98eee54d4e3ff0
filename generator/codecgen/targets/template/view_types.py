"""What templates see of types, enums, expressions and dates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from codecgen.targets.template.schema_text import Words


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is declared."""

    file: Annotated[Words, "The YAML file, relative to the schema directory."]
    line: Annotated[int, "Its line."]


@dataclass(frozen=True, slots=True)
class Source:
    """A document to read, such as a proposal."""

    kind: Annotated[str, "Its kind, a key of `links` in the manifest."]
    number: Annotated[int, "Its number."]
    label: Annotated[str, "Both, as `KIP-98`."]
    address: Annotated[Words | None, "Its address on the web, if the manifest says."]


@dataclass(frozen=True, slots=True)
class Since:
    """From when on something is there."""

    release: Annotated[str | None, "The release that brought it."]
    sources: Annotated[tuple[Source, ...], "Where to read about it."]


@dataclass(frozen=True, slots=True)
class Expression:
    """A condition or a value of the expression language, with every name settled."""

    text: Annotated[
        str, "The expression, in the schema language, with no more parentheses than it takes."
    ]
    names: Annotated[tuple[str, ...], "The fields and bits in it, as `attributes.compression`."]


@dataclass(frozen=True, slots=True)
class Value:
    """A value of an enum."""

    name: Annotated[str, "Its name."]
    number: Annotated[int, "Its number."]
    spelled: Annotated[Words, "Its name in the format's own documents."]
    doc: Annotated[Words, "What it means."]
    since: Annotated[Since | None, "When it came."]


@dataclass(frozen=True, slots=True)
class Enum:
    """Names for numbers."""

    name: Annotated[str, "Its name."]
    doc: Annotated[Words, "What it is."]
    module: Annotated[str, "The module that declares it."]
    values: Annotated[tuple[Value, ...], "Its values, in the order of the file."]
    keep_unknown: Annotated[bool, "Whether numbers without a name are values too."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class Bit:
    """A bit, or some side by side, of a field of bits."""

    name: Annotated[str, "Its name."]
    low: Annotated[int, "The lowest bit; 0 is the least significant of the number."]
    high: Annotated[int, "The highest bit, the same for a single one."]
    width: Annotated[int, "How many bits."]
    mask: Annotated[int, "A number with these bits set."]
    enum: Annotated[str | None, "The enum whose values it has."]
    only: Annotated[tuple[str, ...] | None, "The values that may stand here, if not all."]
    reserved: Annotated[bool, "Whether it has no meaning yet."]
    spelled: Annotated[Words, "Its name in the format's own documents."]
    doc: Annotated[Words, "What it means."]
    since: Annotated[Since | None, "When it came."]


@dataclass(frozen=True, slots=True)
class Variant:
    """A codec that has a way of its own here."""

    codec: Annotated[str, "The value of the enum."]
    reads: Annotated[str, "The variant that readers take."]
    writes: Annotated[str, "The variant that writers write."]


@dataclass(frozen=True, slots=True)
class Compression:
    """How a section of elements is compressed."""

    by: Annotated[Expression, "What names the codec."]
    enum: Annotated[str, "The enum of codecs."]
    codecs: Annotated[tuple[str, ...], "The values of it that are allowed here."]
    variants: Annotated[
        tuple[Variant, ...], "The codecs of this version that are not written as usual."
    ]
    limit: Annotated[int, "The most bytes that it may hold decompressed."]


@dataclass(frozen=True, slots=True)
class Type:
    """What the bytes of a field are. Which attributes are set depends on `kind`."""

    kind: Annotated[
        str,
        "`integer`, `varint` (low bits first), `vlq` and `bijective_vlq` (high bits first), `float`, `bool`, `uuid`, `bits`, "
        "`bytes`, `string`, `array`, `layout`, `choice`, `padding` or "
        "`tags` (a number of tagged fields, `count`, and of each the tag, the size and the bytes).",
    ]
    name: Annotated[
        str | None, "The type's name in the schema language (`i32`, `varint`), if it has one."
    ]
    size: Annotated[int | None, "Bytes, where that is fixed; None for numbers of variable length."]
    signed: Annotated[bool, "Whether a number has a sign. Signed varints are zigzag."]
    max_size: Annotated[int | None, "The most bytes that a number of variable length takes."]
    enum: Annotated[str | None, "The enum whose values a number has."]
    only: Annotated[tuple[str, ...] | None, "The values that may stand here, if not all."]
    bits: Annotated[tuple[Bit, ...], "The bits, lowest first (`bits`)."]
    length: Annotated[
        Type | None,
        "The number in front that says how many bytes follow (`bytes`, `string`, `array`, `choice`).",
    ]
    count: Annotated[
        Type | None, "The number in front that says how many elements follow (`array`)."
    ]
    counted_by: Annotated[str | None, "The field before it that counts the elements (`array`)."]
    sized_by: Annotated[
        str | None,
        "The field before it, or the value from outside, that says how many bytes there are (`bytes`, `string`).",
    ]
    plus: Annotated[
        int,
        "By how much `counted_by` or `sized_by` is larger than the number of elements or bytes.",
    ]
    fixed: Annotated[int | None, "How many elements there always are (`array`)."]
    until: Annotated[
        Expression | None, "What holds for the last element, and for no other (`array`)."
    ]
    compact: Annotated[
        bool, "Whether this number stands for one less, and 0 for null (`length` and `count`)."
    ]
    present: Annotated[
        Type | None, "The number in front that says whether a layout is there: 1, or `null`."
    ]
    null: Annotated[
        int | None, "The number of `length`, `count`, `counted_by` or `present` that means null."
    ]
    rest: Annotated[bool, "Whether it takes all that is left of what is around it."]
    zero_terminated: Annotated[bool, "Whether a zero byte ends it (`bytes`, `string`)."]
    padded: Annotated[bool, "Whether zero bytes fill up its size (`bytes`, `string`)."]
    multiple: Annotated[int | None, "What it goes up to a multiple of (`padding`)."]
    element: Annotated[Type | None, "What the elements are (`array`)."]
    layout: Annotated[str | None, "The layout that stands here (`layout`)."]
    choice: Annotated[str | None, "The choice of whose layouts one stands here (`choice`)."]
    given: Annotated[
        Expression | None,
        "The value that decides which of them, where no field of theirs does (`choice`).",
    ]
    version: Annotated[
        Expression | None, "The version in which it is, where it is told (`layout`, `choice`)."
    ]
    unknown: Annotated[bool, "Whether what has no case is bytes (`choice`)."]
    versions: Annotated[
        tuple[str, ...],
        "The versions of it that can stand here, by `name`: one, if that is settled.",
    ]
    at_least: Annotated[int, "The fewest elements (`array`)."]
    nesting: Annotated[
        int | None, "How deep such arrays may lie in each other, if that is limited (`array`)."
    ]
    compression: Annotated[Compression | None, "How the elements are compressed (`array`)."]
