"""Check examples: names exist, values fit, and bytes at fixed positions match the values.

What can be seen without the generated codecs is said here; the pass after this one parses and builds them as a whole.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from codecgen.diagnostics import Diagnostic, Span, format_value
from codecgen.plan import FieldPlan, LayoutPlan, Plan, make_plan
from codecgen.plan.cases import find_held_plan
from codecgen.runtime.nouns import count_noun
from codecgen.schema.expression import Expression
from codecgen.schema.lookup import choice_of, enum_values, field_spans, integer_range, is_signed
from codecgen.schema.model import Example, Fill, Layout, Model
from codecgen.schema.scalars import SCALARS, is_float, is_integer
from codecgen.schema.types import (
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
from codecgen.spans import hint

_64_BITS = (-(1 << 63), (1 << 64) - 1)


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each example of a layout that has the name of an earlier one, and for
    each mistake in its version, field names, value types or ranges. If an example has no such
    mistake, also yield one for each value that differs from the bytes at a fixed offset. Examples
    of texts are not checked here. Raise ValueError if an expression is invalid, which passes before
    this one report.
    """
    plan = make_plan(model)
    for layout in model.layouts.values():
        names: dict[str, Span] = {}
        for example in layout.examples:
            if example.name in names:
                help = f"the other one is at {names[example.name]}"
                message = f'two examples are called "{example.name}"'
                yield Diagnostic("C008", message, example.span, help=help)
            names.setdefault(example.name, example.span)
            yield from _Example(example, layout, plan).findings()


class _Example:
    """Checks one example of a layout. Methods that report a mistake append a diagnostic to
    ``found``.
    """

    def __init__(self, example: Example, layout: Layout, plan: Plan) -> None:
        self.example = example
        self.layout = layout
        self.plan = plan
        self.where = example.places.get("values", example.span)
        self.found: list[Diagnostic] = []

    def report(self, code: str, message: str, path: str = "", help: str = "") -> None:
        """Append a diagnostic to ``found``. It points to the value at ``path`` (``records[0].key``)
        if the example records its place, else to the values as a whole.
        """
        where = self.example.places.get(f"values.{path}", self.where)
        self.found.append(Diagnostic(code, message, where, help=help))

    def findings(self) -> list[Diagnostic]:
        """Return the diagnostics about the version, the values and, if no other mistake was found
        and the example has bytes, the bytes at fixed offsets. The check ends with one diagnostic if
        the layout has several versions and its version field gives none of them, or if the values
        are no mapping.
        """
        plan = self.version()
        if plan is None:
            return self.found
        if not isinstance(self.example.value, Mapping):
            message = "the values of an example are a mapping of fields"
            self.report("C006", message, help="write them as {field: value}")
            return self.found
        self.fields(self.example.value, [plan], "")
        if self.example.data is not None and not self.found:
            self.compare_all(self.example.data, self.example.value, plan)
        return self.found

    def version(self) -> LayoutPlan | None:
        """Return the plan of the version of the example: the stated one, the value of the version
        field, or the number in its bytes. If the layout has several versions and its version field
        gives none of them, report that and return None. Otherwise return the first plan if none
        matches.
        """
        plans = self.plan.versions[self.layout.name]
        wanted = self.example.version
        name = self.layout.version_is
        if wanted is None and name is not None and len(plans) > 1:
            if isinstance(self.example.value, Mapping):
                wanted = self.example.value.get(name)
            first = plans[0].field(name)
            if wanted is None and self.example.data is not None and first is not None:
                wanted = self.number(first, self.example.data)
            if not any(p.version == wanted for p in plans):
                message = "the example does not say which version it is in"
                self.report("C020", message, help="write `version:`")
                return None
        return next((p for p in plans if p.version == wanted), plans[0])

    # ------------------------------------------------------------ names and values

    def fields(
        self,
        values: Mapping[object, object],
        plans: list[LayoutPlan],
        path: str,
        fills: tuple[Fill, ...] = (),
    ) -> None:
        """Report each name in ``values`` that neither the layout in any of ``plans`` nor ``fills``
        has. Check the values of the others; those of ``fills`` must be integers of 64 bits. Fields
        missing from ``values`` are not reported. If ``values`` has the number of a version in
        ``plans`` as the version field, only that version counts.

        Args:
            values: Values by the names of fields, or by the names that ``fills`` has.
            plans: Versions of the layout that the values may be of. A field has to be in one of them.
            path: Where the values lie in the example; the start of the paths in findings.
            fills: What builders take in the place of fields.
        """
        by = plans[0].layout.version_is
        plans = [p for p in plans if by in values and values[by] == p.version] or plans
        for key, value in values.items():
            there = [fp for plan in plans for fp in plan.values if fp.name == key]
            if not there and any(fill.given == key for fill in fills):
                self.check_integer(value, _64_BITS, "64 bits", f"{path}{key}")
            elif not there:
                layout = plans[0].layout
                spans = field_spans(layout)
                spans |= {fill.given: fill.span for fill in fills}
                at = "" if plans[0].version is None else f" in version {plans[0].version}"
                message = f'"{layout.name}" has no field "{key}"{at}'
                help = hint(str(key), spans) if key not in spans else ""
                self.report("C014", message, f"{path}{key}", help)
            else:
                fits = (fp for fp in there if value is not None or fp.field.nullable)
                self.check_value(value, next(fits, there[0]), plans[0], values, f"{path}{key}")

    def check_value(
        self,
        value: object,
        fp: FieldPlan,
        holder: LayoutPlan,
        values: Mapping[Any, object],
        path: str,
    ) -> None:
        """Report a value that does not suit the type of the field. A null is not reported if the
        field has a ``when``, is padding, or is bytes, text, an array, an optional struct or a
        choice that can be null. All other values of padding are reported. Nothing is reported for a
        float type. Elements of lists, nested layouts and choices are checked too.
        """
        f = fp.field
        if value is None and f.when is not None:
            return
        match f.type:
            case ScalarType():
                self.check_scalar(value, f.type, path)
            case BitsType(_, members):
                self.bits(value, members, path)
            case BytesType():
                self.check_data(value, f.type, path)
            case PaddingType():
                if value is not None:
                    self.report("C017", f"{path} is padding: it has no value", path)
            case StructType(_, str()) | ArrayType(null=int()) if value is None:
                return
            case ChoiceType(length=str(), null=int()) if value is None:
                return
            case ChoiceType() | StructType(version=Expression()):
                self.check_choice(value, fp, holder, values, path)
            case TagsType():
                self.check_tags(value, path)
            case StructType(ref):
                self.check_layout(value, ref, holder, path)
            case ArrayType(element):
                if not isinstance(value, list):
                    self.report_wrong(value, "a list", path)
                    return
                fills = holder.layout.fills_of(f.name, holder.version)
                for i, item in enumerate(value):
                    if isinstance(element, Reference):
                        self.check_layout(item, element, holder, f"{path}[{i}]", fills)
                    elif isinstance(element, BytesType):
                        self.check_data(item, element, f"{path}[{i}]")
                    elif isinstance(element, ChoiceType):
                        if item is not None or element.null is None:
                            self.check_choice(item, fp, holder, values, f"{path}[{i}]")
                    else:
                        self.check_scalar(item, element, f"{path}[{i}]")

    def check_tags(self, value: object, path: str) -> None:
        """Report a value of the unknown tagged fields unless it is a list of mappings with exactly
        the keys ``tag`` (integer from 0 to 2^31 - 1) and ``data`` (bytes or text).
        """
        if not isinstance(value, list):
            self.report_wrong(value, "a list", path)
            return
        for i, item in enumerate(value):
            if not isinstance(item, Mapping) or set(item) != {"tag", "data"}:
                self.report_wrong(item, "a mapping of tag and data", f"{path}[{i}]")
                continue
            self.check_integer(item["tag"], (0, (1 << 31) - 1), "a tag", f"{path}[{i}].tag")
            self.check_data(item["data"], BytesType("uvarint"), f"{path}[{i}].data")

    def report_wrong(self, value: object, wanted: str, path: str) -> None:
        """Append a diagnostic that the value at ``path`` is not what ``wanted`` says, such as ``a
        list``; the value is cut to 40 characters.
        """
        shown = format_value(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        self.report("C017", f"{path} needs {wanted}, not {shown}", path)

    def check_choice(
        self,
        value: object,
        fp: FieldPlan,
        holder: LayoutPlan,
        values: Mapping[Any, object],
        path: str,
    ) -> None:
        """Report a value of a choice, or of a struct with a ``version`` expression, that is not a
        mapping, and check its fields against the layout that it selects. Bytes and text pass if the
        choice accepts unknown cases. Fields are not checked if the case or version cannot be
        determined.
        """
        choice = choice_of(fp.field)
        if choice is not None and choice.unknown and isinstance(value, bytes | str):
            return
        if not isinstance(value, Mapping):
            self.report_wrong(value, "a mapping of fields", path)
            return
        held = find_held_plan(self.plan, holder, fp, values, value)
        if held is not None:  # without one the codec says what is wrong when it tries the example
            self.fields(value, [held], f"{path}.")

    def check_layout(
        self,
        value: object,
        ref: Reference,
        holder: LayoutPlan,
        path: str,
        fills: tuple[Fill, ...] = (),
    ) -> None:
        """Report a value that is not a mapping, else check its fields. The layout version is that
        of ``holder`` if the layout has it and no version field; otherwise any version that ``ref``
        allows.
        """
        if not isinstance(value, Mapping):
            self.report_wrong(value, "a mapping of fields", path)
            return
        plans = self.plan.of(ref)
        in_band = self.plan.model.layouts[ref.layout].version_is is not None
        same = [p for p in plans if p.version == holder.version]
        self.fields(value, same if same and not in_band else list(plans), f"{path}.", fills)

    def check_scalar(self, value: object, type_: ScalarType, path: str) -> None:
        """Report a value that is not a name or number of the type's enum, not true or false, not a
        uuid, or not an integer in range, according to the type. Values of float types are not
        checked.
        """
        if type_.enum is not None:
            self.check_word(value, type_.enum, type_.only, path)
        elif type_.name == "bool":
            if not isinstance(value, bool):
                self.report_wrong(value, "true or false", path)
        elif type_.name == "uuid":
            if not _is_uuid(value):
                self.report_wrong(value, "a uuid", path)
        elif not is_float(type_.name):
            self.check_integer(value, integer_range(type_.name) or (0, 0), type_.name, path)

    def check_integer(self, value: object, reach: tuple[int, int], name: str, path: str) -> None:
        """Report a value that is not an integer (booleans are none), or that is outside ``reach``,
        both ends included. ``name`` is the type in the message.
        """
        if isinstance(value, bool) or not isinstance(value, int):
            self.report_wrong(value, "a number", path)
        elif not reach[0] <= value <= reach[1]:
            self.report("C017", f"{path} is {value}, which does not fit {name}", path)

    def check_word(self, value: object, enum: str, only: tuple[str, ...] | None, path: str) -> None:
        """Report a value unless it is a name or number of an enum value that ``only`` allows (None:
        all), a spelling of any value of the enum, or any integer if the enum keeps unknown numbers.
        """
        declared = self.plan.model.enums[enum]
        known = dict(enum_values(declared, only))
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number and (declared.keep_unknown or value in known.values()):
            return
        if isinstance(value, str) and value in (*known, *(v.spelled for v in declared.values)):
            return
        spans = {v.name: v.span for v in declared.values}
        shown = f'"{value}"' if isinstance(value, str) else format_value(value)
        message = f'{shown} is not a value of the enum "{enum}" that may stand here'
        self.report("C012", message, path, hint(value if isinstance(value, str) else "", spans))

    def bits(self, value: object, members: tuple[BitMember, ...], path: str) -> None:
        """Report a value that is not a mapping, a key that is no member, and a value that does not
        suit its member. A member with an enum needs a name, spelling or number of it (any integer
        if it keeps unknown numbers), a member of one bit true or false, all others, and reserved
        ones of one bit, a number that fits. Members missing from the mapping are not reported.
        """
        if not isinstance(value, Mapping):
            self.report_wrong(value, "a mapping of bits", path)
            return
        by_name = {m.name: m for m in members}
        for key, part in value.items():
            m = by_name.get(str(key))
            if m is None:
                spans = {m.name: m.span for m in members}
                message = f'"{path}" has no member "{key}"'
                self.report("C014", message, f"{path}.{key}", hint(str(key), spans))
            elif m.enum is not None:
                self.check_word(part, m.enum, m.only, f"{path}.{key}")
            elif m.width == 1 and not m.reserved:
                if not isinstance(part, bool):
                    self.report_wrong(part, "true or false", f"{path}.{key}")
            else:
                self.check_integer(
                    part, (0, (1 << m.width) - 1), count_noun(m.width, "bit"), f"{path}.{key}"
                )

    def check_data(self, value: object, type_: BytesType, path: str) -> None:
        """Report a null unless the type can be null, a value that is not text (for text types) or
        not text or bytes, and a value longer than a fixed length, or shorter unless the type is
        padded. Sizes are in bytes, those of text in UTF-8.
        """
        if value is None:
            if type_.null is None:
                self.report("C017", f"{path} is never null", path)
        elif type_.text and not isinstance(value, str):
            self.report_wrong(value, "text", path)
        elif not isinstance(value, str | bytes):
            self.report_wrong(value, "bytes: text, or {hex: ..}", path)
        elif isinstance(type_.length, int):
            size = len(value.encode() if isinstance(value, str) else value)
            if size > type_.length or (size < type_.length and not type_.padded):
                self.report(
                    "C017", f"{path} has {count_noun(type_.length, 'byte')}, not {size}", path
                )

    # ------------------------------------------------------------ bytes

    def compare_all(self, data: bytes, values: Mapping[object, object], plan: LayoutPlan) -> None:
        """Report a wrong total size (for layouts of fixed size without tolerances), bytes that end
        before a fixed field, and integers and bits at fixed offsets that differ from ``values`` or
        from a constant. Fields with ``when`` are skipped. A size mistake ends the check.
        """
        if plan.size is not None and plan.size != len(data) and not self.layout.accepts:
            self.report(
                "C024",
                f'"{self.layout.name}" has {count_noun(plan.size, "byte")}, but the example has {len(data)}',
            )
            return
        for fp in plan.fields:
            if fp.offset is None or fp.size is None or fp.field.when is not None:
                continue
            number = self.number(fp, data)
            if number is None and fp.offset + fp.size > len(data):
                size = count_noun(len(data), "byte")
                message = (
                    f'the example has {size}, but "{fp.name}" ends after {fp.offset + fp.size}'
                )
                self.report("C024", message)
                return
            if number is not None:
                self.compare(fp, number, values)

    def number(self, fp: FieldPlan, data: bytes) -> int | None:
        """Return the integer that ``data`` has at the offset of an integer or bit field. Return
        None for other types, for fields without a fixed offset, and if the data ends before the
        field does.
        """
        name = fp.field.type.name if isinstance(fp.field.type, ScalarType) else ""
        if isinstance(fp.field.type, BitsType):
            name = fp.field.type.base
        if not is_integer(name) or fp.offset is None:
            return None
        width = SCALARS[name].width
        part = data[fp.offset : fp.offset + width]
        if len(part) < width:
            return None
        return int.from_bytes(part, fp.field.endian, signed=is_signed(name))

    def compare(self, fp: FieldPlan, number: int, values: Mapping[object, object]) -> None:
        """Report ``number``, read from the bytes of a field, if it differs from the field's integer
        constant or from the value in ``values``; for a bit field compare each member. Missing
        values and values that are no numbers are skipped.
        """
        f = fp.field
        fixed = f.const if isinstance(f.const, int) else None
        if fixed is not None and number != fixed:
            self.report_difference(f.name, fp, number, fixed)
        if f.name not in values:
            return
        value = values[f.name]
        if isinstance(f.type, ScalarType):
            given = self.written_number(value, f.type.enum)
            if given is not None and given != number:
                self.report_difference(f.name, fp, number, given)
        elif isinstance(f.type, BitsType) and isinstance(value, Mapping):
            for m in f.type.members:
                given = self.written_number(value.get(m.name), m.enum)
                part = number >> m.low & (1 << m.width) - 1
                if given is not None and given != part:
                    self.report_difference(f"{f.name}.{m.name}", fp, part, given)

    def written_number(self, value: object, enum: str | None) -> int | None:
        """Return the number of an enum value for its name or spelling, or a boolean or integer as
        an integer. Return None for an unknown name and for all other values.
        """
        if enum is not None and isinstance(value, str):
            values = self.plan.model.enums[enum].values
            return next((v.value for v in values if value in (v.name, v.spelled)), None)
        return int(value) if isinstance(value, bool | int) else None

    def report_difference(self, path: str, fp: FieldPlan, there: int, given: int) -> None:
        """Append a diagnostic that the value at ``path`` is ``there`` in the bytes of a field, but
        ``given`` in the example.
        """
        self.report(
            "C024",
            f"{path} is {there} in the bytes (at byte {fp.offset}), but the example says {given}",
            path,
        )


def _is_uuid(value: object) -> bool:
    """Return whether a value is a str that ``uuid.UUID`` accepts. False for every other type."""
    try:
        return isinstance(value, str) and uuid.UUID(value) is not None
    except ValueError:
        return False


def check_trials(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each example that the generated codecs do not read and write as given,
    or only the diagnostics of the codecs if they cannot be generated. Yield nothing, and generate
    no codecs, if no layout or text has examples. Raise AssertionError, an internal error of
    codecgen, if a fast parser reads other values than the field-by-field parser.
    """
    if not model.has_examples:
        return
    # Needed where there are examples.
    from codecgen.examples.trial import findings
    from codecgen.targets.live_codecs import load_codecs

    plan = make_plan(model)
    codecs, unsupported = load_codecs(plan)
    yield from unsupported if codecs is None else findings(plan, codecs)
