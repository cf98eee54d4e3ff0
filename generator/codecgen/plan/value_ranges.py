"""Compute the smallest and largest number that a value can be."""

from __future__ import annotations

from codecgen.plan import nodes
from codecgen.plan.nodes import Value
from codecgen.schema.lookup import integer_range
from codecgen.schema.types import BitsType, FieldType, ScalarType

Range = tuple[int, int]

I64: Range = (-(1 << 63), (1 << 63) - 1)
_COLUMNS = {"int8": 8, "int16": 16, "int32": 32, "bool": 1}
_UNSIGNED = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


def bits_range(bits: int) -> Range:
    """Return the smallest and largest two's complement number of ``bits`` bits, both included."""
    return -(1 << bits - 1), (1 << bits - 1) - 1


def column_range(type_: str) -> Range:
    """Return the smallest and largest number, both included, of a column type. Booleans have 0 to
    1; types other than integers and booleans count as int64.
    """
    if type_ in _UNSIGNED:
        return 0, (1 << _UNSIGNED[type_]) - 1
    bits = _COLUMNS.get(type_, 64)
    return (0, 1) if bits == 1 else bits_range(bits)


def exact_range(value: Value) -> Range:
    """Return the smallest and largest number, both included, that a value can have before its sums
    wrap around; only derived values are wrapped. Null branches are ignored, and null alone gives
    (0, 0). Float and uuid fields give (0, 1), other values without a range that of int64.
    """
    match value:
        case nodes.Literal(number) | nodes.Word(value=number):
            return number, number
        case nodes.VersionValue(version) if version is not None:
            return version, version
        case nodes.FieldValue(f):
            if isinstance(f.const, int):
                return int(f.const), int(f.const)
            ranges = [_type_range(type_) for type_ in f.all_types()]
            return min(low for low, _ in ranges), max(high for _, high in ranges)
        case nodes.BitValue(member=m):
            return 0, (1 << m.width) - 1
        case nodes.ElementValue(type_):
            return (0, 1) if type_.kind == "bool" else I64
        case nodes.EndValue(value=inner) | nodes.LookUpValue(value=inner):
            return exact_range(inner)
        case nodes.ColumnValue(column):
            return column_range(column.type)
        case nodes.DerivedValue(_, inner, bits):
            return wrapped_range(exact_range(inner), bits)
        case nodes.Sum(operator, left, right):
            (a, b), (c, d) = exact_range(left), exact_range(right)
            return (a + c, b + d) if operator == "+" else (a - d, b - c)
        case nodes.Conditional(_, then, otherwise):
            sides = [s for s in (then, otherwise) if not isinstance(s, nodes.NullValue)]
            ranges = [exact_range(side) for side in sides] or [(0, 0)]
            return min(low for low, _ in ranges), max(high for _, high in ranges)
        case nodes.Comparison() | nodes.Logical() | nodes.Negation():
            return 0, 1
        case nodes.NullValue():
            return 0, 0
        case _:
            return I64


def _type_range(type_: FieldType) -> Range:
    """Return the range of a field type, both ends included: that of its integer or bit base, (0, 1)
    for other scalars such as booleans and floats, and that of int64 for all other types.
    """
    match type_:
        case ScalarType(name) | BitsType(name):
            return integer_range(name) or (0, 1)
    return I64


def wrapped_range(exact: Range, bits: int) -> Range:
    """Return ``exact`` if it fits ``bits`` bits, and the whole range of ``bits`` bits otherwise."""
    low, high = bits_range(bits)
    return exact if low <= exact[0] and exact[1] <= high else (low, high)


def range_of(value: Value) -> Range:
    """Return the smallest and largest number, both included, that a value can have if its sums wrap
    in 64 bits: :func:`exact_range`, or the range of int64 if that does not hold it.
    """
    return wrapped_range(exact_range(value), 64)
