"""Fields of a layout, their rules and relations, and the functions that generated expressions call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import construct

from codecgen.runtime.byte_strings import Bytes
from codecgen.runtime.checksums import CHECKSUMS, Crc, Mask, XxHash
from codecgen.runtime.checksums import checksum as checksum_function
from codecgen.runtime.errors import BuildError, E, ValueRefused, prefix_path
from codecgen.runtime.located_bytes import Condition, Source
from codecgen.runtime.parsed import Derived, arrays_of
from codecgen.runtime.primitives import Codec
from codecgen.runtime.rules import LayoutRule
from codecgen.runtime.sensitive import Sensitive


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition of the schema on the fields so far, with its text for messages."""

    text: str
    holds: Condition

    def broken(self, value: Any) -> str:
        """Return the message for a value that a ``refuse`` rule forbids."""
        return f"{_describe_rule_value(value)} is not allowed, because {self.text}"

    def missed(self, value: Any) -> str:
        """Return the message for a value that does not meet a ``valid`` rule."""
        return f"{_describe_rule_value(value)} is not valid: {self.text}"


def _describe_rule_value(value: Any) -> str:
    """Return a value for the message of a rule; an array as the number of its elements."""
    return f"an array of {len(value)}" if isinstance(value, list) else repr(value)


@dataclass(frozen=True, slots=True)
class Fill:
    """A value that a build puts into ``field`` of the elements of an array.

    It is the number ``given`` of the element less the field ``base`` of the layout around it. An element without
    both gets ``otherwise``, or its index if that is None.
    """

    field: str
    given: str
    base: str
    otherwise: int | None = None

    def apply(self, item: dict[str, Any], index: int, base: Any) -> None:
        """Replace the number ``given`` of ``item`` (such as its offset) by the field: ``given``
        less ``base``. Without ``given`` keep the field's value, or set the default ``otherwise`` or
        ``index``. Raise BuildError if a number is no int, ``base`` is no int where it is needed, or
        both numbers are there and contradict each other.
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
    """One field of a layout.

    Attributes:
        measures: (first, last) of the field range whose length in bytes the field holds; last None is the end of
            the layout.
        excess: By how much the length is larger than the bytes that it measures.
        own_bytes: Bytes up to and with the field itself that ``measures`` counts too.
        counts: The array whose number of elements the field holds, or several that have the same number.
        checksum: The function over the field ranges ``covers``; fields of ``zero`` count as zero bytes, and
            ``mask`` changes the result.
        algorithm: The parameters of the checksum.
        valid, refuse: Rules about the fields so far.
        spelled: The name in the format's own documents.
        hidden: Documents for people leave the field out.
        tag: The number of a tagged field, which lies in the section of tagged fields.
        fills: Values that builders put into the elements of an array.
        absent: The number that means no value.
        unit: The unit of the number.
        sensitive: The value is a secret, which programs hide from people.

    Builders work out lengths, counts and checksums; parsers verify them.
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
        excess: int = 0,
        counts: str | tuple[str, ...] = (),
        checksum: str | None = None,
        covers: tuple[str, str | None] | list[tuple[str, str | None]] | None = None,
        zero: Iterable[str] = (),
        mask: Mask | None = None,
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
        self.excess = excess
        self.counts = (counts,) if isinstance(counts, str) else counts
        self.checksum = None if checksum is None else checksum_function(checksum, mask)
        self.algorithm: Crc | XxHash | None = None if checksum is None else CHECKSUMS[checksum]
        self.mask = mask
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


@dataclass(frozen=True, slots=True)
class Length:
    """The length of a layout: an integer at byte ``offset`` that counts the bytes after the first ``before`` bytes."""

    field: Field
    offset: int
    size: int
    signed: bool
    endian: str
    before: int

    @property
    def end(self) -> int:
        """Return the offset of the byte after the integer."""
        return self.offset + self.size

    def read_key(self) -> tuple[int, int, bool, str, int]:
        """Return a key that is equal for layouts whose lengths are read in the same way."""
        return self.offset, self.size, self.signed, self.endian, self.before


class Fields:
    """The fields of one layout by name, with their relations."""

    def __init__(self, fields: Iterable[Field], source_file: str) -> None:
        self.all = tuple(fields)
        self.names = [f.name for f in self.all]
        self.by_name = {f.name: f for f in self.all}
        self.tagged = tuple(f for f in self.all if f.tag is not None)
        self.source_file = source_file
        self.rules: tuple[LayoutRule, ...] = ()
        self.look_ups: tuple[Derived, ...] = ()
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
        """Return the indices of the fields from ``first`` to ``last`` (included); None is the last field."""
        return range(
            self.names.index(first), self.names.index(last) + 1 if last else len(self.names)
        )

    def covered(self, f: Field) -> tuple[int, ...]:
        """Return the indices of the fields that a checksum covers."""
        return tuple(i for first, last in f.covers for i in self.field_range(first, last))

    def check_look_ups(self, this: Any) -> None:
        """Compute the derived values that look elements up from ``this``, the fields of the layout, and
        from the elements of its arrays. Raise ValueRefused, whose path is the field with the number, if an
        array has no such element.
        """
        for derived in self.look_ups:
            if derived.each is None:
                self._check_look_up(derived, "", this)
            else:
                for i, item in enumerate(this[derived.each] or ()):
                    self._check_look_up(derived, f"[{i}]", this, item)

    def _check_look_up(self, derived: Derived, element: str, *values: Any) -> None:
        """Compute a derived value from ``values``; ``element`` is the path of the element from its
        array, or ``""``. Raise ValueRefused, whose path is the field with the number, if there is no such
        element.
        """
        try:
            derived.value(*values)
        except ValueRefused as error:
            path = f"{element}.{derived.looks_up}" if derived.looks_up else element
            if derived.each is not None:
                raise self.locate(prefix_path(error, path), self.by_name[derived.each]) from None
            raise self.locate(error, self.by_name[derived.looks_up or self.names[0]]) from None

    def in_rule(self, error: E, rule: LayoutRule) -> E:
        """Add the field and the YAML line of a broken rule to an error, and return the error."""
        return error.located(path=rule.about, schema=f"{self.source_file}:{rule.line}")

    def _inner_first(self) -> tuple[Field, ...]:
        """Return the fields that have checksums, in their order, but each after the checksums of
        other fields that it covers (unless these count as zeros), since they must be computed
        first.
        """
        out: list[Field] = []

        def add(f: Field) -> None:
            """Append a checksum after the checksums that it covers."""
            for inner in (self.all[i] for i in self.covered(f)):
                if inner.covers and inner.name not in f.zero and inner not in out:
                    add(inner)
            out.append(f)

        for f in self.all:
            if f.covers and f not in out:
                add(f)
        return tuple(out)

    def locate(self, error: E, f: Field, source: Source | None = None) -> E:
        """Put the name of ``f`` before the path of an error and, if they are unknown, add its YAML
        line and, with ``source``, its position and file. Change the error in place, and return it.
        """
        prefix_path(error, f.name)
        error.located(schema=f"{self.source_file}:{f.line}" if f.line else self.source_file)
        if source is not None and error.where.position is None:
            w = source.where()
            error.located(position=w.position, stream_position=w.stream_position, file=w.file)
        return error


class GivenFields(construct.Container):
    """A mapping that a build may change: a copy of the caller's, in which it puts what it works out."""


def contain(value: Any) -> Any:
    """Return a deep copy that a build may change: mappings become :class:`GivenFields`, lists and tuples
    a ListContainer. A value that is a :class:`GivenFields` already is returned itself, as is any value
    that is no container.
    """
    if isinstance(value, GivenFields):
        return value
    if isinstance(value, dict):
        fields = GivenFields({name: contain(item) for name, item in value.items()})
        fields.__dict__["_parsed_with"] = arrays_of(value)
        return fields
    if isinstance(value, list | tuple):
        return construct.ListContainer(contain(item) for item in value)
    return value


def end_of(items: Any, index: int, *names: str) -> Any:
    """Return the value at the path ``names`` in the first (``index`` 0) or last (-1) element of a
    list or tuple. Return None if ``items`` is empty or no list, or the element has no such field.
    """
    if not items or not isinstance(items, list | tuple):
        return None
    return value_at(items[index], *names)


def look_up(items: Any, index: int | None, array: str, what: str, *names: str) -> Any:
    """Return the value at the path ``names`` in the element of a list with the number ``index``,
    from 0. Return None if the list or the number is None, or the element has no such field. Raise
    ValueRefused, which names the list as ``array`` and the number as ``what``, if there is no such
    element.
    """
    if items is None or index is None:
        return None
    if not 0 <= index < len(items):
        there = f"elements 0 to {len(items) - 1}" if items else "no elements"
        if len(items) == 1:
            there = "only element 0"
        raise ValueRefused(f"{what} is {index}, but {array} has {there}")
    return value_at(items[index], *names)


def max_of(items: Any, *names: str) -> Any:
    """Return the largest of the numbers at the path ``names`` in the elements of a list or tuple.
    Return None if there are no elements, one has no number there, or ``items`` is no list.
    """
    return max(_numbers(items, names), default=None)


def min_of(items: Any, *names: str) -> Any:
    """Return the smallest of the numbers at the path ``names`` in the elements of a list or tuple.
    Return None if there are no elements, one has no number there, or ``items`` is no list.
    """
    return min(_numbers(items, names), default=None)


def _numbers(items: Any, names: tuple[str, ...]) -> list[int]:
    """Return the number at the path ``names`` of each element. Return ``[]`` if ``items`` is no
    list or tuple, or the value in any element is no int.
    """
    if not isinstance(items, list | tuple):
        return []
    found = [value_at(item, *names) for item in items]
    return found if all(isinstance(value, int) for value in found) else []


def value_at(value: Any, *names: str) -> Any:
    """Return the field at the end of the path ``names``; ``value`` itself for no names. Return None
    if a field on the way is absent or is no mapping.
    """
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def plus(a: int | None, b: int | None) -> int | None:
    """Return ``a + b``, or None if a side is None, or the two cannot be added."""
    try:
        return None if a is None or b is None else a + b
    except TypeError:  # a value of an element that is not written yet, and will be refused
        return None


def minus(a: int | None, b: int | None) -> int | None:
    """Return ``a - b``, or None if a side is None, or the two cannot be subtracted."""
    try:
        return None if a is None or b is None else a - b
    except TypeError:
        return None


def ordered(a: Any, operator: Literal["<", "<=", ">", ">="], b: Any) -> bool:
    """Return whether ``a < b`` (or ``<=``, ``>``, ``>=``, as ``operator`` says) holds. Return False
    if a side is None, or the two cannot be compared.
    """
    if a is None or b is None:
        return False
    try:
        if operator == "<":
            return bool(a < b)
        if operator == "<=":
            return bool(a <= b)
        return bool(a > b if operator == ">" else a >= b)
    except TypeError:
        return False
