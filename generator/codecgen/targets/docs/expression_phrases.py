"""Expressions and field ranges of the schema language as phrases."""

from __future__ import annotations

from codecgen.plan import LayoutPlan
from codecgen.schema.expression import (
    Binary,
    EndOf,
    Expression,
    If,
    Node,
    Not,
    Null,
    Path,
)
from codecgen.schema.types import FieldRange
from codecgen.targets.docs.text import Phrase, as_phrase, code, field_name, formula, join, phrase

_IS = {
    "==": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is greater than",
    ">=": "is at least",
}
_ENDS = {"max": "largest", "min": "smallest"}


# ---------------------------------------------------------------- expressions


def condition(node: Node) -> Phrase:
    """Return a condition in words, as a Phrase: ``a.b`` is not ``none``. A path alone becomes "is
    set", ``not`` of a path "is not set", ``not`` of another condition "not:" before it; ``and``
    inside ``or``, and the reverse, get parentheses. A node that is no condition becomes its value.
    """
    match node:
        case Path():
            return join((formula(node), "is set"))
        case Not(Path() as path):
            return join((formula(path), "is not set"))
        case Not(operand):
            return join(("not:", condition(operand)))
        case Binary("and" | "or" as word, left, right):
            return join((_inner(left, word), word, _inner(right, word)))
        case Binary(operator, left, right) if operator in _IS:
            return join((value(left), _IS[operator], value(right)))
        case _:
            return value(node)


def _inner(node: Node, word: str) -> Phrase:
    """Return an operand of ``and`` or ``or`` in words, in parentheses if it is of the other operator."""
    text = condition(node)
    mixed = isinstance(node, Binary) and node.operator in ("and", "or") and node.operator != word
    return phrase("(", text, ")") if mixed else text


def value(node: Node) -> Phrase:
    """Return a value in words, as a Phrase: "null", "the first of" or "the largest of" an array,
    "``x`` of the first of" or "the largest ``x`` of" it for a field of its elements; any other
    expression as code.
    """
    match node:
        case Null():
            return as_phrase("null")
        case EndOf(end, array, None):
            return join(("the", _ENDS.get(end, end), "of", formula(array)))
        case EndOf(end, array, path):
            if end in _ENDS:
                return join(("the", _ENDS[end], code(path), "of", formula(array)))
            return join((code(path), "of the", end, "of", formula(array)))
        case _:
            return formula(node)


def cases(expression: Expression) -> list[Phrase]:
    """Return the branches of an if/else expression in words, in order: the value "if" the
    condition, and "otherwise" the last value. An expression without ``if`` gives one phrase, its
    value.
    """
    out = []
    node = expression.node
    while isinstance(node, If):
        out.append(join((value(node.then), "if", condition(node.condition))))
        node = node.otherwise
    out.append(join(("otherwise", value(node))) if out else value(node))
    return out


# ---------------------------------------------------------------- types


def range_words(field_range: FieldRange, plan: LayoutPlan) -> Phrase:
    """Return a field range in words: the name of a single field, "A to B" (both included), or "A to
    the end" if the range ends with the layout.
    """
    last = plan.fields[-1].name
    if field_range.last is not None and field_range.last == field_range.first:
        return field_name(field_range.first)
    if field_range.last is None or field_range.last == last:
        if field_range.first == last:
            return field_name(field_range.first)
        return join((field_name(field_range.first), "to the end"))
    return join((field_name(field_range.first), "to", field_name(field_range.last)))
