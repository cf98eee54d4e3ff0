"""Prints the rules of a layout and its conditional fields in fast parsers and builders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from codecgen.plan import FieldPlan, nodes
from codecgen.plan.layouts import RulePlan
from codecgen.plan.nodes import FieldValue
from codecgen.plan.read_ops import ReadOp, When
from codecgen.targets.construct.fast_expressions import FieldExpressions
from codecgen.targets.construct.fast_function import FunctionSource
from codecgen.targets.construct.fast_module import Unsupported
from codecgen.targets.python_source import string


class RulePrinter:
    """Prints the checks of the rules of a layout, once its fields are in their variables."""

    def __init__(self, source: FunctionSource, expressions: FieldExpressions) -> None:
        self.source = source
        self.expressions = expressions
        self.layout = expressions.layout

    def print_rules(self) -> None:
        """Print the checks of the layout's rules in order; the function raises Irregular if one is
        broken. Rules about the elements of an array are checked only if it has elements, and not
        printed if the function reads it only as null. Raise Unsupported or TypeError if a rule is
        not supported.
        """
        source, around, position = self.source, None, 0
        for rule in self.layout.rules:
            array = rule.elements_of
            if array in source.always_null:
                continue
            if array != around:
                if around is not None:
                    self._insert_extremes(position)
                    source.indent -= 1
                around = array
                if array is not None:
                    source.emit(f"if {source.local(array)}:")
                    source.indent += 1
                    position = len(source.lines)
                    self.expressions.extremes.clear()
            source.emit(f"# rule {rule.name}")
            self._print_rule(rule, array)
        if around is not None:
            self._insert_extremes(position)
            source.indent -= 1

    def _print_rule(self, rule: RulePlan, full: str | None) -> None:
        """Print the check of one rule. ``full`` names the array that has elements, if any."""
        source, fp = self.source, rule.array
        if rule.condition is not None:
            negated = nodes.Negation(rule.condition)
            source.emit_raise_if(self.expressions.text(negated, bits=64, full=full))
        elif rule.ascending is not None and fp is not None:
            array = FieldValue(fp.field, rule.ascending.type)
            if not self.expressions.is_number_of_all(array, rule.ascending):
                self._print_rule_of_codec(rule, fp)
                return
            name = rule.ascending.field.name
            source.emit(f"numbers = [item[{string(name)}] for item in {source.local(fp.name)}]")
            source.emit_raise_if("sorted(set(numbers)) != numbers")

    def _print_rule_of_codec(self, rule: RulePlan, array: FieldPlan) -> None:
        """Print that the function raises Irregular if the elements of ``array`` break ``rule``,
        which it tests by the codec's own rule. Raise StopIteration unless ``rule`` is one of the
        layout's rules, the same object. Raise Unsupported if the elements may lack fields.
        """
        if not self.expressions.usable.has_whole_elements:
            raise Unsupported
        position = next(i for i, r in enumerate(self.layout.rules) if r is rule)
        rules = f"{self.expressions.module.layout(self.layout)}.related.rules"
        items = f"{{{string(array.name)}: {self.source.local(array.name)}}}"
        self.source.emit_raise_if(f"{rules}[{position}].find_breach({items}) is not None")

    def _insert_extremes(self, position: int) -> None:
        """Insert, at index ``position`` of the lines, the assignments of the largest and smallest
        element numbers that expressions use, and forget these.
        """
        extremes = self.expressions.extremes
        lines = [
            f"{local} = {end}([item[{string(name)}] for item in {self.source.local(array)}])"
            for (end, array, name), local in extremes.items()
        ]
        self.source.lines[position:position] = self.source.indented(lines)
        extremes.clear()


class PendingRun(Protocol):
    """Adjacent fields of fixed size for which no code is printed yet."""

    def flush(self) -> None:
        """Print the code for these fields, and forget them."""


class FieldPrinter(Protocol):
    """Prints the fields of a layout in a fast parser or builder, as :func:`print_conditional` needs
    it.
    """

    source: FunctionSource
    expressions: FieldExpressions

    @property
    def run(self) -> PendingRun:
        """Return the adjacent fields of fixed size for which no code is printed yet: one call of
        :mod:`struct` reads or writes all of them.
        """

    def op(self, op: ReadOp) -> None:
        """Print an operation. Raise Unsupported if such functions lack it."""

    def absent(self, fp: FieldPlan) -> None:
        """Print that a field is not there."""

    def save(self) -> Callable[[], None]:
        """Return a function that takes back what is printed from now on."""


def print_conditional(printer: FieldPrinter, op: When) -> None:
    """Print the pending values, then a conditional field, and that it is not there if the condition
    is false. If printing the field raises Unsupported, print that the function raises Irregular
    when the condition holds, and add the field to ``always_null``. Raise Unsupported if the
    condition is not supported, TypeError if the condition or the field has an expression that
    cannot be printed.
    """
    source = printer.source
    printer.run.flush()
    condition = printer.expressions.text(op.condition)
    undo = printer.save()
    source.emit(f"if {condition}:")
    source.indent += 1
    try:
        for inner in op.then:
            printer.op(inner)
        printer.run.flush()
    except Unsupported:
        undo()
        source.emit_raise_if(condition)
        printer.absent(op.field)
        source.always_null.add(op.field.name)
        return
    source.indent -= 1
    source.emit("else:")
    source.indent += 1
    printer.absent(op.field)
    source.indent -= 1
