"""What the names in a view mean inside a kernel: local variables of the walk that reads the fields."""

from __future__ import annotations

from dataclasses import dataclass, field

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.columns import CasePlan
from codecgen.schema.expression import EndOf, Expression, Path
from codecgen.schema.model import (
    INTEGERS,
    VARINTS,
    BitsType,
    BytesType,
    Derived,
    Field,
    ScalarType,
)
from codecgen.targets.arrow.expressions import KernelExpressions, Operand, Refused, constant
from codecgen.targets.arrow.naming import ITEM


@dataclass(slots=True)
class Names:
    """The meaning of paths for one case of a view, or (``case`` None) inside one layout. Fields that were asked for
    gather in ``used``, ends of arrays in ``ends``."""

    plan: Plan
    own: LayoutPlan
    prefix: str
    case: CasePlan | None = None
    used: set[tuple[str, str]] = field(default_factory=set)
    ends: dict[str, tuple[str, str]] = field(default_factory=dict)
    position: bool = False

    def expressions(self) -> KernelExpressions:
        return KernelExpressions(self.resolve)

    def value(self, expression: Expression, bits: int = 64) -> Operand:
        return self.expressions().value(expression.node, bits)

    def resolve(self, path: Path | EndOf) -> Operand | None:
        if isinstance(path, EndOf):
            return self.end_of(path)
        names = path.names
        case = self.case
        if case is not None and case.array is not None and len(names) > 1:
            if names[0] == "item":
                return self.field(case.element, ITEM, names[1:])
            if names[0] == case.array.name:
                return self.derived(names[1], case.array.name)
        found = self.field(self.own, self.prefix, names)
        if found is not None:
            return found
        if names == ("version",) and self.own.version is not None:
            return constant(self.own.version)
        if names == ("position",) and case is not None:
            self.position = True
            return Operand("position")
        return self.derived(names[0], None) if len(names) == 1 else None

    def derived(self, name: str, array: str | None) -> Operand | None:
        found: Derived | None = next(
            (d for d in self.own.layout.derived if d.name == name and d.array == array), None
        )
        if found is None:
            return None
        value = self.value(found.value, INTEGERS[found.type][0] * 8)
        return value

    def end_of(self, end: EndOf) -> Operand:
        if end.path is None or len(end.path.names) != 1 or self.case is None:
            raise Refused(f"asked for as {end.end}({end.array})")
        name = end.path.names[0]
        variable = f"{end.end}_{name}"
        self.ends[variable] = (end.end, name)
        return Operand(variable)

    def field(self, layout: LayoutPlan, prefix: str, names: tuple[str, ...]) -> Operand | None:
        fp = layout.field(names[0])
        if fp is None:
            return None
        f = fp.field
        if f.is_version and layout.version is not None:
            return constant(layout.version)
        checked = self.case is None or not self.case.rows.head
        if f.const is not None and len(names) == 1 and checked:
            return constant(f.const)
        self.used.add((prefix, f.name))
        variable = prefix + f.name
        null: str | None = None
        match f.type:
            case ScalarType(name, enum) if len(names) == 1:
                if not is_number(f):
                    raise Refused(f"a value of type {name}")
                if f.when is not None:
                    inside = Names(self.plan, layout, prefix, used=self.used)
                    null = f"not ({inside.value(f.when).text})"
                return Operand(variable, null, words=self.words(enum))
            case BitsType(_, members) if len(names) == 2:
                for m in members:
                    if m.name == names[1]:
                        mask = (1 << m.width) - 1
                        shifted = (
                            f"{variable} >> {m.low} & {mask}" if m.low else f"{variable} & {mask}"
                        )
                        return Operand(shifted, words=self.words(m.enum), plain=False)
            case BytesType() if len(names) == 1:
                nullable = f.type.null is not None or f.when is not None
                return Operand(variable, f"{variable} < 0" if nullable else None)
        return None

    def words(self, enum: str | None) -> tuple[tuple[str, int], ...]:
        if enum is None:
            return ()
        return tuple((v.name, v.value) for v in self.plan.model.enums[enum].values)


def is_number(f: Field) -> bool:
    """Whether a field is an integer that 64 bits hold with their sign."""
    return isinstance(f.type, ScalarType) and (
        f.type.name in VARINTS or f.type.name in INTEGERS
    ) and f.type.name not in ("u64", "uvarlong")  # fmt: skip
