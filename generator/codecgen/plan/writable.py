"""What kernels can write, and what they say of the rest."""

from __future__ import annotations

from codecgen.plan import nodes
from codecgen.plan.columns import CasePlan
from codecgen.plan.constant_folding import fold
from codecgen.plan.layouts import FieldPlan
from codecgen.schema.lookup import null_as_read
from codecgen.schema.model import Field
from codecgen.schema.types import ArrayType, BytesType


class WriteError(Exception):
    """Something that cannot be written, and the field to name."""

    def __init__(self, reason: str, field: Field) -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = field


def writes_null(fp: FieldPlan, type_: BytesType) -> None:
    """See that null is what a field of bytes is written as that no column is for."""
    if type_.null is None:
        raise WriteError("without a value to write, and cannot be null", fp.field)
    if fp.default is not None and not isinstance(fold(fp.default), nodes.NullValue):
        raise WriteError("without a value to write, and has a default that is not null", fp.field)


def see_null_apart(type_: ArrayType | BytesType, f: Field) -> None:
    """See that no length and no count that may be written means null."""
    null = null_as_read(type_)
    if null is not None and null >= 0:
        raise WriteError(f"null written as {type_.null}", f)


def see_bytes(type_: BytesType, f: Field) -> None:
    """See that all bytes of a column that are written are read again."""
    if type_.padded:
        raise WriteError("filled up with zero bytes", f)
    see_null_apart(type_, f)


def see_rows(array: ArrayType, f: Field) -> None:
    """See that any number of rows, at least one, is what an array may hold."""
    see_until(array, f)
    if array.fixed is not None or array.at_least > 1:
        raise WriteError("an array of rows that says how many rows there are", f)
    see_null_apart(array, f)


def see_until(array: ArrayType, f: Field) -> None:
    """See that an array does not end with an element that says so."""
    if array.until is not None:
        raise WriteError("an array whose elements say which one is the last", f)


KERNEL_CHECKSUMS = ("crc32", "crc32c")
"""The checksums that kernels compute."""


TAGGED = "a tagged field of rows that are written"


def see_untagged(case: CasePlan) -> None:
    """See that no value is given for a tagged field: they keep their defaults."""
    own = case.element if case.array is None else case.entry
    for layout, given in ((own, case.write_entry), (case.element, case.write_item)):
        names = {name.partition(".")[0] for name in given}
        for fp in layout.tagged:
            if fp.name in names:
                see_writable(fp.field)


def see_writable(f: Field) -> None:
    """See that kernels have a way of writing a field."""
    if f.tag is not None:
        raise WriteError(TAGGED, f)
    if f.measures is not None and f.measures.first == f.name:
        raise WriteError("a length that counts itself, which kernels do not write", f)
    if len(f.covers) > 1:
        raise WriteError("a checksum of several ranges, which kernels do not write", f)
    if f.zero:
        raise WriteError("a checksum for which fields count as zero bytes", f)
    if f.mask is not None:
        raise WriteError("a checksum of which only some bits are kept", f)
    if f.checksum is not None and f.checksum not in KERNEL_CHECKSUMS:
        raise WriteError(f"a checksum that kernels lack, {f.checksum}", f)
