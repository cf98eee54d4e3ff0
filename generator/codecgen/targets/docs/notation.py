"""Layouts in the notation of message-format pages: a line for each part of the bytes, in their order."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.type_text import (
    amount_words,
    constant_words,
    element_words,
    format_byte_count,
    scalar_name,
)
from codecgen.schema.expression import Expression, source
from codecgen.schema.model import Enum, EnumValue, Field
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
    choosing,
)
from codecgen.targets.docs.expression_phrases import condition
from codecgen.targets.docs.text import printable


def notation(plan: Plan, layout: LayoutPlan) -> str:
    """Return a layout version as text, a line for each length, count, field and bit member, with
    names in the manifest's spelling, and lines for the values of enums. Tagged fields come last,
    indented. Control characters become replacement characters.
    """
    lines: list[str] = []
    for fp in layout.in_order:
        lines += _field(plan, fp.field, layout.version)
    for fp in layout.tagged:
        lines += [f"    {line}" for line in _field(plan, fp.field, layout.version)]
    return printable_lines(lines)


def printable_lines(lines: list[str]) -> str:
    """Return lines joined, without control characters."""
    return "\n".join(printable(line) for line in lines)


def type_name(plan: Plan, ref: Reference) -> str:
    """Return the name of a layout in the manifest's spelling, ``RecordBatch`` for camel case,
    otherwise as declared. Append ``(version N)`` if the reference names a version.
    """
    name = plan.spelling(ref.layout, None)
    if plan.manifest.spelling == "camel":
        name = name[:1].upper() + name[1:]
    return name if ref.version is None else f"{name} (version {ref.version})"


def choice_name(plan: Plan, choice: ChoiceType) -> str:
    """Return the names of the layouts of a choice, joined by ``|``: ``TopicRecord | BrokerRecord``,
    with ``bytes`` at the end if unknown cases are kept.
    """
    names = [type_name(plan, ref) for ref in choice.layouts]
    return " | ".join([*names, *(["bytes"] if choice.unknown else [])])


def _field(plan: Plan, f: Field, version: int | None) -> Iterator[str]:
    """Yield the lines of a field: its length, count or presence number, if it has one, then the
    field with its type and notes (constant, tag, byte order, condition); ``version`` is the
    constant of a version field. Lines for the values of an enum and the members of bits follow,
    indented.
    """
    name = plan.spelling(f.name, f.spelled)
    notes = []
    if f.is_version:
        notes.append(f"always {version}")
    elif f.const is not None:
        notes.append(f"always {constant_words(f.const)}")
    if f.tag is not None:
        notes.append(f"tag {f.tag}")
    if "endian" in f.places:
        notes.append(f"{f.endian} endian")
    if f.when is not None:
        notes.append(f"only when {condition_text(f.when)}")
    deciding = choosing(f.type)[0]
    gives = [(name, value) for name, value in f.gives if value is not deciding]
    if gives:
        given = ", ".join(f"{name}: {source(value.node)}" for name, value in gives)
        notes.append(f"given {given}")
    match f.type:
        case ScalarType(scalar, enum):
            yield _line(name, scalar_name(scalar), notes)
            if enum is not None:
                yield from _values(plan, enum, f.type.only, 1)
        case BitsType(base, members):
            yield _line(name, scalar_name(base), notes)
            for m in sorted(members, key=lambda m: m.low):
                yield from _bit_member_lines(plan, m)
        case BytesType(length, text, null):
            kind = "string" if text else "bytes"
            if f.type.padded:
                notes.append("filled up with zero bytes")
            if f.type.sized_by is not None:
                notes.append(f"{f.type.sized_by}{amount_words(f.type)} of them")
            if length == ZERO_TERMINATED:
                notes.append("a zero byte ends it")
            if isinstance(length, int):
                yield _line(
                    name,
                    f"{format_byte_count(length)} of text" if text else format_byte_count(length),
                    notes,
                )
                return
            if f.type.prefix is not None:
                null_note = [] if null is None else [f"{null} is null"]
                yield _line(
                    f"{name}{_suffix(plan, 'length')}",
                    scalar_name(f.type.prefix),
                    null_note + notes,
                )
            yield _line(name, kind, notes)
        case ArrayType() as array:
            null_note = [] if array.null is None else [f"{array.null} is null"]
            for what, prefix in (("count", array.count), ("length", array.length)):
                if prefix is not None:
                    own = f"{name}{_suffix(plan, what)}"
                    yield _line(own, scalar_name(prefix), null_note + notes)
            element = array.element
            if isinstance(element, Reference):
                inner = type_name(plan, element)
            elif isinstance(element, ChoiceType):
                inner = choice_name(plan, element)
            else:
                inner = element_words(element)
            if array.until is not None:
                notes.append(f"up to one for which {condition_text(array.until)}")
            if array.fixed is not None:
                notes.append(f"{array.fixed} of them")
            if array.compression is not None:
                notes.append(f"compressed by {source(array.compression.by.node)}")
            yield _line(name, f"[{inner}]", notes)
        case PaddingType(multiple):
            yield _line(name, f"zero bytes to a multiple of {multiple}", notes)
        case TagsType():
            own = plan.spelling("tagged_fields", None)
            yield _line(f"{own}{_suffix(plan, 'count')}", scalar_name("uvarint"), notes)
            yield _line(own, "[tag: unsigned varint, size: unsigned varint, bytes]", notes)
        case StructType(ref, present, null):
            if present is not None:
                mark = [f"1, or {null}, which is null"]
                yield _line(f"{name}{_suffix(plan, 'present')}", scalar_name(present), mark + notes)
            yield _line(name, type_name(plan, ref), notes)
        case ChoiceType() as choice:
            if choice.length is not None:
                mark = [] if choice.null is None else [f"{choice.null} is null"]
                own = f"{name}{_suffix(plan, 'length')}"
                yield _line(own, scalar_name(choice.length), mark + notes)
            if choice.given is not None:
                notes.append(f"by {source(choice.given.node)}")
            yield _line(name, choice_name(plan, choice), notes)


def _line(name: str, type_: str, notes: list[str], depth: int = 0) -> str:
    """Return ``name: type (notes)``, indented by ``depth``."""
    tail = f" ({'; '.join(notes)})" if notes else ""
    return f"{'    ' * depth}{name}: {type_}{tail}"


def _suffix(plan: Plan, word: str) -> str:
    """Return a word as the end of a name, in the spelling of the manifest."""
    return word.capitalize() if plan.manifest.spelling == "camel" else f"_{word}"


def condition_text(expression: Expression) -> str:
    """Return a condition in words, as plain text."""
    return condition(expression.node).plain


def _bit_member_lines(plan: Plan, m: BitMember) -> Iterator[str]:
    """Yield the line of a bit member (``bit 0~2: name``), and below it a line for each allowed value of its enum."""
    bits = f"bit {m.low}" if m.low == m.high else f"bit {m.low}~{m.high}"
    yield f"    {bits}: {plan.spelling(m.name, m.spelled)}"
    if m.enum is not None:
        yield from _values(plan, m.enum, m.only, 2)


def _values(plan: Plan, enum: str, only: tuple[str, ...] | None, depth: int) -> Iterator[str]:
    """Yield a line for each allowed value of an enum."""
    for v in allowed_values(plan.model.enums[enum], only):
        yield f"{'    ' * depth}{v.value}: {v.spelled or v.name}"


def allowed_values(enum: Enum, only: tuple[str, ...] | None) -> list[EnumValue]:
    """Return the values of an enum whose names are in ``only``; all of them if that is None."""
    return [v for v in enum.values if only is None or v.name in only]
