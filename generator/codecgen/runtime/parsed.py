"""Parsed values: containers that print themselves for people, and know the values that their layout derives."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import construct

from codecgen.runtime.errors import ValueRefused
from codecgen.runtime.readable import Milliseconds, html_of, text_of


@dataclass(frozen=True, slots=True)
class Derived:
    """A value that a layout derives from its fields, or, with ``each``, for every element of one of its arrays.

    ``value`` takes the fields, and the element. ``depends_on`` has the fields of the layout on which a value of an
    element depends, if it depends on other elements too; None if it does not. ``looks_up`` is the field (of
    the element with ``each``) with the number of an element that the value looks up, ``""`` if it is no field, and
    None if the value looks none up.
    """

    name: str
    value: Callable[..., Any]
    each: str | None = None
    unit: str | None = None
    depends_on: Sequence[str] | None = None
    looks_up: str | None = None

    def compute(self, *given: Any) -> Any:
        """Return the value, computed from ``given``: the fields, and with ``each`` the element too.
        Other derived values are not seen. Raise AttributeError if a field is absent, ValueRefused
        if it looks up an element that an array does not have. Other errors, such as TypeError for a
        null, are let through.
        """
        return self.value(*map(plain_fields, given))

    def display(self, *given: Any) -> Any:
        """Return the value for people, computed from ``given``: the fields, and with ``each`` the
        element too. A value of unit ``ms`` is Milliseconds. Return None if it is null, a field that
        it takes is absent or null, or it looks up an element that an array lacks. Other errors are
        let through.
        """
        try:
            found = self.compute(*given)
        except (TypeError, AttributeError, ValueRefused):
            return None
        return Milliseconds(found) if self.unit == "ms" and found is not None else found


@dataclass(frozen=True, slots=True)
class AsParsed:
    """An element as it was parsed.

    Attributes:
        fields: Its fields.
        around: The fields of the layout around it on which its derived values depend.
        derived: The derived values that depend on other elements too.
    """

    fields: Mapping[str, Any]
    around: Mapping[str, Any]
    derived: Mapping[str, Any]


class InArray(NamedTuple):
    """The place of an element: the fields around its array, and the values derived for each element."""

    around: Any
    of_each: Mapping[str, Derived]


_ALONE = InArray(None, {})


if TYPE_CHECKING:

    class _Container(dict[str, Any]):
        def search(self, pattern: str) -> Any: ...
        def search_all(self, pattern: str) -> list[Any]: ...

else:
    _Container = construct.Container


class Parsed(_Container):
    """The fields of a layout, as items and as attributes, in order.

    Derived values are attributes too (``batch.last_offset``, ``batch.records[0].offset``); they are computed on
    access and are no items. ``repr`` prints a line for each field, then the derived values. Generated modules have
    a class for each layout; the ``.pyi`` file beside the module has the types of its fields.
    """

    # _in_array is a slot, because a dict for each of many elements takes time and memory. Container asks __slots__ which
    # attributes are no items; the last one is its own.
    __slots__ = ("__dict__", "__recursion_lock__", "__weakref__", "_in_array")
    _layout: ClassVar[str] = "values"
    _derived: ClassVar[Mapping[str, Derived]] = {}

    if not TYPE_CHECKING:  # who checks types knows the fields of each class, and no others

        def __getattr__(self, name: str) -> Any:
            try:
                return self[name]
            except KeyError:
                pass
            derived = type(self)._derived.get(name)
            if derived is not None:
                return derived.compute(self)
            if name[:1] != "_":
                array = self._array()
                if name in array.of_each:
                    return array.of_each[name].compute(array.around, self)
            raise AttributeError(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *type(self)._derived, *self._array().of_each})

    def copy(self) -> Self:
        """Return a shallow copy."""
        copied = type(self)(self)
        copied.__setstate__(self._state())
        return copied

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        own = type(self)
        if getattr(sys.modules.get(own.__module__), own.__qualname__, None) is not own:
            return construct.Container, (dict(self),)  # nobody can import the class
        return own, (), self._state() or None, None, iter(self.items())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_in_array" in state:
            set_place(self, self.__dict__.pop("_in_array"))

    def _state(self) -> dict[str, Any]:
        """Return what the value knows besides its items, by name."""
        place = self._array()
        return {**self.__dict__} if place is _ALONE else {**self.__dict__, "_in_array": place}

    def with_arrays(self, arrays: Mapping[str, list[Any]]) -> Self:
        """Store arrays from outside as attributes, which are no items, and return the value itself."""
        if arrays:
            self.__dict__["_arrays"] = arrays
            self.__dict__.update(arrays)
        return self

    def _array(self) -> InArray:
        """Return the place of the value in an array, or ``InArray(None, {})`` if it is in none."""
        try:
            return get_place(self)
        except AttributeError:
            return _ALONE

    def as_parsed(self, of_each: Mapping[str, Derived]) -> AsParsed | None:
        """Return this element with its fields as they were when its array was parsed. Return None
        if it was not parsed in an array with the same derived values ``of_each``, or if none of
        these depend on other elements.
        """
        found: AsParsed | None = self.__dict__.get("_as_parsed")
        return found if self._array().of_each == of_each else None

    def _title(self) -> str:
        """Return the name of the layout."""
        return type(self)._layout

    def _named_values(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, value): the fields in order, then the values derived for the layout, then
        those derived for an element of its array. Names of derived values begin with ``= ``; a
        derived value is None if it cannot be computed.
        """
        for name, value in self.items():
            yield str(name), value
        for name, derived in type(self)._derived.items():
            yield f"= {name}", derived.display(self)
        array = self._array()
        for name, derived in array.of_each.items():
            yield f"= {name}", derived.display(array.around, self)

    def __repr__(self) -> str:
        return text_of(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Return the value as an HTML table, for notebooks."""
        return html_of(self)


# A container takes assigned attributes as items, so the slot is read and set by its descriptor.
get_place: Callable[[Parsed], InArray] = Parsed.__dict__["_in_array"].__get__
set_place: Callable[[Parsed, InArray], None] = Parsed.__dict__["_in_array"].__set__


def arrays_of(value: Any) -> Mapping[str, list[Any]]:
    """Return the arrays from outside of a parsed value by name; ``{}`` if it has none or is no Parsed."""
    found: Mapping[str, list[Any]] = getattr(value, "__dict__", {}).get("_arrays", {})
    return found


def plain_fields(value: Any) -> construct.Container:
    """Return a copy of a mapping of fields without derived values. Arrays from outside are attributes of it, as of ``value``."""
    arrays = arrays_of(value)
    return fields_with(value, arrays) if arrays else construct.Container(value)


class _FieldsWithArrays(construct.Container):
    """Fields whose attributes are arrays from outside, too."""


def fields_with(value: Any, arrays: Mapping[str, list[Any]]) -> construct.Container:
    """Return a copy of a mapping of fields with ``arrays`` from outside as attributes, by name."""
    found = _FieldsWithArrays(value)
    found.__dict__.update(arrays)
    return found


def make_class(layout: str, module: str, version: int | None = None) -> type[Parsed]:
    """Return a new subclass of Parsed for a layout. Its name is ``layout`` in CamelCase, with ``V``
    and the version if there is one. ``module`` becomes its ``__module__``.
    """
    name = "".join(part.capitalize() for part in layout.split("_"))
    if version is not None:
        name += f"V{version}"
    return type(name, (Parsed,), {"_layout": layout, "_derived": {}, "__module__": module})


def link_elements(items: Any, around: Parsed, of_each: Mapping[str, Derived]) -> None:
    """Store in each parsed element of an array the fields around it and the derived values
    ``of_each``. If a derived value depends on other elements too, also store a copy of the element
    as it was parsed. Skip elements that are no Parsed; do nothing if ``items`` is None.
    """
    parsed: Sequence[Parsed] = items or ()
    if not all(issubclass(kind, Parsed) for kind in set(map(type, parsed))):
        parsed = [item for item in parsed if isinstance(item, Parsed)]
    deque(map(set_place, parsed, repeat(InArray(around, of_each))), maxlen=0)
    linked = [d for d in of_each.values() if d.depends_on is not None]
    if linked:
        fields = {name: _copied(around.get(name)) for d in linked for name in d.depends_on or ()}
        for item in parsed:
            derived = {d.name: d.display(around, item) for d in linked}
            item.__dict__["_as_parsed"] = AsParsed(dict(item), fields, derived)


def _copied(value: Any) -> Any:
    """Return a shallow copy of a mapping, or any other value itself."""
    return dict(value) if isinstance(value, dict) else value


class TaggedField(Parsed):
    """A tagged field that the layout does not know."""

    if TYPE_CHECKING:
        tag: int
        data: bytes
