"""The readers of a view for where there is no compiler: one field of many entries, or of many rows, at a time."""

from __future__ import annotations

from dataclasses import replace

from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.columns import CasePlan, ViewPlan
from codecgen.schema.model import ArrayType, ScalarType
from codecgen.targets.arrow.code import Unsupported, function_name, integer_of
from codecgen.targets.arrow.columns import Columns
from codecgen.targets.arrow.numpy_decode.scope import Names, Operand, opposite
from codecgen.targets.arrow.numpy_decode.walk import VectorWalk, kind_of
from codecgen.targets.pycode import Call, assign, call, mapping, render, string
from codecgen.targets.pycode import Code as Expr

_HELPERS = ("Case", "Layout", "Lead", "Run")


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


class Vectors(VectorWalk):
    """Writes the readers of one view. What the kernels (``columns``) cannot express was refused before."""

    def __init__(self, plan: Plan, view: ViewPlan, columns: Columns) -> None:
        super().__init__(plan, view, columns)
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
        for entry, keys in self.view.layouts():
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
        refuse = None
        if f.refuse is not None:
            names = Names(self.plan, entry, {p.name: p.name for p in entry.fields})
            refuse = self.operand(names, f.refuse, f).holds.text
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
            count = self.fresh(entry, "count")
            add(f"{count} = {self.length(type_.count, entry)}")
        elif type_.counted_by is not None:
            count = self.local(entry, type_.counted_by)
        said = count != "walk.none()"
        if said:
            self.refuse(f"({count} < 0) | ({count} > walk.most)")
        codec = "walk.zero()"
        if type_.compression is not None:
            codec = self.fresh(entry, "codec")
            add(f"{codec} = {self.operand(names, type_.compression.by, f).text}")
        if type_.length is not None:
            length = self.fresh(entry, "length")
            add(f"{length} = {self.length(type_.length, entry)}")
            self.refuse(f"({length} < 0) | ({length} != walk.end - walk.p)")
        elif said and type_.compression is not None:
            self.refuse(f"({count} == 0) & (walk.p != walk.end)")
            add(f"{codec} = np.where({count} == 0, 0, {codec})")
        fields = {n: self.local(entry, n) for n in sorted(self.wanted(entry, "entry"))}
        run = call("Run", "walk.p", "walk.end", codec, count, call("Fields", **fields))
        value = render(run, 4, len("    return "))
        self.code.lines += f"    return {value}".split("\n")
        return name
