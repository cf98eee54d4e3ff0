"""Prints how fast parsers link elements of arrays to the outer value, from which values are derived for each."""

from __future__ import annotations

from codecgen.plan import LayoutPlan
from codecgen.plan.nodes import DerivedValue, ends_read
from codecgen.plan.read_ops import Elements
from codecgen.plan.read_program import ReadProgram
from codecgen.targets.construct.fast_function import FunctionSource
from codecgen.targets.construct.fast_module import FastFunctions, FastModule, Unsupported


class ElementLinks:
    """Prints the links from elements of the arrays of a layout to its parsed value, for arrays
    whose elements have derived values.

    Attributes:
        places: The arrays whose function links its elements at once, each with the variable of
            their place (``InArray``).
    """

    def __init__(
        self,
        functions: FastFunctions,
        module: FastModule,
        layout: LayoutPlan,
        source: FunctionSource,
    ) -> None:
        self._functions = functions
        self._module = module
        self._layout = layout
        self._source = source
        self.places: dict[str, str] = {}

    def begin(self, program: ReadProgram) -> None:
        """Print the creation of the parsed value and, for each array whose function links its
        elements at once, of their place (``InArray``: the parsed value, and the values derived for
        each element); note the variables in ``places``. Print nothing if there is no such array.
        """
        source = self._source
        self.places = {
            op.field.name: source.temporary(f"{op.field.name}_place")
            for op in program.ops
            if isinstance(op, Elements) and self._links_at_once(op)
        }
        value = source.temporary("parsed")
        if self.places:
            source.emit(f"{value} = {self._module.parsed_class(self._layout)}()")
            in_array = self._module.use("InArray")
            for name, place in self.places.items():
                source.emit(f"{place} = {in_array}({value}, {self._values_of(name)})")

    def finish(self) -> None:
        """Print the linking of the elements of arrays outside of ``places`` to the parsed value.
        Raise Unsupported as :meth:`_linked_arrays` does.
        """
        value = self._source.temporary("parsed")
        for name in self._linked_arrays():
            if name not in self.places and name not in self._source.always_null:
                items, link_elements = self._source.local(name), self._module.use("link_elements")
                arguments = f"{items}, {value}, {self._values_of(name)}"
                self._source.emit(f"if {items}:", f"    {link_elements}({arguments})")

    def _links_at_once(self, op: Elements) -> bool:
        """Return whether the function that parses an array links its elements to the outer value.
        Return True if one function parses the whole array, and its elements have derived values,
        none of which depends on other elements.
        """
        name, element = op.field.name, op.element
        if not isinstance(element, LayoutPlan) or not self._functions.is_element(element):
            return False
        derived = [value for value in self._layout.derived if value.derived.array == name]
        return bool(derived) and not any(map(_depends_on_others, derived))

    def _values_of(self, array: str) -> str:
        """Define a constant with the values that are derived for each element of an array, and
        return its name.
        """
        return self._source.constant(
            f"{array}_values", f"{self._source.field_codec(array)}.of_each"
        )

    def _linked_arrays(self) -> list[str]:
        """Return the names of the arrays of this version whose elements have derived values, each
        once. Raise Unsupported if such a value depends on other elements and the array is not the
        last field.
        """
        out: dict[str, None] = {}
        for value in self._layout.derived:
            array = value.derived.array
            if array is None or self._layout.field(array) is None:
                continue
            out[array] = None
            if _depends_on_others(value) and self._layout.fields[-1].name != array:
                raise Unsupported
        return list(out)


def _depends_on_others(value: DerivedValue) -> bool:
    """Return whether a value that is derived for an element depends on other elements of the array."""
    array = value.derived.array
    return any(end.array.field.name == array for end in ends_read(value.value))
