"""The keys of the schema language, as data: the loader reads by these tables, and the JSON Schema is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codecgen.runtime.checksums import CHECKSUMS
from codecgen.runtime.version import LANGUAGE
from codecgen.schema import other_words
from codecgen.schema.grammar_of_texts import TEXTS
from codecgen.schema.grammar_of_views import VIEWS
from codecgen.schema.key_types import (
    DOC,
    FLEXIBLE,
    PROSE,
    SINCE,
    Amount,
    Anything,
    Bits,
    Boolean,
    ByVersion,
    Code,
    Constant,
    Declared,
    Default,
    Directory,
    Either,
    Form,
    Hex,
    Integer,
    Key,
    Kind,
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
from codecgen.schema.model import TOLERANCES
from codecgen.schema.scalars import INTEGERS, LENGTHS, SCALARS, VARINTS
from codecgen.schema.types import ZERO_TERMINATED


def _one_or_by_version(*kinds: Kind) -> Either:
    """Return the grammar of a value of one of ``kinds``, or of a mapping with one for each range of
    versions.
    """
    return Either((*kinds, ByVersion(kinds[0] if len(kinds) == 1 else Either(kinds))))


_UNTIL = Key(Use("since"), "In which release it ended.")
_ACCEPTS = Key(
    ListOf(OneOf(tuple(TOLERANCES))), "What lenient readers take, and strict ones refuse."
)
_VERSIONS = Key(Range(), "The versions in which it exists.")
_MISPRINT = Key(Use("misprint"), "What a document about the format says wrongly about it.")
_REST = OneOf(("rest",), "a range of fields", other_words.range_help)
_FIELD_RANGE = Either((_REST, Use("field_range")))
_WORDS = OneOf((*SCALARS, *FLEXIBLE), flexible=FLEXIBLE)
_FIELDS = Key(
    MapOf(Either((_WORDS, Use("field")))),
    "The fields, in the order of the bytes. A bare word is a type.",
)
_A_LENGTH = "the type of a length"
_LENGTH_WORDS = OneOf((*LENGTHS, "rest", ZERO_TERMINATED), _A_LENGTH)
_LENGTH_OF_BYTES = Either(
    (_LENGTH_WORDS, Integer(), Amount(), ByVersion(Either((_LENGTH_WORDS, Integer()))))
)
_PADDED = Key(Boolean(), "Zero bytes fill up the fixed size; they are no part of the value.")
_ORDER = OneOf(("big", "little"))
_ENUM = Key(Declared(), "The enum whose values the number stands for.")
_ONLY = Key(ListOf(Name()), "The values of the enum that may stand here.")

SPELLED = Key(
    Word(),
    "How the format's own documents write the name, where the rule of the manifest does not give it.",
)

ENUMS: Mapping[str, Form] = {
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
            "spelled": SPELLED,
        },
    ),
}


EXAMPLES: Mapping[str, Form] = {
    "example": Form(
        "Bytes beside what they mean.",
        {
            "name": Key(PROSE, "A few words.", True),
            "doc": DOC,
            "since": SINCE,
            "version": Key(Integer(), "The version of the layout that the bytes are in."),
            "hex": Key(Hex(), "The bytes."),
            "build": Key(Boolean(), "The bytes are what the builder makes of the values."),
            "values": Key(
                Anything(),
                "What they mean. Fields that the builder works out may be left out.",
                True,
            ),
        },
        one_of=(("hex", "build"),),
    ),
    "overhead": Form(
        "A table of the bytes that layouts add to what they carry.",
        {
            "doc": DOC,
            "sizes": Key(ListOf(Integer()), "Numbers of messages: the rows.", True),
            "columns": Key(ListOf(Use("overhead_column")), "The columns.", True),
            "notes": Key(PROSE, "What a reader should know beside the table."),
        },
    ),
    "overhead_column": Form(
        "A column of an overhead table.",
        {
            "title": Key(PROSE, "Its title.", True),
            "layout": Key(LayoutName(), "The layout.", True),
            "array": Key(
                Name(), "The array that holds the messages, when one layout holds them all."
            ),
            "each": Key(MapOf(Integer()), "The bytes of a message's fields.", True),
            "number": Key(Name(), "The field of a message that counts from 0."),
        },
    ),
}


BIT_TYPES = (*INTEGERS, *(name for name in VARINTS if not SCALARS[name].signed))
"""The types whose bits can have names."""

BYTE_LENGTHS = tuple(name for name in LENGTHS if name != "compact")
_GIVEN = Key(
    MapOf(Code()),
    "The values that a layout, a choice, or each element of an array is given: each name that it declares, and an expression.",
)
_VALUES_GIVEN = Key(
    MapOf(Either((OneOf((*INTEGERS, *VARINTS, "bool")), Declared()))),
    "Values from outside, by name: whoever holds it gives them. Each is a number, a boolean, or a value of an enum.",
)
_VALUES_AND_ARRAYS_GIVEN = Key(
    MapOf(Either((OneOf((*INTEGERS, *VARINTS, "bool")), Declared(), Use("given_array")))),
    "Values from outside, by name: whoever holds it gives them. Each is a number, a boolean, a value of an enum, or an array "
    "that derived values look up in.",
)
_UNKNOWN = Key(OneOf(("bytes",)), "What has no case is the bytes that are left, and is kept.")

FIELD_OF_CHOICE: Mapping[str, Key] = {
    "choice": Key(Declared(), "One of the layouts of a choice."),
    "given": _GIVEN,
    "version": Key(Code(), "The version of a layout or of the case, of a field before."),
    "unknown": _UNKNOWN,
}
"""Keys of a field. It has a length in bytes before it by the key of that name."""

ELEMENT_OF_CHOICE: Mapping[str, Key] = {
    "choice": Key(Declared(), "Each is one of the layouts of a choice."),
    "given": _GIVEN,
    "version": Key(Code(), "The version of each case, of a field before the array."),
    "length": Key(
        _one_or_by_version(OneOf(BYTE_LENGTHS, _A_LENGTH)),
        "Type of the length in bytes before each.",
    ),
    "unknown": _UNKNOWN,
}

TOGETHER: Mapping[str, tuple[str, ...]] = {"given": ("choice",), "unknown": ("choice",)}
"""Keys of elements that need another key. In a field, ``given`` goes with layouts and arrays too."""

CHOICES: Mapping[str, Form] = {
    "choice": Form(
        "One of several layouts.",
        {
            "choice": Key(Name(), "Its name.", True),
            "doc": DOC,
            "since": SINCE,
            "given": _VALUES_GIVEN,
            "by": Key(
                Name(),
                "What decides: the field, at the same byte in all of them, or a value that the choice is given.",
                True,
            ),
            "cases": Key(
                MapOf(LayoutName(), numbers=True, ranges=True),
                "The layout, or the choice, for each value; `0-3` stands for four of them.",
                True,
            ),
        },
    ),
}

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
            "title": Key(PROSE, "Title of the documents.", True),
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
            "accepted_breaks": Key(
                ListOf(Use("accepted_break")), "Changes that `codecgen breaking` accepts."
            ),
        },
    ),
    "given_array": Form(
        "An array from outside.",
        {
            "array": Key(
                OneOf(
                    ("string", "bytes", *INTEGERS, *VARINTS),
                    "string, bytes or an integer type",
                    other_words.given_array_help,
                ),
                "What its elements are.",
                True,
            )
        },
    ),
    "accepted_break": Form(
        "A change that breaks old readers or old data, and is made nevertheless.",
        {
            "rule": Key(Word(), "The rule that it breaks.", True, "rule: B006"),
            "at": Key(
                Text(), "What changes, as `codecgen breaking` prints it.", True, "at: reading.place"
            ),
            "reason": Key(PROSE, "Why nobody is harmed.", True),
        },
    ),
    "documents": Form(
        "Which documents are written.",
        {
            "as_of": Key(ListOf(Release()), "Releases as of which the tables are written too."),
            "as_of_folders": Key(
                ListOf(Text()),
                "Folders of schemas that get Markdown pages as of those releases (`.`: the directory itself); all by "
                "default.",
            ),
            "at": Key(
                Text(),
                "Where the pages are on the web, for those of others to link to; {} stands for a YAML file without its "
                "ending.",
            ),
        },
    ),
    "layout": Form(
        "The fields of a structure, in the order of the bytes.",
        {
            "layout": Key(Name(), "Its name.", True),
            "doc": DOC,
            "since": SINCE,
            "draft": Key(
                Use("since"), "The documents that proposed it, if no release contains it."
            ),
            "endian": Key(_ORDER, "Order of the bytes of a number; big by default."),
            "versions": Key(Range(), "The versions of the layout."),
            "version_notes": Key(
                MapOf(Use("version_note"), numbers=True), "Which releases wrote a version."
            ),
            "message": Key(
                Use("message"), "What the layout is in a protocol of requests and responses."
            ),
            "accepts": _ACCEPTS,
            "flexible": Key(
                Either((Range(), OneOf(("never",)))),
                "From which version on lengths are compact and tagged fields end the layout: `1+`, or `never`. Text, bytes and "
                "arrays need no lengths of their own then.",
            ),
            "given": _VALUES_AND_ARRAYS_GIVEN,
            "fields": replace(_FIELDS, required=True),
            "tagged": Key(
                MapOf(Use("field")),
                "Fields that are written only where they differ from their defaults, by number.",
            ),
            "derived": Key(MapOf(Anything()), "Values worked out from the fields."),
            "rules": Key(
                MapOf(Use("rule")),
                "What all fields together have to meet. Strict readers and builders refuse the rest; lenient readers do not look.",
            ),
            "build": Key(
                MapOf(MapOf(Use("fill"))),
                "What callers of builders may give in the elements of an array instead of a field: array, field, and how.",
            ),
            "examples": Key(ListOf(Use("example")), "Bytes beside what they mean."),
            "documentation": Key(
                Use("layout_documentation"), "What only pages say, and no reader or builder."
            ),
        },
    ),
    "message": Form(
        "What a layout is in a protocol of requests and responses.",
        {
            "role": Key(OneOf(("request", "response", "header")), "What the layout is.", True),
            "key": Key(
                Integer(), "The number of the message. A request and its response have the same."
            ),
            "header": Key(
                _one_or_by_version(LayoutName()),
                "The layout in front of it: a header, in one version.",
            ),
            "key_field": Key(Name(), "The field of a header that holds the key of the message."),
            "version_field": Key(
                Name(), "The field of a header that holds the version of the message."
            ),
            "unstable": Key(Range(), "Versions that may still change."),
            "facts": Key(
                MapOf(ListOf(Word())),
                "What the format says about the message and not about its bytes. Targets pass it on.",
            ),
        },
        together={"key_field": ("version_field",), "version_field": ("key_field",)},
    ),
    "version_note": Form(
        "Which releases wrote a version.", {"since": SINCE, "until": _UNTIL, "doc": DOC}
    ),
    "field": Form(
        "A field.",
        {
            "type": Key(
                Either((_WORDS, ByVersion(OneOf(tuple(SCALARS))))),
                "A number, a boolean, a uuid; in a flexible layout also `string` and `bytes`.",
            ),
            "tag": Key(Integer(), "The number of a tagged field."),
            "bits": Key(
                OneOf(BIT_TYPES, "an integer type, or an unsigned one of variable length,"),
                "An integer, or an unsigned one of variable length, whose bits have meanings of their own.",
            ),
            "bytes": Key(
                _LENGTH_OF_BYTES,
                "Bytes, by the type of their length, a number, the rest, or a zero byte that ends them; an earlier field plus or minus "
                "a number; or a value from outside.",
            ),
            "string": Key(
                _LENGTH_OF_BYTES,
                "Text in UTF-8, likewise.",
            ),
            "padded": _PADDED,
            "padding": Key(
                Integer(),
                "Zero bytes up to the next multiple of this number, counted from the start of the layout.",
            ),
            "array": Key(
                Either((_WORDS, Use("element"), LayoutName())),
                "Elements one after the other.",
            ),
            "layout": Key(LayoutName(), "Another layout."),
            "fields": _FIELDS,
            **FIELD_OF_CHOICE,
            "members": Key(MapOf(Use("bit")), "The bits, the least significant is 0."),
            "count": Key(
                Either(
                    (
                        OneOf(LENGTHS, "the type of a count"),
                        Integer(),
                        Amount(),
                        ByVersion(Either((OneOf(LENGTHS, "the type of a count"), Integer()))),
                    )
                ),
                "Type of the number of elements before an array; the number, if it is always the same; an earlier field plus or "
                "minus a number; or a value from outside.",
            ),
            "length": Key(
                _one_or_by_version(OneOf(BYTE_LENGTHS, _A_LENGTH)),
                "Type of the length in bytes before an array or a choice.",
            ),
            "until": Key(
                Either((OneOf(("end",)), Code())),
                "The array reaches to the end of the range that it stands in, or to the first element, `item`, for which this holds.",
            ),
            "compressed": Key(Use("compressed"), "The array is compressed."),
            "nesting": Key(Integer(), "How deep the array may hold its own layout."),
            "at_least": Key(Integer(), "The fewest elements."),
            "none": Key(
                _one_or_by_version(Integer(), Boolean(), Use("presence")),
                "What stands for no value: a number that is also the default, a length or a count; a number in front of a layout; "
                "or, in a flexible layout, `true`. In versions that it does not name there is always a value.",
            ),
            "endian": Key(
                _ORDER, "Order of the bytes of its numbers; that of the layout by default."
            ),
            "doc": DOC,
            "versions": _VERSIONS,
            "since": SINCE,
            "when": Key(Code(), "The field is there only when this holds."),
            "default": Key(Default(), "What the builder writes when no value is given."),
            "const": Key(Constant(), "The only value."),
            "is": Key(
                OneOf(("version",)),
                "The field holds the version of the layout. Without one the caller says which it is.",
            ),
            "enum": _ENUM,
            "only": _ONLY,
            "measures": Key(_FIELD_RANGE, "The field is the length in bytes of a range of fields."),
            "counts": Key(
                Either((Name(), ListOf(Name()))),
                "The field is the number of elements of an array, or of each of several arrays.",
            ),
            "checksum": Key(OneOf(tuple(CHECKSUMS), "a checksum"), "The field is a checksum."),
            "mask": Key(
                Either((Integer(), Use("mask"))),
                "The bits of the checksum that are kept, the others are 0; or how it is changed before it is stored.",
            ),
            "covers": Key(
                Either((_REST, Use("covered_range"), ListOf(Use("covered_range")))),
                "The range of fields that the checksum is taken over, or several, one after the other.",
            ),
            "valid": Key(
                Code(), "What the format says of the value. Strict readers refuse the rest."
            ),
            "refuse": Key(Code(), "What every reader refuses."),
            "accepts": _ACCEPTS,
            "unit": Key(Word(), "Unit of the number."),
            "spelled": SPELLED,
            "documentation": Key(
                Use("field_documentation"), "What only pages say, and no reader or builder."
            ),
            "sensitive": Key(
                Either((Boolean(), Use("sensitive"))), "The value is a secret: readers hide it."
            ),
        },
        one_of=(
            ("type", "bits", "bytes", "string", "array", "layout", "fields", "choice", "padding"),
        ),
        together={
            "padded": ("bytes", "string"),
            "members": ("bits",),
            "bits": ("members",),
            "none": ("type", "bytes", "string", "array", "length", "layout", "fields"),
            "enum": ("type",),
            "only": ("enum",),
            "covers": ("checksum",),
            "checksum": ("covers",),
            "mask": ("checksum",),
            "count": ("array",),
            "length": ("array", "choice"),
            "version": ("layout", "choice"),
            "given": ("choice", "layout", "array"),
            "unknown": ("choice",),
            "until": ("array",),
            "compressed": ("array",),
            "nesting": ("array",),
            "at_least": ("array",),
        },
    ),
    "presence": Form(
        "A number in front of a layout that says whether the layout exists: 1 if it does.",
        {
            "type": Key(
                OneOf(BYTE_LENGTHS, "an integer type"), "Type of the number.", True, "type: i8"
            ),
            "value": Key(Integer(), "The number if there is no layout.", True, "value: -1"),
        },
    ),
    "element": Form(
        "What an array holds, where that is no number and no layout with a name.",
        {
            "bytes": Key(
                _one_or_by_version(OneOf((*LENGTHS, ZERO_TERMINATED), _A_LENGTH), Integer()),
                "Bytes, by the type of their length, a number, or a zero byte that ends them.",
            ),
            "string": Key(
                _one_or_by_version(OneOf((*LENGTHS, ZERO_TERMINATED), _A_LENGTH), Integer()),
                "Text in UTF-8, likewise.",
            ),
            "padded": _PADDED,
            "none": Key(_one_or_by_version(Integer()), "The length that stands for no value."),
            "fields": _FIELDS,
            **ELEMENT_OF_CHOICE,
        },
        one_of=(("bytes", "string", "fields", "choice"),),
        together={
            "none": ("bytes", "string", "length"),
            "padded": ("bytes", "string"),
            "length": ("choice",),
            "version": ("choice",),
            **TOGETHER,
        },
    ),
    "bit": Form(
        "One bit, or a few beside each other.",
        {
            "at": Key(Bits(), "Which bits: `3` or `0-2`."),
            "reserved": Key(
                OneOf(("keep",)), "All bits that no other member has; kept as they are."
            ),
            "enum": _ENUM,
            "only": _ONLY,
            "doc": DOC,
            "versions": _VERSIONS,
            "since": SINCE,
            "spelled": SPELLED,
            "default": Key(Code(), "What the builder writes when no value is given."),
            "documentation": Key(
                Use("bit_documentation"), "What only pages say, and no reader or builder."
            ),
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
    "covered_range": Form(
        "Consecutive fields, both ends included.",
        {
            "from": Key(Name(), "The first field.", True),
            "to": Key(Name(), "The last field; the end of the layout when it is left out."),
            "zero": Key(ListOf(Name()), "Fields of it that count as zero bytes."),
        },
    ),
    "compressed": Form(
        "A section that is compressed.",
        {
            "by": Key(Code(), "The field that names the codec.", True),
            "limit": Key(
                Integer(),
                "The most bytes that it may decompress to, together with the compressed arrays before it in the layout, "
                "unless the caller sets another limit.",
                True,
            ),
            "except": Key(ListOf(Name()), "Codecs that may not be used here."),
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
            "type": Key(
                OneOf(("i8", "i16", "i32", "i64", "string", "bytes")),
                "Its type; sums wrap in it.",
                True,
            ),
            "is": Key(
                Code(),
                "How it is worked out; `array[index]` looks an element of an array up.",
                True,
            ),
            "doc": DOC,
            "unit": Key(Word(), "Unit of the number."),
            "versions": _VERSIONS,
            "since": SINCE,
        },
    ),
    "rule": Form(
        "What all fields of a layout together have to meet.",
        {
            "about": Key(Name(), "The field that errors name.", True),
            "is": Key(
                Code(),
                "The condition. It names any field, and `first(array).field`, `last(array).field`, `max(array).field`, "
                "`min(array).field`: it is not applied to an array without elements. Sums wrap in 64 bits.",
            ),
            "ascending": Key(
                Code(),
                "`array.field`: in each element the number is larger than in the element before.",
            ),
            "doc": DOC,
            "versions": _VERSIONS,
            "since": SINCE,
        },
        one_of=(("is", "ascending"),),
    ),
    "fill": Form(
        "What a builder puts into a field of the elements of an array.",
        {
            "from": Key(Name(), "The name under which an element may have a value instead.", True),
            "less": Key(
                Name(),
                "The field of the layout that is subtracted from it. If it is not given, it is what the first element has, or "
                "its default.",
                True,
            ),
            "otherwise": Key(
                Either((OneOf(("index",)), Integer())),
                "What an element gets that has neither: a number, or its `index`.",
                True,
            ),
        },
    ),
    "layout_documentation": Form(
        "What only pages say of a layout.",
        {
            "overhead": Key(
                Use("overhead"), "A table of the bytes that layouts add to what they carry."
            ),
        },
    ),
    "field_documentation": Form(
        "What only pages say of a field.",
        {
            "formerly": Key(Use("formerly"), "A name that it had before."),
            "misprint": _MISPRINT,
            "hidden": Key(Boolean(), "Left out of summaries."),
        },
    ),
    "bit_documentation": Form("What only pages say of a bit.", {"misprint": _MISPRINT}),
    "formerly": Form(
        "A name that something had before.",
        {
            "name": Key(Name(), "The name.", True),
            "until": Key(Release(), "The release in which it changed.", True),
        },
    ),
    "sensitive": Form(
        "Which values of a field are secrets.",
        {
            "named_by": Key(
                Name(), "The field of the same layout, a text, that names the value.", True
            ),
            "endings": Key(
                ListOf(Text()),
                "How the names of secrets end, in lower case; the case of a name does not matter.",
                True,
            ),
        },
    ),
    "mask": Form(
        "How a checksum is changed before it is stored.",
        {
            "rotate_right": Key(Integer(), "By how many bits it is rotated to the right."),
            "add": Key(
                Integer(),
                "The number that is then added, modulo 2 to the power of the bits of the checksum.",
            ),
        },
    ),
    "misprint": Form(
        "What a document about the format says wrongly.",
        {
            "as": Key(PROSE, "What it says; `missing` when it leaves the field out.", True),
            "doc": Key(PROSE, "What is right, and why it matters."),
            "until": Key(Release(), "The release in which the document was mended."),
            "versions": _VERSIONS,
        },
    ),
    **EXAMPLES,
    **CHOICES,
    **VIEWS,
    **TEXTS,
    **ENUMS,
    "since": Form("A release, and documents to read. The keys are those of the manifest.", {}),
}
"""Every mapping of the language. ``since`` takes the release line of the manifest and its links as keys."""

NUMBERS = (*INTEGERS, *VARINTS)
"""The types of the number that a choice can be given."""

DOCUMENTS = ("layout", "text", "choice", "enums", "view")
"""What a YAML document can be: it has the key of that name."""
