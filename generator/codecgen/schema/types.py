"""Types of fields, and what everything in a schema is made of: versions and releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codecgen.diagnostics import Span
from codecgen.schema.expression import Expression


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
class FieldRange:
    """Consecutive fields, both ends included; ``last`` None reaches to the end of the layout. Those of ``zero`` count as
    zero bytes for a checksum.
    """

    first: str
    last: str | None
    span: Span
    zero: tuple[str, ...] = ()


# ---------------------------------------------------------------- types of fields

ZERO_TERMINATED = "zero_terminated"
"""What stands in the place of a length where a zero byte ends bytes or text."""

FROM_OUTSIDE = "from_outside"
"""What stands in the place of a length that is a value from outside."""


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
        """Return the number of bits."""
        return self.high - self.low + 1


@dataclass(frozen=True, slots=True)
class BitsType:
    """An integer whose bits have meanings of their own."""

    base: str
    members: tuple[BitMember, ...]


@dataclass(frozen=True, slots=True)
class BytesType:
    """Bytes, or text in UTF-8.

    ``length`` is the type of the length before them, a number for a fixed size, ``"rest"`` for all
    that is left, or ``"zero_terminated"``. ``null`` is the length that means null (``None``: null is not
    allowed). With ``padded`` zero bytes fill up a fixed size, and are no part of the value. ``sized_by`` is a field
    that is larger by ``plus`` than their number: they take the rest of the range that it measures. If it is a value
    from outside, ``length`` is ``"from_outside"``.
    """

    length: str | int
    text: bool = False
    null: int | None = None
    padded: bool = False
    sized_by: str | None = None
    plus: int = 0

    @property
    def prefix(self) -> str | None:
        """Return the type of the length prefix, or None if there is none."""
        words = ("rest", ZERO_TERMINATED, FROM_OUTSIDE)
        known = isinstance(self.length, int) or self.length in words
        return None if known else str(self.length)


@dataclass(frozen=True, slots=True)
class PaddingType:
    """Zero bytes up to the next ``multiple``, counted from the start of the layout."""

    multiple: int


@dataclass(frozen=True, slots=True)
class Step:
    """A choice on the way from another to one of its layouts: the value of the field ``by`` is ``number``."""

    choice: str
    by: str
    number: int
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """A layout, perhaps in one version (``message@0``). As a case of a choice, what ``steps`` lead to it."""

    layout: str
    version: int | None
    span: Span
    steps: tuple[Step, ...] = ()

    def matches(self, fields: Mapping[str, object]) -> bool:
        """Return whether the values ``fields`` contain the discriminators that lead to this layout.
        True if it has no steps. Only numbers match, not the names of enum values.
        """
        return all(fields.get(step.by) == step.number for step in self.steps)

    def __str__(self) -> str:
        return self.layout if self.version is None else f"{self.layout}@{self.version}"


@dataclass(frozen=True, slots=True)
class Compression:
    """A field range that is compressed by the codec that a field before it names.

    ``variants`` has (codec, versions, name for writing, name for reading); ``excluded`` names the codecs
    that this layout does not allow.
    """

    by: Expression
    enum: str
    limit: int
    excluded: tuple[str, ...] = ()
    variants: tuple[tuple[str, Versions | None, str, str], ...] = ()
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ChoiceType:
    """One of the layouts of a choice.

    ``given`` gives the value that decides, from what was read before (None: a field of the cases decides, ``by``).
    ``version`` gives the version of the case, ``length`` is the type of a length in bytes before it and ``null`` the one
    that means null. With ``unknown`` what has no case is bytes. ``cases`` has the layouts by number, and ``enum`` is
    that of the numbers of a choice that is given one: both are found in the choice.
    """

    choice: str
    span: Span
    given: Expression | None = None
    version: Expression | None = None
    length: str | None = None
    null: int | None = None
    unknown: bool = False
    by: str | None = None
    enum: str | None = None
    cases: tuple[tuple[int, Reference], ...] = ()

    @property
    def layouts(self) -> tuple[Reference, ...]:
        """Return the layouts of all cases in order, each layout and version once."""
        return tuple({(ref.layout, ref.version): ref for _, ref in self.cases}.values())


Element = Reference | ScalarType | BytesType | ChoiceType
"""What an array holds."""


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Elements one after the other.

    Their number is always the same (``fixed``), in front (``count``), in another field that ``counts`` them
    (``counted_by``; that number is larger by ``plus``), or they reach to the end of the field range (none of these), or to the first element for which
    ``until`` holds. ``length`` is a length in bytes before them all. ``null`` is the count, or the length, that means
    null (``None``: null is not allowed).
    """

    element: Element
    count: str | None = None
    counted_by: str | None = None
    length: str | None = None
    compression: Compression | None = None
    nesting: int | None = None
    at_least: int = 0
    null: int | None = None
    fixed: int | None = None
    until: Expression | None = None
    plus: int = 0

    @property
    def has_count(self) -> bool:
        """Return whether a fixed number, a count or another field gives the number of elements."""
        return self.fixed is not None or self.count is not None or self.counted_by is not None

    @property
    def to_the_end(self) -> bool:
        """Return whether only the end of the field range ends the array."""
        return not self.has_count and self.length is None and self.until is None


@dataclass(frozen=True, slots=True)
class StructType:
    """Another layout in the place of a field.

    ``present`` is the type of a number before it that says whether it is there: 1, or ``null``. ``version`` gives the
    version that it is in, from what was read before.
    """

    layout: Reference
    present: str | None = None
    null: int | None = None
    version: Expression | None = None


@dataclass(frozen=True, slots=True)
class TagsType:
    """The section of tagged fields that ends a layout. Its value is the list of those that the layout does not name."""


FieldType = (
    ScalarType | BitsType | BytesType | ArrayType | StructType | ChoiceType | TagsType | PaddingType
)


def held_layouts(type_: FieldType) -> tuple[Reference, ...]:
    """Return the references to the layouts that a field can hold, directly, as array elements or as
    cases of a choice. Return ``()`` if it holds none.
    """
    found = type_.element if isinstance(type_, ArrayType) else type_
    match found:
        case Reference():
            return (found,)
        case StructType(layout):
            return (layout,)
        case ChoiceType():
            return found.layouts
    return ()


def choosing(type_: FieldType) -> tuple[Expression | None, Expression | None]:
    """Return (expression for the case of a choice, expression for the version of a held layout) of
    a field type or its array elements, or None for each that is not given.
    """
    found = type_.element if isinstance(type_, ArrayType) else type_
    match found:
        case ChoiceType():
            return found.given, found.version
        case StructType():
            return None, found.version
    return None, None


# ---------------------------------------------------------------- columns of views

COLUMN_TYPES = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double", "bool",
    "timestamp_ms", "uuid", "binary", "string",
)  # fmt: skip
"""What the values of a column can be. ``timestamp_ms`` is in milliseconds since 1970, in UTC; a ``uuid`` is its 16 bytes."""
