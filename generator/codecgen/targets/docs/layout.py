"""What a page says of one layout, choice or enum: blocks of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codecgen.plan import Plan
from codecgen.plan.bounds import bounds
from codecgen.plan.sizes import overhead_rows
from codecgen.schema.model import Choice, Enum, Layout, Overhead
from codecgen.targets.docs.examples import Worked
from codecgen.targets.docs.fields import (
    bits_tables,
    derived_arrays,
    derived_rows,
    derived_title,
    field_rows,
)
from codecgen.targets.docs.hexdump import Stream, shown
from codecgen.targets.docs.notation import notation
from codecgen.targets.docs.notes import changes, misprints, reader_rows
from codecgen.targets.docs.site import Group, Site, groups, holds, kind, uses, version_words
from codecgen.targets.docs.text import (
    Safe,
    anchor,
    bullets,
    byte_count,
    code,
    fence,
    heading,
    join,
    link,
    listed,
    md,
    number,
    picture,
    references,
    relative,
    release,
    since_words,
    table,
)
from codecgen.targets.docs.words import span_words

PICTURES = "docs/pictures"


def blocks(
    site: Site, page: str, thing: Enum | Layout | Choice, level: int, worked: Sequence[Worked]
) -> Iterator[Safe]:
    """Everything about one thing; its heading has the given level."""
    yield heading(level, site.title(thing.name), anchor(thing.name))
    yield md(thing.doc)
    if isinstance(thing, Layout):
        yield from _layout(site, page, thing, level + 1, worked)
    elif isinstance(thing, Choice):
        yield from _choice(site, page, thing)
    else:
        yield from _enum(site, page, thing)


# ---------------------------------------------------------------- layouts


def _layout(
    site: Site, page: str, layout: Layout, level: int, worked: Sequence[Worked]
) -> Iterator[Safe]:
    found = groups(site.plan.versions[layout.name])
    yield bullets(_layout_facts(site, page, layout, found))
    if layout.version_notes:
        yield table(("Version", "Written since", "Until"), _version_rows(site, layout))
    for group in found:
        tail = f", {group.words}" if group.words else ""
        yield heading(level, f"Notation{tail}")
        yield fence(notation(site.plan, group.plan))
    anchored: set[str] = set()
    for group in found:
        tail = f", {group.words}" if group.words else ""
        yield heading(level, f"Fields{tail}")
        if not site.brief:
            yield picture(f"The bytes of {layout.name}{tail}", _picture(page, group.picture))
        rows = field_rows(site, page, group, anchored)
        yield table(("Byte", "Size", "Field", "Type", "Meaning"), (row.cells for row in rows))
    for bits in bits_tables(site, page, layout):
        yield heading(level, bits.title, bits.anchor or None)
        if not site.brief:
            yield picture(bits.title, _picture(page, bits.picture))
        yield table(("Bits", "Name", "Meaning"), (row.cells for row in bits.rows))
    for array in derived_arrays(layout):
        yield heading(level, derived_title(array))
        if array is not None:
            yield Safe(f"{code('item')} is the element.")
        values = derived_rows(site, layout, array)
        yield table(("Value", "Type", "How", "Meaning"), (row.cells for row in values))
    if not site.brief:
        yield from _readers(site, layout, level)
        yield from _changes(site, page, layout, level)
    wrong = misprints(site, page, layout)
    if wrong:
        yield heading(level, "Where other documents are wrong")
        yield bullets(wrong)
    if not site.brief:
        if layout.overhead is not None:
            yield from _overhead(site.plan, layout.overhead, level)
        if worked:
            yield heading(level, "Examples")
        for example in worked:
            yield from _example(example, level + 1)


def _picture(page: str, name: str) -> str:
    return relative(f"{PICTURES}/{name}.svg", page)


def _layout_facts(site: Site, page: str, layout: Layout, found: list[Group]) -> list[Safe]:
    plan = site.plan
    name = code(layout.name)
    spelled = plan.spelling(layout.name, None)
    if plan.manifest.spelling == "camel":
        spelled = spelled[:1].upper() + spelled[1:]
    facts = [Safe(f"Name: {name}" + (f", {code(spelled)}" if spelled != layout.name else "") + ".")]
    if layout.draft is not None:
        links = references(plan, layout.draft)
        facts.append(Safe(f"A draft{f' of {listed(links)}' if links else ''}: it never shipped."))
    if layout.since is not None:
        facts.append(Safe(f"Since: {since_words(plan, layout.since)}."))
    if layout.versions is not None:
        versions = tuple(v for g in found for v in g.versions)
        where = "the reader has to know which"
        if layout.version_is is not None:
            where = f"{code(layout.version_is)} says which"
        facts.append(Safe(f"{version_words(versions)}; {where}."))
    facts += [_size_words(plan, group) for group in found]
    if layout.endian == "little":
        facts.append(md("Numbers have their least significant byte first (little-endian)."))
    else:
        facts.append(md("Numbers have their most significant byte first (big-endian)."))
    inside = holds(plan, layout)
    if inside:
        facts.append(Safe(f"Holds: {listed(site.link(page, n) for n in inside)}."))
    outside = [n for n in uses(plan, layout.name) if n != layout.name]
    if outside:
        facts.append(Safe(f"Stands in: {listed(site.link(page, n) for n in outside)}."))
    return facts


def _size_words(plan: Plan, group: Group) -> Safe:
    found = bounds(plan, group.plan)
    words = span_words(found.least, found.most)
    words = byte_count(found.least) if words.isdigit() else f"{words} bytes"
    label = f" of {group.words}" if group.words else ""
    if not found.payload:
        return Safe(f"Size{label}: {md(words)}.")
    held = listed(code(name) for name in found.payload)
    return Safe(f"Size{label}: {md(words)}, and what is in {held}.")


def _version_rows(site: Site, layout: Layout) -> Iterator[tuple[Safe, ...]]:
    for version, (since, until) in sorted(layout.version_notes.items()):
        if layout.versions is not None and version in layout.versions:
            end = since_words(site.plan, until) if until is not None else md("today")
            yield md(str(version)), since_words(site.plan, since), end


def _readers(site: Site, layout: Layout, level: int) -> Iterator[Safe]:
    rows = [row.cells for row in reader_rows(site, layout)]
    if rows:
        yield heading(level, "Strict and lenient readers")
        yield md("What the format does not allow, and what readers do when they find it.")
        yield table(("Where", "What", "Strict", "Lenient"), rows)


def _changes(site: Site, page: str, layout: Layout, level: int) -> Iterator[Safe]:
    found = changes(site, page, layout)
    if found:
        yield heading(level, "Changes")
        yield bullets(Safe(f"{release(site.plan, c.release)}: {c.text}") for c in found)


def _overhead(plan: Plan, overhead: Overhead, level: int) -> Iterator[Safe]:
    yield heading(level, "Overhead")
    yield md(overhead.doc)
    heads = ("Messages", *(column.title for column in overhead.columns))
    rows = [
        tuple(md(number(n)) for n in (row.messages, *row.bytes))
        for row in overhead_rows(plan, overhead)
    ]
    yield table(heads, rows)
    sizes = overhead.columns[0].sizes if overhead.columns else {}
    if sizes:
        each = listed(Safe(f"{code(name)} of {byte_count(n)}") for name, n in sizes.items())
        yield Safe(f"In bytes, beside what the messages carry: {each} each.")
    yield md(overhead.notes)


def _example(worked: Worked, level: int) -> Iterator[Safe]:
    yield heading(level, f"Example: {worked.example.name}")
    yield md(worked.example.doc)
    for stream in worked.streams:
        if stream.path:
            yield _stream_title(stream)
        yield fence(stream.text())
    if worked.derived:
        yield md("What follows from it:")
        wide = max(len(name) for name, _ in worked.derived)
        lines = [f"{name:{wide}}  {shown(value)}" for name, value in worked.derived]
        yield fence("\n".join(lines))


def _stream_title(stream: Stream) -> Safe:
    size = byte_count(len(stream.data))
    return Safe(f"{code(stream.path)} once decompressed with {code(stream.codec)}, {size}:")


# ---------------------------------------------------------------- choices and enums


def _choice(site: Site, page: str, choice: Choice) -> Iterator[Safe]:
    plan = site.plan
    facts = [Safe(f"Name: {code(choice.name)}.")]
    if choice.since is not None:
        facts.append(Safe(f"Since: {since_words(plan, choice.since)}."))
    if choice.by is not None:
        ref = choice.cases[0][1]
        fp = plan.of(ref)[0].field(choice.by)
        place = f", at byte {fp.offset} of each" if fp is not None and fp.offset is not None else ""
        facts.append(Safe(f"Decided by: {code(choice.by)}{place}."))
    if choice.given is not None:
        facts.append(
            Safe(f"Decided by: a value of {site.link(page, choice.given)} that lies elsewhere.")
        )
    outside = uses(plan, choice.name)
    if outside:
        facts.append(Safe(f"Stands in: {listed(site.link(page, n) for n in outside)}."))
    yield bullets(facts)
    rows = []
    for key, ref in choice.cases:
        layout = plan.model.layouts[ref.layout]
        rows.append(
            (_case(plan, choice, key), site.link(page, ref.layout, str(ref)), md(layout.doc))
        )
    yield table((choice.by or choice.given or "Value", "Layout", "What it is"), rows)


def _case(plan: Plan, choice: Choice, key: int | str) -> Safe:
    if choice.given is None:
        return code(key)
    values = plan.model.enums[choice.given].values
    found = next((v for v in values if v.name == key), None)
    return join((code(found.value), code(found.spelled or found.name))) if found else code(key)


def _enum(site: Site, page: str, enum: Enum) -> Iterator[Safe]:
    unknown = (
        "Other numbers are values too: readers keep them."
        if enum.keep_unknown
        else "Strict readers refuse other numbers; lenient ones note and keep them."
    )
    facts = [Safe(f"Name: {code(enum.name)}."), md(unknown)]
    outside = uses(site.plan, enum.name)
    if outside:
        facts.append(Safe(f"Stands in: {listed(site.link(page, n) for n in outside)}."))
    yield bullets(facts)
    rows = []
    for v in enum.values:
        names = (
            code(v.name)
            if v.spelled in (None, v.name)
            else Safe(f"{code(v.name)}<br>{code(v.spelled)}")
        )
        mark = anchor(f"{enum.name}-{v.name}")
        rows.append(
            (md(str(v.value)), Safe(mark + names), since_words(site.plan, v.since), md(v.doc))
        )
    yield table(("Number", "Name", "Since", "Meaning"), rows)


# ---------------------------------------------------------------- indexes


def index_rows(site: Site, page: str, file: str) -> Iterator[tuple[Safe, ...]]:
    """The things of one YAML file, for a list of pages."""
    for thing in site.plan.modules()[file]:
        target = site.href(page, thing.name)
        yield link(site.title(thing.name), target), md(kind(thing)), md(thing.doc)
