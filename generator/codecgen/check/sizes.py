"""Sizes that the schema itself says: counts that are always the same, padding, fields that zeros fill up."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic
from codecgen.schema.lookup import has_fixed_size
from codecgen.schema.model import Field, Layout
from codecgen.schema.types import ArrayType, BytesType, PaddingType
from codecgen.spans import place

MOST_ELEMENTS = 1 << 20
"""The most elements that an array may always have."""

MOST_PADDING = 1 << 16
"""The largest number to a multiple of which padding goes."""

_VALUE_KEYS = ("default", "absent", "const", "valid", "refuse", "unit", "is", "measures", "counts")


def check_field(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """What is wrong with the sizes of a field."""
    for type_ in f.all_types():
        match type_:
            case ArrayType(fixed=int(number)):
                yield from _fixed(f, number)
            case BytesType(length=str(), padded=True):
                yield _padded(f, "padded")
            case PaddingType(multiple):
                yield from _padding(f, multiple)
                yield from _place(f, layout)
        match type_:
            case ArrayType(BytesType(length=str(), padded=True)):
                yield _padded(f, "array.padded")


def _fixed(f: Field, number: int) -> Iterator[Diagnostic]:
    """What is wrong with a number of elements that is always the same."""
    if not 1 <= number <= MOST_ELEMENTS:
        message = f'"{f.name}" cannot always have {number} elements'
        help = f"write 1 to {MOST_ELEMENTS}, or the type of a count before them"
        yield Diagnostic("C062", message, place(f, "count"), help=help)
    elif "at_least" in f.places and not f.types:
        message = f'"{f.name}" always has {number} elements'
        yield Diagnostic("C011", message, place(f, "at_least"), help='take out "at_least"')


def _padded(f: Field, key: str) -> Diagnostic:
    message = f'"{f.name}" has no fixed size that zeros could fill up'
    help = 'write how many bytes there are, or take out "padded"'
    return Diagnostic("C011", message, place(f, key), help=help)


def _place(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Where padding begins is known when it is written: lengths of varying size are only worked out then."""
    for g in layout.fields[: layout.fields.index(f)]:
        if g.measures is not None and not all(has_fixed_size(one) for one in g.variants()):
            message = f'where "{f.name}" begins depends on how long the length "{g.name}" is, which is worked out last'
            help = f"give it a fixed size, or put what is padded into a layout of its own; see {g.span}"
            yield Diagnostic("C016", message, place(f, "padding"), help=help)
            return


def _padding(f: Field, multiple: int) -> Iterator[Diagnostic]:
    """What is wrong with padding: it has no value that anything could be said of."""
    if not 2 <= multiple <= MOST_PADDING:
        message = f'"{f.name}" cannot go up to a multiple of {multiple}'
        yield Diagnostic("C062", message, place(f, "padding"), help=f"write 2 to {MOST_PADDING}")
    for key in _VALUE_KEYS:
        if key in f.places:
            message = f'"{f.name}" is padding: it has no value that "{key}" could be about'
            yield Diagnostic("C011", message, place(f, key), help=f'take out "{key}"')
            return
