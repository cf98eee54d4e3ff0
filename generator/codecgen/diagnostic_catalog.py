"""Catalog of all diagnostics: what each id means and how to fix its cause.

``codecgen explain C012`` and docs/diagnostics.md print these texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "note"]


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """Texts about one diagnostic, as plain text.

    Attributes:
        title: A noun phrase or a short sentence without a period.
        explanation: The rule that the schema breaks, and why the rule exists.
        remedy: What the author of the schema can do.
        severities: How a run can report it. After an error no file is written.
    """

    title: str
    explanation: str
    remedy: str
    severities: tuple[Severity, ...] = ("error",)


CATALOG: Mapping[str, CatalogEntry] = {
    "C001": CatalogEntry(
        "Invalid YAML",
        "The YAML parser stopped here, or the file is not UTF-8 text. Frequent causes are a colon, a quote or a tab "
        "in unquoted text. An escape such as `\\ud800`, which is half of a character, is invalid too.",
        "Quote text that contains such characters, and save the file as UTF-8. Write a character itself, or `\\U` "
        "and its number with eight digits.",
    ),
    "C002": CatalogEntry(
        "Unsupported YAML feature (tag, anchor, alias or merge key)",
        "Schemas use plain YAML only, because programs in many languages read them. An unquoted expression that "
        "begins with `!` is read as a tag.",
        "Write out the value that the tag, the anchor, the alias or the merge key stands for. In an expression "
        "write `not` instead of `!`.",
    ),
    "C003": CatalogEntry(
        "Duplicate key",
        "A mapping has the same key twice. YAML would silently use the last value.",
        "Remove one of the two.",
    ),
    "C004": CatalogEntry(
        "Unknown key",
        "The mapping does not accept this key. The keys of `since` are the `release_line` and the `links` of the "
        "manifest.",
        "Correct the key or remove it. docs/schema-language/reference.md lists the keys of each mapping. A key of "
        "`since` can also be declared in the manifest.",
    ),
    "C005": CatalogEntry(
        "Missing required key",
        "The mapping lacks a key that it must have, or has none of several keys of which it needs one. Examples: an "
        "array without its count, length or end, a field under `tagged` without `tag`, and `releases` without "
        "`release_line`. The message names the key.",
        "Add the key.",
    ),
    "C006": CatalogEntry(
        "Wrong kind of value",
        "The key needs a number, a list, a mapping, text or one word of a fixed set, and has another kind of value. "
        "Numbers, `true` and `false` are not quoted. A key can be of the wrong kind too: it is one word, and under "
        "`version_notes` a number. A choice with more than 1000 cases is also reported, nested choices included.",
        "Write a value or key of the kind that the message names. Give a choice at most 1000 cases.",
    ),
    "C007": CatalogEntry(
        "Invalid name",
        "Schema names become names in generated code. A name starts with a lower-case letter and has lower-case "
        "letters, digits and underscores only. A reference to a layout is such a name, perhaps with a prefix of "
        "`uses` and a version: `base.message@0`.",
        "Rename it. Put the spelling of the format's own documents under `spelled`.",
    ),
    "C008": CatalogEntry(
        "Duplicate declaration",
        "Two things have the same name or key, or names that become the same name in generated code. Layouts, "
        "choices, enums and texts share one namespace across all files of the directory. Fields and derived values "
        "of a layout, examples, views, cases of a choice, and keys of a text must differ too. So must the modules "
        "of two files, and the names under `uses` and those of declarations. Lists such as `only` and `counts` name "
        "nothing twice.",
        "Rename one of the two (or its file), or remove the repetition.",
    ),
    "C009": CatalogEntry(
        "Invalid expression",
        "Expressions consist of fields, numbers, `true`, `false`, `null`, parentheses, `first`, `last`, `max`, "
        "`min`, `array[..]`, `+`, `-`, comparisons, `and`, `or`, `not` and `if .. then .. else`. Their length and "
        "depth are limited.",
        "Correct the place that the message names, or split the expression.",
    ),
    "C010": CatalogEntry(
        "Invalid version range",
        "A range is one version (`1`), a closed range (`0-2`, the lower one first) or an open range (`1+`). The "
        "versions of a layout must be a closed range of at most 100 versions, because the generator writes one "
        "codec for each.",
        "Write a range in one of these forms, or fewer versions.",
    ),
    "C011": CatalogEntry(
        "Conflicting keys",
        "Two keys contradict or repeat each other, a key needs another key that is missing, or a key has no effect "
        "here. Examples of the last: `endian` of a single byte, `default` of a constant, any value of padding, "
        "`enum` of reserved bits, `since` of a draft. `none` needs a number without an enum, a length or a count "
        "that can mean null, the same in all versions. A layout has one field with `is: version`, and then "
        "`versions`. A link of the manifest cannot have the name of its `release_line`.",
        "Keep only the key that you mean, remove a key without effect, or add the missing key. The message names "
        "the keys.",
    ),
    "C012": CatalogEntry(
        "Undeclared layout, choice, enum or enum value",
        "No file of the directory, and no directory under `uses`, declares this name. Or the name is declared as "
        "something else, such as a choice where a layout is needed. An enum value must be one of its enum, and "
        "listed in `only` if that is given. Cases of a choice are values of its enum, or numbers if it has none.",
        "Correct the name or declare it. The help line shows where a similar name is declared, or the keyword for "
        "what the name is.",
    ),
    "C013": CatalogEntry(
        "Unknown type",
        "The word is not a type of the schema language, or not one that the key takes: bits, lengths, counts and "
        "decimals are integers. `type: string` and `type: bytes` exist in flexible layouts only. A length or count "
        "is not the name of a field alone, and not a product.",
        "Use one of i8 to i64, u8 to u64, varint, varlong, uvarint, uvarlong, vlq32, vlq64, f32, f64, bool, uuid. "
        "If a field has the length or count, write `measures` or `counts` at that field. For text and bytes write "
        "`string: LENGTH` or `bytes: LENGTH`.",
    ),
    "C014": CatalogEntry(
        "Unknown field",
        "Nothing has this name here: no field, array or bits of the layout, no value or line of the text. In a "
        "view, it is no column, part or case. Derived values are not fields: only columns of views can use them. "
        "Fields of elements need an element, such as `first(items_).number`, or an array that the view lists in "
        "`each`.",
        "Correct the name. The help line shows a similar name, if there is one.",
    ),
    "C015": CatalogEntry(
        "Overlapping bits, or bits that do not fit",
        "Each bit belongs to exactly one member, within the width of the type, and there is at least one member. A "
        "member must be wide enough for all values of its enum. One member can be `reserved`: it takes all other "
        "bits. There must be some, and they must be adjacent in each version and release.",
        "Correct the positions. `{reserved: keep}` takes all bits that no other member has. For an enum, add bits, "
        "or list the values that can occur under `only`.",
    ),
    "C016": CatalogEntry(
        "Reference to a field that is not available here",
        "A reader works from the first byte to the last. An expression can use earlier fields only. A length must "
        "precede the range that it measures, or lie in this range after fields of fixed size only. Measured ranges "
        "differ, and lie apart or inside one another. A count must precede its array or lines, which nothing else "
        "counts. A count, or the field that names a codec, must exist whenever the array does. A checksum must lie "
        "outside the range that it covers, unless it counts as zero there. Builders compute lengths and checksums "
        "last: no expression of a field can use these, and padding cannot follow a length of variable size. Lengths "
        "and counts from outside are integers.",
        "Move the field, refer to an earlier field, or correct the range or the count as the help line says.",
    ),
    "C017": CatalogEntry(
        "Value out of range",
        "A constant, default, enum value, case, example value, length or limit does not fit its type or its limits. "
        "Or it has two meanings, such as a number of `none` that is also a length. A checksum or version field has "
        "a type that cannot hold it. Enums, choices, texts, repeated lines, `only` and the title must not be empty. "
        "An address begins with https:// or http://, and a link has `{}` once. `named_by` of a secret names text, "
        "and its endings are lower-case.",
        "Correct the value, use a wider type, or add what is missing.",
    ),
    "C018": CatalogEntry(
        "Unknown release",
        "`since`, `until` and `as_of` name releases from the list in the manifest. The list exposes misspelled "
        "releases. A folder under `as_of_folders` must have a file with a layout, choice, enum or text; its "
        "subfolders do not count.",
        "Correct the release, or add it to `releases` in codecgen.yaml. Correct the folder, or remove it from the "
        "list.",
    ),
    "C019": CatalogEntry(
        "Unbounded recursion",
        "A layout contains itself without a limit, so hostile bytes could nest without end. Or a choice is a case "
        "of itself, perhaps through other choices.",
        "Limit the depth with `nesting` on an array that can be empty, or make a field depend on something with "
        "`when`. Give a choice a case that ends. Replace a choice that is its own case by a layout.",
    ),
    "C020": CatalogEntry(
        "Version does not exist, or is ambiguous",
        "The schema uses a field, bits, a layout or a version in a version that does not have it. A version range, "
        "also of a note, needs `versions` of its layout and lies in them. A reference to a layout with several "
        "versions names one. It need not if the layout around it has the same versions, or a field or `version` "
        "tells the version. An example names its version. A choice has no versions. `language` in the manifest must "
        "be a version that this generator knows.",
        "Name an existing version, such as `message@0`, limit `versions`, or add `versions` to the layout. For "
        "`language`, install the generator that knows it, or change the files as the changelog says.",
    ),
    "C021": CatalogEntry(
        "Discriminator at a variable position",
        "Readers look at a discriminator before they know anything else. It must be an integer with the same byte "
        "position, type and byte order in all cases, and must always exist. The same holds in all versions of a "
        "layout for the field that has its version (`is: version`), which has a fixed size.",
        "Move the field so that only fields of fixed size precede it in every case. Give it one integer type, and "
        "remove `when` and `versions` from it.",
    ),
    "C022": CatalogEntry(
        "Type mismatch in an expression",
        "A value has the type that its key or declaration needs, and both branches of `if` have one type. Numbers "
        "combine with numbers, and enum values with values of the same enum by `==` and `!=`. Only nullable values "
        "compare with null, which stands on the right. Conditions are true or false. `by` of `compressed` names a "
        "field, or bits, with an enum. `item`, `first`, `last`, `max`, `min` and `array[..]` need an array, and are "
        "allowed in some keys only; the message names them. Padding, a set of bits in a case and a whole part have "
        "no value. A word must not be both a field and a value of the enum.",
        "Change the operand or the operator that the message names, or rename the field or the enum value.",
    ),
    "C023": CatalogEntry(
        "Feature that a target or the runtime does not support",
        "A target or the runtime cannot express this feature. As an error it stops the run, and the files of the "
        "last run remain. Errors are a type that the target lacks, a codec or variant that does not exist, and "
        "files that need each other. Others are two derived values of one name in a file, a page whose path is "
        "taken, and an overhead table without computable sizes. The last is a view with `write` whose rows no "
        "kernel can write. As a note it says that kernels, or the NumPy reader, cannot read a view, or that kernels "
        "cannot read the rows of a layout in it. The reference codecs read what kernels cannot.",
        "Do what the help line says. Otherwise exclude the target with `--targets`, or describe the format in "
        "another way. Correct the name of a codec, or list it under `except`. A note needs no action.",
        ("error", "note"),
    ),
    "C024": CatalogEntry(
        "Example contradicts its bytes",
        "Parsing the bytes of an example of a layout or text does not give its values, or building its values does "
        "not give its bytes.",
        "Correct the bytes, the values, or the layout or text.",
    ),
    "C025": CatalogEntry(
        "Missing manifest, or empty schema directory",
        "A schema directory contains codecgen.yaml, one YAML document with at least `language`, `package` and "
        "`title`, and next to it files that end in .yaml. A file that ends in .yml is reported and not read.",
        "Create the missing file, rename .yml to .yaml, remove `---` between documents of the manifest, or name "
        "another directory.",
    ),
    "C026": CatalogEntry(
        "File too large or nested too deeply",
        "Schema files are limited to 1 MiB and 30 levels of lists and mappings. A larger file is a mistake or an "
        "attack. Layouts can contain each other up to 32 levels deep; an array of layouts counts as two levels.",
        "Split the file, or flatten it. Let fewer layouts contain each other.",
    ),
    "C027": CatalogEntry(
        "Reserved name",
        "The name of a declaration, field, column, part, file or package has a meaning in Python, in expressions or "
        "in generated code. A file name that cannot be the name of a module, and a name of more than 64 characters, "
        "are reported too.",
        "Choose another name. `spelled` keeps the name of the format's own documents; at a key of `properties` it is the key in the file.",
    ),
    "C028": CatalogEntry(
        "Releases in an impossible order",
        "A version cannot end before it begins, a part cannot be older than the whole, and a former name cannot end before "
        "its field begins. A field or expression cannot use what is newer than itself, nor a draft unless its own "
        "layout is one. The manifest lists each release once, from the oldest to the newest.",
        "Correct `since`, `until`, `draft` or the list of releases.",
    ),
    "C029": CatalogEntry(
        "Tolerance without effect",
        "`accepts` lists what lenient readers tolerate. Nothing in this field, layout, line or text can show this "
        "deviation.",
        "Remove the word, or move it to the field that it concerns.",
    ),
    "C030": CatalogEntry(
        "Incomplete choice",
        "A choice `given` an enum needs a case for every value of the enum, or a `doc` that names the missing "
        "values.",
        "Add the cases, or say in `doc` how readers treat these values.",
    ),
    "C031": CatalogEntry(
        "Undefined end",
        "Bytes and text that take the rest of the input can precede fields of fixed size only. An array, layout or "
        "choice that takes the rest must be the last field in the range of a length, or in the input. A compressed "
        "array without a length takes the rest, and so does a choice without one that accepts unknown cases. "
        "Elements of an array must end by themselves and take at least one byte. In a text, repeated lines are "
        "counted by another line or come last. Several values in a line need a separator. No label and no value can "
        "contain it, except a last value that takes the rest of the line.",
        "Add a length or a count, or move the field to the end. Give elements a length or a field that always has "
        "bytes. In a text, count the lines, or correct the separator.",
    ),
    "C032": CatalogEntry(
        "View does not match its layouts",
        "A view is of a layout or of a choice by a field; each entry has its own end, at least one byte, and a "
        "known version. Rows are these entries, or elements of their arrays. Each column needs a value of its type, "
        "and wide enough, in every layout and version, unless it is nullable or a list. With `header_only`, columns "
        "use fields at fixed places only. To write rows, each field needs a value: from the layout, from its "
        "default or from columns that are known then. A note names a case of the choice without rows in the view: "
        "its entries are missing from the table.",
        "Correct the type or expression of the column or field, make the column nullable, or remove the key that "
        "the message names. After a note, add rows of the case. If its entries hold no rows, a note needs no "
        "action.",
        ("error", "note"),
    ),
    "C033": CatalogEntry(
        "Template error",
        "The template is invalid, uses data, a template, a filter or a method that is not available, or exceeds a "
        "limit. The run stops, and the files of the last run remain.",
        "Correct the template. docs/template-reference.md lists the data that templates receive.",
    ),
    "C034": CatalogEntry(
        "Unusable name of a template",
        "For the targets docs and html, a template replaces the template of the same name, but the target has none "
        "of this name. For the target template, the name has an unknown `{{placeholder}}`, or gives the same output "
        "file as another template (case is ignored).",
        "Rename the template as the message says. Start the name of a file that others include with `_`.",
    ),
    "C040": CatalogEntry(
        "Unusable schema directory under `uses`",
        "`uses` names another schema directory: an installed package with schemas, or a path. It must exist outside "
        "this directory, with a codecgen.yaml of the same language version and without findings. It must not use "
        "this directory in turn, must generate another package, and is named once. At most 16 directories use each "
        "other in a row.",
        "Correct the name or the path, or run `codecgen check` on that directory. Put what two directories need "
        "from each other into a third. Change `package` in one of them if both generate the same.",
    ),
    "C050": CatalogEntry(
        "Field without exactly one type in a version",
        "If a type or another key differs between versions, each version that has the field needs exactly one value "
        "(`none` may be absent). No range lies outside these versions. All types must give the same kind of value, "
        "so that the field is one column.",
        "Close the gaps between the ranges, and remove overlaps and versions without the field. Use two fields for "
        "two kinds of value.",
    ),
    "C051": CatalogEntry(
        "Flexible layout without settled lengths",
        "`flexible` determines how text, bytes and arrays without a length type, and their nulls, are encoded. It "
        "names the first flexible version, which the layout must have and after which all are flexible, or `never`. "
        "The layouts in a flexible layout must say `flexible` too, for the same versions. `none: true` belongs to "
        "lengths that a flexible layout determines, and a number to all others.",
        "Add `flexible` with the first flexible version (`1+`) or `never`, or write the length types. Write `none: "
        "true` or a number as the message says.",
    ),
    "C052": CatalogEntry(
        "Invalid tagged field",
        "A tagged field has a number of its own, from 0 to 2147483647, and exists in flexible versions only. "
        "Builders omit it if it holds its default, which must exist and be a constant. A layout needs `none: true` "
        "or `default: {}`, and an enum without the value 0 needs a default. No range of a length or checksum begins "
        "or ends with it. It is no choice, no padding and no array with a fixed number of elements. It has no key "
        "of fields in order, such as `when` or `checksum`, and no bytes that reach to the end or to a zero byte.",
        "Correct the tag, the versions, the default, the type or the range that the message names, or remove `tag`.",
    ),
    "C054": CatalogEntry(
        "Missing or unsuitable discriminator",
        "A choice `by` a field of its cases needs nothing else. Every other choice needs `given`: an earlier value "
        "of the enum that the choice names, or a number or enum value if the choice names a type. A choice that is "
        "a case of another one is decided by a field, or by the same value as the outer one. If both are decided by "
        "the same field or value, the inner one needs a case for each value that leads to it.",
        "Add `given` with an earlier field of the right type, or add the missing case. Let the inner choice be "
        "decided by a field or by the same value.",
    ),
    "C055": CatalogEntry(
        "Key `version` on something without versions",
        "`version` tells which version a layout or the case of a choice has. It must be an integer, and the layout "
        "or one of the cases must have versions. A reference must not name a version too, unless the layout has a "
        "field with its version.",
        "Remove `version` or the version in the reference, write an earlier integer field, or give the layout "
        "`versions`.",
    ),
    "C062": CatalogEntry(
        "Impossible size",
        "A fixed number of elements is from 1 to 1048576. Padding goes up to a multiple of 2 to 65536.",
        "Write a number within these limits, or for elements the type of a count in front of them.",
    ),
    "C063": CatalogEntry(
        "Invalid checksum range or mask",
        "The ranges of a checksum must not overlap. A field under `zero` must lie in the range beside it. The "
        "numbers of a `mask` must fit the width of the checksum (`rotate_right` is less than it), and change "
        "something.",
        "Correct the ranges, `zero` or `mask`.",
    ),
    "C064": CatalogEntry(
        "End condition that ignores the element",
        "`until` is a condition on `item`, the element that was just read. The first element that meets it is the last. A "
        "condition without `item` would hold for each element or for none.",
        "Use a field of `item` in the condition.",
    ),
    "C065": CatalogEntry(
        "Rule without a condition",
        "A rule is a condition on fields of a layout, or names a number that must ascend from element to element of "
        "an array. The condition names no field, or what must ascend is not directly a field of the elements.",
        "Refer to fields of the layout in the condition, write `ascending: ARRAY.FIELD`, or remove the rule.",
    ),
    "C066": CatalogEntry(
        "Invalid value for builders",
        "`build` names arrays of layouts and the numbers of their elements that builders fill in from a value of "
        "the caller. `from` must be a name that the elements do not use, and `less` a number of the surrounding "
        "layout. Both numbers are plain integers: without enum, constant or `when`, and no length, count, checksum "
        "or version.",
        "Correct the name of the array or of the number, `from` or `less`.",
    ),
    "C070": CatalogEntry(
        "Invalid message of a protocol",
        "`message` says that a layout is a request, a response or a header, and has only the keys of this role. A "
        "request or response has versions, and a key that no other layout of its role has; `unstable` lies within "
        "its versions. If it has a `header`, each of its versions has exactly one: a layout with the role `header`, "
        "in one version. All requests have the same header layout, which names `key_field`. The fields that a "
        "header names for key and version are integers, and lie at the same bytes in all of its versions.",
        "Correct `message`, or the header that it names.",
    ),
    "C071": CatalogEntry(
        "Value from outside that does not fit",
        "A layout or a choice declares under `given` the values that it gets from outside. Each field that holds "
        "it, and each array of it, gives all of them and no others by name. Their expressions have the declared "
        "types, fit their range, are known before the field and never null. The same holds for a choice, which a "
        "number or an enum decides, not a boolean. Its cases are given what the choice is given, with the same "
        "types. Tagged fields, layouts declared in place and entries of views are given no values, except what "
        "decides a choice.",
        "Give each declared value under `given` of the field, correct its expression, or remove its declaration. "
        "Hold what needs values in a field that can give them.",
    ),
    "C059": CatalogEntry(
        "Ambiguous parts of a payload",
        "Only one part of a payload can be a choice by a field. Later parts can be choices `given` the enum (or "
        "number) of that field. All other parts must be layouts. No choice contains another choice here. A layout "
        "with several versions has a field with its version, or the choice names one. Rows name existing parts with "
        "their layouts, and have no `header_only`, full checks or `write`: these apply to files only.",
        "Name a layout for the part, or an inner choice as the part. Add a version field to the layout, write `of: "
        "{PART: LAYOUT}` for the rows, or remove the key that applies to files.",
    ),
    "C060": CatalogEntry(
        "Rows of parts that never occur together",
        "All parts of a payload go by one number. The part never has this layout, or no number has cases with "
        "exactly these layouts.",
        "Name layouts that belong to the same number, as the help line lists them.",
    ),
}
"""Catalog entry of each id, in the order of docs/diagnostics.md. An id never changes its meaning."""
