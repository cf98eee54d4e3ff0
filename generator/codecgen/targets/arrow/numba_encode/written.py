"""What the fields of written entries and elements are made of: columns, constants, and what the layout settles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.schema.expression import Binary, EndOf, Expression, If, Node, Not, Path
from codecgen.schema.expression import source as text_of
from codecgen.schema.model import (
    INTEGERS,
    VARINTS,
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    Field,
    ScalarType,
)
from codecgen.targets.arrow.code import Unsupported
from codecgen.targets.arrow.expressions import KernelExpressions, Operand, Refused, constant
from codecgen.targets.arrow.naming import ENTRY, HEAD, ITEM, LEAST, MOST, NULL, ROW
from codecgen.targets.arrow.scope import Names, is_number

RUNNING = ("last", "max", "min")
_COMPARED = ("==", "!=", "<", "<=", ">", ">=", "and", "or")
_OPPOSITES = {"==": "!=", "!=": "=="}

Kind = Literal["absent", "number", "bits", "bytes", "list", "length", "count", "checksum", "rows"]


@dataclass(frozen=True, slots=True)
class Part:
    """What one field is written from. ``value`` is that of a number or the word of bits, ``members`` are the bits that
    columns decide, ``running`` tells that it changes with every row of the entry."""

    plan: FieldPlan
    kind: Kind
    value: Operand | None = None
    expression: Expression | None = None
    members: tuple[tuple[BitMember, Operand, Expression], ...] = ()
    leaf: Leaf | None = None
    running: bool = False

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def field(self) -> Field:
        return self.plan.field

    @property
    def varies(self) -> bool:
        """Whether columns have a say in it."""
        return self.kind in ("number", "bits") and self.value is not None and (
            self.value.constant is None
        )  # fmt: skip


class Folding(KernelExpressions):
    """Expressions in which what is known to be null, or not, is settled."""

    def comparison(self, operator: str, left: Node, right: Node, bits: int) -> Operand:
        found = super().comparison(operator, left, right, bits)
        known = {"True": 1, "False": 0, "not (True)": 0, "not (False)": 1}.get(found.text)
        return found if known is None else constant(known)

    def logical(self, operator: str, left: Node, right: Node, bits: int) -> Operand:
        found = super().logical(operator, left, right, bits)
        decides = int(operator == "or")
        for side in (left, right):
            known = self.value(side, bits).constant
            if known is not None and bool(known) == bool(decides):
                return constant(decides)
        return found


@dataclass(slots=True)
class FieldNames(Names):
    """Paths to fields where it is known what is written into them."""

    parts: Mapping[tuple[str, str], Part] = field(default_factory=dict)

    def expressions(self) -> KernelExpressions:
        return Folding(self.resolve)

    def field(self, layout: LayoutPlan, prefix: str, names: tuple[str, ...]) -> Operand | None:
        part = self.parts.get((prefix, names[0]))
        if part is None or part.kind in ("length", "count", "checksum"):
            return Names.field(self, layout, prefix, names)
        if part.kind == "bytes":
            if part.leaf is None:
                return Operand("-1", null="True")
            variable = ROW + part.leaf.name
            return Operand(variable, f"{variable} < 0" if part.leaf.column.nullable else None)
        if part.kind == "number" and part.value is not None and part.value.constant is not None:
            return constant(part.value.constant)
        found = Names.field(self, layout, prefix, names)
        if part.kind == "bits" and found is not None and len(names) == 2:
            written = {m.name for m, _, _ in part.members}
            if names[1] not in written:
                return Operand("0", constant=0, words=found.words)
        return found


@dataclass(slots=True)
class ColumnNames:
    """The meaning of paths where fields are written: columns, ``version``, ``entry.field``."""

    view: ViewPlan
    case: CasePlan
    fields: FieldNames
    used: set[tuple[str, str]] = field(default_factory=set)

    def value(self, expression: Expression) -> Operand:
        node = expression.node
        found = Folding(self.resolve).value(node)
        if found.constant is None and _is_condition(node):
            return Operand(f"int({found.text})")
        return found

    def resolve(self, path: Path | EndOf) -> Operand | None:
        if isinstance(path, EndOf):
            prefix = {"first": HEAD, "last": ROW, "max": MOST, "min": LEAST}[path.end]
            return self.column(path.array.names[0], prefix)
        if path.names == ("version",) and self.case.entry.version is not None:
            return constant(self.case.entry.version)
        if path.names[0] == "entry" and len(path.names) > 1:
            return self.fields.field(self.case.entry, ENTRY, path.names[1:])
        return self.column(path.names[0], ROW)

    def column(self, name: str, prefix: str) -> Operand:
        leaf = leaf_of(self.view, name)
        if leaf is None:
            raise Refused(f'written from "{name}", which is no column')
        self.used.add((prefix, name))
        variable = prefix + name
        if leaf.column.type in ("binary", "string"):
            return Operand(variable, f"{variable} < 0" if leaf.column.nullable else None)
        null = f"{NULL}{variable}" if leaf.column.nullable else None
        return Operand(variable, null)


def _is_condition(node: Node) -> bool:
    return isinstance(node, Not) or (isinstance(node, Binary) and node.operator in _COMPARED)


def leaf_of(view: ViewPlan, name: str) -> Leaf | None:
    return next((x for x in view.leaves if x.inside is None and x.column.name == name), None)


def columns_in(expression: Expression) -> Iterator[str]:
    """The columns that an expression names."""
    for path in expression.paths():
        if path.names[0] not in ("entry", "version"):
            yield path.names[0]


def runs(node: Node, running: set[str]) -> bool:
    """Whether a value changes with the rows of an entry: ``running`` are fields that do."""
    match node:
        case EndOf(end, _, _):
            return end in RUNNING
        case Path(names):
            return names[0] == "entry" and names[1] in running
        case Binary(_, left, right):
            return runs(left, running) or runs(right, running)
        case Not(operand):
            return runs(operand, running)
        case If(condition, then, otherwise):
            return any(runs(part, running) for part in (condition, then, otherwise))
        case _:
            return False


class Written:
    """Everything that is written for one case: the parts of the entry, and those of the element."""

    def __init__(self, plan: Plan, view: ViewPlan, case: CasePlan) -> None:
        assert case.rows.write is not None
        self.plan = plan
        self.view = view
        self.case = case
        self.known: dict[tuple[str, str], Part] = {}
        own = ENTRY if case.array is not None else ITEM
        self.own_prefix = own
        self.fields = FieldNames(plan, case.entry, own, case, parts=self.known)
        self.columns = ColumnNames(view, case, self.fields)
        self.running: set[str] = set()
        write = case.rows.write
        order = {name.partition(".")[0]: i for i, name in enumerate(write.entry)}
        parts = sorted(case.entry.fields, key=lambda fp: order.get(fp.name, -1))
        made = {fp.name: self.part(case.entry, own, fp, write.entry) for fp in parts}
        entry = tuple(made[fp.name] for fp in case.entry.fields)
        self.order = tuple(made[fp.name] for fp in parts)
        """The parts of the entry in the order in which they can be worked out."""
        self.entry: tuple[Part, ...] = entry if case.array is not None else ()
        self.item: tuple[Part, ...] = entry
        if case.array is not None:
            element = case.element
            self.item = tuple(self.part(element, ITEM, fp, write.item) for fp in element.fields)

    def part(
        self, layout: LayoutPlan, prefix: str, fp: FieldPlan, written: Mapping[str, Expression]
    ) -> Part:
        part = self._part(layout, prefix, fp, written)
        self.known[prefix, fp.name] = part
        if part.running:
            self.running.add(fp.name)
        return part

    def _part(
        self, layout: LayoutPlan, prefix: str, fp: FieldPlan, written: Mapping[str, Expression]
    ) -> Part:
        f = fp.field
        if f.when is not None and not self.is_there(layout, prefix, f):
            return Part(fp, "absent")
        if fp.measures is not None:
            return Part(fp, "length")
        if f.checksum is not None:
            return Part(fp, "checksum")
        if f.counts is not None:
            return Part(fp, "count")
        if f.const is not None:
            return Part(fp, "number", constant(f.const))
        if f.is_version and layout.version is not None:
            return Part(fp, "number", constant(layout.version))
        expression = written.get(f.name)
        match f.type:
            case BitsType(_, members):
                return self.bits(fp, members, written)
            case BytesType():
                leaf = None if expression is None else self.leaf(expression, f)
                if leaf is None and f.type.null is None:
                    raise Unsupported("without a value to write, and cannot be null", f)
                return Part(fp, "bytes", expression=expression, leaf=leaf)
            case ArrayType() if self.case.array is not None and fp is self.case.array:
                return Part(fp, "rows")
            case ArrayType():
                leaf = None if expression is None else self.leaf(expression, f)
                return Part(fp, "list", expression=expression, leaf=leaf)
            case ScalarType() if is_number(f) or f.type.name == "bool":
                return self.number(fp, expression)
        raise Unsupported("not written by the kernels", f)

    def is_there(self, layout: LayoutPlan, prefix: str, f: Field) -> bool:
        """Whether a field that may be left out is there in these rows."""
        assert f.when is not None
        decided = self.fields_in(layout, prefix).value(f.when)
        if decided.constant is not None:
            return bool(decided.constant)
        node, condition = f.when.node, self.case.rows.when
        if condition is not None and layout is self.case.entry:
            if text_of(node) == text_of(condition.node):
                return True
            if text_of(_negated(node)) == text_of(condition.node):
                return False
        raise Unsupported("left out by a condition that the rows do not settle", f)

    def fields_in(self, layout: LayoutPlan, prefix: str) -> FieldNames:
        """Paths to the fields of one layout."""
        return FieldNames(self.plan, layout, prefix, parts=self.known)

    def number(self, fp: FieldPlan, expression: Expression | None) -> Part:
        f = fp.field
        source = expression or f.default
        if source is None:
            raise Unsupported("without a value to write, and has no default", f)
        try:
            value = self.columns.value(source)
        except Refused as error:
            raise Unsupported(error.reason, f) from None
        running = runs(source.node, self.running)
        return Part(fp, "number", value, expression, running=running)

    def bits(
        self, fp: FieldPlan, members: tuple[BitMember, ...], written: Mapping[str, Expression]
    ) -> Part:
        found = []
        words = []
        for m in members:
            expression = written.get(f"{fp.name}.{m.name}") or m.default
            if expression is None:
                continue
            try:
                value = self.columns.value(expression)
            except Refused as error:
                raise Unsupported(error.reason, fp.field) from None
            if runs(expression.node, self.running):
                raise Unsupported("made of bits that change with the rows of an entry", fp.field)
            found.append((m, value, expression))
            text = value.text if value.plain else f"({value.text})"
            words.append(f"{text} << {m.low}" if m.low else text)
        if all(value.constant is not None for _, value, _ in found):
            number = sum(int(value.constant or 0) << m.low for m, value, _ in found)
            return Part(fp, "bits", constant(number))
        return Part(fp, "bits", Operand(" | ".join(words)), members=tuple(found))

    def leaf(self, expression: Expression, f: Field) -> Leaf:
        node = expression.node
        name = node.names[0] if isinstance(node, Path) else ""
        found = leaf_of(self.view, name)
        if found is None:
            raise Unsupported("written from something else than a column", f)
        return found

    # ------------------------------------------------------------ what is read back

    def leaves_read(self) -> Iterator[tuple[Leaf, Expression | None]]:
        """The columns, with what a reader makes of the row for them."""
        for leaf in self.view.leaves:
            if leaf.inside is None:
                yield leaf, self.case.rows.values.get(leaf.column.name)

    def identical(self, leaf: Leaf, expression: Expression) -> bool:
        """Whether a column is read from the very field that it is written to, row by row."""
        node = expression.node
        if not isinstance(node, Path):
            return False
        names = node.names
        if self.case.array is not None:
            if names[0] != "item":
                return False
            names = names[1:]
        part = self.known.get((ITEM, names[0]))
        if part is None or part.kind == "absent":
            return False
        own = part.expression
        if part.kind == "bits":
            own = next((e for m, _, e in part.members if names[1:] == (m.name,)), None)
        if own is None or not isinstance(own.node, Path):
            return False
        return own.node.names == (leaf.column.name,)


def _negated(node: Node) -> Node:
    if isinstance(node, Binary) and node.operator in _OPPOSITES:
        return Binary(_OPPOSITES[node.operator], node.left, node.right)
    return Not(node)


def range_of(f: Field) -> tuple[int, int]:
    """The numbers that a field of integers holds."""
    name = getattr(f.type, "name", "")
    if name == "bool":
        return 0, 1
    if name in INTEGERS:
        size, signed = INTEGERS[name]
        bits = 8 * size
    else:
        bits, signed = VARINTS[name]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
