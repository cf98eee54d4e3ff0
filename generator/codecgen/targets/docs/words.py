"""Expressions and types of the schema language in words."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.plan.bounds import scalar_bounds
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
from codecgen.schema.model import (
    INTEGERS,
    ArrayType,
    BitsType,
    BytesType,
    FieldType,
    Reference,
    Run,
    ScalarType,
    StructType,
)
from codecgen.targets.docs.text import (
    Phrase,
    byte_count,
    code,
    field_name,
    formula,
    join,
    phrase,
    said,
)

_IS = {
    "==": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is greater than",
    ">=": "is at least",
}
_NAMES = {
    "f64": "float64",
    "bool": "boolean",
    "compact": "compact length",
    "uvarint": "unsigned varint",
    "uvarlong": "unsigned varlong",
}
CHECKSUMS = {"crc32": "CRC-32", "crc32c": "CRC-32C"}


# ---------------------------------------------------------------- expressions


def condition(node: Node) -> Phrase:
    """A condition in words: ``attributes.compression`` is not ``none``."""
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
    text = condition(node)
    mixed = isinstance(node, Binary) and node.operator in ("and", "or") and node.operator != word
    return phrase("(", text, ")") if mixed else text


def value(node: Node) -> Phrase:
    """A value in words."""
    match node:
        case Null():
            return said("null")
        case EndOf(end, array, None):
            return join(("the", end, "of", formula(array)))
        case EndOf(end, array, path):
            return join((code(path), "of the", end, "of", formula(array)))
        case _:
            return formula(node)


def cases(expression: Expression) -> list[Phrase]:
    """A derived value case by case, in words."""
    out = []
    node = expression.node
    while isinstance(node, If):
        out.append(join((value(node.then), "if", condition(node.condition))))
        node = node.otherwise
    out.append(join(("otherwise", value(node))) if out else value(node))
    return out


# ---------------------------------------------------------------- types


def scalar_name(name: str) -> str:
    """``int64``, ``uint32``, ``varint``: names as documents of formats use them."""
    if name in INTEGERS:
        size, signed = INTEGERS[name]
        return f"{'int' if signed else 'uint'}{size * 8}"
    return _NAMES.get(name, name)


def scalar_words(name: str) -> str:
    """``int64``, ``varint (zigzag, at most 5 bytes)``."""
    words = scalar_name(name)
    if name in ("varint", "varlong"):
        return f"{words} (zigzag, at most {scalar_bounds(name)[1]} bytes)"
    if name in ("uvarint", "uvarlong"):
        return f"{words} (at most {scalar_bounds(name)[1]} bytes)"
    if name == "compact":
        return "compact length (unsigned varint of one more)"
    return words


def type_words(type_: FieldType) -> str:
    """A type in words."""
    return "".join(map(str, type_pieces(type_)))


def type_pieces(type_: FieldType) -> Iterator[str | Reference]:
    """The same in pieces, with the layouts in it as references."""
    match type_:
        case ScalarType(name):
            yield scalar_words(name)
        case BitsType(base):
            yield f"{scalar_name(base)}, bits"
        case BytesType():
            yield _bytes_words(type_)
        case ArrayType(element, count, counted_by, length):
            yield "array of "
            yield scalar_name(element.name) if isinstance(element, ScalarType) else element
            if count is not None:
                yield f" with {scalar_name(count).replace(' length', '')} count"
            if length is not None:
                yield f" with {scalar_name(length)} length in bytes"
            if count is None and counted_by is None and length is None:
                yield " to the end"
        case StructType(ref):
            yield ref


def _bytes_words(type_: BytesType) -> str:
    what = "text (UTF-8)" if type_.text else "bytes"
    match type_.length:
        case int(length):
            return f"text (UTF-8) of {byte_count(length)}" if type_.text else byte_count(length)
        case "rest":
            return f"{what}, all that is left"
        case "compact":
            return f"{what} with compact length" + (", null as 0" if type_.null is not None else "")
        case length:
            tail = "" if type_.null is None else f", null as {type_.null}"
            return f"{what} with {scalar_name(length)} length{tail}"


def element_words(element: Reference | ScalarType) -> str:
    return scalar_name(element.name) if isinstance(element, ScalarType) else str(element)


def span_words(low: int, high: int | None) -> str:
    """``4``, ``1 to 5``."""
    return str(low) if low == high else f"{low} to {high}" if high is not None else f"{low} or more"


def size_words(fp: FieldPlan) -> str:
    """Bytes that a field takes: ``8``, ``1 to 5``, ``4 + length``."""
    if fp.size is not None:
        return str(fp.size)
    match fp.field.type:
        case ScalarType(name):
            return span_words(*scalar_bounds(name))
        case BytesType(length) if isinstance(length, str) and length != "rest":
            return f"{span_words(*scalar_bounds(length))}, + length"
        case BytesType():
            return "the rest"
        case ArrayType(_, count, _, length):
            prefixes = [span_words(*scalar_bounds(n)) for n in (count, length) if n]
            return ", + ".join([*prefixes, "elements"])
        case _:
            return "varies"


# ---------------------------------------------------------------- relations


def run_words(run: Run, plan: LayoutPlan) -> Phrase:
    """The fields of a run."""
    last = plan.fields[-1].name
    if run.last is not None and run.last == run.first:
        return field_name(run.first)
    if run.last is None or run.last == last:
        if run.first == last:
            return field_name(run.first)
        return join((field_name(run.first), "to the end"))
    return join((field_name(run.first), "to", field_name(run.last)))
