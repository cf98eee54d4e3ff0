"""Which given values the expressions of a fast builder can use."""

from __future__ import annotations

from codecgen.plan import nodes
from codecgen.plan.nodes import FieldValue
from codecgen.schema.types import ScalarType
from codecgen.targets.construct.fast_expressions import EndOf
from codecgen.targets.construct.fast_module import Unsupported


class GivenValues:
    """Knows which values expressions of a fast builder can use at the line that is printed next.
    Elements and held layouts may lack what a builder fills in when it writes them.

    Attributes:
        known: The fields that have their value in their variable.
        built: The arrays whose elements are written.
    """

    has_whole_elements = False

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.built: set[str] = set()

    def check_field(self, name: str, is_nested: bool) -> None:
        """Raise Unsupported unless the field ``name`` is in ``known``, and for a value inside the
        layout that it holds (``is_nested``).
        """
        if name not in self.known or is_nested:
            raise Unsupported

    def check_end(self, array: FieldValue, inner: EndOf) -> None:
        """Raise Unsupported for an array inside a held layout, and for a field of the elements of
        an array in ``built``.
        """
        if array.holders or (
            array.field.name in self.built and not isinstance(inner, nodes.ElementValue)
        ):
            raise Unsupported

    def has_number(self, inner: FieldValue) -> bool:
        """Return whether ``inner`` is a number that builders write as it is given. Return False for
        enums, and for numbers that builders set: constants, versions, counts, lengths and
        checksums.
        """
        f = inner.field
        is_number = isinstance(f.type, ScalarType) and f.type.enum is None
        is_set = f.const is not None or f.is_version or bool(f.counts)
        return is_number and not is_set and f.measures is None and f.checksum is None
