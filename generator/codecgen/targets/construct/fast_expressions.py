"""Schema expressions as Python expressions on the local variables of a fast parser or builder."""

from __future__ import annotations

from typing import Protocol

from codecgen.plan import LayoutPlan, Plan, nodes
from codecgen.plan.nodes import FieldValue, Value
from codecgen.schema.scalars import is_integer, is_varint
from codecgen.schema.types import ArrayType, BitsType, ScalarType
from codecgen.targets.construct.expressions import PythonExpressions
from codecgen.targets.construct.fast_function import FunctionSource
from codecgen.targets.construct.fast_module import FastModule, Unsupported
from codecgen.targets.python_source import Code, string

EndOf = FieldValue | nodes.BitValue | nodes.ElementValue
"""What an end or an extreme of an array is taken of."""


class UsableValues(Protocol):
    """Which values the function has in its variables at the line that is printed next."""

    @property
    def has_whole_elements(self) -> bool:
        """Whether elements of arrays have all their fields, so that the codec's rules can test
        them.
        """

    def check_field(self, name: str, is_nested: bool) -> None:
        """Raise Unsupported if expressions cannot use the field ``name`` yet. ``is_nested``: they
        use a value inside the layout that the field holds.
        """

    def check_end(self, array: FieldValue, inner: EndOf) -> None:
        """Raise Unsupported if the function cannot take an end or extreme of an array of which it
        is not known that it has elements, each with the number ``inner``.
        """

    def has_number(self, inner: FieldValue) -> bool:
        """Return whether each element of an array has its number ``inner``."""


class FieldExpressions:
    """Prints values of schema expressions as Python expressions on the local variables of a
    function.

    Attributes:
        extremes: The variables of largest and smallest numbers of elements that expressions use, by
            (``max`` or ``min``, array, field). They are to be assigned before.
    """

    def __init__(
        self,
        plan: Plan,
        module: FastModule,
        layout: LayoutPlan,
        source: FunctionSource,
        usable: UsableValues,
    ) -> None:
        self.plan = plan
        self.module = module
        self.layout = layout
        self.source = source
        self.usable = usable
        self.extremes: dict[tuple[str, str, str], str] = {}

    def text(
        self, value: Value, bits: int | None = None, full: str | None = None, item: str = "item"
    ) -> str:
        """Return the Python expression for a value, and import the runtime functions that it calls.
        Sums wrap in ``bits`` bits (None: not at all). ``full`` names an array that is known to have
        elements; ``item`` is the variable of an element. Raise TypeError or Unsupported if a part
        is not supported.
        """
        printer = _LocalExpressions(self, bits=bits, full=full, item=item)
        text = printer.text(value)
        self.module.scope.runtime |= printer.helpers
        return text

    def local_path(self, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return the variable that holds the field ``names[0]``, and the names after it. For a path
        of two names to a bit, return the bit's own variable and ``()``. Raise Unsupported if the
        layout lacks the field, or expressions cannot use it yet.
        """
        fp = self.layout.value(names[0])
        if fp is None:
            raise Unsupported
        is_bit = isinstance(fp.field.type, BitsType) and len(names) == 2
        self.usable.check_field(names[0], is_nested=len(names) > 1 and not is_bit)
        if is_bit:
            return self.source.bit(*names), ()
        return self.source.local(names[0]), names[1:]

    def is_number_of_all(self, array: FieldValue, inner: FieldValue) -> bool:
        """Return whether the array can hold only one layout in one version (also as the only case
        of a choice), and ``inner`` is a number directly in it, untagged and without a condition,
        which each element has. The number is an integer of fixed size, a varint or a VLQ, perhaps
        with an enum. Return False if several layouts or versions are possible, or if the array or
        the field is missing.
        """
        fp = self.layout.field(array.field.name)
        type_ = None if fp is None else fp.field.type
        if inner.holders or not isinstance(type_, ArrayType) or fp is None:
            return False
        held = self.plan.held_by(type_, self.layout)
        found = held[0].field(inner.field.name) if len(held) == 1 else None
        if found is None or found.when is not None or found.field.tag is not None:
            return False
        if not isinstance(found.field.type, ScalarType) or not self.usable.has_number(inner):
            return False
        return is_integer(found.field.type.name) or is_varint(found.field.type.name)

    def end_text(self, end: str, array: str, name: str) -> str:
        """Return the expression for the number ``name`` of the first or last element of ``array``
        (``end``), which must have elements. For ``max`` and ``min``, return a variable and note it
        in ``extremes``.
        """
        items = self.source.local(array)
        if end in ("first", "last"):
            return f"{items}[{0 if end == 'first' else -1}][{string(name)}]"
        return self.extremes.setdefault(
            (end, array, name), self.source.temporary(f"{end}_{array}_{name}")
        )


class _LocalExpressions(PythonExpressions):
    """Prints one expression for :meth:`FieldExpressions.text`.

    Attributes:
        full: The array that is known to have elements.
        item: The variable of an element.
    """

    def __init__(
        self, fields: FieldExpressions, *, bits: int | None, full: str | None, item: str
    ) -> None:
        super().__init__(lambda enum: enum, bits=bits)
        self.fields = fields
        self.full = full
        self.item = item

    def text(self, value: Value) -> str:
        """Return the Python expression for a value from local variables. Enum values become
        numbers. The first, last, largest or smallest number of an array that has elements is read
        directly. Raise TypeError for nodes without an expression, Unsupported for a field that the
        layout lacks or the function cannot use yet, and for array ends that it cannot take.
        """
        match value:
            case nodes.Word(_, _, number):
                return str(number)
            case nodes.ElementValue():
                return self.item
            case nodes.VersionValue(_, field):
                return self.fields.source.local(field)
            case nodes.EndValue(end, array, inner):
                if isinstance(inner, FieldValue) and self.is_simple_end(array, inner):
                    return self.fields.end_text(end, array.field.name, inner.names[0])
                self.fields.usable.check_end(array, inner)
        return super().text(value)

    def code(self, value: Value) -> Code:
        """Return the expression for a value as text or Code. If ``bits`` is set, a sum that cannot
        be null is wrapped by inline arithmetic, a nullable sum by a call of ``wrap``; any other
        value becomes its expression. Raise TypeError or Unsupported if ``text`` does not support a
        part of the value.
        """
        if not isinstance(value, nodes.Sum) or self.bits is None or value.type.nullable:
            return super().code(value)
        bits, self.bits = self.bits, None
        inner = self.sum_text(value)
        self.bits = bits
        half = 1 << (bits - 1)
        return f"(({inner} + {half:#x} & {(1 << bits) - 1:#x}) - {half:#x})"

    def is_simple_end(self, array: FieldValue, inner: FieldValue) -> bool:
        """Return whether ``array`` is the layout's own array ``full``, which has elements, and
        ``inner`` is an integer (of fixed size, varint or VLQ) in every element and never absent.
        """
        if array.owner != "own" or array.holders or array.field.name != self.full:
            return False
        return self.fields.is_number_of_all(array, inner)

    def path_text(self, owner: str, names: tuple[str, ...], may_end: bool) -> str:
        """Return the expression for a field: the variable of the element or of the layout's field,
        with the other names as subscripts. With ``may_end`` and other names, return a call of
        ``value_at``, which gives None if an outer field is None. Raise Unsupported if the layout
        lacks the field or the function cannot use it yet; fields of elements are not checked.
        """
        if owner == "item":
            start, rest = self.item, names
        else:
            start, rest = self.fields.local_path(names)
        if may_end and rest:
            return f"{self.use_helper('value_at')}({', '.join((start, *map(string, rest)))})"
        return start + "".join(f"[{string(name)}]" for name in rest)
