"""Modules of the package ``rows``: their imports and functions, and the values of columns as Python expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from codecgen.plan import LayoutPlan, Plan, nodes
from codecgen.plan.nodes import Value
from codecgen.schema.model import Column
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    BytesType,
    FieldType,
    Reference,
    ScalarType,
    StructType,
)
from codecgen.targets.construct.expressions import PythonExpressions
from codecgen.targets.construct.homes import Home, class_name, symbol
from codecgen.targets.python_source import WIDTH, Code, assign, return_statement, string

ROW_HELPERS = {"bits_of", "case_of"}
"""Helpers that the runtime has for rows of views only."""
_RESERVED = {"item", "Any", "Case", "bits_of", "case_of", "end_of", "wrap", "bool", "int", "tuple"}


class ViewModule:
    """Imports, names and functions of the generated module that makes the rows of one view.

    ``homes`` has the module of each layout, enum and choice. ``reserved`` has names that the module uses itself, besides
    those that every such module uses.
    """

    def __init__(
        self, plan: Plan, name: str, homes: Mapping[str, Home], reserved: Iterable[str]
    ) -> None:
        self.plan = plan
        self.name = name.upper()
        self.helpers: set[str] = set()
        self.functions: list[str] = []
        self._homes = homes
        self._modules: dict[Home, str] = {}
        self._names = {self.name, *_RESERVED, *reserved}

    def refer(self, thing: str, name: str) -> str:
        """Return ``module.name`` for a name in the generated module of the declaration ``thing``,
        and import the module, under an alias if its last name is taken. Raise KeyError if ``homes``
        lacks the declaration.
        """
        home = self._homes[thing]
        if home not in self._modules:
            self._modules[home] = self.unused_name(home[-1])
        return f"{self._modules[home]}.{name}"

    def unused_name(self, name: str) -> str:
        """Return ``name``, with underscores appended until it is unique in the module, and reserve it."""
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name

    def layout(self, layout: LayoutPlan) -> str:
        """Return the name of the codec of a version of a layout."""
        return self.refer(layout.name, symbol(layout.name, layout.version))

    def bits(self, layout: LayoutPlan, holder: str, name: str) -> str:
        """Return the expression for the number from which the field of bits ``name`` of ``holder`` was parsed."""
        self.helpers.add("bits_of")
        return f"bits_of({self.layout(layout)}, {holder}, {string(name)})"

    def text(self, head: str, runtime_import: str, body: Code) -> str:
        """Return the source of the module: ``head`` (its docstring), imports, among them the
        statement ``runtime_import``, the functions added so far, and the assignment of ``body`` to
        the upper-case name of the view.
        """
        parts = [head, "from __future__ import annotations"]
        if self.functions:
            parts.append("from typing import Any")
        parts.append("\n".join(self._imports(runtime_import)))
        text = "\n\n".join(parts)
        for function in self.functions:
            text += f"\n\n\n{function}"
        gap = "\n\n\n" if self.functions else "\n\n"
        return f"{text}{gap}{assign(self.name, body)}\n"

    def _imports(self, runtime_import: str) -> Iterator[str]:
        """Yield the import statements: runtime functions for expressions if any are used,
        ``runtime_import``, then the generated modules by package, sorted. Modules with an alias get
        a statement of their own.
        """
        other = self.helpers - ROW_HELPERS
        if other:
            yield f"from codecgen.runtime.construct import {', '.join(sorted(other))}"
        yield runtime_import
        for home in sorted({module[:-1] for module in self._modules}):
            inside = sorted((m[-1], name) for m, name in self._modules.items() if m[:-1] == home)
            source = ".".join(home)
            unchanged = [last for last, name in inside if last == name]
            if unchanged:
                yield f"from {source} import {', '.join(unchanged)}"
            for last, name in inside:
                if last != name:
                    yield f"from {source} import {last} as {name}"


class Owners(Protocol):
    """Layouts and variables that hold the fields of one case of a view."""

    derived_functions: bool
    """Derived values are calls of generated functions. Otherwise their expressions are printed in place."""

    def layout_of(self, owner: str) -> LayoutPlan:
        """Return the layout of the fields of an owner."""

    def variable_of(self, owner: str) -> str:
        """Return the variable that holds the parsed value of an owner."""

    def owner_of_array(self, array: str) -> str:
        """Return the owner of the fields of the element of ``array`` in a row."""

    def place_text(self, name: str) -> str:
        """Return the expression for a fact about where the entry was read, such as its position."""


class ViewExpressions(PythonExpressions):
    """Prints column values and conditions of one case of a view as Python expressions: also derived
    values, places (such as the position of an entry), and fields of bits as one number.
    """

    def __init__(self, module: ViewModule, owners: Owners) -> None:
        super().__init__(lambda enum: module.refer(enum, class_name(enum)), this="entry", bits=64)
        self.module = module
        self.owners = owners
        self.nested = NestedColumns(module)
        self._derived_bits: int | None = None
        """The width of the derived value that is being printed in place."""

    def text(self, value: Value) -> str:
        """Return the Python expression for a value, also for a place, a derived value (a call of
        its function, or its expression in place where there are no functions), a field of bits as
        one number, and a field in a case of a choice. Raise TypeError for columns and other nodes
        without an expression.
        """
        match value:
            case nodes.PlaceValue(known):
                return self.owners.place_text(known)
            case nodes.DerivedValue(derived, inner, bits):
                if self.owners.derived_functions:
                    owner = self.owners.layout_of("own")
                    if derived.array is None:
                        return f"{self.module.refer(owner.name, derived.name)}(entry)"
                    name = f"{derived.array}_{derived.name}"
                    array = self.owners.owner_of_array(derived.array)
                    item = self.owners.variable_of(array)
                    return f"{self.module.refer(owner.name, name)}(entry, {item})"
                outer = (self.bits, self._derived_bits)
                self.bits = self._derived_bits = bits
                text = self.text(inner)
                self.bits, self._derived_bits = outer
                return text
            case nodes.FieldValue(field, owner=owner, holders=()) if isinstance(
                field.type, BitsType
            ):
                layout = self.owners.layout_of(owner)
                return self.module.bits(layout, self.owners.variable_of(owner), field.name)
            case nodes.FieldValue() | nodes.BitValue() if case := nodes.case_in(value):
                return self._text_in_case(case, value.names[2:])
        return super().text(value)

    def comparison_text(self, value: nodes.Comparison) -> str:
        """Return the expression for a comparison. Sums in it do not wrap, except inside a derived
        value, where they wrap in the width of that value.
        """
        outer, self.bits = self.bits, self._derived_bits
        text = super().comparison_text(value)
        self.bits = outer
        return text

    def _text_in_case(self, case: nodes.FieldValue, names: tuple[str, ...]) -> str:
        """Return the expression for the value of a choice (a call of ``case_of``), or for the field
        ``names`` in it (a call of ``value_at`` around it); ``names`` may be ``()``. Both give None
        if the value is of another case than ``case``.
        """
        layout = self.module.layout(self.owners.layout_of(case.owner))
        arguments = [layout, self.owners.variable_of(case.owner), *map(string, case.names)]
        text = f"{self.use_helper('case_of')}({', '.join(arguments)})"
        return (
            f"{self.use_helper('value_at')}({', '.join([text, *map(string, names)])})"
            if names
            else text
        )

    def holder(self, owner: str) -> str:
        """Return the variable that holds the fields of an owner."""
        return self.owners.variable_of(owner)

    def is_atomic(self, value: Value) -> bool:
        """Return whether the text of a value never needs parentheses. A call of a derived function never does."""
        if isinstance(value, nodes.DerivedValue) and not self.owners.derived_functions:
            return isinstance(value.value, nodes.Sum) or self.is_atomic(value.value)
        return isinstance(value, nodes.DerivedValue) or super().is_atomic(value)

    # ------------------------------------------------------------ columns

    def column_text(self, column: Column, value: Value) -> str:
        """Return the expression for a value, converted to the type of its column: enums and bools
        to ``int``, numbers to ``bool``, uuids, bytes, structs and lists by NestedColumns. Null
        stays None. Both branches of an if/else expression are converted. Raise TypeError if
        ``text`` does not support a part of the value.
        """
        if isinstance(value, nodes.Conditional):
            then = self.column_text(column, value.then)
            otherwise = self.column_text(column, value.otherwise)
            then = f"({then})" if isinstance(value.then, nodes.Conditional) else then
            return f"{then} if {self.text(value.condition)} else {otherwise}"
        if column.type == "bool" and isinstance(value, nodes.Literal):
            return str(bool(value.value))
        text = self.text(value)
        if isinstance(value, nodes.FieldValue) and (
            column.parts or column.type in ("uuid", "binary")
        ):
            layout = self.owners.layout_of(value.owner)
            nullable = value.type.nullable
            return self.nested.value_text(column, value.field.type, text, layout, nullable=nullable)
        kind = value.type.kind
        wanted = "bool" if column.type == "bool" else "int"
        if kind == "null" or kind not in ("bool", "enum", "int") or kind == wanted:
            return text
        made = f"{wanted}({text})"
        return f"None if {text} is None else {made}" if value.type.nullable else made

    def column_body(self, column: Column, value: Value) -> list[str]:
        """Return the lines of a function body that returns a value converted to the type of its
        column. A chain of if/else expressions becomes ``if`` statements. Raise TypeError if
        ``text`` does not support a part of the value.
        """
        lines = []
        while isinstance(value, nodes.Conditional):
            line = f"    if {self.text(value.condition)}:"
            lines.append(line if len(line) <= WIDTH else f"{line}  # fmt: skip")
            lines += return_statement(self._column_code(column, value.then), 8)
            value = value.otherwise
        return [*lines, *return_statement(self._column_code(column, value), 4)]

    def _column_code(self, column: Column, value: Value) -> Code:
        """Return the code for a value of a column. A sum needs no conversion."""
        return self.code(value) if isinstance(value, nodes.Sum) else self.column_text(column, value)


class NestedColumns:
    """Prints the values of struct, list, uuid and binary columns as Python expressions: structs and
    lists become tuples, uuids and text bytes. ``text`` is the Python expression that holds the
    field's value, ``layout`` the layout around the field.
    """

    def __init__(self, module: ViewModule) -> None:
        self.module = module
        self.plan = module.plan

    def value_text(
        self,
        column: Column,
        type_: FieldType | Reference,
        text: str,
        layout: LayoutPlan,
        *,
        nullable: bool,
        depth: int = 0,
    ) -> str:
        """Return the expression for the column value of ``text``, a field or element of the type
        ``type_``: a tuple for a struct or list, bytes for a uuid or for text in a binary column,
        ``int`` for an enum or bool (unless the column is bool), otherwise ``text``. With
        ``nullable``, None stays None. ``depth`` is the number of lists around it.

        ``layout`` has the field. ``depth`` is the number of lists around the value; it names the loop variable.
        """
        part = "part" + (str(depth + 1) if depth else "")
        match type_:
            case StructType(ref) | (Reference() as ref):
                made = self._members(column, ref, text, layout, depth)
            case ArrayType(element) if column.element is not None:
                one = self.value_text(
                    column.element, element, part, layout, nullable=False, depth=depth + 1
                )
                made = f"tuple({text})" if one == part else f"tuple([{one} for {part} in {text}])"
            case ArrayType(Reference() as ref):
                inside = self._members(column, ref, part, layout, depth + 1)
                made = f"tuple([{inside} for {part} in {text}])"
            case ScalarType("uuid"):
                made = f"{text}.bytes"
            case ScalarType(name, enum) if column.type != "bool" and (enum or name == "bool"):
                made = f"int({text})"
            case BytesType(text=True) if column.type == "binary":
                made = f"{text}.encode()"
            case _:
                return text
        return f"None if {text} is None else {made}" if nullable and made != text else made

    def _members(
        self, column: Column, ref: Reference, text: str, layout: LayoutPlan, depth: int
    ) -> str:
        """Return the expression for a tuple of the members of a struct column, from the layout
        value that ``text`` holds. ``layout`` is the outer layout, ``depth`` the number of lists
        around the value.
        """
        held = self.plan.expected(ref, layout)
        several = len(self.plan.held(ref, layout)) > 1
        found = [self._member(m, held, text, several, depth) for m in column.members]
        return f"({found[0]},)" if len(found) == 1 else f"({', '.join(found)})"

    def _member(
        self, column: Column, layout: LayoutPlan, text: str, several: bool, depth: int
    ) -> str:
        """Return the expression for one member of a struct column, a field or a derived value; "None" if
        ``layout`` has no such field. If the struct may be of ``several`` versions, the expression gives None for a value
        without the field. Bits become one number.
        """
        fp = layout.field(column.name)
        derived = next((d for d in layout.layout.looked_up if d.name == column.name), None)
        if derived is not None:
            return f"{self.module.refer(layout.name, derived.name)}({text})"
        if fp is None and not several:
            return "None"  # not in this version
        value = f'{text}.get("{column.name}")' if several else f"{text}.{column.name}"
        f = (
            next(f for f in layout.layout.fields if f.name == column.name)
            if fp is None
            else fp.field
        )
        nullable = f.when is not None or f.nullable or several
        if isinstance(f.type, BitsType):
            made = self.module.bits(layout, text, column.name)
            return f"None if {value} is None else {made}" if nullable else made
        return self.value_text(column, f.type, value, layout, nullable=nullable, depth=depth)
