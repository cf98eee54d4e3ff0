"""Check nulls: the number that means null fits its type and has no other meaning."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic, Span, unique
from codecgen.schema.lookup import field_of, integer_range, is_signed, versions_of
from codecgen.schema.model import Field, Layout, Model
from codecgen.schema.types import ArrayType, BytesType, ChoiceType, ScalarType, StructType
from codecgen.spans import place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic, for each field of each layout, if no length or count could mean null, or
    the number for null does not fit its type. Also yield one if the number has a meaning already: 0
    or more in a signed type, or 1 for an optional layout. For type ``compact`` the number must be
    0. Each id is reported once per place in a field.
    """
    for layout in model.layouts.values():
        for f in layout.fields:
            yield from unique(_check_field(f, layout))


def _check_field(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic, for each version, if the number that means null has no count, length or
    presence number that can hold it, or does not fit its type. Also yield one if it has a meaning
    already: 0 or more in a signed type, or 1 for an optional layout. For type ``compact`` it must
    be 0. Yield nothing if no number means null.
    """
    for version in versions_of(layout, f.versions):
        one = f.in_versions((version,))
        match one.type:
            case BytesType():
                yield from _check_bytes(one, one.type)
            case ArrayType():
                yield from _check_array(one, one.type, layout, version)
                if isinstance(one.type.element, BytesType):
                    yield from _check_bytes(one, one.type.element, "array.none")
                elif isinstance(one.type.element, ChoiceType):
                    yield from _check_choice(one, one.type.element, "array.none")
            case StructType():
                yield from _check_struct(one, one.type)
            case ChoiceType():
                yield from _check_choice(one, one.type)


def check_reach(
    number: int, name: str, reach: tuple[int, int], where: Span
) -> Iterator[Diagnostic]:
    """Yield a diagnostic, at ``where``, unless ``number`` lies within ``reach``, both ends
    included. ``name`` is the integer type in the message.
    """
    if not reach[0] <= number <= reach[1]:
        message = f"{number} does not fit {name} ({reach[0]} to {reach[1]})"
        yield Diagnostic("C017", message, where)


def check_container_default(
    f: Field, where: Span, nullable: bool, *, is_null: bool
) -> Iterator[Diagnostic]:
    """Yield a diagnostic, at ``where``, unless the default of an array or layout is null
    (``is_null``) and null is allowed (``nullable``). A default of ``[]`` does not come here,
    because it counts as no default.
    """
    if is_null and nullable:
        return
    if isinstance(f.type, ArrayType):
        what = "the only default of an array is []"
        message = "an array that can be null has [] or null as its default" if nullable else what
    else:
        what = f'"{f.name}" is a layout that is always there: it has no default'
        message = "a layout that can be null has null as its default" if nullable else what
    help = (
        "take the default out"
        if "no default" in message
        else "write such a default, or take it out"
    )
    yield Diagnostic("C017", message, where, help=help)


def _check_bytes(f: Field, type_: BytesType, key: str = "none") -> Iterator[Diagnostic]:
    """Yield a diagnostic, at ``key`` of the field, if bytes or text have a number for null but no
    length prefix. Also yield one if the number is outside the prefix's type, 0 or more in a signed
    type, or not 0 for ``compact``. Yield nothing if they cannot be null.
    """
    if type_.null is None:
        return
    if type_.prefix is None:
        message = "`none` needs a length in front, and these bytes have none"
        help = 'remove "none", or write the type of a length, such as `bytes: i16`'
        yield Diagnostic("C011", message, place(f, key), help=help)
        return
    yield from _check_number(type_.null, "length", type_.prefix, place(f, key))


def _check_choice(f: Field, type_: ChoiceType, key: str = "none") -> Iterator[Diagnostic]:
    """Yield a diagnostic, at ``key`` of the field, if the number that means null of a choice does
    not fit the type of its length, is 0 or more in a signed type, or is not 0 for ``compact``.
    Yield nothing if the choice has no such number or no length.
    """
    if type_.null is not None and type_.length is not None:
        yield from _check_number(type_.null, "length", type_.length, place(f, key))


def _check_array(
    f: Field, type_: ArrayType, layout: Layout, version: int | None
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if an array with a ``null`` has neither a count nor a length, or a count
    that is a field plus a number. Also yield one if the ``null`` does not fit its type, is 0 or
    more in a signed type, or is not 0 for ``compact``. The count may be a field; its type in
    ``version`` is used. Yield nothing without ``null``.
    """
    if type_.null is None:
        return
    if type_.plus:
        message = f'the count of "{f.name}" is "{type_.counted_by}" plus or minus a number: it cannot mean null'
        yield Diagnostic("C011", message, place(f, "none"), help='take out "none"')
        return
    counter = field_of(layout, type_.counted_by) if type_.counted_by is not None else None
    name = type_.count or type_.length
    counted = None if counter is None else counter.in_versions((version,)).type
    if isinstance(counted, ScalarType):
        name = counted.name
    if name is None:
        message = f'only a count or a length in front of the elements can mean null, and "{f.name}" has neither'
        help = 'take out "none", or give the array a `count` that is a type, such as `count: i32`'
        yield Diagnostic("C011", message, place(f, "none"), help=help)
        return
    what = "length" if name is type_.length else "count"
    yield from _check_number(type_.null, what, name, place(f, "none"))


def _check_struct(f: Field, type_: StructType) -> Iterator[Diagnostic]:
    """Yield a diagnostic if an optional layout has 1 (which means that the layout is there) as the
    number for null, or a number that the type in front of it cannot hold. Yield nothing if the
    layout is not optional.
    """
    present, null = type_.present, type_.null
    if present is None or null is None:
        return
    where = place(f, "none.value" if "none.value" in f.places else "none")
    if null == 1:
        message = "1 means that the layout exists: it cannot mean null"
        yield Diagnostic("C017", message, where, help="write another number")
    else:
        reach = integer_range(present)
        if reach is not None:
            yield from check_reach(null, present, reach, where)


def _check_number(null: int, what: str, name: str, where: Span) -> Iterator[Diagnostic]:
    """Yield a diagnostic if ``null`` is not 0 for type ``compact``, is outside the range of the
    type, or is not negative for another signed type. All numbers of an unsigned type pass. ``what``
    (``length`` or ``count``) is for messages.
    """
    reach = integer_range(name)
    if name == "compact":
        if null != 0:
            message = f"a compact {what} means null by 0"
            yield Diagnostic("C017", message, where, help="write `none: 0`")
    elif reach is not None and not reach[0] <= null <= reach[1]:
        yield from check_reach(null, name, reach, where)
    elif is_signed(name) and null >= 0:
        message = f"a {what} of {null} cannot mean null: it is a {what} too"
        yield Diagnostic("C017", message, where, help="write `none: -1`")
