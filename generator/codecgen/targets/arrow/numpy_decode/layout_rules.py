"""The rules of layouts in readers by NumPy: where they are broken, for many entries at once."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.plan import RulePlan, nodes
from codecgen.plan.columns import CasePlan
from codecgen.plan.nodes import Value
from codecgen.targets.arrow.arithmetic import NOT_DIRECT, Refused, Term, refuse_end
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Expr
from codecgen.targets.arrow.numba_decode.field_variables import is_number
from codecgen.targets.arrow.numba_decode.layout_rules import (
    field_of_rule,
    refuse_rules,
    rules_of_fields,
    rules_of_rows,
)
from codecgen.targets.arrow.numpy_decode.arithmetic import NumpyArithmetic
from codecgen.targets.arrow.numpy_decode.field_variables import NumpyFields


@dataclass(slots=True)
class RuleFields(NumpyFields):
    """Resolves values in rules to NumPy vectors, with the first, last, largest and smallest number
    of each entry's rows.
    """

    def leaf(self, value: Value) -> Term:
        """Return a value as a Term, as NumpyFields does; the first, last, largest or smallest
        element gives a field of the rows. Raise Refused for other values, and for end fields that
        are nested or no integers. Nullable end fields are not refused here: kernels, which come
        first, refuse the view.
        """
        if not isinstance(value, nodes.EndValue):
            return NumpyFields.leaf(self, value)
        inner = value.value
        if not isinstance(inner, nodes.FieldValue) or inner.holders or not is_number(inner.field):
            raise refuse_end(value, NOT_DIRECT)
        self.used.add(("item", inner.field.name))
        return Term(self.of_row(value.end, inner.field.name))


class CaseRules:
    """Rules of the layout of entries, as masks of the entries of one case of a view that meet them.
    The fields that the rules use are added to ``fields.used``. Header-only cases have no rules.
    """

    def __init__(self, case: CasePlan, fields: RuleFields) -> None:
        self.case = case
        self.fields = fields
        self.of_fields: list[tuple[RulePlan, Expr]] = []
        self.of_rows: list[tuple[RulePlan, Expr]] = []
        self.ascending: list[str] = []
        if case.rows.header_only:
            return
        if case.array is not None:
            refuse_rules(case.element, [case.entry.name])
        self.of_fields = self.conditions(rules_of_fields(case.entry))
        rules = rules_of_rows(case)
        self.of_rows = self.conditions([rule for rule in rules if rule.condition is not None])
        for rule in rules:
            if rule.ascending is None:
                continue
            f = rule.ascending.field
            if not is_number(f):
                raise Unsupported("a rule about numbers that NumPy does not compare", f)
            fields.used.add(("item", f.name))
            self.ascending.append(f.name)

    def conditions(self, rules: list[RulePlan]) -> list[tuple[RulePlan, Expr]]:
        """Return each rule with the mask of structures in which it holds, in the order of
        ``rules``. Raise Unsupported if NumPy readers cannot express a rule.
        """
        arithmetic = NumpyArithmetic(self.fields.leaf, 64)
        found = []
        for rule in rules:
            assert rule.condition is not None
            try:
                found.append((rule, arithmetic.condition(self.fields.folded(rule.condition))))
            except Refused as error:
                raise Unsupported(error.reason, field_of_rule(self.case.entry, rule)) from None
        return found
