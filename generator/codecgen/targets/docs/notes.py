"""Notes of pages: what readers accept, what changed from release to release, and where other documents are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codecgen.plan import Plan
from codecgen.plan.as_of import release_key
from codecgen.plan.type_text import constant_words, format_byte_count, scalar_name
from codecgen.runtime.nouns import count_noun
from codecgen.schema.lookup import bytes_of, choice_of, exists_in, number_types
from codecgen.schema.model import TOLERANCES, Choice, Declared, Enum, Field, Layout
from codecgen.schema.scalars import COMPACT, LENGTHS, SCALARS, VARINTS, Scalar, find_scalar
from codecgen.schema.texts import Text
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    Misprint,
    ScalarType,
    Since,
    StructType,
    TagsType,
    choosing,
)
from codecgen.targets.docs.expression_phrases import condition
from codecgen.targets.docs.notation import allowed_values
from codecgen.targets.docs.site import Site
from codecgen.targets.docs.text import (
    Phrase,
    as_phrase,
    bracketed,
    code,
    field_name,
    join,
    join_list,
    link,
    phrase,
    references,
    release,
)

REFUSED, NOTED = as_phrase("refused"), as_phrase("noted")


# ---------------------------------------------------------------- strict and lenient readers


Rule = tuple[Phrase, str | Phrase, Phrase, Phrase]


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """A kind of invalid input, and what strict and lenient readers do with it."""

    where: Phrase
    what: Phrase
    strict: Phrase
    lenient: Phrase


def reader_rows(site: Site, layout: Layout) -> tuple[ReaderRow, ...]:
    """Return a ReaderRow for each kind of invalid input of a layout: where it is, what it is, and
    what strict and lenient readers do with it.
    """
    return tuple(
        ReaderRow(where, as_phrase(what), strict, lenient)
        for where, what, strict, lenient in _reader_rows(site, layout)
    )


def _reader_rows(site: Site, layout: Layout) -> Iterator[Rule]:
    """Yield place, input, and the reactions of strict and lenient readers, for each kind of input
    that is invalid or has no name: of fields, then look-ups, then broken rules, then forms that
    lenient readers accept. Fields without a version are skipped. Of ``site`` only the plan is used,
    which says what enums keep.
    """
    versions = layout.all_versions()
    there = [f for f in layout.fields if any(exists_in(f, version) for version in versions)]
    for f in there:
        yield from _field_rules(site, f)
    for d in layout.derived:
        if d.value.looks_up:
            what = phrase("a number for which an array has no element: ", code(str(d.value)))
            yield code(d.name if d.array is None else f"{d.array}.{d.name}"), what, REFUSED, REFUSED
    for rule in layout.rules:
        meaning = phrase(" (", as_phrase(rule.doc), ")") if rule.doc else ""
        if rule.condition is not None:
            text = condition(rule.condition.node)
        else:
            text = join((code(str(rule.ascending)), "ascends"))
        what = phrase("values that break the rule ", code(rule.name), meaning, ": ", text)
        yield field_name(rule.about), what, REFUSED, as_phrase("not looked at")
    for tolerance, words in TOLERANCES.items():
        fields = [f.name for f in there if tolerance in f.accepts and _touches(tolerance, f)]
        if fields:
            where = join_list(field_name(name) for name in dict.fromkeys(fields))
            yield where, words, REFUSED, NOTED
        elif tolerance == "trailing_bytes" and tolerance in layout.accepts:
            yield as_phrase("the end"), words, REFUSED, NOTED


def _touches(tolerance: str, f: Field) -> bool:
    """Return whether a tolerance applies to the type of a field, in any version."""
    return any(_one_touches(tolerance, one) for one in f.variants())


def _one_touches(tolerance: str, f: Field) -> bool:
    """Return whether ``tolerance``, a form that lenient readers take, such as ``overlong_varints``,
    can apply to a field by its type. Always False for ``trailing_bytes``, which concerns layouts; a
    tolerance without a test of its own applies to arrays.
    """
    t = f.type
    match tolerance:
        case "overlong_varints":
            return any(name in (*VARINTS, COMPACT.name) for name in number_types(f))
        case "negative_null":
            inner = bytes_of(f)
            nulls = [getattr(t, "null", None), None if inner is None else inner.null]
            nulls.append(getattr(choice_of(f), "null", None))
            return any(null is not None and null < 0 for null in nulls)
        case "any_present":
            return isinstance(t, StructType) and t.present is not None
        case "invalid_utf8":
            inner = bytes_of(f)
            return inner is not None and inner.text
        case "trailing_bytes":
            return False
        case "loose_tags":
            return isinstance(t, TagsType)
        case _:
            return isinstance(t, ArrayType)


def _field_rules(site: Site, f: Field) -> Iterator[Rule]:
    """Yield place, input, and the reactions of strict and lenient readers, for each kind of invalid
    input that a field can have: wrong version, constant, checksum, broken rule, enum number, bool,
    reserved bits, array size, written default of a tag, unknown case, and presence number.
    """
    here = field_name(f.name)
    if f.is_version:
        yield here, "another version than one of this layout", REFUSED, REFUSED
    elif f.const is not None:
        what = "number" if type(f.const) is int else "value"
        yield here, f"another {what} than {constant_words(f.const)}", REFUSED, NOTED
    if f.checksum is not None:
        yield here, "a wrong checksum", REFUSED, NOTED
    if f.refuse is not None:
        yield here, phrase("a value for which ", condition(f.refuse.node)), REFUSED, REFUSED
    if f.valid is not None:
        yield (
            here,
            phrase("a value that breaks the rule: ", condition(f.valid.node)),
            REFUSED,
            NOTED,
        )
    if isinstance(f.type, ScalarType) and f.type.enum is not None:
        yield from _enum_rule(site.plan, here, f.type.enum, f.type.only)
    if isinstance(f.type, ScalarType) and f.type.name == "bool":
        yield here, "a byte other than 0 and 1", REFUSED, as_phrase("noted, reads as true")
    if isinstance(f.type, BitsType):
        for m in f.type.members:
            where = field_name(f.name, m.name)
            if m.reserved:
                yield (
                    where,
                    "bits without a meaning that are set",
                    REFUSED,
                    as_phrase("noted, and kept"),
                )
            elif m.enum is not None:
                yield from _enum_rule(site.plan, where, m.enum, m.only)
    if isinstance(f.type, ArrayType):
        yield from _array_rules(f.type, here)
    if f.tag is not None:
        yield here, "its default, which is not written", REFUSED, NOTED
    choice = choice_of(f)
    if choice is not None:
        kept = as_phrase("kept as bytes") if choice.unknown else REFUSED
        yield here, "a value that has no case", kept, kept
    if choosing(f.type)[1] is not None:
        kept = as_phrase("kept as bytes") if choice is not None and choice.unknown else REFUSED
        yield here, "a version that it does not have", kept, kept
    for t in f.all_types():
        if isinstance(t, StructType) and t.present is not None:
            what = f"a number before it other than 1 and {t.null}"
            yield here, what, REFUSED, REFUSED


def _enum_rule(
    plan: Plan, where: Phrase, enum: str, only: tuple[str, ...] | None
) -> Iterator[Rule]:
    """Yield one row: what strict and lenient readers do with a number without an allowed name. An
    enum that keeps unknown numbers accepts it; otherwise strict readers refuse it and lenient
    readers note and keep it.
    """
    if plan.model.enums[enum].keep_unknown:
        yield where, "a number that has no name", as_phrase("taken"), as_phrase("taken")
    else:
        what = "a number that has no name" if only is None else "a number that may not stand here"
        yield where, what, REFUSED, as_phrase("noted, and kept")


def _array_rules(array: ArrayType, here: Phrase) -> Iterator[Rule]:
    """Yield place, input, and the reactions of strict and lenient readers, for invalid arrays: too
    few elements if the array has a minimum, nesting too deep if that is limited, and, for
    compressed elements, a codec not allowed, an unusual stream, and a section too large.
    """
    if array.at_least:
        few = "no elements" if array.at_least == 1 else f"fewer than {array.at_least} elements"
        yield here, few, REFUSED, REFUSED
    if array.nesting is not None:
        deep = "elements that hold such an array themselves"
        if array.nesting > 1:
            deep = f"arrays that lie more than {array.nesting} deep in each other"
        yield here, deep, REFUSED, REFUSED
    if array.compression is not None:
        limit = format_byte_count(array.compression.limit)
        yield here, "a codec that is not allowed here, or that has no name", REFUSED, REFUSED
        yield here, "bytes after a compressed stream, or an odd spelling of it", REFUSED, NOTED
        yield (
            here,
            f"more than {limit} once decompressed (a caller may set another limit)",
            REFUSED,
            REFUSED,
        )


# ---------------------------------------------------------------- changes


@dataclass(frozen=True, slots=True)
class Change:
    """A change in a release. ``thing`` is the name of the layout, choice or enum."""

    release: str
    thing: str
    text: Phrase


def changes(site: Site, page: str, thing: Declared, *, enums: bool = True) -> list[Change]:
    """Return the changes of a declaration that are dated with a release, oldest first, with links
    relative to ``page``; ``[]`` if there are none. With ``enums``, the changes of a layout include
    later values of the enums that it uses, unless it is a draft.
    """
    return sorted(
        _changes(site, page, thing, enums), key=lambda change: release_key(change.release)
    )


def _changes(site: Site, page: str, thing: Declared, enums: bool) -> Iterator[Change]:
    """Yield the dated changes of a declaration, unsorted: its own release, and new versions,
    fields, bits, keys, values and derived values, versions that writers left, and renamed fields.
    ``enums`` adds later values of enums that a layout uses.
    """
    plan = site.plan

    def change(since: Since | None, what: Phrase) -> Iterator[Change]:
        """Yield a change if ``since`` names a release."""
        if since is not None and since.release is not None:
            links = references(plan, since)
            tail = bracketed(links)
            yield Change(since.release, thing.name, phrase(what, tail, "."))

    if isinstance(thing, Layout | Text | Choice):
        yield from change(thing.since, as_phrase("new"))
    if isinstance(thing, Enum):
        for v in thing.values:
            yield from change(
                v.since, join(("new value", _value_words(v.value, v.name, v.spelled)))
            )
        return
    if isinstance(thing, Text):
        for key in thing.properties:
            where = link(key.name, site.href(page, thing.name, key.name))
            yield from change(key.since, join(("new key", where)))
        return
    if isinstance(thing, Choice):
        return
    enums = enums and thing.draft is None
    for version, (since, until) in sorted(thing.version_notes.items()):
        yield from change(since, as_phrase(f"version {version} is new"))
        if until is not None:
            yield from change(until, as_phrase(f"writers leave version {version}"))
    for f in thing.fields:
        where = link(f.name, site.href(page, thing.name, f.name))
        yield from change(f.since, join(("new field", where)))
        if f.formerly is not None:
            old = code(plan.spelling(f.formerly.name, None))
            new = code(plan.spelling(f.name, f.spelled))
            yield Change(
                f.formerly.until, thing.name, phrase(where, ": ", old, " is now named ", new, ".")
            )
        if enums and isinstance(f.type, ScalarType) and f.type.enum is not None:
            yield from _enum_changes(plan, thing, f.type.enum, f.type.only, where)
        for m in f.type.members if isinstance(f.type, BitsType) else ():
            bits = f"bit {m.low}" if m.low == m.high else f"bits {m.low} to {m.high}"
            name = plan.spelling(m.name, m.spelled)
            yield from change(m.since, phrase(where, ": new ", bits, " ", code(name)))
            if enums and m.enum is not None:
                yield from _enum_changes(plan, thing, m.enum, m.only, where)
    for d in thing.derived:
        yield from change(d.since, join(("new derived value", code(d.name))))


def _value_words(value: int, name: str, spelled: str | None) -> Phrase:
    """Return the number and the spelling of a value."""
    return phrase(code(value), " ", as_phrase(spelled or name))


def _enum_changes(
    plan: Plan, thing: Layout, enum: str, only: tuple[str, ...] | None, where: Phrase
) -> Iterator[Change]:
    """Yield a Change of the layout ``thing`` for each value of an enum, among ``only`` (None: all),
    that is dated later than the layout, or dated at all if the layout has no release. ``where`` is
    the field's link. Values that a compressed array of the layout excludes are skipped.
    """
    begin = thing.since.release if thing.since else None
    refused = {
        name
        for f in thing.fields
        if isinstance(f.type, ArrayType) and f.type.compression
        for name in f.type.compression.excluded
    }
    for v in allowed_values(plan.model.enums[enum], only):
        if v.since is None or v.since.release is None or v.name in refused:
            continue
        if begin is None or release_key(v.since.release) > release_key(begin):
            links = references(plan, v.since)
            tail = bracketed(links)
            words = _value_words(v.value, v.name, v.spelled)
            yield Change(
                v.since.release, thing.name, phrase(where, ": new value ", words, tail, ".")
            )


# ---------------------------------------------------------------- misprints


def misprints(site: Site, page: str, layout: Layout) -> list[Phrase]:
    """Return a sentence, with a link relative to ``page``, for each error that other documents have
    about a field or bit of a layout. As of a release, include only errors that documents of that
    release still had.
    """
    out = []
    for f in layout.fields:
        where = link(f.name, site.href(page, layout.name, f.name))
        out += _misprint(site, where, f.misprint, _truth(site.plan, f))
        for m in f.type.members if isinstance(f.type, BitsType) else ():
            target = site.href(page, layout.name, f.name, m.name)
            truth = _numbers(site.plan, m.enum, m.only)
            out += _misprint(site, link(f"{f.name}.{m.name}", target), m.misprint, truth)
    return out


def misprint_applies(misprint: Misprint, as_of: str | None) -> bool:
    """Return whether a document as of a release has the misprint; without a release, whether one ever had it."""
    return (
        as_of is None or misprint.until is None or release_key(as_of) < release_key(misprint.until)
    )


def _truth(plan: Plan, f: Field) -> str:
    """Return what is right where a document is wrong about a field: the allowed numbers of its
    enum, separated by commas, or in words the type of its number or bits; ``""`` for fields of
    other types.
    """
    match f.type:
        case ScalarType(_, str(enum), only):
            return _numbers(plan, enum, only)
        case ScalarType(name) | BitsType(name):
            return scalar_name(name)
        case _:
            return ""


def _numbers(plan: Plan, enum: str | None, only: tuple[str, ...] | None) -> str:
    """Return the allowed numbers of an enum, separated by commas; ``""`` without an enum."""
    if enum is None:
        return ""
    return ", ".join(str(v.value) for v in allowed_values(plan.model.enums[enum], only))


def _misprint(site: Site, where: Phrase, misprint: Misprint | None, truth: str) -> list[Phrase]:
    """Return a list with one sentence about an error in documents of the format: where it is
    (``where``), what they show, and what is right (``truth``; "": only that it is wrong). Return
    ``[]`` if ``misprint`` is None, was corrected by the plan's release, or equals ``truth``.
    """
    if misprint is None or not misprint_applies(misprint, site.plan.release):
        return []
    if misprint.shown == truth:
        return []  # as of that release the document was right
    documents: str | Phrase = "Documents of the format"
    if misprint.until is not None:
        documents = phrase(documents, " before ", release(site.plan, misprint.until))
    says = as_phrase("leave it out")
    if misprint.shown != "missing":
        right = phrase("right is ", code(truth)) if truth else as_phrase("that is wrong")
        says = phrase("show ", code(misprint.shown), "; ", right)
    versions = f" (version {misprint.versions})" if misprint.versions is not None else ""
    words = phrase(where, versions, ": ", documents, " ", says, ".")
    return [join((words, misprint.doc))]


# ---------------------------------------------------------------- sizes in words


@dataclass(frozen=True, slots=True)
class TypeRow:
    """A type and its explanation."""

    type: Phrase
    what: Phrase


def scalar_glossary(names: set[str]) -> list[TypeRow]:
    """Return the types of ``names`` with explanations."""
    known = dict.fromkeys((*LENGTHS, *SCALARS))
    return [TypeRow(code(scalar_name(n)), as_phrase(_about(n))) for n in known if n in names]


def has_words(scalar: Scalar) -> bool:
    """Return whether pages can explain a type."""
    return scalar.kind in ("integer", "float") or scalar.name in _TYPES


def _about(name: str) -> str:
    """Return the explanation of the scalar type ``name`` as sentences, such as "A signed integer of
    4 bytes.". Raise KeyError for a type without an explanation (see :func:`has_words`),
    AssertionError for an unknown type.
    """
    scalar = find_scalar(name)
    assert scalar is not None
    size = count_noun(scalar.width, "byte")
    match scalar.kind:
        case "integer":
            return f"{'A signed' if scalar.signed else 'An unsigned'} integer of {size}."
        case "float":
            return f"An IEEE 754 number of {size}."
    return _TYPES[name]


_TYPES = {
    "varint": (
        "A signed 32-bit integer in 1 to 5 bytes: 7 bits in each, the least significant first, and the top bit "
        "set in all but the last. The sign is in the lowest bit (zigzag): 0, -1, 1, -2 are stored as 0, 1, 2, 3."
    ),
    "varlong": "The same for a signed 64-bit integer, in 1 to 10 bytes.",
    "uvarint": "An unsigned 32-bit integer in 1 to 5 bytes, 7 bits in each, without the zigzag.",
    "uvarlong": "An unsigned 64-bit integer in 1 to 10 bytes, likewise.",
    "vlq32": (
        "An unsigned 32-bit integer in 1 to 5 bytes (variable-length quantity): 7 bits in each, the most significant "
        "first, and the top bit set in all but the last."
    ),
    "vlq64": "The same for an unsigned 64-bit integer, in 1 to 10 bytes.",
    "bijective_vlq32": (
        "An unsigned 32-bit integer in 1 to 5 bytes: 7 bits in each, the most significant first, and the top bit set in "
        "all but the last. Before the bits of the next byte are appended, 1 is added, so that no number has two "
        "encodings."
    ),
    "bijective_vlq64": "The same for an unsigned 64-bit integer, in 1 to 10 bytes.",
    "compact": "A length or a count as an unsigned varint of one more; 0 is null, where null is allowed.",
    "bool": "1 byte: 0 is false, 1 is true.",
    "uuid": "16 bytes, the most significant first.",
}
