"""What templates see: the plan as plain frozen data. Each attribute says what it is; docs/templates.md lists them.

Names are made of lower-case letters, digits and ``_``. Words that people wrote are ``Words``, which no output
takes as they are: a filter says how they are to be written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from codecgen.targets.template.words import Words


@dataclass(frozen=True, slots=True)
class Place:
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
class Compression:
    """How a run of elements is compressed."""

    by: Annotated[Expression, "What names the codec."]
    enum: Annotated[str, "The enum of codecs."]
    codecs: Annotated[tuple[str, ...], "The values of it that are allowed here."]
    limit: Annotated[int, "The most bytes that it may hold decompressed."]


@dataclass(frozen=True, slots=True)
class Type:
    """What the bytes of a field are. Which attributes are set depends on `kind`."""

    kind: Annotated[
        str,
        "`integer`, `varint`, `float`, `bool`, `uuid`, `bits`, `bytes`, `string`, `array` or `layout`.",
    ]
    name: Annotated[
        str | None, "The type's name in the schema language (`i32`, `varint`), if it has one."
    ]
    size: Annotated[int | None, "Bytes, where that is fixed; of a varint None."]
    signed: Annotated[bool, "Whether a number has a sign. Signed varints are zigzag."]
    max_size: Annotated[int | None, "The most bytes that a varint takes."]
    enum: Annotated[str | None, "The enum whose values a number has."]
    only: Annotated[tuple[str, ...] | None, "The values that may stand here, if not all."]
    bits: Annotated[tuple[Bit, ...], "The bits, lowest first (`bits`)."]
    length: Annotated[
        Type | None,
        "The number in front that says how many bytes follow (`bytes`, `string`, `array`).",
    ]
    count: Annotated[
        Type | None, "The number in front that says how many elements follow (`array`)."
    ]
    counted_by: Annotated[str | None, "The field before it that counts the elements (`array`)."]
    compact: Annotated[
        bool, "Whether this number stands for one less, and 0 for null (`length` and `count`)."
    ]
    null: Annotated[
        int | None, "The length that means null, if null is allowed (`bytes`, `string`)."
    ]
    rest: Annotated[bool, "Whether it takes all that is left of what is around it."]
    element: Annotated[Type | None, "What the elements are (`array`)."]
    layout: Annotated[str | None, "The layout that stands here (`layout`)."]
    versions: Annotated[
        tuple[str, ...],
        "The versions of it that can stand here, by `name`: one, if that is settled.",
    ]
    at_least: Annotated[int, "The fewest elements (`array`)."]
    nesting: Annotated[
        int | None, "How deep such arrays may lie in each other, if that is limited (`array`)."
    ]
    compression: Annotated[Compression | None, "How the elements are compressed (`array`)."]


@dataclass(frozen=True, slots=True)
class Range:
    """Fields one after the other."""

    first: Annotated[str, "The first field."]
    last: Annotated[str, "The last field, which may be the same."]
    to_end: Annotated[bool, "Whether that is the last one of the layout."]


@dataclass(frozen=True, slots=True)
class Checksum:
    algorithm: Annotated[str, "`crc32` or `crc32c`."]
    covers: Annotated[Range, "The fields whose bytes it is the checksum of."]


@dataclass(frozen=True, slots=True)
class Former:
    """A name that a field had before."""

    name: Annotated[str, "The name."]
    until: Annotated[str, "The release that changed it."]


@dataclass(frozen=True, slots=True)
class Field:
    """A field in one version of its layout."""

    name: Annotated[str, "Its name."]
    spelled: Annotated[Words, "Its name in the format's own documents."]
    doc: Annotated[Words, "What it is."]
    type: Annotated[Type, "What its bytes are."]
    offset: Annotated[int | None, "The byte of the layout where it begins, if that is fixed."]
    size: Annotated[int | None, "Its bytes, if that is fixed."]
    unit: Annotated[Words, "The unit of its number."]
    when: Annotated[Expression | None, "It is there only when this holds."]
    const: Annotated[
        int | None, "The number that always stands here; of the version's own field the version."
    ]
    is_version: Annotated[bool, "Whether it says which version the layout is in."]
    none: Annotated[int | None, "The number that means that there is none."]
    default: Annotated[Expression | None, "What is written when nothing is given."]
    valid: Annotated[
        Expression | None, "What the format wants of it; a lenient reader goes on without."
    ]
    refuse: Annotated[Expression | None, "When this holds, every reader refuses."]
    measures: Annotated[Range | None, "The fields whose length in bytes it is."]
    within: Annotated[
        tuple[str, ...], "The fields that measure ranges in which it lies, in their order."
    ]
    counts: Annotated[str | None, "The array whose elements it counts."]
    checksum: Annotated[Checksum | None, "What it is the checksum of, and how."]
    accepts: Annotated[tuple[str, ...], "The freedoms that lenient readers take here, sorted."]
    versions: Annotated[str | None, "The versions that have it (`1+`, `0-2`), if not all."]
    since: Annotated[Since | None, "When it came."]
    formerly: Annotated[Former | None, "The name that it had before."]
    hidden: Annotated[bool, "Whether summaries leave it out."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class Derived:
    """A value that is worked out from fields."""

    name: Annotated[str, "Its name."]
    type: Annotated[str, "Its type, in the schema language."]
    value: Annotated[Expression, "How it is worked out."]
    array: Annotated[
        str | None, "The array for each element of which it is worked out (`item` in the value)."
    ]
    doc: Annotated[Words, "What it is."]
    unit: Annotated[Words, "Its unit."]
    since: Annotated[Since | None, "When it came."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class Example:
    name: Annotated[Words, "What it shows."]
    doc: Annotated[Words, "More about it."]
    hex: Annotated[str | None, "Its bytes as digits; None when the builder makes them."]
    version: Annotated[int | None, "The version that it is of, if that is said."]


@dataclass(frozen=True, slots=True)
class Version:
    """A layout in one version; the only one, of a layout without versions."""

    layout: Annotated[str, "The name of the layout."]
    number: Annotated[int | None, "The version; None for a layout without."]
    name: Annotated[str, "The two together, as `message_v0`: a name for each version."]
    fields: Annotated[tuple[Field, ...], "Its fields, in the order of the bytes."]
    size: Annotated[int | None, "Its length in bytes, if that is fixed."]
    min_size: Annotated[int, "The fewest bytes that it takes."]
    max_size: Annotated[int | None, "The most, beside what is in `payload`, if there is a bound."]
    payload: Annotated[tuple[str, ...], "The fields that hold as many bytes as they like."]
    derived: Annotated[tuple[Derived, ...], "The values that are worked out in this version."]
    enums: Annotated[tuple[Enum, ...], "The enums of its fields and bits, by name."]
    holds: Annotated[tuple[str, ...], "The versions of layouts inside it, by `name`, each once."]
    since: Annotated[Since | None, "When writers began to use it, if that is said."]
    until: Annotated[Since | None, "When they left it."]


@dataclass(frozen=True, slots=True)
class Layout:
    """A structure."""

    name: Annotated[str, "Its name."]
    spelled: Annotated[Words, "Its name in the format's own documents."]
    doc: Annotated[Words, "What it is."]
    module: Annotated[str, "The module that declares it."]
    endian: Annotated[str, "`big` or `little`: which end of a number comes first."]
    version_field: Annotated[str | None, "The field that says which version it is, if one does."]
    versions: Annotated[
        tuple[Version, ...], "Its versions, oldest first; one for a layout without versions."
    ]
    accepts: Annotated[tuple[str, ...], "The freedoms that lenient readers take, sorted."]
    draft: Annotated[bool, "Whether it never shipped."]
    since: Annotated[Since | None, "When it came."]
    examples: Annotated[tuple[Example, ...], "Bytes beside what they mean."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class Case:
    """One of the layouts of a choice."""

    key: Annotated[int | str, "The number, or the name of the enum's value, that stands for it."]
    number: Annotated[int, "The same as a number."]
    layout: Annotated[str, "The layout."]
    version: Annotated[int | None, "The version of it, if one is named."]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several layouts."""

    name: Annotated[str, "Its name."]
    doc: Annotated[Words, "What it is."]
    module: Annotated[str, "The module that declares it."]
    by: Annotated[str | None, "The field that decides, which lies at the same byte of each layout."]
    offset: Annotated[int | None, "That byte."]
    given: Annotated[str | None, "The enum whose value decides, which lies elsewhere."]
    cases: Annotated[tuple[Case, ...], "The layouts."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a view."""

    name: Annotated[str, "Its name."]
    type: Annotated[str, "The type of its values, or `list`."]
    members: Annotated[tuple[Column, ...], "The columns of the elements of lists."]
    nullable: Annotated[bool, "Whether a value may be missing."]
    on_request: Annotated[bool, "Whether readers give it only to those who ask."]
    doc: Annotated[Words, "What it is."]


@dataclass(frozen=True, slots=True)
class Rows:
    """What of a layout becomes rows of a view."""

    layout: Annotated[str, "The layout."]
    each: Annotated[
        str | None, "The array whose elements are the rows; None for the layout itself."
    ]
    when: Annotated[Expression | None, "There are rows only when this holds."]
    values: Annotated[tuple[ColumnValue, ...], "What the columns hold."]


@dataclass(frozen=True, slots=True)
class ColumnValue:
    column: Annotated[str, "The column, of a member of a list with a dot."]
    value: Annotated[Expression, "What it holds."]


@dataclass(frozen=True, slots=True)
class View:
    """Layouts as the rows of a table."""

    name: Annotated[str, "Its name."]
    doc: Annotated[Words, "What it is."]
    of: Annotated[str, "The choice whose layouts become rows."]
    columns: Annotated[tuple[Column, ...], "Its columns."]
    rows: Annotated[tuple[Rows, ...], "Where the rows come from, for each layout."]


@dataclass(frozen=True, slots=True)
class Module:
    """A YAML file, and what it declares."""

    path: Annotated[str, "Its path without the ending, as `records/record_batch`."]
    name: Annotated[str, "The last part of that."]
    file: Annotated[Words, "The file, relative to the schema directory."]
    layouts: Annotated[tuple[Layout, ...], "Its layouts, in the order of the file."]
    enums: Annotated[tuple[Enum, ...], "Its enums."]
    choices: Annotated[tuple[Choice, ...], "Its choices."]


@dataclass(frozen=True, slots=True)
class Manifest:
    package: Annotated[str, "The name of the package of codecs."]
    title: Annotated[Words, "What the directory is about."]
    doc: Annotated[Words, "More about it."]
    release_line: Annotated[str | None, "What the releases are releases of."]
    releases: Annotated[tuple[str, ...], "The releases, oldest first."]


@dataclass(frozen=True, slots=True)
class Root:
    """A template for one thing sees that besides: `layout`, `version`, `module`, `enum`, `choice` or `view`."""

    mark: Annotated[
        str,
        "A line that says that the file is generated: the generator removes only files that have it.",
    ]
    release: Annotated[str | None, "The release that all this is as of; None for today."]
    manifest: Annotated[Manifest, "What holds for the schema directory as a whole."]
    modules: Annotated[tuple[Module, ...], "The YAML files, by path."]
    layouts: Annotated[tuple[Layout, ...], "All layouts, by module."]
    enums: Annotated[tuple[Enum, ...], "All enums."]
    choices: Annotated[tuple[Choice, ...], "All choices."]
    views: Annotated[tuple[View, ...], "All views."]


REFERENCE = (
    *(Root, Manifest, Module, Layout, Version, Field, Type, Bit, Compression, Range, Checksum),
    *(Enum, Value, Choice, Case, Derived, Expression, View, Column, Rows, ColumnValue, Example),
    *(Since, Source, Former, Place),
)
"""Every kind of thing that templates see, in the order of the documents."""
