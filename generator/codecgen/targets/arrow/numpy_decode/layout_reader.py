"""Emits read programs as readers: one field of many structures at a time."""

from __future__ import annotations

from collections.abc import Iterable

from codecgen.plan import FieldPlan, LayoutPlan, Plan, read_ops
from codecgen.plan.nodes import Value
from codecgen.plan.read_ops import ReadOp, Require, fields_needed
from codecgen.plan.read_program import read_program
from codecgen.schema.model import Field
from codecgen.schema.scalars import SCALARS, fixed_size, is_integer
from codecgen.schema.types import BitsType, BytesType, ChoiceType, ScalarType
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import (
    FALSE,
    NONE,
    TRUE,
    Attribute,
    Call,
    Expr,
    Global,
    Lambda,
    Num,
    Text,
    Var,
    call,
)
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.field_variables import is_number, null_of
from codecgen.targets.arrow.numpy_decode.arithmetic import both
from codecgen.targets.arrow.numpy_decode.field_variables import RAW_INTEGER, Locals, NumpyFields

_VARINTS = ("varint", "varlong", "uvarint", "compact")
_WIDTHS = (1, 2, 4, 8)
"""Bytes of the integers that NumPy has types for."""


def kind_of(name: str, f: Field) -> str:
    """Return the NumPy type code of the integer type ``name``, such as ``">i4"``, in the byte order
    of ``f``. Raise Unsupported unless its size is 1, 2, 4 or 8 bytes.
    """
    size = SCALARS[name].width
    if size not in _WIDTHS:
        raise Unsupported(f"a number of the type {name}", f)
    order = "" if size == 1 else "<" if f.endian == "little" else ">"
    return f"{order}{'i' if SCALARS[name].signed else 'u'}{size}"


class NumpyLayoutReader:
    """Emits the body of a Python function that reads a layout of many structures at once with
    NumPy, field by field. ``structures`` is the StructureReader of the function: positions and ends in the bytes.
    ``needed`` names fields whose values later code uses; ``elements`` returns the name of the
    function for array elements. "Refuse" marks structures as invalid at run time.
    """

    def __init__(
        self,
        plan: Plan,
        layout: LayoutPlan,
        code: Builder,
        structures: Var,
        elements: ElementReader,
    ) -> None:
        self.plan = plan
        self.layout = layout
        self.code = code
        self.structures = structures
        self.elements = elements
        self.local = Locals()
        self.places: dict[str, Var] = {}
        self.fields = NumpyFields(plan, layout, self.local)

    # ------------------------------------------------------------ parts

    def method(self, name: str, *arguments: Expr, on: Var | None = None, **named: Expr) -> Call:
        """Return a method call on the reader, or on ``on``."""
        function = Attribute(on or self.structures, name)
        return Call(function, arguments, tuple(named.items()), False)

    def refuse(self, condition: Expr) -> None:
        """Emit the refusal of structures in which ``condition`` holds."""
        if condition != FALSE:
            self.code.do_call(self.method("refuse", condition))

    def condition(self, value: Value) -> Expr:
        """Return ``value`` as a mask, one bool for each structure."""
        return self.fields.arithmetic().condition(value)

    def broken(self, value: Value) -> Expr:
        """Return the mask of structures in which the condition ``value`` is false; emit nothing. A
        number that is null, and an order comparison with null, are false; a membership test ignores
        null and uses the number that stands in its place.
        """
        return self.fields.arithmetic().broken(value)

    @property
    def p(self) -> Expr:
        """Current position of the reader."""
        return Attribute(self.structures, "p")

    @property
    def end(self) -> Expr:
        """End of the current window of the reader."""
        return Attribute(self.structures, "end")

    # ------------------------------------------------------------ programs

    def emit(self, wanted: Iterable[str], stop: str | None = None) -> None:
        """Emit the reads and checks of the layout's fields up to the field ``stop`` (exclusive;
        None: all). Fields in ``wanted``, and fields that checks use, get a variable. Raise
        Unsupported if NumPy readers cannot read a field.
        """
        whole = read_program(self.plan, self.layout)
        needed = fields_needed(whole.ops, checks=True) | set(wanted)
        for op in whole.ops if stop is None else whole.ops_before(stop):
            self.op(op, needed)

    def op(self, op: ReadOp, needed: set[str]) -> None:
        """Emit one operation of the read program. Raise Unsupported for optional lengths, tagged
        fields and nested layouts. What kernels refuse does not come here: optional checksums,
        lengths that count themselves, unconditional compressed arrays, and choices.
        """
        match op:
            case read_ops.Open(length, when=when):
                if when is not None:
                    raise Unsupported("a length that may be left out", length.field)
                self.code.do_call(self.method("open", self.local.get(length.name)))
            case read_ops.Close():
                self.code.do_call(self.method("close"))
            case read_ops.Mark(checksum, at_end):
                self.code.assign(self.mark(checksum, at_end), self.p)
            case read_ops.Verify(checksum, ahead):
                self.verify(checksum, ahead)
            case read_ops.Require(field, condition):
                self.refuse(self.broken(condition))
            case read_ops.When(field, condition, then):
                self.sometimes(field, self.condition(condition), then, needed)
            case read_ops.Absent(field):
                self.absent(field.field, needed)
            case _:
                self.keep(op, self.read(op, self.structures, needed), needed)

    def mark(self, checksum: FieldPlan, at_end: bool) -> Var:
        """Return the variable of the start or the end of a checksum's range."""
        name = f"{'end' if at_end else 'start'}_of_{checksum.name}"
        return self.places.setdefault(name, Var(name))

    def verify(self, checksum: FieldPlan, ahead: bool) -> None:
        """Emit the comparison of a checksum, which refuses structures where it differs: over the
        rest of the window with ``ahead``, otherwise from the noted start to the current position; a
        noted end replaces the end of either range. The checksum is not optional.
        """
        assert checksum.when is None
        start, end = (self.p, self.end) if ahead else (self.mark(checksum, False), self.p)
        if f"end_of_{checksum.name}" in self.places:
            end = self.mark(checksum, True)
        stored, mask = self.local.get(checksum.name), checksum.field.mask
        algorithm = Text(str(checksum.field.checksum))
        arguments: list[Expr] = [algorithm, stored, start, end]
        if mask is not None:
            keep = NONE if mask.keep is None else Num(mask.keep)
            arguments.append(call("Mask", keep, mask.rotate_right, mask.add))
        self.code.do_call(self.method("checksum", *arguments))

    def absent(self, f: Field, needed: set[str]) -> None:
        """Emit the value of a field that this version lacks, if it is in ``needed``: null for
        bytes, 0 for numbers. Emit nothing for other fields and types.
        """
        if f.name not in needed:
            return
        if isinstance(f.type, BytesType):
            self.code.assign(self.local.get(f.name), self.method("nothing"))
        elif isinstance(f.type, ScalarType | BitsType):
            self.code.assign(self.local.get(f.name), self.method("zero"))

    def sometimes(
        self, fp: FieldPlan, condition: Expr, then: tuple[ReadOp, ...], needed: set[str]
    ) -> None:
        """Emit the read of a field that is present where ``condition`` holds, and its checks there.
        Where the field is a compressed array, the code refuses the structures. Raise Unsupported
        for an optional array whose elements are needed (unless numbers) or whose count is another
        field, or for a type that cannot be read.
        """
        f = fp.field
        first = then[0]
        if isinstance(first, read_ops.Elements):
            if first.type.compression is not None:
                self.refuse(condition)  # rows hold no rows of their own
                return
            if f.name in needed and not isinstance(first.element, ScalarType):
                raise Unsupported("a column of an array that may be left out", f)
            if first.type.counted_by is not None:
                raise Unsupported("an array that may be left out with its count elsewhere", f)
        value = self.read(first, self.structures, needed)
        self.keep(first, self.method("when", condition, Lambda(self.structures, value)), needed)
        for op in then[1:]:
            assert isinstance(op, Require)
            self.refuse(both([condition, self.broken(op.condition)]))

    def keep(self, op: ReadOp, value: Expr, needed: set[str]) -> None:
        """Emit the call ``value``, which reads a field, and assign its result to the field's
        variable if the field is in ``needed``. Results of skipped numbers and of arrays of numbers
        are never assigned.
        """
        f = op.field.field  # type: ignore[union-attr]
        passed = isinstance(op, read_ops.Elements) and isinstance(op.element, ScalarType)
        if f.name in needed and not passed and not self.skipped(op, needed):
            self.code.assign(self.local.get(f.name), value)
        else:
            assert isinstance(value, Call)
            self.code.do_call(value, f.name)

    def skipped(self, op: ReadOp, needed: set[str]) -> bool:
        """Return True for the read of a number of fixed size that is not in ``needed``, and of any
        float or uuid: its bytes are skipped. Return False for varints and other operations.
        """
        if not isinstance(op, read_ops.Number):
            return False
        f, name = op.field.field, op.type
        number = is_number(f) or name == RAW_INTEGER or isinstance(f.type, BitsType)
        return fixed_size(name) is not None and not (f.name in needed and number)

    def read(self, op: ReadOp, structures: Var, needed: set[str]) -> Expr:
        """Return the call on ``structures`` that reads a number, bytes or array. It only skips a number
        of fixed size that is not in ``needed``, and any float or uuid; bools and varints are always
        read. Raise Unsupported for tagged fields, nested layouts, and types that NumPy readers lack;
        TypeError for other operations.
        """
        match op:
            case read_ops.Number(field, name):
                if name == "bool":
                    return self.method("boolean", on=structures)
                if self.skipped(op, needed):
                    return self.method("skip", Num(SCALARS[name].width), on=structures)
                if name == RAW_INTEGER:
                    return self.method("fixed", Text(kind_of(name, field.field)), on=structures)
                return self.number(name, structures, field.field)
            case read_ops.Bytes(field, type_, after):
                return self.bytes(field.field, type_, after, structures)
            case read_ops.Elements():
                return self.array(op, structures)
            case read_ops.Tags(field):
                raise Unsupported("a section of tagged fields", field.field)
            case read_ops.Struct(field):
                raise Unsupported("a layout in the place of a field", field.field)
        raise TypeError(type(op).__name__)

    def number(self, name: str, structures: Var, f: Field) -> Expr:
        """Return the call that reads an integer of 1, 2, 4 or 8 bytes or a varint of the type
        ``name``. Raise Unsupported for other types, such as ``u64``, floats and 24-bit integers.
        """
        if is_integer(name) and SCALARS[name].fits_int64:
            return self.method("fixed", Text(kind_of(name, f)), on=structures)
        if name not in _VARINTS:
            raise Unsupported(f"a number of the type {name}", f)
        return self.method(name, on=structures)

    def bytes(self, f: Field, type_: BytesType, after: int | None, structures: Var) -> Expr:
        """Return the call that reads bytes or text of a fixed size, after a length, or up to the
        end, less the ``after`` bytes of the fields that follow. Raise Unsupported for a length of a
        type that :meth:`number` refuses.
        """
        named: dict[str, Expr] = {}
        if type_.length == "rest":
            assert after is not None
            size = self.method("rest", Num(after), on=structures)
        elif isinstance(type_.length, int):
            return self._bytes(structures, Num(type_.length), type_, named)
        else:
            size = self.number(type_.length, structures, f)  # type: ignore[assignment]
            null = null_of(type_, f)
            if null is not None:
                named["null"] = Num(null)
        return self._bytes(structures, size, type_, named)

    def _bytes(self, structures: Var, size: Expr, type_: BytesType, named: dict[str, Expr]) -> Expr:
        """Return the read of ``size`` bytes, marked as text if the type is text."""
        if type_.text:
            named["text"] = TRUE
        return self.method("bytes", size, on=structures, **named)

    def array(self, op: read_ops.Elements, structures: Var) -> Expr:
        """Return the call that reads an array inside a row. Raise Unsupported for an array of bytes
        or text, of numbers of varying size or without a count, or of layouts that NumPy readers
        cannot read.
        """
        f, type_ = op.field.field, op.type
        if isinstance(op.element, BytesType):
            raise Unsupported("an array of bytes or text", f)
        assert type_.length is None and not op.any_version
        assert not isinstance(op.element, ChoiceType)
        count: Expr = NONE
        if type_.fixed is not None:  # each has its own number all the same
            count = self.method("zero", on=structures) + type_.fixed
        elif type_.count is not None:
            count = self.number(type_.count, structures, f)
        elif type_.counted_by is not None:
            count = self.local.get(type_.counted_by)
        named = {"at_least": Num(type_.at_least)} if type_.at_least else {}
        null = null_of(type_, f)
        if null is not None:
            named["null"] = Num(null)
        if isinstance(op.element, ScalarType):
            if not is_integer(op.element.name) or count == NONE:
                raise Unsupported("an array of numbers that vary in length", f)
            size = Num(SCALARS[op.element.name].width)
            return self.method("numbers", count, size, on=structures, **named)
        read = Global(self.elements(f, op.element))
        return self.method("elements", count, read, on=structures, **named)


class ElementReader:
    """Protocol for the name of the reader of an array's elements."""

    def __call__(self, f: Field, element: LayoutPlan) -> str:
        """Return the name of the reader of the elements of ``f``."""
        raise NotImplementedError
