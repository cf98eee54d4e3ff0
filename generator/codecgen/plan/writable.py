"""What kernels can write, and what they say of the rest."""

from __future__ import annotations

from codecgen.plan import nodes
from codecgen.plan.columns import CasePlan
from codecgen.plan.constant_folding import fold
from codecgen.plan.layouts import FieldPlan
from codecgen.schema.model import Field
from codecgen.schema.types import BytesType


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
