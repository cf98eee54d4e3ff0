"""Explain declarations of a schema and diagnostics as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

from codecgen.diagnostic_catalog import CATALOG
from codecgen.diagnostics import did_you_mean, printable
from codecgen.evolution.rules import RULES
from codecgen.explain.terminal import (
    WIDTH,
    array_rows,
    given_words,
    inside_words,
    misprint_row,
    paragraph,
    relations,
    row,
    tag_words,
    title,
    types_in,
    wrap_text,
)
from codecgen.plan import FieldPlan, LayoutPlan, Plan, make_plan
from codecgen.plan.type_text import (
    amount_words,
    bits_words,
    constant_words,
    given_type_words,
    size_words,
    type_words,
)
from codecgen.schema.lookup import members, reference_of, references_of
from codecgen.schema.model import (
    TOLERANCES,
    Choice,
    Derived,
    Enum,
    EnumValue,
    Field,
    Layout,
    Message,
    Model,
)
from codecgen.schema.nested_choices import case_names, list_cases
from codecgen.schema.texts import EachLine, Text, TextValue
from codecgen.schema.types import ArrayType, BitMember, BitsType, ScalarType, Since
from codecgen.schema.uses import within


class UnknownName(Exception):
    """No declaration has this name. The text suggests names."""


def explain_diagnostic(code: str) -> str | None:
    """Return the text about a diagnostic (``C016``) or a rule of ``codecgen breaking`` (``B003``):
    title, severity, explanation, remedy, wrapped to ``WIDTH``. Return None if ``code``, in upper or
    lower case, is not the id of one.
    """
    entry = CATALOG.get(code.upper()) or RULES.get(code.upper())
    if entry is None:
        return None
    lines = [f"{code.upper()}: {entry.title}", f"severity: {' or '.join(entry.severities)}"]
    for text in (entry.explanation, f"Remedy: {entry.remedy}"):
        lines += ["", *textwrap.wrap(text, WIDTH)]
    return "\n".join(lines)


def explain(model: Model, name: str) -> str:
    """Return the explanation of a declaration, or of a version, field, bit member or value of one:
    ``record_batch``, ``message@0.crc``, ``compression.lz4``. Raise UnknownName if the schemas
    declare no such name, and for views and names of used directories, which have no explanation.
    """
    model, inner = within(model, name)
    lines = _Explainer(make_plan(model)).explain_name(inner)
    return "\n".join(printable(line).rstrip() for line in lines)


class _Explainer:
    """Explains declarations of one model as lines of text. Only methods that say so raise
    UnknownName.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.model = plan.model

    def explain_name(self, name: str) -> Iterator[str]:
        """Return the lines of the explanation of a layout, enum, choice or text, or of
        ``layout@2``, ``layout.field``, ``enum.value`` and the like. Raise UnknownName, perhaps only
        when the lines are read, if there is no such name, or if it is a view or a used directory.
        """
        head, *rest = name.split(".")
        layout_name, at, number = head.partition("@")
        model = self.model
        layout = model.layouts.get(layout_name)
        if layout is not None:
            return self.in_layout(layout, self.version(layout, number) if at else None, rest, name)
        if head in model.enums and len(rest) < 2:
            return self.enum(model.enums[head]) if not rest else self.enum_value(head, rest[0])
        if head in model.choices and not rest:
            return self.choice(model.choices[head])
        if head in model.uses and not rest:
            what = f"{head} is a directory that is used, of {model.uses[head].package}"
            known = [*model.uses[head].model.layouts, *model.uses[head].model.enums]
            raise UnknownName(f"{what}; name one of {', '.join(f'{head}.{n}' for n in known[:40])}")
        if head in model.texts:
            return self.text(model.texts[head], ".".join(rest))
        known = [*model.layouts, *model.texts, *model.enums, *model.choices]
        raise _unknown_name(
            head if layout_name == head else layout_name, known, "the schemas declare"
        )

    def version(self, layout: Layout, number: str) -> int:
        """Return the version number in a name. Raise UnknownName if it is no number, or the layout
        has no such version or no versions.
        """
        plain = number.isdecimal() and number.isascii()
        if plain and layout.versions is not None and int(number) in layout.versions:
            return int(number)
        there = "no versions" if layout.versions is None else f"versions {layout.versions}"
        raise UnknownName(f"{layout.name} has {there}, not {number!r}")

    def plans(self, layout: Layout, version: int | None) -> list[LayoutPlan]:
        """Return the plans of all versions of a layout, or only of ``version`` if it is given;
        ``[]`` if there is no such version.
        """
        plans = self.plan.versions[layout.name]
        return [p for p in plans if version is None or p.version == version]

    # ------------------------------------------------------------ layouts

    def in_layout(
        self, layout: Layout, version: int | None, names: list[str], whole: str
    ) -> Iterator[str]:
        """Return the lines of the explanation of a layout (``names`` empty), or of the field, bit,
        derived value or field of a held layout that ``names`` leads to. Raise UnknownName at once
        if there is none in these versions, or a field has nothing inside. ``whole`` is the name as
        it was asked for, for the title.
        """
        plans = self.plans(layout, version)
        if not names:
            return self.layout(layout, plans, whole)
        name, *rest = names
        derived = [d for d in layout.derived if d.array is None and d.name == name]
        if derived and not rest:
            return self.derived(derived[0], layout, whole)
        field = next((f for f in layout.fields if f.name == name), None)
        if field is None or not any(p.field(name) for p in plans):
            known = [f.name for p in plans for f in p.fields] + [d.name for d in layout.derived]
            raise _unknown_name(name, known, f"{layout.name} has")
        if not rest:
            return self.field(field, layout, plans, whole)
        if isinstance(field.type, BitsType):
            found = [m for m in members(field) if m.name == rest[0]]
            if found and len(rest) == 1:
                return self.bit(found[0], field, layout, plans, whole)
            raise _unknown_name(rest[0], [m.name for m in members(field)], f"{field.name} has")
        of_elements = [d for d in layout.derived if d.array == name and d.name == rest[0]]
        if of_elements and len(rest) == 1:
            return self.derived(of_elements[0], layout, whole)
        ref = reference_of(field)
        if ref is None:
            raise UnknownName(f"{field.name} of {layout.name} {inside_words(field)}")
        model, inner = within(self.model, ref.layout)
        explainer = self if model is self.model else _Explainer(make_plan(model))
        return explainer.in_layout(model.layouts[inner], ref.version, rest, whole)

    def layout(self, layout: Layout, plans: list[LayoutPlan], whole: str) -> Iterator[str]:
        """Yield the lines of the explanation of a layout: title (with the name ``whole``),
        documentation, versions, releases, tolerances and holders, a table of fields for each plan,
        derived values, rules and examples. Rows without content are left out.
        """
        yield from title(whole, "layout", layout.span)
        yield from paragraph(layout.doc)
        if layout.versions is not None:
            held = f"; the field {layout.version_is} holds it" if layout.version_is else ""
            yield from row("versions", f"{layout.versions}{held}")
        yield from row("flexible", str(layout.flexible or ""))
        if layout.message is not None:
            yield from _message_rows(layout.message)
        for version, (since, until) in layout.version_notes.items():
            ends = f", until {self.since(until)}" if until is not None else ""
            yield from row(f"version {version}", f"since {self.since(since)}{ends}")
        yield from self.since_rows(layout.since, layout.draft)
        yield from row("bytes", "numbers are little endian" if layout.endian == "little" else "")
        for tolerance in sorted(layout.accepts):
            yield from row("lenient", TOLERANCES[tolerance])
        yield from row("held by", ", ".join(self.holders(layout.name)))
        for f in layout.given:
            yield from row("given", f"{f.name}, {given_type_words(f)}, from outside")
        for plan in plans:
            yield ""
            of = "" if plan.version is None else f" of version {plan.version}"
            yield from self.table(plan, f"fields{of}")
        yield from self.derived_rows(layout)
        if layout.rules:
            yield ""
            yield "rules that strict readers and builders apply"
            for rule in layout.rules:
                yield from wrap_text(f"  {rule.name}: {rule.text}", 6)
        if layout.examples:
            yield ""
            yield from row("examples", "; ".join(e.name for e in layout.examples))

    def table(self, plan: LayoutPlan, heading: str) -> Iterator[str]:
        """Yield the heading, a line of column titles, then a line for each field of one version
        (none without fields): byte offset or tag, size, name and type with its condition. The
        offset is empty if it is not fixed.
        """
        rows = [("at", "bytes", "name", "type")]
        for fp in plan.fields:
            at = tag_words(fp) if fp.offset is None else str(fp.offset)
            words = self.type(fp.field)
            if fp.field.when is not None:
                words += f"; only when {fp.field.when}"
            rows.append((at, size_words(fp), fp.name, words))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        yield heading
        for at, size, name, words in rows:
            yield f"  {at:>{widths[0]}}  {size:<{widths[1]}}  {name:<{widths[2]}}  {words}"

    def derived_rows(self, layout: Layout) -> Iterator[str]:
        """Yield a blank line, a heading and one entry per derived value of a layout and of the
        elements of its arrays. Yield nothing if there are none.
        """
        if layout.derived:
            yield ""
            yield "derived"
            for d in layout.derived:
                name = d.name if d.array is None else f"{d.name} of each element of {d.array}"
                yield from wrap_text(f"  {name} = {d.value}", 6)

    def holders(self, name: str) -> list[str]:
        """Return the names of the fields (``layout.field``), then of the choices, of this directory
        that hold the layout ``name``. Return ``[]`` if none does, also for an unknown name, which
        does not raise here.
        """
        out = []
        for layout in self.model.layouts.values():
            for f in layout.fields:
                if any(ref.layout == name for ref in references_of(f)):
                    out.append(f"{layout.name}.{f.name}")
        choices = self.model.choices.values()
        return out + [c.name for c in choices if name in case_names(c)]

    # ------------------------------------------------------------ fields

    def field(self, f: Field, layout: Layout, plans: list[LayoutPlan], whole: str) -> Iterator[str]:
        """Yield the lines of the explanation of a field: title (with the name ``whole``),
        documentation, types and positions by version, default, relations to other fields,
        conditions, tolerances, spellings, and the tables of its bits or enum values. Rows without
        content are left out.
        """
        yield from title(whole, f"field of {layout.name}", f.span)
        yield from paragraph(f.doc)
        for one, where in types_in(f, plans):
            yield from row("type", self.type(one) + where)
        if "endian" in f.places or (not isinstance(f.type, ScalarType) and f.endian == "little"):
            yield from row("", f"{f.endian} endian")
        yield from self.position_rows(f, plans)
        yield from row("versions", str(f.versions) if f.versions else "")
        yield from self.since_rows(f.since or layout.since, None)
        yield from row("only when", str(f.when) if f.when else "")
        for given, value in f.gives:
            yield from row("gives", f"{given}: {value}")
        yield from self.default_rows(f)
        yield from self.field_ranges(f, plans)
        yield from row("valid", f"{f.valid}; strict readers refuse the rest" if f.valid else "")
        yield from row("refused", f"{f.refuse}, by every reader" if f.refuse else "")
        for tolerance in sorted(f.accepts - {"trailing_bytes"}):
            if tolerance not in layout.accepts:
                yield from row("lenient", TOLERANCES[tolerance])
        if isinstance(f.type, ArrayType):
            yield from array_rows(f.type)
        yield from self.spelling_rows(f.name, f.spelled)
        if f.formerly is not None:
            yield from row("formerly", f"{f.formerly.name}, until {f.formerly.until}")
        yield from misprint_row(f.misprint)
        if isinstance(f.type, BitsType):
            yield from self.members(plans, f)
        if isinstance(f.type, ScalarType) and f.type.enum is not None:
            yield from self.values(f.type.enum, f.type.only)

    def type(self, f: Field) -> str:
        """Return the type of a field in words, followed by its enum, the field that counts it and
        its unit, as far as it has them.
        """
        words = type_words(f.type)
        if isinstance(f.type, ScalarType) and f.type.enum is not None:
            words += f", a value of {f.type.enum}"
        if isinstance(f.type, ArrayType) and f.type.counted_by is not None:
            words += f", counted by {f.type.counted_by}{amount_words(f.type)}"
        return words + (f", in {f.unit}" if f.unit else "")

    def position_rows(self, f: Field, plans: list[LayoutPlan]) -> Iterator[str]:
        """Yield a row for each different position and size of a field, with the versions that have
        it if there are several.
        """
        places: dict[str, list[str]] = {}
        for plan in plans:
            fp = plan.field(f.name)
            if fp is not None:
                version = "" if plan.version is None else str(plan.version)
                places.setdefault(self.position_words(fp), []).append(version)
        for where, versions in places.items():
            tail = "" if len(places) == 1 else f" in version {', '.join(versions)}"
            yield from row("place", where + tail)

    def position_words(self, fp: FieldPlan) -> str:
        """Return the position and size of a field in words: ``byte 4``, ``bytes 4 to 7`` (both
        included), ``from byte 4; size ..`` or, without a fixed position, its tag or ``no fixed
        byte`` and the size.
        """
        size = size_words(fp)
        if fp.offset is None:
            return f"{tag_words(fp) or 'no fixed byte'}; size {size}"
        if fp.size is None:
            return f"from byte {fp.offset}; size {size}"
        last = fp.offset + fp.size - 1
        return f"byte {last}" if fp.size == 1 else f"bytes {fp.offset} to {last}"

    def default_rows(self, f: Field) -> Iterator[str]:
        """Yield a row about what builders write if no value is given: the version, the constant,
        ``absent`` or the default. Yield nothing if the field has none of these.
        """
        if f.is_version:
            yield from row("written", "the version of the layout")
        elif f.const is not None:
            yield from row("written", f"always {constant_words(f.const)}")
        elif f.absent is not None:
            yield from row("written", f"{f.absent} when there is no value")
        elif f.default is not None or f.filled:
            yield from row("written", f"{f.default or '{}'} when no value is given")

    def field_ranges(self, f: Field, plans: list[LayoutPlan]) -> Iterator[str]:
        """Yield a row for each range or array that a field measures, counts or covers, and for each
        field that measures or covers it. A row that is the same in several versions is yielded
        once.
        """
        seen = set()
        for plan in plans:
            fp = plan.field(f.name)
            if fp is None:
                continue
            for key, value in relations(fp, plan):
                if (key, value) not in seen:
                    seen.add((key, value))
                    yield from row(key, value)

    def members(self, plans: list[LayoutPlan], f: Field) -> Iterator[str]:
        """Yield, for each version that has the field as bits, a blank line, a heading and the bit
        members in order of their lowest bit.
        """
        for plan in plans:
            fp = plan.field(f.name)
            if fp is None or not isinstance(fp.field.type, BitsType):
                continue
            yield ""
            yield "bits" if plan.version is None else f"bits in version {plan.version}"
            for m in sorted(fp.field.type.members, key=lambda m: m.low):
                what = f"a value of {m.enum}" if m.enum else "no meaning yet" if m.reserved else ""
                yield f"  {bits_words(m):<7} {m.name}{': ' + what if what else ''}"

    def bit(
        self, m: BitMember, f: Field, layout: Layout, plans: list[LayoutPlan], whole: str
    ) -> Iterator[str]:
        """Yield the lines of the explanation of a bit member: title (with the name ``whole``),
        documentation, its bits in each version, type, versions, default, spellings, and the values
        of its enum. Rows without content are left out.
        """
        yield from title(whole, f"bits of {f.name}", m.span)
        yield from paragraph(m.doc)
        for plan in plans:
            fp = plan.field(f.name)
            there = [n for n in members(fp.field) if n.name == m.name] if fp is not None else []
            if there:
                version = "" if plan.version is None else f" in version {plan.version}"
                yield from row("bits", f"{bits_words(there[0])} of {f.name}{version}")
        if m.width == 1 and m.enum is None and not m.reserved:
            yield from row("type", "true or false")
        yield from row("type", f"a value of {m.enum}" if m.enum else "")
        yield from row(
            "reserved", "no meaning yet; kept as it is by lenient readers" if m.reserved else ""
        )
        yield from row("versions", str(m.versions) if m.versions else "")
        yield from self.since_rows(m.since or f.since or layout.since, None)
        yield from row("written", f"{m.default} when no value is given" if m.default else "")
        yield from self.spelling_rows(m.name, m.spelled)
        yield from misprint_row(m.misprint)
        if m.enum is not None:
            yield from self.values(m.enum, m.only)

    def derived(self, d: Derived, layout: Layout, whole: str) -> Iterator[str]:
        """Yield the lines of the explanation of a derived value of a layout or of an array's
        elements: title (with the name ``whole``), documentation, type, expression, versions and
        release.
        """
        of = layout.name if d.array is None else f"each element of {layout.name}.{d.array}"
        yield from title(whole, f"derived value of {of}", d.span)
        yield from paragraph(d.doc)
        wraps = "; sums wrap" if d.python == "int" else ""
        yield from row("type", d.type + (f", in {d.unit}" if d.unit else "") + wraps)
        yield from row("is", str(d.value))
        yield from row("versions", str(d.versions) if d.versions else "")
        yield from self.since_rows(d.since or layout.since, None)

    # ------------------------------------------------------------ enums and choices

    def enum(self, enum: Enum) -> Iterator[str]:
        """Yield the lines of the explanation of an enum: documentation, whether unknown numbers are
        accepted, its users and all values.
        """
        yield from title(enum.name, "enum", enum.span)
        yield from paragraph(enum.doc)
        unknown = "are values too" if enum.keep_unknown else "are refused by strict readers"
        yield from row("others", f"numbers without a name {unknown}")
        yield from row("used by", ", ".join(self.users(enum.name)))
        yield from self.values(enum.name, None)

    def users(self, enum: str) -> Iterator[str]:
        """Yield the names of the fields (``layout.field``), bit members (``layout.field.member``)
        and choices that use an enum. Only declarations of this directory are searched, and no
        arrays. Yield nothing if there is no use, or no such enum.
        """
        for layout in self.model.layouts.values():
            for f in layout.fields:
                if isinstance(f.type, ScalarType) and f.type.enum == enum:
                    yield f"{layout.name}.{f.name}"
                for m in members(f):
                    if m.enum == enum:
                        yield f"{layout.name}.{f.name}.{m.name}"
        for choice in self.model.choices.values():
            if choice.given == enum:
                yield choice.name

    def values(self, name: str, only: tuple[str, ...] | None) -> Iterator[str]:
        """Yield a blank line, a heading and the values, with numbers, of the enum ``name`` that
        ``only`` allows, in declaration order. None allows all. Raise KeyError if there is no such
        enum.
        """
        enum = self.model.enums[name]
        yield ""
        yield f"values of {name}"
        for v in enum.values:
            if only is None or v.name in only:
                since = f" (since {self.since(v.since)})" if v.since is not None else ""
                yield from wrap_text(
                    f"  {v.value:>3} {v.name}{since}{': ' + v.doc if v.doc else ''}", 8
                )

    def enum_value(self, name: str, value: str) -> Iterator[str]:
        """Yield the lines of the explanation of the value ``value`` of the enum ``name``. When the
        lines are read, raise UnknownName if the enum has no such value, and KeyError if there is no
        such enum.
        """
        enum = self.model.enums[name]
        v = next((v for v in enum.values if v.name == value), None)
        if v is None:
            raise _unknown_name(value, [v.name for v in enum.values], f"{name} has")
        yield from self._enum_value(enum, v)

    def _enum_value(self, enum: Enum, v: EnumValue) -> Iterator[str]:
        yield from title(f"{enum.name}.{v.name}", "value of an enum", v.span)
        yield from paragraph(v.doc)
        yield from row("number", str(v.value))
        yield from row("spelled", v.spelled or "")
        yield from self.since_rows(v.since, None)

    def choice(self, choice: Choice) -> Iterator[str]:
        """Yield the lines of the explanation of a choice: documentation, the field or the outside
        value that decides, its release, and the layout or nested choice of each case. Raise
        IndexError if a choice by a field has no cases, which the checks exclude.
        """
        yield from title(choice.name, "choice", choice.span)
        yield from paragraph(choice.doc)
        if choice.by is not None:
            ref = choice.cases[0][1]
            fp = self.plan.of(ref)[0].field(choice.by)
            at = f", at byte {fp.offset} of all of them" if fp is not None else ""
            yield from row("by", f"the field {choice.by}{at}")
        else:
            yield from row("by", f"{given_words(choice)}, which the caller has from elsewhere")
        yield from self.since_rows(choice.since, None)
        for key, ref, inner in list_cases(choice):
            yield from row(str(key), inner or str(ref))

    def text(self, text: Text, path: str) -> Iterator[str]:
        """Return the lines of the explanation of a text, the format of a file of lines or
        properties (``path`` empty), or of its value or repeated lines at ``path``. Raise
        UnknownName at once if there is no such value.
        """
        if not path:
            return text_lines(text, self.since_rows)
        found = value_lines(text, path, self.since_rows)
        if found is None:
            raise _unknown_name(path, text_names(text), f"{text.name} has")
        return found

    # ------------------------------------------------------------ parts

    def spelling_rows(self, name: str, spelled: str | None) -> Iterator[str]:
        """Yield a row with the spelling in the format's own documents, ``spelled`` or else the name
        in the manifest's style; nothing if it is the name itself.
        """
        shown = self.plan.spelling(name, spelled)
        if shown != name:
            yield from row("spelled", f"{shown} in the format's own documents")

    def since_rows(self, since: Since | None, draft: Since | None) -> Iterator[str]:
        """Yield a row about the release and one about the draft of something; none for what is
        None.
        """
        if since is not None:
            yield from row("since", self.since(since))
        if draft is not None:
            yield from row("draft", f"{self.since(draft)}; no release contains it")

    def since(self, since: Since | None) -> str:
        """Return a release and its documents in words, ``Kafka 2.4, KIP 482``, or ``the first
        release`` if ``since`` is None.
        """
        if since is None:
            return "the first release"
        parts = []
        if since.release is not None:
            parts.append(f"{self.model.manifest.release_line} {since.release}")
        for kind, numbers in since.references:
            parts += [f"{kind} {number}" for number in numbers]
        return ", ".join(parts)


def _message_rows(message: Message) -> Iterator[str]:
    """Yield the rows about a request, response or header: its role and key, its headers by version,
    the versions that may change, and a row for each entry of ``facts``, with its name and its
    words. The first row is always there; others without content are left out.
    """
    key = "" if message.key is None else f" with the key {message.key}"
    names = ""
    if message.key_field is not None:
        names = f"; {message.key_field} and {message.version_field} name the message that follows"
    yield from row("message", f"{message.role}{key}{names}")
    headers = [
        f"{ref}" if len(message.headers) == 1 else f"{ref} in versions {versions}"
        for versions, ref in message.headers
    ]
    yield from row("header", ", ".join(headers))
    yield from row("may change", "" if message.unstable is None else f"versions {message.unstable}")
    for name, words in message.facts.items():
        yield from row(name, ", ".join(words))


def _unknown_name(name: str, known: list[str], what: str) -> UnknownName:
    """Return, without raising it, the error about an unknown name, with the closest of the names
    ``known`` or, if none is close, up to 40 of them behind the words ``what``.
    """
    names = list(dict.fromkeys(known))
    help = did_you_mean(name, names) or f"{what} {', '.join(names[:40]) or 'none'}"
    return UnknownName(f"unknown name {name!r}; {help}")


SinceRows = Callable[[Since | None, Since | None], Iterator[str]]


def text_lines(text: Text, since_rows: SinceRows) -> Iterator[str]:
    """Yield the lines of the explanation of a text (the format of a file of lines or properties):
    title, documentation, release, its special cases and tolerances, and one entry per line or
    property key. ``since_rows`` yields the rows of a release.
    """
    yield from title(text.name, "text of lines" if text.lines else "text of properties", text.span)
    yield from paragraph(text.doc)
    yield from since_rows(text.since, None)
    yield from row("empty", "it may be, and every value is null then" if text.may_be_empty else "")
    yield from row("last line", "" if text.final_newline else "has no line feed after it")
    if text.properties:
        yield from row("other keys", "are kept" if text.keep_unknown else "a strict reader refuses")
    yield from row("accepts", ", ".join(sorted(text.accepts)))
    yield ""
    yield "lines" if text.lines else "keys"
    for line in (*text.lines, *text.properties):
        yield from wrap_text(f"  {line.name}: {describe_line(line)}", 6)


def value_lines(text: Text, path: str, since_rows: SinceRows) -> Iterator[str] | None:
    """Return the lines of the explanation of the value at ``path`` (``line`` or ``lines.value``) or
    of repeated lines of a text, or None if nothing has this name. ``since_rows`` makes the rows
    about releases.
    """
    for line in text.lines:
        if isinstance(line, EachLine) and line.name == path:
            return _explain_each_line(text, line)
    for name, value in text.values():
        if name == path:
            return _explain_text_value(text, name, value, since_rows)
    return None


def text_names(text: Text) -> list[str]:
    """Return the names of values and repeated lines of a text."""
    lines = [line.name for line in text.lines if isinstance(line, EachLine)]
    return [*lines, *(name for name, _ in text.values())]


def describe_line(line: TextValue | EachLine) -> str:
    """Return in words how a value, or how repeated lines are written: ``decimal i32 after 'version:
    ', always 0`` or ``lines of <a> <b>, to the end``.
    """
    if isinstance(line, EachLine):
        values = line.separator.join(f"<{value.name}>" for value in line.values)
        counted = "to the end" if line.counted_by is None else f"as many as {line.counted_by} says"
        return f"lines of {values}, {counted}"
    words = {"decimal": f"decimal {line.of}", "string": line.of, "uuid": f"uuid in {line.of}"}
    found = words[line.kind]
    if line.label is not None:
        found += f" after {line.label + line.separator!r}"
    if line.const is not None:
        found += f", always {line.const}"
    return found + ("" if line.counts is None else f", the number of {line.counts}")


def _explain_each_line(text: Text, line: EachLine) -> Iterator[str]:
    """Yield the lines of the explanation of repeated lines: title, documentation, form and
    tolerances, then a line ``values`` and one entry per value. Rows without content are left out.
    """
    yield from title(f"{text.name}.{line.name}", f"lines of {text.name}", line.span)
    yield from paragraph(line.doc)
    yield from row("form", describe_line(line))
    yield from row("accepts", ", ".join(sorted(line.accepts)))
    yield ""
    yield "values"
    for value in line.values:
        yield from wrap_text(f"  {value.name}: {describe_line(value)}", 6)


def _explain_text_value(
    text: Text, path: str, value: TextValue, since_rows: SinceRows
) -> Iterator[str]:
    """Yield the lines of the explanation of a value: title, documentation, form, key (of a
    property), release, default, conditions, unit and tolerances. Rows without content are left out.
    """
    yield from title(f"{text.name}.{path}", f"value of {text.name}", value.span)
    yield from paragraph(value.doc)
    yield from row("form", describe_line(value))
    yield from row("key", value.key if text.properties else "")
    yield from since_rows(value.since or text.since, None)
    yield from row("default", "" if value.default is None else str(value.default))
    yield from row("valid", "" if value.valid is None else str(value.valid))
    yield from row("refused", "" if value.refuse is None else str(value.refuse))
    yield from row("unit", value.unit or "")
    yield from row("accepts", ", ".join(sorted(value.accepts)))
