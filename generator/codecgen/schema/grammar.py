"""The keys of the schema language, as data: the loader reads by these tables, and the JSON Schema is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codecgen.runtime.version import LANGUAGE
from codecgen.schema.grammar_of_examples import EXAMPLES
from codecgen.schema.grammar_of_texts import TEXTS
from codecgen.schema.key_types import (
    DOC,
    SINCE,
    Anything,
    Bits,
    Boolean,
    Code,
    Constant,
    Declared,
    Default,
    Directory,
    Either,
    Form,
    Integer,
    Key,
    LayoutName,
    ListOf,
    MapOf,
    Name,
    OneOf,
    Range,
    Release,
    Text,
    Use,
    Word,
)
from codecgen.schema.model import COLUMN_TYPES, FREEDOMS
from codecgen.schema.types import INTEGERS, LENGTHS, SCALARS

_UNTIL = Key(Use("since"), "In which release it ended.")
_SPELLED = Key(
    Word(),
    "How the format's own documents write the name, where the rule of the manifest does not give it.",
)
_ACCEPTS = Key(ListOf(OneOf(tuple(FREEDOMS))), "What lenient readers take, and strict ones refuse.")
_VERSIONS = Key(Range(), "The versions in which it exists.")
_MISPRINT = Key(Use("misprint"), "What a document about the format says wrongly about it.")
_FIELD_RANGE = Either((OneOf(("rest",)), Use("field_range")))
_FIELDS = Key(
    MapOf(Either((OneOf(SCALARS), Use("field")))),
    "The fields, in the order of the bytes. A bare word is a type.",
)
_ENUM = Key(Declared(), "The enum whose values the number stands for.")
_ONLY = Key(ListOf(Name()), "The values of the enum that may stand here.")

FORMS: Mapping[str, Form] = {
    "manifest": Form(
        "What holds for the directory as a whole.",
        {
            "language": Key(
                Integer(),
                f"Version of the schema language: {LANGUAGE}.",
                True,
                f"language: {LANGUAGE}",
            ),
            "package": Key(Name(), "Name of the Python package that is generated.", True),
            "title": Key(Text(), "Title of the documents.", True),
            "doc": DOC,
            "spelling": Key(
                OneOf(("camel", "snake")), "How the format's own documents write names."
            ),
            "release_line": Key(Name(), "The key under `since` that names a release."),
            "releases": Key(ListOf(Release()), "The releases, oldest first."),
            "links": Key(
                MapOf(Text()), "Where the documents under `since` are; {} stands for the number."
            ),
            "documents": Key(Use("documents"), "Which documents are written."),
            "uses": Key(
                MapOf(Directory()),
                "Other schema directories, by the name that stands before the dot: `weather.reading`.",
            ),
        },
    ),
    "documents": Form(
        "Which documents are written.",
        {"as_of": Key(ListOf(Release()), "Releases as of which the tables are written too.")},
    ),
    "layout": Form(
        "The fields of a structure, in the order of the bytes.",
        {
            "layout": Key(Name(), "Its name.", True),
            "doc": DOC,
            "since": SINCE,
            "draft": Key(Use("since"), "The documents that proposed it, if it never shipped."),
            "endian": Key(
                OneOf(("big", "little")), "Order of the bytes of a number; big by default."
            ),
            "versions": Key(Range(), "The versions of the layout."),
            "version_is": Key(
                Name(), "The field that holds the version. Without it the caller says which."
            ),
            "version_notes": Key(
                MapOf(Use("version_note"), numbers=True), "Which releases wrote a version."
            ),
            "accepts": _ACCEPTS,
            "fields": replace(_FIELDS, required=True),
            "derived": Key(MapOf(Anything()), "Values worked out from the fields."),
            "examples": Key(ListOf(Use("example")), "Bytes beside what they mean."),
            "overhead": Key(
                Use("overhead"), "A table of the bytes that layouts add to what they carry."
            ),
        },
    ),
    "version_note": Form(
        "Which releases wrote a version.", {"since": SINCE, "until": _UNTIL, "doc": DOC}
    ),
    "field": Form(
        "A field.",
        {
            "type": Key(OneOf(SCALARS), "A number, a boolean, a uuid."),
            "bits": Key(
                OneOf(tuple(INTEGERS)), "An integer whose bits have meanings of their own."
            ),
            "bytes": Key(
                Either((OneOf((*LENGTHS, "rest")), Integer())),
                "Bytes, by the type of their length, a number, or the rest.",
            ),
            "string": Key(
                Either((OneOf((*LENGTHS, "rest")), Integer())), "Text in UTF-8, likewise."
            ),
            "array": Key(
                Either((OneOf(SCALARS), Use("element"), LayoutName())),
                "Elements one after the other.",
            ),
            "layout": Key(LayoutName(), "Another layout."),
            "fields": _FIELDS,
            "members": Key(MapOf(Use("bit")), "The bits, the least significant is 0."),
            "count": Key(OneOf(LENGTHS), "Type of the number of elements before an array."),
            "length": Key(
                OneOf(tuple(n for n in LENGTHS if n != "compact")),
                "Type of the length in bytes before an array.",
            ),
            "until": Key(
                OneOf(("end",)), "The array reaches to the end of the range that it stands in."
            ),
            "compressed": Key(Use("compressed"), "The array is compressed."),
            "nesting": Key(Integer(), "How deep the array may hold its own layout."),
            "at_least": Key(Integer(), "The fewest elements."),
            "null": Key(Integer(), "The length that means null."),
            "doc": DOC,
            "versions": _VERSIONS,
            "since": SINCE,
            "when": Key(Code(), "The field is there only when this holds."),
            "default": Key(Default(), "What the builder writes when no value is given."),
            "none": Key(
                Integer(), "The number that means that there is no value; also the default."
            ),
            "const": Key(Constant(), "The only value."),
            "is": Key(OneOf(("version",)), "The field holds the version of the layout."),
            "enum": _ENUM,
            "only": _ONLY,
            "measures": Key(_FIELD_RANGE, "The field is the length in bytes of a range of fields."),
            "counts": Key(Name(), "The field is the number of elements of an array."),
            "checksum": Key(OneOf(("crc32", "crc32c")), "The field is a checksum."),
            "covers": Key(_FIELD_RANGE, "The range of fields that the checksum is taken over."),
            "valid": Key(
                Code(), "What the format says of the value. Strict readers refuse the rest."
            ),
            "refuse": Key(Code(), "What every reader refuses."),
            "accepts": _ACCEPTS,
            "unit": Key(Word(), "Unit of the number."),
            "spelled": _SPELLED,
            "formerly": Key(Use("formerly"), "A name that it had before."),
            "misprint": _MISPRINT,
            "hidden": Key(Boolean(), "Left out of summaries."),
        },
        one_of=(("type", "bits", "bytes", "string", "array", "layout", "fields"),),
        together={
            "members": ("bits",),
            "bits": ("members",),
            "null": ("bytes", "string"),
            "enum": ("type",),
            "only": ("enum",),
            "covers": ("checksum",),
            "checksum": ("covers",),
            "count": ("array",),
            "length": ("array",),
            "until": ("array",),
            "compressed": ("array",),
            "nesting": ("array",),
            "at_least": ("array",),
        },
    ),
    "element": Form(
        "What an array holds, where that is no number and no layout with a name.",
        {
            "bytes": Key(
                Either((OneOf(LENGTHS), Integer())),
                "Bytes, by the type of their length or a number.",
            ),
            "string": Key(Either((OneOf(LENGTHS), Integer())), "Text in UTF-8, likewise."),
            "null": Key(Integer(), "The length that means null."),
            "fields": _FIELDS,
        },
        one_of=(("bytes", "string", "fields"),),
        together={"null": ("bytes", "string")},
    ),
    "bit": Form(
        "One bit, or a few beside each other.",
        {
            "at": Key(Bits(), "Which bits: `3` or `0..2`."),
            "reserved": Key(
                OneOf(("keep",)), "All bits that no other member has; kept as they are."
            ),
            "enum": _ENUM,
            "only": _ONLY,
            "doc": DOC,
            "versions": _VERSIONS,
            "since": SINCE,
            "spelled": _SPELLED,
            "default": Key(Code(), "What the builder writes when no value is given."),
            "misprint": _MISPRINT,
        },
        one_of=(("at", "reserved"),),
        together={"only": ("enum",)},
    ),
    "field_range": Form(
        "Consecutive fields, both ends included.",
        {
            "from": Key(Name(), "The first field.", True),
            "to": Key(Name(), "The last field; the end of the layout when it is left out."),
        },
    ),
    "compressed": Form(
        "A section that is compressed.",
        {
            "by": Key(Code(), "The field that names the codec.", True),
            "limit": Key(
                Integer(),
                "The most bytes that it may decompress to, unless the caller says more.",
                True,
            ),
            "refuses": Key(ListOf(Name()), "Codecs that may not be used here."),
            "variants": Key(MapOf(Use("variant")), "Codecs that are spelled differently here."),
        },
    ),
    "variant": Form(
        "Another spelling of a codec.",
        {
            "versions": _VERSIONS,
            "write": Key(Word(), "Name of the variant that is written.", True),
            "read": Key(Word(), "Name of the variant that is read.", True),
        },
    ),
    "derived": Form(
        "A value worked out from fields.",
        {
            "type": Key(OneOf(("i8", "i16", "i32", "i64")), "Its type; sums wrap in it.", True),
            "is": Key(Code(), "How it is worked out.", True),
            "doc": DOC,
            "unit": Key(Word(), "Unit of the number."),
            "versions": _VERSIONS,
            "since": SINCE,
        },
    ),
    "formerly": Form(
        "A name that something had before.",
        {
            "name": Key(Name(), "The name.", True),
            "until": Key(Release(), "The release in which it changed.", True),
        },
    ),
    "misprint": Form(
        "What a document about the format says wrongly.",
        {
            "as": Key(Text(), "What it says; `missing` when it leaves the field out.", True),
            "doc": Key(Text(), "What is right, and why it matters."),
            "until": Key(Release(), "The release in which the document was mended."),
            "versions": _VERSIONS,
        },
    ),
    **EXAMPLES,
    "choice": Form(
        "One of several layouts.",
        {
            "choice": Key(Name(), "Its name.", True),
            "doc": DOC,
            "since": SINCE,
            "by": Key(Name(), "The field, at the same byte in all of them, whose value decides."),
            "given": Key(
                Declared(), "The enum whose value, which the caller has from elsewhere, decides."
            ),
            "cases": Key(MapOf(LayoutName(), numbers=True), "The layout for each value.", True),
        },
        one_of=(("by", "given"),),
    ),
    "view": Form(
        "How the layouts of a choice become the rows of one table.",
        {
            "view": Key(Name(), "Its name.", True),
            "doc": DOC,
            "of": Key(Declared(), "The choice whose layouts stand one after the other.", True),
            "columns": Key(MapOf(Use("column")), "The columns of the table, in order.", True),
            "rows": Key(ListOf(Use("rows")), "What becomes a row, layout by layout.", True),
        },
    ),
    "column": Form(
        "A column of a view.",
        {
            "type": Key(OneOf(COLUMN_TYPES), "The Arrow type of its values."),
            "list": Key(
                MapOf(Use("column")),
                "Its values are lists of structs with these fields, named as in the elements.",
            ),
            "nullable": Key(Boolean(), "Whether a value may be null."),
            "on_request": Key(Boolean(), "Left out unless it is asked for."),
            "default": Key(
                Code(),
                "What rows are written with where they lack the column: a number, or another column. Without it the "
                "column is null or an empty list, and must be there if it can be neither.",
            ),
            "unit": Key(Word(), "Unit of the number."),
            "doc": DOC,
        },
        one_of=(("type", "list"),),
    ),
    "rows": Form(
        "What of a layout becomes rows.",
        {
            "of": Key(Declared(), "The layout, in all its versions.", True),
            "each": Key(
                Name(),
                "The array at its end whose elements are the rows; the layout itself without it.",
            ),
            "header_only": Key(
                Boolean(),
                "The row is made of fields at fixed places alone: the rest is not looked at, nor checksums.",
            ),
            "when": Key(Code(), "These are the rows only when this holds."),
            "full_check": Key(
                Code(), "When this holds, a strict reader looks at more than the columns show."
            ),
            "columns": Key(
                MapOf(Code()),
                "The value of each column: fields, `item.field` of the element, `array.name` for what is "
                "derived of it, `position`, `size`. A column that is left out is null, or an empty list.",
                True,
            ),
            "write": Key(Use("write"), "How rows become bytes again."),
        },
    ),
    "write": Form(
        "How rows become bytes again. Fields that the layout itself settles (lengths, counts, checksums, constants) are "
        "not named, nor those that keep their default.",
        {
            "entry": Key(
                MapOf(Either((MapOf(Code()), Code()))),
                "The fields of the layout, bits by their members, from the columns: with `each` as `first(column)`, "
                "`last(column)`, `max(column)`, `min(column)` of its rows, otherwise as `column`. `version` is that of the "
                "layout, `entry.field` a field named before.",
                True,
            ),
            "item": Key(
                MapOf(Either((MapOf(Code()), Code()))),
                "The fields of an element: `column` is that of its row, `first(column)` that of the first row, "
                "`entry.field` a field of the layout.",
            ),
        },
    ),
    **TEXTS,
    "enums": Form("Names for numbers.", {"enums": Key(MapOf(Use("enum")), "The enums.", True)}),
    "enum": Form(
        "Names for numbers.",
        {
            "doc": DOC,
            "unknown": Key(
                OneOf(("refuse", "keep")),
                "What a strict reader does with other numbers; refuse by default.",
            ),
            "values": Key(MapOf(Either((Integer(), Use("enum_value")))), "The values.", True),
        },
    ),
    "enum_value": Form(
        "A value of an enum.",
        {
            "value": Key(Integer(), "The number.", True),
            "doc": DOC,
            "since": SINCE,
            "spelled": _SPELLED,
        },
    ),
    "since": Form("A release, and documents to read. The keys are those of the manifest.", {}),
}
"""Every mapping of the language. ``since`` takes the release line of the manifest and its links as keys."""

DOCUMENTS = ("layout", "text", "choice", "enums", "view")
"""What a YAML document can be: it has the key of that name."""
