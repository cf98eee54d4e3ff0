"""Try the examples of layouts on the generated codecs: parse, compare, and build again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from codecgen.diagnostics import Diagnostic, Span, did_you_mean, format_value
from codecgen.examples.codecs import ExampleCodecs
from codecgen.examples.text_trial import text_findings
from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.cases import find_held_plan
from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.parsed import arrays_of
from codecgen.schema.expression import Expression
from codecgen.schema.lookup import choice_of
from codecgen.schema.model import Example, Field, Fill, Layout
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    BytesType,
    ChoiceType,
    FieldType,
    Reference,
    ScalarType,
    StructType,
    TagsType,
)


@dataclass(frozen=True, slots=True)
class Tried:
    """A valid example: its version, its bytes, its values, and the place of each value.

    ``trace`` has (path, first byte, byte after the last, in a decompressed stream?) of every field.
    """

    example: Example
    plan: LayoutPlan
    data: bytes
    value: Any
    trace: tuple[tuple[str, int, int, bool], ...]


class Mismatch(Exception):
    """The bytes and values of an example contradict each other. ``path`` is the value at fault."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


def findings(plan: Plan, codecs: ExampleCodecs) -> Iterator[Diagnostic]:
    """Yield a diagnostic C024 for each example of a layout or text that the generated codecs do not
    read and write as given. Raise AssertionError, an internal error of codecgen, if a fast parser
    reads other values than the field-by-field parser.
    """
    for layout in plan.model.layouts.values():
        for example in layout.examples:
            result = try_example(plan, codecs, layout, example)
            if isinstance(result, Diagnostic):
                yield result
    yield from text_findings(plan, codecs)


def try_example(
    plan: Plan, codecs: ExampleCodecs, layout: Layout, example: Example
) -> Tried | Diagnostic:
    """Return the example with its version, bytes, parsed values and places. Return a diagnostic
    C024 if its bytes do not parse, its values cannot be built, or bytes and values contradict each
    other. Raise AssertionError, an internal error of codecgen, if the fast parser reads other
    values than the field-by-field parser.
    """
    try:
        return _run_example(plan, codecs, layout, example)
    except Mismatch as mismatch:
        reason, path = mismatch.reason, mismatch.path
    except CodecError as error:
        reason, path = str(error), error.where.path or ""
    message = f'example "{example.name}" of {layout.name}: {reason}'
    return Diagnostic("C024", message, place_of(example.places, path) or example.span)


def place_of(places: Mapping[str, Span], path: str) -> Span | None:
    """Return the place of the value at ``path``, or of the nearest value around it, from
    ``places``, the places of an example. Return None if it has none, not even one for ``values``.
    """
    near = [
        place for place in places if place in ("values", f"values.{path}") or _contains(place, path)
    ]
    return places[max(near, key=len)] if near else None


def _contains(place: str, path: str) -> bool:
    """Return whether the place ``values.a`` is that of the value at ``path`` or of a value around
    it, such as ``a.b`` or ``a[0]``. False for places of other keys.
    """
    inside = f"values.{path}"
    return (
        place.startswith("values.")
        and inside.startswith(place)
        and inside[len(place) :][:1] in ("", ".", "[")
    )


def _run_example(plan: Plan, codecs: ExampleCodecs, layout: Layout, example: Example) -> Tried:
    """Return the example with its version, bytes and values. Raise Mismatch if its version is
    unknown or not determined, a value differs, or other bytes are built; also if it has a
    compressed section and gives no bytes. Raise CodecError if it does not parse or build,
    AssertionError if the fast parser reads other values.
    """
    plans = plan.versions[layout.name]
    if example.version is not None:
        plans = tuple(p for p in plans if p.version == example.version)
    if not plans:
        raise Mismatch(
            f"{layout.name} has no version {example.version}: correct `version` of the example"
        )
    if len(plans) > 1 and layout.version_is is None:
        raise Mismatch("the example does not say in which version its bytes are: add `version`")
    codec = codecs.layout(plans[0]) if len(plans) == 1 else codecs.any_version(plans[0])
    data = example.data
    if data is None:
        data = codec.build(_Meant(plan).layout(plans[0], example.value))
    trace: list[tuple[str, int, int, bool]] = []
    given = given_values(plan, plans[0], example.value)
    parsed = codec.parse(data, trace=trace, given=given)
    _require_same_parse(layout, data, codec.parse(data, given=given), parsed)
    found = plans[0]
    if len(plans) > 1:
        found = next(p for p in plans if p.version == parsed[layout.version_is])
    _compare(_Meant(plan), found, example.value, parsed)
    if not any(decompressed for _, _, _, decompressed in trace):
        _require_equal(codec.build(parsed), data)
    elif example.data is None:
        raise Mismatch(
            "the layout has a compressed section, which compressors write differently on different machines: give the bytes (hex)"
        )
    return Tried(example, found, data, parsed, tuple(trace))


def _require_same_parse(layout: Layout, data: bytes, fast: Any, slow: Any) -> None:
    """Raise AssertionError, which no schema can cause, if the fast parser of a layout reads other
    values than the field-by-field parser. A parse with a trace is field by field.
    """
    if repr(fast) != repr(slow):  # a NaN is not equal to itself
        reason = (
            f"internal error of codecgen: the fast parser of {layout.name} reads {fast!r} from"
            f" {data.hex()}, the field-by-field parser {slow!r}"
        )
        raise AssertionError(reason)


def _require_equal(built: bytes, data: bytes) -> None:
    """Raise Mismatch, which names the first byte that differs, if ``built`` is not equal to
    ``data``, the bytes of the example.
    """
    if built != data:
        pairs = enumerate(zip(built, data, strict=False))
        place = next((i for i, (one, other) in pairs if one != other), min(len(built), len(data)))
        raise Mismatch(
            f"the values build to other bytes than the example gives, from byte {place} on"
        )


# ---------------------------------------------------------------- values of examples


def built(plan: Plan, layout: LayoutPlan, codec: Any, given: Mapping[str, object]) -> bytes:
    """Return the bytes that ``codec`` builds from values in the form of examples. Raise Mismatch if
    a value does not suit its field or is not read back as given (computed fields are not compared);
    CodecError if they cannot be built or parsed.
    """
    meant = _Meant(plan)
    data: bytes = codec.build(meant.layout(layout, given))
    parsed = codec.parse(data, given=given_values(plan, layout, given))
    _compare(meant, layout, given, parsed, worked_out=False)
    return data


def given_values(plan: Plan, layout: LayoutPlan, values: object) -> dict[str, object] | None:
    """Return those of ``values``, in the form of examples, that the layout is given from outside,
    by name and as codecs take them. Return None if the layout declares none or ``values`` is no
    mapping. Raise Mismatch if one does not suit its type.
    """
    if not layout.given or not isinstance(values, Mapping):
        return None
    known = {fp.name for fp in layout.given}
    known_values = {name: value for name, value in values.items() if name in known}
    return _Meant(plan).layout(layout, known_values)


def _is_computed(f: Field) -> bool:
    """Return whether the builder computes a field: a length, a count or a checksum."""
    return f.measures is not None or bool(f.counts) or f.checksum is not None


class _Meant:
    """Converts values of an example to what builders take: text to bytes, uuids to UUID objects."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def layout(
        self, plan: LayoutPlan, given: object, path: str = "", fills: tuple[Fill, ...] = ()
    ) -> dict[str, object]:
        """Return the values of a layout as its builder takes them. ``fills`` name values that
        elements take in the place of fields; they stay unchanged. Raise Mismatch if ``given`` is no
        mapping, has a name that is no field, or a value of the wrong type.
        """
        if not isinstance(given, Mapping):
            raise _no_mapping(plan, given, path)
        out: dict[str, object] = {}
        taken = [fill.given for fill in fills]
        for name, value in given.items():
            fp = plan.value(str(name))
            if fp is None and name in taken:
                out[str(name)] = value
                continue
            if fp is None:
                known = did_you_mean(str(name), [*(fp.name for fp in plan.values), *taken])
                what = f"{plan.name} has no field {name!r} here"
                here = _join_path(path, str(name))
                raise Mismatch(f"{what}; {known}" if known else what, here)
            out[str(name)] = self.convert_value(
                plan, fp, fp.field.type, value, given, _join_path(path, str(name))
            )
        return out

    def convert_choice(
        self,
        plan: LayoutPlan,
        fp: FieldPlan,
        given: object,
        fields: Mapping[Any, object],
        path: str,
    ) -> object:
        """Return the value of a choice as its builder takes it. Text becomes bytes if the choice
        accepts unknown cases; other values that are no mapping, and mappings whose case cannot be
        determined, stay unchanged. Raise Mismatch if a value in it is wrong.
        """
        choice = choice_of(fp.field)
        if isinstance(given, str) and choice is not None and choice.unknown:
            return given.encode("utf-8")
        if not isinstance(given, Mapping):
            return given
        held = find_held_plan(self.plan, plan, fp, fields, given)
        return given if held is None else self.layout(held, given, path)

    def convert_value(
        self,
        plan: LayoutPlan,
        fp: FieldPlan,
        type_: FieldType,
        given: object,
        fields: Mapping[Any, object],
        path: str,
    ) -> object:
        """Return the value of a field as its builder takes it: enum names as numbers, text as UUID
        or bytes, structs and arrays recursively. None and other types stay unchanged; the builder
        checks them. Raise Mismatch, which names ``path``, if the value does not suit the type.
        """
        if given is None:
            return None
        match type_:
            case ScalarType(_, str(enum)) if isinstance(given, str):
                return _enum_number(self.plan, enum, given, path)
            case ScalarType("uuid"):
                return _convert(uuid.UUID, given, "a uuid", path)
            case ScalarType("f32" | "f64"):
                return _convert(float, given, "a number", path)
            case BytesType(_, text):
                if isinstance(given, bytes):
                    return given
                if isinstance(given, Mapping) and not text:
                    digits = "an even number of hexadecimal digits"
                    raise Mismatch(f"{path}: text is needed, or {{hex: ..}} with {digits}", path)
                if not isinstance(given, str):
                    raise Mismatch(
                        f"{path}: text is needed, not {format_value(given)}; put it into quotes",
                        path,
                    )
                return given if text else given.encode("utf-8")
            case ChoiceType():
                return self.convert_choice(plan, fp, given, fields, path)
            case StructType(version=Expression()):
                return self.convert_choice(plan, fp, given, fields, path)
            case TagsType() if isinstance(given, list):
                return [self.convert_tagged(item, f"{path}[{i}]") for i, item in enumerate(given)]
            case StructType(ref):
                return self.layout(self.find_version(ref, plan, given), given, path)
            case ArrayType(element):
                if not isinstance(given, list):
                    raise Mismatch(f"{path}: a list is needed, not {format_value(given)}", path)
                fills = plan.layout.fills_of(fp.name, plan.version)
                return [
                    self.layout(self.find_version(element, plan, item), item, f"{path}[{i}]", fills)
                    if isinstance(element, Reference)
                    else self.convert_value(plan, fp, element, item, fields, f"{path}[{i}]")
                    for i, item in enumerate(given)
                ]
            case _:
                return given

    def convert_tagged(self, given: object, path: str) -> object:
        """Return a tagged field that the layout does not name."""
        if not isinstance(given, Mapping) or not isinstance(given.get("data"), str):
            return given
        return {**given, "data": given["data"].encode("utf-8")}

    def find_version(self, ref: Reference, around: LayoutPlan, value: object) -> LayoutPlan:
        """Return the plan of a held layout in the version that its value states in its version
        field, or else in that of the holder. If no such version exists, return the oldest that the
        reference allows. Raise IndexError if the reference allows none, which the checks exclude.
        """
        plans = self.plan.of(ref)
        by = self.plan.model.layouts[ref.layout].version_is
        if len(plans) > 1:
            wanted = (
                value.get(by, around.version)
                if by and isinstance(value, Mapping)
                else around.version
            )
            plans = tuple(p for p in plans if p.version == wanted) or plans
        return plans[0]


def _no_mapping(plan: LayoutPlan, given: object, path: str) -> Mismatch:
    """Return, without raising it, the error that ``given`` stands where the fields of a layout are
    needed. ``path`` is ``""`` for the layout of the example itself.
    """
    such = f", such as {{{plan.values[0].name}: ..}}" if plan.values else ""
    what = f"a mapping with the fields of {plan.name} is needed{such}"
    return Mismatch(f"{path or 'the top level'}: {what}, not {format_value(given)}", path)


def _convert(convert: Any, given: object, what: str, path: str) -> object:
    """Return ``convert(given)``. Raise Mismatch, which says that ``what`` is needed at ``path``, if
    that fails: for a value of another type or form, or one that is too large.
    """
    try:
        return convert(given)
    except (AttributeError, TypeError, ValueError, OverflowError):  # UUID asks any value for text
        raise Mismatch(f"{path}: {what} is needed, not {format_value(given)}", path) from None


def _enum_number(plan: Plan, enum: str, name: str, path: str) -> int:
    """Return the number of an enum value by its name or spelling. Raise Mismatch if the enum has
    none of that name.
    """
    values = plan.model.enums[enum].values
    number = next((v.value for v in values if name in (v.name, v.spelled)), None)
    if number is None:
        raise Mismatch(f"{path}: {enum} has no value {name!r}", path)
    return number


def _join_path(path: str, name: str) -> str:
    """Return the path of a field inside ``path``."""
    return f"{path}.{name}" if path else name


def _compare(
    meant: _Meant,
    plan: LayoutPlan,
    given: object,
    parsed: Any,
    path: str = "",
    worked_out: bool = True,
    filled: Mapping[str, int] | None = None,
) -> None:
    """Raise Mismatch at the first given value that differs from the parsed one, has an unknown
    name, or if ``given`` is no mapping. Parsed values that are not given are ignored, as are
    lengths, counts and checksums if ``worked_out`` is False. ``filled`` has the expected numbers of
    values that are no fields, by name.
    """
    if not isinstance(given, Mapping):
        raise _no_mapping(plan, given, path)
    for name, value in given.items():
        fp = plan.value(str(name))
        here = _join_path(path, str(name))
        if fp is None and filled is not None and name in filled:
            _require_same(meant.plan, None, value, filled[str(name)], here)
            continue
        if fp is None:
            raise Mismatch(f"{plan.name} has no field {name!r} here", path)
        if worked_out or not _is_computed(fp.field):
            _compare_value(meant, plan, fp, value, parsed, here, worked_out)


def _compare_value(
    meant: _Meant,
    plan: LayoutPlan,
    fp: FieldPlan,
    given: object,
    fields: Any,
    path: str,
    worked_out: bool,
) -> None:
    """Raise Mismatch if the given value of one field differs from the parsed one in ``fields``, the
    parsed values around it. Structs, choices, bits and elements are compared value by value; lists
    must have equal lengths.
    """
    type_ = fp.field.type
    parsed = {**arrays_of(fields), **fields}[fp.name]

    def compare_choice(given: object, parsed: Any, path: str) -> None:
        held = find_held_plan(meant.plan, plan, fp, fields, parsed)
        if isinstance(given, Mapping) and isinstance(parsed, Mapping) and held is not None:
            _compare(meant, held, given, parsed, path, worked_out)
        else:
            _require_same(
                meant.plan, None, meant.convert_choice(plan, fp, given, fields, path), parsed, path
            )

    match type_:
        case ChoiceType() | StructType(version=Expression()):
            compare_choice(given, parsed, path)
        case ArrayType(ChoiceType()) if isinstance(given, list) and len(given) == len(parsed or ()):
            for i, (one, other) in enumerate(zip(given, parsed, strict=True)):
                compare_choice(one, other, f"{path}[{i}]")
        case ArrayType(Reference() as ref) if isinstance(given, list) and isinstance(parsed, list):
            if len(given) != len(parsed):
                raise Mismatch(
                    f"{path} has {count_noun(len(parsed), 'element')}, not {len(given)}", path
                )
            for i, (one, other) in enumerate(zip(given, parsed, strict=True)):
                inner = meant.find_version(ref, plan, other)
                filled = {
                    fill.given: fields[fill.base] + other[fill.target]
                    for fill in plan.layout.fills_of(fp.name, plan.version)
                }
                _compare(meant, inner, one, other, f"{path}[{i}]", worked_out, filled)
        case StructType(ref) if parsed is not None and given is not None:
            _compare(meant, meant.find_version(ref, plan, parsed), given, parsed, path, worked_out)
        case BitsType(_, members) if isinstance(given, Mapping):
            enums = {m.name: m.enum for m in members}
            for name, value in given.items():
                if name not in enums:
                    raise Mismatch(f"{path} has no bits {name!r}", path)
                _require_same(meant.plan, enums[str(name)], value, parsed[name], f"{path}.{name}")
        case ScalarType(_, enum) if enum is not None:
            _require_same(meant.plan, enum, given, parsed, path)
        case _:
            value = meant.convert_value(plan, fp, type_, given, fields, path)
            _require_same(meant.plan, None, value, parsed, path)


def _require_same(plan: Plan, enum: str | None, given: object, parsed: Any, path: str) -> None:
    """Raise Mismatch if a value differs from the parsed one, or one is a boolean and the other is
    not. Enum values can be given by name; two NaNs are equal.
    """
    if enum is not None and isinstance(given, str):
        given = _enum_number(plan, enum, given, path)
    if given != given and parsed != parsed:
        return  # no number, both of them
    if given != parsed or isinstance(given, bool) != isinstance(parsed, bool):
        shown = parsed if enum is None else getattr(parsed, "label", parsed)
        raise Mismatch(f"{path} is {format_value(shown)}, not {format_value(given)}", path)
