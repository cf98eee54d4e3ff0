"""What a page says of one layout, choice or enum: the data that templates show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from codecgen.plan import Plan
from codecgen.plan.encoded_sizes import computable_overhead, overhead_rows
from codecgen.plan.payloads import part_kinds
from codecgen.plan.size_bounds import size_bounds
from codecgen.plan.type_text import (
    format_byte_count,
    format_number,
    given_type_words,
    range_words,
    scalar_words,
)
from codecgen.schema.model import Choice, Column, Enum, Layout, Message, Overhead, Rows, View
from codecgen.schema.nested_choices import list_cases
from codecgen.schema.texts import Text
from codecgen.targets.docs.examples import Worked, WorkedText
from codecgen.targets.docs.expression_phrases import condition, value
from codecgen.targets.docs.fields import (
    BitsTable,
    BuilderRow,
    DerivedRow,
    FieldRow,
    bits_tables,
    builder_rows,
    derived_arrays,
    derived_rows,
    derived_title,
    field_rows,
)
from codecgen.targets.docs.hexdump import Stream, value_text
from codecgen.targets.docs.notation import notation
from codecgen.targets.docs.notes import ReaderRow, changes, misprints, reader_rows
from codecgen.targets.docs.site import (
    Group,
    PageItem,
    Site,
    anchor_of,
    directories,
    groups,
    held_layouts,
    layouts_using,
    version_words,
)
from codecgen.targets.docs.svg import Picture, byte_picture
from codecgen.targets.docs.text import (
    BREAK,
    Phrase,
    anchor,
    as_phrase,
    code,
    field_name,
    join,
    join_list,
    phrase,
    references,
    release,
    since_words,
)
from codecgen.targets.docs.texts import TextSection, text_section


@dataclass(frozen=True, slots=True)
class GroupSection:
    """Versions of a layout that look alike. ``label`` tells them from others: ``, version 0``, or nothing."""

    label: str
    notation: str
    picture: str
    drawing: Picture
    rows: tuple[FieldRow, ...]


@dataclass(frozen=True, slots=True)
class DerivedSection:
    """Values that are worked out; of each element of ``array`` if there is one."""

    title: str
    array: str | None
    rows: tuple[DerivedRow, ...]


@dataclass(frozen=True, slots=True)
class VersionRow:
    """The releases in which writers used a version."""

    version: Phrase
    since: Phrase
    until: Phrase


@dataclass(frozen=True, slots=True)
class OverheadSection:
    """A table of bytes in addition to what messages carry; ``carried`` tells their sizes."""

    doc: Phrase
    headings: tuple[str, ...]
    rows: tuple[tuple[Phrase, ...], ...]
    carried: Phrase
    notes: Phrase


@dataclass(frozen=True, slots=True)
class StreamSection:
    """The bytes of an example, or of a compressed section in it, which ``title`` names."""

    title: Phrase
    dump: str
    stream: Stream


@dataclass(frozen=True, slots=True)
class ExampleSection:
    """An example of a layout, with its bytes."""

    name: str
    doc: Phrase
    streams: tuple[StreamSection, ...]
    derived: str


@dataclass(frozen=True, slots=True)
class LayoutSection:
    """All that a page shows of a layout."""

    kind: ClassVar[str] = "layout"
    name: str
    title: str
    doc: Phrase
    facts: tuple[Phrase, ...]
    versions: tuple[VersionRow, ...]
    groups: tuple[GroupSection, ...]
    bits: tuple[BitsTable, ...]
    derived: tuple[DerivedSection, ...]
    builders: tuple[BuilderRow, ...]
    readers: tuple[ReaderRow, ...]
    changes: tuple[Phrase, ...]
    misprints: tuple[Phrase, ...]
    overhead: OverheadSection | None
    examples: tuple[ExampleSection, ...]


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case of a choice: the value that selects a layout."""

    value: Phrase
    layout: Phrase
    doc: Phrase


@dataclass(frozen=True, slots=True)
class ChoiceSection:
    """``decided_by`` is the name of the field or the enum that decides."""

    kind: ClassVar[str] = "choice"
    name: str
    title: str
    doc: Phrase
    facts: tuple[Phrase, ...]
    decided_by: str
    rows: tuple[CaseRow, ...]


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A value of an enum. Links lead to ``anchor``."""

    anchor: str
    number: Phrase
    names: Phrase
    since: Phrase
    doc: Phrase

    @property
    def name(self) -> Phrase:
        """Return the names with the anchor."""
        return phrase(anchor(self.anchor), self.names)


@dataclass(frozen=True, slots=True)
class EnumSection:
    """All that a page shows of an enum."""

    kind: ClassVar[str] = "enum"
    name: str
    title: str
    doc: Phrase
    facts: tuple[Phrase, ...]
    rows: tuple[ValueRow, ...]


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """A column of a view. ``null`` tells when it is null."""

    column: Phrase
    type: Phrase
    null: Phrase
    doc: Phrase


@dataclass(frozen=True, slots=True)
class ValueOfColumn:
    """A column and the value that some rows have in it."""

    column: Phrase
    value: Phrase


@dataclass(frozen=True, slots=True)
class RowsSection:
    """Rows of a view: ``words`` tells their layouts, ``values`` their columns."""

    words: Phrase
    values: tuple[ValueOfColumn, ...]


@dataclass(frozen=True, slots=True)
class ViewSection:
    """All that a page shows of a view."""

    kind: ClassVar[str] = "view"
    name: str
    title: str
    doc: Phrase
    facts: tuple[Phrase, ...]
    columns: tuple[ColumnRow, ...]
    rows: tuple[RowsSection, ...]


Section = LayoutSection | TextSection | ChoiceSection | EnumSection | ViewSection


def section(
    site: Site, page: str, thing: PageItem, worked: Sequence[Worked | WorkedText]
) -> Section:
    """Return the section of a page for a declaration (layout, text, choice or enum) or a view, with
    links relative to ``page``. Of ``worked``, the correct examples, layouts and texts show those of
    their own kind; views, choices and enums show none. Raise SizeError if an overhead size of a
    layout cannot be computed, unless the site is brief.
    """
    if isinstance(thing, Layout):
        return _layout(site, page, thing, [w for w in worked if isinstance(w, Worked)])
    if isinstance(thing, Text):
        return text_section(site, thing, [w for w in worked if isinstance(w, WorkedText)])
    if isinstance(thing, View):
        return view_section(site, page, thing)
    return _choice(site, page, thing) if isinstance(thing, Choice) else _enum(site, page, thing)


# ---------------------------------------------------------------- layouts


def _layout(site: Site, page: str, layout: Layout, worked: Sequence[Worked]) -> LayoutSection:
    """Return the LayoutSection of a layout, with links relative to ``page``: facts, versions,
    fields, bits, derived values, misprints. On a brief site, builders, readers, changes and
    examples are empty and overhead is None. On sites of today, raise SizeError if an overhead size
    cannot be computed.
    """
    found = groups(site.plan.versions[layout.name])
    full = not site.brief
    anchored: set[str] = set()
    return LayoutSection(
        name=layout.name,
        title=site.title(layout.name),
        doc=as_phrase(layout.doc),
        facts=tuple(_layout_facts(site, page, layout, found)),
        versions=tuple(_version_rows(site, layout)),
        groups=tuple(_group(site, page, group, anchored) for group in found),
        bits=tuple(bits_tables(site, page, layout)),
        derived=tuple(
            DerivedSection(derived_title(array), array, derived_rows(site, layout, array))
            for array in derived_arrays(layout)
        ),
        builders=builder_rows(layout) if full else (),
        readers=reader_rows(site, layout) if full else (),
        changes=tuple(
            phrase(release(site.plan, c.release), ": ", c.text)
            for c in (changes(site, page, layout) if full else ())
        ),
        misprints=tuple(misprints(site, page, layout)),
        overhead=_overhead(site.plan, layout.overhead) if layout.overhead and full else None,
        examples=tuple(_example(example) for example in worked) if full else (),
    )


def _group(site: Site, page: str, group: Group, anchored: set[str]) -> GroupSection:
    """Return the GroupSection of a group of versions with equal fields: notation, picture of the
    bytes, and field rows, with links relative to ``page``. ``anchored`` has the names of fields
    that an earlier group describes, which get no anchor; the fields of this group are added to it.
    """
    label = f", {group.words}" if group.words else ""
    return GroupSection(
        label=label,
        notation=notation(site.plan, group.plan),
        picture=group.picture,
        drawing=byte_picture(group.plan, f"The bytes of {group.plan.name}{label}"),
        rows=field_rows(site, page, group, anchored),
    )


def _layout_facts(site: Site, page: str, layout: Layout, found: list[Group]) -> Iterator[Phrase]:
    """Yield facts about a layout as sentences with links relative to ``page``: names, draft,
    release, versions, message, size of each group ``found`` of versions, byte order, held layouts,
    used packages, and the layouts and choices that use it. Sentences that do not apply are left
    out.
    """
    plan = site.plan
    spelled = plan.spelling(layout.name, None)
    if plan.manifest.spelling == "camel":
        spelled = spelled[:1].upper() + spelled[1:]
    names = [code(name) for name in dict.fromkeys((layout.name, spelled))]
    yield phrase("Name: ", join(names, ", "), ".")
    if layout.draft is not None:
        links = references(plan, layout.draft)
        of = phrase(" of ", join_list(links)) if links else ""
        yield phrase("A draft", of, ": no release contains it.")
    if layout.since is not None:
        yield phrase("Since: ", since_words(plan, layout.since), ".")
    if layout.versions is not None:
        versions = tuple(v for g in found for v in g.versions)
        where: str | Phrase = "the reader has to know which"
        if layout.version_is is not None:
            where = phrase(field_name(layout.version_is), " says which")
        yield phrase(version_words(versions), "; ", where, ".")
    if layout.message is not None:
        yield from _message_facts(site, page, layout.message)
    if layout.given:
        given = (phrase(field_name(f.name), f" ({given_type_words(f)})") for f in layout.given)
        yield phrase("Given from outside, without bytes of its own: ", join_list(given), ".")
    for group in found:
        yield _size_words(plan, group)
    which = "least" if layout.endian == "little" else "most"
    yield as_phrase(f"Numbers have their {which} significant byte first ({layout.endian}-endian).")
    inside = held_layouts(plan, layout)
    if inside:
        yield phrase("Holds: ", join_list(site.link(page, n) for n in inside), ".")
    yield from _used_package_phrases(site, layout)
    yield from _users_of(site, page, layout.name)


def _message_facts(site: Site, page: str, message: Message) -> Iterator[Phrase]:
    """Yield facts about a request, response or header as sentences, with links relative to
    ``page``: its role, key and headers; for a header the fields that name the message after it;
    unstable versions; other declared facts. Facts that are not declared, and headers that the plan
    lacks, are left out.
    """
    key = "" if message.key is None else f" with the key {message.key}"
    known = site.plan.model.layouts
    headers = [
        phrase(
            site.link(page, ref.layout, str(ref)),
            "" if len(message.headers) == 1 else f" in versions {versions}",
        )
        for versions, ref in message.headers
        if ref.layout in known
    ]
    after = phrase(" after ", join_list(headers)) if headers else ""
    yield phrase(f"A {message.role}{key}", after, ".")
    if message.key_field is not None and message.version_field is not None:
        names = (field_name(message.key_field), field_name(message.version_field))
        yield phrase(names[0], " and ", names[1], " name the message that follows.")
    if message.unstable is not None:
        yield as_phrase(f"Versions that may still change: {message.unstable}.")
    for name, words in message.facts.items():
        yield phrase(code(name), ": ", join([code(word) for word in words], ", "), ".")


def _used_package_phrases(site: Site, thing: Layout | Choice) -> Iterator[Phrase]:
    """Yield one sentence for each other schema directory whose declarations ``thing`` names: the
    alias before the dot, its title, and its package.
    """
    for name, directory in directories(site.plan, thing).items():
        where = phrase(
            as_phrase(directory.model.manifest.title), " (", code(directory.package), ")."
        )
        yield phrase("What begins with ", code(f"{name}."), " is described in: ", where)


def _users_of(site: Site, page: str, name: str) -> Iterator[Phrase]:
    """Yield one phrase with links to the layouts and choices that use a declaration, without the
    declaration itself; yield nothing if there are none.
    """
    outside = [n for n in layouts_using(site.plan, name) if n != name]
    if outside:
        yield phrase("Stands in: ", join_list(site.link(page, n) for n in outside), ".")


def _size_words(plan: Plan, group: Group) -> Phrase:
    """Return the sentence about the size in bytes of a group of versions: the minimum and, if
    limited, the maximum, and the names of the fields whose content comes on top of it. The group's
    versions are named if there are several groups.
    """
    found = size_bounds(plan, group.plan)
    words = range_words(found.min_size, found.max_size)
    words = format_byte_count(found.min_size) if words.isdigit() else f"{words} bytes"
    label = f" of {group.words}" if group.words else ""
    held = join_list(field_name(name) for name in found.payload)
    tail = phrase(", and what is in ", held) if found.payload else ""
    return phrase(f"Size{label}: {words}", tail, ".")


def _version_rows(site: Site, layout: Layout) -> Iterator[VersionRow]:
    """Yield a VersionRow for each dated version of a layout, in order: the releases from which and
    until which writers used it ("today" if they still do). Undated versions are skipped.
    """
    for version, (since, until) in sorted(layout.version_notes.items()):
        if layout.versions is not None and version in layout.versions:
            end = since_words(site.plan, until) if until is not None else as_phrase("today")
            yield VersionRow(as_phrase(version), since_words(site.plan, since), end)


def _overhead(plan: Plan, overhead: Overhead) -> OverheadSection | None:
    """Return the OverheadSection of an overhead table (bytes that a layout takes beside the content
    of messages): a row for each number of messages, and the content sizes assumed, taken from the
    first column. As of a release, leave out columns whose sizes cannot be computed, and return None
    if no column is left. Otherwise raise SizeError for such a column.
    """
    if plan.release is not None:
        overhead = computable_overhead(plan, overhead)
        if not overhead.columns:
            return None
    sizes = overhead.columns[0].sizes if overhead.columns else {}
    each = join_list(phrase(code(name), " of ", format_byte_count(n)) for name, n in sizes.items())
    return OverheadSection(
        doc=as_phrase(overhead.doc),
        headings=("Messages", *(column.title for column in overhead.columns)),
        rows=tuple(
            tuple(as_phrase(format_number(n)) for n in (row.messages, *row.bytes))
            for row in overhead_rows(plan, overhead)
        ),
        carried=phrase("In bytes, beside what the messages carry: ", each, " each.")
        if sizes
        else Phrase(),
        notes=as_phrase(overhead.notes),
    )


def _example(worked: Worked) -> ExampleSection:
    """Return the ExampleSection of a checked example: an annotated hex dump of each stream, and the
    derived values, one per line.
    """
    wide = max((len(name) for name, _ in worked.derived), default=0)
    return ExampleSection(
        name=worked.example.name,
        doc=as_phrase(worked.example.doc),
        streams=tuple(StreamSection(_stream_title(s), s.text(), s) for s in worked.streams),
        derived="\n".join(f"{name:{wide}}  {value_text(value)}" for name, value in worked.derived),
    )


def _stream_title(stream: Stream) -> Phrase:
    """Return the title of a decompressed section: its path, codec and size. Return an empty Phrase
    for the bytes of the example itself.
    """
    if not stream.path:
        return Phrase()
    size = format_byte_count(len(stream.data))
    return phrase(code(stream.path), " once decompressed with ", code(stream.codec), f", {size}:")


# ---------------------------------------------------------------- choices and enums


def _choice(site: Site, page: str, choice: Choice) -> ChoiceSection:
    """Return the ChoiceSection of a choice, with links relative to ``page``: facts, what decides
    (the name of a field or enum, or "Number"), and a row for each case with a link to its layout or
    inner choice.
    """
    plan = site.plan
    return ChoiceSection(
        name=choice.name,
        title=site.title(choice.name),
        doc=as_phrase(choice.doc),
        facts=tuple(_choice_facts(site, page, choice)),
        decided_by=choice.by or choice.given or "Number",
        rows=tuple(
            CaseRow(
                _case(plan, choice, key),
                site.link(page, inner or ref.layout, inner or str(ref)),
                as_phrase(
                    (plan.model.choices[inner] if inner else plan.model.layouts[ref.layout]).doc
                ),
            )
            for key, ref, inner in list_cases(choice)
        ),
    )


def _choice_facts(site: Site, page: str, choice: Choice) -> Iterator[Phrase]:
    """Yield facts about a choice as sentences, with links relative to ``page``: name, release, the
    field, enum or number that decides, used packages, and the layouts and choices that use it.
    Sentences that do not apply are left out.
    """
    yield phrase("Name: ", code(choice.name), ".")
    if choice.since is not None:
        yield phrase("Since: ", since_words(site.plan, choice.since), ".")
    if choice.by is not None:
        fp = site.plan.of(choice.cases[0][1])[0].field(choice.by)
        place = f", at byte {fp.offset} of each" if fp is not None and fp.offset is not None else ""
        yield phrase("Decided by: ", code(choice.by), place, ".")
    if choice.given is not None:
        yield phrase(
            "Decided by: a value of ", site.link(page, choice.given), " that lies elsewhere."
        )
    elif choice.given_type is not None:
        yield phrase(
            f"Decided by: a number that lies elsewhere, {scalar_words(choice.given_type)}."
        )
    yield from _used_package_phrases(site, choice)
    yield from _users_of(site, page, choice.name)


def _case(plan: Plan, choice: Choice, key: int | str) -> Phrase:
    """Return the key of a case in a choice as a Phrase: as code, or, if an enum selects the cases,
    the number and the spelled name of the enum value ``key``; only the key if the enum lacks it.
    """
    if choice.given is None:
        return code(key)
    values = plan.model.enums[choice.given].values
    found = next((v for v in values if v.name == key), None)
    return join((code(found.value), code(found.spelled or found.name))) if found else code(key)


def _enum(site: Site, page: str, enum: Enum) -> EnumSection:
    """Return the EnumSection of an enum, with links relative to ``page``: its name, what readers do
    with other numbers, its users, and a row for each value with its number, names, release and
    description.
    """
    unknown = (
        "Other numbers are values too: readers keep them."
        if enum.keep_unknown
        else "Strict readers refuse other numbers; lenient ones note and keep them."
    )
    return EnumSection(
        name=enum.name,
        title=site.title(enum.name),
        doc=as_phrase(enum.doc),
        facts=(
            phrase("Name: ", code(enum.name), "."),
            as_phrase(unknown),
            *_users_of(site, page, enum.name),
        ),
        rows=tuple(
            ValueRow(
                anchor=f"{enum.name}-{v.name}",
                number=as_phrase(v.value),
                names=join((code(n) for n in dict.fromkeys((v.name, v.spelled)) if n), BREAK),
                since=since_words(site.plan, v.since),
                doc=as_phrase(v.doc),
            )
            for v in enum.values
        ),
    )


def view_section(site: Site, page: str, view: View) -> ViewSection:
    """Return the ViewSection of a view of payloads, with links relative to ``page``: facts, a row
    for each top-level column, and a section for each of the view's ``rows``, a combination of part
    layouts.
    """
    return ViewSection(
        name=anchor_of(view),
        title=site.title(view.name),
        doc=as_phrase(view.doc),
        facts=tuple(_facts(site, page, view)),
        columns=tuple(_column(column) for column in view.columns),
        rows=tuple(_rows(site, page, rows) for rows in view.rows),
    )


def _facts(site: Site, page: str, view: View) -> Iterator[Phrase]:
    """Yield facts about a view of payloads as sentences, with links relative to ``page``: its name,
    its parts with their layouts or choices, and the field that decides the kind of a payload, if
    one does.
    """
    yield phrase("Name: ", code(view.name), ".")
    parts = [
        phrase(code(name), ", which is ", site.link(page, of)) for name, of in view.parts.items()
    ]
    yield phrase("A view into payloads of ", join_list(parts), ".")
    for kind in part_kinds(site.plan.model, view):
        if kind.decides and kind.choice is not None:
            by = code(f"{kind.name}.{kind.choice.by}")
            yield phrase("Decided by: ", by, ".")


def _column(column: Column) -> ColumnRow:
    """Return the ColumnRow of a column: name, type ("list of" or "struct of" its members, or "list of" its element), "yes" or nothing for nullable, and its description with its unit and, if so, that it is left out
    unless requested.
    """
    type_ = code(column.type)
    if column.members:
        members = [phrase(code(m.name), " (", code(m.type), ")") for m in column.members]
        type_ = phrase(f"{column.type} of ", join_list(members))
    elif column.element is not None:
        type_ = phrase("list of ", code(column.element.type))
    unit = as_phrase(f"In {column.unit}." if column.unit else "")
    asked = as_phrase("Left out unless it is asked for." if column.on_request else "")
    return ColumnRow(
        code(column.name),
        type_,
        as_phrase("yes" if column.nullable else ""),
        join((as_phrase(column.doc), unit, asked)),
    )


def _rows(site: Site, page: str, rows: Rows) -> RowsSection:
    """Return the RowsSection of one ``rows`` of a view of payloads: which layouts the parts are,
    whether there is one row or one for each array element, the condition, if any, and the value of
    each column, with links relative to ``page``.
    """
    of = [
        phrase(code(name), " is ", site.link(page, layout)) for name, layout in rows.parts.items()
    ]
    what = phrase("a row for each of ", code(rows.each)) if rows.each else as_phrase("a row")
    when = Phrase() if rows.when is None else phrase(", if ", condition(rows.when.node))
    return RowsSection(
        phrase("Where ", join_list(of), ": ", what, when, "."),
        tuple(ValueOfColumn(code(n), value(e.node)) for n, e in rows.values.items()),
    )
