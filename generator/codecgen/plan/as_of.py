"""The model as it stood at a release: what came later is not there, and old names are back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from codecgen.plan.generated_names import spell
from codecgen.schema.declarations import Declarations, used_of
from codecgen.schema.lookup import choice_of
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
    """For ordering: ``0.11.0`` < ``2.1`` < ``2.10``. Zeros at the end do not count."""
    parts = [int(part) for part in release.split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def exists(since: Since | None, release: str) -> bool:
    """Whether something with this ``since`` is there at a release."""
    if since is None or since.release is None:
        return True
    return release_key(since.release) <= release_key(release)


def as_of(model: Model, release: str | None) -> Model:
    """The model at a release; the model itself for None. What it uses of other directories stays as it is.

    Drafts have no release and stay out, and so do views, which are made for the formats of today.
    """
    if release is None:
        return model
    enums = {
        name: replace(e, values=tuple(v for v in e.values if exists(v.since, release)))
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
            and exists(layout.since, release)
            and _version_exists(layout, release)
        ):
            layouts[name] = _layout(layout, release, known, model.manifest)
    kept = _closed(_with_values(layouts, known, model, release), used)
    there = Declarations(kept, used)
    kept = {name: _compared(layout, there) for name, layout in kept.items()}
    every = Declarations(kept, used)
    choices = {}
    for name, choice in model.choices.items():
        cases = tuple(
            (key, ref)
            for key, ref in choice.cases
            if _refers(ref, every)
            and _leads(ref, model, release)
            and (choice.given is None or key in known.get(choice.given, set()))
        )
        if cases and exists(choice.since, release):
            keys = {key for key, _ in cases}
            named = tuple((key, ref) for key, ref in choice.named if key in keys)
            choices[name] = replace(choice, cases=cases, named=named)
    in_use = _enums_in_use(kept) | {c.given for c in choices.values() if c.given}
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
                properties=tuple(p for p in text.properties if exists(p.since, release)),
                examples=tuple(e for e in text.examples if exists(e.since, release)),
            )
            for name, text in model.texts.items()
            if exists(text.since, release)
        },
    )


def _version_exists(layout: Layout, release: str) -> bool:
    if not layout.version_notes:
        return True
    return any(exists(since, release) for since, _ in layout.version_notes.values())


def _layout(layout: Layout, release: str, known: dict[str, set[str]], manifest: Manifest) -> Layout:
    versions = layout.versions
    if versions is not None and layout.version_notes:
        there = [v for v, (since, _) in layout.version_notes.items() if exists(since, release)]
        missing = [v for v in layout.version_notes if v not in there]
        if missing and there:
            versions = replace(versions, high=max(there))
    flexible, gone = layout.flexible, frozenset[str]()
    last = None if versions is None else _all(versions)[-1]
    if isinstance(flexible, Versions) and last is not None and last < flexible.low:
        flexible, gone = "never", frozenset({"loose_tags", "overlong_varints"})
    fields = []
    for f in layout.fields:
        if not exists(f.since, release) or (flexible == "never" and _in_section(f)):
            continue
        f = replace(f, accepts=f.accepts - gone)
        fields.append(_renamed(_field(f, release, known), f.formerly, release, manifest))
    notes = layout.version_notes.items()
    return replace(
        layout,
        fields=tuple(fields),
        derived=tuple(d for d in layout.derived if exists(d.since, release)),
        rules=tuple(rule for rule in layout.rules if exists(rule.since, release)),
        examples=tuple(
            e
            for e in layout.examples
            if exists(e.since, release)
            and (versions is None or e.version in (None, *_all(versions)))
        ),
        versions=versions,
        flexible=flexible,
        accepts=layout.accepts - gone,
        version_notes={v: note for v, note in notes if versions is None or v in versions},
    )


def _in_section(f: Field) -> bool:
    """Whether it lies in the section of tagged fields, or is that section."""
    return f.tag is not None or isinstance(f.type, TagsType)


def _all(versions: Versions) -> range:
    return range(versions.low, (versions.low if versions.high is None else versions.high) + 1)


def _renamed(f: Field, formerly: Formerly | None, release: str, manifest: Manifest) -> Field:
    """The field, spelled as it was. Its name in code stays, so that callers and expressions do."""
    if formerly is None or release_key(release) >= release_key(formerly.until):
        return f
    return replace(f, spelled=spell(formerly.name, manifest.spelling))


def _field(f: Field, release: str, known: dict[str, set[str]]) -> Field:
    if isinstance(f.type, BitsType):
        members = tuple(_bit(m, known) for m in f.type.members if exists(m.since, release))
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


def _bit(m: BitMember, known: dict[str, set[str]]) -> BitMember:
    if m.only is None or m.enum is None:
        return m
    return replace(m, only=tuple(v for v in m.only if v in known.get(m.enum, set())))


def _refers(ref: Reference, layouts: Mapping[str, Layout]) -> bool:
    layout = layouts.get(ref.layout)
    if layout is None:
        return False
    return ref.version is None or layout.versions is None or ref.version in layout.versions


def _closed(layouts: dict[str, Layout], used: Mapping[str, Layout]) -> dict[str, Layout]:
    """Without the layouts that hold one that is gone."""
    while True:
        every = Declarations(layouts, used)
        fewer = {name: _with_cases(layout, every) for name, layout in layouts.items()}
        kept = {
            name: layout
            for name, layout in fewer.items()
            if all(_refers(ref, every) for ref in _held(layout))
            and all(choice is None or choice.cases for choice in map(choice_of, layout.fields))
        }
        if len(kept) == len(layouts):
            return kept
        layouts = kept


def _with_cases(layout: Layout, layouts: Mapping[str, Layout]) -> Layout:
    """Without the cases of choices that are gone."""

    def there(choice: ChoiceType) -> ChoiceType:
        return replace(choice, cases=tuple(c for c in choice.cases if _refers(c[1], layouts)))

    return _with_choices(layout, there)


def _with_values(
    layouts: dict[str, Layout], known: Mapping[str, set[str]], model: Model, release: str
) -> dict[str, Layout]:
    """Without the cases of choices that are gone, or are for values of an enum that are."""

    def there(choice: ChoiceType) -> ChoiceType:
        if not exists(model.choices[choice.choice].since, release):
            return replace(choice, cases=())
        cases = tuple(c for c in choice.cases if _leads(c[1], model, release))
        choice = replace(choice, cases=cases)
        if choice.enum is None:
            return choice
        values = model.enums[choice.enum].values
        numbers = {v.value for v in values if v.name in known.get(choice.enum, set())}
        return replace(choice, cases=tuple(c for c in choice.cases if c[0] in numbers))

    return {name: _with_choices(layout, there) for name, layout in layouts.items()}


def _leads(ref: Reference, model: Model, release: str) -> bool:
    """Whether the choices were there that lead to a layout."""
    return all(exists(model.choices[step.choice].since, release) for step in ref.steps)


def _with_choices(layout: Layout, change: Callable[[ChoiceType], ChoiceType]) -> Layout:
    """The layout with something changed in each choice that a field is, or its elements are."""

    def changed(type_: FieldType) -> FieldType:
        if isinstance(type_, ArrayType) and isinstance(type_.element, ChoiceType):
            return replace(type_, element=change(type_.element))
        return change(type_) if isinstance(type_, ChoiceType) else type_

    fields = []
    for f in layout.fields:
        types = tuple((versions, changed(type_)) for versions, type_ in f.types)
        fields.append(replace(f, type=changed(f.type), types=types))
    return replace(layout, fields=tuple(fields))


def _compared(layout: Layout, layouts: Mapping[str, Layout]) -> Layout:
    """With a table of overhead of the layouts that are there, if it has any."""
    if layout.overhead is None:
        return layout
    columns = tuple(c for c in layout.overhead.columns if _refers(c.layout, layouts))
    return replace(layout, overhead=replace(layout.overhead, columns=columns) if columns else None)


def _held(layout: Layout) -> list[Reference]:
    return [ref for f in layout.fields for ref in held_layouts(f.type)]


def _enums_in_use(layouts: dict[str, Layout]) -> set[str]:
    out = set()
    for layout in layouts.values():
        for f in layout.fields:
            if isinstance(f.type, ScalarType) and f.type.enum:
                out.add(f.type.enum)
            elif isinstance(f.type, BitsType):
                out |= {m.enum for m in f.type.members if m.enum}
    return out
