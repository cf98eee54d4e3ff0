"""What to do about each diagnostic: the text of ``codecgen explain C012`` and the page of diagnostics."""

from __future__ import annotations

from collections.abc import Mapping

ADVICE: Mapping[str, str] = {
    "C001": "The YAML parser stopped here, often because of a colon, a quote or a tab in plain text. Put text that "
    "has such characters into quotes, and save files as UTF-8.",
    "C002": "Schemas are read by people and by programs in many languages, so they keep to plain YAML. Write out "
    "what the anchor, the tag or the merge key stands for.",
    "C003": "YAML would silently take the last of the two. Remove one of them.",
    "C004": "The key is none of those that this mapping takes. The language page lists them all.",
    "C005": "Something that the mapping cannot do without is not there. The message names the key.",
    "C006": "A number, a list, a mapping or a word of a fixed set is needed, and something else stands there.",
    "C007": "Names become names in generated code, so they keep to lower-case letters, digits and underscores. How "
    "a format's own documents write a name goes under `spelled`.",
    "C008": "Names of layouts, choices and enums are global: every file can refer to them. Two that would give the "
    "same name in generated code count as the same.",
    "C009": "Expressions have fields, numbers, `+`, `-`, comparisons, `and`, `or`, `not` and `if .. then .. else`, "
    "and nothing else.",
    "C010": "A range is one version (`1`), a closed range (`0-2`) or an open one (`1+`). Those of a layout itself "
    "are closed: a generator writes a codec for each.",
    "C011": "Two keys say different things about the same, or a key needs another beside it. Keep the one that is "
    "meant.",
    "C012": "The name is not declared in any file of the directory. When a similar one is, the help line says where.",
    "C013": "The word is none of the types: i8 to i64, u8 to u64, varint, varlong, uvarint, uvarlong, f32, f64, bool, "
    "uuid.",
    "C014": "The layout has no field of that name. Derived values are not fields.",
    "C015": "Each bit belongs to exactly one member, and a member is wide enough for the values of its enum. "
    "`{reserved: keep}` takes all bits that nobody else has.",
    "C016": "A length lies before the range that it measures, or in it behind fields of fixed size alone, a count "
    "before its array, and an expression asks for what has been read by then. A checksum does not lie in what it covers, "
    "unless it counts as zero there. Lengths and checksums are worked out last, so a builder cannot make decisions by "
    "them.",
    "C017": "A constant, a default, a value of an enum, a length or a limit is outside what its type can hold, or "
    "means two things at once.",
    "C018": "`since`, `until` and `as_of` name releases of the manifest's list, and `as_of_folders` folders of schemas, so "
    "that misspelt ones are noticed.",
    "C019": "A layout that holds itself would go on for ever, or as deep as hostile bytes like. Bound an array with "
    "`nesting`, or let a struct depend on a field with `when`.",
    "C020": "Something is asked for in a version in which it does not exist, or it is open which version of a "
    "layout is meant. Name one: `message@0`.",
    "C021": "What decides how the bytes go on must be found before anything else is known: at the same byte, with "
    "the same type, always there.",
    "C022": "Numbers go with numbers, values of an enum with values of the same enum, and null only with what can "
    "be null. Conditions are true or false.",
    "C023": "The model is sound, but a target has no way to say this. An error: nothing is written, and the files of the "
    "last run stay as they are. Choose other targets with --targets, or say it differently. A note: everything is written, "
    "and the reference codecs read the view that kernels cannot read.",
    "C024": "The bytes of an example and the values beside them contradict each other. One of the two is wrong.",
    "C025": "A schema directory holds a codecgen.yaml with at least `package` and `title`, and files that end in "
    ".yaml beside it.",
    "C026": "Schemas are small. A file of more than 1 MiB or a nesting of more than 30 levels is an accident, or "
    "meant to do harm.",
    "C027": "The name means something in Python, in expressions, or in the code that is generated. Take another one; "
    "`spelled` keeps the documents as they were.",
    "C028": "What ends does so after it begins, a part is no older than the whole, and releases are listed from the "
    "oldest to the newest.",
    "C029": "A freedom says what lenient readers take. Here there is nothing that it could apply to, so it is "
    "misplaced.",
    "C030": "A choice by an enum has a case for every value, or its `doc` says what becomes of the others.",
    "C031": "Bytes and text that take all that is left may be followed by fields of fixed size only, arrays and layouts "
    "that do so by nothing, within a range that a length measures or to the end of the bytes. Elements of an array end by "
    "themselves, and take at least a byte.",
    "C032": "The rows of a view lie in layouts of one choice by a field, and each column has a value of its type in every "
    "layout and version. Where there is none, the column is nullable or a list. Where rows are written, each field that the "
    "layout does not settle and that has no default is made of columns.",
    "C033": "The template has a mistake in it, asks for what the data does not have, or does more than the limits "
    "allow. The page about templates lists what there is.",
    "C034": "A target with templates of its own takes others for them by name. Take one of the names that there are; "
    "a file for others to include has a name that begins with `_`.",
    "C040": "`uses` names another schema directory: an installed package that brings its schemas, or a path. It is in the "
    "same version of the language, `codecgen check` finds nothing in it, it does not use this one in turn, and no two "
    "directories make the same package.",
    "C050": "Where a type differs between versions, each version that has the field has exactly one: ranges do not overlap, "
    "leave none out, and name no other versions. The values stay of one kind, so that a field is one column.",
    "C051": "A layout that says `flexible` settles how long text, bytes and arrays are that do not say it, and how they are "
    "null; it says from which version on, or `never`. The layouts that it holds say it too, for the same versions.",
    "C052": "A tagged field has a number of its own in the layout, is there in flexible versions only, and is left out where "
    "it holds its default, which depends on nothing. It stands in no range, and nothing but its size says how long it is.",
    "C054": "A choice `by` a field of its cases decides by itself. Any other needs `given`: a value that was read before, of the "
    "enum that the choice names, or a number where it names a type. So does a choice that is a case of another, unless it is "
    "given the same value, for which it has a case.",
    "C055": "`version` tells which version a layout, or the case of a choice, is in. It is a number that was read before, and "
    "what is held has versions, none of which is named.",
    "C062": "An array that always has as many elements has one at least, and no more than a reader takes. Padding goes up to "
    "a multiple of 2 or more.",
    "C063": "The ranges that a checksum covers lie apart, and what counts as zero bytes under `zero` lies in the range beside "
    "it. A `mask` keeps bits that the checksum has.",
    "C064": "`until` is a condition on `item`, the element that was read: the first one for which it holds is the last. One "
    "that asks for nothing of it would hold for each element, or for none.",
    "C065": "A rule says what the fields of a layout have to meet together: a condition on some of them, or a number in the "
    "elements of an array that ascends.",
    "C066": "Under `build` stand arrays of layouts, and numbers of their elements that a caller would give. `from` is a name that "
    "the elements do not have, `less` a number of the layout around them.",
    "C059": "Of the parts of a payload one may be a choice by a field; those after it that are a choice `given` an enum go by "
    "the same number, and all others are layouts. Rows say the layout of each part that they look at, and when they are; "
    "heads, full checks and writing are of files.",
    "C060": "Rows of payloads are of parts that come together: the number that decides has cases with these layouts.",
}
"""Number -> why it is reported, and what helps. Plain text."""
