"""Describe what changed in a layout between two versions or two releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codecgen.diagnostics import printable
from codecgen.plan import FieldPlan, LayoutPlan, Plan, make_plan
from codecgen.plan.type_text import checksum_words, constant_words, size_words, type_words
from codecgen.schema.lookup import choice_of, has_byte_order, members
from codecgen.schema.model import Field, Layout, Model
from codecgen.schema.texts import Text
from codecgen.schema.types import BitMember, ChoiceType, Reference, ScalarType


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two states to compare. A ``version`` of None stands for all versions."""

    title: str
    model: Model
    version: int | None


def diff(layout: str, before: Side, after: Side) -> str:
    """Return the changes of a layout or text, and of the layouts that it holds, as indented lines
    below a heading, or ``nothing changed``. A name that neither state declares gives ``nothing
    changed`` too. A version that the layout, or one that it holds, lacks is a line, and none of its
    fields are compared. The text does not end with a line feed; unprintable characters are escaped.
    """
    head = f"{layout}: {before.title} -> {after.title}"
    texts = before.model.texts.get(layout), after.model.texts.get(layout)
    if texts != (None, None):
        lines = list(_diff_texts(layout, *texts))
    else:
        lines = list(_Diff(before, after).layout(layout, before.version, after.version))
    body = [f"  {line}" for line in lines] or ["  nothing changed"]
    return "\n".join(printable(line) for line in (head, *body))


def _diff_texts(name: str, old: Text | None, new: Text | None) -> Iterator[str]:
    """Yield the changes of a text between releases: that it is added or removed (None on one side),
    or which of its properties are. A property that differs in anything counts as removed and added.
    Lines and other keys of the text are not compared.
    """
    if old is None or new is None:
        yield f"{name} is {'added' if old is None else 'removed'}"
        return
    for key in (*old.properties, *(key for key in new.properties if key not in old.properties)):
        if key not in old.properties or key not in new.properties:
            added = key in new.properties
            yield f"{'+' if added else '-'} {key.name} is {'added' if added else 'removed'}"


def _version_words(plan: LayoutPlan) -> str:
    """Return ``version 2``, or ``the form without versions`` if the layout has no versions."""
    return "the form without versions" if plan.version is None else f"version {plan.version}"


class _Diff:
    """Compares two states."""

    def __init__(self, before: Side, after: Side) -> None:
        self.before = before
        self.after = after
        self.plans = (make_plan(before.model), make_plan(after.model))
        self.seen: set[str] = set()

    def layout(self, name: str, version: int | None, other: int | None) -> Iterator[str]:
        """Yield the changes of a layout (added, removed, or fields and enums), then those of the
        layouts that it holds behind ``in NAME: ``, each layout once. ``version`` and ``other`` are
        the versions to compare; None for both compares all versions. For a version that does not
        exist, yield a line and compare no fields, but enums and held layouts. Yield nothing if
        neither state has the layout.
        """
        self.seen.add(name)
        old, new = self.before.model.layouts.get(name), self.after.model.layouts.get(name)
        if old is None or new is None:
            if old is not new:
                yield f"{name} is {'added' if old is None else 'removed'}"
            return
        if version is None and other is None:
            yield from self.releases(old, new)
        else:
            one = self.plan_of(self.plans[0], name, version)
            two = self.plan_of(self.plans[1], name, other)
            for asked, found in {version: one, other: two}.items():
                if found is None:
                    yield f"version {asked} does not exist"
            if one is not None and two is not None:
                yield from self.fields(one, two)
        yield from self.enums(old, new)
        for ref in (*self.before.model.references(old), *self.after.model.references(new)):
            if ref.layout not in self.seen:
                # A version that a reference names is the same on both sides.
                sides = (ref.version, ref.version) if ref.version is not None else (version, other)
                for line in self.layout(ref.layout, *sides):
                    yield line if line.startswith(("enum ", "in ")) else f"in {ref.layout}: {line}"

    def plan_of(self, plan: Plan, name: str, version: int | None) -> LayoutPlan | None:
        """Return the plan of a layout in a version; the only plan of a layout without versions. Return
        None if the layout lacks the version.
        """
        return next((p for p in plan.versions[name] if p.version in (version, None)), None)

    def releases(self, old: Layout, new: Layout) -> Iterator[str]:
        """Yield the lines for each version of ``old``: its changes, each behind ``version N: ``
        (nothing for a layout without versions), or ``version N is removed`` if ``new`` lacks it.
        Then yield ``version N is added`` for each version that only ``new`` has. If just one of the
        two has versions, the other is ``the form without versions``.
        """
        sides = [self.plans[0].versions[old.name], self.plans[1].versions[new.name]]
        for plan in sides[0]:
            match = next((p for p in sides[1] if p.version == plan.version), None)
            prefix = "" if plan.version is None else f"version {plan.version}: "
            if match is None:
                yield f"{_version_words(plan)} is removed"
            else:
                for line in self.fields(plan, match):
                    yield prefix + line
        for plan in sides[1]:
            if all(p.version != plan.version for p in sides[0]):
                yield f"{_version_words(plan)} is added"

    # ------------------------------------------------------------ fields

    def fields(self, old: LayoutPlan, new: LayoutPlan) -> Iterator[str]:
        """Yield a line for each removed field, in the old order, then the lines for each added or
        changed field, in the new order. Fields are matched by name.
        """
        for fp in old.fields:
            if new.field(fp.name) is None:
                yield f"- {fp.name}: {self.words(fp)} is removed"
        for fp in new.fields:
            match = old.field(fp.name)
            if match is None:
                yield f"+ {fp.name}: {self.words(fp)} is added"
            else:
                yield from self.field(match, fp)

    def words(self, fp: FieldPlan) -> str:
        """Return the type of a field in words, followed by its tag or, if it has none and a fixed
        position, by its byte offset.
        """
        words = self.type(fp)
        if fp.field.tag is not None:
            return f"{words}, tag {fp.field.tag}"
        return words if fp.offset is None else f"{words}, at byte {fp.offset}"

    def field(self, old: FieldPlan, new: FieldPlan) -> Iterator[str]:
        """Yield the changes of one field, a line each: spelling, type, position, size (only if type
        and position are equal), condition, constant, checksum and similar keys, cases of its
        choice, and bit members. Yield nothing if these are equal.
        """
        name = new.name
        shown = [
            plan.spelling(name, fp.field.spelled)
            for plan, fp in zip(self.plans, (old, new), strict=True)
        ]
        if shown[0] != shown[1]:
            yield f"~ {name}: {shown[0]} is renamed to {shown[1]}"
        types = [self.type(fp) for fp in (old, new)]
        if types[0] != types[1]:
            yield f"~ {name}: {types[0]} becomes {types[1]}"
        if old.offset != new.offset:
            places = [
                "no fixed byte" if at is None else f"byte {at}" for at in (old.offset, new.offset)
            ]
            yield f"~ {name}: moved from {places[0]} to {places[1]}"
        elif old.size != new.size and types[0] == types[1]:
            sizes = [size_words(fp) for fp in (old, new)]
            yield f"~ {name}: size {sizes[0]} becomes {sizes[1]}"
        for what, one, other in _compare_keys(old.field, new.field):
            if one != other:
                yield f"~ {name}: {what} {one or 'nothing'} becomes {other or 'nothing'}"
        yield from _diff_cases(name, choice_of(old.field), choice_of(new.field))
        yield from _diff_bits(name, members(old.field), members(new.field))

    def type(self, fp: FieldPlan) -> str:
        """Return the type of a field in words, with its enum if it has one."""
        words = type_words(fp.field.type)
        if isinstance(fp.field.type, ScalarType) and fp.field.type.enum is not None:
            words += f", a value of {fp.field.type.enum}"
        return words

    # ------------------------------------------------------------ enums

    def enums(self, old: Layout, new: Layout) -> Iterator[str]:
        """Yield a line for each value that was added, removed or renumbered in an enum that the
        layouts use, each enum once in the whole comparison. An enum that one side lacks counts as
        one without values there.
        """
        names = [
            name for name in (*_enums_of(old), *_enums_of(new)) if f"enum {name}" not in self.seen
        ]
        for name in dict.fromkeys(names):
            self.seen.add(f"enum {name}")
            sides = (self.before.model.enums.get(name), self.after.model.enums.get(name))
            values = [{v.name: v.value for v in e.values} if e is not None else {} for e in sides]
            for value, number in values[0].items():
                if value not in values[1]:
                    yield f"enum {name}: - {value} ({number}) is removed"
                elif values[1][value] != number:
                    yield f"enum {name}: ~ {value} is {number}, becomes {values[1][value]}"
            for value, number in values[1].items():
                if value not in values[0]:
                    yield f"enum {name}: + {value} ({number}) is added"


def _enums_of(layout: Layout) -> Iterator[str]:
    """Yield the names of the enums of scalar fields and bit members of a layout. Repeats are
    possible.
    """
    for f in layout.fields:
        if isinstance(f.type, ScalarType) and f.type.enum is not None:
            yield f.type.enum
        for m in members(f):
            if m.enum is not None:
                yield m.enum


def _compare_keys(old: Field, new: Field) -> Iterator[tuple[str, str, str]]:
    """Yield (name, before, after) for each other property of a field: ``when``, ``valid``, byte
    order (if both have one), tag, constant, checksum. Equal ones are included; ``""`` stands for a
    missing one.
    """
    yield "`when`", _optional_text(old.when), _optional_text(new.when)
    yield "`valid`", _optional_text(old.valid), _optional_text(new.valid)
    if has_byte_order(old) and has_byte_order(new):
        yield "`endian`", old.endian, new.endian
    yield "`tag`", _tag_text(old), _tag_text(new)
    yield "`const`", _constant_text(old), _constant_text(new)
    yield "the checksum", _checksum_words(old), _checksum_words(new)


def _checksum_words(f: Field) -> str:
    """Return a checksum with its ranges and zeroed fields in words, or ``""`` if the field is no
    checksum.
    """
    if f.checksum is None:
        return ""
    ranges = [f"{part.first or 'the next field'} to {part.last or 'the end'}" for part in f.covers]
    zero = f", with zeros for {', '.join(f.zero)}" if f.zero else ""
    return f"{checksum_words(f)} of {', then '.join(ranges)}{zero}"


def _tag_text(f: Field) -> str:
    """Return the tag of a field as text, or ``""``."""
    return "" if f.tag is None else str(f.tag)


def _constant_text(f: Field) -> str:
    """Return the constant of a field as text, or ``""``."""
    return "" if f.const is None else constant_words(f.const)


def _optional_text(thing: object) -> str:
    """Return a value as text, or ``""`` for None."""
    return "" if thing is None else str(thing)


def _diff_bits(name: str, old: Sequence[BitMember], new: Sequence[BitMember]) -> Iterator[str]:
    """Yield a line for each bit member that is removed, added or (of the same name) has other bits,
    another enum or other allowed values.
    """
    before, after = ({m.name: m for m in side} for side in (old, new))
    for m in old:
        if m.name not in after:
            yield f"- {name}.{m.name}: {_bits_text(m)} is removed"
    for m in new:
        other = before.get(m.name)
        if other is None:
            yield f"+ {name}.{m.name}: {_bits_text(m)} is added"
            continue
        if _bits_text(m) != _bits_text(other):
            yield f"~ {name}.{m.name}: {_bits_text(other)} becomes {_bits_text(m)}"
        if m.enum != other.enum:
            yield f"~ {name}.{m.name}: values of {other.enum or 'no enum'} become values of {m.enum or 'no enum'}"
        if m.only != other.only:
            sides = [
                ", ".join(side.only) if side.only is not None else "all" for side in (other, m)
            ]
            yield f"~ {name}.{m.name}: only {sides[0]} becomes {sides[1]}"


def _diff_cases(name: str, old: ChoiceType | None, new: ChoiceType | None) -> Iterator[str]:
    """Yield a line for each case of a choice that is removed, leads to another layout, or is added.
    Yield nothing if one of the fields is no choice.
    """
    if old is None or new is None:
        return
    before, after = ({_case_text(n, ref): str(ref) for n, ref in side.cases} for side in (old, new))
    for number, ref in before.items():
        if number not in after:
            yield f"- {name}: case {number}, {ref}, is removed"
        elif after[number] != ref:
            yield f"~ {name}: case {number} is {ref}, becomes {after[number]}"
    for number, ref in after.items():
        if number not in before:
            yield f"+ {name}: case {number}, {ref}, is added"


def _case_text(number: int, ref: Reference) -> str:
    """Return the discriminators of a layout: ``2, magic 0``."""
    return ", ".join([str(number), *(f"{step.by} {step.number}" for step in ref.steps)])


def _bits_text(m: BitMember) -> str:
    """Return the position of a member of a field of bits."""
    return f"bit {m.low}" if m.low == m.high else f"bits {m.low}-{m.high}"
