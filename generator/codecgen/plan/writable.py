"""Reject what kernels cannot write."""

from __future__ import annotations

from codecgen.plan import nodes
from codecgen.plan.columns import CasePlan
from codecgen.plan.constant_folding import fold
from codecgen.plan.layouts import FieldPlan
from codecgen.schema.lookup import null_as_read
from codecgen.schema.model import Field
from codecgen.schema.types import FROM_OUTSIDE, ArrayType, BytesType


class WriteError(Exception):
    """A field or column that kernels cannot write. ``field`` is the field to name in the message."""

    def __init__(self, reason: str, field: Field) -> None:
        super().__init__(
            f'"{field.name}" is {reason}, which kernels cannot write; codecgen explain C023 says what to do'
        )
        self.reason = reason
        self.field = field


def require_null(fp: FieldPlan, type_: BytesType) -> None:
    """Raise WriteError unless a bytes or text field that no column fills can be null and its
    default, if any, is null.
    """
    if type_.null is None:
        raise WriteError("a field without a value in `write` that cannot be null", fp.field)
    if fp.default is not None and not isinstance(fold(fp.default), nodes.NullValue):
        raise WriteError(
            "a field without a value in `write`, with a default that is not null", fp.field
        )


def require_distinct_null(type_: ArrayType | BytesType, f: Field) -> None:
    """Raise WriteError if null is written as a number (as it is after decoding) that is not
    negative, so that a valid length or count also means null.
    """
    null = null_as_read(type_)
    if null is not None and null >= 0:
        raise WriteError(f"nullable, with a length of null ({type_.null}) that is not negative", f)


def require_writable_bytes(type_: BytesType, f: Field) -> None:
    """Raise WriteError if bytes of a column could read back differently: the field is padded with
    zero bytes, or its null is also a valid length.
    """
    if type_.padded:
        raise WriteError("filled up with zero bytes", f)
    require_distinct_null(type_, f)


def require_writable_rows(array: ArrayType, f: Field) -> None:
    """Raise WriteError unless an array can hold any number of rows from one on: it has no end
    condition ``until``, no fixed count, no minimum count above 1, and no null that is also a count.
    """
    require_no_end_condition(array, f)
    if array.fixed is not None or array.at_least > 1:
        raise WriteError("an array of rows that says how many rows there are", f)
    require_distinct_null(array, f)


def require_no_end_condition(array: ArrayType, f: Field) -> None:
    """Raise WriteError if an element marks the end of an array."""
    if array.until is not None:
        raise WriteError("an array whose elements say which one is the last", f)


TAGGED = "a tagged field of rows that are written"


def require_untagged(case: CasePlan) -> None:
    """Raise WriteError if a view writes a tagged field of the entry or of its elements. Kernels
    leave tagged fields at their defaults.
    """
    own = case.element if case.array is None else case.entry
    for layout, given in ((own, case.write_entry), (case.element, case.write_item)):
        names = {name.partition(".")[0] for name in given}
        for fp in layout.tagged:
            if fp.name in names:
                require_writable(fp.field)


def require_writable(f: Field) -> None:
    """Raise WriteError if kernels cannot write a field: a tagged field, bytes with a length from
    outside, or a length or count that is a field plus or minus a number. Also raise it for a length
    whose range begins with itself, and for a checksum with several ranges or zeroed fields. Masks
    and algorithms of checksums are not checked.
    """
    if f.tag is not None:
        raise WriteError(TAGGED, f)
    if isinstance(f.type, ArrayType) and f.type.plus:
        raise WriteError("a count that is a field plus or minus a number", f)
    if f.excess:
        raise WriteError("a length that is a field plus or minus a number", f)
    if isinstance(f.type, BytesType) and f.type.length == FROM_OUTSIDE:
        raise WriteError("bytes with a length from outside", f)
    if f.measures is not None and f.measures.first == f.name:
        raise WriteError("a length that counts itself", f)
    if len(f.covers) > 1:
        raise WriteError("a checksum of several ranges", f)
    if f.zero:
        raise WriteError("a checksum for which fields count as zero bytes", f)
