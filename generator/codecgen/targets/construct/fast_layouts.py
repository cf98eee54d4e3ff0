"""What fast parsers need to know of a layout: sizes of its values, tagged fields, compressed arrays."""

from __future__ import annotations

from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.plan.read_ops import Absent, Bytes, Number, Require, Tags
from codecgen.plan.read_program import ReadProgram
from codecgen.schema.scalars import SCALARS
from codecgen.schema.types import ArrayType, BitsType, BytesType, ScalarType, TagsType
from codecgen.targets.construct.fast_struct_runs import size_of_code, struct_code


def has_tags(program: ReadProgram) -> bool:
    """Return whether a layout has a section of tagged fields."""
    return any(isinstance(op, Tags) for op in program.ops)


def size_of_elements(program: ReadProgram) -> int | None:
    """Return the size in bytes of a layout whose fields one :mod:`struct` format can unpack:
    scalars and bits in one byte order, and bytes or text of fixed size. A section of tagged fields
    without known tags, behind other fields, counts as 1 byte, as if it were empty. Return None for
    other layouts (varints, VLQs, conditional fields) and those without bytes.
    """
    size, endians = 0, set()
    for op in program.ops:
        match op:
            case Number(fp, name) if not SCALARS[name].is_variable:
                code = struct_code(SCALARS[name])
                size += size_of_code(code)
                if size_of_code(code) > 1 and not code.endswith("s"):
                    endians.add(fp.field.endian)
            case Bytes(_, BytesType(length=int() as length)):
                size += length
            case Tags(_, ()) if size:
                size += 1
            case Require() | Absent():
                pass
            case _:
                return None
    return size if size and len(endians) < 2 else None


def is_tags(fp: FieldPlan) -> bool:
    """Return whether a field is a section of tagged fields."""
    return isinstance(fp.field.type, TagsType)


def compressed_arrays(layout: LayoutPlan) -> list[FieldPlan]:
    """Return the arrays of a layout itself that may be compressed, in order; ``[]`` if there are
    none. Tagged arrays and arrays of held layouts are left out.
    """
    return [
        fp
        for fp in layout.in_order
        if isinstance(fp.field.type, ArrayType) and fp.field.type.compression is not None
    ]


def min_size(layout: LayoutPlan) -> int:
    """Return 1 if every value of the layout certainly has at least one byte, otherwise 0. One of
    these fields without a condition makes certain: a scalar, bits, a section of tagged fields, an
    array with a count, bytes of nonzero fixed size or with a length or terminator.
    """
    for fp in layout.in_order:
        if fp.when is not None:
            continue
        type_ = fp.field.type
        if isinstance(type_, ScalarType | BitsType) or is_tags(fp):
            return 1
        if isinstance(type_, BytesType) and type_.length not in (0, "rest"):
            return 1
        if isinstance(type_, ArrayType) and type_.count is not None:
            return 1
    return 0
