"""Check lengths, counts, checksums and fixed sizes: their targets exist, come in order and can be computed."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic, Span, unique
from codecgen.runtime.checksums import CHECKSUMS, Mask
from codecgen.runtime.nouns import count_noun
from codecgen.schema.lookup import (
    all_versions,
    covered_parts,
    exists_in,
    field_of,
    field_spans,
    has_byte_order,
    has_fixed_size,
    index_of,
    integer_range,
    range_bounds,
    versions_of,
)
from codecgen.schema.model import Field, Layout, Model
from codecgen.schema.scalars import is_integer
from codecgen.schema.types import ArrayType, BytesType, FieldRange, PaddingType, ScalarType
from codecgen.spans import hint, place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield diagnostics about fields that measure, count or cover others: conflicting keys, ranges
    with unknown or swapped ends, wrong types, and arrays, paddings and codecs that are not
    determined. If a layout has none of these, also report measured ranges that overlap and
    checksums that cover each other.
    """
    for layout in model.layouts.values():
        found: list[Diagnostic] = []
        for f in layout.fields:
            found += _check_roles(f)
            found += _check_range(f, f.measures, "measures", layout)
            for key, part in covered_parts(f):
                found += _check_range(f, part, key, layout)
            found += check_overlap(f, layout)
            found += check_mask(f)
            found += _check_counted_arrays(f, layout)
            found += _check_array(f)
            found += check_sizes(f, layout)
            found += _check_codec(f, layout)
        if not found:
            for version in all_versions(layout):
                found += _check_nesting(layout, version)
                found += check_cycles(layout, version)
        yield from unique(found)


def _check_roles(f: Field) -> Iterator[Diagnostic]:
    """Yield a diagnostic if two keys decide what is written into a field (``measures``, ``counts``,
    ``checksum``, ``is``, ``const``, ``default`` or ``none``), ``endian`` has no effect,
    ``default`` repeats ``none``, or a length, count or checksum has the wrong type.
    """
    keys = [
        ("measures", f.measures is not None),
        ("counts", bool(f.counts)),
        ("checksum", f.checksum is not None),
        ("is", f.is_version),
        ("const", f.const is not None),
        (
            "none" if f.absent is not None else "default",
            "default" in f.places or f.absent is not None,
        ),
    ]
    given = [key for key, there in keys if there]
    if len(given) > 1:
        message = f'"{given[0]}" and "{given[1]}" both say what is written into "{f.name}"'
        yield Diagnostic("C011", message, place(f, given[1]), help=f'take out "{given[1]}"')
    if "endian" in f.places and not has_byte_order(f):
        message = f'"{f.name}" has no numbers of several bytes'
        yield Diagnostic("C011", message, place(f, "endian"), help='take out "endian"')
    computed = f.default is not None and any(True for _ in f.default.paths())
    if f.absent is not None and "default" in f.places and (not computed or f.tag is not None):
        message = f'"none" is the default of "{f.name}" already'
        yield Diagnostic("C011", message, place(f, "default"), help='take out "default"')
    for key in given[:1]:
        if key in ("measures", "counts", "checksum"):
            yield from _check_integer(f, key)
    if f.checksum is not None:
        width = CHECKSUMS[f.checksum].width
        names = [t.name for t in f.all_types() if isinstance(t, ScalarType)]
        for name in [name for name in names if name != f"u{width}"][:1]:
            message = f"{f.checksum} is an unsigned number of {count_noun(width // 8, 'byte')}, which {name} is not"
            help = f"write `type: u{width}`"
            yield Diagnostic("C017", message, place(f, "type"), help=help)


def _check_integer(f: Field, key: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the field with ``key`` (``measures``, ``counts`` or ``checksum``) is
    not an integer in all versions, or has an enum.
    """
    what = {"measures": "a length", "counts": "a count", "checksum": "a checksum"}[key]
    numbers = all(isinstance(t, ScalarType) and integer_range(t.name) for t in f.all_types())
    if not isinstance(f.type, ScalarType) or not numbers:
        yield Diagnostic(
            "C017", f"{what} is an integer", place(f, key), help="give the field an integer type"
        )
    elif f.type.enum is not None:
        yield Diagnostic("C011", f"{what} cannot have an enum", place(f, "enum"))


def _check_range(
    f: Field, field_range: FieldRange | None, key: str, layout: Layout
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a field range has an unknown end, is empty, or ends before it begins;
    if a length cannot measure itself or fields before it; if a checksum covers itself or zeroes a
    field outside its range; or if a version has the field but not an end. Yield nothing if
    ``field_range`` is None.
    """
    if field_range is None:
        return
    unknown = False
    for name, part in ((field_range.first, "from"), (field_range.last, "to")):
        if name and index_of(layout, name) is None:
            unknown = True
            where = f.places.get(f"{key}.{part}", field_range.span)
            message = f'"{layout.name}" has no field "{name}"'
            yield Diagnostic("C014", message, where, "not a field", hint(name, field_spans(layout)))
    ends = range_bounds(layout, f, field_range)
    if unknown or ends is None:
        return
    own = index_of(layout, f.name) or 0
    first, last = ends
    start, stop = (
        f.places.get(f"{key}.from", field_range.span),
        f.places.get(f"{key}.to", field_range.span),
    )
    if not field_range.first and first >= len(layout.fields):
        message = f'no field follows "{f.name}" that it could {"measure" if key == "measures" else "cover"}'
        help = f'move "{f.name}" in front of the fields of the range, or write `from:`'
        yield Diagnostic("C016", message, field_range.span, help=help)
        return
    if last < first:
        message = f'the range ends with "{field_range.last}", before "{layout.fields[first].name}", where it begins'
        yield Diagnostic("C016", message, stop, help="swap them")
        return
    if key == "measures" and first == own:
        alone = any(layout.fields_of(v)[-1].name == f.name for v in versions_of(layout, f.versions))
        yield from _check_self_measurement(f, layout, last > own and not alone, start)
    elif key == "measures" and first < own:
        yield from _check_measured_before(f, layout, layout.fields[first:own], start)
        yield from _check_self_measurement(f, layout, last > own, start)
    if key != "measures":
        yield from check_zeroed_fields(f, field_range, key, layout, first, last)
        if first <= own <= last and f.name not in field_range.zero:
            message = f'the checksum "{f.name}" lies in the range that it covers'
            help = f"let it end before, or begin after the checksum, or let it count as zero: `zero: [{f.name}]`"
            yield Diagnostic("C016", message, stop if field_range.last else start, help=help)
    yield from _check_ends_exist(f, field_range, key, layout, start, stop)


def _check_self_measurement(
    f: Field, layout: Layout, more: bool, where: Span
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a length whose range includes itself has no fixed size, has a ``when``,
    or (``more`` is False) measures nothing else.
    """
    why = ""
    if not isinstance(f.type, ScalarType) or not is_integer(f.type.name):
        why = "has no fixed size"
    elif f.when is not None:
        why = "is not always there"
    elif not more:
        why = "measures nothing else"
    if why:
        message = f'"{f.name}" measures itself, but {why}'
        help = _range_help(layout, index_of(layout, f.name) or 0)
        yield Diagnostic("C016", message, where, help=help)


def _check_measured_before(
    f: Field, layout: Layout, before: tuple[Field, ...], where: Span
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for the first field in ``before``, the measured fields in front of the
    length ``f``, that has a ``when``, is in other versions than ``f``, or has no fixed size.
    """
    for g in before:
        why = ""
        if g.when is not None or g.versions != f.versions:
            why = "is not always there"
        elif g.types or not has_fixed_size(g):
            why = "has no fixed size"
        if why:
            message = f'"{f.name}" measures "{g.name}" before it, but that {why}'
            help = _range_help(layout, index_of(layout, f.name) or 0)
            yield Diagnostic("C016", message, where, help=help)
            return


def _range_help(layout: Layout, own: int) -> str:
    """Return help to begin a range at the field after index ``own``, or why that is not possible."""
    if own + 1 < len(layout.fields):
        f, following = layout.fields[own : own + 2]
        if following.versions not in (None, f.versions):
            return f'"{following.name}", the next field, is not in all versions of "{f.name}"'
        return f"begin with the next field: `from: {following.name}`"
    return "no field follows that it could measure"


def _check_ends_exist(
    f: Field, field_range: FieldRange, key: str, layout: Layout, start: Span, stop: Span
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each end of a field range (at ``start`` and ``stop``) that is missing
    in a version that has the field ``f``. Only the first such version is reported for each end.
    ``key`` (``measures`` or ``covers``) is for messages.
    """
    for name, where in ((field_range.first, start), (field_range.last, stop)):
        end = field_of(layout, name) if name else None
        if end is None:
            continue
        for version in all_versions(layout):
            if exists_in(f, version) and not exists_in(end, version):
                verb = key.partition(".")[0]
                message = (
                    f'"{end.name}" is not there in version {version}, where "{f.name}" {verb} it'
                )
                yield Diagnostic("C020", message, where, help=f"see {place(end, 'versions')}")
                break


def _check_counted_arrays(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each array that a field counts if it comes before the field, has
    another count already, or can exist without the field, by its ``when`` or by versions. Yield
    nothing for names that are no array of the layout, and for fields without ``counts``.
    """
    for i, name in enumerate(f.counts):
        array = field_of(layout, name)
        if array is not None and isinstance(array.type, ArrayType):
            where = f.places.get(f"counts.{i}", place(f, "counts"))
            yield from _check_counted(f, array, layout, where)


def _check_counted(f: Field, array: Field, layout: Layout, where: Span) -> Iterator[Diagnostic]:
    """Yield a diagnostic, at ``where``, if a count ``f`` comes after its array, another field counts the array already,
    the array can exist without its count (``when``), or a version has only one of them.
    """
    own, target = index_of(layout, f.name) or 0, index_of(layout, array.name) or 0
    if target < own:
        message = f'"{array.name}" lies before "{f.name}", which counts it'
        help = f'move "{f.name}" in front of "{array.name}" ({array.span})'
        yield Diagnostic("C016", message, where, help=help)
    first = next(g for g in layout.fields if array.name in g.counts)
    if first is not f:
        message = f'"{array.name}" is counted by "{first.name}" already'
        yield Diagnostic("C016", message, where, help=f"see {place(first, 'counts')}")
    if f.when is not None and (array.when is None or str(array.when) != str(f.when)):
        message = f'"{array.name}" can be there without "{f.name}", which counts it'
        yield Diagnostic("C016", message, where, help="give both the same `when`")
    for version in all_versions(layout):
        if exists_in(f, version) != exists_in(array, version):
            name = array.name if exists_in(f, version) else f.name
            message = (
                f'"{f.name}" counts "{array.name}", but in version {version} there is no "{name}"'
            )
            help = f'give both the same `versions`; "{array.name}" is declared at {array.span}'
            yield Diagnostic("C020", message, where, help=help)
            break


def _check_array(f: Field) -> Iterator[Diagnostic]:
    """Yield a diagnostic if an array has more than one of ``count``, ``length``, ``until`` and a
    field that counts it, or none of them. Yield nothing for other fields.
    """
    if not isinstance(f.type, ArrayType):
        return
    given = [key for key in ("count", "length", "until") if key in f.places]
    is_amount = f.type.count is None and f.type.fixed is None
    repeated = [key for key in given if key != "count" or not is_amount]
    if f.type.counted_by is not None and repeated:
        message = f'"{f.type.counted_by}" counts "{f.name}": `{repeated[0]}` repeats it'
        yield Diagnostic("C011", message, place(f, repeated[0]), help=f'take out "{repeated[0]}"')
    elif len(given) > 1:
        message = f'"{given[0]}" and "{given[1]}" both say where "{f.name}" ends'
        help = "keep one of them"
        if f.type.compression is not None and "count" in given:
            measured = f"put a field with its bytes before it: `measures: {{from: {f.name}, to: {f.name}}}`"
            help = f'take out "{given[1]}", and {measured}'
        yield Diagnostic("C011", message, place(f, given[1]), help=help)
    elif f.type.counted_by is None and not given:
        message = f'the number of elements of "{f.name}" is not given'
        help = f"add `count: TYPE`, `length: TYPE` or `until: end`, or write `counts: {f.name}` at a field before it"
        yield Diagnostic("C005", message, f.span, help=help)


def _check_codec(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the field that selects the codec of an array has a ``when`` and the
    array does not have the same one. Yield nothing for other fields.
    """
    compression = f.type.compression if isinstance(f.type, ArrayType) else None
    for path in compression.by.paths() if compression is not None else ():
        by = field_of(layout, path.names[0])
        if by is None or by.when is None:
            continue
        if f.when is None or str(f.when) != str(by.when):
            message = f'"{f.name}" can be there without "{by.name}", which names its codec'
            yield Diagnostic(
                "C016", message, place(f, "compressed"), help="give both the same `when`"
            )


# ------------------------------------------------------------ field ranges and checksums together


def measured_ranges(layout: Layout, version: int | None) -> list[tuple[Field, int, int]]:
    """Return the field ranges that lengths measure in a version, as (length field, index of the
    first, index of the last field), both included, into ``layout.fields``, in field order. Ranges
    with unknown ends are left out.
    """
    out = []
    for f in layout.fields:
        if f.measures is not None and exists_in(f, version):
            ends = range_bounds(layout, f, f.measures)
            if ends is not None:
                out.append((f, *ends))
    return out


def _check_nesting(layout: Layout, version: int | None) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each pair of measured ranges in a version that are equal or overlap.
    One may lie inside the other; if both begin at the same field, the length of the outer one must
    come first. Also yield one if a range begins before its own length, and the other range begins
    after it, up to that length.
    """
    field_ranges = measured_ranges(layout, version)
    for i, (f, first, last) in enumerate(field_ranges):
        for g, other_first, other_last in field_ranges[:i]:
            where = place(f, "measures")
            ends = [
                (own, begin, other_begin)
                for own, begin, other_begin in (
                    (index_of(layout, f.name) or 0, first, other_first),
                    (index_of(layout, g.name) or 0, other_first, first),
                )
                if begin < other_begin <= own
            ]
            if ends:
                message = f'the range that "{g.name}" measures and that of "{f.name}" overlap'
                help = f"one begins before its length, and the other between; see {place(g, 'measures')}"
                yield Diagnostic("C016", message, where, help=help)
            elif (first, last) == (other_first, other_last):
                message = f'"{f.name}" measures the same range as "{g.name}"'
                yield Diagnostic("C016", message, where, help=f"see {place(g, 'measures')}")
            elif first <= other_last and other_first <= last:
                inside = other_first <= first and last <= other_last
                around = first < other_first and other_last <= last
                if not (inside or around):
                    message = f'the ranges that "{f.name}" and "{g.name}" measure overlap'
                    help = f"one must lie inside the other, and of two that begin at one field the outer length comes first; see {place(g, 'measures')}"
                    yield Diagnostic("C016", message, where, help=help)


def check_zeroed_fields(
    f: Field, field_range: FieldRange, key: str, layout: Layout, first: int, last: int
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each field under ``zero`` that the layout lacks or that is outside the
    range ``first`` to ``last`` (indexes, both included) of the checksum.
    """
    for i, name in enumerate(field_range.zero):
        where = f.places.get(f"{key}.zero.{i}", f.places.get(f"{key}.zero", field_range.span))
        index = index_of(layout, name)
        if index is None:
            message = f'"{layout.name}" has no field "{name}"'
            yield Diagnostic("C014", message, where, "not a field", hint(name, field_spans(layout)))
        elif not first <= index <= last:
            message = f'"{name}" does not lie in the range that "{f.name}" covers here'
            help = f"it is declared at {layout.fields[index].span}"
            yield Diagnostic("C063", message, where, help=help)


def check_mask(f: Field) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each number of a mask that does not fit the width of the checksum, and
    one if the mask changes nothing. Yield nothing for a field without a checksum or without a mask.
    """
    if f.checksum is None or f.mask is None:
        return
    width, mask = CHECKSUMS[f.checksum].width, f.mask
    numbers = (
        ("mask", mask.keep, 1, (1 << width) - 1),
        ("mask.rotate_right", mask.rotate_right, 0, width - 1),
        ("mask.add", mask.add, 0, (1 << width) - 1),
    )
    for key, number, minimum, maximum in numbers:
        if number is not None and not minimum <= number <= maximum:
            what = "the mask" if key == "mask" else f'"{key.removeprefix("mask.")}"'
            message = f'{what} of "{f.name}" is {number:#x}, but {f.checksum} has {width} bits'
            help = f"write a number from {minimum} to {maximum:#x}"
            yield Diagnostic("C063", message, place(f, key), help=help)
    if mask == Mask():
        message = f'the mask of "{f.name}" changes nothing'
        help = "give it `rotate_right` or `add`, or leave it out"
        yield Diagnostic("C063", message, place(f, "mask"), help=help)


def check_overlap(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Yield one diagnostic if two of the ranges that a checksum covers share a field. Ranges with
    an unknown end are skipped.
    """
    seen: dict[int, FieldRange] = {}
    for key, part in covered_parts(f):
        ends = range_bounds(layout, f, part)
        for i in () if ends is None else range(ends[0], ends[1] + 1):
            if seen.setdefault(i, part) is not part:
                message = f'"{f.name}" covers "{layout.fields[i].name}" twice'
                where = f.places.get(f"{key}.from", part.span)
                help = "let the second range begin after the first one, or take it out"
                yield Diagnostic("C063", message, where, help=help)
                return


def check_cycles(layout: Layout, version: int | None) -> Iterator[Diagnostic]:
    """Yield one diagnostic if a checksum in a version covers itself through other checksums, so
    that none can be computed first. Checksums that count as zero in a range do not count as
    covered. A checksum that covers itself directly is not reported here.
    """
    covers: dict[str, list[Field]] = {}
    checksums = [f for f in layout.fields if f.checksum is not None and exists_in(f, version)]
    for f in checksums:
        all_ends = [(range_bounds(layout, f, part), part.zero) for part in f.covers]
        covers[f.name] = [
            g
            for ends, zeros in all_ends
            for g in (layout.fields[ends[0] : ends[1] + 1] if ends is not None else ())
            if g in checksums and g.name not in zeros
        ]
    reached = {f.name: _reachable(f.name, covers) for f in checksums}
    for f in checksums:
        cycle = [g for g in sorted(reached[f.name]) if g != f.name and f.name in reached[g]]
        if cycle:
            *most, last = [f'"{name}"' for name in (f.name, *cycle)]
            message = (
                f"{', '.join(most)} and {last} cover each other, so that none can be computed first"
            )
            help = "take one out of the range that the other covers, or let it count as zero there: `zero: [..]`"
            yield Diagnostic("C016", message, place(f, "covers"), help=help)
            return


def _reachable(name: str, covers: dict[str, list[Field]]) -> set[str]:
    """Return the names of the checksums that a checksum covers, directly or through others. Its own
    name is among them if they cover it.
    """
    seen: set[str] = set()
    todo = list(covers[name])
    while todo:
        g = todo.pop()
        if g.name not in seen:
            seen.add(g.name)
            todo += covers[g.name]
    return seen


MOST_ELEMENTS = 1 << 20
"""The most elements that an array may always have."""

MOST_PADDING = 1 << 16
"""The largest number to a multiple of which padding goes."""

_VALUE_KEYS = ("default", "absent", "const", "valid", "refuse", "unit", "is", "measures", "counts")


def check_sizes(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a fixed count of an array is out of range, if bytes or text without
    fixed length are padded, or if a padding field has a bad multiple, a key for values, or a length
    of variable size before it.
    """
    for type_ in f.all_types():
        match type_:
            case ArrayType(fixed=int(number)):
                yield from _check_fixed_count(f, number)
            case BytesType(length=str(), padded=True):
                yield _unpaddable_diagnostic(f, "padded")
            case PaddingType(multiple):
                yield from _check_padding(f, multiple)
                yield from _check_padding_place(f, layout)
        match type_:
            case ArrayType(BytesType(length=str(), padded=True)):
                yield _unpaddable_diagnostic(f, "array.padded")


def _check_fixed_count(f: Field, number: int) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the fixed number of elements is not 1 to ``MOST_ELEMENTS``, or if
    ``at_least`` is given although the number is fixed in all versions.
    """
    if not 1 <= number <= MOST_ELEMENTS:
        elements = count_noun(number, "element")
        message = f'"{f.name}" cannot always have {elements}'
        help = f"write 1 to {MOST_ELEMENTS}, or the type of a count before them"
        yield Diagnostic("C062", message, place(f, "count"), help=help)
    elif "at_least" in f.places and not f.types:
        elements = count_noun(number, "element")
        message = f'"{f.name}" always has {elements}'
        yield Diagnostic("C011", message, place(f, "at_least"), help='take out "at_least"')


def _unpaddable_diagnostic(f: Field, key: str) -> Diagnostic:
    """Return the diagnostic about ``padded`` on a field without a fixed size."""
    message = f'"{f.name}" has no fixed size that zeros could fill up'
    help = 'write how many bytes there are, or take out "padded"'
    return Diagnostic("C011", message, place(f, key), help=help)


def _check_padding_place(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Yield one diagnostic if a length field of variable size comes before padding, because
    builders write the length last and so do not know the position of the padding.
    """
    for g in layout.fields[: layout.fields.index(f)]:
        if g.measures is not None and not all(has_fixed_size(one) for one in g.variants()):
            message = f'where "{f.name}" begins depends on how long the length "{g.name}" is, which is worked out last'
            help = f"give it a fixed size, or put what is padded into a layout of its own; see {g.span}"
            yield Diagnostic("C016", message, place(f, "padding"), help=help)
            return


def _check_padding(f: Field, multiple: int) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the multiple is not 2 to ``MOST_PADDING``, and one for the first key of
    the field that needs a value, such as ``default``.
    """
    if not 2 <= multiple <= MOST_PADDING:
        message = f'"{f.name}" cannot go up to a multiple of {multiple}'
        yield Diagnostic("C062", message, place(f, "padding"), help=f"write 2 to {MOST_PADDING}")
    for key in _VALUE_KEYS:
        if key in f.places:
            message = f'"{f.name}" is padding and has no value, so "{key}" has no effect'
            yield Diagnostic("C011", message, place(f, key), help=f'take out "{key}"')
            return
