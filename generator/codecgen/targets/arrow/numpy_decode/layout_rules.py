"""The rules of layouts in readers by NumPy: where they are broken, for many entries at once."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.plan import RulePlan, nodes
from codecgen.plan.columns import CasePlan
from codecgen.plan.nodes import Value
from codecgen.targets.arrow.arithmetic import Term
from codecgen.targets.arrow.code_tree import Expr
from codecgen.targets.arrow.numba_decode.layout_rules import (
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
        element gives a field of the rows, an integer.
        """
        if not isinstance(value, nodes.EndValue):
            return NumpyFields.leaf(self, value)
        inner = value.value
        assert isinstance(inner, nodes.FieldValue)
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
            name = rule.ascending.field.name
            fields.used.add(("item", name))
            self.ascending.append(name)

    def conditions(self, rules: list[RulePlan]) -> list[tuple[RulePlan, Expr]]:
        """Return each rule with the mask of structures in which it holds, in the order of
        ``rules``.
        """
        arithmetic = NumpyArithmetic(self.fields.leaf, 64)
        found = []
        for rule in rules:
            assert rule.condition is not None
            found.append((rule, arithmetic.condition(self.fields.folded(rule.condition))))
        return found
