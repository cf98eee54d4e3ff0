"""The readers of a view for where there is no compiler: one field of many entries, or of many rows, at a time."""

from __future__ import annotations

from dataclasses import replace

from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.columns import CasePlan, ViewPlan
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
from codecgen.targets.arrow_code import Code, Unsupported, function_name, integer_of
from codecgen.targets.arrow_columns import Columns
from codecgen.targets.arrow_expressions import Refused
from codecgen.targets.arrow_scope import is_number
from codecgen.targets.arrow_values import names_needed
from codecgen.targets.arrow_vector_scope import Names, Operand, opposite
from codecgen.targets.pycode import Call, assign, call, docstring, mapping, render, string
from codecgen.targets.pycode import Code as Expr

_FIXED = {"f64": 8, "bool": 1, "uuid": 16}
_HELPERS = ("Case", "Layout", "Lead", "Run")
_TAKEN = {"walk", "np", "codec", "row", "choose", "wrap_8", "wrap_16", "wrap_32"}


def kind_of(name: str, layout: LayoutPlan) -> str:
    """The NumPy type of an integer of fixed size."""
    size, signed = INTEGERS[name]
    order = "" if size == 1 else "<" if layout.layout.endian == "little" else ">"
    return f"{order}{'i' if signed else 'u'}{size}"


def tuple_of(items: list[str]) -> Call:
    return Call("", tuple(("", item) for item in items), "()")


def tree(text: str) -> Expr:
    """A call as a tree, so that it can be broken into lines."""
    head, bracket, rest = text.partition("(")
    if not bracket or not rest.endswith(")") or not head.replace(".", "").isidentifier():
        return text
    depth = at = 0
    items: list[tuple[str, Expr]] = []
    for i, letter in enumerate(rest):
        depth += (letter == "(") - (letter == ")")
        if depth < 0 and i < len(rest) - 1:
            return text  # it goes on behind the call
        if depth < 0 or (depth == 0 and letter == ","):
            items.append(("", tree(rest[at:i].strip())))
            at = i + 1
    return Call(head, tuple(items))


class Vectors:
    """Writes the readers of one view. What the kernels (``columns``) cannot express was refused before."""

    def __init__(self, plan: Plan, view: ViewPlan, columns: Columns) -> None:
        self.plan = plan
        self.view = view
        self.columns = columns
        self.code = Code()
        self.done: set[str] = set()
        self.names = {case.number: Names(plan, case.entry, case=case) for case in view.cases}
        self.values = {case.number: self.columns_of(case) for case in view.cases}

    # ------------------------------------------------------------ columns

    def columns_of(self, case: CasePlan) -> dict[str, str]:
        """The text of each column that has values."""
        names = self.names[case.number]
        sinks = self.columns.resolved[case.number].sinks
        out: dict[str, str] = {}
        for leaf in self.view.leaves:
            expression = case.rows.values.get(leaf.column.name)
            if leaf.inside is not None or expression is None:
                continue
            held = [name for name, found in sinks.leaves.items() if found is leaf]
            held += [name for name, (found, _) in sinks.lists.items() if found is leaf]
            if held:
                names.used.add(("item", held[0]))
                out[leaf.column.name] = f"row.item.{held[0]}"
                continue
            value = self.operand(names, expression, case.entry.fields[0].field)
            out[leaf.column.name] = (
                value.text
                if value.null is None or not leaf.column.nullable
                else f"Nullable({value.text}, {value.null})"
            )
        return out

    def operand(self, names: Names, expression: Expression, f: Field) -> Operand:
        try:
            return names.value(expression)
        except Refused as error:
            raise Unsupported(error.reason, f) from None

    def wanted(self, layout: LayoutPlan, of: str) -> set[str]:
        """The fields of a layout that columns ask for, whichever case they are of."""
        found: set[str] = set()
        for case in self.view.cases:
            of_case = case.element if of == "item" else case.entry
            if of_case is layout:
                found |= {name for part, name in self.names[case.number].used if part == of}
        return found

    # ------------------------------------------------------------ the module

    def text(self) -> str:
        cases = []
        layouts = []
        for entry, keys in self.entries():
            own = list(self.view.cases_of(entry))
            cases += [self.case(case) for case in own]
            layouts.append(self.layout(entry, keys, own))
        body = "\n".join(self.code.lines)
        body += (
            f"\n\n\n{assign('CASES', tuple_of(cases))}\n{assign('LAYOUTS', tuple_of(layouts))}\n"
        )
        return self.imports(body) + body

    def imports(self, body: str) -> str:
        numpy = "import numpy as np\n\n" if "np." in body else ""
        base = "codecgen.runtime.arrow.vector"
        lines = [numpy]
        for module, known in (
            (f"{base}_cases", _HELPERS),
            (f"{base}_memory", ("Fields", "Nullable", "Vector")),
            (f"{base}s", ("Walk", "choose", "wrap_16", "wrap_32", "wrap_8")),
        ):
            used = [name for name in known if f"{name}(" in body or name in ("Walk", "Vector")]
            lines.append(f"from {module} import {', '.join(used)}\n")
        return "".join(lines)

    def entries(self) -> list[tuple[LayoutPlan, list[int]]]:
        """The layouts of entries, each with the numbers that stand for it."""
        out: list[tuple[LayoutPlan, list[int]]] = []
        for key, entry in self.view.entries:
            same = next((keys for p, keys in out if p is entry), None)
            if same is None:
                out.append((entry, [key]))
            else:
                same.append(key)
        return out

    def function(self, head: str, doc: str) -> None:
        self.code.depth = 0
        self.code.lines += ["", "", f"def {head}:", docstring(doc, indent=4)]
        self.code.depth = 1

    def assign(self, name: str, value: Expr) -> None:
        self.code.depth = 0
        self.code.lines += ["", "", assign(name, value)]

    # ------------------------------------------------------------ entries

    def layout(self, entry: LayoutPlan, keys: list[int], cases: list[CasePlan]) -> str:
        measure = self.measure(entry)
        assert measure is not None and measure.size is not None
        f = measure.field
        least = max(
            (fp.offset or 0) + (fp.size or 0)
            for fp in entry.fields
            if fp.offset is not None and fp.size is not None and fp.field.when is None
        )
        by = self.view.entries[0][1].field(self.view.choice.by or "")
        if (
            by is not None
            and (by.size or 1) > 1
            and self.view.entries[0][1].layout.endian != entry.layout.endian
        ):
            raise Unsupported("beside a number in another order of bytes", f)
        refuse = None
        if f.refuse is not None:
            names = Names(self.plan, entry, {p.name: p.name for p in entry.fields})
            refuse = self.operand(names, f.refuse, f).holds.text
            if names.used != {("entry", f.name)}:
                raise Unsupported("a length that is refused for the sake of another field", f)
        self.choose(entry, cases)
        name = function_name("layout", entry).upper()
        layout = call(
            "Layout",
            kinds=tuple_of([str(key) for key in keys]),
            lead=self.lead(entry, measure),
            least=str(least),
            choose=function_name("choose", entry),
            refuse=None if refuse is None else f"lambda {f.name}: {refuse}",
        )
        self.assign(name, layout)
        return name

    def measure(self, layout: LayoutPlan) -> FieldPlan | None:
        """The field that says how long a structure is from some field on to its end."""
        for m in layout.fields:
            whole = m.measures is not None and m.measures.last in (None, layout.fields[-1].name)
            if whole and m.offset is not None and m.field.when is None:
                return m
        return None

    def lead(self, layout: LayoutPlan, measure: FieldPlan) -> str | None:
        """How the length of a structure is found; None if it does not come before anything that varies."""
        assert measure.measures is not None and isinstance(measure.field.type, ScalarType)
        first = layout.field(measure.measures.first)
        kind = measure.field.type.name
        if measure.size is None:
            zigzag = "zigzag" if kind in ("varint", "varlong") else "uvarint"
            at_once = layout.fields[:2] == (measure, first)
            return f'Lead("{zigzag}")' if at_once else None
        if first is None or first.offset is None:
            return None
        integer_of(measure.field)
        return f'Lead("{kind_of(kind, layout)}", {measure.offset}, {first.offset})'

    def choose(self, entry: LayoutPlan, cases: list[CasePlan]) -> None:
        names = Names(self.plan, entry, {p.name: self.local(entry, p.name) for p in entry.fields})
        choices = []
        f = entry.fields[0].field
        for case in cases:
            test, care = (
                None if given is None else self.operand(names, given, f).holds
                for given in (case.rows.when, case.rows.careful)
            )
            condition = "True" if test is None else self.word(test)
            takes = "False" if care is None else f"careful & {care.inside}"
            choices.append(f"({condition}, {takes}, {case.number})")
        self.function(
            f"{function_name('choose', entry)}(walk: Walk, careful: bool) -> Vector",
            "Which case each entry is.",
        )
        for _, name in sorted(names.used):
            self.head_field(entry, name, self.local(entry, name))
        self.code.call("return choose", "len(walk.p)", *choices)

    def word(self, operand: Operand) -> str:
        return operand.text if operand.constant is None else str(bool(operand.constant))

    def head_field(self, entry: LayoutPlan, name: str, local: str) -> None:
        fp = entry.field(name)
        assert fp is not None
        integer_of(fp.field)
        base = str(getattr(fp.field.type, "base", None) or getattr(fp.field.type, "name", ""))
        self.code.add(f'{local} = walk.at("{kind_of(base, entry)}", {fp.offset})')

    # ------------------------------------------------------------ cases

    def case(self, case: CasePlan) -> str:
        if case.rows.head:
            read = function_name("head", case.entry)
            self.function(f"{read}(walk: Walk) -> Fields", self.about(case.entry, "its head"))
            wanted = sorted(self.wanted(case.element, "item"))
            for name in wanted:
                self.head_field(case.entry, name, self.local(case.entry, name))
            self.returns(case.entry, wanted)
        else:
            read = self.reader(case.element, self.wanted(case.element, "item"), part=False)
        array: dict[str, str | None] = {}
        if case.array is not None:
            type_ = case.array.field.type
            measure = self.measure(case.element)
            array["open"] = self.opener(case)
            array["lead"] = None if measure is None else self.lead(case.element, measure)
            if isinstance(type_, ArrayType) and type_.at_least:
                array["at_least"] = str(type_.at_least)
            if any(of == "ends" for of, _ in self.names[case.number].used):
                array["ends"] = "True"
        shared, columns = self.lambdas(case)
        name = f"rows_{case.name}".upper()
        value = call(
            "Case",
            name=string(case.name),
            read=read,
            **array,
            shared=mapping(shared) if shared else None,
            columns=mapping(columns),
        )
        self.assign(name, value)
        return name

    def lambdas(self, case: CasePlan) -> tuple[list[tuple[str, Expr]], list[tuple[str, Expr]]]:
        """The columns that are the same for all rows of an entry, and the others."""
        shared: list[tuple[str, Expr]] = []
        columns: list[tuple[str, Expr]] = []
        for name, text in self.values[case.number].items():
            by_row = any(word in text for word in ("row.item.", "row.first.", "row.last."))
            parts = tree(text)
            head = f"lambda {'row' if 'row.' in text else '_'}: "
            value = (
                head + parts if isinstance(parts, str) else replace(parts, head=head + parts.head)
            )
            (columns if by_row or case.array is None else shared).append((string(name), value))
        return shared, columns

    def about(self, layout: LayoutPlan, what: str) -> str:
        version = "" if layout.version is None else f", version {layout.version}"
        return f"{layout.layout.span.file}{version}: {what}."

    def opener(self, case: CasePlan) -> str:
        """Reads an entry up to its elements."""
        entry, array = case.entry, case.array
        assert array is not None and isinstance(array.field.type, ArrayType)
        type_, f = array.field.type, array.field
        name = function_name("open", entry)
        if name in self.done:
            raise Unsupported("one of two arrays of rows in a layout", f)
        self.done.add(name)
        self.function(f"{name}(walk: Walk) -> Run", self.about(entry, f"up to {f.name}"))
        wanted = self.wanted(entry, "entry")
        if type_.counted_by is not None:
            wanted.add(type_.counted_by)
        self.walk(entry, wanted, stop=f.name)
        add = self.code.add
        names = self.locals(entry)
        if f.when is not None:
            there = self.operand(names, f.when, f)
            if there.constant != 1:
                self.refuse(opposite(there))
        count = "walk.none()"
        if type_.count is not None:
            count = "count"
            add(f"count = {self.length(type_.count, entry)}")
        elif type_.counted_by is not None:
            count = self.local(entry, type_.counted_by)
        said = count != "walk.none()"
        if said:
            self.refuse(f"({count} < 0) | ({count} > walk.most)")
        codec = "walk.zero()"
        if type_.compression is not None:
            codec = "codec"
            add(f"codec = {self.operand(names, type_.compression.by, f).text}")
        if type_.length is not None:
            add(f"length = {self.length(type_.length, entry)}")
            self.refuse("(length < 0) | (length != walk.end - walk.p)")
        elif said and type_.compression is not None:
            self.refuse(f"({count} == 0) & (walk.p != walk.end)")
            add(f"codec = np.where({count} == 0, 0, codec)")
        fields = {n: self.local(entry, n) for n in sorted(self.wanted(entry, "entry"))}
        run = call("Run", "walk.p", "walk.end", codec, count, call("Fields", **fields))
        value = render(run, 4, len("    return "))
        self.code.lines += f"    return {value}".split("\n")
        return name

    # ------------------------------------------------------------ layouts, field by field

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
                self.code.add(f"{c.name}_at = walk.p")

    def checksums_behind(self, layout: LayoutPlan, fp: FieldPlan) -> None:
        for c in layout.fields:
            if c.covers is None or c.field.checksum is None or c.covers.last != fp.name:
                continue
            if c.covers.last != layout.fields[-1].name:
                stored, at = self.local(layout, c.name), f"{c.name}_at"
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
