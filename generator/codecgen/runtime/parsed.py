"""What codecs parse to: a Container that shows itself for people, and knows the values that its layout derives."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import construct

from codecgen.runtime.readable import Milliseconds, html_of, text_of


@dataclass(frozen=True, slots=True)
class Derived:
    """A value that a layout derives from its fields, or (``each``) for every element of one of its arrays.

    ``value`` takes the fields, and the element. ``unit`` is that of the schema. ``depends_on`` are the fields of the layout
    that a value of an element is made of, if it is made of other elements too (None: it is not).
    """

    name: str
    value: Callable[..., Any]
    each: str | None = None
    unit: str | None = None
    depends_on: Sequence[str] | None = None

    def of(self, *given: Any) -> Any:
        """The value, from the fields alone: what else is derived is none of them. Raises AttributeError where one is not there."""
        return self.value(*map(construct.Container, given))

    def shown(self, *given: Any) -> Any:
        """The value for people; None where fields that it takes are not there."""
        try:
            found = self.of(*given)
        except (TypeError, AttributeError):
            return None
        return Milliseconds(found) if self.unit == "ms" and found is not None else found


@dataclass(frozen=True, slots=True)
class AsParsed:
    """What an element was when it was parsed: its fields, those of the layout around it that its derived values depend on, and
    the derived values that depend on other elements too."""

    fields: Mapping[str, Any]
    around: Mapping[str, Any]
    derived: Mapping[str, Any]


class InArray(NamedTuple):
    """Where an element lies: the fields around its array, and what is derived for each element."""

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
    """The fields of a layout, as items and as attributes, in their order.

    Values that the schema derives are attributes too (``batch.last_offset``, ``batch.records[0].offset``); they are worked out
    when they are asked for, and are no items. ``repr`` gives a line for each field, and then the derived values. Generated
    modules have a class for each layout; what its fields are says the ``.pyi`` beside the module.
    """

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
                return derived.of(self)
            if name[:1] != "_":
                array = self._array()
                if name in array.of_each:
                    return array.of_each[name].of(array.around, self)
            raise AttributeError(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *type(self)._derived, *self._array().of_each})

    def copy(self) -> Self:
        """The same fields in a mapping of its own."""
        copied = type(self)(self)
        copied.__dict__.update(self.__dict__)
        return copied

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        own = type(self)
        if getattr(sys.modules.get(own.__module__), own.__qualname__, None) is not own:
            return construct.Container, (dict(self),)  # nobody can import the class
        return own, (), self.__dict__ or None, None, iter(self.items())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _array(self) -> InArray:
        found: InArray = self.__dict__.get("_in_array", _ALONE)
        return found

    def as_parsed(self, of_each: Mapping[str, Derived]) -> AsParsed | None:
        """Return what the value was when it was parsed in an array for whose elements ``of_each`` is derived; None if it was
        parsed elsewhere, or if nothing is derived for it from the elements beside it."""
        found: AsParsed | None = self.__dict__.get("_as_parsed")
        return found if self._array().of_each == of_each else None

    def _title(self) -> str:
        return type(self)._layout

    def _parts(self) -> Iterator[tuple[str, Any]]:
        for name, value in self.items():
            yield str(name), value
        for name, derived in type(self)._derived.items():
            yield f"= {name}", derived.shown(self)
        array = self._array()
        for name, derived in array.of_each.items():
            yield f"= {name}", derived.shown(array.around, self)

    def __repr__(self) -> str:
        return text_of(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return html_of(self)


def make_class(layout: str, module: str, version: int | None = None) -> type[Parsed]:
    """Make the class for what a layout is parsed to. ``module`` is the generated module that declares the layout."""
    name = "".join(part.capitalize() for part in layout.split("_"))
    if version is not None:
        name += f"V{version}"
    return type(name, (Parsed,), {"_layout": layout, "_derived": {}, "__module__": module})


def tell_elements(items: Any, around: Parsed, of_each: Mapping[str, Derived]) -> None:
    """Let the elements of an array know what is derived for them, and from what."""
    there = InArray(around, of_each)
    linked = [d for d in of_each.values() if d.depends_on is not None]
    fields = {name: _copied(around.get(name)) for d in linked for name in d.depends_on or ()}
    for item in items or ():
        if isinstance(item, Parsed):
            item.__dict__["_in_array"] = there
            if linked:
                derived = {d.name: d.shown(around, item) for d in linked}
                item.__dict__["_as_parsed"] = AsParsed(dict(item), fields, derived)


def _copied(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value


class TaggedField(Parsed):
    """A tagged field that a layout does not know."""

    if TYPE_CHECKING:
        tag: int
        data: bytes
