"""What the parts of target arrow tell each other: checks, what cannot be expressed, names of functions."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.diagnostics import Diagnostic, Span
from codecgen.plan import LayoutPlan
from codecgen.plan.generated_names import identifier
from codecgen.schema.expression import Expression
from codecgen.schema.model import Column, Field, Layout
from codecgen.schema.scalars import SCALARS, is_integer
from codecgen.schema.types import BitsType, ScalarType
from codecgen.targets.arrow.primitive_imports import NAMES
from codecgen.targets.python_source import Code as Tree
from codecgen.targets.python_source import call, string


@dataclass(frozen=True, slots=True)
class Check:
    """Subject of a check in a kernel: a field or rule with its place in YAML, the index of a column, or both."""

    name: str = ""
    place: Span | Expression | None = None
    column: int | None = None


class Checks:
    """Numbering of the checks of kernels, in order of first use."""

    def __init__(self) -> None:
        self.found: list[Check] = []

    def number(self, check: Check) -> int:
        """Return the number of a check, counted from 0 in order of first use."""
        if check not in self.found:
            self.found.append(check)
        return self.found.index(check)


class Unsupported(Exception):
    """Error for a schema that the target cannot express, with what causes it: a field, column or layout."""

    def __init__(self, reason: str, f: Field | Column | Layout) -> None:
        super().__init__(
            f'"{f.name}" is {reason}, which target arrow cannot express; codecgen explain C023 says what to do'
        )
        self.reason = reason
        self.field = f


def refusal(error: Unsupported, what: str, help: str) -> Diagnostic:
    """Return the finding that ``what`` cannot express a field, column or layout."""
    message = f'"{error.field.name}" is {error.reason}, which {what} cannot express'
    return Diagnostic("C023", message, error.field.span, help=help)


def function_name(verb: str, entry: LayoutPlan) -> str:
    """Return a function name from a verb and the name and the version of a layout."""
    version = "" if entry.version is None else f"_v{entry.version}"
    return f"{verb}_{identifier(entry.name)}{version}"


def integer_of(f: Field) -> tuple[int, bool]:
    """Return the size in bytes of a field that is an integer of fixed size, or bits on such an
    integer, and whether it is signed. Raise Unsupported for other types, and for ``u64`` and 24-bit
    integers, which kernels cannot load.
    """
    name = str(getattr(f.type, "base", None) or getattr(f.type, "name", ""))
    if not is_integer(name):
        raise Unsupported("not an integer of fixed size", f)
    loading(name, "", f)
    return SCALARS[name].width, SCALARS[name].signed


def loading(name: str, order: str, f: Field) -> str:
    """Return the name of the primitive that loads an integer of fixed size. Raise Unsupported if there is none."""
    scalar = SCALARS[name]
    function = f"load_{'i' if scalar.signed else 'u'}{scalar.bits}{order}"
    return primitive(function, f"the type {name}", f)


def primitive(function: str, what: str, f: Field) -> str:
    """Return ``function`` if the runtime has a primitive of this name. Otherwise raise Unsupported
    for the field ``f``; the message names the type ``what``.
    """
    if function not in NAMES:
        is_number = isinstance(f.type, ScalarType | BitsType)
        raise Unsupported(f"{'a number' if is_number else 'stored with a number'} of {what}", f)
    return function


def place_of(check: Check) -> Tree:
    """Return the ``Place`` of a check in the YAML files as a tree, ``None`` if it has no place."""
    if check.place is None:
        return "None"
    return call("Place", string(check.name), string(check.place.file), str(check.place.line))
