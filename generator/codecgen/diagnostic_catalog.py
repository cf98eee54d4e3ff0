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
        "The YAML parser stopped here. Frequent causes are a colon, a quote or a tab in unquoted text.",
        "Quote text that contains such characters, and save the file as UTF-8.",
    ),
    "C002": CatalogEntry(
        "Unsupported YAML feature (tag, anchor, alias or merge key)",
        "Schemas use plain YAML only, because programs in many languages read them.",
        "Write out the value that the tag, the anchor, the alias or the merge key stands for.",
    ),
    "C003": CatalogEntry(
        "Duplicate key",
        "A mapping has the same key twice. YAML would silently use the last value.",
        "Remove one of the two.",
    ),
    "C004": CatalogEntry(
        "Unknown key",
        "The mapping does not accept this key.",
        "Correct the key or remove it. docs/schema-language/reference.md lists the keys of each mapping.",
    ),
    "C005": CatalogEntry(
        "Missing required key",
        "The mapping lacks a key that it must have. The message names the key.",
        "Add the key.",
    ),
    "C006": CatalogEntry(
        "Wrong kind of value",
        "The key needs a number, a list, a mapping or one word of a fixed set, and has another kind of value.",
        "Write a value of the kind that the message names.",
    ),
    "C007": CatalogEntry(
        "Invalid name",
        "Schema names become names in generated code. A name starts with a lower-case letter and has lower-case letters, "
        "digits and underscores only.",
        "Rename it. Put the spelling of the format's own documents under `spelled`.",
    ),
    "C008": CatalogEntry(
        "Duplicate declaration",
        "Layouts, choices and enums share one namespace across all files of the directory. Two names that become the same "
        "name in generated code count as equal.",
        "Rename one of the two.",
    ),
    "C009": CatalogEntry(
        "Invalid expression",
        "Expressions consist of fields, numbers, `true`, `false`, `null`, parentheses, `first`, `last`, `max`, `min`, `+`, `-`, "
        "comparisons, `and`, `or`, `not` and `if .. then .. else`. Their length and depth are limited.",
        "Correct the place that the message names, or split the expression.",
    ),
    "C010": CatalogEntry(
        "Invalid version range",
        "A range is one version (`1`), a closed range (`0-2`) or an open range (`1+`). The versions of a layout must be a "
        "closed range, because the generator writes one codec for each.",
        "Write a range in one of these forms.",
    ),
    "C011": CatalogEntry(
        "Conflicting keys",
        "Two keys contradict each other, or one key needs another key that is missing.",
        "Keep only the key that you mean, or add the missing key.",
    ),
    "C012": CatalogEntry(
        "Undeclared layout, choice, enum or enum value",
        "No file of the directory declares this name.",
        "Correct the name or declare it. The help line shows where a similar name is declared.",
    ),
    "C013": CatalogEntry(
        "Unknown type",
        "The word is not a type of the schema language, or not one that the key takes: bits, lengths, counts and decimals are integers.",
        "Use one of i8 to i64, u8 to u64, varint, varlong, uvarint, uvarlong, vlq32, vlq64, f32, "
        "f64, bool, uuid.",
    ),
    "C014": CatalogEntry(
        "Unknown field",
        "The layout has no field, or the text no value, of this name. Derived values are not fields.",
        "Correct the name. The help line shows a similar field.",
    ),
    "C015": CatalogEntry(
        "Overlapping bits, or bits that do not fit",
        "Each bit belongs to exactly one member, and a member must be wide enough for all values of its enum.",
        "Correct the positions. `{reserved: keep}` takes all bits that no other member has.",
    ),
    "C016": CatalogEntry(
        "Reference to a field that is not available here",
        "A reader works from the first byte to the last. A length must precede the range that it measures, or lie in this "
        "range after fields of fixed size only. A count must precede its array. An expression can use earlier fields only. A "
        "checksum must lie outside the range that it covers, unless it counts as zero there. Builders compute lengths and "
        "checksums last and cannot make decisions by them.",
        "Move the field, or refer to an earlier field.",
    ),
    "C017": CatalogEntry(
        "Value out of range",
        "A constant, a default, an enum value, a length or a limit does not fit its type, or has two meanings.",
        "Correct the value or use a wider type.",
    ),
    "C018": CatalogEntry(
        "Unknown release",
        "`since`, `until` and `as_of` name releases from the list in the manifest. The list exposes misspelled releases.",
        "Correct the release, or add it to `releases` in codecgen.yaml.",
    ),
    "C019": CatalogEntry(
        "Unbounded recursion",
        "A layout contains itself, so hostile bytes could nest without end.",
        "Limit the depth with `nesting` on an array, or make a struct depend on a field with `when`.",
    ),
    "C020": CatalogEntry(
        "Version does not exist, or is ambiguous",
        "The schema uses something in a version that does not have it, or refers to a layout with several versions without "
        "naming one.",
        "Name an existing version, such as `message@0`, or limit `versions`.",
    ),
    "C021": CatalogEntry(
        "Discriminator at a variable position",
        "Readers look at a discriminator before they know anything else. It must have the same byte position and the same "
        "type in all cases, and must always exist.",
        "Move the field so that only fields of fixed size precede it in every case.",
    ),
    "C022": CatalogEntry(
        "Type mismatch in an expression",
        "Numbers combine with numbers, and enum values with values of the same enum. Only nullable values compare with "
        "null. Conditions are true or false.",
        "Change the operand or the operator that the message names.",
    ),
    "C023": CatalogEntry(
        "Feature that a target does not support",
        "The schema is valid, but a target cannot express this feature. As an error it stops the run, and the files of the "
        "last run remain. As a note it says that kernels cannot read a view, or the rows of a layout in it; the reference codecs "
        "read these instead.",
        "Exclude the target with `--targets`, or describe the format in another way. A note needs no action.",
        ("error", "note"),
    ),
    "C024": CatalogEntry(
        "Example contradicts its bytes",
        "Parsing the bytes of an example does not give its values, or building its values does not give its bytes.",
        "Correct the bytes, the values or the layout.",
    ),
    "C025": CatalogEntry(
        "Missing manifest, or empty schema directory",
        "A schema directory contains codecgen.yaml with at least `package` and `title`, and next to it files that end in "
        ".yaml.",
        "Create the missing file, or name another directory.",
    ),
    "C026": CatalogEntry(
        "File too large or nested too deeply",
        "Schema files are limited to 1 MiB and 30 levels. A larger file is a mistake or an attack.",
        "Split the file, or flatten it.",
    ),
    "C027": CatalogEntry(
        "Reserved name",
        "The name has a meaning in Python, in expressions or in generated code.",
        "Choose another name. `spelled` keeps the name of the format's own documents; at a key of `properties` it is the key in the file.",
    ),
    "C028": CatalogEntry(
        "Releases in an impossible order",
        "A thing cannot end before it begins, and a part cannot be older than the whole. A field or expression cannot use "
        "what is newer than itself, nor a draft unless its own layout is one. The manifest lists releases from the oldest to "
        "the newest.",
        "Correct `since`, `until`, `draft` or the list of releases.",
    ),
    "C029": CatalogEntry(
        "Tolerance without effect",
        "`accepts` lists what lenient readers tolerate. Nothing in this field or layout can show this deviation.",
        "Remove the word, or move it to the field that it concerns.",
    ),
    "C030": CatalogEntry(
        "Incomplete choice",
        "A choice by an enum needs a case for every value of the enum, or a `doc` that mentions the missing values.",
        "Add the cases, or say in `doc` how readers treat these values.",
    ),
    "C031": CatalogEntry(
        "Undefined end",
        "Bytes and text that take the rest of the input can precede fields of fixed size only. An array or a layout that "
        "takes the rest must be the last field in the range of a length, or in the input. Elements of an array must end by "
        "themselves and take at least one byte. In a text, repeated lines are counted by another line or come last. A label or "
        "value ends at a separator that it cannot contain, and only the last value can take the rest of a line.",
        "Add a length or a count, or move the field to the end. In a text, count the lines, or correct the separator.",
    ),
    "C032": CatalogEntry(
        "View does not match its layouts",
        "The rows of a view lie in layouts of one choice by a field. Each column needs a value of its type in every layout "
        "and version, unless it is nullable or a list. To write rows, each field needs a value: from the layout, from its "
        "default or from columns. A note names a case of the choice without rows in the view: its entries are missing from "
        "the table.",
        "Correct the expression of the column or the field, or make the column nullable. After a note, add rows of the case. "
        "If its entries hold no rows, a note needs no action.",
        ("error", "note"),
    ),
    "C033": CatalogEntry(
        "Template error",
        "The template is invalid, uses data that does not exist, or exceeds a limit.",
        "Correct the template. docs/template-reference.md lists the data that templates receive.",
    ),
    "C034": CatalogEntry(
        "Unusable name of a template",
        "A template replaces a template of the target that has the same name. The target has none of this name, the name has "
        "an unknown `{{placeholder}}`, or it gives the same output file as another template.",
        "Rename the template as the message says. Start the name of a file that others include with `_`.",
    ),
    "C040": CatalogEntry(
        "Unusable schema directory under `uses`",
        "`uses` names another schema directory: an installed package with schemas, or a path. It must have the same "
        "language version and no findings, must not use this directory in turn, and must generate another package.",
        "Correct the name or the path, or run `codecgen check` on that directory.",
    ),
    "C050": CatalogEntry(
        "Field without exactly one type in a version",
        "If a type differs between versions, each version that has the field needs exactly one type. All types must give "
        "the same kind of value, so that the field is one column.",
        "Close the gaps between the ranges and remove overlaps. Use two fields for two kinds of value.",
    ),
    "C051": CatalogEntry(
        "Flexible layout without settled lengths",
        "`flexible` determines how text, bytes and arrays without a length type are encoded. It names the first flexible "
        "version, or `never`. The layouts in a flexible layout must say `flexible` for the same versions.",
        "Add `flexible` with the first flexible version, or write the length types.",
    ),
    "C052": CatalogEntry(
        "Invalid tagged field",
        "A tagged field has a number of its own and exists in flexible versions only. Builders omit it if it holds its "
        "default, and the default must be a constant. No range of a length or checksum begins or ends with it. It "
        "has no key of fields in order, such as `when` or `checksum`, and no bytes that reach to the end or to a zero byte.",
        "Correct the tag, the versions, the default, the type or the range that the message names, or remove `tag`.",
    ),
    "C054": CatalogEntry(
        "Missing or unsuitable discriminator",
        "A choice `by` a field of its cases needs nothing else. Every other choice needs `given`: an earlier value of the "
        "enum that the choice names, or a number if the choice names a type. A choice within a choice must be decided by the "
        "same value, and needs a case for it.",
        "Add `given` with an earlier field, remove it, or add the missing case.",
    ),
    "C055": CatalogEntry(
        "Key `version` on something without versions",
        "`version` tells which version a layout or the case of a choice has. It must be an earlier number, and the layout "
        "must have versions, none of which is named in the reference.",
        "Remove `version`, or give the layout `versions`.",
    ),
    "C062": CatalogEntry(
        "Impossible size",
        "A fixed number of elements is at least 1 and at most the limit of readers. Padding goes up to a multiple of at "
        "least 2.",
        "Write a number within the limits that the message shows.",
    ),
    "C063": CatalogEntry(
        "Invalid checksum coverage",
        "The ranges of a checksum must not overlap. A field under `zero` must lie in the range beside it. The numbers of a "
        "`mask` must fit the width of the checksum, and change something.",
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
        "A rule is a condition on several fields of a layout, or names a number that must ascend from element to element "
        "of an array.",
        "Refer to fields of the layout in the rule, or remove the rule.",
    ),
    "C066": CatalogEntry(
        "Invalid value for builders",
        "`build` names arrays of layouts and the numbers of their elements that the caller supplies. `from` must be a name "
        "that the elements do not use, and `less` a number of the surrounding layout.",
        "Correct the name of the array, `from` or `less`.",
    ),
    "C070": CatalogEntry(
        "Invalid message of a protocol",
        "`message` says that a layout is a request, a response or a header. A request or response has a key that no other "
        "layout of its role has, and versions. Its `header` is a layout with the role `header`, in one version. A header "
        "names the fields with the key and the version of the message; they are integers and lie at the same bytes in "
        "all of its versions.",
        "Correct `message`, or the header that it names.",
    ),
    "C071": CatalogEntry(
        "Value from outside that does not fit",
        "A layout or a choice declares under `given` the values that it gets from outside. Each field that holds it, and each "
        "array of it, gives all of them by name, with expressions of the declared types that are known before the field and "
        "never null. The same holds for a choice; its cases are given what the choice is given, and a number or an enum "
        "decides, not a boolean. Tagged fields, layouts declared in place and entries of views are given no values.",
        "Give each declared value under `given` of the field, or remove its declaration. Hold what needs values in a field "
        "that can give them.",
    ),
    "C059": CatalogEntry(
        "Ambiguous parts of a payload",
        "Only one part of a payload can be a choice by a field. Later parts can be choices `given` an enum that are decided "
        "by the same number. All other parts must be layouts. Rows name the layout of each part that they use and the "
        "condition under which they exist. Heads, full checks and writing apply to files only.",
        "Name the layout of the part, or remove the key that applies to files.",
    ),
    "C060": CatalogEntry(
        "Rows of parts that never occur together",
        "All parts of a payload go by one number. No number has cases with exactly these layouts.",
        "Name layouts that belong to the same number.",
    ),
}
"""Catalog entry of each id, in the order of docs/diagnostics.md. An id never changes its meaning."""
