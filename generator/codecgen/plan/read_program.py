"""What a strict reader does with a layout, step by step: a short list of operations for every version.

Targets that emit code print these. What they refuse, they refuse by the field of an operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codecgen.plan import nodes
from codecgen.plan.constant_folding import fold, is_known, truth
from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan
from codecgen.plan.nodes import negated
from codecgen.plan.read_ops import (
    Absent,
    Bytes,
    Choose,
    Close,
    Elements,
    Mark,
    Number,
    Open,
    Padding,
    ReadOp,
    Require,
    Struct,
    Tags,
    Verify,
    When,
)
from codecgen.plan.types import INT, bit_type, bytes_type, scalar_type
from codecgen.schema.expression import Expression
from codecgen.schema.types import (
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    ChoiceType,
    FieldRange,
    PaddingType,
    ScalarType,
    StructType,
    TagsType,
)


@dataclass(frozen=True, slots=True)
class ReadProgram:
    """The operations of a layout in one version, in the order of the bytes."""

    layout: LayoutPlan
    ops: tuple[ReadOp, ...]

    def until(self, field: str) -> tuple[ReadOp, ...]:
        """The operations before a field is read; what begins with the field has begun."""
        out = []
        for op in self.ops:
            reading = isinstance(
                op, Number | Bytes | Padding | Elements | Struct | Choose | Tags | When | Absent
            )
            if reading and op.field.name == field:  # type: ignore[union-attr]
                break
            out.append(op)
        return tuple(out)


def read_program(plan: Plan, layout: LayoutPlan) -> ReadProgram:
    """What a strict reader does with a layout."""
    return ReadProgram(layout, tuple(_ops(plan, layout)))


def _ops(plan: Plan, layout: LayoutPlan) -> Iterator[ReadOp]:
    fields = layout.in_order
    if not fields:
        return
    end = fields[-1].name
    opened: list[FieldPlan] = []
    for at, fp in enumerate(fields):
        for m in fields:
            if m.measures is not None and _opens_at(layout, m) == fp.name:
                last = None if m.measures.last in (None, end) else m.measures.last
                when = None if m.when is None else fold(m.when)
                yield Open(m, fp, last, when, _after(layout, _index(layout, last)))
                opened.append(m)
        for c in _checksums(layout):
            for part in c.covers:
                if part.first == fp.name:
                    yield Verify(c, True) if _ahead(layout, c, part) else Mark(c, False)
        field_range = opened[-1].measures if opened else None
        yield from _field(
            plan, layout, at, _index(layout, None if field_range is None else field_range.last)
        )
        while opened and opened[-1].measures is not None and opened[-1].measures.last == fp.name:
            if fp.name == end:
                break
            yield Close(opened.pop(), fp)
        for c in _checksums(layout):
            for part in c.covers:
                if _index(layout, part.last) == at and not _ahead(layout, c, part):
                    ends = len(c.covers) > 1 or fields.index(c) > at or fp.name == end
                    yield from (Mark(c, True),) if ends else ()
            if _known(layout, c) == at and not any(_ahead(layout, c, part) for part in c.covers):
                yield Verify(c, False)
    for m in reversed(opened):
        yield Close(m, fields[-1])


def _opens_at(layout: LayoutPlan, m: FieldPlan) -> str:
    """The first field that has not been read when a length is known."""
    assert m.measures is not None
    if m.own_bytes == 0:
        return m.measures.first
    return layout.in_order[layout.in_order.index(m) + 1].name


def _ahead(layout: LayoutPlan, c: FieldPlan, part: FieldRange) -> bool:
    """Whether a checksum is that of all that follows from a range on, so that it can be verified before that is read."""
    last = layout.in_order[-1].name
    to_end = part.last in (None, last) and len(c.covers) == 1 and not part.zero
    return to_end and layout.in_order.index(c) < _index(layout, part.first)


def _known(layout: LayoutPlan, c: FieldPlan) -> int:
    """The field with which a checksum and all that it covers has been read."""
    return max(layout.in_order.index(c), *(_index(layout, part.last) for part in c.covers))


def _checksums(layout: LayoutPlan) -> list[FieldPlan]:
    return [c for c in layout.fields if c.field.checksum is not None]


def _index(layout: LayoutPlan, name: str | None) -> int:
    if name is None:
        return len(layout.in_order) - 1
    return next(i for i, fp in enumerate(layout.in_order) if fp.name == name)


def _after(layout: LayoutPlan, at: int, last: int | None = None) -> int | None:
    """The bytes of the fields that follow one, up to the ``last`` (None: of the layout); None when they vary."""
    total = 0
    for fp in layout.in_order[at + 1 : None if last is None else last + 1]:
        type_ = fp.field.type
        if isinstance(type_, BytesType) and type_.length == "rest" and fp.when is not None:
            continue  # of two fields that reach to the end one is there
        if fp.size is None or fp.when is not None:
            return None
        total += fp.size
    return total


def _field(plan: Plan, layout: LayoutPlan, at: int, last: int) -> Iterator[ReadOp]:
    """A field of a field range that ends with the field ``last``."""
    fp = layout.in_order[at]
    ops = (_read(plan, layout, at, last), *_rules(plan, layout, fp))
    when = None if fp.when is None else fold(fp.when)
    if when is None or (is_known(when) and truth(when)):
        yield from ops
    elif is_known(when):
        yield Absent(fp)
    else:
        yield When(fp, when, ops)


def _read(plan: Plan, layout: LayoutPlan, at: int, last: int) -> ReadOp:
    return _read_one(plan, layout, layout.in_order[at], _after(layout, at, last))


def _read_one(plan: Plan, layout: LayoutPlan, fp: FieldPlan, after: int | None) -> ReadOp:
    """What reads a field that has ``after`` bytes behind it."""
    match fp.field.type:
        case ScalarType(name) | BitsType(name):
            return Number(fp, name)
        case BytesType() as type_:
            return Bytes(fp, type_, after)
        case ArrayType(element) as array:
            if isinstance(element, ScalarType | BytesType | ChoiceType):
                return Elements(fp, array, element)
            other = element.layout != layout.name and len(plan.held(element, layout)) > 1
            return Elements(fp, array, plan.expected(element, layout), other)
        case ChoiceType() as choice:
            told = choice.version is not None
            found = [
                (number, held, ref.steps)
                for number, ref in choice.cases
                for held in (plan.of(ref) if told else plan.held(ref, layout))
            ]
            cases = tuple((number, held) for number, held, _ in found)
            return Choose(fp, choice, cases, tuple(steps for _, _, steps in found))
        case StructType(version=Expression()) as struct:
            return Choose(fp, struct, tuple((None, p) for p in plan.of(struct.layout)))
        case StructType(ref):
            return Struct(fp, plan.expected(ref, layout))
        case PaddingType(multiple):
            return Padding(fp, multiple)
        case TagsType():
            known = (
                (f, (_read_one(plan, layout, f, 0), *_rules(plan, layout, f)))
                for f in layout.tagged
            )
            return Tags(fp, tuple(known), layout.other_tags)


def refused_arrays(fp: FieldPlan) -> list[nodes.Value]:
    """When an array is refused, by what its field says of it."""
    found = [] if fp.refuse is None else [fold(fp.refuse)]
    return found if fp.valid is None else [*found, negated(fold(fp.valid))]


def _rules(plan: Plan, layout: LayoutPlan, fp: FieldPlan) -> Iterator[Require]:
    f = fp.field
    if f.const is not None and isinstance(f.type, ScalarType | BytesType):
        type_ = scalar_type(f.type) if isinstance(f.type, ScalarType) else bytes_type(f.type)
        value = nodes.FieldValue(f, type_)
        yield Require(fp, nodes.Comparison("==", value, nodes.constant(f.const)), "const")
    if isinstance(f.type, ScalarType):
        value = nodes.FieldValue(f, scalar_type(f.type))
        if f.is_version and layout.version is not None:
            version = nodes.Literal(layout.version)
            yield Require(fp, nodes.Comparison("==", value, version), "version")
    if fp.refuse is not None:
        yield Require(fp, negated(fold(fp.refuse)), "refuse")
    if fp.valid is not None:
        valid = fold(fp.valid)
        if not (is_known(valid) and truth(valid)):
            yield Require(fp, valid, "valid")
    match f.type:
        case ScalarType(enum=str() as enum, only=only):
            yield from _member(plan, fp, nodes.FieldValue(f, scalar_type(f.type)), enum, only)
        case BitsType(_, members):
            for m in members:
                yield from _bits(plan, fp, m)


def _bits(plan: Plan, fp: FieldPlan, m: BitMember) -> Iterator[Require]:
    word = nodes.FieldValue(fp.field, INT)
    value = nodes.BitValue(word, m, bit_type(m))
    if m.reserved:
        yield Require(fp, nodes.Comparison("==", value, nodes.Literal(0)), "reserved")
    elif m.enum is not None:
        yield from _member(plan, fp, value, m.enum, m.only)


def _member(
    plan: Plan,
    fp: FieldPlan,
    value: nodes.FieldValue | nodes.BitValue,
    enum: str,
    only: tuple[str, ...] | None,
) -> Iterator[Require]:
    found = plan.model.enums[enum]
    if found.keep_unknown:
        return
    allowed = {v.value for v in found.values if only is None or v.name in only}
    if isinstance(value, nodes.BitValue) and allowed >= set(range(1 << value.member.width)):
        return
    yield Require(fp, nodes.Membership(value, tuple(sorted(allowed))), "enum")


__all__ = ["ReadProgram", "read_program"]
