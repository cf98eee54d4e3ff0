"""Tables of fields, bits and derived values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.plan.type_text import (
    amount_words,
    constant_words,
    format_byte_count,
    scalar_name,
    size_words,
)
from codecgen.runtime.checksums import CHECKSUMS, Mask
from codecgen.runtime.sensitive import Sensitive
from codecgen.schema.model import Derived, Field, Layout
from codecgen.schema.types import ArrayType, BitMember, BitsType, BytesType, Compression, ScalarType
from codecgen.targets.docs.expression_phrases import cases, condition, range_words, value
from codecgen.targets.docs.notation import allowed_values
from codecgen.targets.docs.site import Group, Site, groups, type_phrase
from codecgen.targets.docs.svg import Picture, bit_picture
from codecgen.targets.docs.text import (
    BREAK,
    Phrase,
    anchor,
    as_phrase,
    code,
    field_name,
    join,
    join_list,
    link,
    phrase,
    release,
    since_words,
)


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A row for a field. ``anchor`` is empty if another row has it already."""

    name: str
    anchor: str
    byte: Phrase
    size: Phrase
    names: Phrase
    type: Phrase
    meaning: Phrase

    @property
    def field(self) -> Phrase:
        """Return the names with the anchor."""
        return _anchored(self.anchor, self.names)


@dataclass(frozen=True, slots=True)
class BitRow:
    """A row for one bit, or several that belong together."""

    anchor: str
    bits: Phrase
    names: Phrase
    meaning: Phrase

    @property
    def name(self) -> Phrase:
        """Return the names with the anchor."""
        return _anchored(self.anchor, self.names)


@dataclass(frozen=True, slots=True)
class DerivedRow:
    """A row for a derived value; ``cases`` has its expression, case by case."""

    anchor: str
    names: Phrase
    type: Phrase
    cases: tuple[Phrase, ...]
    meaning: Phrase

    @property
    def value(self) -> Phrase:
        """Return the names with the anchor."""
        return _anchored(self.anchor, self.names)

    @property
    def how(self) -> Phrase:
        """Return the cases, one a line."""
        return join(self.cases, phrase(";", BREAK))


def _anchored(name: str, words: Phrase) -> Phrase:
    """Return words with an anchor before them, if there is a name for it."""
    return phrase(anchor(name), words) if name else words


@dataclass(frozen=True, slots=True)
class BitsTable:
    """A table of the bits of a field. ``picture`` is the name of the picture file without its suffix."""

    title: str
    anchor: str
    field: str
    rows: tuple[BitRow, ...]
    picture: str
    drawing: Picture


# ---------------------------------------------------------------- fields


def field_rows(site: Site, page: str, group: Group, anchored: set[str]) -> tuple[FieldRow, ...]:
    """Return a FieldRow for each field of a group of layout versions, in order, with links relative
    to ``page``. A field whose name is in ``anchored`` (an earlier group describes it) gets no
    anchor; the names of all fields are added to the set.
    """
    rows = []
    before: FieldPlan | None = None
    for fp in group.plan.fields:
        type_ = _type(site, page, group.plan, fp)
        relations = _relations(group.plan, fp)
        rows.append(
            FieldRow(
                name=fp.name,
                anchor="" if fp.name in anchored else f"{group.plan.name}-{fp.name}",
                byte=_offset(fp, before),
                size=as_phrase(size_words(fp)),
                names=_names(site, fp.name, fp.field.spelled),
                type=join((type_, *order_words(fp.field), *relations), ", "),
                meaning=_meaning(site, page, group, fp),
            )
        )
        anchored.add(fp.name)
        before = before if fp.field.tag is not None else fp
    return tuple(rows)


def order_words(f: Field) -> list[str]:
    """Return the byte order of a field, if the field declares one, as a list of at most one item."""
    return [f"{f.endian} endian"] if "endian" in f.places else []


def _type(site: Site, page: str, plan: LayoutPlan, fp: FieldPlan) -> Phrase:
    """Return the type of a field in words, with links relative to ``page``. For bytes without a
    length of their own that are the whole range of a length field, say "as many as" and the name of
    that field.
    """
    f = fp.field
    if isinstance(f.type, BytesType) and f.type.length == "rest":
        for other in plan.fields:
            field_range = other.measures
            if field_range is not None and field_range.first == field_range.last == fp.name:
                what = "text (UTF-8)" if f.type.text else "bytes"
                tail = "; without it all that is left" if other.field.when is not None else ""
                less = amount_words(f.type)
                says = f"{other.name}{less} of them" if less else f"as many as {other.name} says"
                return as_phrase(f"{what}, {says}{tail}")
    return type_phrase(site, page, f.type)


def _offset(fp: FieldPlan, before: FieldPlan | None) -> Phrase:
    """Return where a field begins, in words: its byte offset if that is fixed, "tag N" for a tagged
    field, otherwise "after" and the name of ``before``, the field before it; ``0`` if ``before`` is
    None.
    """
    if fp.offset is not None:
        return as_phrase(str(fp.offset))
    if fp.field.tag is not None:
        return as_phrase(f"tag {fp.field.tag}")
    return join(("after", field_name(before.name))) if before is not None else as_phrase("0")


def _names(site: Site, name: str, spelled: str | None) -> Phrase:
    """Return the name as code, with the name in the format's own documents if it differs."""
    other = site.plan.spelling(name, spelled)
    return code(name) if other == name else phrase(code(name), BREAK, code(other))


def _secret(found: Sensitive) -> str | Phrase:
    """Return the sentence that says which values of a field are secrets: "A secret.", or, if
    another field decides by its name, the endings of that name.
    """
    if found.named_by is None:
        return "A secret."
    endings = join([code(ending) for ending in found.endings], ", ")
    return phrase("A secret where ", code(found.named_by), " ends with one of ", endings, ".")


def _meaning(site: Site, page: str, group: Group, fp: FieldPlan) -> Phrase:
    """Return the meaning of a field as one Phrase of sentences, each if declared: description,
    condition, constant, unit, secrecy, default, values, array limits, rule (``valid``, not
    ``refuse``), release and former name. Links are relative to ``page``; ``group`` has the versions
    that the field is described for.
    """
    f = fp.field
    parts: list[str | Phrase] = [f.doc]
    if f.when is not None:
        parts.append(phrase("Only when ", condition(f.when.node), "."))
    if f.is_version:
        parts.append(
            "Always the version of the layout."
            if len(group.versions) > 1
            else phrase("Always ", code(group.plan.version), ": the version of the layout.")
        )
    elif f.const is not None:
        parts.append(phrase("Always ", code(constant_words(f.const)), "."))
    if f.unit is not None:
        parts.append(phrase("In ", as_phrase(f.unit), "."))
    if f.sensitive is not None:
        parts.append(_secret(f.sensitive))
    if f.absent is not None:
        parts.append(phrase(code(f.absent), " means that there is none."))
    if f.default is not None and str(f.default) != str(f.absent):
        parts.append(phrase("Default: ", value(f.default.node), "."))
    elif f.filled:
        parts.append("Default: its fields hold their defaults.")
    if f.tag is not None:
        parts.append("Left out where it holds its default.")
    if isinstance(f.type, ScalarType) and f.type.enum is not None:
        parts.append(phrase("Values: ", enum_values(site, page, f.type.enum, f.type.only), "."))
    if isinstance(f.type, BitsType):
        target = site.href(page, group.plan.name, f.name, "bits")
        parts.append(phrase(link("The bits", target), " have meanings of their own."))
    if isinstance(f.type, ArrayType):
        parts += _array(f.type)
    if f.valid is not None:
        parts.append(phrase("The format wants that ", condition(f.valid.node), "."))
    if f.since is not None:
        parts.append(phrase("Since ", since_words(site.plan, f.since), "."))
    if f.formerly is not None and not _is_former(site, f):
        old = site.plan.spelling(f.formerly.name, None)
        before = release(site.plan, f.formerly.until)
        parts.append(phrase("Named ", code(old), " before ", before, "."))
    return join(parts)


def _is_former(site: Site, f: Field) -> bool:
    """Return whether the field already has its former name, in documents as of an old release."""
    return f.formerly is not None and f.spelled == site.plan.spelling(f.formerly.name, None)


def _relations(plan: LayoutPlan, fp: FieldPlan) -> list[Phrase]:
    """Return what a field measures, counts or is the checksum of, and which field counts the array,
    in words, one phrase each; ``[]`` if nothing applies.
    """
    out = []
    if fp.measures is not None:
        field_range = range_words(fp.measures, plan)
        added = _more_words(fp.field.excess)
        out.append(phrase("the length in bytes of ", field_range, added))
    if fp.field.counts:
        counted = [phrase(field_name(name), _added_words(plan, name)) for name in fp.field.counts]
        out.append(phrase("the number of ", join(counted, " and of ")))
    if fp.field.checksum is not None:
        covered = join((range_words(part, plan) for part in fp.covers), ", then ")
        if fp.field.zero:
            names = join_list(map(field_name, fp.field.zero))
            covered = phrase(covered, ", with zeros for ", names)
        title = CHECKSUMS[fp.field.checksum].title
        out.append(phrase(title, " of ", covered, *_mask_words(fp.field.mask)))
    if isinstance(fp.field.type, ArrayType) and fp.field.type.counted_by is not None:
        more = amount_words(fp.field.type)
        out.append(phrase(field_name(fp.field.type.counted_by), f"{more} of them"))
    return out


def _added_words(plan: LayoutPlan, array: str) -> str:
    """Return the difference between a count and the number of elements of ``array`` as text, such
    as ``" + 1"``. Return ``""`` if they are equal, or if this version has no such array.
    """
    found = plan.field(array)
    type_ = None if found is None else found.field.type
    plus = type_.plus if isinstance(type_, ArrayType) else 0
    return _more_words(plus)


def _more_words(plus: int) -> str:
    """Return a number that is added, ``" + 1"``; ``""`` for 0."""
    return f" {'+' if plus > 0 else '-'} {abs(plus)}" if plus else ""


def _mask_words(mask: Mask | None) -> Iterator[str | Phrase]:
    """Yield words about the change of a checksum before it is stored, each if declared: rotation,
    number added, bits kept. Yield nothing if ``mask`` is None.
    """
    if mask is None:
        return
    if mask.rotate_right:
        yield f", rotated right by {mask.rotate_right} bits"
    if mask.add:
        yield phrase(", plus ", code(f"{mask.add:#x}"))
    if mask.keep is not None:
        yield phrase(" & ", code(f"{mask.keep:#x}"))


def _array(array: ArrayType) -> list[str | Phrase]:
    """Return the sentences about an array's minimum number of elements, its nesting and its
    compression, each if declared; ``[]`` if none is.
    """
    parts: list[str | Phrase] = []
    if array.at_least:
        parts.append(f"At least {array.at_least}.")
    if array.nesting is not None:
        times = "themselves" if array.nesting == 1 else f"more than {array.nesting} deep"
        parts.append(f"The elements must not hold such an array {times}.")
    if array.compression is not None:
        parts.append(compression_words(array.compression))
    return parts


def compression_words(c: Compression) -> Phrase:
    """Return the sentences about the compression of an array: the field that names the codec,
    codecs that are not allowed and variants of codecs (both only if declared), and always the limit
    of decompressed bytes.
    """
    words = [phrase("Compressed together with the codec that ", value(c.by.node), " names.")]
    if c.excluded:
        words.append(
            phrase("Not allowed here: ", join_list(code(name) for name in c.excluded), ".")
        )
    for codec, versions, write, read in c.variants:
        where = f"in version {versions}" if versions is not None else ""
        words.append(
            phrase(
                join((code(codec), where)),
                " is written as ",
                code(write),
                " and read as ",
                code(read),
                ".",
            )
        )
    words.append(
        as_phrase(
            f"At most {format_byte_count(c.limit)} once decompressed, unless the reader says otherwise."
        )
    )
    return join(words)


def enum_values(site: Site, page: str, enum: str, only: tuple[str, ...] | None) -> Phrase:
    """Return the values of an enum with a link to it: ``0`` none, ``1`` gzip (compression)."""
    found = site.plan.model.enums[enum]
    items = [join((code(v.value), v.spelled or v.name)) for v in allowed_values(found, only)]
    return phrase(join(items, ", "), " (", site.link(page, enum), ")")


# ---------------------------------------------------------------- bits


def bits_tables(site: Site, page: str, layout: Layout) -> list[BitsTable]:
    """Return a BitsTable for every field of bits and each span of versions in which it has the same
    bits, in the order of the layout, with links relative to ``page``. Only the first table of a
    field has an anchor; each bit gets one in the first table that has it. Return ``[]`` if the
    layout has no bits.
    """
    out: list[BitsTable] = []
    for name in [f.name for f in layout.fields if isinstance(f.type, BitsType)]:
        variants = _variants(site, layout, name)
        anchored: set[str] = set()
        for i, (label, key, fp) in enumerate(variants):
            assert isinstance(fp.field.type, BitsType)
            base = fp.field.type.base
            members = tuple(sorted(fp.field.type.members, key=lambda m: m.low))
            title = f"Bits of {name}" + (f", {label[:1].lower()}{label[1:]}" if label else "")
            mark = f"{layout.name}-{name}-bits" if i == 0 else ""
            out.append(
                BitsTable(
                    title=title,
                    anchor=mark,
                    field=name,
                    rows=tuple(_bit_row(site, page, layout, name, m, anchored) for m in members),
                    picture="-".join(part for part in (layout.name, key, name) if part),
                    drawing=bit_picture(base, members, title, _bits_description(base, members)),
                )
            )
    return out


def _variants(site: Site, layout: Layout, name: str) -> list[tuple[str, str, FieldPlan]]:
    """Return the label (``version 0``), key (``v0``) and field plan for each span of versions in
    which the field has the same bits. Label and key are ``""`` if there is one span. Versions
    without the field are skipped; ``[]`` if none has it.
    """
    spans: list[list[tuple[Group, FieldPlan]]] = []
    for group in groups(site.plan.versions[layout.name]):
        fp = group.plan.field(name)
        if fp is None:
            continue
        if spans and spans[-1][-1][1].field.type == fp.field.type:
            spans[-1].append((group, fp))
        else:
            spans.append([(group, fp)])
    if len(spans) == 1:
        return [("", "", spans[0][0][1])]
    out = []
    for span in spans:
        versions = [v for group, _ in span for v in group.versions]
        label = (
            f"version {versions[0]}"
            if len(versions) == 1
            else f"versions {versions[0]} to {versions[-1]}"
        )
        out.append((label, f"v{versions[0]}", span[0][1]))
    return out


def _bit_row(
    site: Site, page: str, layout: Layout, field: str, m: BitMember, anchored: set[str]
) -> BitRow:
    """Return the BitRow of one bit or several adjacent ones (``m``) of the field ``field``: bit
    numbers, name, and meaning with values, default and release. Links are relative to ``page``. It
    has no anchor if its name is in ``anchored``, to which the name is added.
    """
    bits = str(m.low) if m.low == m.high else f"{m.low} to {m.high}"
    parts: list[str | Phrase] = [m.doc]
    if m.reserved:
        parts.append("No meaning yet: written as 0.")
    elif m.enum is not None:
        parts.append(phrase("Values: ", enum_values(site, page, m.enum, m.only), "."))
    if m.default is not None:
        parts.append(phrase("Default: ", value(m.default.node), "."))
    if m.since is not None:
        parts.append(phrase("Since ", since_words(site.plan, m.since), "."))
    mark = "" if m.name in anchored else f"{layout.name}-{field}-{m.name}"
    anchored.add(m.name)
    return BitRow(mark, as_phrase(bits), _names(site, m.name, m.spelled), join(parts))


def _bits_description(base: str, members: tuple[BitMember, ...]) -> str:
    """Return the picture of a field of bits as text for readers who cannot see it: the number's
    type, and the bit numbers and name of each member.
    """
    parts = [
        f"bit {m.low}: {m.name}" if m.low == m.high else f"bits {m.low} to {m.high}: {m.name}"
        for m in members
    ]
    return f"{scalar_name(base)}, least significant bit 0. " + "; ".join(parts) + "."


# ---------------------------------------------------------------- what builders fill in


@dataclass(frozen=True, slots=True)
class BuilderRow:
    """A row for a field that a builder can work out, with the values that it takes, case by case."""

    name: Phrase
    cases: tuple[Phrase, ...]

    @property
    def value(self) -> Phrase:
        """Return the cases, one a line."""
        return join(self.cases, phrase(";", BREAK))


def builder_rows(layout: Layout) -> tuple[BuilderRow, ...]:
    """Return two BuilderRows for each declared ``fills``, by which a builder computes a field of
    array elements: one says how it computes that field from what the caller gives, the other how it
    computes the layout's base field. Return ``()`` if there are none.
    """
    rows = []
    for fill in layout.fills:
        given, array = code(fill.given), field_name(fill.array)
        index = "its index" if fill.otherwise is None else code(fill.otherwise)
        taken = phrase(given, " of the element less ", field_name(fill.base), ", if the element has ", given)  # fmt: skip
        rows.append(
            BuilderRow(code(f"{fill.array}.{fill.target}"), (taken, join(("otherwise", index))))
        )
        base = next(f for f in layout.fields if f.name == fill.base)
        cases_of_base = [phrase(given, " of the first of ", array, ", if it has ", given)]
        if base.default is not None:
            cases_of_base.append(join(("otherwise", value(base.default.node))))
        elif base.absent is not None:
            cases_of_base.append(join(("otherwise", code(base.absent))))
        rows.append(BuilderRow(field_name(fill.base), tuple(cases_of_base)))
    return tuple(rows)


# ---------------------------------------------------------------- derived values


def derived_rows(site: Site, layout: Layout, array: str | None) -> tuple[DerivedRow, ...]:
    """Return a DerivedRow for each value that is derived for the elements of ``array``, or from the
    layout itself if ``array`` is None.
    """
    rows = []
    for d in layout.derived:
        if d.array != array:
            continue
        rows.append(
            DerivedRow(
                anchor="-".join(p for p in (layout.name, d.array, d.name, "derived") if p),
                names=code(d.name),
                type=as_phrase(scalar_name(d.type)),
                cases=tuple(cases(d.value)),
                meaning=_derived_meaning(site, d),
            )
        )
    return tuple(rows)


def _derived_meaning(site: Site, d: Derived) -> Phrase:
    """Return the meaning of a derived value as sentences: its description, and its unit, versions
    and release if declared.
    """
    parts: list[str | Phrase] = [d.doc]
    if d.unit is not None:
        parts.append(f"In {d.unit}.")
    if d.versions is not None:
        parts.append(f"In version {d.versions}.")
    if d.since is not None:
        parts.append(phrase("Since ", since_words(site.plan, d.since), "."))
    return join(parts)


def derived_arrays(layout: Layout) -> list[str | None]:
    """Return the arrays for whose elements values are derived; None stands for the layout itself."""
    return list(dict.fromkeys(d.array for d in layout.derived))


def derived_title(array: str | None) -> str:
    """Return the title of a table of derived values."""
    return "Derived values" if array is None else f"Derived values of each element of {array}"
