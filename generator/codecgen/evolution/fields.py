"""Compare the bytes of a field in two states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from codecgen.evolution.changes import Change
from codecgen.evolution.conditions import find_narrowing, named_shape, presence, requirements
from codecgen.evolution.pairs import LayoutPair
from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.constant_folding import fold
from codecgen.plan.tag_defaults import default_data, default_number
from codecgen.plan.type_text import (
    amount_words,
    bits_words,
    checksum_words,
    constant_words,
    scalar_name,
    type_words,
)
from codecgen.runtime.nouns import count_noun
from codecgen.schema.lookup import has_byte_order
from codecgen.schema.model import Model
from codecgen.schema.types import (
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    ChoiceType,
    Compression,
    Element,
    FieldRange,
    FieldType,
    PaddingType,
    Reference,
    ScalarType,
    StructType,
    TagsType,
)

_ACCEPTED_NULL = "null was possible, and is no longer"


class FieldComparison:
    """Compares a field of the old state with the field that reads its bytes in the new state."""

    def __init__(self, pair: LayoutPair, old: FieldPlan, new: FieldPlan) -> None:
        self.pair = pair
        self.names = pair.names
        self.old = old
        self.new = new
        self.path = f"{pair.old.name}.{old.name}"

    def compare(self) -> Iterator[Change]:
        """Yield all changes that concern the bytes of the field: tag, conditions, values given to
        the held layout, type, byte order (only if the type is equal), measured ranges, counts,
        checksums, constant, default and removed tolerances (not those that its layout had). Yield
        nothing if none differ.
        """
        old, new = self.old.field, self.new.field
        if old.tag != new.tag:
            message = f"{_tag_words(old.tag)} becomes {_tag_words(new.tag)}"
            yield self.change(message, "B009", "tag")
        yield from self._compare_conditions()
        yield from self._compare_given()
        type_changes = list(self.types(old.type, new.type))
        yield from type_changes
        if not type_changes and has_byte_order(old) and old.endian != new.endian:
            yield self.change(f"{old.endian} endian becomes {new.endian} endian", "B007", "endian")
        yield from self._compare_relations()
        yield from self._compare_constant()
        yield from self._compare_defaults()
        # The tolerances of the layout are compared once, for all fields.
        removed = sorted(old.accepts - new.accepts - self.pair.old.layout.accepts)
        if removed:
            message = f"the tolerance {', '.join(removed)} is removed"
            yield self.change(message, "B023", "accepts")

    def change(self, message: str, rule: str, key: str = "", *, certain: bool = True) -> Change:
        """Return a change of the field's bytes, at the place of its key ``key`` in the new schemas,
        or of the field if it has no such key. ``rule`` is the id of the broken rule, ``""`` if
        nothing breaks; ``certain`` says whether it surely does.
        """
        f = self.new.field
        span = f.places.get(key, f.span)
        return self.pair.change(self.path, message, rule, span, certain=certain)

    def _compare_given(self) -> Iterator[Change]:
        """Yield a change, which perhaps breaks, for each value that the field gives to the layout
        that it holds by another expression than before. Values that only one side gives yield
        nothing.
        """
        given = dict(self.old.field.gives), dict(self.new.field.gives)
        for name in (name for name in self.old.gives if name in self.new.gives):
            before, after = self.old.gives[name], self.new.gives[name]
            if named_shape(before, self.names) != named_shape(after, {}):
                message = f"given {name}: {given[0][name]} becomes {given[1][name]}"
                yield self.change(message, "B019", f"given.{name}", certain=False)

    # ------------------------------------------------------------ conditions

    def _compare_conditions(self) -> Iterator[Change]:
        """Yield a breaking change if ``when`` or ``until`` differs; it is certain only if an
        ``until`` is added or removed. Yield a change if ``valid`` or ``refuse`` differ: breaking if
        old values can be rejected now (not certain if that is unknown), else compatible.
        """
        old, new = self.old, self.new
        before, after = (
            named_shape(None if presence(fp.when) == "always" else fp.when, names)
            for fp, names in ((old, self.names), (new, {}))
        )
        if before != after:
            texts = [
                "always" if presence(fp.when) == "always" else f"when {fp.field.when}"
                for fp in (old, new)
            ]
            message = f"exists {texts[0]}; becomes {texts[1]}"
            yield self.change(message, "B011", "when", certain=False)
        if named_shape(old.until, self.names) != named_shape(new.until, {}):
            texts = [_until_words(fp.field.type) for fp in (old, new)]
            certain = (old.until is None) != (new.until is None)
            yield self.change(f"ends {texts[0]}; becomes {texts[1]}", "B011", certain=certain)
        narrowing = find_narrowing(
            requirements(old.valid, old.refuse), requirements(new.valid, new.refuse), self.names
        )
        if narrowing != "no":
            message = f"values with {_limits(old)} become {_limits(new)}"
            key = "valid" if new.field.valid != old.field.valid else "refuse"
            yield self.change(message, "B012", key, certain=narrowing == "yes")
        elif _limits(old) != _limits(new):
            yield self.change(f"values with {_limits(old)} become {_limits(new)}", "", "valid")

    # ------------------------------------------------------------ relations

    def _compare_relations(self) -> Iterator[Change]:
        """Yield a breaking change each if the field measures another range, counts another array,
        or is another checksum or over other fields. Renamed fields count as the same.
        """
        old, new = self.old, self.new
        ranges = [
            None
            if fp.measures is None
            else (_range_names(plan, fp.measures, names), fp.own_bytes, fp.field.excess)
            for fp, plan, names in (
                (old, self.pair.old, self.names),
                (new, self.pair.new, {}),
            )
        ]
        if ranges[0] != ranges[1]:
            words = [
                "no range" if found is None else " to ".join(dict.fromkeys(found[0]))
                for found in ranges
            ]
            yield self.change(f"measures {words[0]}; becomes {words[1]}", "B008", "measures")
        counted = [
            tuple(self.names.get(name, name) for name in old.field.counts),
            new.field.counts,
        ]
        if set(counted[0]) != set(counted[1]):
            words = [" and ".join(names) or "no array" for names in counted]
            yield self.change(f"counts {words[0]}; becomes {words[1]}", "B008", "counts")
        checksums = [
            _checksum_form(self.pair.old, old, self.names),
            _checksum_form(self.pair.new, new, {}),
        ]
        if checksums[0] != checksums[1]:
            words = [_checksum_text(plan, fp) for plan, fp in self._sides()]
            yield self.change(f"{words[0]} becomes {words[1]}", "B014", "checksum")

    def _sides(self) -> tuple[tuple[LayoutPlan, FieldPlan], tuple[LayoutPlan, FieldPlan]]:
        return (self.pair.old, self.old), (self.pair.new, self.new)

    # ------------------------------------------------------------ constants and defaults

    def _compare_constant(self) -> Iterator[Change]:
        """Yield a breaking change if the field has another constant, has one newly, or has none any
        more. A version field counts as a constant of its version.
        """
        values = [_constant(plan, fp) for plan, fp in self._sides()]
        if values[0] == values[1]:
            return
        words = ["no constant" if value is None else constant_words(value) for value in values]
        yield self.change(f"{words[0]} becomes {words[1]}", "B010", "const")

    def _compare_defaults(self) -> Iterator[Change]:
        """Yield a change if the default differs: breaking if both sides are tagged, as readers use
        it for a missing tag; compatible otherwise, as only builders use it.
        """
        if self.old.field.tag is not None and self.new.field.tag is not None:
            before = _default_form(self.pair.old_plan, self.pair.old, self.old, ())
            after = _default_form(self.pair.new_plan, self.pair.new, self.new, ())
            if before != after:
                yield self.change(
                    "the default differs, which readers take for a missing tag", "B022", "default"
                )
            return
        sides = [
            (named_shape(fp.default, names), fp.field.absent, fp.field.filled)
            for fp, names in ((self.old, self.names), (self.new, {}))
        ]
        if sides[0] != sides[1]:
            words = [_default_words(fp) for fp in (self.old, self.new)]
            yield self.change(f"builders write {words[1]} instead of {words[0]}", "", "default")

    # ------------------------------------------------------------ types

    def types(self, old: FieldType, new: FieldType) -> Iterator[Change]:
        """Yield the changes between two types of the field, compared member by member. Types of
        different kinds, or paddings to another multiple, give one breaking change.
        """
        match old, new:
            case ScalarType(), ScalarType():
                yield from self.scalars(old, new)
            case BitsType(), BitsType():
                yield from self.bits(old, new)
            case BytesType(), BytesType():
                yield from self.byte_strings(old, new)
            case PaddingType(one), PaddingType(other) if one == other:
                return
            case TagsType(), TagsType():
                return
            case ArrayType(), ArrayType():
                yield from self.arrays(old, new)
            case StructType(), StructType():
                yield from self.structs(old, new)
            case ChoiceType(), ChoiceType():
                yield from self.choices(old, new)
            case _:
                yield self._other_type(old, new)

    def _other_type(self, old: FieldType, new: FieldType) -> Change:
        return self.change(f"{type_words(old)} becomes {type_words(new)}", "B006", "type")

    def scalars(self, old: ScalarType, new: ScalarType) -> Iterator[Change]:
        """Yield one breaking change if the scalar types differ; otherwise the changes of the
        allowed enum values.
        """
        if old.name != new.name:
            message = f"{scalar_name(old.name)} becomes {scalar_name(new.name)}"
            yield self.change(message, "B006", "type")
            return
        yield from self.enums((old.enum, old.only), (new.enum, new.only), "", None)

    def enums(
        self,
        old: tuple[str | None, tuple[str, ...] | None],
        new: tuple[str | None, tuple[str, ...] | None],
        where: str,
        every: range | None,
    ) -> Iterator[Change]:
        """Yield at most one change if the enum or the names under ``only`` differ: breaking if a
        number that was accepted is rejected now, or names changed their numbers; else compatible.
        ``where`` precedes the message; ``every`` has all numbers that the bytes can hold, or None.

        Values that the enum itself gained or lost are not repeated.
        """
        models = self.pair.old_plan.model, self.pair.new_plan.model
        before = _allowed(models[0], *old)
        after = _allowed(models[1], *new)
        words = [_enum_words(*side) for side in (old, new)]
        if old[0] == new[0] and old[1] == new[1]:
            return
        message = f"{where}{words[0]} becomes {words[1]}"
        if after is None:
            yield self.change(message, "", "enum")
            return
        every = every or (range(0) if before is not None else None)
        numbers = set(before) if before is not None else None if every is None else set(every)
        lost = None if numbers is None else numbers - set(after)
        if old[0] == new[0] and lost and before is not None:
            enum = {value.value for value in models[1].enums[str(new[0])].values}
            lost &= enum  # the enum lost the others, which is reported there
        if lost is None or lost:
            yield self.change(message, "B012", "only" if old[0] == new[0] else "enum")
            return
        names = set(after.values())
        renumbered = before is not None and any(
            name in names and after.get(number) != name for number, name in before.items()
        )
        yield self.change(message, "B017" if renumbered and old[0] != new[0] else "", "enum")

    def bits(self, old: BitsType, new: BitsType) -> Iterator[Change]:
        """Yield one breaking change if the base types of two bit fields differ; otherwise changes
        of members that are removed, moved, renamed (same bits) or added. A new member is breaking
        only if its enum rejects 0. Reserved members are skipped.
        """
        if old.base != new.base:
            yield self._other_type(old, new)
            return
        there = {m.name: m for m in new.members if not m.reserved}
        before = {m.name for m in old.members}
        places = {(m.low, m.high): m for m in there.values() if m.name not in before}
        matched = set()
        for m in old.members:
            if m.reserved:
                continue
            other = there.get(m.name) or places.get((m.low, m.high))
            if other is None:
                message = f"{m.name} ({bits_words(m)}) is removed"
                yield self.change(message, "B015", "members")
                continue
            matched.add(other.name)
            if other.name != m.name:
                span = other.span
                message = f"{m.name} is renamed to {other.name}"
                yield Change("names", self.path, message, span=span)
            yield from self._compare_member(m, other)
        for m in there.values():
            if m.name not in matched:
                allowed = _allowed(self.pair.new_plan.model, m.enum, m.only)
                rule = "B012" if allowed is not None and 0 not in allowed else ""
                why = ", for which 0 is not valid" if rule else ""
                yield self.change(f"{m.name} ({bits_words(m)}) is added{why}", rule, "members")

    def _compare_member(self, old: BitMember, new: BitMember) -> Iterator[Change]:
        """Yield a breaking change if a bit member has other bits; otherwise the changes of its
        allowed enum values.
        """
        if (old.low, old.high) != (new.low, new.high):
            message = f"{old.name}: {bits_words(old)} becomes {bits_words(new)}"
            yield self.change(message, "B015", "members")
            return
        sides = (old.enum, old.only), (new.enum, new.only)
        yield from self.enums(*sides, f"{old.name}: ", range(1 << old.width))

    def byte_strings(self, old: BytesType, new: BytesType) -> Iterator[Change]:
        """Yield one breaking change if two bytes or text types differ in kind, padding or length;
        otherwise the change of their null, if any.
        """
        if (old.text, old.padded) != (new.text, new.padded):
            yield self._other_type(old, new)
        elif (old.length, old.plus) != (new.length, new.plus):
            rule = "B008" if old.prefix is not None and new.prefix is not None else "B006"
            message = f"{type_words(old)} becomes {type_words(new)}"
            yield self.change(message, rule, "string" if old.text else "bytes")
        else:
            yield from self.nulls(old.null, new.null, old.prefix)

    def nulls(self, old: int | None, new: int | None, prefix: str | None) -> Iterator[Change]:
        """Yield a change if the number that means null differs: breaking if it is removed, changed,
        or new but a possible length; compatible if it is new and negative, or the prefix is
        compact.
        """
        if old == new:
            return
        if new is None:
            yield self.change(_ACCEPTED_NULL, "B013", "none")
        elif old is not None:
            yield self.change(f"null as {old} becomes null as {new}", "B013", "none")
        elif new >= 0 and prefix != "compact":
            yield self.change(f"{new} means null now", "B013", "none")
        else:
            yield self.change(f"null is possible now, as {new}", "", "none")

    def arrays(self, old: ArrayType, new: ArrayType) -> Iterator[Change]:
        """Yield the changes between two arrays: count or length (or else null), ``at_least``,
        nesting limit, elements and compression. A higher ``at_least`` or lower nesting limit is
        breaking, the reverse compatible.
        """
        counted_by = old.counted_by
        if counted_by is not None:
            counted_by = self.names.get(counted_by, counted_by)
        before = (old.count, counted_by, old.plus, old.length, old.fixed)
        if before != (new.count, new.counted_by, new.plus, new.length, new.fixed):
            words = [_count_words(type_) for type_ in (old, new)]
            yield self.change(f"{words[0]} becomes {words[1]}", "B008", "count")
        else:
            yield from self.nulls(old.null, new.null, old.count or old.length)
        if old.at_least != new.at_least:
            message = f"at_least {old.at_least} becomes {new.at_least}"
            rule = "B012" if new.at_least > old.at_least else ""
            yield self.change(message, rule, "at_least")
        if old.nesting != new.nesting:
            words = [str(type_.nesting or "no limit") for type_ in (old, new)]
            is_lower = new.nesting is not None and new.nesting < (old.nesting or new.nesting + 1)
            rule = "B012" if is_lower else ""
            yield self.change(f"nesting {words[0]} becomes {words[1]}", rule, "nesting")
        yield from self.elements(old.element, new.element)
        yield from self.compressions(old.compression, new.compression)

    def elements(self, old: Element, new: Element) -> Iterator[Change]:
        """Yield the changes between the elements of two arrays. Elements of different kinds give
        one breaking change.
        """
        match old, new:
            case Reference(), Reference():
                yield from self._compare_held(old, new)
            case ScalarType(), ScalarType():
                yield from self.scalars(old, new)
            case BytesType(), BytesType():
                yield from self.byte_strings(old, new)
            case ChoiceType(), ChoiceType():
                yield from self.choices(old, new)
            case _:
                yield self._other_type(self.old.field.type, self.new.field.type)

    def structs(self, old: StructType, new: StructType) -> Iterator[Change]:
        """Yield the changes between two held layouts: presence number (nothing more then), null,
        version expression (nothing more then), or incompatible bytes of the layouts.
        """
        if old.present != new.present:
            yield self._other_type(old, new)
            return
        if old.null != new.null:
            yield self.change(f"null as {old.null} becomes null as {new.null}", "B013", "none")
        before, after = self.old.held_version, self.new.held_version
        if named_shape(before, self.names) != named_shape(after, {}):
            words = [
                "its own" if type_.version is None else str(type_.version) for type_ in (old, new)
            ]
            message = f"the version {words[0]} becomes {words[1]}"
            certain = (before is None) != (after is None)
            yield self.change(message, "B019", "version", certain=certain)
            return
        yield from self._compare_held(old.layout, new.layout, is_version_given=before is not None)

    def _compare_held(
        self, old: Reference, new: Reference, *, is_version_given: bool = False
    ) -> Iterator[Change]:
        """Yield a breaking change if bytes of the layouts that ``old`` can mean are not read as
        those of ``new``. ``is_version_given`` says that an expression of the field gives the version, so that
        all versions count.
        """
        reason, certain = self.pair.comparer.find_incompatibility(
            _find_held_plans(self.pair.old_plan, old, self.pair.old, is_version_given),
            _find_held_plans(self.pair.new_plan, new, self.pair.new, is_version_given),
        )
        if reason:
            message = f"holds {new} instead of {old}: {reason}"
            yield self.change(message, "B006", "layout", certain=certain)

    def choices(self, old: ChoiceType, new: ChoiceType) -> Iterator[Change]:
        """Yield the changes between two choices in a field: discriminator or version (nothing more
        then), length or else null, unknown cases that are rejected now. If the field names another
        choice, also another deciding field (nothing more then), or each old case that is removed or
        incompatible.
        """
        for key, one, other in (
            ("given", (self.old.given, old.given), (self.new.given, new.given)),
            ("version", (self.old.held_version, old.version), (self.new.held_version, new.version)),
        ):
            if named_shape(one[0], self.names) != named_shape(other[0], {}):
                message = f"the {key} {one[1] or 'of its own'} becomes {other[1] or 'of its own'}"
                certain = (one[0] is None) != (other[0] is None)
                yield self.change(message, "B019", key, certain=certain)
                return
        if old.length != new.length:
            words = [type_.length or "none" for type_ in (old, new)]
            yield self.change(f"the length {words[0]} becomes {words[1]}", "B008", "length")
        else:
            yield from self.nulls(old.null, new.null, old.length)
        if old.unknown and not new.unknown:
            yield self.change("values without a case are not kept as bytes", "B018", "unknown")
        if old.choice == new.choice:
            return  # the choice is compared on its own
        if old.by != new.by:
            yield self.change(f"by {old.by} becomes by {new.by}", "B019", "choice")
            return
        is_version_given = old.version is not None
        cases = {_case_key(number, ref): ref for number, ref in new.cases}
        for number, ref in old.cases:
            other_ref = cases.get(_case_key(number, ref))
            if other_ref is None:
                yield self.change(f"case {number}, {ref}, is removed", "B020", "choice")
                continue
            reason, certain = self.pair.comparer.find_incompatibility(
                _find_held_plans(self.pair.old_plan, ref, self.pair.old, is_version_given),
                _find_held_plans(self.pair.new_plan, other_ref, self.pair.new, is_version_given),
            )
            if reason:
                message = f"case {number} is {other_ref} instead of {ref}: {reason}"
                yield self.change(message, "B020", "choice", certain=certain)

    def compressions(self, old: Compression | None, new: Compression | None) -> Iterator[Change]:
        """Yield a breaking change if compression is added or removed (nothing more then), the codec
        is selected otherwise, a codec number is removed or read otherwise, or the size limit is
        lower. A higher limit is compatible. Added codecs yield nothing.
        """
        if old is None and new is None:
            return
        if old is None or new is None:
            what = "added" if old is None else "removed"
            yield self.change(f"compression is {what}", "B021", "compressed")
            return
        if named_shape(self.old.codec, self.names) != named_shape(self.new.codec, {}):
            message = f"the codec by {old.by} becomes by {new.by}"
            yield self.change(message, "B021", "compressed", certain=False)
        before = _codecs(self.pair.old_plan.model, self.pair.old, old)
        after = _codecs(self.pair.new_plan.model, self.pair.new, new)
        for number, codec in before.items():
            if after.get(number) != codec:
                found = after.get(number)
                name = "nothing" if found is None else found
                message = f"codec {number} is {codec}; becomes {name}"
                yield self.change(message, "B021", "compressed")
        if new.limit != old.limit:
            message = f"the limit of {count_noun(old.limit, 'byte')} becomes {new.limit}"
            yield self.change(message, "B021" if new.limit < old.limit else "", "compressed.limit")


def _find_held_plans(
    plan: Plan, ref: Reference, around: LayoutPlan, is_version_given: bool
) -> Sequence[LayoutPlan]:
    """Return the plans that a reference in ``around`` can mean: all versions that ``ref`` allows if
    ``is_version_given`` (an expression of the field gives the version), else those that go with
    ``around``.
    """
    return plan.of(ref) if is_version_given else plan.held(ref, around)


def _case_key(number: int, ref: Reference) -> tuple[int, ...]:
    """Return the numbers that lead to a case of a choice: its own, then those of the nested choices
    on the way.
    """
    return (number, *(step.number for step in ref.steps))


def _tag_words(tag: int | None) -> str:
    """Return ``tag 3``, or ``an ordinary field`` for None."""
    return "an ordinary field" if tag is None else f"tag {tag}"


def _until_words(type_: FieldType) -> str:
    """Return in words where an array ends by its end condition: ``at the first element with ..``,
    or ``at no element`` for an array without one and for other types.
    """
    until = type_.until if isinstance(type_, ArrayType) else None
    return "at no element" if until is None else f"at the first element with {until}"


def _limits(fp: FieldPlan) -> str:
    """Return the conditions on a value as in the YAML, ``valid: .. and refuse: ..``, or ``no
    condition``.
    """
    f = fp.field
    parts = [] if f.valid is None else [f"valid: {f.valid}"]
    parts += [] if f.refuse is None else [f"refuse: {f.refuse}"]
    return " and ".join(parts) or "no condition"


def _range_names(plan: LayoutPlan, part: FieldRange, names: Mapping[str, str]) -> tuple[str, str]:
    """Return the first and the last field of a range (the layout's last one if it names none), with
    names replaced by ``names`` where that has them.
    """
    last = part.last or plan.in_order[-1].name
    return names.get(part.first, part.first), names.get(last, last)


def _checksum_form(plan: LayoutPlan, fp: FieldPlan, names: Mapping[str, str]) -> object:
    """Return a comparable form of a checksum (algorithm, mask, ranges, zeroed fields) with field
    names replaced by ``names``, or None if the field is no checksum.
    """
    f = fp.field
    if f.checksum is None:
        return None
    zero = frozenset(names.get(name, name) for name in f.zero)
    return f.checksum, f.mask, tuple(_range_names(plan, part, names) for part in fp.covers), zero


def _checksum_text(plan: LayoutPlan, fp: FieldPlan) -> str:
    """Return a checksum with its algorithm, ranges and zeroed fields in words, or ``no checksum``."""
    if fp.field.checksum is None:
        return "no checksum"
    ranges = [" to ".join(dict.fromkeys(_range_names(plan, part, {}))) for part in fp.covers]
    zero = f", with zeros for {', '.join(fp.field.zero)}" if fp.field.zero else ""
    return f"{checksum_words(fp.field)} of {', then '.join(ranges)}{zero}"


def _constant(plan: LayoutPlan, fp: FieldPlan) -> int | str | bytes | None:
    """Return the only value that a field can have in its version: its constant or, for a version
    field without one, the version. None if there is no such value.
    """
    if fp.field.is_version and fp.field.const is None:
        return plan.version
    return fp.field.const


def _default_words(fp: FieldPlan) -> str:
    """Return the ``absent`` number or else the default of a field as text, or ``no default``."""
    f = fp.field
    if f.absent is not None:
        return str(f.absent)
    return "no default" if f.default is None else str(f.default)


def _default_form(plan: Plan, around: LayoutPlan, fp: FieldPlan, held: tuple[str, ...]) -> object:
    """Return the value that a field has if its bytes are missing, its default or that of its type,
    in a form that is only good for comparing. A default ``{}`` becomes a tuple of the forms of the
    layout's fields that can exist; it stays as it is if that layout is in ``held``, the names of
    the layouts around.
    """
    f = fp.field
    if f.filled and isinstance(f.type, StructType) and f.type.layout.layout not in held:
        inner = plan.expected(f.type.layout, around)
        parts = (
            _default_form(plan, inner, part, (*held, inner.name))
            for part in inner.fields
            if part.field.tag is not None or presence(part.when) != "never"
        )
        return ("filled", *parts)
    number = default_number(fp)
    if number is not None:
        return number
    if isinstance(f.type, BytesType):
        return default_data(fp)
    folded = None if fp.default is None else fold(fp.default)
    if isinstance(f.type, ScalarType):
        return getattr(folded, "value", 0)
    return (f.filled, named_shape(folded, {}))


def _allowed(model: Model, enum: str | None, only: tuple[str, ...] | None) -> dict[int, str] | None:
    """Return the names, by number, of the enum values that strict readers accept. Return None if
    they accept every number: there is no enum, or it keeps unknown numbers.
    """
    if enum is None or model.enums[enum].keep_unknown:
        return None
    values = model.enums[enum].values
    return {value.value: value.name for value in values if only is None or value.name in only}


def _enum_words(enum: str | None, only: tuple[str, ...] | None) -> str:
    """Return the allowed values of an enum in words: ``a value of e (only a, b)``, without the
    parentheses if ``only`` is None; ``any number`` without an enum.
    """
    if enum is None:
        return "any number"
    return f"a value of {enum}" + ("" if only is None else f" (only {', '.join(only)})")


def _count_words(type_: ArrayType) -> str:
    """Return in words how readers find the end of an array: fixed number, count in front, field
    that counts it, length in front, ``a last element`` (end condition), or ``the end of the
    range``.
    """
    if type_.fixed is not None:
        return count_noun(type_.fixed, "element")
    if type_.count is not None:
        return f"a count ({scalar_name(type_.count)}) in front"
    if type_.counted_by is not None:
        return f"the count {type_.counted_by}{amount_words(type_)}"
    if type_.length is not None:
        return f"a length ({scalar_name(type_.length)}) in front"
    return "the end of the range" if type_.until is None else "a last element"


def _codecs(model: Model, plan: LayoutPlan, compression: Compression) -> dict[int, str]:
    """Return, by enum number, the name of each codec that readers accept in this version, or of the
    variant that reads it. Excluded codecs are left out.
    """
    found = {}
    for value in model.enums[compression.enum].values:
        if value.name in compression.excluded:
            continue
        name = value.name
        for codec, versions, _, read in compression.variants:
            if codec == value.name and (versions is None or plan.version in versions):
                name = read
        found[value.value] = name
    return found
