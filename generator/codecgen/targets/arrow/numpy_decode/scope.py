"""Expressions of the schema language as arithmetic of NumPy, and what names mean in it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.columns import CasePlan
from codecgen.schema.expression import Binary, EndOf, Expression, If, Node, Not, Null, Number, Path
from codecgen.schema.model import INTEGERS, BitsType, BytesType, Field, ScalarType
from codecgen.targets.arrow.expressions import Refused
from codecgen.targets.arrow.scope import is_number


@dataclass(frozen=True, slots=True)
class Operand:
    """A value as text. ``null`` is where it is null (None: nowhere), ``constant`` its value where that is known, ``words``
    the numbers that names stand for beside it; ``truth``: it is true or false; ``plain``: it needs no parentheses."""

    text: str
    null: str | None = None
    constant: int | None = None
    words: tuple[tuple[str, int], ...] = ()
    truth: bool = False
    plain: bool = True

    @property
    def inside(self) -> str:
        return self.text if self.plain else f"({self.text})"

    @property
    def holds(self) -> Operand:
        """The same as a truth value."""
        if self.truth or self.constant is not None:
            return self
        return Operand(f"{self.inside} != 0", truth=True, plain=False)


def constant(value: int) -> Operand:
    return Operand(str(value), constant=value)


def opposite(operand: Operand) -> str:
    """Where a condition does not hold."""
    return f"~{operand.holds.inside}"


@dataclass(slots=True)
class Names:
    """Fields by their names: local variables of a reader (``case`` None), or the fields of entries and of rows.

    The fields that were asked for gather in ``used``: of ``entry``, of ``item``, and of the ``ends`` of an array.
    """

    plan: Plan
    own: LayoutPlan
    local: dict[str, str] = field(default_factory=dict)
    case: CasePlan | None = None
    used: set[tuple[str, str]] = field(default_factory=set)
    of: str = "entry"

    # ------------------------------------------------------------ expressions

    def value(self, expression: Expression) -> Operand:
        return self.node(expression.node, 64)

    def node(self, node: Node, bits: int) -> Operand:
        match node:
            case Number(value):
                return constant(value)
            case Null():
                return Operand("0", null="True")
            case Path() | EndOf():
                found = self.resolve(node)
                if found is None:
                    raise Refused(f"used as a number ({node})")
                return found
            case Not(inner):
                operand = self.node(inner, bits)
                if operand.constant is not None:
                    return constant(int(not operand.constant))
                return Operand(opposite(operand), truth=True)
            case If(condition, then, otherwise):
                return self.choice(condition, then, otherwise, bits)
            case Binary("and" | "or" as operator, left, right):
                return self.logical(operator, left, right, bits)
            case Binary("+" | "-"):
                text = self.sum(node)
                if bits == 64:
                    return Operand(text, plain=False)  # arrays of int64 wrap by themselves
                return Operand(f"wrap_{bits}({text})")
            case Binary(operator, left, right):
                return self.comparison(operator, left, right, bits)

    def sum(self, node: Node) -> str:
        """A sum without wrapping: that of the whole is that of each step."""
        if isinstance(node, Binary) and node.operator in ("+", "-"):
            right = self.sum(node.right)
            if isinstance(node.right, Binary):
                right = f"({right})"
            return f"{self.sum(node.left)} {node.operator} {right}"
        found = self.node(node, 64)
        if found.truth:
            raise Refused("a truth value in a sum")
        return found.inside

    def choice(self, condition: Node, then: Node, otherwise: Node, bits: int) -> Operand:
        test = self.node(condition, bits).holds
        if test.constant is not None:
            return self.node(then if test.constant else otherwise, bits)
        one, other = self.node(then, bits), self.node(otherwise, bits)
        null: str | None = None
        if one.null is not None or other.null is not None:
            sides = (one.null or "False", other.null or "False")
            simple = {("False", "True"): opposite(test), ("True", "False"): test.text}
            null = simple.get(sides, f"np.where({test.text}, {sides[0]}, {sides[1]})")
        return Operand(f"np.where({test.text}, {one.text}, {other.text})", null)

    def logical(self, operator: str, left: Node, right: Node, bits: int) -> Operand:
        decides = operator == "or"
        one = self.node(left, bits).holds
        if one.constant is not None:
            if bool(one.constant) == decides:
                return constant(int(decides))
            return self.node(right, bits).holds
        other = self.node(right, bits).holds
        if other.constant is not None:
            return constant(int(decides)) if bool(other.constant) == decides else one
        sign = "|" if decides else "&"
        return Operand(f"{one.inside} {sign} {other.inside}", truth=True, plain=False)

    def comparison(self, operator: str, left: Node, right: Node, bits: int) -> Operand:
        if isinstance(right, Null):
            null = self.node(left, bits).null
            if null is None:
                return constant(int(operator == "!="))
            found = Operand(null, truth=True, plain=False)
            return found if operator == "==" else replace(found, text=opposite(found), plain=True)
        one, other = self.pair(left, right, bits)
        if one.constant is not None and other.constant is not None:
            a, b = one.constant, other.constant
            results = {
                "==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b
            }  # fmt: skip
            return constant(int(results[operator]))
        found = Operand(f"{one.inside} {operator} {other.inside}", truth=True, plain=False)
        if one.null is None:
            return found
        return replace(found, text=f"~({one.null}) & {found.inside}")

    def pair(self, left: Node, right: Node, bits: int) -> tuple[Operand, Operand]:
        """Two sides of a comparison, of which one may be the name of a value of the other's enum."""
        for first, second in ((left, right), (right, left)):
            if isinstance(second, Path) and len(second.names) == 1 and isinstance(first, Path):
                known = self.resolve(first)
                words = dict(known.words) if known is not None else {}
                if known is not None and second.names[0] in words:
                    word = constant(words[second.names[0]])
                    return (known, word) if first is left else (word, known)
        return self.node(left, bits), self.node(right, bits)

    # ------------------------------------------------------------ names

    def resolve(self, path: Path | EndOf) -> Operand | None:
        case = self.case
        if isinstance(path, EndOf):
            if path.path is None or len(path.path.names) != 1 or case is None:
                raise Refused(f"asked for as {path.end}({path.array})")
            self.used.add(("item", path.path.names[0]))
            self.used.add(("ends", path.path.names[0]))
            return Operand(f"row.{path.end}.{path.path.names[0]}")
        names = path.names
        if case is not None and case.array is not None and len(names) > 1:
            if names[0] == "item":
                return self.field(case.element, "item", names[1:])
            if names[0] == case.array.name:
                return self.derived(names[1], case.array.name)
        own = "item" if case is not None and case.array is None else self.of
        found = self.field(self.own, own, names)
        if found is not None:
            return found
        if names == ("version",) and self.own.version is not None:
            return constant(self.own.version)
        if names in (("position",), ("size",)) and case is not None:
            return Operand(f"row.{names[0]}")
        return self.derived(names[0], None) if len(names) == 1 else None

    def derived(self, name: str, array: str | None) -> Operand | None:
        for d in self.own.layout.derived:
            if d.name == name and d.array == array:
                return self.node(d.value.node, INTEGERS[d.type][0] * 8)
        return None

    def field(self, layout: LayoutPlan, of: str, names: tuple[str, ...]) -> Operand | None:
        fp = layout.field(names[0])
        if fp is None:
            return None
        f = fp.field
        if f.is_version and layout.version is not None:
            return constant(layout.version)
        checked = self.case is None or not self.case.rows.head
        if f.const is not None and len(names) == 1 and checked:
            return constant(f.const)
        self.used.add((of, f.name))
        variable = self.local[f.name] if self.case is None else f"row.{of}.{f.name}"
        match f.type:
            case ScalarType(name, enum) if len(names) == 1:
                if not is_number(f):
                    raise Refused(f"a value of type {name}")
                null = self.absence(layout, of, f)
                return Operand(variable, null, words=self.words(enum))
            case BitsType() if len(names) == 1:
                return Operand(variable, self.absence(layout, of, f))
            case BitsType(_, members) if len(names) == 2:
                for m in members:
                    if m.name == names[1]:
                        mask = (1 << m.width) - 1
                        shifted = f"{variable} >> {m.low}" if m.low else variable
                        return Operand(f"{shifted} & {mask}", words=self.words(m.enum), plain=False)
            case BytesType() if len(names) == 1:
                nullable = f.type.null is not None or f.when is not None
                return Operand(variable, f"{variable}.null" if nullable else None)
        return None

    def absence(self, layout: LayoutPlan, of: str, f: Field) -> str | None:
        """Where a field is left out."""
        if f.when is None:
            return None
        local = {p.name: f"row.{of}.{p.name}" for p in layout.fields}
        there = Names(self.plan, layout, self.local or local, used=self.used, of=of)
        return opposite(there.value(f.when))

    def words(self, enum: str | None) -> tuple[tuple[str, int], ...]:
        if enum is None:
            return ()
        return tuple((v.name, v.value) for v in self.plan.model.enums[enum].values)
