"""Build the model of an earlier release: without later additions, and with the former names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from codecgen.plan.generated_names import spell
from codecgen.schema.declarations import Declarations, used_of
from codecgen.schema.lookup import choice_of, enum_uses
from codecgen.schema.model import Field, Layout, Manifest, Model
from codecgen.schema.types import (
    ArrayType,
    BitMember,
    BitsType,
    ChoiceType,
    FieldType,
    Formerly,
    Reference,
    ScalarType,
    Since,
    TagsType,
    Versions,
    held_layouts,
)


def release_key(release: str) -> tuple[int, ...]:
    """Return the sort key of a release: ``0.11.0`` < ``2.1`` < ``2.10``. Trailing zeros do not
    count. Raise ValueError unless all parts between the dots are integers.
    """
    parts = [int(part) for part in release.split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def exists_at(since: Since | None, release: str) -> bool:
    """Return whether something that began with ``since`` exists at ``release``, the first release
    included. True if ``since`` is None or names no release; ``release`` is then not looked at.
    Raise ValueError if one of the two releases has parts that are no integers.
    """
    if since is None or since.release is None:
        return True
    return release_key(since.release) <= release_key(release)


def inherit_since(own: Since | None, whole: Since | None) -> Since | None:
    """Return ``own`` if it names a release, else ``whole``: a part exists since the release of the
    whole it belongs to, also if its own ``since`` only refers to documents.
    """
    return own if own is not None and own.release is not None else whole


def as_of(model: Model, release: str | None) -> Model:
    """Return the model as it was at ``release``, or ``model`` itself if ``release`` is None. Drop
    later fields, versions, enum values, cases and declarations, layouts and cases that refer to
    dropped ones, unused enums, drafts and all views. Spell renamed fields as they were.
    Declarations of used directories stay unchanged. ``release`` need not be in the manifest;
    comparing it raises ValueError unless all its parts are integers.

    Drafts have no release, and views are written for today's formats.
    """
    if release is None:
        return model
    enums = {
        name: replace(e, values=tuple(v for v in e.values if exists_at(v.since, release)))
        for name, e in model.enums.items()
    }
    known = {
        name: {v.name for v in e.values}
        for name, e in (*used_of(model.enums).items(), *enums.items())
    }
    used = used_of(model.layouts)
    layouts = {}
    for name, layout in model.layouts.items():
        if (
            layout.draft is None
            and exists_at(layout.since, release)
            and _has_version(layout, release)
        ):
            layouts[name] = _layout_at(layout, release, known, model.manifest)
    kept = _without_dangling_layouts(_without_later_cases(layouts, known, model, release), used)
    there = Declarations(kept, used)
    kept = {name: _without_missing_columns(layout, there) for name, layout in kept.items()}
    every = Declarations(kept, used)
    choices = {}
    for name, choice in model.choices.items():
        cases = tuple(
            (key, ref)
            for key, ref in choice.cases
            if _is_resolvable(ref, every)
            and _are_steps_present(ref, model, release)
            and (choice.given is None or key in known.get(choice.given, set()))
        )
        if cases and exists_at(choice.since, release):
            keys = {key for key, _ in cases}
            named = tuple((key, ref) for key, ref in choice.named if key in keys)
            choices[name] = replace(choice, cases=cases, named=named)
    in_use = {enum for layout in kept.values() for _, enum, _ in enum_uses(layout)}
    in_use |= {c.given for c in choices.values() if c.given}
    return replace(
        model,
        layouts=every,
        enums=Declarations(
            {name: e for name, e in enums.items() if name in in_use}, used_of(model.enums)
        ),
        choices=Declarations(choices, used_of(model.choices)),
        views={},
        texts={
            name: replace(
                text,
                properties=tuple(p for p in text.properties if exists_at(p.since, release)),
                examples=tuple(e for e in text.examples if exists_at(e.since, release)),
            )
            for name, text in model.texts.items()
            if exists_at(text.since, release)
        },
    )


def _has_version(layout: Layout, release: str) -> bool:
    """Return whether at least one version of the layout existed at ``release``. True for layouts
    without version notes. Raise ValueError if a release has parts that are no integers.
    """
    if not layout.version_notes:
        return True
    return any(exists_at(since, release) for since, _ in layout.version_notes.values())


def _layout_at(
    layout: Layout, release: str, known: dict[str, set[str]], manifest: Manifest
) -> Layout:
    """Return the layout with the fields, derived values, rules and examples that existed at
    ``release``; fields have their former spelling. If a version note is later than ``release``,
    versions end at the highest one whose note is not; otherwise all stay. If that is before the
    first flexible version, drop tagged fields and the tolerances for flexible versions, and set
    ``flexible`` to ``never``. ``known`` has the value names of each enum at that release. Raise
    ValueError if a release has parts that are no integers.
    """
    versions = layout.versions
    if versions is not None and layout.version_notes:
        there = [v for v, (since, _) in layout.version_notes.items() if exists_at(since, release)]
        missing = [v for v in layout.version_notes if v not in there]
        if missing and there:
            versions = replace(versions, high=max(there))
    flexible, gone = layout.flexible, frozenset[str]()
    last = None if versions is None else _version_numbers(versions)[-1]
    if isinstance(flexible, Versions) and last is not None and last < flexible.low:
        flexible, gone = "never", frozenset({"loose_tags", "overlong_varints"})
    fields = []
    for f in layout.fields:
        if not exists_at(f.since, release) or (flexible == "never" and _is_in_tag_section(f)):
            continue
        f = replace(f, accepts=f.accepts - gone)
        fields.append(
            _with_former_spelling(_field_at(f, release, known), f.formerly, release, manifest)
        )
    notes = layout.version_notes.items()
    return replace(
        layout,
        fields=tuple(fields),
        derived=tuple(d for d in layout.derived if exists_at(d.since, release)),
        rules=tuple(rule for rule in layout.rules if exists_at(rule.since, release)),
        examples=tuple(
            e
            for e in layout.examples
            if exists_at(e.since, release)
            and (versions is None or e.version in (None, *_version_numbers(versions)))
        ),
        versions=versions,
        flexible=flexible,
        accepts=layout.accepts - gone,
        version_notes={v: note for v, note in notes if versions is None or v in versions},
    )


def _is_in_tag_section(f: Field) -> bool:
    """Return whether a field is tagged, or is the section of tagged fields itself."""
    return f.tag is not None or isinstance(f.type, TagsType)


def _version_numbers(versions: Versions) -> range:
    """Return all numbers of a version range. An open range counts as its first version only."""
    return range(versions.low, (versions.low if versions.high is None else versions.high) + 1)


def _with_former_spelling(
    f: Field, formerly: Formerly | None, release: str, manifest: Manifest
) -> Field:
    """Return the field spelled by its former name, in the manifest's style, if ``release`` is
    before ``formerly.until``; else the field unchanged. Its name in code stays. Raise ValueError if
    one of the two releases has parts that are no integers.
    """
    if formerly is None or release_key(release) >= release_key(formerly.until):
        return f
    return replace(f, spelled=spell(formerly.name, manifest.spelling))


def _field_at(f: Field, release: str, known: dict[str, set[str]]) -> Field:
    """Return the field without bit members, values under ``only`` and codecs that did not exist at
    ``release``; other fields unchanged. ``known`` has the value names of each enum at that release.
    Raise ValueError if a release has parts that are no integers.
    """
    if isinstance(f.type, BitsType):
        members = tuple(_bit_at(m, known) for m in f.type.members if exists_at(m.since, release))
        return replace(f, type=replace(f.type, members=members))
    if isinstance(f.type, ScalarType) and f.type.only and f.type.enum:
        only = tuple(v for v in f.type.only if v in known.get(f.type.enum, set()))
        return f.with_types(only=only)
    if isinstance(f.type, ArrayType) and f.type.compression is not None:
        c = f.type.compression
        codecs = known.get(c.enum, set())
        excluded = tuple(v for v in c.excluded if v in codecs)
        variants = tuple(v for v in c.variants if v[0] in codecs)
        return f.with_types(compression=replace(c, excluded=excluded, variants=variants))
    return f


def _bit_at(m: BitMember, known: dict[str, set[str]]) -> BitMember:
    """Return the bit member without allowed enum values that are not in ``known``."""
    if m.only is None or m.enum is None:
        return m
    return replace(m, only=tuple(v for v in m.only if v in known.get(m.enum, set())))


def _is_resolvable(ref: Reference, layouts: Mapping[str, Layout]) -> bool:
    """Return whether ``layouts`` contains the layout of ``ref``, and its version if ``ref`` names
    one and the layout has versions.
    """
    layout = layouts.get(ref.layout)
    if layout is None:
        return False
    return ref.version is None or layout.versions is None or ref.version in layout.versions


def _without_dangling_layouts(
    layouts: dict[str, Layout], used: Mapping[str, Layout]
) -> dict[str, Layout]:
    """Return ``layouts`` without choice cases and layouts that refer to a layout, or a version of
    one, missing from ``layouts`` and ``used``. Drop layouts that hold a choice without cases, too.
    Repeat until no layout is dropped.
    """
    while True:
        every = Declarations(layouts, used)
        fewer = {name: _without_missing_cases(layout, every) for name, layout in layouts.items()}
        kept = {
            name: layout
            for name, layout in fewer.items()
            if all(_is_resolvable(ref, every) for ref in _held_references(layout))
            and all(choice is None or choice.cases for choice in map(choice_of, layout.fields))
        }
        if len(kept) == len(layouts):
            return kept
        layouts = kept


def _without_missing_cases(layout: Layout, layouts: Mapping[str, Layout]) -> Layout:
    """Return the layout without cases of choices whose layout, or its version, is not in
    ``layouts``. A choice can be left without cases.
    """

    def without_missing(choice: ChoiceType) -> ChoiceType:
        return replace(
            choice, cases=tuple(c for c in choice.cases if _is_resolvable(c[1], layouts))
        )

    return _map_choices(layout, without_missing)


def _without_later_cases(
    layouts: dict[str, Layout], known: Mapping[str, set[str]], model: Model, release: str
) -> dict[str, Layout]:
    """Return the layouts without choice cases that came after ``release``: all cases of a later
    choice, cases through later nested choices, and cases whose enum value is not in ``known``.
    Raise KeyError if the model lacks a choice or its enum, ValueError if a release has parts that
    are no integers.
    """

    def without_missing(choice: ChoiceType) -> ChoiceType:
        if not exists_at(model.choices[choice.choice].since, release):
            return replace(choice, cases=())
        cases = tuple(c for c in choice.cases if _are_steps_present(c[1], model, release))
        choice = replace(choice, cases=cases)
        if choice.enum is None:
            return choice
        values = model.enums[choice.enum].values
        numbers = {v.value for v in values if v.name in known.get(choice.enum, set())}
        return replace(choice, cases=tuple(c for c in choice.cases if c[0] in numbers))

    return {name: _map_choices(layout, without_missing) for name, layout in layouts.items()}


def _are_steps_present(ref: Reference, model: Model, release: str) -> bool:
    """Return whether all choices on the way to the layout of ``ref`` existed at ``release``."""
    return all(exists_at(model.choices[step.choice].since, release) for step in ref.steps)


def _map_choices(layout: Layout, change: Callable[[ChoiceType], ChoiceType]) -> Layout:
    """Return the layout with ``change`` applied to each choice that a field or the element of an
    array is, in all versions of the field.
    """

    def changed(type_: FieldType) -> FieldType:
        if isinstance(type_, ArrayType) and isinstance(type_.element, ChoiceType):
            return replace(type_, element=change(type_.element))
        return change(type_) if isinstance(type_, ChoiceType) else type_

    fields = []
    for f in layout.fields:
        types = tuple((versions, changed(type_)) for versions, type_ in f.types)
        fields.append(replace(f, type=changed(f.type), types=types))
    return replace(layout, fields=tuple(fields))


def _without_missing_columns(layout: Layout, layouts: Mapping[str, Layout]) -> Layout:
    """Return the layout with only those columns of its overhead table whose layout and version are
    in ``layouts``, and without the table if no column is left. A layout without a table is returned
    unchanged.
    """
    if layout.overhead is None:
        return layout
    columns = tuple(c for c in layout.overhead.columns if _is_resolvable(c.layout, layouts))
    return replace(layout, overhead=replace(layout.overhead, columns=columns) if columns else None)


def _held_references(layout: Layout) -> list[Reference]:
    """Return the references to layouts in the fields of a layout."""
    return [ref for f in layout.fields for ref in held_layouts(f.type)]
