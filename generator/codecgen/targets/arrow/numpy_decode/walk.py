"""The readers of layouts: one field of many structures at a time."""

from __future__ import annotations

from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.columns import ViewPlan
from codecgen.schema.expression import Expression
from codecgen.schema.model import (
    INTEGERS,
    ArrayType,
    BitsType,
    BytesType,
    Field,
    Reference,
    ScalarType,
)
from codecgen.targets.arrow.code import Code, Unsupported, function_name
from codecgen.targets.arrow.columns import Columns
from codecgen.targets.arrow.expressions import Refused
from codecgen.targets.arrow.numba_decode.values import names_needed
from codecgen.targets.arrow.numpy_decode.scope import Names, Operand, opposite
from codecgen.targets.arrow.scope import is_number
from codecgen.targets.pycode import call, docstring, render

_FIXED = {"f64": 8, "bool": 1, "uuid": 16}
_TAKEN = {"walk", "np", "row", "choose", "wrap_8", "wrap_16", "wrap_32"}


def kind_of(name: str, layout: LayoutPlan) -> str:
    """The NumPy type of an integer of fixed size."""
    size, signed = INTEGERS[name]
    order = "" if size == 1 else "<" if layout.layout.endian == "little" else ">"
    return f"{order}{'i' if signed else 'u'}{size}"


class VectorWalk:
    """Writes readers of layouts. What the kernels cannot express was refused before (``columns`` is of theirs)."""

    def __init__(self, plan: Plan, view: ViewPlan, columns: Columns) -> None:
        self.plan = plan
        self.view = view
        self.columns = columns
        self.code = Code()
        self.done: set[str] = set()

    def operand(self, names: Names, expression: Expression, f: Field) -> Operand:
        try:
            return names.value(expression)
        except Refused as error:
            raise Unsupported(error.reason, f) from None

    def function(self, head: str, doc: str) -> None:
        self.code.depth = 0
        self.code.lines += ["", "", f"def {head}:", docstring(doc, indent=4)]
        self.code.depth = 1

    def about(self, layout: LayoutPlan, what: str) -> str:
        version = "" if layout.version is None else f", version {layout.version}"
        return f"{layout.layout.span.file}{version}: {what}."

    def reader(self, layout: LayoutPlan, wanted: set[str], *, part: bool) -> str:
        """Reads all of a layout."""
        name = function_name("read_part" if part else "read", layout)
        if name in self.done:
            return name
        self.done.add(name)
        texts = {p.name for p in layout.fields if getattr(p.field.type, "text", False)}
        wanted = wanted | texts
        for fp in layout.fields:  # those of the elements come first
            if isinstance(fp.field.type, ArrayType) and fp.field.type.compression is None:
                self.inner(fp.field.type, layout, fp.field, part)
        what = "a part of a row" if part else "a row"
        self.function(f"{name}(walk: Walk) -> Fields", self.about(layout, what))
        self.walk(layout, wanted)
        self.returns(layout, sorted(wanted))
        return name

    def inner(self, type_: ArrayType, layout: LayoutPlan, f: Field, part: bool) -> str | None:
        """The reader of the elements of an array in a row."""
        if not isinstance(type_.element, Reference):
            return None
        if part:
            raise Unsupported("an array in an array of a row", f)
        held = self.plan.of(type_.element)
        element = ([p for p in held if p.version in (layout.version, None)] or list(held))[0]
        members: set[str] = set()
        for case in self.view.cases:
            _, found = self.columns.resolved[case.number].sinks.lists.get(f.name, (None, {}))
            members |= set(found)
        return self.reader(element, members & {p.name for p in element.fields}, part=True)

    def returns(self, layout: LayoutPlan, wanted: list[str]) -> None:
        fields = {n: self.local(layout, n) for n in wanted}
        value = render(call("Fields", **fields), 4, len("    return "))
        self.code.lines += f"    return {value}".split("\n")

    def local(self, layout: LayoutPlan, name: str) -> str:
        """The variable that holds a field."""
        names = _TAKEN | {p.name for p in layout.fields if p.name != name}
        while name in names:
            name += "_"
        return name

    def fresh(self, layout: LayoutPlan, name: str) -> str:
        """A variable that holds no field."""
        return name if layout.field(name) is None else self.fresh(layout, f"{name}_")

    def locals(self, layout: LayoutPlan) -> Names:
        local = {p.name: self.local(layout, p.name) for p in layout.fields}
        return Names(self.plan, layout, local)

    def refuse(self, condition: str) -> None:
        self.code.call("walk.refuse", condition)

    def walk(self, layout: LayoutPlan, wanted: set[str], stop: str | None = None) -> None:
        """Go through the fields, up to (not with) the field ``stop``."""
        names = self.locals(layout)
        needed = names_needed(layout, True) | wanted
        windows: list[str | None] = []
        for fp in layout.fields:
            f = fp.field
            for m in layout.fields:
                if m.measures is not None and m.measures.first == fp.name:
                    self.code.add(f"walk.open({self.local(layout, m.name)})")
                    last = m.measures.last
                    windows.append(None if last == layout.fields[-1].name else last)
            self.checksums_at(layout, fp)
            if f.name == stop:
                return
            where = None if f.when is None else self.operand(names, f.when, f).holds
            if where is None or where.constant != 0:
                self.one(layout, fp, names, needed, where)
            elif f.name in needed:
                self.absent(layout, f)
            while windows and windows[-1] == f.name:
                self.code.add("walk.close()")
                windows.pop()
            self.checksums_behind(layout, fp)
        for _ in windows:
            self.code.add("walk.close()")

    def checksums_at(self, layout: LayoutPlan, fp: FieldPlan) -> None:
        """Where a run begins that a checksum covers."""
        for c in layout.fields:
            if c.covers is None or c.field.checksum is None or c.covers.first != fp.name:
                continue
            if c.covers.last in (None, layout.fields[-1].name):
                stored = self.local(layout, c.name)
                self.code.add(f'walk.checksum("{c.field.checksum}", {stored}, walk.p, walk.end)')
            else:
                self.code.add(f"{self.fresh(layout, f'{c.name}_at')} = walk.p")

    def checksums_behind(self, layout: LayoutPlan, fp: FieldPlan) -> None:
        for c in layout.fields:
            if c.covers is None or c.field.checksum is None or c.covers.last != fp.name:
                continue
            if c.covers.last != layout.fields[-1].name:
                stored, at = self.local(layout, c.name), self.fresh(layout, f"{c.name}_at")
                self.code.add(f'walk.checksum("{c.field.checksum}", {stored}, {at}, walk.p)')

    def absent(self, layout: LayoutPlan, f: Field) -> None:
        """A field that is never there in this version."""
        local = self.local(layout, f.name)
        if isinstance(f.type, BytesType):
            self.code.add(f"{local} = walk.nothing()")
        elif isinstance(f.type, ScalarType | BitsType):
            self.code.add(f"{local} = walk.zero()")

    def one(
        self,
        layout: LayoutPlan,
        fp: FieldPlan,
        names: Names,
        needed: set[str],
        where: Operand | None,
    ) -> None:
        f = fp.field
        sometimes = where is not None and where.constant is None
        if isinstance(f.type, ArrayType) and f.type.compression is not None:
            self.refuse("True" if where is None or not sometimes else where.text)
            return
        text = self.read(layout, fp, needed)
        if sometimes:
            assert where is not None
            if isinstance(f.type, ArrayType) and f.type.counted_by is not None:
                raise Unsupported("an array that may be left out with its count elsewhere", f)
            text = f"walk.when({where.text}, lambda walk: {text})"
        keeps = f.name in needed
        only_passed = text.startswith(("walk.skip(", "walk.numbers("))
        target = f"{self.local(layout, f.name)} = " if keeps and not only_passed else ""
        comment = f"  # {f.name}" if not target else ""
        self.code.add(f"{target}{text}{comment}")
        for rule in self.rules(layout, f, names):
            self.refuse(f"({where.text}) & ({rule})" if sometimes and where is not None else rule)

    def read(self, layout: LayoutPlan, fp: FieldPlan, needed: set[str]) -> str:
        """What reads a field, or passes over it."""
        f = fp.field
        match f.type:
            case ScalarType(name) | BitsType(name):
                size = INTEGERS[name][0] if name in INTEGERS else _FIXED.get(name)
                number = is_number(f) or isinstance(f.type, BitsType)
                if name == "bool":
                    return 'walk.refuse(walk.fixed("u1") > 1)'
                if size is not None and not (f.name in needed and number):
                    return f"walk.skip({size})"
                return self.length(name, layout)
            case BytesType():
                return self.bytes(layout, f, f.type)
            case ArrayType():
                return self.array(layout, f, f.type)
        raise Unsupported("a layout in the place of a field", f)

    def length(self, name: str, layout: LayoutPlan) -> str:
        """What reads an integer."""
        if name in INTEGERS:
            return f'walk.fixed("{kind_of(name, layout)}")'
        return f"walk.{name}()"

    def bytes(self, layout: LayoutPlan, f: Field, type_: BytesType) -> str:
        arguments = []
        if type_.length == "rest":
            at = next(i for i, p in enumerate(layout.fields) if p.name == f.name)
            arguments.append(f"walk.rest({sum(p.size or 0 for p in layout.fields[at + 1 :])})")
        elif isinstance(type_.length, int):
            arguments.append(str(type_.length))
        else:
            arguments.append(self.length(type_.length, layout))
            if type_.null is not None:
                null = type_.null - 1 if type_.length == "compact" else type_.null
                arguments.append(f"null={null}")
        if type_.text:
            arguments.append("text=True")
        return f"walk.bytes({', '.join(arguments)})"

    def array(self, layout: LayoutPlan, f: Field, type_: ArrayType) -> str:
        count = "None"
        if type_.count is not None:
            count = self.length(type_.count, layout)
        elif type_.counted_by is not None:
            count = self.local(layout, type_.counted_by)
        if isinstance(type_.element, ScalarType):
            return f"walk.numbers({count}, {INTEGERS[type_.element.name][0]})"
        read = self.inner(type_, layout, f, False)
        least = f", at_least={type_.at_least}" if type_.at_least else ""
        return f"walk.elements({count}, {read}{least})"

    # ------------------------------------------------------------ rules

    def rules(self, layout: LayoutPlan, f: Field, names: Names) -> list[str]:
        """Where a field is not as it should be."""
        local = self.local(layout, f.name)
        out = []
        if f.const is not None:
            out.append(f"{local} != {f.const}")
        if f.is_version:
            out.append(f"{local} != {layout.version}")
        if f.refuse is not None:
            out.append(self.operand(names, f.refuse, f).holds.text)
        if f.valid is not None:
            valid = self.operand(names, f.valid, f)
            if valid.constant != 1:
                out.append(opposite(valid))
        if isinstance(f.type, ScalarType) and f.type.enum is not None:
            out += self.members(local, f.type.enum, f.type.only, None)
        for m in f.type.members if isinstance(f.type, BitsType) else ():
            shifted = f"{local} >> {m.low}" if m.low else local
            if m.reserved:
                out.append(f"{local} & {((1 << m.width) - 1) << m.low} != 0")
            elif m.enum is not None:
                value = f"({shifted} & {(1 << m.width) - 1})"
                out += self.members(value, m.enum, m.only, 1 << m.width)
        return out

    def members(
        self, value: str, enum: str, only: tuple[str, ...] | None, most: int | None
    ) -> list[str]:
        """Where a value has no name in an enum."""
        found = self.plan.model.enums[enum]
        allowed = sorted({v.value for v in found.values if only is None or v.name in only})
        if found.keep_unknown or (most is not None and set(allowed) >= set(range(most))):
            return []
        if allowed == list(range(allowed[0], allowed[-1] + 1)):
            above = f"{value} > {allowed[-1]}"
            if most is not None and allowed[0] == 0:
                return [above]
            return [f"({value} < {allowed[0]}) | ({above})"]
        return [" & ".join(f"({value} != {number})" for number in allowed)]
