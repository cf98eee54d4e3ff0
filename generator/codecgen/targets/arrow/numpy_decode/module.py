"""The readers of a view for where there is no compiler, as a module."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.plan import FieldPlan, LayoutPlan, Plan, RulePlan
from codecgen.plan.column_sources import (
    UnsupportedSource,
    column_sources,
    require_simple_columns,
)
from codecgen.plan.columns import CasePlan, ViewPlan
from codecgen.plan.constant_folding import fold
from codecgen.plan.nodes import Value
from codecgen.plan.read_program import array_refusals
from codecgen.schema.model import Field
from codecgen.schema.types import ArrayType, ScalarType
from codecgen.targets.arrow.checks import Unsupported, function_name, integer_of
from codecgen.targets.arrow.code_tree import (
    FALSE,
    NONE,
    TRUE,
    Attribute,
    Call,
    Expr,
    Function,
    Global,
    Lambda,
    Num,
    Several,
    Table,
    Text,
    Var,
    all_values,
    call,
    iterate_expressions,
)
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.function_printer import Names, Printer, function_text, pruned
from codecgen.targets.arrow.numba_decode.array_opener import base_type, bytes_to_fixed
from codecgen.targets.arrow.numba_decode.field_variables import null_of
from codecgen.targets.arrow.numba_decode.framing import Framing, framing_of
from codecgen.targets.arrow.numba_decode.layout_rules import refuse_rules
from codecgen.targets.arrow.numpy_decode.arithmetic import either, opposite
from codecgen.targets.arrow.numpy_decode.field_variables import RAW_INTEGER, Locals, NumpyFields
from codecgen.targets.arrow.numpy_decode.layout_reader import (
    ElementReader,
    NumpyLayoutReader,
    kind_of,
)
from codecgen.targets.arrow.numpy_decode.layout_rules import CaseRules, RuleFields
from codecgen.targets.python_source import assign

_BASE = "codecgen.runtime.arrow.numpy"
_IMPORTS = (
    (f"{_BASE}_cases", ("Case", "Layout", "LengthPrefix", "Section")),
    (f"{_BASE}_fields", ("StructureReader", "choose", "wrap_16", "wrap_32", "wrap_8")),
    (f"{_BASE}_memory", ("Fields", "Nullable", "Vector")),
    ("codecgen.runtime.checksums", ("Mask",)),
)
_TAKEN = ("np", "CASES", "LAYOUTS", *(name for _, names in _IMPORTS for name in names))


def numpy_module(plan: Plan, view: ViewPlan) -> str:
    """Return the text of a view's NumPy module. Raise Unsupported if NumPy readers cannot read the
    view.
    """
    return Readers(plan, view).text()


class Readers(ElementReader):
    """Collects the functions and descriptions of the module that reads one view with NumPy, where
    there is no compiler. Functions read many entries or rows at once and return vectors; a case
    says what rows a view takes from one layout. ``row`` is the parameter of lambdas: its ``entry``,
    ``item`` and array ends.
    """

    def __init__(self, plan: Plan, view: ViewPlan) -> None:
        self.plan = plan
        self.view = view
        self.names = Names(_TAKEN)
        self.parts: list[Function | tuple[str, Expr]] = []
        self.done: dict[tuple[str | int | None, ...], str] = {}
        self.row = Var("row")
        for case in view.cases:
            for fp in case.element.given:
                raise Unsupported("a value that the layout gets from outside (`given`)", fp.field)
        try:
            self.sources = {case.number: column_sources(view, case) for case in view.cases}
            for case in view.cases:
                require_simple_columns(view, case, ("float", "double"))
        except UnsupportedSource as error:
            raise Unsupported(error.reason, error.field) from None
        self.fields = {
            case.number: NumpyFields(plan, case.entry, Locals(), case, self.row)
            for case in view.cases
        }
        self.columns = {case.number: self.columns_of(case) for case in view.cases}
        self.rules = {case.number: self.rules_of(case) for case in view.cases}
        self.refused = {case.number: self.refused_of(case) for case in view.cases}

    def refused_of(self, case: CasePlan) -> Expr | None:
        """Return the mask of entries whose rows are rejected by the schema's requirements on their
        array. Return None if there are none, or if entries are rows themselves.
        """
        if case.array is None:
            return None
        fields = self.fields[case.number]
        found = [self.condition(fields, value) for value in array_refusals(case.array)]
        found = [condition for condition in found if condition != FALSE]
        return either(found) if found else None

    def rules_of(self, case: CasePlan) -> CaseRules:
        """Return the CaseRules of a case, and add the fields that the rules read to the fields that
        readers must return.
        """
        fields = RuleFields(self.plan, case.entry, Locals(), case, self.row)
        rules = CaseRules(case, fields)
        self.fields[case.number].used |= fields.used
        return rules

    # ------------------------------------------------------------ columns

    def columns_of(self, case: CasePlan) -> list[tuple[str, Expr]]:
        """Return the name and the expression of each column of ``case`` that shows a field or has a
        number. A number that may be null is a call of ``Nullable`` if its column is nullable.
        Columns without a value, and columns inside others, are left out.
        """
        fields, found = self.fields[case.number], self.sources[case.number]
        out: list[tuple[str, Expr]] = []
        held = {leaf.index: name for name, leaf in found.fields.items()}
        numbers = {leaf.index: value for leaf, value in found.numbers}
        for leaf in self.view.leaves:
            if leaf.index in held:
                name = held[leaf.index]
                fields.used.add(("item", name))
                out.append((leaf.column.name, Attribute(Attribute(self.row, "item"), name)))
            elif leaf.index in numbers:
                number = numbers[leaf.index]
                raw = fields.raw(number, leaf.column.type)
                term = fields.arithmetic().term(fields.folded(number)) if raw is None else raw
                value = term.value
                if term.null is not None and leaf.column.nullable:
                    value = call("Nullable", value, term.null)
                out.append((leaf.column.name, value))
        return out

    def used_fields(self, layout: LayoutPlan, part: str) -> set[str]:
        """Return the names of the fields of a layout that columns and rules use, in all cases of
        the view. ``part`` says whether the layout is the entry (``"entry"``) or the row
        (``"item"``).
        """
        found: set[str] = set()
        for case in self.view.cases:
            of_case = case.element if part == "item" else case.entry
            if of_case is layout:
                found |= {name for own, name in self.fields[case.number].used if own == part}
        return found

    # ------------------------------------------------------------ the module

    def text(self) -> str:
        """Return the source of the module without its docstring: imports, reader functions,
        descriptions of cases and layouts, and the tuples ``CASES`` and ``LAYOUTS``. Raise
        Unsupported if NumPy readers cannot read the view.
        """
        cases, layouts = [], []
        discriminator = self.view.by and self.view.entries[0][1].field(self.view.by)
        if discriminator:
            # entries are indexed by numbers of the sizes that NumPy has: others raise Unsupported
            kind_of(base_type(discriminator.field), discriminator.field)
        for entry, keys in self.view.layouts():
            own = self.view.cases_of(entry)
            cases += [self.case(case) for case in own]
            layouts.append(self.layout(entry, keys, own))
        self.parts.append(("CASES", Several(tuple(map(Global, cases)))))
        self.parts.append(("LAYOUTS", Several(tuple(map(Global, layouts)))))
        taken = frozenset(self.names.taken)
        texts = []
        for part in self.parts:
            if isinstance(part, Function):
                part.body = pruned(part.body)
                texts.append("\n\n\n" + function_text(part, taken))
            else:
                name, value = part
                code = Printer(Names(taken)).code(value)
                texts.append(("\n" if name == "LAYOUTS" else "\n\n\n") + assign(name, code))
        return self.imports() + "".join(texts) + "\n"

    def imports(self) -> str:
        """Return the import statements for the names that functions, types and descriptions of the
        module use, always with ``StructureReader`` and ``Vector``.
        """
        used = {"StructureReader", "Vector"}
        for part in self.parts:
            values = [part[1]] if isinstance(part, tuple) else all_values(part.body)
            for value in values:
                used |= {
                    node.name.partition(".")[0]
                    for node in iterate_expressions(value)
                    if isinstance(node, Global)
                }
            if isinstance(part, Function):
                used |= {type_ for _, type_ in part.parameters} | {part.result}
        lines = ["from typing import Any\n\n" if "Any" in used else ""]
        lines += ["import numpy as np\n\n" if "np" in used else ""]
        for module, known in _IMPORTS:
            names = [name for name in known if name in used]
            lines.append(f"from {module} import {', '.join(names)}\n" if names else "")
        return "".join(lines).rstrip("\n")

    def describe(self, wanted: str, value: Expr) -> str:
        """Add a description as a constant of the module and return the constant's name."""
        name = self.names.new(wanted)
        self.parts.append((name, value))
        return name

    def function(
        self, name: str, parameters: list[tuple[Var, str]], result: str, doc: str, code: Builder
    ) -> None:
        """Add a function to the module."""
        self.parts.append(Function(name, parameters, result, doc, code.body))

    def about(self, layout: LayoutPlan, what: str) -> str:
        """Return the docstring of a reader: the schema file, the version and ``what``."""
        version = "" if layout.version is None else f", version {layout.version}"
        return f"{layout.layout.span.file}{version}: {what}."

    # ------------------------------------------------------------ readers

    def reader(self, layout: LayoutPlan, wanted: set[str], *, part: bool) -> str:
        """Emit a function that reads a layout and returns its ``wanted`` fields and all text
        fields; return its name. With ``part`` the layout is an array element, which may hold no
        arrays of layouts. If the function for the same layout version, fields and ``part`` was
        emitted before, return its name. Raise Unsupported if NumPy readers cannot read a field.
        """
        verb = "read_element" if part else "read"
        texts = {p.name for p in layout.fields if getattr(p.field.type, "text", False)}
        wanted = wanted | texts
        key = (verb, layout.name, layout.version, *sorted(wanted))
        if key in self.done:
            return self.done[key]
        name = self.done[key] = self.names.new(function_name(verb, layout))
        for fp in layout.given if part else ():
            raise Unsupported("a value that the layout gets from outside (`given`)", fp.field)
        code, structures = Builder(), Var("reader")
        inner = _NoArrays() if part else self
        reader = NumpyLayoutReader(self.plan, layout, code, structures, inner)
        reader.emit(wanted)
        code.emit_return(self.gathered(reader, sorted(wanted)))
        doc = self.about(layout, "a part of a row" if part else "a row")
        self.function(name, [(structures, "StructureReader")], "Fields", doc, code)
        return name

    def gathered(self, reader: NumpyLayoutReader, names: list[str]) -> Expr:
        """Return the ``Fields`` object with the fields ``names`` that a reader has read."""
        named = tuple((name, reader.local.get(name)) for name in names)
        return Call(Global("Fields"), (), named)

    def __call__(self, f: Field, element: LayoutPlan) -> str:
        """Return the name of the reader of the elements of the array ``f``, which reads the members
        that columns show. Raise Unsupported if an element has rules that readers cannot check.
        """
        refuse_rules(element)
        members: set[str] = set()
        for found in self.sources.values():
            leaf = found.fields.get(f.name)
            if leaf is not None:
                members |= {inner.column.name for inner in found.inside.get(leaf.index, ())}
        return self.reader(element, members & {p.name for p in element.fields}, part=True)

    # ------------------------------------------------------------ entries

    def layout(self, entry: LayoutPlan, keys: list[int], cases: tuple[CasePlan, ...]) -> str:
        """Add the description of a layout of entries to the module as a constant, and return its
        name: discriminators, size or length, and the function that chooses cases. Raise Unsupported
        for entries without length and size, and for conditions on fields that lie at no fixed
        place.
        """
        framing = framing_of(entry)
        if framing.open:
            raise Unsupported("of entries without a length", framing.blamed)
        measure, choose = framing.length, self.choose(entry, cases)
        named: list[tuple[str, Expr]] = [
            ("keys", Several(tuple(map(Num, keys)))),
            self.length(entry, framing),
            ("min_size", Num(bytes_to_fixed(entry))),
            ("choose", Global(choose)),
        ]
        if measure is not None and measure.refuse is not None:
            fields = NumpyFields(self.plan, entry, Locals())
            refused = self.condition(fields, measure.refuse)
            named.append(("refuse", Lambda(fields.local.get(measure.name), refused)))
        wanted = function_name("layout", entry).upper()
        return self.describe(wanted, Call(Global("Layout"), (), tuple(named)))

    def length(self, entry: LayoutPlan, framing: Framing) -> tuple[str, Expr]:
        """Return how entries are found: "size" and the size, or "prefix" and the length prefix."""
        if framing.length is None:
            return "size", Num(framing.size or 0)
        return "prefix", self.prefix(entry, framing.length) or NONE

    def condition(self, fields: NumpyFields, value: Value) -> Expr:
        """Return ``value``, with constants folded, as a mask of NumPy vectors."""
        return fields.arithmetic().condition(fields.folded(value))

    def measure(self, layout: LayoutPlan) -> FieldPlan | None:
        """Return the first unconditional length field at a fixed offset whose range goes to the end
        of the layout; None if there is none.
        """
        for m in layout.fields:
            whole = m.measures is not None and m.measures.last in (None, layout.fields[-1].name)
            if whole and m.offset is not None and m.when is None:
                return m
        return None

    def prefix(self, layout: LayoutPlan, measure: FieldPlan) -> Expr | None:
        """Return the ``LengthPrefix`` call for a length field. Return None if the start of its
        range has no fixed offset, for a varint that does not directly precede its range at the
        start of the layout, and for a compact length.
        """
        assert measure.measures is not None and isinstance(measure.field.type, ScalarType)
        assert not measure.own_bytes
        first = layout.field(measure.measures.first)
        kind = measure.field.type.name
        if measure.size is None:
            if kind not in ("varint", "varlong", "uvarint"):
                return None
            zigzag = "zigzag" if kind in ("varint", "varlong") else "uvarint"
            at_once = layout.fields[:2] == (measure, first)
            return call("LengthPrefix", Text(zigzag)) if at_once else None
        if first is None or first.offset is None:
            return None
        integer_of(measure.field)
        return call(
            "LengthPrefix", Text(kind_of(kind, measure.field)), measure.offset or 0, first.offset
        )

    def choose(self, entry: LayoutPlan, cases: tuple[CasePlan, ...]) -> str:
        """Emit the function that returns, for each entry, the number in the view of the first of
        ``cases`` whose condition on header fields holds. It returns -1 if none holds, or if its
        argument ``full_check`` is true and that case needs a full check. Return the function's
        name. Raise Unsupported if a condition reads a field that is optional or has no fixed offset.
        """
        structures, full_check = Var("reader"), Var("full_check")
        fields = NumpyFields(self.plan, entry, Locals())
        choices: list[Expr] = []
        for case in cases:
            test = TRUE if case.when is None else self.condition(fields, case.when)
            care: Expr = FALSE
            if case.full_check is not None:
                care = full_check & self.condition(fields, case.full_check)
            choices.append(Several((test, care, Num(case.number))))
        code = Builder()
        for _, name in sorted(fields.used):
            code.assign(fields.local.get(name), self.header_field(entry, name, structures))
        count = call("len", Attribute(structures, "p"))
        code.emit_return(call("choose", count, *choices))
        name = self.names.new(function_name("choose", entry))
        parameters = [(structures, "StructureReader"), (full_check, "bool")]
        self.function(name, parameters, "Vector", "Which case each entry is.", code)
        return name

    def header_field(self, entry: LayoutPlan, name: str, structures: Var) -> Expr:
        """Return the call that reads a field at its fixed offset from the start of each entry.
        Raise Unsupported if the field is missing, optional, without a fixed offset, or no integer
        that NumPy has.
        """
        fp = entry.field(name)
        if fp is None or fp.offset is None or fp.when is not None:
            blamed_field = entry.fields[0].field if fp is None else fp.field
            raise Unsupported("a condition on what lies at no fixed place", blamed_field)
        raw = fp.field.type == ScalarType(RAW_INTEGER)
        kind = Text(kind_of(RAW_INTEGER if raw else base_type(fp.field), fp.field))
        return Call(Attribute(structures, "at"), (kind, Num(fp.offset)))

    # ------------------------------------------------------------ cases

    def case(self, case: CasePlan) -> str:
        """Add the description of a case to the module as a constant, and return its name: its
        reader functions, rules, and columns as lambdas. Raise Unsupported if NumPy readers cannot
        read its rows.
        """
        named: list[tuple[str, Expr]] = [("name", Text(case.name))]
        if case.rows.header_only:
            named.append(("read", Global(self.header_reader(case))))
        else:
            read = self.reader(case.element, self.used_fields(case.element, "item"), part=False)
            named.append(("read", Global(read)))
        if case.array is not None:
            type_ = case.array.field.type
            assert isinstance(type_, ArrayType)
            measure = self.measure(case.element)
            named.append(("open", Global(self.opener(case, case.array, type_))))
            prefix = None if measure is None else self.prefix(case.element, measure)
            if prefix is not None:
                named.append(("prefix", prefix))
            if type_.at_least:
                named.append(("at_least", Num(type_.at_least)))
            if any(part == "ends" for part, _ in self.fields[case.number].used):
                named.append(("ends", TRUE))
            refused = self.refused[case.number]
            if refused is not None:
                named.append(("refuse", Lambda(self.row, refused)))
        named += self.rule_arguments(case)
        shared, columns = self.lambdas(case)
        if shared.items:
            named.append(("shared", shared))
        named.append(("columns", columns))
        return self.describe(f"rows_{case.name}".upper(), Call(Global("Case"), (), tuple(named)))

    def rule_arguments(self, case: CasePlan) -> Iterator[tuple[str, Expr]]:
        """Yield the keyword arguments ``rules`` (about fields), ``row_rules`` (about elements of
        the array of rows) and ``ascending`` (names of numbers) of the description of a case, each
        only if it has such rules. Emit a function for each rule with a condition.
        """
        rules = self.rules[case.number]
        for key, conditions in (("rules", rules.of_fields), ("row_rules", rules.of_rows)):
            if conditions:
                functions = [Global(self.rule(case, *found)) for found in conditions]
                yield key, Several(tuple(functions))
        if rules.ascending:
            yield "ascending", Several(tuple(map(Text, rules.ascending)))

    def rule(self, case: CasePlan, rule: RulePlan, condition: Expr) -> str:
        """Emit a function that returns the mask of entries in which a rule holds, with the rule's
        documentation or text as docstring, and return its name.
        """
        code = Builder()
        code.emit_return(condition)
        name = self.names.new(f"{rule.name}_in_{case.entry.name.replace('.', '_')}")
        self.function(name, [(self.row, "Any")], "Vector", rule.rule.doc or rule.rule.text, code)
        return name

    def header_reader(self, case: CasePlan) -> str:
        """Emit the reader function of a header-only case, which loads the used header fields and
        returns them as ``Fields``, and return its name. Raise Unsupported if a field is optional,
        has no fixed offset, or is no integer that NumPy has.
        """
        code, structures = Builder(), Var("reader")
        local = Locals()
        wanted = sorted(self.used_fields(case.element, "item"))
        for name in wanted:
            code.assign(local.get(name), self.header_field(case.entry, name, structures))
        code.emit_return(
            Call(Global("Fields"), (), tuple((name, local.get(name)) for name in wanted))
        )
        name = self.names.new(function_name("header", case.entry))
        self.function(
            name,
            [(structures, "StructureReader")],
            "Fields",
            self.about(case.entry, "its header"),
            code,
        )
        return name

    def lambdas(self, case: CasePlan) -> tuple[Table, Table]:
        """Return two tables of lambdas by column: columns that are equal in all rows of an entry,
        and the other columns. If entries are rows themselves, the first is empty.
        """
        shared: list[tuple[str, Expr]] = []
        columns: list[tuple[str, Expr]] = []
        for name, value in self.columns[case.number]:
            parts = {
                n.name
                for n in iterate_expressions(value)
                if isinstance(n, Attribute) and n.owner is self.row
            }
            by_row = bool(parts & {"item", "first", "last"}) or case.array is None
            (columns if by_row else shared).append((name, Lambda(self.row, value)))
        return Table(tuple(shared)), Table(tuple(columns))

    def opener(self, case: CasePlan, array: FieldPlan, type_: ArrayType) -> str:
        """Emit a function that reads an entry up to the array of rows and returns a ``Section``
        (place, codec, count, fields); return its name. The function refuses entries in which the
        array is absent or its count or length is invalid. Raise Unsupported if NumPy readers cannot
        read a field before the array, its count or length, and at a second call for the layout
        version: it has two arrays of rows.
        """
        entry, f = case.entry, array.field
        key = ("open", entry.name, entry.version)
        if key in self.done:
            raise Unsupported("one of two arrays of rows in a layout", f)
        name = self.done[key] = self.names.new(function_name("open", entry))
        code, structures = Builder(), Var("reader")
        reader = NumpyLayoutReader(self.plan, entry, code, structures, self)
        wanted = self.used_fields(entry, "entry")
        if type_.counted_by is not None:
            wanted.add(type_.counted_by)
        reader.emit(wanted, stop=f.name)
        if array.when is not None:
            reader.refuse(opposite(reader.condition(fold(array.when))))
        count: Expr = reader.method("none")
        is_counted = type_.count is not None or type_.counted_by is not None
        if type_.count is not None:
            count = Var("count")
            code.assign(count, reader.number(type_.count, structures, f))
        elif type_.counted_by is not None:
            count = reader.local.get(type_.counted_by)
        null = null_of(type_, f)
        if null is not None:  # no rows
            numbers = count
            count = Var("rows")
            code.assign(count, call("np.where", numbers.eq(null), 0, numbers))
        if is_counted:
            max_elements = Attribute(structures, "max_elements")
            reader.refuse((count < 0) | (count > max_elements))
        codec: Expr = reader.method("zero")
        if array.codec is not None:
            codec = Var("codec")
            value = reader.fields.folded(array.codec)
            found = reader.fields.arithmetic().term(value).value
            known = isinstance(found, Num)  # each entry has its own number all the same
            code.assign(codec, reader.method("zero") + found if known else found)
        if type_.length is not None:
            length = Var("length")
            code.assign(length, reader.number(type_.length, structures, f))
            reader.refuse((length < 0) | length.ne(reader.end - reader.p))
        elif is_counted and isinstance(codec, Var):
            none = count.eq(0)
            reader.refuse(none & reader.p.ne(reader.end))
            code.assign(codec, call("np.where", none, 0, codec))
        fields = self.gathered(reader, sorted(self.used_fields(entry, "entry")))
        code.emit_return(call("Section", reader.p, reader.end, codec, count, fields))
        doc = self.about(entry, f"up to {f.name}")
        self.function(name, [(structures, "StructureReader")], "Section", doc, code)
        return name


class _NoArrays(ElementReader):
    """ElementReader that refuses arrays in the elements of arrays."""

    def __call__(self, f: Field, element: LayoutPlan) -> str:
        """Raise Unsupported, which names the array ``f``."""
        raise Unsupported("an array in an array of a row", f)
