"""What all kernels of a view share: the module, the slots of its tables, what the columns of each case are made of."""

from __future__ import annotations

from collections.abc import Sequence

from codecgen.plan import FieldPlan, LayoutPlan, Plan, nodes
from codecgen.plan.column_sources import Sources, UnsupportedSource, column_sources, field_to_blame
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.plan.read_ops import names_given
from codecgen.plan.read_program import array_refusals
from codecgen.schema.model import Field
from codecgen.targets.arrow.arithmetic import Refused, Term
from codecgen.targets.arrow.checks import Unsupported, integer_of
from codecgen.targets.arrow.code_tree import FALSE, Expr, Global
from codecgen.targets.arrow.module import KernelModule
from codecgen.targets.arrow.numba_decode.column_outputs import Slots
from codecgen.targets.arrow.numba_decode.field_variables import ENTRY, ITEM, Fields, Variables
from codecgen.targets.arrow.numba_decode.layout_rules import (
    RULES,
    RowFields,
    RowRules,
    rules_of_rows,
)

INDEX = (
    "STATUS",
    "AT",
    "CASE",
    "START",
    "END",
    "CODEC",
    "SECTION",
    "SECTION_END",
    "COUNT",
    "CHECKED",
)
"""What the index says of an entry, before the values of its fields."""

STATE = ("ROWS", "ENTRIES", "LAST", "NEXT")
"""What has been written so far, before the sizes and the nulls of the columns."""


def deferred(entry: LayoutPlan) -> list[FieldPlan]:
    """Return the checksums that cover the rest of the entry. They are verified when its rows are read, in cache."""
    last = (None, entry.fields[-1].name)
    return [c for c in entry.fields if c.field.checksum is not None and c.covers[0].last in last]


def column_slots(module: KernelModule, leaves: Sequence[Leaf]) -> dict[int, Slots]:
    """Add constants to the module for the byte positions of each column's buffer addresses (in the
    table ``out``) and of its written total and null count (in ``state``; totals lie in ``room``
    alike). Return their Slots by the index of the column.
    """
    out = {}
    for leaf in leaves:
        places = (
            ("DATA", 8 * (3 * leaf.index)),
            ("VALIDITY", 8 * (3 * leaf.index + 1)),
            ("OFFSETS", 8 * (3 * leaf.index + 2)),
            ("AT", 8 * (len(STATE) + leaf.index)),
            ("NULLS", 8 * (len(STATE) + len(leaves) + leaf.index)),
        )
        made = [module.constant(f"{leaf.name}_{w}".upper(), at) for w, at in places]
        out[leaf.index] = Slots(*made)
    return out


class Kernels:
    """Generated numba functions that decode the entries of one view (a table over entries such as
    record batches) into Arrow buffers, with the module that they are emitted to. Pass 1 notes each
    entry in a row of the index table, pass 2 decodes the rows that it holds. A case says what rows
    a view takes from one layout.
    """

    def __init__(self, plan: Plan, view: ViewPlan) -> None:
        self.plan = plan
        self.view = view
        self.module = KernelModule()
        try:
            self.sources = {case.number: column_sources(view, case) for case in view.cases}
        except UnsupportedSource as error:
            raise Unsupported(error.reason, error.field) from None
        self.asked = {case.number: self.ask(case) for case in view.cases}
        self.module.group(
            "The index: where its numbers of an entry lie, and how many bytes it has for each"
        )
        self.slots = {name: self.module.constant(name, 8 * i) for i, name in enumerate(INDEX)}
        named = sorted({key for case in view.cases for key in self.noted(case)})
        self.fields_at: dict[tuple[str, str], Global] = {}
        for i, (part, name) in enumerate(named):
            wanted = f"{part}_{name.replace(' ', '_')}".upper()
            self.fields_at[part, name] = self.module.constant(wanted, 8 * (len(INDEX) + i))
        self.width = len(INDEX) + len(named)
        self.row_size = self.module.constant("ROW_SIZE", 8 * self.width)
        self.module.group("The state: what has been written so far")
        self.state = {name: self.module.constant(name, 8 * i) for i, name in enumerate(STATE)}
        self.module.group(
            "Columns: addresses of their buffers, how much of each is written, how many nulls"
        )
        self.columns = column_slots(self.module, view.leaves)

    # ------------------------------------------------------------ cases

    def fields(self, case: CasePlan, variables: Variables) -> Fields:
        """Return the context in which the column values of ``case`` are resolved."""
        part = ITEM if case.array is None else ENTRY
        return Fields(self.plan, case.entry, part, variables, case)

    def ask(self, case: CasePlan) -> Fields:
        """Return a Fields object that has collected the fields, array ends and places that the
        columns and row rules of ``case`` use. Raise Unsupported if kernels cannot express a column
        or rule.
        """
        fields = self.fields(case, Variables())
        for leaf, value in self.sources[case.number].numbers:
            self.term(fields, case, value, leaf)
        self.refused(fields, case)
        if case.array is not None:
            rules = self.row_rules(case, fields.variables)
            fields.used |= rules.fields.used
        return fields

    def row_rules(self, case: CasePlan, variables: Variables) -> RowRules:
        """Return the rules that the rows of an entry have to meet together."""
        return RowRules(case, RowFields(self.plan, case.entry, ENTRY, variables, case))

    def refused(self, fields: Fields, case: CasePlan) -> list[Expr]:
        """Return the conditions under which the rows of an entry are rejected, from requirements of
        the schema on their array, without conditions that are always false; ``[]`` if there are
        none or entries are rows themselves. Raise Unsupported if kernels cannot express one.
        """
        if case.array is None:
            return []
        return [
            condition
            for value in array_refusals(case.array)
            if (condition := self.condition(fields, value, case.array.field)) != FALSE
        ]

    def condition(self, fields: Fields, value: nodes.Value, f: Field) -> Expr:
        """Return ``value``, with constants folded, as a condition of kernel code. Raise
        Unsupported, which names ``f``, if kernels cannot express it.
        """
        try:
            return fields.arithmetic().condition(fields.folded(value))
        except Refused as error:
            raise Unsupported(error.reason, f) from None

    def term(self, fields: Fields, case: CasePlan, value: nodes.Value, leaf: Leaf) -> Term:
        """Return the value of the numeric column ``leaf`` as a Term; a ``u64`` or float field gives
        its raw bits if the column has the matching type. Raise Unsupported if kernels cannot
        express the value.
        """
        plain = fields.folded(value)
        try:
            if isinstance(plain, nodes.FieldValue):
                found = fields.raw(plain, leaf.column.type)
                if found is not None:
                    return found
            return fields.arithmetic().term(plain)
        except Refused as error:
            raise Unsupported(error.reason, field_to_blame(case, value)) from None

    def noted(self, case: CasePlan) -> set[tuple[str, str]]:
        """Return the part and name of each value that the index stores of an entry for its rows:
        entry fields, checksums and their starts, array ends, and whether rules apply. Return the
        empty set if entries are rows themselves. Raise Unsupported if a rule uses elements of
        another array.
        """
        if case.array is None:
            return set()
        asked = self.asked[case.number]
        out = {(part, name) for part, name in asked.used if part == ENTRY}
        out |= {(ENTRY, name) for name in names_given(case.array)}
        for c in deferred(case.entry):
            out |= {(ENTRY, c.name), (ENTRY, f"start of {c.name}")}
        if rules_of_rows(case):
            out.add(RULES)
        for end in asked.ends.values():
            assert isinstance(end.value, nodes.FieldValue)
            out.add((end.end, end.value.field.name))
        return out

    def entry_fields(self, case: CasePlan) -> set[str]:
        """Return the names of the entry fields that the rows of ``case`` use."""
        return {name for part, name in self.noted(case) if part == ENTRY and " " not in name}

    def item_fields(self, case: CasePlan) -> set[str]:
        """Return the names of the row fields that the columns of ``case`` use."""
        return {name for part, name in self.asked[case.number].used if part == ITEM}

    def case_slots(self, case: CasePlan) -> dict[tuple[str, str], Global]:
        """Return, by part and field name, the slots in which the index stores values of an entry."""
        return {key: self.fields_at[key] for key in sorted(self.noted(case))}


def find_discriminator(view: ViewPlan) -> tuple[int, int, bool, str] | None:
    """Return where the discriminator of entries lies, as the first layout has it: byte offset, size
    in bytes, whether it is signed, and byte order (``"big"`` or ``"little"``). Return None for a
    view over one layout in one version. Raise Unsupported if it is no integer that kernels load.
    """
    if view.by is None:
        return None
    _, entry = view.entries[0]
    fp = entry.field(view.by)
    assert fp is not None and fp.offset is not None, "a discriminator has a fixed place (C021)"
    return (fp.offset, *integer_of(fp.field), fp.field.endian)


__all__ = ["INDEX", "STATE", "Kernels", "Sources", "column_slots", "deferred", "find_discriminator"]
