"""The fields of a layout, the rules about them, and what relates them to each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import construct

from codecgen.runtime.arrays import E, prefixed
from codecgen.runtime.byte_strings import Bytes
from codecgen.runtime.checksums import checksum as checksum_function
from codecgen.runtime.checksums import masked
from codecgen.runtime.errors import BuildError
from codecgen.runtime.located_bytes import Condition, Source
from codecgen.runtime.parsed import Derived
from codecgen.runtime.primitives import Codec
from codecgen.runtime.rules import LayoutRule
from codecgen.runtime.sensitive import Sensitive


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition of the schema, with its text for people."""

    text: str
    holds: Condition

    def broken(self, value: Any) -> str:
        """What to say when the rule says what may not be."""
        return f"{_told(value)} is refused, since {self.text}"

    def missed(self, value: Any) -> str:
        """What to say when the rule says what must be."""
        return f"{_told(value)} is not valid: {self.text}"


def _told(value: Any) -> str:
    return f"an array of {len(value)}" if isinstance(value, list) else repr(value)


@dataclass(frozen=True, slots=True)
class Fill:
    """What a build puts into ``field`` of the elements of an array: what the element has under the name ``given``, less the field
    ``base`` of the layout around it. An element with neither gets ``otherwise`` (None: its index)."""

    field: str
    given: str
    base: str
    otherwise: int | None = None

    def apply(self, item: dict[str, Any], index: int, base: Any) -> None:
        """Put the value into an element.

        Raises:
            BuildError: if a number is missing, or if the element has two values that contradict each other.
        """
        given, value = item.pop(self.given, None), item.get(self.field)
        for name, number in ((self.given, given), (self.field, value)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
                raise BuildError(f"a whole number is needed, not {number!r}").located(path=name)
        if given is None:
            if value is None:
                item[self.field] = index if self.otherwise is None else self.otherwise
            return
        if not isinstance(base, int):
            reason = f"{self.base} is needed: {self.given} is written as what it is more than that"
            raise BuildError(reason).located(path=self.given)
        if value is None:
            item[self.field] = given - base
        elif value != given - base:
            reason = f"{self.given} is {given}, but {self.base} {base} and {self.field} {value} make it {base + value}"
            raise BuildError(f"{reason}: give one of the two").located(path=self.given)


class Field:
    """One field.

    ``measures`` (first, last): the field is the length in bytes of that field range; last None is the
    end of the layout, and a range that begins with the field itself, or before it, counts its ``own_bytes`` too.
    ``counts``: it is the number of elements of that array. ``checksum`` and ``covers``: it is a
    checksum over that field range, or over several, one after the other; fields of ``zero`` count as
    zero bytes there, and only the bits of ``mask`` are kept. What the builder can work out of these
    it fills in; the parser verifies them. ``valid`` and ``refuse`` are rules about the fields so far.
    ``spelled`` is the name in the format's own documents, ``hidden`` fields are left out where people
    read. ``tag`` is the number of a tagged field: it has no bytes of its own, but lies in the section of
    them. ``fills`` are what builders put into the elements of an array. ``absent`` is the number that means that there is no value, ``unit`` that of the number; these are for people, too.
    ``sensitive`` says that the value is a secret, which programs hide from people.
    """

    def __init__(
        self,
        name: str,
        codec: Codec,
        *,
        line: int = 0,
        when: Condition | None = None,
        default: Condition | None = None,
        const: int | str | bytes | None = None,
        version: int | None = None,
        measures: tuple[str, str | None] | None = None,
        counts: str | None = None,
        checksum: str | None = None,
        covers: tuple[str, str | None] | list[tuple[str, str | None]] | None = None,
        zero: Iterable[str] = (),
        mask: int | None = None,
        valid: Rule | None = None,
        refuse: Rule | None = None,
        spelled: str | None = None,
        hidden: bool = False,
        tag: int | None = None,
        absent: int | None = None,
        unit: str | None = None,
        fills: tuple[Fill, ...] = (),
        sensitive: Sensitive | None = None,
    ) -> None:
        self.name = name
        self.codec = codec
        self.absent = absent
        self.unit = unit
        self.fills = fills
        self.sensitive = sensitive
        self.line = line
        self.spelled = spelled or name
        self.hidden = hidden
        self.tag = tag
        self.in_layout = tag is not None or codec.needs_layout
        self.default_bytes: bytes | None = None  # of a tagged field, once somebody asked for them
        self.when = when
        self.default = default
        self.const = const if version is None else version
        self.is_version = version is not None
        self.measures = measures
        self.counts = counts
        self.checksum = None if checksum is None else masked(checksum_function(checksum), mask)
        self.covers = tuple(covers) if isinstance(covers, list) else () if not covers else (covers,)
        self.zero = frozenset(zero)
        self.valid = valid
        self.refuse = refuse
        self.own_bytes = 0
        # Filled in by the layout: the fields that measure or check a field range that begins here, those after rest bytes.
        self.opened_by: tuple[Field, ...] = ()
        self.checked_by: tuple[Field, ...] = ()
        self.tail: tuple[Field, ...] | None = None
        # What the layout derives for each element of the array.
        self.of_each: dict[str, Derived] = {}


class Fields:
    """The fields of one layout by name, with their relations worked out."""

    def __init__(self, fields: Iterable[Field], source_file: str) -> None:
        self.all = tuple(fields)
        self.names = [f.name for f in self.all]
        self.by_name = {f.name: f for f in self.all}
        self.tagged = tuple(f for f in self.all if f.tag is not None)
        self.source_file = source_file
        self.rules: tuple[LayoutRule, ...] = ()
        for f in self.all:
            if f.measures is not None:
                first, own = self.names.index(f.measures[0]), self.names.index(f.name)
                if first <= own:  # it counts itself, and what it measures goes on with the next
                    before = (g for g in self.all[first : own + 1] if g.tag is None)
                    f.own_bytes = sum(g.codec.size or 0 for g in before)
                    first = next(
                        i for i in range(own + 1, len(self.all)) if self.all[i].tag is None
                    )
                self.all[first].opened_by += (f,)
            if len(f.covers) == 1 and f.covers[0][1] is None and not f.zero:
                self.by_name[f.covers[0][0]].checked_by += (f,)
        self.checksums = self._inner_first()
        for i, f in enumerate(self.all):
            if isinstance(f.codec, Bytes) and f.codec.length is None:  # all that is left
                f.tail = tuple(g for g in self.all[i + 1 :] if g.tag is None)

    def field_range(self, first: str, last: str | None) -> range:
        """The indices of the fields of a field range."""
        return range(
            self.names.index(first), self.names.index(last) + 1 if last else len(self.names)
        )

    def covered(self, f: Field) -> tuple[int, ...]:
        """The indices of the fields that a checksum covers."""
        return tuple(i for first, last in f.covers for i in self.field_range(first, last))

    def in_rule(self, error: E, rule: LayoutRule) -> E:
        """Name the field and the line of YAML of a broken rule in an error."""
        return error.located(path=rule.about, schema=f"{self.source_file}:{rule.line}")

    def _inner_first(self) -> tuple[Field, ...]:
        """The checksums: one that another one covers comes first."""
        out: list[Field] = []

        def add(f: Field) -> None:
            for inner in (self.all[i] for i in self.covered(f)):
                if inner.covers and inner.name not in f.zero and inner not in out:
                    add(inner)
            out.append(f)

        for f in self.all:
            if f.covers and f not in out:
                add(f)
        return tuple(out)

    def at(self, error: E, f: Field, source: Source | None = None) -> E:
        """The error with a field before its path, and the field's line of YAML if none is known."""
        prefixed(error, f.name)
        error.located(schema=f"{self.source_file}:{f.line}" if f.line else self.source_file)
        if source is not None and error.where.position is None:
            w = source.where()
            error.located(position=w.position, stream_position=w.stream_position, file=w.file)
        return error


class Given(construct.Container):
    """A mapping that a build may change: a copy of the caller's, in which it puts what it works out."""


def contain(value: Any) -> Any:
    """A copy that a build may change: mappings as :class:`Given` and lists of them likewise."""
    if isinstance(value, Given):
        return value
    if isinstance(value, dict):
        return Given({name: contain(item) for name, item in value.items()})
    if isinstance(value, list | tuple):
        return construct.ListContainer(contain(item) for item in value)
    return value


def end_of(items: Any, index: int, *names: str) -> Any:
    """A field of the first (0) or the last (-1) element of an array; None when there is none."""
    if not items or not isinstance(items, list | tuple):
        return None
    return value_at(items[index], *names)


def max_of(items: Any, *names: str) -> Any:
    """Return the largest number that a field of the elements of an array has; None if one has none, or there are no elements."""
    return max(_numbers(items, names), default=None)


def min_of(items: Any, *names: str) -> Any:
    """Return the smallest number that a field of the elements of an array has; None if one has none, or there are no elements."""
    return min(_numbers(items, names), default=None)


def _numbers(items: Any, names: tuple[str, ...]) -> list[int]:
    """Return the number that a field has in each element; an empty list if an element has none."""
    if not isinstance(items, list | tuple):
        return []
    found = [value_at(item, *names) for item in items]
    return found if all(isinstance(value, int) for value in found) else []


def value_at(value: Any, *names: str) -> Any:
    """What lies at the end of a path of fields; None when something on the way is not there, or bytes without a case."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def plus(a: int | None, b: int | None) -> int | None:
    """A sum; None when a side is."""
    return None if a is None or b is None else a + b


def minus(a: int | None, b: int | None) -> int | None:
    """A difference; None when a side is."""
    return None if a is None or b is None else a - b


def ordered(a: Any, operator: Literal["<", "<=", ">", ">="], b: Any) -> bool:
    """A comparison of order, which does not hold when a side is None."""
    if a is None or b is None:
        return False
    if operator == "<":
        return bool(a < b)
    if operator == "<=":
        return bool(a <= b)
    return bool(a > b if operator == ">" else a >= b)
