"""The rules of layouts where rows are written: no entry is written whose rows break one."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.plan import RulePlan, nodes
from codecgen.plan.constant_folding import as_truth, is_known
from codecgen.plan.nodes import Value
from codecgen.plan.write_ops import Count, Number, WriteOp
from codecgen.targets.arrow.arithmetic import (
    NOT_DIRECT,
    NOT_WRITTEN,
    Arithmetic,
    Refused,
    Term,
    refuse_end,
)
from codecgen.targets.arrow.checks import Check, Unsupported
from codecgen.targets.arrow.code_tree import Expr, Var, all_of, call
from codecgen.targets.arrow.numba_decode.layout_rules import (
    field_of_rule,
    opposite_of,
    refuse_rules,
    rules_of_fields,
    rules_of_rows,
)
from codecgen.targets.arrow.numba_encode.planner_function import PlannerFunction
from codecgen.targets.arrow.numba_encode.values import Values


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """Rule with the condition that rows break it. ``running``: the condition changes with every row."""

    rule: RulePlan
    breach: Expr
    running: bool


class RuleValues(Values):
    """Resolves values in rules to the kernel's variables, for an entry with the rows planned so
    far, the current row included. ``running`` becomes True once a value that changes with each row
    was resolved.

    Attributes:
        extremes: Fields of rows whose largest or smallest number a rule uses.
        running: The value that was resolved last changes with every row.
    """

    def __init__(self, frame: PlannerFunction) -> None:
        super().__init__(frame.program, frame.variables)
        self.rows = frame.row - frame.start + 1
        self.extremes: set[tuple[str, str]] = set()
        self.running = False

    def field(self, value: nodes.FieldValue, part: str) -> Term:
        """Return a field as a Term, and set ``running`` if its value changes with each row. A count
        of rows is the number of rows so far. Raise Refused if the field is not written or has no
        number.
        """
        where, op = self.op(value, part)
        self.running |= where == "item" or (isinstance(op, Number) and op.running)
        if isinstance(op, Count) and op.rows:
            self.running = True
            return Term(self.rows)
        return super().field(value, part)

    def end(self, value: nodes.EndValue) -> Term:
        """Return a field of the first, last, largest or smallest row as a Term, which is never
        null, and set ``running``. Raise Refused for elements that are no layouts, for nested
        fields, and for fields that are not written as a number.
        """
        self.running = True
        inner = value.value
        if value.end in ("first", "last"):
            return super().end(value)
        if not isinstance(inner, nodes.FieldValue) or inner.holders:
            raise refuse_end(value, NOT_DIRECT)
        if not isinstance(self.op(inner, "item")[1], Number):
            raise refuse_end(value, NOT_WRITTEN)
        self.extremes.add((value.end, inner.field.name))
        return Term(self.variables.get(value.end, f"item_{inner.field.name}"))


class LayoutRules:
    """Emits the checks of a layout's rules in pass 1 of writing. A row with which an entry would
    break a rule begins the next entry; a row that breaks a rule by itself is refused.
    """

    def __init__(self, frame: PlannerFunction) -> None:
        self.frame = frame
        self.case = frame.case
        self.own = frame.values.own
        self.values = RuleValues(frame)
        if self.case.array is not None:
            refuse_rules(self.case.element, [self.case.entry.name])
        for op in frame.program.row:
            layout = getattr(op, "layout", None)
            if layout is not None:
                refuse_rules(layout)
        rules = [*rules_of_fields(self.case.entry), *rules_of_rows(self.case)]
        found = [self.check_of(rule) for rule in rules]
        self.checks = [check for check in found if check is not None]
        self.ends = self.values.ends

    def check_of(self, rule: RulePlan) -> RuleCheck | None:
        """Return the RuleCheck of a rule: the condition that the rows of an entry break it, and
        whether that condition changes with each row. Return None if constants show that it is
        always met; if they show that it is never met, every row breaks it. Raise Unsupported if
        kernels cannot express the rule.
        """
        try:
            if rule.ascending is not None:
                return RuleCheck(rule, self.descent(rule.ascending), running=True)
            assert rule.condition is not None
            value = self.frame.program.fold_rule(rule.condition, self.own)
            if is_known(value) and as_truth(value):
                return None
            self.values.running = False
            arithmetic = Arithmetic(lambda leaf: self.values.leaf(leaf, self.own), 64)
            breach = opposite_of(arithmetic, value)
            return RuleCheck(rule, breach, self.values.running or self.own == "item")
        except Refused as error:
            raise Unsupported(error.reason, field_of_rule(self.case.entry, rule)) from None

    def descent(self, value: nodes.FieldValue) -> Expr:
        """Return the condition that the number ``value`` of the current row is not above that of
        the row before it in the entry; false for the first row. Raise Refused if the field is not
        written as a number.
        """
        if not isinstance(self.values.op(value, "item")[1], Number):
            raise Refused("a rule about numbers that kernels do not compare")
        name = value.field.name
        self.values.ends.add(("last", name))
        of, frame = self.frame.variables.get, self.frame
        return all_of([frame.row > frame.start, of("item", name) <= of("before last", name)])

    # ------------------------------------------------------------ printing

    def first_row(self) -> None:
        """Emit the rules that the first row settles."""
        self.stop(running=False)

    def begin(self) -> None:
        """Initialize the variables that hold the largest and smallest numbers."""
        for end, name in sorted(self.values.extremes):
            self.frame.code.assign(self.extreme(end, name), 0)

    def row(self) -> None:
        """Emit the updates of the largest and smallest numbers with the current row, then the stops
        for the rules whose condition changes with the rows.
        """
        frame, code = self.frame, self.frame.code
        if self.values.extremes:
            for end, name in sorted(self.values.extremes):
                number, extreme = frame.variables.get("item", name), self.extreme(end, name)
                code.assign(extreme, call(end, extreme, number))
            with code.when(frame.row.eq(frame.start)):
                for end, name in sorted(self.values.extremes):
                    code.assign(self.extreme(end, name), frame.variables.get("item", name))
        self.stop(running=True)

    def extreme(self, end: str, name: str) -> Var:
        """Return the variable of the largest or smallest value (``end``) of a row's field."""
        return self.frame.variables.get(end, f"item_{name}")

    def stop(self, *, running: bool) -> None:
        """Emit, for each rule whose condition changes with each row (with ``running``) or for each
        other rule (without), the code that acts where the rule is broken: in the loop over rows,
        the row ends the entry before it, or is refused if it is the first.
        """
        for check in self.checks:
            if check.running is running:
                leaf = self.blame(check.rule)
                place = check.rule.rule
                found = Check(f"rule {place.name}", place.span, leaf)
                self.frame.stop_for(check.breach, found)

    def blame(self, rule: RulePlan) -> int | None:
        """Return the index of the column to name when a rule is broken: the column of the rule's
        field, otherwise of the ascending or end field that it uses, otherwise of a field in its
        condition. Return None if no column determines it.
        """
        frame = self.frame
        about: WriteOp | None = frame.program.find_op("own", rule.rule.about)
        found = None if about is None else frame.blame_op(about, self.own)
        if found is not None:
            return found
        if rule.ascending is not None:
            return frame.blame_op(self.values.op(rule.ascending, "item")[1], "item")
        assert rule.condition is not None
        for end in nodes.ends_read(rule.condition):
            inner: Value = end.value
            if isinstance(inner, nodes.FieldValue):
                return frame.blame_op(self.values.op(inner, "item")[1], "item")
        return frame.blame(frame.program.fold_rule(rule.condition, self.own), self.own)


__all__ = ["LayoutRules"]
