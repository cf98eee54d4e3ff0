"""The rules of layouts in kernels: they are applied where the caller asks for a full check."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from codecgen.plan import FieldPlan, LayoutPlan, Plan, RulePlan, nodes
from codecgen.plan.columns import CasePlan
from codecgen.plan.constant_folding import as_truth, fold, is_known
from codecgen.plan.equality import conjuncts, implied_value
from codecgen.plan.nodes import Value
from codecgen.schema.model import Field
from codecgen.targets.arrow.arithmetic import NOT_DIRECT, Arithmetic, Refused, Term, refuse_end
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Expr, Var, all_of, any_of, invert
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.field_variables import (
    ENTRY,
    ITEM,
    Fields,
    Variables,
    is_number,
)
from codecgen.targets.arrow.numba_decode.value_reader import ValueReader

RULES = (ENTRY, "rules apply")
"""What the index notes of an entry: whether the rules are applied to its rows."""

WITH_CARE, WITH_RULES = 1, 2
"""Bits of ``full_check``: leave to the reference codecs what a view says needs a full check; apply the rules of layouts."""


def field_of_rule(layout: LayoutPlan, rule: RulePlan) -> Field:
    """Return the field that a rule is about."""
    fp = layout.field(rule.rule.about)
    return layout.fields[0].field if fp is None else fp.field


def rules_of_fields(layout: LayoutPlan) -> list[RulePlan]:
    """Return the rules that ask for no elements of an array."""
    return [rule for rule in layout.rules if rule.elements_of is None]


def rules_of_rows(case: CasePlan) -> list[RulePlan]:
    """Return the rules of the entry that use elements of the case's array of rows. Skip rules about
    an array that is absent in this case. Raise Unsupported if a rule uses elements of another
    array, or of any array if the case has none.
    """
    found = []
    for rule in case.entry.rules:
        fp = case.entry.field(rule.elements_of or "")
        if fp is None:
            continue
        if case.array is not None and fp.name == case.array.name:
            found.append(rule)
        elif not _is_left_out(case, fp):
            raise Unsupported(
                "a rule about another array than that of the rows", field_of_rule(case.entry, rule)
            )
    return found


def _is_left_out(case: CasePlan, fp: FieldPlan) -> bool:
    """Return whether the condition of a case implies that an optional field is absent. Return False
    if the field or the case has no condition, or if nothing follows from it.
    """
    if fp.when is None or case.when is None:
        return False
    holding = conjuncts(case.when)
    found = fold(fp.when, lambda value: implied_value(holding, value))
    return is_known(found) and not as_truth(found)


def refuse_rules(layout: LayoutPlan, around: Collection[str] = ()) -> None:
    """Raise Unsupported if ``layout``, which lies in another, has a rule, since nothing would check
    it there. Rules about elements of an array with ``nesting: 1`` are allowed if ``around``, the
    names of the layouts around it, has this layout: the array is absent there.

    Args:
        layout: The layout.
        around: The names of the layouts that it lies in. Where it lies in itself, an array with ``nesting: 1`` is not
            there, and rules about its elements are met.
    """
    for rule in layout.rules:
        array = layout.field(rule.elements_of or "")
        if (
            array is None
            or layout.name not in around
            or getattr(array.field.type, "nesting", None) != 1
        ):
            raise Unsupported(
                "a rule of a layout that lies in another", field_of_rule(layout, rule)
            )


def breach_of(fields: Fields, rule: RulePlan) -> Expr:
    """Return the condition that a rule with a condition is broken; its sums wrap in 64 bits. Raise
    Unsupported if kernels cannot express it, AssertionError for a rule that only says that numbers
    ascend.
    """
    assert rule.condition is not None
    arithmetic = fields.arithmetic()
    arithmetic.bits = 64
    try:
        return opposite_of(arithmetic, fields.folded(rule.condition))
    except Refused as error:
        raise Unsupported(error.reason, field_of_rule(fields.layout, rule)) from None


def opposite_of(arithmetic: Arithmetic, value: Value) -> Expr:
    """Return the expression that is true if the condition ``value`` is false; ``and``, ``or`` and
    ``not`` are resolved by De Morgan's laws. Raise Refused if kernels cannot express the condition.
    """
    match value:
        case nodes.Logical(operator, left, right):
            sides = [opposite_of(arithmetic, left), opposite_of(arithmetic, right)]
            return all_of(sides) if operator == "or" else any_of(sides)
        case nodes.Negation(operand):
            return arithmetic.condition(operand)
    return invert(arithmetic.condition(value))


def fields_of_rules(plan: Plan, layout: LayoutPlan) -> set[str]:
    """Return the names of the fields that the rules of a layout use, for rules that use no array
    elements. Raise Unsupported if kernels cannot express such a rule.
    """
    asked = Fields(plan, layout, ENTRY, Variables())
    for rule in rules_of_fields(layout):
        breach_of(asked, rule)
    return {name for _, name in asked.used}


def check_fields(values: ValueReader, fields: Fields, apply: Expr) -> None:
    """Emit code by which the kernel fails if a rule that uses no array elements is broken, where
    the condition ``apply`` holds. Emit nothing if there are no such rules. Raise Unsupported if
    kernels cannot express a rule.
    """
    rules = rules_of_fields(fields.layout)
    if rules:
        with values.code.when(apply):
            for rule in rules:
                values.fail_if(breach_of(fields, rule), field_of_rule(fields.layout, rule))


@dataclass(slots=True)
class RowFields(Fields):
    """Resolves values in rules to the variables of a kernel: fields of an entry, and of its rows
    the first, last, largest and smallest number so far.
    """

    extremes: dict[tuple[str, str], Var] = field(default_factory=dict)

    def end(self, value: nodes.EndValue) -> Term:
        """Return an integer field of the first, last, largest or smallest row as a Term, a variable
        that :class:`RowRules` sets to 0 and updates with each row. Raise Refused for array elements
        themselves, and for fields that are nested, nullable or no integers.
        """
        inner = value.value
        plain = isinstance(inner, nodes.FieldValue) and not inner.holders
        if not plain or not is_number(inner.field):  # type: ignore[union-attr]
            raise refuse_end(value, NOT_DIRECT)
        if inner.type.nullable:
            raise refuse_end(value, "a field of its elements that may be null")
        assert isinstance(inner, nodes.FieldValue)
        self.used.add((ITEM, inner.field.name))
        key = (value.end, inner.field.name)
        found = self.extremes.setdefault(key, Var("_".join((value.end, inner.field.name))))
        return Term(found)


class RowRules:
    """Emits the checks of rules that use the elements of an entry's array of rows: before, in and
    after the kernel's loop over the rows. ``apply`` is the condition that rules are checked at all,
    which the caller of the kernel decides.
    """

    def __init__(self, case: CasePlan, fields: RowFields) -> None:
        self.rules = rules_of_rows(case)
        self.fields = fields
        self.layout = case.entry
        self.breaches = [
            (rule, breach_of(fields, rule)) for rule in self.rules if rule.condition is not None
        ]
        self.ascending: list[tuple[RulePlan, str, Var]] = []
        for rule in self.rules:
            if rule.ascending is None:
                continue
            f = rule.ascending.field
            if not is_number(f):
                raise Unsupported("a rule about numbers that kernels do not compare", f)
            fields.used.add((ITEM, f.name))
            known = fields.extremes.setdefault(("last", f.name), Var(f"last_{f.name}"))
            self.ascending.append((rule, f.name, known))

    def initialize(self, code: Builder) -> None:
        """Initialize the variables that hold what rules ask of all rows."""
        for variable in self.fields.extremes.values():
            code.assign(variable, 0)

    def check_row(self, values: ValueReader, code: Builder, apply: Expr, is_first: Expr) -> None:
        """Emit, under the condition ``apply``, the code for one row: the kernel fails if a number
        that must ascend is not above that of the row before, and the first, last, largest and
        smallest values are updated. ``is_first`` is the condition for the first row. Emit nothing
        if there are no rules.
        """
        if not self.rules:
            return
        with code.when(apply):
            for rule, name, known in self.ascending:
                value = self.fields.variables.get(ITEM, name)
                test = all_of([invert(is_first), value <= known])
                values.fail_if(test, field_of_rule(self.layout, rule))
            for (end, name), variable in self.fields.extremes.items():
                value = self.fields.variables.get(ITEM, name)
                if end == "last":
                    code.assign(variable, value)
                    continue
                further = {"max": [value > variable], "min": [value < variable]}.get(end, [])
                with code.when(any_of([is_first, *further])):
                    code.assign(variable, value)

    def check_all_rows(
        self, values: ValueReader, code: Builder, apply: Expr, is_empty: Expr
    ) -> None:
        """Emit, after the last row, code by which the kernel fails if a rule about all rows is
        broken, under the condition ``apply`` and unless there are no rows (``is_empty``). Emit
        nothing if there are no such rules.
        """
        if not self.breaches:
            return
        with code.when(all_of([apply, invert(is_empty)])):
            for rule, breach in self.breaches:
                values.fail_if(breach, field_of_rule(self.layout, rule))
