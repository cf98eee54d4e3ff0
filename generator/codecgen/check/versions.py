"""Check versions: ranges lie within those of the layout, and each reference means one existing version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codecgen.diagnostics import Diagnostic, Span, unique
from codecgen.plan.types import scalar_type
from codecgen.schema.by_version import is_optional_by_version
from codecgen.schema.lookup import (
    MAX_VERSIONS,
    choice_of,
    field_of,
    integer_range,
    members,
    references_of,
    versions_of,
)
from codecgen.schema.model import Choice, Field, Layout, Model
from codecgen.schema.types import ArrayType, Reference, ScalarType, Versions, choosing
from codecgen.spans import place, version_place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each version range that exceeds its layout's versions or has no end,
    for types by version that overlap or leave gaps, for bad version fields, and where the version
    of a held layout, case or example does not exist or is not determined.
    """
    for layout in model.layouts.values():
        yield from _check_own(layout)
        yield from _check_within(layout)
        yield from _check_version_field(layout)
        for f in layout.fields:
            yield from check_types_by_version(layout, f)
            for one in f.variants():
                if choosing(one.type)[1] is None:
                    chosen = choice_of(one)
                    for ref in references_of(one):
                        # Of a choice the field is what is wrong, not the case that others use too.
                        at = ref if chosen is None else replace(ref, span=chosen.span)
                        yield from _check_held(at, layout, f, model)
        for example in layout.examples:
            yield from _check_example(
                layout, example.version, example.places.get("version", example.span)
            )
        if layout.overhead is not None:
            for column in layout.overhead.columns:
                yield from _check_named(column.layout, model)
    cases: list[Diagnostic] = []
    for choice in model.choices.values():
        named = set(choice.named)
        for key, ref in choice.cases:
            cases += _check_case(choice, key, ref, model, (key, ref) in named)
    yield from unique(cases)


def _check_own(layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the version range of a layout has no end or more than ``MAX_VERSIONS``
    versions, if version notes are given without versions, and for each note about a version that
    does not exist.
    """
    v = layout.versions
    where = place(layout, "versions")
    if v is None:
        if layout.version_notes:
            message = f'"{layout.name}" has no versions, so there is nothing to note about them'
            yield Diagnostic(
                "C020", message, place(layout, "version_notes"), help="give it `versions`"
            )
        return
    if v.high is None:
        message = "the versions of a layout must have an end"
        yield Diagnostic(
            "C010", message, where, help=f"write the last one too, such as {v.low}-{v.low + 1}"
        )
    elif v.high - v.low >= MAX_VERSIONS:
        message = f"a layout has at most {MAX_VERSIONS} versions"
        help = f"write fewer versions, such as {v.low}-{v.low + MAX_VERSIONS - 1}"
        yield Diagnostic("C010", message, where, help=help)
    for version in layout.version_notes:
        if version not in v:
            yield _missing_diagnostic(
                version, layout, layout.places.get(f"version_notes.{version}", where)
            )


def _missing_diagnostic(version: int, layout: Layout, where: Span) -> Diagnostic:
    """Return the diagnostic C020 that a layout has no such version. Its help lists the versions
    that exist.
    """
    message = f'"{layout.name}" has no version {version}'
    help = f"its versions are {layout.versions} ({layout.span})"
    if layout.versions is None:
        help = f"it has no versions ({layout.span})"
    return Diagnostic("C020", message, where, help=help)


def _check_within(layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each version range of a field, bit member, misprint, codec variant,
    derived value or rule that exceeds the versions of the layout, or that stands in a layout
    without versions. Also report bit members that exist only where their field does not.
    """
    things: list[tuple[str, Versions | None, Span]] = []
    for f in layout.fields:
        things.append((f'"{f.name}"', f.versions, place(f, "versions")))
        if f.misprint is not None:
            where = place(f, "documentation.misprint.versions")
            things.append(("the misprint", f.misprint.versions, where))
        for m in members(f):
            things.append((f'"{m.name}"', m.versions, place(m, "versions")))
            if m.misprint is not None:
                where = place(m, "documentation.misprint.versions")
                things.append(("the misprint", m.misprint.versions, where))
        if isinstance(f.type, ArrayType) and f.type.compression is not None:
            for codec, versions, _, _ in f.type.compression.variants:
                where = place(f, f"compressed.variants.{codec}")
                things.append((f'the variant of "{codec}"', versions, where))
    for d in layout.derived:
        things.append((f'"{d.name}"', d.versions, place(d, "versions")))
    for rule in layout.rules:
        things.append((f'the rule "{rule.name}"', rule.versions, place(rule, "versions")))
    for what, versions, where in things:
        if versions is None:
            continue
        if layout.versions is None:
            message = f'{what} has versions, but "{layout.name}" has none'
            help = f"give the layout `versions` ({layout.span})"
            yield Diagnostic("C020", message, where, help=help)
        elif not _is_within(versions, layout.versions):
            message = f'{what} is in versions {versions}, but "{layout.name}" has {layout.versions}'
            yield Diagnostic(
                "C020", message, where, help=f"the layout is declared at {layout.span}"
            )
    yield from _check_bits(layout)


def _is_within(part: Versions, whole: Versions) -> bool:
    """Return whether the range ``part`` lies within ``whole``."""
    if part.low not in whole:
        return False
    return part.high is None or part.high in whole


def _check_bits(layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each bit member whose versions do not overlap with those of its field.
    Members and fields without a range are skipped.
    """
    for f in layout.fields:
        for m in members(f):
            if f.versions is None or m.versions is None:
                continue
            apart = m.versions.high is not None and m.versions.high < f.versions.low
            if apart or (f.versions.high is not None and m.versions.low > f.versions.high):
                message = (
                    f'"{m.name}" is in versions {m.versions}, but "{f.name}" is in {f.versions}'
                )
                yield Diagnostic("C020", message, place(m, "versions"))


def _check_version_field(layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each version field (``is: version``) after the first, and if the first
    is in a layout without versions, is optional, changes its type, is no plain integer or cannot
    hold the highest version.
    """
    marked = [f for f in layout.fields if f.is_version]
    for f in marked[1:]:
        message = f'"{f.name}" is marked as the version, but so is "{marked[0].name}"'
        yield Diagnostic("C011", message, place(f, "is"), help=f"see {version_place(layout)}")
    for f in marked[:1]:
        if layout.versions is None:
            message = f'"{layout.name}" has a field for its version, but no versions'
            yield Diagnostic("C011", message, place(f, "is"), help="give it `versions`")
        else:
            yield from _check_version_type(f, layout, layout.versions)


def _check_version_type(f: Field, layout: Layout, versions: Versions) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the version field has ``versions`` or ``when``, has several types, is
    not an integer without enum, or cannot hold the highest version.
    """
    if f.versions is not None or f.when is not None:
        key = "versions" if f.versions is not None else "when"
        message = f'"{f.name}" holds the version, so it must exist in all versions'
        yield Diagnostic("C021", message, place(f, key), help=f'take out "{key}"')
    if f.types:
        message = f'"{f.name}" holds the version, so its type is the same in all of them'
        yield Diagnostic(
            "C021", message, place(f, "type"), help="write one type, such as `type: i16`"
        )
    if (
        not isinstance(f.type, ScalarType)
        or f.type.enum
        or (reach := integer_range(f.type.name)) is None
    ):
        message = f'"{f.name}" holds the version, so it is an integer without an enum'
        help = "write an integer type, such as `type: u8`, without `enum`"
        yield Diagnostic("C017", message, place(f, "type"), help=help)
    elif versions.high is not None and not reach[0] <= versions.high <= reach[1]:
        message = f"version {versions.high} does not fit {f.type.name} ({reach[0]} to {reach[1]})"
        help = "write a wider type, or fewer `versions` of the layout"
        yield Diagnostic("C017", message, place(f, "type"), help=help)


def _check_named(ref: Reference, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a reference names a version that the layout does not have. Yield
    nothing if it names no version, or an unknown layout.
    """
    layout = model.layouts.get(ref.layout)
    if layout is None or ref.version is None:
        return
    if layout.versions is None or ref.version not in layout.versions:
        yield _missing_diagnostic(ref.version, layout, ref.span)


def _check_held(ref: Reference, holder: Layout, f: Field, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a field names a missing version of a held layout. If it names none of
    several and the layout has no version field, the holder's version must determine it. Then yield
    one if the holder has no versions, or the field exists in versions that the layout lacks. Yield
    nothing if the layout is unknown.
    """
    yield from _check_named(ref, model)
    held = model.layouts.get(ref.layout)
    if held is None or ref.version is not None or held.versions is None:
        return
    if held.version_is is not None or held.versions.low == held.versions.high:
        return
    if held.versions.high is None:
        return
    one = f'"{ref.layout}@{held.versions.low}"'
    what, help = f'"{held.name}"', f"name one: {one} ({held.span})"
    chosen = choice_of(f)
    choice = model.choices.get(chosen.choice) if chosen is not None else None
    if choice is not None:
        what += f', a case of "{choice.name}",'
        help = f'name one in the choice "{choice.name}": {one} ({choice.span})'
        if not any(_is_named_by(case, model) for case in references_of(f)):
            help = f"write `version:` with the name of an earlier field that has the version, or {help}"
    if holder.versions is None:
        message = (
            f'{what} has versions {held.versions}, and nothing says which one "{holder.name}" holds'
        )
        yield Diagnostic("C020", message, ref.span, help=help)
        return
    mine = holder.versions if f.versions is None else f.versions
    low, high = max(mine.low, holder.versions.low), mine.high
    if high is None or (holder.versions.high is not None and high > holder.versions.high):
        high = holder.versions.high
    if low not in held.versions or high is None or high not in held.versions:
        there = Versions(low, high)
        message = (
            f'{what} has versions {held.versions}, but "{holder.name}" holds it in versions {there}'
        )
        yield Diagnostic("C020", message, ref.span, help=help)


def _is_named_by(case: Reference, model: Model) -> bool:
    """Return whether a case names the version of its layout, which has no version field."""
    layout = model.layouts.get(case.layout)
    return case.version is not None and layout is not None and layout.version_is is None


def _check_example(layout: Layout, version: int | None, where: Span) -> Iterator[Diagnostic]:
    """Yield a diagnostic if an example names no version although the layout has several and no
    version field, or names one that does not exist.
    """
    if version is None:
        several = layout.versions is not None and layout.versions.low != layout.versions.high
        if several and layout.version_is is None:
            message = (
                f'"{layout.name}" has versions {layout.versions}: the example must name its version'
            )
            yield Diagnostic("C020", message, where, help="write `version:`")
    elif layout.versions is None or version not in layout.versions:
        yield _missing_diagnostic(version, layout, where)


def _check_case(
    choice: Choice, key: int | str, ref: Reference, model: Model, named: bool
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a case names a missing version, leaves the version of its layout open,
    or (for a choice by a field) has a number that the field cannot have: another version, another
    constant, or out of range. A choice that no field of its cases decides may leave the version
    open if any field holds the choice, because that field gives the version. If ``named`` is False,
    the case comes from an inner choice, and an open or missing version is not reported.
    """
    if named:
        yield from _check_named(ref, model)
    layout = model.layouts.get(ref.layout)
    if layout is None:
        return
    v = layout.versions
    open_ = v is not None and v.low != v.high and ref.version is None and layout.version_is is None
    if open_ and not named:
        return
    if choice.by is None or open_:
        if open_ and (choice.by is not None or not _names_version(choice, model)):
            message = f'"{layout.name}" has versions {v}, and the choice "{choice.name}" does not say which one is meant'
            help = f'name one: "{layout.name}@{v.low if v else 0}" ({layout.span})'
            yield Diagnostic("C020", message, ref.span, help=help)
        return
    field = field_of(layout, choice.by or "")
    if field is None or not isinstance(key, int):
        return
    where = choice.places.get(f"cases.{key}", ref.span)
    if field.is_version and ref.version is None:
        message = f'case {key} needs one version of "{layout.name}"'
        yield Diagnostic("C020", message, ref.span, help=f'write "{layout.name}@{key}"')
    elif field.is_version and ref.version != key:
        message = f'"{field.name}" is {ref.version} in {ref}, not {key}'
        yield Diagnostic("C017", message, where, help=f"see {field.span}")
    elif isinstance(field.const, int) and field.const != key:
        message = f'"{field.name}" is always {field.const} in {ref}, not {key}'
        yield Diagnostic("C017", message, where, help=f"see {place(field, 'const')}")
    elif isinstance(field.type, ScalarType):
        reach = integer_range(field.type.name)
        if reach is not None and not reach[0] <= key <= reach[1]:
            message = f'{key} does not fit "{field.name}" of {ref}: {field.type.name} is {reach[0]} to {reach[1]}'
            yield Diagnostic("C017", message, where, help=f"see {field.span}")


def _names_version(choice: Choice, model: Model) -> bool:
    """Return whether a field of any layout holds the choice, directly or as a case of another
    choice, so that the field gives the version of the case.
    """
    fields = (f for layout in model.layouts.values() for f in layout.fields)
    found = (choice_of(one) for f in fields for one in f.variants())
    names = {choice.name}
    grows = True
    while grows:  # those that hold it as a case
        more = {c.name for c in model.choices.values() if names & {r.layout for _, r in c.named}}
        grows, names = not more <= names, names | more
    return any(one is not None and one.choice in names for one in found)


def check_types_by_version(layout: Layout, f: Field) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a key is given by version in a layout without versions, if its version
    ranges overlap, leave a gap or lie outside the field's versions, or if the field's types have
    different kinds of values. Yield nothing if the layout's versions have no end.
    """
    for key, ranges in f.ranges.items():
        if layout.versions is None:
            message = f'"{f.name}" has `{key}` by version, but "{layout.name}" has no versions'
            help = f"give the layout `versions` ({layout.span})"
            yield Diagnostic("C020", message, place(f, key), help=help)
            return
        if layout.versions.high is None:
            return
        yield from _check_type_ranges(layout, f, key, ranges)
    yield from _check_same_kind(f)


def _check_type_ranges(
    layout: Layout, f: Field, key: str, ranges: tuple[tuple[Versions, Span], ...]
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each range of ``key`` that has no version of the field or goes beyond
    the layout, for each that repeats a version, and for the first version without ``key``, unless
    ``key`` may be missing in some versions.
    """
    own = [v for v in versions_of(layout, f.versions) if v is not None]
    there = f'"{f.name}" is in versions {f.versions or layout.versions}'
    taken: dict[int, Versions] = {}
    for part, span in ranges:
        mine = [v for v in own if v in part]
        high = layout.versions.high if layout.versions is not None else None
        beyond = part.high is not None and high is not None and part.high > high
        if not mine or beyond:
            which = "version" if part.low == part.high else "versions"
            message = f'`{key}` is given for {which} {part}, in which there is no "{f.name}"'
            yield Diagnostic("C050", message, span, help=there)
        twice = next((v for v in mine if v in taken), None)
        if twice is not None:
            message = f"`{key}` is given twice for version {twice}: by {taken[twice]} and by {part}"
            yield Diagnostic("C050", message, span)
        taken |= dict.fromkeys(mine, part)
    missing = next((v for v in own if v not in taken), None)
    if missing is not None and not is_optional_by_version(key):
        message = f'"{f.name}" has no `{key}` in version {missing}'
        yield Diagnostic("C050", message, place(f, key), help=there)


def _check_same_kind(f: Field) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the scalar types of a field in its versions differ in kind, such as a
    number in some and a boolean in others. Types that are no scalars are not compared.
    """
    kinds = {
        scalar_type(t).kind: str(scalar_type(t)) for t in f.all_types() if isinstance(t, ScalarType)
    }
    if len(kinds) > 1:
        message = f'"{f.name}" is {" in some versions, ".join(kinds.values())} in others'
        yield Diagnostic("C050", message, place(f, "type"), help="give each a field of its own")
