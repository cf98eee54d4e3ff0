"""Derive write programs: for each case of a view the operations of an entry and of its rows, in byte order.

Targets that encode print these. What nobody can write is refused by the field of an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from codecgen.plan import nodes
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.plan.constant_folding import as_number, as_truth, fold, is_known
from codecgen.plan.equality import conjuncts, implied_value
from codecgen.plan.given_values import replace_given, with_owner
from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan
from codecgen.plan.nodes import Value
from codecgen.plan.value_ranges import range_of
from codecgen.plan.writable import (
    WriteError,
    require_no_end_condition,
    require_null,
    require_untagged,
    require_writable,
    require_writable_bytes,
    require_writable_rows,
)
from codecgen.plan.write_ops import (
    Absent,
    Bits,
    Bytes,
    Checksum,
    Constant,
    Count,
    Elements,
    Length,
    Member,
    Number,
    Rows,
    WriteOp,
    needed_limits,
)
from codecgen.schema.lookup import integer_range
from codecgen.schema.model import Field
from codecgen.schema.scalars import SCALARS, is_integer
from codecgen.schema.types import (
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    Reference,
    ScalarType,
    TagsType,
)

RUNNING = ("last", "max", "min")
"""Which columns of the rows of an entry change with every row."""


@dataclass(frozen=True, slots=True)
class WriteProgram:
    """The operations of a case: ``around`` the rows (none where the row is the entry itself), and those of a ``row``.

    ``order`` and ``row_order`` have the same so that each comes after what it is made of. ``when`` is the condition of the
    rows, ``values`` what a reader makes of the columns, both in terms of what is written.
    """

    case: CasePlan
    around: tuple[WriteOp, ...]
    row: tuple[WriteOp, ...]
    order: tuple[WriteOp, ...]
    row_order: tuple[WriteOp, ...]
    when: Value | None
    values: Mapping[str, Value]

    def ops_of(self, owner: str) -> tuple[WriteOp, ...]:
        """Return the operations that write the fields of ``owner``: those of the row for ``item``
        and ``end``, else those of the entry around it (of the row if that is the entry).
        """
        return self.row if owner in ("item", "end") or not self.around else self.around

    def find_op(self, owner: str, name: str) -> WriteOp | None:
        """Return the operation that writes the field ``name`` of ``owner``, or None if there is none."""
        return next((op for op in self.ops_of(owner) if op.field.name == name), None)

    def fold_value(self, value: Value, part: str) -> Value:
        """Return ``value`` folded with what the program writes: fields with constants become
        literals, omitted ones null, and values that the rows' array gives to its elements the
        expressions for them. ``part`` says whose fields the value's own fields are: ``item`` for
        the row; ``own`` and ``entry`` both mean the entry.
        """

        def op_of(owner: str, name: str) -> WriteOp | None:
            return self.find_op(part if owner == "own" else owner, name)

        value = resolve_given(self.case, value, part)
        return fold(value, lambda value: known_when_written(value, op_of))

    def fold_rule(self, value: Value, part: str) -> Value:
        """Return a rule folded with what is written and with the condition of the rows, which holds
        for every written row. The condition is not used for rules about elements of an array:
        ``part`` is ``item``, and the rows are not the entries themselves.
        """
        found = self.fold_value(value, part)
        if self.case.when is None or (part == "item" and self.around):
            return found
        holding = conjuncts(self.case.when)
        return fold(found, lambda value: implied_value(holding, value))


def resolve_given(case: CasePlan, value: Value, part: str) -> Value:
    """Return ``value`` with each value that the rows' array gives to its elements replaced by the
    expression for it, whose fields belong to the entry. The value's own given values are replaced
    only if ``part`` is ``item``. Return it unchanged if the rows are no elements of an array.
    """
    if case.array is None:
        return value
    owners = ("own", "item") if part == "item" else ("item",)
    return replace_given(value, case.array.gives, owners, "entry")


def is_written(case: CasePlan) -> bool:
    """Return whether rows of a case can be written: the view has a ``write`` section for them, and
    their condition is not always false in this version.
    """
    if case.rows.write is None:
        return False
    when = None if case.when is None else fold(case.when)
    return when is None or not is_known(when) or as_truth(when)


def write_program(plan: Plan, view: ViewPlan, case: CasePlan) -> WriteProgram:
    """Return the write program of a case for which :func:`is_written` is true, which is not checked
    here. Raise WriteError if kernels cannot write it. Numbers that may not fit raise nothing: their
    operations have limits.
    """
    return _Programmer(plan, view, case).build()


class _Programmer:
    """Builds the write program of one case. Operations are created on demand. ``part`` says where a
    field lies: in the ``entry`` around the rows, or in an ``item``, which is a row.
    """

    def __init__(self, plan: Plan, view: ViewPlan, case: CasePlan) -> None:
        self.plan = plan
        self.view = view
        self.case = case
        self.made: dict[tuple[str, str], WriteOp] = {}
        self.making: set[tuple[str, str]] = set()
        self.own = "item" if case.array is None else "entry"
        self.layouts = {"entry": case.entry, "item": case.element}
        self.holding = [] if case.when is None else conjuncts(case.when)

    def build(self) -> WriteProgram:
        """Return the write program: operations of the entry and of a row in byte order, and both
        again in an order in which each follows what it depends on. Raise WriteError if kernels
        cannot write a field, or the condition of the rows depends on a field that changes with the
        rows.
        """
        case = self.case
        require_untagged(case)
        if case.array is not None:
            order = {name.partition(".")[0]: i for i, name in enumerate(case.write_entry)}
            order[case.array.name] = len(
                case.write_entry
            )  # what compresses the rows comes before them
            for fp in sorted(case.entry.in_order, key=lambda fp: order.get(fp.name, -1)):
                self.find_op("entry", fp.name)
        row = tuple(self.find_op("item", fp.name) for fp in case.element.in_order)
        around: tuple[WriteOp, ...] = ()
        if case.array is not None:
            around = tuple(self.find_op("entry", fp.name) for fp in case.entry.in_order)
        orders = [
            tuple(op for (where, _), op in self.made.items() if where == part)
            for part in ("entry", "item")
        ]
        bare = WriteProgram(case, around, row, orders[0], orders[1], None, {})
        when = None if case.when is None else bare.fold_value(case.when, "own")
        values = {name: bare.fold_value(value, "own") for name, value in case.values.items()}
        program = replace(bare, when=when, values=values)
        self.check_condition(program)
        return program

    def check_condition(self, program: WriteProgram) -> None:
        """Raise WriteError if the condition of the rows reads a field that changes from row to row.
        Do nothing if there is no condition.
        """
        if program.when is None:
            return
        for read in nodes.fields_read(program.when):
            op = program.find_op("own", read.field.name)
            if isinstance(op, Number) and op.running:
                raise WriteError(
                    "part of the condition of the rows (`when`), but differs between them",
                    read.field,
                )

    # ------------------------------------------------------------ what is known

    def find_op(self, part: str, name: str) -> WriteOp:
        """Return the operation that writes the field ``name`` of ``part``, created on first use.
        Raise WriteError if the field depends on itself or kernels cannot write it.
        """
        key = (part, name)
        if key not in self.made:
            fp = self.layouts[part].field(name)
            assert fp is not None
            if key in self.making:
                raise WriteError("computed from its own value", fp.field)
            self.making.add(key)
            self.made[key] = self.make_op(part, fp)
        return self.made[key]

    def fold_value(self, value: Value, part: str) -> Value:
        """Return ``value`` folded with what is written for the fields of ``part``; operations for
        these fields are created. Raise WriteError if one cannot be written or depends on itself.
        """

        def op_of(owner: str, name: str) -> WriteOp | None:
            where = {"own": part, "entry": self.own}.get(owner, "item")
            return (
                self.find_op(where, name) if self.layouts[where].field(name) is not None else None
            )

        value = resolve_given(self.case, value, part)
        return fold(value, lambda value: known_when_written(value, op_of))

    def is_running(self, value: Value, part: str) -> bool:
        """Return whether a value changes from row to row of an entry: it uses the last, largest or
        smallest value of a column, or a field whose existing operation does. ``part`` says whose
        fields the value's own fields are.
        """
        where = {"own": part, "entry": self.own}
        keys = [(where.get(v.owner, "item"), v.field.name) for v in nodes.fields_read(value)]
        ops = [self.made.get(key) for key in keys]
        last = any(column.which in RUNNING for column in nodes.columns_read(value))
        return last or any(isinstance(op, Number) and op.running for op in ops)

    # ------------------------------------------------------------ one field

    def make_op(self, part: str, fp: FieldPlan) -> WriteOp:
        """Return a new operation for a field of ``part``: ``Absent`` if its condition is false,
        else by its role and type. Raise WriteError if kernels cannot write the field, for example a
        struct, choice, float or uuid.
        """
        f = fp.field
        layout = self.layouts[part]
        require_writable(f)
        if fp.when is not None and not self.is_present(part, fp):
            return Absent(fp)
        if fp.measures is not None:
            return Length(fp, _type_name(f), fp.measures, fp.size is None)
        if f.checksum is not None:
            assert fp.size is not None, "a checksum has the size of its algorithm (C017)"
            return Checksum(fp, fp.covers[0])
        if f.counts:
            return self.make_count(part, fp)
        constant = self.make_constant_op(fp, layout)
        if constant is not None:
            return constant
        given = self.case.write_entry if part == self.own else self.case.write_item
        match f.type:
            case BitsType(base, members):
                return self.make_bits(part, fp, base, members, given)
            case BytesType() as type_:
                leaf = self.find_leaf(given.get(f.name))
                return self.make_bytes(fp, type_, leaf)
            case ArrayType() as array if fp is self.case.array:
                require_writable_rows(array, f)
                codec = None if fp.codec is None else self.fold_value(fp.codec, part)
                return Rows(fp, array, codec)
            case ArrayType() as array:
                return self.make_elements(fp, array, layout, self.find_leaf(given.get(f.name)))
            case ScalarType() as scalar if _is_number(scalar) or is_integer(scalar.name):
                return self.make_number(part, fp, scalar, given.get(f.name))
            case TagsType():
                return Constant(fp, "uvarint", 0)
        raise WriteError("not written by the kernels", f)

    def make_constant_op(self, fp: FieldPlan, layout: LayoutPlan) -> Constant | None:
        """Return the operation that writes an integer constant or a version field, or None for
        other fields. Raise WriteError if the constant is bytes or text, or does not fit the field.
        """
        f = fp.field
        if f.const is not None:
            if not isinstance(f.const, int):
                raise WriteError("always the same bytes or text", f)
            return self.make_constant(fp, _type_name(f), int(f.const))
        if f.is_version and layout.version is not None:
            return self.make_constant(fp, _type_name(f), layout.version)
        return None

    def make_constant(self, fp: FieldPlan, type_: str, value: int) -> Constant:
        """Return the operation that writes ``value``. Raise WriteError if a scalar field cannot
        hold it or its enum does not allow it. Bit fields are not checked.
        """
        scalar = fp.field.type
        if isinstance(scalar, ScalarType):
            room = integer_range(scalar.name) or (0, 1)
            if not needed_limits(
                (value, value), room, self.allowed_numbers(scalar.enum, scalar.only)
            ).allows(value):
                raise WriteError(
                    f"written as the constant {value} against its type or enum",
                    fp.field,
                )
        return Constant(fp, type_, value)

    def is_present(self, part: str, fp: FieldPlan) -> bool:
        """Return whether a conditional field exists in these rows. Raise WriteError if neither the
        written fields nor the condition of the rows decide that.
        """
        assert fp.when is not None
        found = self.fold_value(fp.when, part)
        if not is_known(found) and part == self.own:
            found = fold(found, lambda value: implied_value(self.holding, value))
        if not is_known(found) and part != self.own:
            around = [with_owner(one, "entry") for one in self.holding]
            found = fold(found, lambda value: implied_value(around, value))
        if not is_known(found):
            raise WriteError(
                "present or absent by a condition that is not known before rows are written",
                fp.field,
            )
        return as_truth(found)

    def make_count(self, part: str, fp: FieldPlan) -> Count:
        """Return the operation for a count of the rows, or of the elements of a list column; its
        column is None if no column fills the array. Raise WriteError if kernels cannot write the
        counted field, or it counts several arrays.
        """
        counted, *others = fp.field.counts
        if others:
            raise WriteError("the number of elements of several arrays", fp.field)
        array = self.case.array
        rows = part == "entry" and array is not None and counted == array.name
        op = None if rows else self.find_op(part, counted)
        return Count(
            fp, _type_name(fp.field), rows, op.column if isinstance(op, Elements) else None
        )

    def make_number(
        self, part: str, fp: FieldPlan, scalar: ScalarType, given: Value | None
    ) -> Constant | Number:
        """Return the operation for a number from ``given`` or, without it, from the default:
        ``Constant`` if only one number is possible, else ``Number``. Raise WriteError if there is
        neither, the value is null, the default uses elements, a constant does not fit, or a ``u64``
        is no constant. Other numbers get ``limits`` and raise nothing here.
        """
        source = fp.default if given is None else given
        if source is None:
            raise WriteError("a field without a value in `write` and without a default", fp.field)
        value = self.fold_value(source, part)
        self.require_known(value, fp, given)
        constant = single_number(value)
        if constant is not None:
            return self.make_constant(fp, scalar.name, constant)
        if not _is_number(scalar):
            raise WriteError("not written by the kernels", fp.field)
        room = integer_range(scalar.name) or (0, 1)
        found = needed_limits(range_of(value), room, self.allowed_numbers(scalar.enum, scalar.only))
        return Number(fp, scalar.name, value, found, self.is_running(value, part))

    def make_bits(
        self,
        part: str,
        fp: FieldPlan,
        base: str,
        members: tuple[BitMember, ...],
        given: Mapping[str, Value],
    ) -> Constant | Bits:
        """Return the operation for a bit field with the base type ``base``: ``Constant`` if all
        members are constants (0 without value in ``given``, by ``field.bit``, and default), else
        ``Bits``. Raise WriteError if a member changes with the rows, is null, or is a constant that
        does not fit its bits. Other values get ``limits`` and raise nothing here.
        """
        found = []
        for m in members:
            own = given.get(f"{fp.name}.{m.name}")
            source = fp.bit_defaults.get(m.name) if own is None else own
            if source is None:
                continue
            value = self.fold_value(source, part)
            self.require_known(value, fp, own)
            if self.is_running(value, part):
                raise WriteError(
                    "a field of bits that differ between the rows of an entry", fp.field
                )
            room = (0, (1 << m.width) - 1)
            allowed = needed_limits(range_of(value), room, self.allowed_numbers(m.enum, m.only))
            constant = single_number(value)
            if constant is not None:
                if not allowed.allows(constant):
                    reason = f"made of bits {m.name} that {constant} does not fit"
                    raise WriteError(reason, fp.field)
                value = nodes.Literal(constant)
            found.append(Member(m, value, allowed))
        numbers = [as_number(member.value) for member in found]
        if None in numbers:
            return Bits(fp, base, tuple(found))
        word = sum((n or 0) << m.bits.low for n, m in zip(numbers, found, strict=True))
        return Constant(fp, base, word)

    def require_known(self, value: Value, fp: FieldPlan, given: Value | None) -> None:
        """Raise WriteError if a value is null, or if it is a default (``given`` is None) that uses
        the first, last, largest or smallest element of an array.
        """
        if isinstance(value, nodes.NullValue):
            raise WriteError("written as null, but cannot be null", fp.field)
        if given is None and any(True for _ in nodes.ends_read(value)):
            raise WriteError(
                "a field without a value in `write`, with a default that is computed from elements",
                fp.field,
            )

    def allowed_numbers(
        self, enum: str | None, only: tuple[str, ...] | None
    ) -> tuple[int, ...] | None:
        """Return the numbers of the enum that ``only`` allows (None: all), ascending. Return None,
        for no limit, if there is no enum or it keeps unknown numbers.
        """
        if enum is None or self.plan.model.enums[enum].keep_unknown:
            return None
        values = self.plan.model.enums[enum].values
        return tuple(sorted({v.value for v in values if only is None or v.name in only}))

    # ------------------------------------------------------------ bytes and lists

    def find_leaf(self, value: Value | None) -> Leaf | None:
        """Return the top-level column that ``value`` copies row by row, or None if ``value`` is
        None. The value is a column: the check has refused others (C032).
        """
        if value is None:
            return None
        assert isinstance(value, nodes.ColumnValue) and value.which == "row"
        name = value.column.name
        return next(x for x in self.view.leaves if x.inside is None and x.column.name == name)

    def make_bytes(self, fp: FieldPlan, type_: BytesType, leaf: Leaf | None) -> Bytes:
        """Return the operation that writes a column of bytes or text, or null if ``leaf`` is None.
        Raise WriteError if ``leaf`` is None and the field cannot be null or has another default, or
        if there is a column and the field is padded or its null is a valid length.
        """
        if leaf is None:
            require_null(fp, type_)
        else:
            require_writable_bytes(type_, fp.field)
        return Bytes(fp, type_, leaf)

    def make_elements(
        self, fp: FieldPlan, array: ArrayType, layout: LayoutPlan, leaf: Leaf | None
    ) -> Elements:
        """Return the operation that writes a column of lists, or an empty array if ``leaf`` is
        None. Raise WriteError if the array has a length in bytes, ``at_least``, null, a fixed
        count, a count from outside or an end condition, or is compressed. An empty compressed array
        with a count is accepted. With a column, also raise it if that is nullable or the elements
        are no layouts that kernels write.
        """
        f = fp.field
        if array.length is not None:
            raise WriteError("an array with a length inside rows", f)
        if array.at_least or array.null is not None or array.fixed is not None:
            raise WriteError("an array that is not written by the kernels", f)
        if array.counted_by in [one.name for one in layout.given]:
            raise WriteError("an array with a count from outside", f)
        require_no_end_condition(array, f)
        if array.compression is not None and (leaf is not None or not array.has_count):
            raise WriteError("a compressed array inside rows", f)
        if leaf is None:
            return Elements(fp, array, None, None, ())
        if leaf.column.nullable or not isinstance(array.element, Reference):
            raise WriteError("an array that is not written by the kernels", f)
        element = self.plan.expected(array.element, layout)
        members = {m.column.name: m for m in self.view.inside(leaf)}
        each = tuple(self.make_element_op(inner, element, members) for inner in element.in_order)
        return Elements(fp, array, leaf, element, each)

    def make_element_op(
        self, fp: FieldPlan, element: LayoutPlan, members: Mapping[str, Leaf]
    ) -> Constant | Bytes:
        """Return the operation for a field of an element: bytes of a list member, or a constant
        from the schema or default. Raise WriteError if the field has a condition, role or rule, is
        an array or another type, or has neither value nor default.
        """
        f = fp.field
        require_writable(f)
        rejected = fp.when is not None or fp.measures is not None or f.checksum is not None
        rejected = rejected or bool(f.counts) or fp.valid is not None or fp.refuse is not None
        if rejected or isinstance(f.type, ArrayType):
            raise WriteError("of a kind that kernels do not write inside an array of a row", f)
        constant = self.make_constant_op(fp, element)
        if constant is not None:
            return constant
        match f.type:
            case BytesType() as type_:
                leaf = members.get(fp.name)
                return self.make_bytes(fp, type_, leaf)
            case ScalarType() as scalar if _is_number(scalar):
                value = None if fp.default is None else as_number(fold(fp.default))
                if value is None:
                    raise WriteError("a field without a value in `write` and without a default", f)
                return self.make_constant(fp, scalar.name, value)
            case BitsType(base, bits):
                word = 0
                for m in bits:
                    default = fp.bit_defaults.get(m.name)
                    found = 0 if default is None else as_number(fold(default))
                    if found is None:
                        raise WriteError(
                            "a field without a value in `write` and without a default", f
                        )
                    word |= found << m.low
                return Constant(fp, base, word)
            case TagsType():
                return Constant(fp, "uvarint", 0)
        raise WriteError("of a kind that kernels do not write inside an array of a row", f)


def _type_name(f: Field) -> str:
    """Return the name of the scalar type of a field, that of the base for a bit field, or ``""``
    for other types.
    """
    return f.type.base if isinstance(f.type, BitsType) else str(getattr(f.type, "name", ""))


def _is_number(scalar: ScalarType) -> bool:
    """Return whether a field is a number that 64 bits hold with their sign, or true or false."""
    return SCALARS[scalar.name].fits_int64


OpOf = Callable[[str, str], WriteOp | None]
"""The operation that writes a field, by whose it is and its name."""


def known_when_written(value: Value, op_of: OpOf) -> Value | None:
    """Return what the operation (from ``op_of``) that writes a field, bit or end of an array says
    about it: a literal, null, or the value as not nullable. Return None if nothing is known, as for
    fields inside held layouts, and for an end that is no constant.
    """
    match value:
        case nodes.VersionValue(version) if version is not None:
            return nodes.Literal(version)
        case nodes.FieldValue(holders=()):
            return _known_field(value, op_of(value.owner, value.field.name))
        case nodes.BitValue(word, m) if not word.holders:
            return _known_bits(value, m, op_of(word.owner, word.field.name))
        case nodes.EndValue(value=nodes.FieldValue(holders=()) as inner):
            found = _known_field(inner, op_of("end", inner.field.name))
            return found if found is not None and is_known(found) else None
    return None


def _known_field(value: nodes.FieldValue, op: WriteOp | None) -> Value | None:
    """Return what the operation says about a field: a literal for constants, null for omitted
    fields, the field as not nullable if it may be null otherwise. Return None without operation,
    for nullable columns, and if nothing changes.
    """
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


def _known_bits(value: nodes.BitValue, m: BitMember, op: WriteOp | None) -> Value | None:
    """Return what the operation says about bits: a literal for constants and for members that are
    not written (0), null for omitted fields, else the bits as not nullable. Return None if nothing
    is known or changes.
    """
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


def single_number(value: Value) -> int | None:
    """Return the only number that a value can have by its type and range, or None if it can be null
    or have several numbers.
    """
    if value.type.nullable:
        return None
    low, high = range_of(value)
    return low if low == high else None
