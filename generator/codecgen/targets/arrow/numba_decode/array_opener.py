"""What the index notes of an entry whose array holds rows, and what entries have at fixed places."""

from __future__ import annotations

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.columns import CasePlan
from codecgen.plan.nodes import Value
from codecgen.plan.read_ops import fields_needed
from codecgen.plan.read_program import read_program
from codecgen.plan.size_bounds import size_bounds
from codecgen.schema.model import Field
from codecgen.schema.types import ArrayType, BitsType, BytesType, ChoiceType, ScalarType
from codecgen.targets.arrow.arithmetic import Refused
from codecgen.targets.arrow.checks import Unsupported, integer_of
from codecgen.targets.arrow.code_tree import (
    TRUE,
    Expr,
    Num,
    Var,
    all_of,
    any_of,
    effect,
    invert,
)
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.field_variables import (
    ENTRY,
    Fields,
    Variables,
    check_number,
    null_of,
)
from codecgen.targets.arrow.numba_decode.layout_reader import LayoutReader
from codecgen.targets.arrow.numba_decode.layout_rules import (
    RULES,
    WITH_RULES,
    check_fields,
    fields_of_rules,
)
from codecgen.targets.arrow.numba_decode.view import Kernels


def min_size_of(plan: Plan, case: CasePlan) -> int:
    """Return the minimum size in bytes of a row of ``case``, at least 1, by which memory for rows is allocated."""
    return max(1, size_bounds(plan, case.element).min_size)


def bytes_to_fixed(entry: LayoutPlan) -> int:
    """Return the offset, in bytes, after the last unconditional field of ``entry`` that has a fixed
    offset and size, or 0 if it has none.
    """
    ends = [
        (fp.offset or 0) + (fp.size or 0)
        for fp in entry.fields
        if fp.offset is not None and fp.size is not None and fp.when is None
    ]
    return max(ends, default=0)


def base_type(f: Field) -> str:
    """Return the name of the scalar type of a number or bits field. Raises Unsupported for other types."""
    integer_of(f)
    return f.type.base if isinstance(f.type, BitsType) else getattr(f.type, "name", "")


def condition_of(fields: Fields, value: Value | None, f: Field) -> Expr | None:
    """Return a condition of a view as a test on fields of the entry, with constants folded; None if
    ``value`` is None. Raise Unsupported, which names ``f``, if kernels cannot express it.
    """
    if value is None:
        return None
    try:
        return fields.arithmetic().condition(fields.folded(value))
    except Refused as error:
        raise Unsupported(error.reason, f) from None


class ArrayOpener:
    """Emits kernel code that reads an entry up to the array whose elements are rows, and stores in
    the entry's index row what pass 2 needs for the rows. ``max_elements`` is the limit for the number of
    elements; the kernel "fails" by noting the check and returning 0.
    """

    def __init__(
        self,
        kernels: Kernels,
        case: CasePlan,
        code: Builder,
        reader: LayoutReader,
        variables: Variables,
        row: Var,
        max_elements: Var,
        full_check: Var,
    ) -> None:
        self.kernels = kernels
        self.case = case
        self.code = code
        self.reader = reader
        self.variables = variables
        self.row = row
        self.max_elements = max_elements
        self.full_check = full_check

    def emit(self, end: Expr) -> None:
        """Emit code that reads and checks the entry up to its rows, stores its fields, codec,
        section and row count (-1: unknown) in the index row, and returns 1. It also fails if the
        array is absent, or for more uncompressed rows than bytes allow. Raise Unsupported if the
        array is not last, has a fixed count, holds anything but one layout in one version, or is
        nullable with a length or ``at_least``, or if kernels cannot express a field, rule, checksum
        or codec.
        """
        case, code, reader, slots = self.case, self.code, self.reader, self.kernels.slots
        assert case.array is not None
        f = case.array.field
        type_ = f.type
        if case.entry.fields[-1] is not case.array or not isinstance(type_, ArrayType):
            raise Unsupported("the source of rows, but not an array at the end of its layout", f)
        if type_.fixed is not None:
            raise Unsupported("an array of rows with a fixed number of elements", f)
        if isinstance(type_.element, ScalarType):
            raise Unsupported("rows from an array of numbers", f)
        if type_.null is not None and (type_.length is not None or type_.at_least):
            raise Unsupported("an array of rows that may be null, with a length or `at_least`", f)
        if isinstance(type_.element, BytesType):
            raise Unsupported("rows from an array of bytes or text", f)
        if isinstance(type_.element, ChoiceType):
            raise Unsupported("rows from an array of a choice", f)
        other = type_.element.layout != case.entry.name
        if other and len(self.kernels.plan.held(type_.element, case.entry)) > 1:
            raise Unsupported("an array of layouts whose bytes say which version they are", f)
        code.do("store_64", self.row + slots["CASE"], case.number)
        needed = self.kernels.entry_fields(case)
        needed |= fields_needed(read_program(self.kernels.plan, case.entry).ops, checks=True)
        needed |= fields_of_rules(self.kernels.plan, case.entry)
        end = reader.read_layout(case.entry, ENTRY, end, needed, stop=f.name, ruled=True)
        fields = Fields(self.kernels.plan, case.entry, ENTRY, self.variables)
        if case.entry.rules:
            apply = reader.place_variable(*RULES)
            self.code.assign(apply, self.full_check & WITH_RULES)
            check_fields(reader.values, fields, apply)
        if case.array.when is not None:
            there = condition_of(fields, case.array.when, f)
            if there is not None and there != TRUE:
                reader.values.fail_if(invert(there), f)
        count = self.count(type_, f, end)
        codec: Expr = Num(0)
        if type_.compression is not None:
            codec = Var("codec")
            self.name_codec(codec, fields, f)
        if type_.length is not None:
            length = Var("length")
            reader.values.read_number(type_.length, length, end, f)
            reader.values.fail_if(any_of([length < 0, length.ne(end - reader.p)]), f)
            reader.values.loose = 0
        if count is not None and isinstance(codec, Var) and type_.length is None:
            with code.when(count.eq(0)):
                reader.values.fail_if(reader.p.ne(end), f)
                code.assign(codec, 0)
        if count is not None:
            test = count > (end - reader.p) // min_size_of(self.kernels.plan, case)
            if isinstance(codec, Var):
                test = all_of([codec.eq(0), test])
            with code.when(test):
                failed = effect("fail", self.row, -1, 0)
                code.emit_return(failed, "more rows than there are bytes for")
        self.checksums(end, codec)
        code.do("store_64", self.row + slots["CODEC"], codec)
        code.do("store_64", self.row + slots["SECTION"], reader.p)
        code.do("store_64", self.row + slots["SECTION_END"], end)
        code.do("store_64", self.row + slots["COUNT"], Num(-1) if count is None else count)
        for (part, name), slot in self.kernels.case_slots(case).items():
            if part == ENTRY:
                code.do("store_64", self.row + slot, self.variables.found[ENTRY, name])
        code.emit_return(1)

    def count(self, type_: ArrayType, f: Field, end: Expr) -> Expr | None:
        """Emit the read of the element count and return its variable; a null array counts 0. Return
        None, and emit nothing, if the entry states no count. The kernel fails if the count is
        negative or above ``max_elements``. Raise Unsupported if kernels cannot read the count or its null.
        """
        found: Expr | None = None
        if type_.count is not None:
            number = Var("count")
            self.reader.values.read_number(type_.count, number, end, f)
            self.reader.values.check_end(end, f)
            found = number
        elif type_.counted_by is not None:
            counted = self.case.entry.field(type_.counted_by)
            assert counted is not None
            check_number(counted.field)
            found = self.variables.get(ENTRY, type_.counted_by)
        null = null_of(type_, f)
        if found is not None and null is not None:  # no rows
            stored, found = found, Var("count")
            self.code.assign(found, stored)
            with self.code.when(found.eq(null)):
                self.code.assign(found, 0)
        if found is not None:
            self.reader.values.fail_if(any_of([found < 0, found > self.max_elements]), f)
        return found

    def name_codec(self, codec: Var, fields: Fields, f: Field) -> None:
        """Emit the assignment of the number of the compression codec to ``codec``. Raise
        Unsupported if kernels cannot express the value that names the codec, or if its 0 names a
        codec.
        """
        assert self.case.array is not None and self.case.array.codec is not None
        if 0 in self.case.codecs and self.case.codecs[0] is not None:
            raise Unsupported("compressed by an enum whose 0 names a codec", f)
        try:
            value = fields.arithmetic().number(fields.folded(self.case.array.codec))
        except Refused as error:
            raise Unsupported(error.reason, f) from None
        self.code.assign(codec, value)

    def checksums(self, end: Expr, codec: Expr) -> None:
        """Emit the comparison of the reader's pending checksums if the rows are compressed, and
        clear that list; pass 2 compares those of uncompressed rows. Store in the index, as
        ``CHECKED``, whether pass 1 compares them. Raise Unsupported if the range of a checksum does
        not end with the rows.
        """
        code, reader, checked = self.code, self.reader, self.row + self.kernels.slots["CHECKED"]
        for c, after in reader.pending:
            if after != end:
                raise Unsupported("a checksum whose range ends where the rows do not", c.field)
        if isinstance(codec, Var):
            for c, _ in reader.pending:
                place = reader.place_variable(ENTRY, f"start of {c.name}")
                reader.compare_checksum(c, ENTRY, place, end - place, (codec,))
            code.do("store_64", checked, codec)
        else:
            code.do("store_64", checked, 0)
        reader.pending.clear()
