"""Catalog of the rules of ``codecgen breaking``: what each id means and how to avoid the break.

``codecgen explain B006`` and docs/breaking-rules.md print these texts.
"""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.diagnostic_catalog import CatalogEntry

_NEW_VERSION = "Leave the released versions as they are, and add a version with the change."

RULES: Mapping[str, CatalogEntry] = {
    "B001": CatalogEntry(
        "Layout removed",
        "Data in this layout exists, and no reader of it is generated any more. Drafts, and layouts inside another "
        "one, are not reported.",
        "Keep the layout. To move it to another directory, let this directory use the other one.",
    ),
    "B002": CatalogEntry(
        "Version removed",
        "Data in this version exists, and the new reader rejects it. Versions that the message calls `unstable` may "
        "be removed.",
        "Keep the version in `versions`. Fields that later versions lack say so: `versions: 0-1`.",
    ),
    "B003": CatalogEntry(
        "Field removed from a released version",
        "The new reader takes the bytes of the removed field for the fields after it. A removed tagged field becomes an "
        "unknown tag.",
        "Keep the field in the released versions (`versions: 0-1`), and add a version without it.",
    ),
    "B004": CatalogEntry(
        "Field added to a released version",
        "The new reader looks for bytes that old data lacks, and old readers take the new bytes for other fields. A tagged "
        "field may be added to a released version, because readers skip unknown tags.",
        "Add a version, and limit the field to it: `versions: 1+`. In a flexible layout a tagged field is possible too.",
    ),
    "B005": CatalogEntry(
        "Fields reordered",
        "A reader finds fields by their order. Documentation may show another order; bytes cannot have it.",
        "Restore the order of the released versions.",
    ),
    "B006": CatalogEntry(
        "Type changed",
        "The field has another size, another encoding or other values: another number type, another fixed size, "
        "text instead of bytes, or another element. Or it is another kind of field, or holds a layout with other "
        "bytes. If only an expression in the held layout differs, the check says that the bytes may differ.",
        "Give the field its new type in a new version only: `type: {0: u16, 1+: u32}`.",
    ),
    "B007": CatalogEntry(
        "Byte order changed",
        "`endian` of a field or of its layout is different, so that numbers of several bytes read as other numbers.",
        "Restore the byte order. A format with the other order is a new layout.",
    ),
    "B008": CatalogEntry(
        "Length or count changed",
        "A length measures another range or none, or a count counts another array or none. Or the end of an array "
        "is found in another way: by another fixed number, count, length or the end of the bytes. Or the number in "
        "front of bytes, text, an array or a choice has another type; that of a choice is also added or removed.",
        _NEW_VERSION,
    ),
    "B009": CatalogEntry(
        "Tag changed",
        "A tagged field has another tag, or became an ordinary one, or the reverse. Or a released version got a tag "
        "that its old readers reject, because another version has it.",
        "Keep the tag of each field for ever, and never use the tag of a removed field again.",
    ),
    "B010": CatalogEntry(
        "Constant changed",
        "A constant has another value, is added, or is removed; the number of a version field counts as one. A "
        "reader rejects data without its constant: the new one old data, or old readers new data.",
        "Restore the constant. Use a new version, or a new layout with a case of its own, for another constant.",
    ),
    "B011": CatalogEntry(
        "Condition changed",
        "A field exists under another condition (`when`), or an array ends at another element (`until`). The check "
        "compares conditions by structure. If they are written differently, it reports that the bytes may differ. "
        "An `until` that is added or removed is certain.",
        "Restore the condition. If both conditions are the same for all data, accept the break: list it under "
        "`accepted_breaks` in codecgen.yaml, with `rule`, `at` and `reason`.",
    ),
    "B012": CatalogEntry(
        "Values narrowed",
        "The new reader rejects values that were valid: by `valid`, `refuse`, `only`, `at_least` or `nesting`, or "
        "by an enum on a field that had none. Also by another enum that lacks a number, or an enum without 0 on new "
        "bits. If the check cannot compare the conditions, it reports that the bytes may differ.",
        "Keep the wider range in the released versions, or let a rule of the layout with `versions` require the narrower one.",
    ),
    "B013": CatalogEntry(
        "Null changed",
        "Null was possible and is no longer, null is another number, or a number that was a valid length or count "
        "means null now. Null that becomes possible breaks nothing if its number is negative or its length is "
        "compact.",
        "Keep null in the released versions: `none: {0-1: -1}`, or `none: {0-1: true}`.",
    ),
    "B014": CatalogEntry(
        "Checksum changed",
        "The checksum is added or removed, or has another algorithm, another mask, another range, or other fields "
        "that count as zero. A reader with a checksum rejects data that was written without it or with the other "
        "one.",
        _NEW_VERSION,
    ),
    "B015": CatalogEntry(
        "Bits moved or removed",
        "A member of a field of bits has other bits, or is removed. Readers may require 0 in the bits of a removed "
        "member, or give them to another one.",
        "Keep the bits of each member for ever. Add new members on reserved bits.",
    ),
    "B016": CatalogEntry(
        "Enum value removed",
        "Strict readers reject the number of the removed value. In an enum with `unknown: keep` they return a number without "
        "a name.",
        "Keep the value, and say in its `doc` that nothing writes it any more.",
    ),
    "B017": CatalogEntry(
        "Number of an enum value changed",
        "The same name means another number, in the enum or because the field has another enum. Old data gets "
        "another meaning.",
        "Restore the number or the enum. Add a value with a name of its own for the new number.",
    ),
    "B018": CatalogEntry(
        "Unknown values rejected",
        "`unknown: keep` of an enum, `unknown: bytes` of a choice, or the unknown keys of a text were accepted and are not "
        "any more.",
        "Keep `unknown`, so that readers get over what later writers add.",
    ),
    "B019": CatalogEntry(
        "Choice removed, or decided in another way",
        "The choice is removed. Or another field or another value decides which layout, or which version of a "
        "layout, follows, or is given to a layout. If two expressions are only written differently, the check "
        "reports that the bytes may differ.",
        "Restore the choice, `by`, `given` or `version`. Another discriminator needs a new version of the layout "
        "around it.",
    ),
    "B020": CatalogEntry(
        "Case of a choice removed or changed",
        "The value that decides leads to no layout any more, or to a layout with other bytes.",
        "Keep the case. Add a new number for a new layout, or a version to the layout of the case.",
    ),
    "B021": CatalogEntry(
        "Compression changed",
        "Compression is added or removed, a number means another codec, a codec is excluded, or a codec is read in "
        "another variant. Or the limit of decompressed bytes is lower. If another field names the codec, the bytes "
        "may differ.",
        "Restore the released `compressed`, the numbers of its codecs and its limit. Add a codec with a new number.",
    ),
    "B022": CatalogEntry(
        "Default of a tagged field changed",
        "Writers leave out a tagged field that has its default. Old data without the field gets another value. The "
        "default of a layout (`default: {}`) changes with those of its fields.",
        "Restore the default. Write the other value explicitly, or add a field with a tag of its own.",
    ),
    "B023": CatalogEntry(
        "Tolerance removed",
        "Lenient readers accepted a deviation (`accepts` of a layout, field, text or line) that real data has, and "
        "reject it now.",
        "Keep the tolerance. Strict readers reject the deviation anyway.",
    ),
    "B024": CatalogEntry(
        "Rule added or changed",
        "A rule of the layout must hold for all data. Old data was not checked by the new rule. A changed rule that "
        "allows at least the same breaks nothing. If the check cannot compare two conditions, it reports that old "
        "data may break the rule.",
        "Limit the rule to new versions (`versions: 1+`), or restore the old one.",
    ),
    "B025": CatalogEntry(
        "Text file changed",
        "A text of lines or properties is removed, or has another line, key, label, separator, count, kind of "
        "value, default or ending, or lacks one. Or it must not be empty any more, or has a new property without a "
        "default. If a property gets its first default, the bytes may differ.",
        "Keep what the text had. A property with a default may be added.",
    ),
    "B026": CatalogEntry(
        "Reader changed in another way",
        "The steps that read the layout differ, although no other rule names a reason. `codecgen explain --program LAYOUT` "
        "prints the steps. The bytes may differ.",
        "Compare the steps of both states. Accept the break if both read the same bytes, and report the missing rule.",
    ),
    "B027": CatalogEntry(
        "Message changed",
        "A request or response has another role, another key or another header, or is no message any more. Or a "
        "header has the key or version of the message in another field. Peers take it for another message, or find "
        "its header or its body at another byte. Headers of `unstable` versions may change.",
        "Restore the key, the role and the fields of the header. Give a new header to new versions only: `header: "
        "{0-1: header_a, 2+: header_b}`.",
    ),
}
"""Entry of each rule, in the order of docs/breaking-rules.md. An id never changes its meaning."""
