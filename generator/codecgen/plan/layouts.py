"""Plan layouts: for each field in each version, its byte position and its size, if they are fixed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import TypeVar

from codecgen.identity_cache import cached_by_identity
from codecgen.plan.generated_names import spell
from codecgen.plan.nodes import (
    DerivedValue,
    EndValue,
    FieldValue,
    Value,
    ends_read,
    look_ups_in,
)
from codecgen.plan.resolve import as_maximum, resolve_expression
from codecgen.plan.resolve_views import resolve_derived_value
from codecgen.plan.scope import Scope
from codecgen.plan.texts import TextPlan, text_plan
from codecgen.schema.declarations import Declarations, used_of
from codecgen.schema.expression import Expression
from codecgen.schema.lookup import choice_of, field_of, given_of, with_reserved_bits
from codecgen.schema.model import Declared, Field, Layout, Manifest, Model, Rule
from codecgen.schema.scalars import fixed_size
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    BytesType,
    ChoiceType,
    FieldRange,
    FieldType,
    PaddingType,
    Reference,
    ScalarType,
    StructType,
    TagsType,
    choosing,
    held_layouts,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """A field in one version.

    ``offset`` is the byte in the layout where it begins, when that is fixed; ``size`` its length in bytes, when
    that is fixed. ``measures`` and ``covers`` have their first field filled in (``rest`` is spelled out).

    ``when``, ``valid``, ``refuse``, ``default`` and ``codec`` (what names it) are settled in this version, and so are the
    defaults of bits, by the name of the member; ``given`` and ``held_version`` give the case and the version of what it
    holds, and ``gives`` the values that the layout which it holds is given, by name.
    """

    field: Field
    offset: int | None
    size: int | None
    measures: FieldRange | None
    covers: tuple[FieldRange, ...]
    when: Value | None = None
    valid: Value | None = None
    refuse: Value | None = None
    default: Value | None = None
    codec: Value | None = None
    bit_defaults: Mapping[str, Value] = dataclass_field(default_factory=dict)
    given: Value | None = None
    held_version: Value | None = None
    gives: Mapping[str, Value] = dataclass_field(default_factory=dict)
    own_bytes: int = 0
    """The bytes up to its end that a length counts: its own, and those before it in its range."""
    until: Value | None = None
    """The condition that holds for the last element of an array, and for no other."""

    @property
    def name(self) -> str:
        """Return the name of the field."""
        return self.field.name

    @property
    def is_fixed(self) -> bool:
        """Return whether the field always exists, at a fixed position and with a fixed size."""
        return self.offset is not None and self.size is not None and self.field.when is None


@dataclass(frozen=True, slots=True)
class RulePlan:
    """A rule in one version: ``condition`` must hold, or ``ascending`` must ascend over the elements of
    ``array``.
    """

    rule: Rule
    condition: Value | None = None
    array: FieldPlan | None = None
    ascending: FieldValue | None = None

    @property
    def name(self) -> str:
        """Return the name of the rule."""
        return self.rule.name

    @property
    def elements_of(self) -> str | None:
        """Return the name of the array whose elements the rule uses: the array that ascends, or the
        first one that the condition takes an end or extreme of. Return None if it uses none.
        """
        if self.array is not None:
            return self.array.name
        ends = () if self.condition is None else ends_read(self.condition)
        return next((end.array.field.name for end in ends), None)


@dataclass(frozen=True, slots=True)
class LayoutPlan:
    """A layout in one version (None for a layout without versions)."""

    layout: Layout
    version: int | None
    fields: tuple[FieldPlan, ...]
    derived: tuple[DerivedValue, ...] = ()
    rules: tuple[RulePlan, ...] = ()
    given: tuple[FieldPlan, ...] = ()
    """The values that whoever holds the layout gives it, as fields without bytes."""
    in_order: tuple[FieldPlan, ...] = dataclass_field(init=False, compare=False, repr=False)
    """The fields whose bytes follow one another: all but the tagged fields."""

    def __post_init__(self) -> None:
        """Set ``in_order``, for which the functions that emit code for a field ask each time."""
        object.__setattr__(self, "in_order", tuple(f for f in self.fields if f.field.tag is None))

    @property
    def name(self) -> str:
        """Return the name of the layout."""
        return self.layout.name

    @property
    def min_size(self) -> int:
        """Return the minimum size in bytes: the sum of the unconditional fields of fixed size."""
        return sum(f.size or 0 for f in self.fields if f.field.when is None)

    @property
    def tagged(self) -> tuple[FieldPlan, ...]:
        """Return the tagged fields in ascending order of their tags."""
        found = [f for f in self.fields if f.field.tag is not None]
        return tuple(sorted(found, key=lambda f: f.field.tag or 0))

    @property
    def other_tags(self) -> tuple[int, ...]:
        """Return the tags that only other versions of the layout have, in ascending order."""
        here = {f.field.tag for f in self.tagged}
        every = {f.tag for f in self.layout.fields if f.tag is not None}
        return tuple(sorted(every - here))

    @property
    def size(self) -> int | None:
        """Return the size in bytes, or None if a field has no fixed size or is optional (``when``).
        Tagged fields count as without fixed size.
        """
        sizes = [f.size for f in self.fields]
        if any(size is None for size in sizes) or any(f.field.when for f in self.fields):
            return None
        return sum(size or 0 for size in sizes)

    def field(self, name: str) -> FieldPlan | None:
        """Return the field ``name`` of this version, or None if this version lacks it."""
        return next((f for f in self.fields if f.name == name), None)

    @property
    def values(self) -> tuple[FieldPlan, ...]:
        """Return what parsed values of the layout hold: the values that it is given, and its fields."""
        return (*self.given, *self.fields)

    @property
    def look_ups(self) -> tuple[DerivedValue, ...]:
        """Return the derived values that contain ``array[index]``, in schema order."""
        return tuple(value for value in self.derived if any(True for _ in look_ups_in(value)))

    @property
    def given_arrays(self) -> tuple[FieldPlan, ...]:
        """Return the arrays that the layout is given."""
        return tuple(fp for fp in self.given if isinstance(fp.field.type, ArrayType))

    def value(self, name: str) -> FieldPlan | None:
        """Return the field ``name`` of this version, or the value of this name that it is given; None if it has neither."""
        return next((f for f in self.values if f.name == name), None)

    def covered(self, checksum: FieldPlan) -> tuple[FieldPlan, ...]:
        """Return the fields that a checksum covers, range after range; ``()`` for other fields.
        Raise ValueError if this version lacks an end of a range.
        """
        return tuple(fp for part in checksum.covers for fp in self.field_range(part))

    def checksums(self) -> tuple[FieldPlan, ...]:
        """Return the checksum fields in order of computation: in field order, but each after the
        checksums that it covers. Checksums that count as zero in it are not waited for.
        Raise ValueError if this version lacks an end of a range, and RecursionError if checksums
        cover each other.
        """
        out: list[FieldPlan] = []

        def add(checksum: FieldPlan) -> None:
            for fp in self.covered(checksum):
                counts = fp.name not in checksum.field.zero and fp not in out
                if counts and fp.field.checksum is not None:
                    add(fp)
            out.append(checksum)

        for fp in self.fields:
            if fp.field.checksum is not None and fp not in out:
                add(fp)
        return tuple(out)

    def field_range(self, field_range: FieldRange) -> tuple[FieldPlan, ...]:
        """Return the fields of a field range, both ends included; without a last field, up to the
        end of the layout, tagged fields included; ``()`` if the last field lies before the first.
        Raise ValueError if the version lacks an end.
        """
        names = [f.name for f in self.fields]
        first = names.index(field_range.first)
        last = names.index(field_range.last) if field_range.last is not None else len(names) - 1
        return self.fields[first : last + 1]


@dataclass(frozen=True, slots=True)
class Plan:
    """Input of all targets. ``versions`` has the plans of each layout, oldest version first."""

    model: Model
    versions: Mapping[str, tuple[LayoutPlan, ...]]
    derived: Mapping[str, tuple[DerivedValue, ...]]
    """The derived values of each layout, settled for all of its versions at once."""
    release: str | None = None
    texts: Mapping[str, TextPlan] = dataclass_field(default_factory=dict)

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of the model."""
        return self.model.manifest

    def of(self, ref: Reference) -> tuple[LayoutPlan, ...]:
        """Return the plans that a reference outside a layout can mean: the named version, or all
        versions, oldest first. Return ``()`` if the named version does not exist. Raise KeyError if
        the layout does not exist.
        """
        plans = self.versions[ref.layout]
        return plans if ref.version is None else tuple(p for p in plans if p.version == ref.version)

    def held(self, ref: Reference, around: LayoutPlan) -> tuple[LayoutPlan, ...]:
        """Return the plans that a reference inside the layout ``around`` can mean: the stated
        version, or all versions if the held layout has a version field, else the version of
        ``around``. If the held layout lacks that one, return all versions. Return ``()`` only for a
        stated version that does not exist. Raise KeyError if the layout does not exist.
        """
        plans = self.of(ref)
        if ref.version is None and self.model.layouts[ref.layout].version_is is None:
            return tuple(p for p in plans if p.version in (around.version, None)) or plans
        return plans

    def held_by(self, type_: FieldType, around: LayoutPlan) -> tuple[LayoutPlan, ...]:
        """Return the plans of the layouts that a field of type ``type_`` in ``around`` can hold,
        directly, as elements or as cases: in the version that the type states; in all versions if
        the type has a ``version`` expression or the held layout has a version field; else in the
        version of ``around``, or in all if it lacks that one. Return ``()`` for types that hold no
        layout. Raise KeyError if a layout does not exist.
        """
        inner = type_.element if isinstance(type_, ArrayType) else type_
        names_version = isinstance(inner, StructType | ChoiceType) and inner.version is not None
        return tuple(
            plan
            for ref in held_layouts(type_)
            for plan in (self.of(ref) if names_version else self.held(ref, around))
        )

    def expected(self, ref: Reference, around: LayoutPlan) -> LayoutPlan:
        """Return the plan that a reference in ``around`` means by default: that of the version of
        ``around`` or without version, or else the oldest version that the reference allows. Raise
        KeyError if the layout does not exist, IndexError if the reference states a version that
        does not exist; the checks exclude both.
        """
        plans = self.of(ref)
        return next((p for p in plans if p.version in (around.version, None)), plans[0])

    def modules(self) -> Mapping[str, tuple[Declared, ...]]:
        """Return the declarations (not views) of each generated module, by the name of its YAML
        file, as :meth:`Model.modules` does.
        """
        return self.model.modules()

    def spelling(self, name: str, spelled: str | None) -> str:
        """Return how the format's own documents write a name: ``spelled``, or the rule of the manifest if it is
        None.
        """
        return spell(name, self.manifest.spelling) if spelled is None else spelled


def make_plan(model: Model, release: str | None = None) -> Plan:
    """Return the plan of a model: its layouts in all versions, derived values and texts, with those
    of used directories. ``release`` is recorded and filters nothing. Without it, the same model
    gives the same object. Raise ValueError if an expression is invalid, or KeyError if a field
    holds an unknown layout; the checks exclude both.
    """
    plan = _plan_model(model)
    return plan if release is None else replace(plan, release=release)


@cached_by_identity
def _plan_model(model: Model) -> Plan:
    """Return the plan of a model as it is today; the same model gives the same object. Raise
    ValueError if an expression is invalid, or KeyError if a field holds an unknown layout.
    """
    plans: dict[str, tuple[LayoutPlan, ...]] = {}

    def plan_of(name: str) -> tuple[LayoutPlan, ...]:
        if name not in plans:
            plans[name] = ()  # a layout that holds itself has no fixed size
            layout = model.layouts[name]
            plans[name] = tuple(
                _plan_layout(layout, v, model, plan_of) for v in layout.all_versions()
            )
        return plans[name]

    used = used_of(model.layouts)
    for name in (*model.layouts, *used):
        plan_of(name)
    derived = {
        name: _plan_derived(layout, None, model)
        for name, layout in (*model.layouts.items(), *used.items())
    }
    texts = {name: text_plan(text, model) for name, text in model.texts.items()}
    return Plan(
        model=model,
        versions=_split_declarations(plans, used),
        derived=_split_declarations(derived, used),
        texts=texts,
    )


def _split_declarations(things: Mapping[str, T], used: Mapping[str, object]) -> Declarations[T]:
    """Return ``things`` as declarations of the directory itself and, with the names in ``used``, of
    the directories that it uses. Raise KeyError if one of these is not in ``things``.
    """
    own = {name: thing for name, thing in things.items() if name not in used}
    return Declarations(own, {name: things[name] for name in used})


def _plan_layout(layout: Layout, version: int | None, model: Model, plan_of: object) -> LayoutPlan:
    """Return the plan of a layout in one version: its fields with offsets, sizes and resolved
    expressions. The offset is None after the first field that is optional or of variable size, and
    for tagged fields. ``plan_of`` returns the plans of another layout by name. Raise ValueError if
    an expression is invalid.
    """
    fields = []
    offset: int | None = 0
    there = layout.fields_of(version)
    places = {f.name: i for i, f in enumerate(layout.fields)}
    for i, f in enumerate(there):
        f = _with_version_bits(f, version, model)
        is_tagged = f.tag is not None
        size = None if is_tagged else _fixed_size(f, version, plan_of)
        if isinstance(f.type, PaddingType) and offset is not None:
            size = -offset % f.type.multiple
        following = next((g.name for g in there[i + 1 :] if g.tag is None), f.name)
        fields.append(
            FieldPlan(
                f,
                None if is_tagged else offset,
                size,
                _with_first(f.measures, following),
                tuple(part for c in f.covers if (part := _with_first(c, following)) is not None),
                *_resolve_expressions(layout, f, places[f.name], version, model),
            )
        )
        if is_tagged:
            continue
        offset = offset + size if fields[-1].is_fixed else None  # type: ignore[operator]
    own = tuple(
        replace(
            fp,
            own_bytes=_count_own_bytes(fp, fields),
            until=_resolve_until(layout, fp.field, version, model),
        )
        for fp in fields
    )
    rules = tuple(_plan_rules(layout, own, version, model))
    given = tuple(FieldPlan(f, None, 0, None, ()) for f in layout.given)
    return LayoutPlan(layout, version, own, _plan_derived(layout, version, model), rules, given)


def _count_own_bytes(fp: FieldPlan, fields: list[FieldPlan]) -> int:
    """Return how many bytes a length field counts up to and including itself. Return 0 if its range
    begins after it, and for fields that are no lengths. Fields of variable size count 0.
    """
    if fp.measures is None:
        return 0
    before = fields[: fields.index(fp) + 1]
    first = next((i for i, f in enumerate(before) if f.name == fp.measures.first), None)
    return 0 if first is None else sum(f.size or 0 for f in before[first:])


def _resolve_until(layout: Layout, f: Field, version: int | None, model: Model) -> Value | None:
    """Return the resolved end condition of an array; None if the array has none. Raise ValueError
    if it is invalid, which the checks exclude.
    """
    if not isinstance(f.type, ArrayType) or f.type.until is None:
        return None
    at = next(i for i, other in enumerate(layout.fields) if other.name == f.name)
    return resolve_expression(
        f.type.until, Scope(model, layout, version, at, f.name, f.type.element)
    )


def _resolve_expressions(
    layout: Layout, f: Field, at: int, version: int | None, model: Model
) -> tuple[
    Value | None,
    Value | None,
    Value | None,
    Value | None,
    Value | None,
    Mapping[str, Value],
    Value | None,
    Value | None,
    Mapping[str, Value],
]:
    """Return the resolved expressions of a field in one version: when, valid, refuse, default,
    codec, bit defaults by member, given, version, gives by name. One that the field lacks is None.
    ``at`` is the index of the field in the layout. Raise ValueError if one is invalid.
    """
    scope = Scope(model, layout, version, owner=f.name)
    before, itself = replace(scope, before=at), replace(scope, before=at + 1)
    built = replace(before, built=True, whole=True)
    bits = f.type.members if isinstance(f.type, BitsType) else ()
    compression = f.type.compression if isinstance(f.type, ArrayType) else None
    given, held_version = choosing(f.type)
    return (
        None if f.when is None else resolve_expression(f.when, before),
        None if f.valid is None else resolve_expression(f.valid, itself),
        None if f.refuse is None else resolve_expression(f.refuse, itself),
        None
        if f.default is None
        else resolve_expression(f.default, built, getattr(f.type, "enum", None)),
        None if compression is None else resolve_expression(compression.by, before),
        {
            m.name: resolve_expression(m.default, built, m.enum)
            for m in bits
            if m.default is not None
        },
        None
        if given is None
        else resolve_expression(given, before, getattr(choice_of(f), "enum", None)),
        None if held_version is None else resolve_expression(held_version, before),
        {
            one.name: resolve_expression(value, before, getattr(one.type, "enum", None))
            for one in given_of(f, model)
            for name, value in f.gives
            if name == one.name
        },
    )


def _plan_derived(layout: Layout, version: int | None, model: Model) -> tuple[DerivedValue, ...]:
    """Return the derived values that exist in ``version``, or in any version if ``version`` is
    None, resolved, in schema order. Raise ValueError if an expression is invalid.
    """
    out = []
    for d in layout.derived:
        versions = layout.all_versions() if version is None else (version,)
        if d.versions is not None and not any(v in d.versions for v in versions):
            continue
        array = None if d.array is None else field_of(layout, d.array)
        item = (
            array.type.element if array is not None and isinstance(array.type, ArrayType) else None
        )
        scope = Scope(model, layout, version, owner=d.name, item=item, array=d.array)
        out.append(resolve_derived_value(d, scope))
    return tuple(out)


def _plan_rules(
    layout: Layout, fields: tuple[FieldPlan, ...], version: int | None, model: Model
) -> Iterator[RulePlan]:
    """Yield the rules of a layout that apply to ``version``, resolved: with a condition, or with
    the array and the element field that must ascend. Raise ValueError if an expression is invalid.
    """
    for rule in layout.rules:
        if rule.versions is not None and version not in rule.versions:
            continue
        scope = Scope(model, layout, version, owner=rule.name, whole=True, ruled=True)
        if rule.condition is not None:
            yield RulePlan(rule, resolve_expression(rule.condition, scope))
        elif rule.ascending is not None:
            value = resolve_expression(as_maximum(rule.ascending), scope)
            assert isinstance(value, EndValue) and isinstance(value.value, FieldValue)
            array = next(fp for fp in fields if fp.name == value.array.field.name)
            yield RulePlan(rule, None, array, replace(value.value, owner="item"))


def _with_first(field_range: FieldRange | None, following: str) -> FieldRange | None:
    """Return the field range with ``following`` as its first field if it names none."""
    if field_range is None or field_range.first:
        return field_range
    return replace(field_range, first=following)


def _with_version_bits(f: Field, version: int | None, model: Model) -> Field:
    """Return a bit field with the members that exist in ``version``. A reserved member becomes the
    bits that no other member takes, and is dropped if there are none. Other fields are returned
    unchanged.
    """
    if not isinstance(f.type, BitsType):
        return f
    members = [m for m in f.type.members if m.versions is None or version in m.versions]
    return replace(f, type=replace(f.type, members=tuple(with_reserved_bits(f.type.base, members))))


def _fixed_size(f: Field, version: int | None, plan_of: object) -> int | None:
    """Return the size of a field in bytes, or None if it varies: for varints (with or without bit
    members), variable bytes, optional structs, choices, padding, tags and arrays, except
    uncompressed arrays of a fixed number of elements of fixed size. Structs have the size of their
    layout in the version that it is held in; None if an expression gives that version, or the
    layout lacks it or holds itself. ``version`` is that of the holder, None if it has none.
    """
    match f.type:
        case ScalarType(name):
            return fixed_size(name)
        case BitsType(base):
            return fixed_size(base)
        case BytesType(length):
            return length if isinstance(length, int) else None
        case StructType(_, str()) | StructType(version=Expression()) | ChoiceType() | PaddingType():
            return None
        case StructType(ref):
            plans = plan_of(ref.layout)  # type: ignore[operator]
            wanted = version if ref.version is None else ref.version
            found = [p for p in plans if p.version in (wanted, None)]
            return found[0].size if found else None
        case ArrayType(element, fixed=int(number), compression=None):
            one = StructType(element) if isinstance(element, Reference) else element
            size = _fixed_size(replace(f, type=one), version, plan_of)
            return None if size is None else number * size
        case ArrayType() | TagsType():
            return None
