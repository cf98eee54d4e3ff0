"""What is known of fields where it is known what is written into them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from codecgen.plan import nodes
from codecgen.plan.columns import Leaf
from codecgen.plan.constant_folding import is_known
from codecgen.plan.nodes import Value
from codecgen.plan.value_ranges import range_of
from codecgen.plan.write_ops import Absent, Bits, Bytes, Constant, WriteOp
from codecgen.schema.types import BitMember

OpOf = Callable[[str, str], WriteOp | None]
"""The operation that writes a field, by whose it is and its name."""


def known_when_written(value: Value, op_of: OpOf) -> Value | None:
    """What is known of a value: a literal, null, or itself as what is never null. None: nothing."""
    match value:
        case nodes.VersionValue(version) if version is not None:
            return nodes.Literal(version)
        case nodes.FieldValue(holders=()):
            return _field(value, op_of(value.owner, value.field.name))
        case nodes.BitValue(word, m) if not word.holders:
            return _bits(value, m, op_of(word.owner, word.field.name))
        case nodes.EndValue(value=nodes.FieldValue(holders=()) as inner):
            found = _field(inner, op_of("end", inner.field.name))
            return found if found is not None and is_known(found) else None
    return None


def _field(value: nodes.FieldValue, op: WriteOp | None) -> Value | None:
    match op:
        case None:
            return None
        case Constant(value=constant):
            return nodes.Literal(constant)
        case Absent() | Bytes(column=None):
            return nodes.NullValue()
        case Bytes(column=Leaf() as leaf) if leaf.column.nullable:
            return None
    return replace(value, type=value.type.not_null()) if value.type.nullable else None


def _bits(value: nodes.BitValue, m: BitMember, op: WriteOp | None) -> Value | None:
    match op:
        case Constant(value=constant):
            return nodes.Literal(constant >> m.low & (1 << m.width) - 1, value.type.not_null())
        case Absent():
            return nodes.NullValue()
        case Bits(members=members):
            found = next((part.value for part in members if part.bits.name == m.name), None)
            if found is None or isinstance(found, nodes.Literal):
                return nodes.Literal(0 if found is None else found.value, value.type.not_null())
            if value.type.nullable or value.word.type.nullable:
                word = replace(value.word, type=value.word.type.not_null())
                return replace(value, word=word, type=value.type.not_null())
    return None


def number_of(value: Value) -> int | None:
    """A value that can be one number only."""
    if value.type.nullable:
        return None
    low, high = range_of(value)
    return low if low == high else None
