"""Compute the encoded size of a value from the plan alone, without encoding it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile

from codecgen.plan import nodes
from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan
from codecgen.plan.narrowing import compare
from codecgen.plan.nodes import Value, fields_read
from codecgen.plan.size_bounds import scalar_bounds
from codecgen.plan.tag_defaults import encode_number, holds_default
from codecgen.runtime.nouns import count_noun
from codecgen.schema.lookup import integer_range
from codecgen.schema.model import Overhead, OverheadOf
from codecgen.schema.scalars import SCALARS, is_varint
from codecgen.schema.types import (
    ZERO_TERMINATED,
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    ChoiceType,
    PaddingType,
    Reference,
    ScalarType,
    StructType,
    TagsType,
)

Fields = Mapping[str, object]


class SizeError(ValueError):
    """The size is unknown: a value is missing, has the wrong kind, or lies in a compressed section."""


def varint_size(name: str, value: int) -> int:
    """Return the encoded size in bytes of a number in a variable-length type. Raise SizeError if the
    number does not fit the type.
    """
    low, high = integer_range(name) or (0, 0)
    if not low <= value <= high:
        raise SizeError(f"{value} does not fit {name}")
    return len(encode_number(name, value, little=False))


def length_size(name: str, length: int) -> int:
    """Return the encoded size of a length or a count in the type ``name``. A compact length of -1
    is null. Raise SizeError if it does not fit a variable-length type; fixed sizes are not checked.
    Raise KeyError for an unknown type.
    """
    if name == "compact":
        return varint_size("uvarint", length + 1)
    return varint_size(name, length) if is_varint(name) else SCALARS[name].width


def encoded_size(plan: Plan, layout: LayoutPlan, value: Fields) -> int:
    """Return the encoded size in bytes of ``value``, a mapping of fields as a builder takes it, in
    a layout. Values that it does not depend on, such as numbers of fixed size, are not checked; a
    missing array is empty, and ``value`` stays unchanged. Raise SizeError if a needed value is
    missing or unsuitable, no case or version matches, or a section is compressed.
    """
    return _Sizer(plan, layout, {name: _copy_value(item) for name, item in value.items()}).total()


def evaluate(plan: Plan, layout: LayoutPlan, fields: Fields, at: FieldPlan, value: Value) -> object:
    """Return the result of ``value``, an expression of the field ``at``, for the values in ``fields``.
    Fields before ``at`` that are left out have the values that a builder works out for them, or are
    None. Raise SizeError if the expression cannot be evaluated, as for an unknown enum name.
    """
    sizer = _Sizer(plan, layout, dict(fields))
    sizer.complete_fields(at, value)
    return sizer.evaluate(value)


class _Sizer:
    """Sizes the fields of one value (a mapping as builders take it) in byte order; ``fp`` is the
    plan of a field. Like a builder, it puts the values that it works out into ``this`` and into the
    mappings in it.
    """

    def __init__(self, plan: Plan, layout: LayoutPlan, this: dict[str, object]) -> None:
        self.plan = plan
        self.layout = layout
        self.this = this
        self.sizes: dict[str, int] = {}

    def total(self) -> int:
        """Return the size in bytes of the whole value, including lengths of variable size, which
        are sized last. Raise SizeError if a field cannot be sized.
        """
        for fp in self.layout.in_order:
            self.sizes[fp.name] = self.size_field(fp)
        for fp in reversed(self.layout.in_order):
            if fp.measures is not None and fp.size is None and self.is_present(fp):
                measured = sum(
                    self.sizes.get(f.name, 0) for f in self.layout.field_range(fp.measures)
                )
                self.sizes[fp.name] = self.size_scalar(fp.field.type, measured + fp.field.excess)
        return sum(self.sizes.values())

    def complete_fields(self, at: FieldPlan, value: Value) -> None:
        """Work out the values of the fields before ``at`` that ``value`` depends on. Leave what
        cannot be worked out as it is.
        """
        needed: set[str] = set()
        pending = [value]
        while pending:
            for name in {field.names[0] for field in fields_read(pending.pop())} - needed:
                needed.add(name)
                fp = self.layout.field(name)
                pending += [] if fp is None else _values_of(fp)
                needed |= set() if fp is None else set(fp.field.counts)
        for name in needed & self.this.keys():
            self.this[name] = _copy_value(self.this[name])
        for fp in takewhile(lambda fp: fp.name != at.name, self.layout.fields):
            if fp.name in needed:
                with suppress(SizeError):
                    self.size_field(fp)

    def is_present(self, fp: FieldPlan) -> bool:
        """Return whether the condition of a field holds, or True if it has none. Raise SizeError if
        it cannot be evaluated.
        """
        return fp.when is None or bool(self.evaluate(fp.when))

    def size_field(self, fp: FieldPlan) -> int:
        """Return the size in bytes of a field, and record its value for later expressions: None if
        it is absent, the default if it is left out (not if it is given as None). Absent fields and
        lengths of variable size, which are sized later, count 0. Raise SizeError if the value is
        missing or unsuitable, where the size depends on it.
        """
        f = fp.field
        if not self.is_present(fp):
            self.this[f.name] = None
            return 0
        if f.measures is not None or f.checksum is not None:
            return (
                fp.size or 0
            )  # lengths of varying size wait for the field range that they measure
        if f.counts:
            given = [name for name in f.counts if self.this.get(name) is not None]
            if given or self.this.get(f.name) is None:
                self.this[f.name] = self.count_elements((given or f.counts)[0])
        elif f.is_version:
            self.this[f.name] = self.layout.version
        elif f.const is not None:
            self.this[f.name] = f.const
        elif f.name not in self.this and fp.default is not None:
            default = self.evaluate(fp.default)
            self.this[f.name] = f.absent if default is None else default
        value = self.this.get(f.name)
        match f.type:
            case BitsType(base, members):
                self.this[f.name] = self.complete_bits(members, value, fp)
                if fp.size is not None:
                    return fp.size
                return varint_size(base, self.word_of(members, value, fp))
            case ScalarType():
                return fp.size if fp.size is not None else self.size_scalar(f.type, value)
            case BytesType() as type_:
                return self.size_bytes(type_, value)
            case ArrayType() as array:
                return self.size_array(array, value, fp)
            case PaddingType(multiple):
                return -sum(self.sizes.values()) % multiple
            case StructType(ref, present, null):
                if present is None or null is None:
                    return self.size_held(ref, value, fp.held_version)
                if value is None:
                    return length_size(present, null)
                return length_size(present, 1) + self.size_held(ref, value, fp.held_version)
            case ChoiceType() as choice:
                return self.size_chosen(choice, value, fp)
            case TagsType():
                return self.size_tags(value)

    def count_elements(self, name: str) -> int:
        """Return the value of the field that counts the array ``name``: its number of elements,
        plus the number by which the field is larger. An array that is None or not given has 0
        elements. It counts as null, and gives the number for null, if it can be null and was given
        as None or has a default. Raise SizeError if the value is neither None nor a list or tuple.
        """
        array = self.layout.field(name)
        type_ = None if array is None else array.field.type
        null = type_.null if isinstance(type_, ArrayType) else None
        value = self.this.get(name)
        given = name in self.this or (array is not None and array.default is not None)
        plus = type_.plus if isinstance(type_, ArrayType) else 0
        return (
            null if value is None and given and null is not None else len(_as_items(value)) + plus
        )

    def size_scalar(self, type_: object, value: object) -> int:
        """Return the encoded size in bytes of a number of variable length. Enum values can be given
        by name. Raise SizeError if the value is no integer (booleans count as 0 and 1 only with an
        enum), an unknown name, or does not fit.
        """
        assert isinstance(type_, ScalarType)
        if type_.enum is not None:
            value = self.enum_number(type_.enum, value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise SizeError(f"{self.layout.name}: a number is needed, not {value!r}")
        return varint_size(type_.name, value)

    def complete_bits(
        self, members: Iterable[BitMember], value: object, fp: FieldPlan
    ) -> dict[str, object]:
        """Return the values of all bit members by name: given ones, or for members that are missing
        or None their default, or 0 without one; enum names become numbers. Other names are ignored,
        and a value that is no mapping counts as empty. Raise SizeError for an unknown enum name, or
        a default that cannot be evaluated.
        """
        given = value if isinstance(value, Mapping) else {}
        out: dict[str, object] = {}
        for m in members:
            part = given.get(m.name)
            if part is None:
                default = fp.bit_defaults.get(m.name)
                part = 0 if default is None else self.evaluate(default)
            out[m.name] = part if m.enum is None else self.enum_number(m.enum, part)
        return out

    def word_of(self, members: Iterable[BitMember], value: object, fp: FieldPlan) -> int:
        """Return the number that the bit members in ``value`` make, with defaults as
        ``complete_bits`` adds them; nothing checks that they fit their bits. Raise SizeError where
        it does, and for a member that is no number.
        """
        word = 0
        for m in members:
            part = self.complete_bits([m], value, fp)[m.name]
            if not isinstance(part, int):
                raise SizeError(f"{self.layout.name}: a number is needed, not {part!r}")
            word |= part << m.low
        return word

    def size_bytes(self, type_: BytesType, value: object) -> int:
        """Return the encoded size in bytes of bytes or text (as UTF-8) with its length prefix or
        its zero byte. A fixed length is returned without a look at the value. Otherwise raise
        SizeError for a null that is not allowed, and for values that are no bytes or text.
        """
        if isinstance(type_.length, int):
            return type_.length
        if value is None:
            if type_.null is None or type_.prefix is None:
                raise SizeError(f"{self.layout.name}: null is not allowed")
            return length_size(type_.prefix, -1 if type_.prefix == "compact" else type_.null)
        if isinstance(value, str):
            value = value.encode("utf-8")
        if not isinstance(value, bytes | bytearray | memoryview):
            raise SizeError(f"{self.layout.name}: bytes are needed, not {value!r}")
        if type_.prefix is not None:
            return length_size(type_.prefix, len(value)) + len(value)
        return len(value) + (type_.length == ZERO_TERMINATED)

    def size_array(self, array: ArrayType, value: object, fp: FieldPlan) -> int:
        """Return the encoded size in bytes of an array with its count and length prefixes; of the
        prefix alone (0 without one) if it is given as null and may be. A missing array, and any
        other None, counts as empty. Raise SizeError if it is no list, has not the fixed number of
        elements, is compressed, or an element cannot be sized.
        """
        prefix = array.count or array.length
        if value is None and fp.name in self.this and array.null is not None:
            return (
                0
                if prefix is None
                else length_size(prefix, -1 if prefix == "compact" else array.null)
            )
        items = _as_items(value)
        element = array.element
        if isinstance(element, Reference):
            size = sum(self.size_held(element, item) for item in items)
        elif isinstance(element, BytesType):
            size = sum(self.size_bytes(element, item) for item in items)
        elif isinstance(element, ChoiceType):
            size = sum(self.size_chosen(element, item, fp) for item in items)
        elif is_varint(element.name):
            size = sum(self.size_scalar(element, item) for item in items)
        else:
            size = scalar_bounds(element.name)[0] * len(items)
        if array.fixed is not None and len(items) != array.fixed:
            wanted = (
                f"{count_noun(array.fixed, 'element is', 'elements are')} needed, not {len(items)}"
            )
            raise SizeError(f"{self.layout.name}: {wanted}")
        if fp.codec is not None and (items or not array.counted_by):
            self.require_uncompressed(fp.codec)
        if array.length is not None:
            size += length_size(array.length, size)
        if array.count is not None:
            size += length_size(array.count, len(items))
        return size

    def require_uncompressed(self, codec: Value) -> None:
        """Raise SizeError unless the codec of a section is the enum value ``none``: the size of
        compressed bytes depends on the compressor. Raise it too if the codec is unknown.
        """
        enum = codec.type.enum
        number = self.evaluate(codec)
        names = {v.value: v.name for v in self.plan.model.enums[enum].values} if enum else {}
        if names.get(number if isinstance(number, int) else -1) != "none":
            raise SizeError(f"{self.layout.name}: the length of a compressed section is not known")

    def size_tags(self, unknown: object) -> int:
        """Return the size in bytes of the section of tagged fields: the ``unknown`` ones and the
        given ones that do not hold their default. Unknown items without an integer tag and bytes
        are skipped. Raise SizeError if one cannot be sized.
        """
        found = [
            (item.get("tag"), item.get("data"))
            for item in _as_items(unknown)
            if isinstance(item, Mapping)
        ]
        sizes = [
            (tag, len(data))
            for tag, data in found
            if isinstance(tag, int) and isinstance(data, bytes)
        ]
        for fp in self.layout.tagged:
            if fp.name in self.this:
                known = self.size_tagged(fp)
                if known is not None:
                    sizes.append((fp.field.tag or 0, known))
        parts = [varint_size("uvarint", tag) + varint_size("uvarint", n) + n for tag, n in sizes]
        return varint_size("uvarint", len(sizes)) + sum(parts)

    def size_tagged(self, fp: FieldPlan) -> int | None:
        """Return the size in bytes of the data of a tagged field that is given, without tag and
        size; None if the field holds its default, so that it is omitted. Raise SizeError if it
        cannot be computed.
        """
        type_, value = fp.field.type, self.this[fp.name]
        if isinstance(type_, BitsType):
            value = self.word_of(type_.members, value, fp)
        elif isinstance(type_, ScalarType) and type_.enum is not None:
            value = self.enum_number(type_.enum, value)
        if self.is_filled(fp, value) if fp.field.filled else holds_default(fp, value):
            return None
        if isinstance(type_, ScalarType) and not is_varint(type_.name):
            return scalar_bounds(type_.name)[0]
        return self.size_field(fp)

    def is_filled(self, fp: FieldPlan, value: object) -> bool:
        """Return whether all given fields of a tagged layout hold their defaults. False if the
        value is no mapping. Raise SizeError if its version is ambiguous.
        """
        if not isinstance(value, Mapping) or not isinstance(fp.field.type, StructType):
            return False
        fields = self.find_plan(fp.field.type.layout, value).fields
        return all(holds_default(f, value[f.name]) for f in fields if f.name in value)

    def size_held(self, ref: Reference, value: object, version: Value | None = None) -> int:
        """Return the encoded size in bytes of a held layout, in the version that ``version``
        evaluates to. Without one, or if no version matches, use the version of the holder or of the
        version field in ``value``. Raise SizeError if the value is no mapping or cannot be sized.
        """
        if not isinstance(value, dict):
            raise SizeError(f"{ref.layout}: a mapping is needed, not {value!r}")
        if version is not None:
            number = self.evaluate(version)
            for found in self.plan.of(ref):
                if found.version in (number, None):
                    return _Sizer(self.plan, found, value).total()
        return _Sizer(self.plan, self.find_plan(ref, value), value).total()

    def size_chosen(self, choice: ChoiceType, value: object, fp: FieldPlan) -> int:
        """Return the size in bytes, with the length prefix, of a case of a choice, or of given
        bytes, which no check compares with the cases. A null that the choice allows has the size of
        its prefix. Raise SizeError if no case matches or it cannot be sized.
        """
        if value is None and choice.length is not None and choice.null is not None:
            return length_size(choice.length, choice.null)
        if isinstance(value, bytes | bytearray | memoryview):
            size = len(value)
        else:
            size = self.size_held(self.find_case(choice, value, fp), value, fp.held_version)
        return size if choice.length is None else size + length_size(choice.length, size)

    def find_case(self, choice: ChoiceType, value: object, fp: FieldPlan) -> Reference:
        """Return the case of a choice that the discriminator selects: the field's ``given``, or the
        field ``by`` in ``value``. If choices lie inside the choice, their fields in ``value``
        select too. All must be numbers. Raise SizeError if none matches, also for the name of an
        enum value.
        """
        number = None if fp.given is None else self.evaluate(fp.given)
        given = value if isinstance(value, Mapping) else {}
        if choice.by is not None:
            number = given.get(choice.by)
        found = next((r for key, r in choice.cases if key == number and r.matches(given)), None)
        if found is None:
            raise SizeError(
                f"{choice.choice}: the value lacks the field or the fields that select a case"
            )
        return found

    def find_plan(self, ref: Reference, value: Fields) -> LayoutPlan:
        """Return the plan of a held layout in the version of the holder, or in that of its version
        field in ``value``. Raise SizeError if not exactly one version matches.
        """
        plans = self.plan.held(ref, self.layout)
        by = self.plan.model.layouts[ref.layout].version_is
        if len(plans) > 1 and by is not None:
            plans = tuple(p for p in plans if p.version == value.get(by))
        if len(plans) != 1:
            raise SizeError(f"{ref.layout}: the value lacks the field that holds its version")
        return plans[0]

    def enum_number(self, enum: str, value: object) -> int:
        """Return the number of an enum value: an integer unchanged, known or not, and a name or
        spelling in any letter case as its number. Raise SizeError for an unknown name, and for None.
        """
        if value is None:
            raise SizeError(f"no value of {enum} is given")
        if isinstance(value, int):
            return int(value)
        word = str(value).lower()
        for v in self.plan.model.enums[enum].values:
            if word in (v.name, (v.spelled or v.name).lower()):
                return v.value
        raise SizeError(f"{value!r} is not a value of {enum}")

    # ------------------------------------------------------------ expressions

    def evaluate(self, value: Value) -> object:
        """Return the result of a resolved value for the fields sized so far; missing fields, sums
        with null, and the largest or smallest of values that are not all numbers are None. Raise SizeError for values that builders do not know, such as
        columns or derived values, and for unknown enum names.
        """
        match value:
            case nodes.Literal(number) | nodes.Word(value=number):
                return number
            case nodes.Data(data):
                return data
            case nodes.NullValue():
                return None
            case nodes.VersionValue():
                return self.layout.version
            case nodes.FieldValue() | nodes.BitValue():
                return self.as_enum_number(value, self.look_up(self.this, value.names))
            case nodes.EndValue(end, array, inner):
                items = _as_items(self.look_up(self.this, array.names))
                names = () if isinstance(inner, nodes.ElementValue) else inner.names
                if end in ("max", "min"):
                    found = [
                        self.as_enum_number(inner, self.look_up(item, names)) for item in items
                    ]
                    numbers = [number for number in found if isinstance(number, int)]
                    if not numbers or len(numbers) < len(found):
                        return None
                    return max(numbers) if end == "max" else min(numbers)
                item = (items[0] if end == "first" else items[-1]) if items else None
                return self.as_enum_number(inner, self.look_up(item, names))
            case nodes.Negation(operand):
                return not self.evaluate(operand)
            case nodes.Conditional(condition, then, otherwise):
                return self.evaluate(then if self.evaluate(condition) else otherwise)
            case nodes.Logical("and", left, right):
                return self.evaluate(left) and self.evaluate(right)
            case nodes.Logical(_, left, right):
                return self.evaluate(left) or self.evaluate(right)
            case nodes.Comparison(operator, left, right):
                return self.compare_values(operator, self.evaluate(left), self.evaluate(right))
            case nodes.Sum(operator, left, right):
                a, b = self.evaluate(left), self.evaluate(right)
                if not isinstance(a, int) or not isinstance(b, int):
                    return None
                return a + b if operator == "+" else a - b
        raise SizeError(
            f"{self.layout.name}: an expression uses a value that is not known when the bytes are built"
        )

    def compare_values(self, operator: str, a: object, b: object) -> bool:
        """Return the result of a comparison. A comparison of order with anything but integers is False."""
        if operator in ("==", "!="):
            return (a == b) is (operator == "==")
        return isinstance(a, int) and isinstance(b, int) and compare(operator, a, b)

    def as_enum_number(self, value: Value, found: object) -> object:
        """Return ``found`` as its enum number if the value has an enum. Return it unchanged if the
        value has none, or ``found`` is None. Raise SizeError for an unknown name.
        """
        if value.type.enum is None or found is None:
            return found
        return self.enum_number(value.type.enum, found)

    def look_up(self, value: object, names: tuple[str, ...]) -> object:
        """Return the value at a path of field names, or None if a step is not a mapping or lacks the name."""
        for name in names:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value


def _copy_value(value: object) -> object:
    """Return a deep copy of the mappings, lists and tuples of a value, as dicts and lists. Other
    values are the same in the copy.
    """
    if isinstance(value, Mapping):
        return {name: _copy_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copy_value(item) for item in value]
    return value


def _values_of(fp: FieldPlan) -> list[Value]:
    """Return the expressions on which the value of a field, and what it holds, depends."""
    found = (fp.when, fp.default, fp.given, fp.held_version, *fp.bit_defaults.values())
    return [value for value in found if value is not None]


def _as_items(value: object) -> list[object] | tuple[object, ...]:
    """Return ``value`` if it is a list or tuple, or ``()`` for None. Raise SizeError for anything
    else.
    """
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise SizeError(f"a list is needed, not {value!r}")
    return value


# ---------------------------------------------------------------- overhead tables


@dataclass(frozen=True, slots=True)
class OverheadRow:
    """One line of an overhead table: a number of messages, and the bytes that each column's layout adds."""

    messages: int
    bytes: tuple[int, ...]


def overhead_rows(plan: Plan, overhead: Overhead) -> tuple[OverheadRow, ...]:
    """Return a row for each batch size of an overhead table, in its order, with the bytes that each
    column's layout adds: the encoded size minus the size of the contents. Raise SizeError if a size
    cannot be computed.
    """
    return tuple(
        OverheadRow(n, tuple(_overhead_bytes(plan, column, n) for column in overhead.columns))
        for n in overhead.batch_sizes
    )


def computable_overhead(plan: Plan, overhead: Overhead) -> Overhead:
    """Return an overhead table without the columns whose sizes cannot be computed."""
    columns = []
    for column in overhead.columns:
        with suppress(SizeError):
            overhead_rows(plan, replace(overhead, columns=(column,)))
            columns.append(column)
    return replace(overhead, columns=tuple(columns))


def _overhead_bytes(plan: Plan, column: OverheadOf, messages: int) -> int:
    """Return the bytes that a column's layout, in the newest version that its reference allows,
    adds to ``messages`` messages of zero bytes: one layout around all of them if the column has an
    array, else one per message. Raise SizeError if the version lacks a field that the column names,
    or a size cannot be computed.
    """
    layout = plan.of(column.layout)[-1]
    _require_fields(plan, column, layout)
    items = [
        {name: bytes(size) for name, size in column.sizes.items()}
        | ({column.number: i} if column.number is not None else {})
        for i in range(messages)
    ]
    if column.array is not None:
        size = encoded_size(plan, layout, {column.array: items})
    else:
        size = sum(encoded_size(plan, layout, item) for item in items)
    return size - messages * sum(column.sizes.values())


def _require_fields(plan: Plan, column: OverheadOf, layout: LayoutPlan) -> None:
    """Raise SizeError if ``layout`` lacks the array that a column of an overhead table names, or if
    no version of the messages has one of the fields that it names.
    """
    messages: tuple[LayoutPlan, ...] = (layout,)
    if column.array is not None:
        array = layout.field(column.array)
        if array is None:
            raise SizeError(f"{layout.name}: this version has no field {column.array}")
        messages = plan.held_by(array.field.type, layout)
    names = [*column.sizes, *([] if column.number is None else [column.number])]
    for name in names:
        if all(message.field(name) is None for message in messages):
            held = messages[0].name if messages else layout.name
            raise SizeError(f"{held}: this version has no field {name}")
