"""Derive read programs: the operations of a strict reader for a layout in one version.

Targets that emit code print these. What they refuse, they refuse by the field of an operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codecgen.plan import nodes
from codecgen.plan.constant_folding import as_truth, fold, is_known
from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan
from codecgen.plan.nodes import negate
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

    def ops_before(self, field: str) -> tuple[ReadOp, ...]:
        """Return the operations before the one that reads ``field``, including those that open
        ranges at that field; all operations if none reads it, as for a tagged field.
        """
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
    """Return the read program of a layout in one version, without operations if it has no fields.
    Nothing is refused: targets raise for operations that they do not support.
    """
    return ReadProgram(layout, tuple(_iterate_ops(plan, layout)))


def _iterate_ops(plan: Plan, layout: LayoutPlan) -> Iterator[ReadOp]:
    """Yield the operations of a layout in byte order: reads and requirements of each field, and the
    starts and ends of measured ranges and checksums around them. Yield nothing for a layout without
    fields.
    """
    fields = layout.in_order
    if not fields:
        return
    end = fields[-1].name
    opened: list[FieldPlan] = []
    lengths = [m for m in fields if m.measures is not None]
    checksums = [c for c in layout.fields if c.field.checksum is not None]
    for at, fp in enumerate(fields):
        for m in lengths:
            if m.measures is not None and _opens_at(layout, m) == fp.name:
                last = None if m.measures.last in (None, end) else m.measures.last
                when = None if m.when is None else fold(m.when)
                yield Open(m, fp, last, when, _fixed_size_after(layout, _index_of(layout, last)))
                opened.append(m)
        for c in checksums:
            for part in c.covers:
                if part.first == fp.name:
                    yield Verify(c, True) if _is_verified_ahead(layout, c, part) else Mark(c, False)
        field_range = opened[-1].measures if opened else None
        yield from _iterate_field_ops(
            plan, layout, at, _index_of(layout, None if field_range is None else field_range.last)
        )
        while opened and opened[-1].measures is not None and opened[-1].measures.last == fp.name:
            if fp.name == end:
                break
            yield Close(opened.pop(), fp)
        for c in checksums:
            for part in c.covers:
                if _index_of(layout, part.last) == at and not _is_verified_ahead(layout, c, part):
                    ends = len(c.covers) > 1 or fields.index(c) > at or fp.name == end
                    yield from (Mark(c, True),) if ends else ()
            if _known_at(layout, c) == at and not any(
                _is_verified_ahead(layout, c, part) for part in c.covers
            ):
                yield Verify(c, False)
    for m in reversed(opened):
        yield Close(m, fields[-1])


def _opens_at(layout: LayoutPlan, m: FieldPlan) -> str:
    """Return the name of the first field that lies in the range of the length ``m`` and is not yet read when
    ``m`` is known.
    """
    assert m.measures is not None
    if m.own_bytes == 0:
        return m.measures.first
    return layout.in_order[layout.in_order.index(m) + 1].name


def _is_verified_ahead(layout: LayoutPlan, c: FieldPlan, part: FieldRange) -> bool:
    """Return whether readers verify the checksum ``c`` before they read on: ``c`` stands before
    ``part``, its only range, which reaches to the end with no field as zeros. False if a length
    says where the end is, but only later.
    """
    fields = layout.in_order
    last, first = fields[-1].name, _index_of(layout, part.first)
    to_end = part.last in (None, last) and len(c.covers) == 1 and not part.zero
    lengths = [m for m in fields if m.measures is not None and m.measures.last in (None, last)]
    opened = [_index_of(layout, _opens_at(layout, m)) for m in lengths]
    known = not opened or min(opened) <= first
    return to_end and known and fields.index(c) < first


def _known_at(layout: LayoutPlan, c: FieldPlan) -> int:
    """Return the index in byte order of the last of the checksum ``c`` and the fields that it
    covers: after it, all of them have been read.
    """
    return max(layout.in_order.index(c), *(_index_of(layout, part.last) for part in c.covers))


def _index_of(layout: LayoutPlan, name: str | None) -> int:
    """Return the index of the field ``name`` in byte order, or of the last field if ``name`` is
    None. Raise StopIteration if there is no such field.
    """
    if name is None:
        return len(layout.in_order) - 1
    return next(i for i, fp in enumerate(layout.in_order) if fp.name == name)


def _fixed_size_after(layout: LayoutPlan, at: int, last: int | None = None) -> int | None:
    """Return the total size in bytes of the fields after index ``at`` up to index ``last``
    (included), or up to the end if None. Return None if a field is optional or varies in size.
    Optional bytes that take the rest are skipped.
    """
    total = 0
    for fp in layout.in_order[at + 1 : None if last is None else last + 1]:
        type_ = fp.field.type
        if isinstance(type_, BytesType) and type_.length == "rest" and fp.when is not None:
            continue  # of two fields that reach to the end one is there
        if fp.size is None or fp.when is not None:
            return None
        total += fp.size
    return total


def _iterate_field_ops(plan: Plan, layout: LayoutPlan, at: int, last: int) -> Iterator[ReadOp]:
    """Yield the operations of the field at index ``at``: its read and requirements, these inside
    ``When`` if its condition is open, or ``Absent`` if the condition is always false. ``last`` is
    the index of the last field in the innermost open range, or in the layout.
    """
    fp = layout.in_order[at]
    ops = (_read_field(plan, layout, at, last), *_iterate_requirements(plan, layout, fp))
    when = None if fp.when is None else fold(fp.when)
    if when is None or (is_known(when) and as_truth(when)):
        yield from ops
    elif is_known(when):
        yield Absent(fp)
    else:
        yield When(fp, when, ops)


def _read_field(plan: Plan, layout: LayoutPlan, at: int, last: int) -> ReadOp:
    """Return the operation that reads the field at index ``at`` in a range that ends at index ``last``."""
    fp = layout.in_order[at]
    is_bytes = isinstance(fp.field.type, BytesType)
    return _read_op(plan, layout, fp, _fixed_size_after(layout, at, last) if is_bytes else None)


def _read_op(plan: Plan, layout: LayoutPlan, fp: FieldPlan, after: int | None) -> ReadOp:
    """Return the operation that reads ``fp``. ``after`` is the size in bytes of the fields after it
    in its range, or None if that varies; only that of bytes and text is looked at. Structs whose version an expression gives become
    ``Choose``.
    """
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
            names_version = choice.version is not None
            found = [
                (number, held, ref.steps)
                for number, ref in choice.cases
                for held in (plan.of(ref) if names_version else plan.held(ref, layout))
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
                (f, (_read_op(plan, layout, f, 0), *_iterate_requirements(plan, layout, f)))
                for f in layout.tagged
            )
            return Tags(fp, tuple(known), layout.other_tags)


def array_refusals(fp: FieldPlan) -> list[nodes.Value]:
    """Return the conditions under which a reader rejects an array, at most two: its field's
    ``refuse``, and its ``valid`` negated, both folded. Return ``[]`` if it has neither.
    """
    found = [] if fp.refuse is None else [fold(fp.refuse)]
    return found if fp.valid is None else [*found, negate(fold(fp.valid))]


def _iterate_requirements(plan: Plan, layout: LayoutPlan, fp: FieldPlan) -> Iterator[Require]:
    """Yield the requirements on the value of a field, as far as it has them: constant, version,
    negated ``refuse``, ``valid`` (unless it is always true), allowed enum values, and for bit
    members enum values and zero reserved bits.
    """
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
        yield Require(fp, negate(fold(fp.refuse)), "refuse")
    if fp.valid is not None:
        valid = fold(fp.valid)
        if not (is_known(valid) and as_truth(valid)):
            yield Require(fp, valid, "valid")
    match f.type:
        case ScalarType(enum=str() as enum, only=only):
            yield from _require_member(
                plan, fp, nodes.FieldValue(f, scalar_type(f.type)), enum, only
            )
        case BitsType(_, members):
            for m in members:
                yield from _require_bits(plan, fp, m)


def _require_bits(plan: Plan, fp: FieldPlan, m: BitMember) -> Iterator[Require]:
    """Yield the requirement on one bit member: reserved bits are 0, enum bits hold an allowed
    value. Yield nothing for other members, and where every number is allowed.
    """
    word = nodes.FieldValue(fp.field, INT)
    value = nodes.BitValue(word, m, bit_type(m))
    if m.reserved:
        yield Require(fp, nodes.Comparison("==", value, nodes.Literal(0)), "reserved")
    elif m.enum is not None:
        yield from _require_member(plan, fp, value, m.enum, m.only)


def _require_member(
    plan: Plan,
    fp: FieldPlan,
    value: nodes.FieldValue | nodes.BitValue,
    enum: str,
    only: tuple[str, ...] | None,
) -> Iterator[Require]:
    """Yield the requirement that ``value`` is an allowed value of the enum. Yield nothing if the
    enum keeps unknown numbers, or if the bits can hold allowed numbers only. ``only`` None allows
    all values.
    """
    found = plan.model.enums[enum]
    if found.keep_unknown:
        return
    allowed = {v.value for v in found.values if only is None or v.name in only}
    if isinstance(value, nodes.BitValue) and allowed >= set(range(1 << value.member.width)):
        return
    yield Require(fp, nodes.Membership(value, tuple(sorted(allowed))), "enum")


__all__ = ["ReadProgram", "read_program"]
