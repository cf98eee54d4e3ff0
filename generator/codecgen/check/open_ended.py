"""Check ends: fields that take the rest of the input come last, and array elements take bytes."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.check.relations import measured_ranges
from codecgen.diagnostics import Diagnostic, unique
from codecgen.plan import FieldPlan, LayoutPlan, Plan, make_plan
from codecgen.plan.size_bounds import scalar_bounds
from codecgen.schema.lookup import choice_of, reference_of
from codecgen.schema.model import Model
from codecgen.schema.types import (
    ZERO_TERMINATED,
    ArrayType,
    BitsType,
    BytesType,
    ChoiceType,
    Element,
    FieldType,
    Reference,
    ScalarType,
    StructType,
    TagsType,
)
from codecgen.spans import place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic, for each version of each layout, if a field that takes all remaining
    bytes comes before one that cannot follow it. Also yield one if array elements take all
    remaining bytes or can be empty. Each id is reported once per place in a layout. Raise
    ValueError if an expression is invalid, which passes before this one report.
    """
    ends = Ends(make_plan(model))
    for plans in ends.plan.versions.values():
        yield from unique(d for plan in plans for d in ends.findings(plan))


class Ends:
    """Determines which layouts take the rest of the input, and the minimum size of each layout. Results are
    cached.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.opens: dict[tuple[str, int | None], bool] = {}
        self.min_sizes: dict[tuple[str, int | None], int] = {}

    def findings(self, layout: LayoutPlan) -> Iterator[Diagnostic]:
        """Yield a diagnostic for each field that takes the rest of its range although fields that
        cannot follow come after it, and for each array whose elements take the rest or can be
        empty.
        """
        for i, fp in enumerate(layout.in_order):
            what = self.takes_the_rest(fp, layout)
            if what:
                yield from self.followers(layout, i, what)
            if isinstance(fp.field.type, ArrayType):
                yield from self.elements(fp, layout)

    def takes_the_rest(self, fp: FieldPlan, layout: LayoutPlan) -> str:
        """Return in words why a field ends only where its range ends, or ``""`` if the field
        determines its own end. Such fields are bytes up to the end, arrays without a count, length
        or end condition, and compressed arrays without a length. So are layouts that take the rest,
        and choices without a length prefix that have such a case or accept unknown ones.
        """
        match fp.field.type:
            case BytesType("rest"):
                return "takes all remaining bytes"
            case ArrayType(to_the_end=True):
                return "has elements up to the end"
            case ArrayType(length=None, compression=compression) if compression is not None:
                return "is compressed up to the end"
            case StructType(ref) if self.is_open(fp.field.type, layout):
                return f'holds "{ref}", which takes all remaining bytes'
            case ChoiceType(length=None, unknown=True):
                return "takes all remaining bytes if no case matches"
            case ChoiceType(choice, length=None) if self.is_open(fp.field.type, layout):
                return (
                    f'holds the choice "{choice}", and one of its cases takes all remaining bytes'
                )
        return ""

    def field_ranges(self, layout: LayoutPlan, i: int) -> list[tuple[int, bool]]:
        """Return the measured ranges that contain the field at index ``i``, innermost first, as
        (index of the last field, whether its length exists whenever the field does: without
        ``when``, or with the same one). Return ``[]`` if no length measures the field.
        """
        condition = layout.fields[i].field.when
        places = {f.name: j for j, f in enumerate(layout.fields)}
        every = layout.layout.fields
        around = []
        for f, first, last in measured_ranges(layout.layout, layout.version):
            inside = [places[g.name] for g in every[first : last + 1] if g.name in places]
            if inside and inside[0] <= i <= inside[-1]:
                always = f.when is None or str(f.when) == str(condition)
                around.append((inside[-1] - inside[0], inside[-1], always))
        return [(last, always) for _, last, always in sorted(around)]

    def followers(self, layout: LayoutPlan, i: int, what: str) -> Iterator[Diagnostic]:
        """Yield a diagnostic for the first field that cannot follow field ``i``, which takes the
        rest (``what`` says why). Only fields in the measured ranges around it count, out to the
        first that always exists, or else up to the end of the layout.
        """
        lasts = []
        for last, always in self.field_ranges(layout, i):
            lasts.append(last)
            if always:
                break
        else:
            lasts.append(len(layout.fields) - 1)
        f = layout.fields[i].field
        for follower in layout.in_order[i + 1 : max(lasts) + 1]:
            why = self.in_the_way(layout, i, follower)
            if why:
                message = f'"{f.name}" {what}, but "{follower.name}" follows{why}'
                help = (
                    f'{self.suggest_cure(layout, i)}; "{follower.name}" is at {follower.field.span}'
                )
                yield Diagnostic("C031", message, f.span, help=help)
                return

    def suggest_cure(self, layout: LayoutPlan, i: int) -> str:
        """Return in words how fields can follow field ``i``, which takes the rest: remove ``when``
        from the length that measures only this field, if there is one. Otherwise give it a length
        prefix (choices) or a length field in front (others), or move it to the end of its measured
        range or of the layout.
        """
        f = layout.fields[i].field
        ranges = measured_ranges(layout.layout, layout.version)
        every = layout.layout.fields
        own = [g.name for g, *ends in ranges if {every[j].name for j in ends} == {f.name}]
        if own:
            return f'remove `when` from "{own[0]}", the length of "{f.name}"'
        if isinstance(f.type, ChoiceType):
            cure = f'give "{f.name}" a length: `length: u16`'
        else:
            range_ = f"{{from: {f.name}, to: {f.name}}}"
            cure = f'put a field with its length before "{f.name}": `measures: {range_}`'
        end = "the end of the measured range" if self.field_ranges(layout, i) else "the end"
        return f'{cure}, or move "{f.name}" to {end}'

    def in_the_way(self, layout: LayoutPlan, i: int, follower: FieldPlan) -> str:
        """Return in words why ``follower`` cannot come after field ``i``, which takes the rest:
        field ``i`` is not bytes, ``follower`` has no fixed size, or its condition reads a later
        field. Return ``""`` if it can. A follower with ``when`` may have any size if field ``i``
        has a ``when`` or lies in a measured range.
        """
        if not isinstance(layout.fields[i].field.type, BytesType):
            return (
                f'. No field can follow: "{layout.fields[i].field.name}" takes all bytes to the end'
            )
        f, when = layout.fields[i].field, follower.field.when
        # Where both depend on something, or on a field range, they may be there by turns.
        by_turns = when is not None and (f.when is not None or self.field_ranges(layout, i))
        if follower.size is None and not by_turns:
            return ", which has no fixed size"
        after = {fp.name for fp in layout.fields[i + 1 :]}
        later = [path.names[0] for path in when.paths() if path.names[0] in after] if when else []
        if later:
            return f', and its `when` reads "{later[0]}", which follows too'
        return ""

    def is_open(self, type_: FieldType, holder: LayoutPlan) -> bool:
        """Return whether a type, held by ``holder``, takes the rest of the input."""
        return any(self.layout_open(plan) for plan in self.plan.held_by(type_, holder))

    def layout_open(self, layout: LayoutPlan) -> bool:
        """Return whether a field of a layout takes the rest and no length that always exists
        measures it. A layout that contains itself counts as not open inside itself. The result is
        cached.
        """
        key = (layout.name, layout.version)
        if key not in self.opens:
            self.opens[key] = (
                False  # a layout that holds itself is no more open than its other fields are
            )
            self.opens[key] = any(
                self.takes_the_rest(fp, layout)
                and not any(always for _, always in self.field_ranges(layout, i))
                for i, fp in enumerate(layout.in_order)
            )
        return self.opens[key]

    # ------------------------------------------------------------ elements

    def elements(self, fp: FieldPlan, layout: LayoutPlan) -> Iterator[Diagnostic]:
        """Yield one diagnostic if the elements of an array are a layout that takes the rest or can
        be empty, or a choice without a length prefix that accepts unknown cases or has a case that
        takes the rest or can be empty. Yield nothing for elements of other types.
        """
        ref = reference_of(fp.field)
        where = place(fp.field, "array")
        choice = choice_of(fp.field)
        if choice is not None:
            yield from self.chosen_elements(fp, choice, layout)
        if ref is None:
            return
        if self.is_open(fp.field.type, layout):
            message = (
                f'"{ref}" takes all remaining bytes, so "{fp.name}" could have only one element'
            )
            help = (
                f'begin "{ref.layout}" with its length, such as `size: {{type: u16, measures: rest}}`; '
                f"it is declared at {self.plan.model.layouts[ref.layout].span}"
            )
            yield Diagnostic("C031", message, where, help=help)
        elif any(self.min_size(plan) == 0 for plan in self.plan.held(ref, layout)):
            help = f'give "{ref.layout}" a field that always has bytes, such as a length'
            yield Diagnostic("C031", _empty_message(f'"{ref}"', fp.name), where, help=help)

    def chosen_elements(
        self, fp: FieldPlan, choice: ChoiceType, layout: LayoutPlan
    ) -> Iterator[Diagnostic]:
        """Yield one diagnostic, for the first that holds, if elements that are a choice accept
        unknown cases, have a case that takes the rest, or have a case that can be empty. Yield
        nothing if each element has a length prefix.
        """
        if choice.length is not None:
            return
        message = ""
        if choice.unknown:
            message = f'an element of "{fp.name}" takes all remaining bytes if no case matches'
        elif self.is_open(fp.field.type, layout):
            message = f'a case of "{choice.choice}" takes all remaining bytes, so no element of "{fp.name}" could follow it'
        elif any(self.min_size(plan) == 0 for plan in self.plan.held_by(fp.field.type, layout)):
            message = _empty_message(f'a case of "{choice.choice}"', fp.name)
        if message:
            help = f"write a length in the element: `{{choice: {choice.choice}, length: u16, ..}}`"
            yield Diagnostic("C031", message, choice.span, help=help)

    def min_size(self, layout: LayoutPlan) -> int:
        """Return the minimum size of a layout in bytes: the sum of its fields. A layout inside
        itself counts 0. The result is cached.
        """
        key = (layout.name, layout.version)
        if key not in self.min_sizes:
            self.min_sizes[key] = 0
            self.min_sizes[key] = sum(self.min_field_size(fp, layout) for fp in layout.in_order)
        return self.min_sizes[key]

    def min_element_size(self, element: Element, layout: LayoutPlan) -> int:
        """Return the minimum size in bytes of an element of an array. A layout counts with its
        smallest version, and 0 inside itself. A choice counts its length prefix (if it has one) and
        its smallest case, or no case if null or unknown cases are allowed.
        """
        if isinstance(element, Reference):
            return min((self.min_size(plan) for plan in self.plan.held(element, layout)), default=0)
        if isinstance(element, BytesType):
            return self.min_bytes_size(element)
        if isinstance(element, ChoiceType):
            return self.min_choice_size(element, layout)
        return scalar_bounds(element.name)[0]

    def min_bytes_size(self, type_: BytesType) -> int:
        """Return the minimum size in bytes of a value of a bytes or text type: that of its length
        prefix, the fixed length, or 1 for zero-terminated values. Return 0 if it takes the rest or
        a value from outside gives its length.
        """
        if type_.prefix is not None:
            return scalar_bounds(type_.prefix)[0]
        if isinstance(type_.length, int):
            return type_.length
        return int(type_.length == ZERO_TERMINATED)

    def min_field_size(self, fp: FieldPlan, layout: LayoutPlan) -> int:
        """Return the minimum size of a field in bytes. A field with ``when`` and types without a
        minimum, such as padding and arrays up to the end, count 0. An array counts its prefix, or
        its fixed number of elements (one with ``until``).
        """
        if fp.field.when is not None:
            return 0
        if fp.size is not None:
            return fp.size
        match fp.field.type:
            case ScalarType(name) | BitsType(name):
                return scalar_bounds(name)[0]
            case BytesType() as type_:
                return self.min_bytes_size(type_)
            case ArrayType(element, fixed=number, until=until) if number or until is not None:
                return (number or 1) * self.min_element_size(element, layout)
            case ArrayType(count=count, length=length):
                return sum(scalar_bounds(name)[0] for name in (count, length) if name is not None)
            case TagsType():
                return 1
            case StructType(_, str(present)):
                return scalar_bounds(present)[0]
            case ChoiceType() as choice:
                return self.min_choice_size(choice, layout)
            case StructType():
                return self.min_held_size(fp.field.type, layout)
            case _:
                return 0

    def min_choice_size(self, choice: ChoiceType, layout: LayoutPlan) -> int:
        """Return the minimum size of a choice in bytes: its length prefix, if it has one, and its
        smallest case. The prefix counts alone if null or unknown cases are allowed; without a
        prefix, null does not count. ``layout`` is the holder.
        """
        before = 0 if choice.length is None else scalar_bounds(choice.length)[0]
        nothing = choice.length is not None and choice.null is not None
        return before if nothing else before + self.min_held_size(choice, layout)

    def min_held_size(self, type_: FieldType, layout: LayoutPlan) -> int:
        """Return the minimum size in bytes of the layouts that a field of type ``type_`` can hold:
        0 for a choice that accepts unknown cases, and if it can hold no layout. ``layout`` is the
        holder.
        """
        if isinstance(type_, ChoiceType) and type_.unknown:
            return 0
        held = self.plan.held_by(type_, layout)
        return min((self.min_size(plan) for plan in held), default=0)


def _empty_message(what: str, array: str) -> str:
    """Return the message that ``what``, the elements of an array or some of them, can be empty."""
    return (
        f'{what} can have 0 bytes. Elements of "{array}" must have at least one byte: '
        "otherwise a small input could hold any number of them"
    )
