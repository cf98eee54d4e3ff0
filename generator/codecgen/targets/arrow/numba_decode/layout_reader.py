"""Emits read programs as kernels: the fields of a layout, one after the other, and the layouts that it holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from codecgen.plan import FieldPlan, LayoutPlan, Plan, read_ops
from codecgen.plan.nodes import Value
from codecgen.plan.read_ops import ReadOp, fields_needed
from codecgen.plan.read_program import read_program
from codecgen.plan.tag_defaults import default_bytes, default_data, default_number
from codecgen.runtime.tags import HIGHEST, MAX_COUNT
from codecgen.schema.model import Field
from codecgen.schema.scalars import fixed_size
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    BytesType,
    ChoiceType,
    ScalarType,
    StructType,
)
from codecgen.targets.arrow.arithmetic import Refused, negated_condition
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.checksums import computed_checksum
from codecgen.targets.arrow.code_tree import Expr, Num, Var, all_of, any_of, call
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.column_outputs import ColumnOutputs, Target
from codecgen.targets.arrow.numba_decode.field_variables import (
    Fields,
    Variables,
    check_number,
    field_of,
    is_number,
    is_raw,
    null_of,
    part_of,
)
from codecgen.targets.arrow.numba_decode.layout_rules import refuse_rules
from codecgen.targets.arrow.numba_decode.value_reader import ValueReader

_MIN_TAGGED = 2
"""Min bytes of a tagged field: a tag and a size."""

Mode = Literal["open", "rows", "hop"]


@dataclass(frozen=True, slots=True)
class Window:
    """Bytes that a length measures: the end of those ``around`` them. With ``when`` the length may be left out."""

    length: str
    around: Expr
    last: str | None
    when: Expr | None = None


class LayoutReader:
    """Emits kernel code that reads the fields of a layout in order at the address ``p``, with
    checks, checksums and windows (the bytes that a length field measures). Mode ``open`` reads an
    entry up to its rows, ``rows`` also writes columns, ``hop`` only checks sizes. ``wanted`` names
    fields whose values later code uses; ``end`` limits the bytes that may be read.

    Attributes:
        values: Reader of single values.
        windows: Windows that are open, from the outermost on.
        ends: Variables for the end and the length of each window, by the field that is its length.
        held: Names of the layouts that are being read, from the outermost on.
        pending: Checksums that are verified later, with the ends of what they cover.
    """

    leaves_layouts = False
    """Whether entries with a tagged layout may be left to the reference codecs."""

    def __init__(
        self,
        plan: Plan,
        code: Builder,
        mode: Mode,
        variables: Variables,
        p: Var,
        outputs: ColumnOutputs,
    ) -> None:
        """Prepare to emit reads at the address ``p`` into ``code``.

        The modes ``open`` and ``rows`` check everything, and ``rows`` also gives values to the columns of ``outputs``. The
        mode ``hop`` only checks that nothing ends too early.
        """
        self.plan = plan
        self.code = code
        self.mode = mode
        self.variables = variables
        self.p = p
        self.outputs = outputs
        self.values = ValueReader(code, variables, p, outputs, checks=self.checks)
        self.windows: list[Window] = []
        self.ends: dict[str, tuple[Var, Var]] = {}
        self.held: list[str] = []
        self.pending: list[tuple[FieldPlan, Expr]] = []

    @property
    def checks(self) -> bool:
        """Whether values are checked, not only sizes."""
        return self.mode != "hop"

    # ------------------------------------------------------------ programs

    def read_layout(
        self,
        layout: LayoutPlan,
        part: str,
        end: Expr,
        needed: Iterable[str],
        stop: str | None = None,
        *,
        ruled: bool = False,
    ) -> Expr:
        """Emit the reads of all fields of a layout, or of those before the field ``stop``, and
        return the end of the bytes that may be read after them (``end``, or that of a window open
        at ``stop``). In mode ``hop``, once the ``needed`` fields are read, jump over the rest if a
        length field measures it. Raise Unsupported if kernels cannot read a field, or for rules
        unless ``ruled``.

        Args:
            layout: The layout.
            part: Name of the place where its fields lie.
            end: End of the bytes that may be read.
            needed: Fields that others ask for.
            stop: First field that is not read. Without it all are.
            ruled: The caller applies or refuses the rules of the layout.
        """
        if not ruled:
            refuse_rules(layout)
        whole = read_program(self.plan, layout)
        ops = whole.ops if stop is None else whole.ops_before(stop)
        wanted = fields_needed(whole.ops, checks=self.checks) | set(needed)
        wanted |= self.outputs.wanted_fields(part)
        outer, self.windows, self.values.covered = self.windows, [], 0
        self.held.append(layout.name)
        fields = Fields(self.plan, layout, part, self.variables)
        for i, op in enumerate(ops):
            measured = self.windows and self.windows[0].last is None
            if not self.checks and measured and not self.has_more_wanted(ops[i:], set(needed)):
                end = self.skip_to_end(layout)
                self.windows = outer
                self.held.pop()
                return end
            end = self.print_op(op, ops, i, fields, end, wanted)
        if stop is None:
            self.values.check_end(end, layout.fields[-1].field)
        else:
            self.values.check_end(
                end, layout.layout.fields[0] if not layout.field(stop) else field_of(layout, stop)
            )
        self.windows = outer
        self.held.pop()
        return end

    def has_more_wanted(self, ops: tuple[ReadOp, ...], wanted: set[str]) -> bool:
        """Return whether one of ``ops`` reads, or sets to absent, a field whose name is in
        ``wanted``; tagged fields count too. Operations for checks and windows count as False.
        """
        for op in ops:
            match op:
                case read_ops.When(field) | read_ops.Number(field) | read_ops.Bytes(field):
                    if field.name in wanted:
                        return True
                case read_ops.Elements(field) | read_ops.Struct(field) | read_ops.Absent(field):
                    if field.name in wanted:
                        return True
                case read_ops.Choose(field):
                    if field.name in wanted:
                        return True
                case read_ops.Tags(known=known):
                    if any(fp.name in wanted for fp, _ in known):
                        return True
        return False

    def skip_to_end(self, layout: LayoutPlan) -> Expr:
        """Emit the jump to the end of the outermost window of ``layout``, and return the end of the
        bytes around it. The end is not checked here: :meth:`open_window` has done that. Raise
        IndexError if no window is open.
        """
        inner = self.windows[0]
        end = self.ends[inner.length][0]
        self.code.assign(self.p, end)
        self.values.loose = 0
        self.values.check_end(inner.around, layout.fields[-1].field)
        return inner.around

    def print_op(
        self,
        op: ReadOp,
        ops: tuple[ReadOp, ...],
        i: int,
        fields: Fields,
        end: Expr,
        wanted: set[str],
    ) -> Expr:
        """Emit the code of ``op``, the operation at index ``i`` of ``ops``, and return the end of
        the bytes that may be read afterwards, which windows change. Requirements and checksums emit
        nothing in mode ``hop``. Raise Unsupported if kernels cannot express the operation.
        """
        match op:
            case read_ops.Open():
                return self.open_window(op, fields, end)
            case read_ops.Close():
                return self.close_window(op, fields.layout, end)
            case read_ops.Mark(checksum, at_end):
                self.note_place(checksum, at_end, fields)
            case read_ops.Verify(checksum, ahead):
                self.verify_here(checksum, ahead, fields, end)
            case read_ops.Require(field, condition):
                if self.checks:
                    self.check_requirement(field.field, condition, fields)
            case read_ops.When(field, condition, then):
                self.read_optional(field, condition, then, fields, end, wanted)
            case read_ops.Absent(field):
                self.set_absent(field.field, fields.part)
            case _:
                self.check_fixed_sizes(ops[i:], fields.layout, end)
                self.read_field(op, fields, end, wanted)
        return end

    def print_field_op(self, op: ReadOp, fields: Fields, end: Expr, wanted: set[str]) -> None:
        """Emit one operation inside a conditional or tagged field: a requirement, or the read of
        the field up to ``end``. Raise Unsupported if kernels cannot express it.
        """
        if isinstance(op, read_ops.Require):
            self.print_op(op, (op,), 0, fields, end, wanted)
        else:
            self.read_field(op, fields, end, wanted)

    def read_field(self, op: ReadOp, fields: Fields, end: Expr, wanted: set[str]) -> None:
        """Emit the code of an operation that reads a field. Its value goes to the column that shows
        the field, if there is one; a number also goes to its variable if it has a column or its
        name is in ``wanted``, and is else checked and skipped. Raise Unsupported for a choice, or
        if kernels cannot read the type; TypeError for padding and operations that read no field,
        which :func:`refuse_unsupported_layout` and :meth:`print_op` keep away.
        """
        part = self.values.part = fields.part
        match op:
            case read_ops.Number(fp, name):
                self.read_number_field(fp.field, name, fields, end, wanted)
            case read_ops.Bytes(fp, type_, after):
                n, target = (
                    self.variables.get(part, fp.name),
                    self.outputs.find_target(part, fp.name),
                )
                inside = bool(self.windows) and self.windows[-1].last == fp.name
                self.values.read_bytes(fp.field, type_, after, n, target, end, ends_window=inside)
            case read_ops.Elements():
                self.read_array(op, fields, end)
            case read_ops.Struct(fp, layout):
                self.assign_given(fp, fields, part_of(part, fp.name))
                self.read_struct(fp.field, layout, fields, end)
            case read_ops.Tags():
                self.read_tags(op, fields, end, wanted)
            case read_ops.Choose(fp):
                raise Unsupported("one of several layouts", fp.field)
            case _:
                raise TypeError(type(op).__name__)
        size = op.field.size
        self.values.covered = 0 if size is None or not part else max(0, self.values.covered - size)

    def read_number_field(
        self, f: Field, name: str, fields: Fields, end: Expr, wanted: set[str]
    ) -> None:
        """Emit the read of a number field into its column, if it has one, and into its variable if
        it has a column or is in ``wanted``; otherwise it is only checked and skipped. Raise
        Unsupported if kernels cannot read its type.
        """
        target = self.outputs.find_target(fields.part, f.name)
        variable = self.variables.get(fields.part, f.name)
        known = is_number(f) or is_raw(f) or isinstance(f.type, BitsType)
        self.values.read_scalar(
            name, variable if f.name in wanted and known else None, target, fields.part, end, f
        )

    def check_requirement(self, f: Field, condition: Value, fields: Fields) -> None:
        """Emit code by which the kernel fails at ``f`` unless ``condition`` holds. Raise
        Unsupported if kernels cannot express the condition.
        """
        try:
            self.values.fail_if(negated_condition(fields.arithmetic(), condition), f)
        except Refused as error:
            raise Unsupported(error.reason, f) from None

    def condition_of(self, value: Value, fields: Fields, f: Field) -> Expr:
        """Return ``value`` as a condition of kernel code. Raise Unsupported, which names the field
        ``f``, if kernels cannot express it.
        """
        try:
            return fields.arithmetic().condition(value)
        except Refused as error:
            raise Unsupported(error.reason, f) from None

    def read_optional(
        self,
        fp: FieldPlan,
        condition: Value,
        then: tuple[ReadOp, ...],
        fields: Fields,
        end: Expr,
        wanted: set[str],
    ) -> None:
        """Emit code that reads and checks a field where ``condition`` holds, and elsewhere sets it
        to absent. ``then`` has the operations of the field; if it is a compressed array, the kernel
        fails where the condition holds. Raise Unsupported if kernels cannot express the condition
        or the field.
        """
        test = self.condition_of(condition, fields, fp.field)
        self.values.covered = 0
        loose = self.values.loose
        with self.code.when(test):
            for op in then[:1] if _never_in_rows(then[0]) else then:
                self.print_field_op(op, fields, end, wanted)
        self.values.covered = 0
        self.values.loose = max(loose, self.values.loose)
        with self.code.otherwise():
            self.set_absent(fp.field, fields.part)
        branch = self.code.body[-1]
        if not branch.arms[-1][1]:  # type: ignore[attr-defined]
            branch.arms.pop()  # type: ignore[attr-defined]

    def set_absent(self, f: Field, part: str) -> None:
        """Emit the values of an absent field: its variable is -1 for bytes and 0 for numbers; its
        column, if it has one, becomes null, or empty if it is not nullable.
        """
        variable = self.variables.get(part, f.name)
        target = self.outputs.find_target(part, f.name)
        if isinstance(f.type, BytesType):
            self.code.assign(variable, -1)
        elif isinstance(f.type, ScalarType | BitsType):
            self.code.assign(variable, 0)
        if target is not None:
            self.outputs.write_missing(target)

    # ------------------------------------------------------------ windows and checksums

    def open_window(self, op: read_ops.Open, fields: Fields, end: Expr) -> Expr:
        """Open the window of bytes that a length field, read before, measures, and return the
        window's end. The kernel fails if the length is negative or reaches beyond ``end``; where an
        optional length is absent, the window reaches to ``end`` less the fields after it. Raise
        Unsupported if the length is no integer that fits int64, counts itself, or is optional and
        measures anything but one field of bytes, or one that fields of varying size follow.
        """
        m, code = op.length, self.code
        check_number(m.field)
        if m.own_bytes:
            raise Unsupported("a length that counts itself", m.field)
        length = self.variables.get(fields.part, m.name)
        inner = Var(f"end_of_{op.first.name}")
        self.ends[m.name] = (inner, length)
        too_long = any_of([length < 0, length > end - self.p])
        self.values.covered = 0
        if op.when is None:
            self.values.fail_if(too_long, m.field)
            self.values.loose = 0
            code.assign(inner, self.p + length)
            self.windows.append(Window(m.name, end, op.last))
            return inner
        rest = getattr(op.first.field.type, "length", None) == "rest"
        alone = m.measures is not None and m.measures.last == op.first.name
        if not rest or not alone or not isinstance(op.first.field.type, BytesType):
            raise Unsupported("a length that may be left out", m.field)
        if op.after is None:
            raise Unsupported("bytes to the end with fields after them that vary", op.first.field)
        test = self.condition_of(op.when, fields, m.field)
        with code.when(test):
            self.values.fail_if(too_long, m.field)
            code.assign(inner, self.p + length)
        with code.otherwise():
            code.assign(inner, end - op.after if op.after else end)
        self.windows.append(Window(m.name, end, op.last or op.first.name, test))
        return inner

    def close_window(self, op: read_ops.Close, layout: LayoutPlan, end: Expr) -> Expr:
        """Close the innermost window, which ends at ``end``, and return the end of the bytes around
        it. Emit code by which the kernel fails if its length is present and the reads did not stop
        at ``end``; in mode ``hop``, for a window to the end of the layout, jump to ``end`` instead.
        """
        window = self.windows.pop()
        f = op.at.field
        differs = self.p.ne(end)
        if not self.checks and window.last is None:
            self.code.assign(self.p, end)
        else:
            self.values.fail_if(
                differs if window.when is None else all_of([window.when, differs]), f
            )
        if window.when is None:
            self.values.loose = 0
        self.values.covered = 0
        return window.around

    def note_place(self, c: FieldPlan, at_end: bool, fields: Fields) -> None:
        """Emit the assignment of ``p`` to the variable for the start or, with ``at_end``, the end
        of the range of a checksum. Emit nothing in mode ``hop``. Raise Unsupported if the checksum
        field is optional.
        """
        if self.checks:
            if c.when is not None:
                raise Unsupported("a checksum that may be left out", c.field)
            name = f"end of {c.name}" if at_end else f"start of {c.name}"
            self.code.assign(self.place_variable(fields.part, name), self.p)

    def place_variable(self, part: str, name: str) -> Var:
        """Return the variable of a property of a part, such as ``start of crc``. Repeated calls
        return the same variable.
        """
        key = (part, name)
        if key not in self.variables.found:
            where = "part" if "/" in part else part
            self.variables.found[key] = Var(f"{where}_{name.replace(' ', '_')}")
        return self.variables.found[key]

    def verify_here(self, c: FieldPlan, ahead: bool, fields: Fields, end: Expr) -> None:
        """Emit code by which the kernel fails if a checksum differs: over the bytes from its noted
        start to its noted end (else to ``p``), or with ``ahead`` from ``p`` to ``end``, which mode
        ``open`` only notes in ``pending`` for fields of the entry itself. Emit nothing in mode
        ``hop``. Raise Unsupported if the checksum is optional, or if ``ahead`` has no window to the
        end of the layout.
        """
        if not self.checks:
            return
        if c.when is not None:
            raise Unsupported("a checksum that may be left out", c.field)
        if not ahead:
            start = self.place_variable(fields.part, f"start of {c.name}")
            stop: Expr = self.p
            if (fields.part, f"end of {c.name}") in self.variables.found:
                stop = self.place_variable(fields.part, f"end of {c.name}")
            self.compare_checksum(c, fields.part, start, stop - start)
            return
        if not any(window.last is None for window in self.windows):
            raise Unsupported("a checksum of a range whose end no length measures", c.field)
        if self.mode == "open" and len(self.held) == 1:
            self.code.assign(self.place_variable(fields.part, f"start of {c.name}"), self.p)
            self.pending.append((c, end))
        else:
            self.values.check_end(end, c.field)
            self.compare_checksum(c, fields.part, self.p, end - self.p)

    def compare_checksum(
        self, c: FieldPlan, part: str, start: Expr, size: Expr, only: tuple[Expr, ...] = ()
    ) -> None:
        """Emit code by which the kernel fails if the checksum of ``size`` bytes at ``start`` differs
        from the value in the field ``c`` of ``part``, if all conditions ``only`` hold.
        """
        computed = computed_checksum(c.field, start, size)
        stored = self.variables.get(part, c.name)
        self.values.fail_if(all_of([*only, computed.ne(stored)]), c.field)

    def check_fixed_sizes(self, ops: tuple[ReadOp, ...], layout: LayoutPlan, end: Expr) -> None:
        """Require that the bytes of all consecutive numbers and bytes of fixed size at the start of
        ``ops`` precede ``end``, by one check, which may be put off to a later check while at most
        40 bytes are unchecked. Emit nothing if an earlier check covers them, or if the first field
        varies in size.
        """
        first = ops[0]
        fp = first.field  # type: ignore[union-attr]
        if fp.size is None:
            self.values.covered = 0
            return
        if self.values.covered > 0:
            return
        total = 0
        for op in ops:
            match op:
                case read_ops.Require() | read_ops.Mark():
                    continue
                case read_ops.Number(field) | read_ops.Bytes(field) if field.size is not None:
                    total += field.size
                case read_ops.Verify(_, True):
                    continue
                case _:
                    break
        self.values.check_size(total, end, fp.field)
        self.values.covered = total

    # ------------------------------------------------------------ arrays and layouts in the place of fields

    def read_array(self, op: read_ops.Elements, fields: Fields, end: Expr) -> None:
        """Emit code that reads an array inside a row. The kernel fails at an array declared as
        compressed wherever its condition holds, for a count that is negative (null apart) or more
        than the bytes or its limit allow, and below ``at_least`` elements. Raise Unsupported for a
        compressed array without a condition, a length in bytes, elements that are choices or say
        their own version, a null that is not negative, or elements and given values that kernels
        cannot read.
        """
        fp, type_, element = op.field, op.type, op.element
        f, part = fp.field, fields.part
        if type_.compression is not None:
            if fp.when is None:
                raise Unsupported("a compressed array inside rows", f)
            self.values.fail_always(f)  # rows hold no rows of their own
            return
        null = null_of(type_, f)
        if op.any_version:
            raise Unsupported("an array of layouts whose bytes say which version they are", f)
        if type_.length is not None:
            raise Unsupported("an array with a length inside rows", f)
        if isinstance(element, ChoiceType):
            raise Unsupported("an array of a choice", f)
        n = self.variables.get(part, f.name)
        self.values.covered = 0
        counted = type_.has_count
        if type_.fixed is not None:
            self.code.assign(n, type_.fixed)
        elif type_.count is not None:
            self.values.read_number(type_.count, n, end, f)
        elif type_.counted_by is not None:
            check_number(field_of(fields.layout, type_.counted_by))
            self.code.assign(n, self.variables.get(part, type_.counted_by))
        else:
            self.code.assign(n, 0)
        if null is not None:
            self.handle_null_array(type_, n, null, self.outputs.find_target(part, f.name), f)
            type_ = replace(type_, at_least=0)
        if counted:
            max_elements = self.outputs.max_elements
            self.values.fail_if(any_of([n < 0, n > end - self.p, n > max_elements]), f)
            self.values.loose = 0
        self.assign_given(fp, fields, self.part_of_elements(part, f))
        size = element_size(element)
        if size is not None and counted and self.outputs.find_target(part, f.name) is None:
            self.values.fail_if(n * size > end - self.p, f)
            if type_.at_least:
                self.values.fail_if(n < type_.at_least, f)
            self.code.add(self.p, n * size)
            return
        self.read_elements(f, type_, element, fields, n, end, counted)

    def part_of_elements(self, part: str, f: Field) -> str:
        """Return the part name for the elements of the array ``f`` of ``part``."""
        return part_of(part, f.name)

    def assign_given(self, fp: FieldPlan, fields: Fields, part: str) -> None:
        """Emit the assignment of the values that a field gives to the layout at ``part``. Raise Unsupported if kernels cannot
        express one.
        """
        for name, value in fp.gives.items():
            try:
                number = fields.arithmetic().number(fields.folded(value))
            except Refused as error:
                raise Unsupported(error.reason, fp.field) from None
            self.code.assign(self.variables.get(part, name), number)

    def handle_null_array(
        self, type_: ArrayType, n: Var, null: int, target: Target | None, f: Field
    ) -> None:
        """Emit code that treats an array whose count ``n`` is ``null`` as empty, and null in its
        column if it has one. For other counts the kernel fails below ``at_least``.
        """
        with self.code.when(n.eq(null)):
            self.code.assign(n, 0)
            if target is not None:
                self.outputs.write_null(target)
        if type_.at_least:
            with self.code.otherwise():
                self.values.fail_if(n < type_.at_least, f)

    def read_elements(
        self,
        f: Field,
        type_: ArrayType,
        element: LayoutPlan | ScalarType | BytesType,
        fields: Fields,
        n: Var,
        end: Expr,
        counted: bool,
    ) -> None:
        """Emit the loop over the elements of an array, ``n`` of them if ``counted``, otherwise up
        to ``end`` with ``n`` counting them. The kernel fails below ``at_least`` elements or, if not
        ``counted``, above its limit (:meth:`read_array` tests counts), and returns 0 if the column
        has no room. Raise Unsupported if kernels cannot read an element.
        """
        code = self.code
        part = fields.part
        target = self.outputs.find_target(part, f.name)
        if target is not None and counted:
            self.outputs.check_list_room(target, n)
        with code.count(None, n) if counted else code.loop(self.p < end):
            if target is not None and not counted:
                self.outputs.check_list_room(target, Num(1))
            self.values.loose = 0
            self.read_element(f, element, fields, target, end)
            self.values.check_end(end, f)
            if not counted:
                code.add(n, 1)
                self.values.fail_if(n > self.outputs.max_elements, f)
            if target is not None:
                code.add(target.at, 1)
        if type_.at_least:
            self.values.fail_if(n < type_.at_least, f)
        self.outputs.end_value(target)

    def read_element(
        self,
        f: Field,
        element: LayoutPlan | ScalarType | BytesType,
        fields: Fields,
        target: Target | None,
        end: Expr,
    ) -> None:
        """Emit code that reads one element of an array, a layout, scalar or bytes, into the columns
        inside ``target``; if that is None, only skip and check it. Raise Unsupported if kernels
        cannot read its type.
        """
        if isinstance(element, LayoutPlan):
            self.read_nested(f, element, part_of(fields.part, f.name), target, end)
            return
        self.values.covered = 0
        inside = next(iter(self.outputs.targets_inside(target)), None)
        of = replace(fields, part=part_of(fields.part, f.name))
        if isinstance(element, ScalarType):
            self.values.read_scalar(element.name, None, inside, of.part, end, f)
        else:
            n = self.variables.get(of.part, f.name)
            self.values.read_bytes(f, element, None, n, inside, end)

    def read_nested(
        self, f: Field, layout: LayoutPlan, part: str, target: Target | None, end: Expr
    ) -> None:
        """Emit the reads of a layout inside another one, into the columns inside ``target``.
        Columns for fields that this version lacks become null or empty. Raise Unsupported if the
        layout holds itself, has rules, or has a field that kernels cannot read.
        """
        if layout.name in self.held:
            raise Unsupported("a layout that holds itself", f)
        kept = self.windows, self.values.covered, self.ends
        self.ends = {}
        self.outputs.name_members(target, part)
        self.read_layout(layout, part, end, ())
        self.windows, self.values.covered, self.ends = kept
        for inner in self.outputs.targets_inside(target):
            if layout.field(inner.leaf.column.name) is None:  # not in this version
                self.outputs.write_missing(inner)

    def read_struct(self, f: Field, layout: LayoutPlan, fields: Fields, end: Expr) -> None:
        """Emit code that reads a layout in the place of a field. If the type has a presence number,
        read it first: 1 means present, ``null`` that the column becomes null or empty; the kernel
        fails for other numbers. Raise Unsupported if the layout encodes its own version, or if
        kernels cannot read it.
        """
        type_ = f.type
        assert isinstance(type_, StructType)
        if len(self.plan.held(type_.layout, fields.layout)) > 1:
            raise Unsupported("a layout whose bytes say which version it is", f)
        part, target = part_of(fields.part, f.name), self.outputs.find_target(fields.part, f.name)
        self.values.covered = 0
        if type_.present is None:
            self.read_nested(f, layout, part, target, end)
            self.values.covered = 0
            return
        there = self.variables.get(fields.part, f.name)
        self.values.read_number(type_.present, there, end, f)
        self.values.check_end(end, f)
        if type_.null is None:
            self.values.fail_if(there.ne(1), f)
            self.read_nested(f, layout, part, target, end)
        else:
            self.values.fail_if(all_of([there.ne(1), there.ne(type_.null)]), f)
            with self.code.when(there.eq(1)):
                self.read_nested(f, layout, part, target, end)
            if target is not None:
                with self.code.otherwise():
                    self.outputs.write_missing(target)
        self.values.covered = 0

    # ------------------------------------------------------------ tagged fields

    def read_tags(self, op: read_ops.Tags, fields: Fields, end: Expr, wanted: set[str]) -> None:
        """Emit code that reads a section of tagged fields; known fields that are missing get their
        defaults, unknown tags are skipped. The kernel fails if tags do not ascend, are known only
        to other versions, are more than fit, or are of a layout that :meth:`is_left_to_codecs`
        leaves to the reference codecs. Raise Unsupported if kernels cannot read a tagged field.
        """
        code, f = self.code, op.field.field
        part = fields.part
        there = {fp.name: self.set_default(fp, part) for fp, _ in op.known}
        number, tag, last, size, after = (
            self.place_variable(part, f"{word} of {f.name}")
            for word in ("number", "tag", "last", "size", "after")
        )
        self.values.covered = 0
        self.values.read_number("uvarint", number, end, f)
        limits = [number > self.outputs.max_elements, number > MAX_COUNT]
        self.values.fail_if(any_of([Num(_MIN_TAGGED) * number > end - self.p, *limits]), f)
        self.values.loose = 0
        code.assign(last, -1)
        with code.count(None, number):
            self.values.read_number("uvarint", tag, end, f)
            self.values.check_end(end, f)
            self.values.fail_if(
                any_of([tag <= last, tag > HIGHEST, *(tag.eq(t) for t in op.other)]), f
            )
            code.assign(last, tag)
            self.values.read_number("uvarint", size, end, f)
            self.values.fail_if(size > end - self.p, f)
            self.values.loose = 0
            code.assign(after, self.p + size)
            for fp, ops in op.known:
                if self.is_left_to_codecs(fp, part):
                    self.values.fail_if(tag.eq(Num(fp.field.tag or 0)), fp.field)
                    continue
                with code.when(tag.eq(Num(fp.field.tag or 0))):
                    self.read_tagged(fp, ops, fields, size, after, wanted)
                    found = there[fp.name]
                    if found is not None:
                        code.assign(found, 1)
            code.assign(self.p, after)
        self.values.loose = self.values.covered = 0
        for fp, _ in op.known:
            self.emit_default(fp, part, there[fp.name])

    def is_left_to_codecs(self, fp: FieldPlan, part: str) -> bool:
        """Return whether a tagged field is a layout, so that the kernel fails where it is present
        and the reference codecs read the entry. Raise Unsupported for such a layout if a column
        shows it, or if this reader may not leave entries to the codecs.
        """
        if not isinstance(fp.field.type, StructType):
            return False
        if not self.leaves_layouts or self.outputs.find_target(part, fp.name) is not None:
            raise Unsupported("a tagged layout", fp.field)
        return True

    def set_default(self, fp: FieldPlan, part: str) -> Var | None:
        """Emit the assignment of a tagged field's default to its variable: a number, or the size of
        bytes (-1 for null). If a column shows the field, also set a variable to 0 and return it: it
        becomes 1 where the field is present. Otherwise return None.
        """
        f = fp.field
        variable = self.variables.get(part, f.name)
        default = default_value(fp)
        if default is not None:
            self.code.assign(variable, default)
        elif isinstance(f.type, BytesType):
            data = default_data(fp)
            self.code.assign(variable, -1 if data is None else len(data))
        if self.outputs.find_target(part, f.name) is None:
            return None
        there = self.place_variable(part, f"{f.name} is there")
        self.code.assign(there, 0)
        return there

    def read_tagged(
        self,
        fp: FieldPlan,
        ops: tuple[ReadOp, ...],
        fields: Fields,
        size: Var,
        after: Var,
        wanted: set[str],
    ) -> None:
        """Emit code that reads a known tagged field of ``size`` bytes, whose operations are
        ``ops``. The kernel fails unless the read stops at ``after``, or if the bytes are the
        field's default (not tested in mode ``hop``). Raise Unsupported if kernels cannot read the
        field.
        """
        f = fp.field
        if self.checks:
            default = default_bytes(fp)
            same = [call("load_u8", self.p + i).eq(byte) for i, byte in enumerate(default)]
            self.values.fail_if(all_of([size.eq(len(default)), *same]), f)
        windows, self.windows = self.windows, []
        for op in ops:
            self.print_field_op(op, fields, after, wanted)
        self.windows = windows
        self.values.check_end(after, f)
        self.values.fail_if(self.p.ne(after), f)
        self.values.covered = 0

    def emit_default(self, fp: FieldPlan, part: str, there: Var | None) -> None:
        """Emit code that writes the default of a tagged field (null, a number, or an empty value)
        to its column where the field is absent, that is, where ``there`` is 0. Emit nothing if no
        column shows the field. Raise Unsupported for default bytes that are not empty.
        """
        f = fp.field
        target = self.outputs.find_target(part, f.name)
        if there is None or target is None:
            return
        null = fp.default is not None and isinstance(f.type, ArrayType)
        if isinstance(f.type, BytesType):
            data = default_data(fp)
            null = data is None
            if data:
                raise Unsupported("a column of a tagged field with a default that is not empty", f)
        with self.code.when(there.eq(0)):
            if null:
                self.outputs.write_missing(target)
            elif default_value(fp) is not None:
                self.outputs.write_value(target, self.variables.get(part, f.name))
            else:
                self.outputs.write_empty(target)


def element_size(element: LayoutPlan | ScalarType | BytesType) -> int | None:
    """Return the size of an element that needs no check, None if it varies or its value must be checked."""
    if not isinstance(element, ScalarType) or element.name == "bool":
        return None
    return fixed_size(element.name)


def default_value(fp: FieldPlan) -> int | None:
    """Return the default of a tagged number, bool or field of bits, as kernels hold it: the number
    (0 if none is stated, the number that means null if the field has one), or for types that
    kernels only copy (``u64``, floats) its encoded bits as a signed integer of that size. Return
    None for fields of other types.
    """
    f, number = fp.field, default_number(fp)
    if isinstance(f.type, ScalarType) and f.type.name != "uuid" and (number is None or is_raw(f)):
        order: Literal["little", "big"] = "little" if f.endian == "little" else "big"
        return int.from_bytes(default_bytes(fp), order, signed=True)
    return number


def _never_in_rows(op: ReadOp) -> bool:
    """Return whether ``op`` reads a compressed array: rows with one are rejected."""
    return isinstance(op, read_ops.Elements) and op.type.compression is not None
