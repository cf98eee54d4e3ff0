"""The model of a schema directory: frozen dataclasses that keep the place in the YAML of what they hold.

``span`` is the place of a thing's name; ``places`` has the places of the values of its keys: ``enum``, ``only.1``
(the second item of a list), ``compressed.limit`` (a key within).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from codecgen.schema.expression import Expression


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a YAML file. ``file`` is relative to the schema directory; lines and columns count from 1."""

    file: str
    line: int
    column: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of format versions, both ends included; ``high`` None is open."""

    low: int
    high: int | None

    def __contains__(self, version: int | None) -> bool:
        if version is None:
            return True
        return self.low <= version and (self.high is None or version <= self.high)

    def __str__(self) -> str:
        if self.high is None:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


@dataclass(frozen=True, slots=True)
class Since:
    """From when on something exists: a release of the release line, and documents to read (``("kip", (98,))``)."""

    release: str | None = None
    references: tuple[tuple[str, tuple[int, ...]], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Formerly:
    """A name that something had before release ``until``."""

    name: str
    until: str


@dataclass(frozen=True, slots=True)
class Misprint:
    """What a document about the format says wrongly: ``shown`` instead of the truth, before release ``until``."""

    shown: str
    doc: str
    until: str | None = None
    versions: Versions | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive fields, both ends included; ``last`` None reaches to the end of the layout."""

    first: str
    last: str | None
    span: Span


# ---------------------------------------------------------------- types of fields

INTEGERS: Mapping[str, tuple[int, bool]] = {
    "i8": (1, True),
    "i16": (2, True),
    "i32": (4, True),
    "i64": (8, True),
    "u8": (1, False),
    "u16": (2, False),
    "u32": (4, False),
    "u64": (8, False),
}
"""Fixed-width integers: name -> (bytes, signed)."""

VARINTS: Mapping[str, tuple[int, bool]] = {
    "varint": (32, True),
    "varlong": (64, True),
    "uvarint": (32, False),
    "uvarlong": (64, False),
}
"""Variable-length integers: name -> (bits, signed). The signed ones are zigzag."""

SCALARS = (*INTEGERS, *VARINTS, "f64", "bool", "uuid")
LENGTHS = (*INTEGERS, *VARINTS, "compact")
"""What can hold a length or a count. ``compact`` is an unsigned varint of the number plus one; 0 is null."""


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A number, a boolean or a uuid; an integer may stand for a value of an enum."""

    name: str
    enum: str | None = None
    only: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class BitMember:
    """Bits ``low``..``high`` (least significant first). ``reserved`` members take the bits that nobody else has."""

    name: str
    low: int
    high: int
    span: Span
    doc: str = ""
    enum: str | None = None
    only: tuple[str, ...] | None = None
    reserved: bool = False
    versions: Versions | None = None
    since: Since | None = None
    spelled: str | None = None
    default: Expression | None = None
    misprint: Misprint | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    @property
    def width(self) -> int:
        return self.high - self.low + 1


@dataclass(frozen=True, slots=True)
class BitsType:
    """An integer whose bits have meanings of their own."""

    base: str
    members: tuple[BitMember, ...]


@dataclass(frozen=True, slots=True)
class BytesType:
    """Bytes, or text in UTF-8.

    ``length`` is the type of the length before them, a number for a fixed size, or ``"rest"`` for all
    that is left. ``null`` is the length that means null (``None``: null is not allowed).
    """

    length: str | int
    text: bool = False
    null: int | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """A layout, perhaps in one version (``message@0``)."""

    layout: str
    version: int | None
    span: Span

    def __str__(self) -> str:
        return self.layout if self.version is None else f"{self.layout}@{self.version}"


@dataclass(frozen=True, slots=True)
class Compression:
    """A run that is compressed by the codec that a field before it names.

    ``variants`` has (codec, versions, name for writing, name for reading); ``refuses`` names the codecs
    that this layout does not allow.
    """

    by: Expression
    enum: str
    limit: int
    refuses: tuple[str, ...] = ()
    variants: tuple[tuple[str, Versions | None, str, str], ...] = ()
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Elements one after the other.

    Their number is in front (``count``), in another field that ``counts`` them (``counted_by``), or they
    reach to the end of the run (neither). ``length`` is a length in bytes in front of them all.
    """

    element: Reference | ScalarType
    count: str | None = None
    counted_by: str | None = None
    length: str | None = None
    compression: Compression | None = None
    nesting: int | None = None
    at_least: int = 0


@dataclass(frozen=True, slots=True)
class StructType:
    """Another layout in the place of a field."""

    layout: Reference


FieldType = ScalarType | BitsType | BytesType | ArrayType | StructType

FREEDOMS: Mapping[str, str] = {
    "overlong_varints": "varints in more bytes than they need, and with unused bits set in the last byte",
    "negative_null": "any negative length for null",
    "invalid_utf8": "text that is not UTF-8; what is wrong in it reads as U+FFFD",
    "trailing_bytes": "bytes after the last field, which are passed over",
    "bytes_after_none": "bytes where the count says that there are no elements",
    "truncated_tail": "a last element that is cut off, which is passed over",
    "mixed_versions": "elements of another version than that of the layout around them",
    "unchecked_elements": "elements whose own checksum is wrong",
}
"""What lenient readers take and strict ones refuse: name -> what it is. Writers never write any of it."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a layout, in the order of the bytes."""

    name: str
    type: FieldType
    span: Span
    doc: str = ""
    versions: Versions | None = None
    since: Since | None = None
    when: Expression | None = None
    default: Expression | None = None
    none: int | None = None
    const: int | None = None
    is_version: bool = False
    measures: Run | None = None
    counts: str | None = None
    checksum: str | None = None
    covers: Run | None = None
    valid: Expression | None = None
    refuse: Expression | None = None
    accepts: frozenset[str] = frozenset()
    unit: str | None = None
    spelled: str | None = None
    formerly: Formerly | None = None
    misprint: Misprint | None = None
    hidden: bool = False
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Derived:
    """A value worked out from fields; of the layout, or of every element of one of its arrays (``item``)."""

    name: str
    type: str
    value: Expression
    span: Span
    array: str | None = None
    doc: str = ""
    unit: str | None = None
    versions: Versions | None = None
    since: Since | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Example:
    """Bytes beside what they mean. ``data`` None: the bytes are what the builder makes of ``value``."""

    name: str
    doc: str
    data: bytes | None
    value: object
    version: int | None
    span: Span
    since: Since | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OverheadOf:
    """One column of an overhead table: a layout around messages whose keys and values have given sizes.

    ``array`` None: each message is one ``layout``; otherwise the layout holds them all in that array.
    ``sizes`` has the bytes-like fields with their sizes, ``number`` the field that counts from 0.
    """

    title: str
    layout: Reference
    sizes: Mapping[str, int]
    array: str | None = None
    number: str | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Overhead:
    """A table of the bytes that layouts add to what they carry."""

    doc: str
    batch_sizes: tuple[int, ...]
    columns: tuple[OverheadOf, ...]
    notes: str
    span: Span


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a structure, in the order of the bytes."""

    name: str
    doc: str
    span: Span
    fields: tuple[Field, ...]
    endian: Literal["big", "little"] = "big"
    versions: Versions | None = None
    version_is: str | None = None
    version_notes: Mapping[int, tuple[Since | None, Since | None]] = field(default_factory=dict)
    since: Since | None = None
    draft: Since | None = None
    accepts: frozenset[str] = frozenset()
    derived: tuple[Derived, ...] = ()
    examples: tuple[Example, ...] = ()
    overhead: Overhead | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    def fields_of(self, version: int | None) -> tuple[Field, ...]:
        """The fields that exist in a version."""
        return tuple(f for f in self.fields if f.versions is None or version in f.versions)

    def all_versions(self) -> tuple[int | None, ...]:
        """Every version, or ``(None,)`` for a layout without versions."""
        if self.versions is None or self.versions.high is None:
            return (None,)
        return tuple(range(self.versions.low, self.versions.high + 1))


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several layouts: by a field that lies at the same byte in all (``by``), or by an enum value that the
    caller has from elsewhere (``given``)."""

    name: str
    doc: str
    span: Span
    by: str | None
    given: str | None
    cases: tuple[tuple[int | str, Reference], ...]
    since: Since | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EnumValue:
    name: str
    value: int
    span: Span
    doc: str = ""
    since: Since | None = None
    spelled: str | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Enum:
    """Names for numbers. ``keep_unknown``: a number without a name is a value too."""

    name: str
    doc: str
    span: Span
    values: tuple[EnumValue, ...]
    keep_unknown: bool = False


# ---------------------------------------------------------------- views

COLUMN_TYPES = ("int8", "int16", "int32", "int64", "bool", "timestamp_ms", "binary", "string")
"""What the values of a column can be. ``timestamp_ms`` is in milliseconds since 1970, in UTC."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a view: values of a type, or lists of structs (``members``)."""

    name: str
    type: str
    span: Span
    members: tuple[Column, ...] = ()
    nullable: bool = False
    on_request: bool = False
    unit: str | None = None
    doc: str = ""
    default: Expression | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Write:
    """How rows are written: expressions for the fields of the ``entry`` and of the ``item``, by name (bits as
    ``attributes.codec``), in terms of the columns."""

    entry: Mapping[str, Expression]
    item: Mapping[str, Expression]
    span: Span
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Rows:
    """What of a layout becomes rows: the elements of the array ``each``, or (None) the layout itself.

    With ``head`` the row is made of the fields at fixed places of the layout, and nothing else is looked at.
    ``values`` has an expression for each column that has values here. Where ``careful`` holds, a strict reader looks
    at more than the columns show.
    """

    layout: str
    each: str | None
    values: Mapping[str, Expression]
    span: Span
    when: Expression | None = None
    careful: Expression | None = None
    head: bool = False
    write: Write | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class View:
    """How the layouts of a choice become the rows of one table."""

    name: str
    doc: str
    span: Span
    of: str
    columns: tuple[Column, ...]
    rows: tuple[Rows, ...]
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What holds for a schema directory as a whole (``codecgen.yaml``)."""

    package: str
    title: str
    doc: str
    span: Span
    spelling: Literal["camel", "snake"] = "snake"
    release_line: str | None = None
    releases: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    as_of: tuple[str, ...] = ()
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Model:
    """Everything in a schema directory. ``broken`` has the names that are declared but do not fit their form, and so
    are left out."""

    manifest: Manifest
    layouts: Mapping[str, Layout]
    enums: Mapping[str, Enum]
    choices: Mapping[str, Choice]
    files: Mapping[str, str] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    views: Mapping[str, View] = field(default_factory=dict)

    def modules(self) -> Mapping[str, tuple[Enum | Layout | Choice, ...]]:
        """What each YAML file declares, in the order of the file; files by name."""
        out: dict[str, list[Enum | Layout | Choice]] = {}
        things: list[Enum | Layout | Choice] = [*self.enums.values(), *self.layouts.values()]
        for thing in (*things, *self.choices.values()):
            out.setdefault(thing.span.file, []).append(thing)
        return {file: tuple(sorted(out[file], key=lambda t: t.span.line)) for file in sorted(out)}

    def references(self, layout: Layout) -> Iterator[Reference]:
        """The layouts that a layout holds."""
        for f in layout.fields:
            if isinstance(f.type, StructType):
                yield f.type.layout
            elif isinstance(f.type, ArrayType) and isinstance(f.type.element, Reference):
                yield f.type.element
