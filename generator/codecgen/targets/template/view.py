"""What templates see: the plan as plain frozen data. Each attribute says what it is; docs/template-reference.md lists them.

Names are made of lower-case letters, digits and ``_``. Words that people wrote are ``Words``, which no output
takes as they are: a filter says how they are to be written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from codecgen.targets.template.schema_text import Words
from codecgen.targets.template.view_types import (
    Bit,
    Compression,
    Enum,
    Expression,
    Place,
    Since,
    Source,
    Type,
    Value,
    Variant,
)


@dataclass(frozen=True, slots=True)
class Range:
    """Fields one after the other."""

    first: Annotated[str, "The first field."]
    last: Annotated[str, "The last field, which may be the same."]
    to_end: Annotated[bool, "Whether that is the last one of the layout."]


@dataclass(frozen=True, slots=True)
class Checksum:
    """A checksum field: its algorithm and the bytes that it covers."""

    algorithm: Annotated[str, "`crc32`, `crc32c` or another that the language knows."]
    covers: Annotated[
        tuple[Range, ...],
        "The fields whose bytes it is the checksum of: those of one range after the other.",
    ]
    zero: Annotated[tuple[str, ...], "The fields of them that count as zero bytes."]
    mask: Annotated[int | None, "The bits of it that are kept, if not all are."]
    rotate_right: Annotated[
        int, "The bits by which it is rotated to the right before it is stored."
    ]
    add: Annotated[int, "The number that is then added, modulo 2 to the power of its bits."]


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
    endian: Annotated[
        str | None, "`big` or `little`: the order of its bytes, where it is not that of the layout."
    ]
    offset: Annotated[int | None, "The byte of the layout where it begins, if that is fixed."]
    size: Annotated[int | None, "Its bytes, if that is fixed."]
    unit: Annotated[Words, "The unit of its number."]
    when: Annotated[Expression | None, "It is there only when this holds."]
    const: Annotated[
        int | None, "The number that always stands here; of the version's own field the version."
    ]
    const_bytes: Annotated[
        tuple[int, ...] | None, "The bytes that always stand here, also those of text, as numbers."
    ]
    is_version: Annotated[bool, "Whether it says which version the layout is in."]
    absent: Annotated[int | None, "The number that means that there is none."]
    default: Annotated[Expression | None, "What is written when nothing is given."]
    valid: Annotated[
        Expression | None, "What the format wants of it; a lenient reader goes on without."
    ]
    refuse: Annotated[Expression | None, "When this holds, every reader refuses."]
    measures: Annotated[Range | None, "The fields whose length in bytes it is."]
    own_bytes: Annotated[
        int, "The bytes up to its own end that it measures too (a length that counts itself)."
    ]
    within: Annotated[
        tuple[str, ...],
        "The fields that measure ranges in which it lies, in their order, without `sized_by` of its type.",
    ]
    counts: Annotated[tuple[str, ...], "The arrays whose elements it counts."]
    checksum: Annotated[Checksum | None, "What it is the checksum of, and how."]
    accepts: Annotated[tuple[str, ...], "The tolerances that lenient readers take here, sorted."]
    versions: Annotated[str | None, "The versions that have it (`1+`, `0-2`), if not all."]
    since: Annotated[Since | None, "When it came."]
    formerly: Annotated[Former | None, "The name that it had before."]
    hidden: Annotated[bool, "Whether summaries leave it out."]
    sensitive: Annotated[bool, "Whether its value is a secret, always or by the name that it has."]
    gives: Annotated[tuple[Gift, ...], "What the layout that it holds gets from outside."]
    tag: Annotated[
        int | None,
        "Of a tagged field its number: it lies in the field of kind `tags`, which is the last one.",
    ]
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
class Rule:
    """What all fields together have to meet: strict readers refuse the rest."""

    name: Annotated[str, "Its name."]
    about: Annotated[str, "The field that errors name."]
    condition: Annotated[Expression | None, "What has to hold; None where numbers ascend."]
    ascending: Annotated[Expression | None, "`array.field`: numbers that ascend, or None."]
    doc: Annotated[Words, "Why."]
    since: Annotated[Since | None, "When it came."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A value that a layout gets from outside. It has no bytes in the layout."""

    name: Annotated[str, "Its name."]
    type: Annotated[Type, "Its type."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class Gift:
    """A value that a field gives to the layout, or to each element of the array, that it holds."""

    name: Annotated[str, "The name under which the layout has it."]
    value: Annotated[Expression, "The value, in terms of fields before."]


@dataclass(frozen=True, slots=True)
class Example:
    """An example of a layout."""

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
    given: Annotated[tuple[GivenValue, ...], "The values that it gets from outside."]
    fields: Annotated[tuple[Field, ...], "Its fields, in the order of the bytes."]
    size: Annotated[int | None, "Its length in bytes, if that is fixed."]
    min_size: Annotated[int, "The fewest bytes that it takes."]
    max_size: Annotated[int | None, "The most, beside what is in `payload`, if there is a bound."]
    payload: Annotated[tuple[str, ...], "The fields that hold as many bytes as they like."]
    derived: Annotated[tuple[Derived, ...], "The values that are worked out in this version."]
    rules: Annotated[tuple[Rule, ...], "What the fields have to meet together in this version."]
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
    accepts: Annotated[tuple[str, ...], "The tolerances that lenient readers take, sorted."]
    draft: Annotated[bool, "Whether it is a draft, which no release contains."]
    since: Annotated[Since | None, "When it came."]
    examples: Annotated[tuple[Example, ...], "Bytes beside what they mean."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class Step:
    """A case that is a choice itself."""

    choice: Annotated[str, "That choice."]
    by: Annotated[str, "The field that decides in it."]
    number: Annotated[int, "The number that the field has in the layout."]


@dataclass(frozen=True, slots=True)
class Case:
    """One of the layouts of a choice."""

    key: Annotated[int | str, "The number, or the name of the enum's value, that stands for it."]
    number: Annotated[int, "The same as a number."]
    layout: Annotated[str, "The layout."]
    version: Annotated[int | None, "The version of it, if one is named."]
    steps: Annotated[
        tuple[Step, ...], "The choices in the choice that lead to it, the outer ones first."
    ]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several layouts."""

    name: Annotated[str, "Its name."]
    doc: Annotated[Words, "What it is."]
    module: Annotated[str, "The module that declares it."]
    by: Annotated[str | None, "The field that decides, which lies at the same byte of each layout."]
    offset: Annotated[int | None, "That byte."]
    given: Annotated[str | None, "The enum whose value decides, which lies elsewhere."]
    given_type: Annotated[Type | None, "The type of the number that decides, which lies elsewhere."]
    cases: Annotated[tuple[Case, ...], "The layouts."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a view."""

    name: Annotated[str, "Its name."]
    type: Annotated[str, "The type of its values, or `struct` or `list`."]
    members: Annotated[tuple[Column, ...], "What is in a struct, or in the structs in a list."]
    element: Annotated[Column | None, "What is in a list, if that is no struct."]
    nullable: Annotated[bool, "Whether a value may be missing."]
    on_request: Annotated[bool, "Whether readers give it only to those who ask."]
    doc: Annotated[Words, "What it is."]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a payload."""

    name: Annotated[str, "Its name."]
    of: Annotated[str, "What it is: a choice or a layout; in rows the layout."]


@dataclass(frozen=True, slots=True)
class Rows:
    """What of a layout becomes rows of a view."""

    layout: Annotated[str, "The layout; empty for rows of payloads."]
    parts: Annotated[tuple[Part, ...], "The layouts of the parts of payloads that are looked at."]
    each: Annotated[
        str | None,
        "The array whose elements are the rows, with its part in front for payloads; None for the layout itself.",
    ]
    other_arrays: Annotated[
        tuple[str, ...], "Other arrays of the layout: a row has an element of each, too."
    ]
    when: Annotated[Expression | None, "There are rows only when this holds."]
    header_only: Annotated[bool, "Whether the fields at fixed places are all that is looked at."]
    values: Annotated[tuple[ColumnValue, ...], "What the columns hold."]
    writes: Annotated[
        tuple[FieldValue, ...], "What fields hold when rows are written, if they can be."
    ]


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A field, and the value that a row of a view writes into it."""

    layout: Annotated[str, "The layout: that of the rows, or that of the elements of `each`."]
    field: Annotated[str, "The field, with a dot and a name the bits of one."]
    value: Annotated[Expression, "What it holds, in terms of the columns."]


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """A column of a view, and its value."""

    column: Annotated[str, "The column, of a member of a list with a dot."]
    value: Annotated[Expression, "What it holds."]


@dataclass(frozen=True, slots=True)
class View:
    """Layouts as the rows of a table."""

    name: Annotated[str, "Its name."]
    doc: Annotated[Words, "What it is."]
    of: Annotated[
        str,
        "The layout, or the choice whose layouts, become rows; empty for a view into payloads.",
    ]
    parts: Annotated[tuple[Part, ...], "The parts of the payloads that become rows."]
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
    texts: Annotated[tuple[Text, ...], "Its texts."]


@dataclass(frozen=True, slots=True)
class TextValue:
    """A value of a text."""

    name: Annotated[str, "Its name."]
    doc: Annotated[Words, "What it is."]
    kind: Annotated[str, "`decimal`, `string` or `uuid`."]
    of: Annotated[str, "The integer type of a `decimal`, `word` or `rest`, the form of a `uuid`."]
    key: Annotated[Words, "The key in the file, of a property."]
    label: Annotated[Words, "The word before it."]
    separator: Annotated[Words, "What stands after the label."]
    const: Annotated[int | None, "The number that always stands here."]
    counts: Annotated[str | None, "The lines that it counts."]
    default: Annotated[Expression | None, "What is written when nothing is given."]
    valid: Annotated[
        Expression | None, "What the format wants of it; a lenient reader goes on without."
    ]
    refuse: Annotated[Expression | None, "When this holds, every reader refuses."]
    accepts: Annotated[tuple[str, ...], "The tolerances that lenient readers take here, sorted."]
    unit: Annotated[Words, "The unit of its number."]
    since: Annotated[Since | None, "When it came."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a text, or lines of the same values."""

    name: Annotated[str, "Its name."]
    doc: Annotated[Words, "What it is."]
    value: Annotated[TextValue | None, "Its value, if there is one line."]
    each: Annotated[tuple[TextValue, ...], "The values of each line, if there are many."]
    separator: Annotated[Words, "What stands between them."]
    counted_by: Annotated[str | None, "The line before that counts them; None: all that are left."]
    accepts: Annotated[tuple[str, ...], "The tolerances that lenient readers take here, sorted."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class Text:
    """A file of text: lines, or properties."""

    name: Annotated[str, "Its name."]
    doc: Annotated[Words, "What it is."]
    module: Annotated[str, "The module that declares it."]
    lines: Annotated[tuple[TextLine, ...], "Its lines."]
    properties: Annotated[tuple[TextValue, ...], "The keys that are known."]
    accepts: Annotated[tuple[str, ...], "The tolerances that lenient readers take, sorted."]
    may_be_empty: Annotated[bool, "Whether there may be no line at all."]
    final_newline: Annotated[bool, "Whether a line feed ends the last line too."]
    keep_unknown: Annotated[bool, "Whether other keys are values too."]
    since: Annotated[Since | None, "When it came."]
    place: Annotated[Place, "Where it is declared."]


@dataclass(frozen=True, slots=True)
class Used:
    """A schema directory that is used. What it declares is not in `layouts`, `enums` and `choices`: names with a dot stand
    for it.
    """

    name: Annotated[str, "What stands before the dot, perhaps with a dot in it."]
    package: Annotated[str, "The name of the package of its codecs."]
    title: Annotated[Words, "What it is about."]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a schema directory."""

    package: Annotated[str, "The name of the package of codecs."]
    title: Annotated[Words, "What the directory is about."]
    doc: Annotated[Words, "More about it."]
    release_line: Annotated[str | None, "What the releases are releases of."]
    releases: Annotated[tuple[str, ...], "The releases, oldest first."]
    uses: Annotated[tuple[Used, ...], "The schema directories that it uses."]


@dataclass(frozen=True, slots=True)
class Root:
    """A template for one thing sees that besides: `layout`, `version`, `module`, `enum`, `choice`, `text` or `view`."""

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
    texts: Annotated[tuple[Text, ...], "All texts."]
    views: Annotated[tuple[View, ...], "All views."]


REFERENCE = (
    *(
        Root,
        Manifest,
        Used,
        Module,
        Layout,
        Version,
        Field,
        Type,
        Bit,
        Compression,
        Variant,
        Range,
        Checksum,
    ),
    *(
        Enum,
        Value,
        Choice,
        Case,
        Step,
        Text,
        TextLine,
        TextValue,
        Derived,
        Rule,
        GivenValue,
        Gift,
        Expression,
        View,
        Part,
        Column,
        Rows,
        ColumnValue,
        FieldValue,
        Example,
    ),
    *(Since, Source, Former, Place),
)
"""Every kind of thing that templates see, in the order of the documents."""
