"""One build of a layout: values in, bytes out, with lengths, counts and checksums worked out."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import construct

from codecgen.runtime.arrays import Array
from codecgen.runtime.bits import Bits
from codecgen.runtime.errors import BuildError, ValueRefused, describe_value, prefix_path
from codecgen.runtime.fields import Field, Fields, contain
from codecgen.runtime.located_bytes import Session
from codecgen.runtime.parsed import Parsed, fields_with
from codecgen.runtime.primitives import EnumField
from codecgen.runtime.tags import Tags, decode_default, default_of
from codecgen.runtime.zero_bytes import Padding


class Build:
    """State of one build: the given values and those that were worked out. ``name`` is the name of the layout, ``given``
    has the values that it gets from outside.
    """

    __slots__ = ("fields", "given", "name", "obj", "original", "session", "tagged", "uncounted")

    def __init__(
        self,
        name: str,
        fields: Fields,
        value: Any,
        session: Session,
        given: Mapping[str, Any],
    ) -> None:
        self.name = name
        self.given = given
        self.fields = fields
        self.session = session
        self.original = value
        self.obj = self.copy_values(value)
        self.uncounted: set[str] = set()
        self.tagged: dict[int, bytes] = {}  # those that do not hold their defaults, by tag

    def build(self) -> bytes:
        """Return the bytes of all fields in order. Raise BuildError if a value is missing, cannot
        be written or breaks a rule of its field. Raise it also if an absent array has no given
        count, or a value looks up an element that an array lacks. In a strict session, raise it
        also if the fields together break a rule of the layout, or an unchanged parsed element would
        get another derived value. Raise UnsupportedCodec if the package of a compression codec or
        checksum is not installed.
        """
        parts: list[bytes] = []
        for f in self.fields.all:
            try:
                if not f.in_layout:
                    parts.append(self.value_bytes(f))
                elif isinstance(f.codec, Padding):
                    parts.append(self.padding(f, f.codec, sum(map(len, parts))))
                else:
                    parts.append(self.field_bytes(f))
            except BuildError as error:
                raise self.fields.locate(error, f) from None
        for f in self.fields.all:
            if f.name in self.uncounted and all(self.obj[array] is None for array in f.counts):
                missing = BuildError(f"{f.counts[0]} is left out: its count must be given")
                raise self.fields.locate(missing, f)
        self.fill(parts)
        self.check_look_ups()
        if self.session.strict:
            self.check_rules()
            self.check_derived()
        return b"".join(parts)

    def check_rules(self) -> None:
        """Raise BuildError for the first rule of the layout that the values together break. Its
        message says so if leaving the field out would meet the rule.
        """
        for rule in self.fields.rules:
            reason = rule.find_breach(self.obj)
            if reason is not None:
                about = self.fields.by_name.get(rule.about)  # another version has it, perhaps
                default = None if about is None else about.default
                value = None if default is None else default(self.obj)
                other = construct.Container(self.obj, **{rule.about: value})
                if value is not None and rule.find_breach(other) is None:
                    reason += f"; leave {rule.about} out, and the builder works it out"
                raise self.fields.in_rule(BuildError(reason), rule)

    def check_look_ups(self) -> None:
        """Raise BuildError if a derived value looks up an element that an array does not have. In a
        strict session, also raise it if a value that was parsed with other arrays from outside would
        look up something else in those that are here.
        """
        if not self.fields.look_ups:
            return
        try:
            self.fields.check_look_ups(self.obj)
        except ValueRefused as error:
            raise BuildError(error.reason, error.where) from None
        before = self.obj.__dict__.get("_parsed_with", {})
        if not before or not self.session.strict:
            return
        parsed = fields_with(self.obj, before)
        for derived in self.fields.look_ups:
            if derived.each is not None:
                continue
            try:
                old = derived.value(parsed)
            except ValueRefused:
                continue
            now = derived.value(self.obj)
            if old != now:
                reason = (
                    f"{derived.name} was {describe_value(old)} when it was parsed, and is {describe_value(now)} by the "
                    f"{' and '.join(before)} here: set {derived.looks_up or 'its fields'} anew, and give no parsed "
                    "value (dict(value))"
                )
                f = self.fields.by_name[derived.looks_up or self.fields.names[0]]
                raise self.fields.locate(BuildError(reason), f)

    def check_derived(self) -> None:
        """Raise BuildError if an element was parsed before and is given back unchanged, but a value
        derived from its neighbors (such as its offset) now differs because other elements changed.
        Skip elements that were edited, and those whose layout got other values for the fields on
        which the derived value depends.
        """
        for f in self.fields.all:
            for i, element in enumerate(self.original.get(f.name) or () if f.of_each else ()):
                before = element.as_parsed(f.of_each) if isinstance(element, Parsed) else None
                if before is None or before.fields != element:
                    continue
                chosen = [name for name in before.around if self.is_chosen(name)]
                if any(self.obj[name] != before.around[name] for name in chosen):
                    continue
                for name, value in before.derived.items():
                    now = f.of_each[name].display(self.obj, self.obj[f.name][i])
                    if now != value:
                        error = BuildError(self.shifted(name, value, now, chosen))
                        raise self.fields.locate(prefix_path(error, f"[{i}].{name}"), f)

    def is_chosen(self, name: str) -> bool:
        """Return whether the caller gives the value of the field ``name``: it is no constant,
        count, length or checksum, which are worked out. Raise KeyError for an unknown name.
        """
        f = self.fields.by_name[name]
        return f.const is None and not f.counts and f.measures is None and f.checksum is None

    def shifted(self, name: str, before: Any, now: Any, chosen: list[str]) -> str:
        """Return the message for an element whose derived value ``name`` was ``before`` when it was
        parsed and is ``now`` another one, since other elements changed. It advises to set one of
        the fields ``chosen``, if there are any, or to give a plain dict.
        """
        fields = f"set {' or '.join(chosen)} of the {self.name} for them, or " if chosen else ""
        return (
            f"{name} was {before} when the element was parsed, and is {now} beside the elements that are there now: {fields}"
            "give elements that are no parsed ones (dict(element))"
        )

    def copy_values(self, value: Any) -> Any:
        """Return a deep copy of the given values; a GivenFields (the copy of an outer layout's
        build) is changed in place instead. Arrays that are always present and missing become empty,
        or None if they have a default; elements get derived values such as their index. Raise
        BuildError if the value is no dict, has an unknown name not beginning with ``_``, an array
        is no list and may not be null, or numbers of an element contradict.
        """
        if not isinstance(value, dict):
            raise BuildError(f"a dict with the fields of {self.name} is needed, not {value!r}")
        for name in value:
            known = name in self.fields.by_name or name in self.given
            if not known and not str(name).startswith("_"):
                names = [*self.fields.by_name, *self.given]
                close = difflib.get_close_matches(str(name), names, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise BuildError(f"{self.name} has no field {name!r}{hint}")
        obj: Any = contain(
            value
        )  # in a layout that holds this one: what conditions after it look at
        obj.update(self.given)
        for f in self.fields.all:  # so that what depends on an array can look at it
            if not isinstance(f.codec, Array) or f.when is not None or f.tag is not None:
                continue
            if f.name not in obj:
                obj[f.name] = construct.ListContainer() if f.default is None else None
            elif not isinstance(items := obj[f.name], list):
                is_null = items is None and (f.codec.null is not None or f.default is not None)
                if not is_null:
                    raise self.fields.locate(BuildError(f"a list is needed, not {items!r}"), f)
        for f in self.fields.all:
            if f.fills and isinstance(items := obj.get(f.name), list):
                self.fill_elements(f, items, obj)
        return obj

    def fill_elements(self, f: Field, items: list[Any], obj: Any) -> None:
        """Put the values that elements of an array lack, such as their index, into each of
        ``items`` that is a dict. If the base field is missing or None in ``obj``, set it from the
        first element; else, if it is missing, from its default. Raise BuildError, whose path names
        the element, if a number is no int, the base is missing, or two values contradict.
        """
        elements = [(i, item) for i, item in enumerate(items) if isinstance(item, dict)]
        for fill in f.fills:
            base = obj.get(fill.base)
            if base is None and elements:
                base = elements[0][1].get(fill.given)
            default = self.fields.by_name[fill.base].default
            if not isinstance(base, int) and fill.base not in obj and default is not None:
                base = default(obj)
            if isinstance(base, int):
                obj[fill.base] = base
            for i, item in elements:
                try:
                    fill.apply(item, i, base)
                except BuildError as error:
                    raise self.fields.locate(prefix_path(error, f"[{i}]"), f) from None

    def padding(self, f: Field, codec: Padding, before: int) -> bytes:
        """Return the zero bytes of a padding field after ``before`` bytes of the layout, ``b""`` if
        the field is absent. Raise BuildError if a value other than None is given for it.
        """
        value = self.obj.get(f.name)
        self.obj[f.name] = None
        return codec.padding(value, before if self.is_there(f) else 0)

    def field_bytes(self, f: Field) -> bytes:
        """Return the bytes of a field at its place: those of its value, or of the section with all
        tagged fields. A tagged field gives ``b""``: its bytes are kept for that section, unless
        they are its default. Raise BuildError if the value is missing or cannot be written.
        """
        if isinstance(f.codec, Tags):
            unknown = self.obj.setdefault(f.name, construct.ListContainer())
            return f.codec.section_bytes(self.tagged, unknown, self.fields)
        data = self.value_bytes(f)
        if f.tag is None:
            return data
        if data != default_of(f):
            self.tagged[f.tag] = data
        return b""

    def value_bytes(self, f: Field) -> bytes:
        """Return the bytes of the value of a field: ``b""`` if its condition does not hold, and
        zeros for a length or checksum, which is computed later, whatever was given. Counts,
        constants and defaults are filled in. Raise BuildError if the value is missing, cannot be
        written, breaks a rule of the field, or is given for an absent field that is no length.
        """
        if not self.is_there(f):
            if self.obj.get(f.name) is not None and f.measures is None:
                raise BuildError(
                    "the layout does not have the field under these values (`when`), but a value was given: leave it out"
                )
            self.obj[f.name] = None
            return b""
        if f.measures is not None or f.checksum is not None:
            return b"\0" * (f.codec.size or 0)  # worked out when all else is there
        if f.counts:
            self.obj[f.name] = self.count(f)
        elif f.const is not None:
            self.obj[f.name] = self.constant(f)
        elif f.name not in self.obj:
            self.obj[f.name] = default_value(f, self.obj)
        if isinstance(f.codec, Bits):
            self.obj[f.name] = f.codec.filled(self.obj[f.name], self.obj)
        elif isinstance(f.codec, EnumField):
            # So that conditions see the value, however it was given.
            member = f.codec.enum.find(self.obj[f.name])
            self.obj[f.name] = self.obj[f.name] if member is None else member
        data = f.codec.write(self.obj[f.name], self.obj, self.session)
        if f.refuse is not None and f.refuse.holds(self.obj):
            raise BuildError(f.refuse.broken(self.obj[f.name]))
        if f.valid is not None and not f.valid.holds(self.obj):
            raise BuildError(f.valid.missed(self.obj[f.name]))
        return data

    def count(self, f: Field) -> Any:
        """Return the number of elements of the arrays that a field counts (plus the ``plus`` of the
        array), if one is given as a list. Else return the given count; without one, the number for
        null if an array is null, and else 0, which marks the count as missing if all the arrays
        stay absent. Raise BuildError if the lists have different numbers of elements.
        """
        lists = {
            array: len(items) + getattr(self.fields.by_name[array].codec, "plus", 0)
            for array in f.counts
            if isinstance(items := self.obj.get(array), list | tuple)
        }
        if lists:
            first, *others = lists
            for array in others:
                if lists[array] != lists[first]:
                    numbers = f"{lists[first]} for {first}, and {lists[array]} for {array}"
                    raise BuildError(
                        f"it is the number of elements of several arrays, but their lengths differ: {numbers}; give all of them one length"
                    )
            return lists[first]
        given = self.obj.get(f.name)
        for array in f.counts if given is None else ():
            field = self.fields.by_name[array]
            null = field.codec.null if isinstance(field.codec, Array) else None
            if null is not None and (array in self.obj or field.default is not None):
                return null
        if given is None:
            self.uncounted.add(f.name)
        return 0 if given is None else given

    def constant(self, f: Field) -> Any:
        """Return the constant of a field. Raise BuildError if another value was given; None is
        accepted, and for an enum the name or label of the constant.
        """
        given = self.obj.get(f.name)
        value = given
        if isinstance(f.codec, EnumField) and isinstance(given, str):
            value = f.codec.enum.find(given)
        is_same = (value == f.const) is True  # an array of NumPy is neither the same nor another
        if given is not None and not is_same:
            reason = f"{describe_value(given)} was given, but {self.name} has {describe_value(f.const)} here"
            raise BuildError(
                f"{reason}; leave {f.name} out, or build the layout that has this value"
            )
        return f.const

    def fill(self, parts: list[bytes]) -> None:
        """Put computed lengths into ``parts`` (the bytes of each field), from the last field to the
        first, then checksums, inner ones before those that cover them. Skip absent fields. Raise
        BuildError if a field cannot hold its length; UnsupportedCodec if the package of a checksum
        is not installed.
        """
        for i in reversed(range(len(parts))):
            f = self.fields.all[i]
            if f.measures is not None and self.is_there(f):
                field_range = self.fields.field_range(*f.measures)
                self.write(f, sum(len(parts[j]) for j in field_range) + f.excess, parts)
        for f in self.fields.checksums:
            if f.checksum is not None and self.is_there(f):
                covered = (
                    bytes(len(parts[i])) if self.fields.names[i] in f.zero else parts[i]
                    for i in self.fields.covered(f)
                )
                self.write(f, f.checksum(b"".join(covered)), parts)

    def is_there(self, f: Field) -> bool:
        """Return whether the condition of a field holds for the fields so far, or True if it has
        none.
        """
        return f.when is None or bool(f.when(self.obj))

    def write(self, f: Field, value: int, parts: list[bytes]) -> None:
        """Store a computed length or checksum as the value of ``f``, and replace its bytes in
        ``parts``. Raise BuildError, which names the field, if it cannot hold the value.
        """
        self.obj[f.name] = value
        try:
            parts[self.fields.names.index(f.name)] = f.codec.write(value, self.obj, self.session)
        except BuildError as error:
            raise self.fields.locate(error, f) from None


def default_value(f: Field, obj: Any) -> Any:
    """Return the value of a field that was not given, among the fields ``obj`` of its layout: its
    default, the number for "absent" if that default is None, the defaults of its bits, ``[]`` for
    an array, or None if the field can be null. A tagged field without a default has the empty value
    of its type, such as 0 or ``""``. Raise BuildError for any other field.
    """
    if f.tag is not None:
        return decode_default(default_of(f), f)
    if isinstance(f.codec, Bits):
        return f.codec.filled(None if f.default is None else f.default(obj), obj)
    if f.default is not None:
        value = f.default(obj)
        if value is None and f.absent is not None:
            return f.absent
        if value is not None or nullable(f):
            return value
    elif isinstance(f.codec, Array):
        return construct.ListContainer()
    elif nullable(f):
        return None
    raise BuildError("a value is needed: it is missing or null")


def nullable(f: Field) -> bool:
    """Return whether a field has a number that means null; its condition does not count."""
    return f.codec.null is not None
