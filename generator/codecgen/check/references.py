"""Check references: every enum, layout, enum value and field that is named is declared."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.check.nulls import check_reach
from codecgen.diagnostics import Diagnostic, Span, unique
from codecgen.runtime.compression import CODECS
from codecgen.schema import other_words
from codecgen.schema.lookup import (
    choice_of,
    enum_uses,
    field_of,
    field_spans,
    integer_range,
    reference_of,
    value_of,
)
from codecgen.schema.model import Choice, Enum, Field, Layout, Model, Overhead, OverheadOf
from codecgen.schema.nested_choices import first_layout
from codecgen.schema.scalars import SCALARS
from codecgen.schema.types import ArrayType, BytesType, Reference, ScalarType
from codecgen.spans import hint, place, unknown


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each name that is not declared, or not as the right kind of thing:
    enums and their values, layouts, choices and cases, fields that count or derive, codecs and
    their variants, and layouts and fields of overhead tables.
    """
    for layout in model.layouts.values():
        yield from _check_enums(layout, model)
        for f in layout.fields:
            ref = reference_of(f)
            if ref is not None:
                yield from check_layout_known(ref, model)
            yield from unique(_check_choice_known(f, model))
            yield from _check_counts(f, layout)
            yield from _check_count(f, layout)
            yield from _check_size(f, layout)
            yield from _check_codecs(f, model)
        yield from _check_derived_arrays(layout)
        if layout.overhead is not None:
            yield from _check_overhead(layout.overhead, model)
    yield from unique(_check_codec_enums(model))
    for choice in model.choices.values():
        yield from _check_choice(choice, model)


def check_layout_known(ref: Reference, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless a reference names a layout. Yield nothing if another diagnostic
    covers the name already (``model.is_broken``). Whether its version exists is not checked.
    """
    if ref.layout in model.layouts or model.is_broken(ref.layout):
        return
    others = (("a choice", model.choices), ("an enum", model.enums), ("a text", model.texts))
    for kind, things in others:
        if ref.layout not in things:
            continue
        declared = things[ref.layout]
        message = f'"{ref.layout}" is {kind}, but a layout is needed here'
        yield Diagnostic(
            "C012", message, ref.span, "not a layout", f"it is declared at {declared.span}"
        )
        return
    message = f'unknown layout "{ref.layout}"'
    help = other_words.type_help(ref.layout, SCALARS) or unknown(ref.layout, model.layouts)
    yield Diagnostic("C012", message, ref.span, "not declared", help)


def _check_choice_known(f: Field, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a field holds a choice that is not declared, or a name that is a layout
    or enum. Yield nothing for fields without a choice and for names that another diagnostic covers.
    """
    for one in f.variants():
        found = choice_of(one)
        if found is None or found.choice in model.choices or model.is_broken(found.choice):
            continue
        other = model.layouts.get(found.choice) or model.enums.get(found.choice)
        if other is None:
            help = unknown(found.choice, model.choices)
            message = f'unknown choice "{found.choice}"'
            yield Diagnostic("C012", message, found.span, "not declared", help)
            continue
        kind = "a layout" if found.choice in model.layouts else "an enum"
        message = f'"{found.choice}" is {kind}, but a choice is needed here'
        help = f"it is declared at {other.span}"
        if found.choice in model.layouts:
            help = f"write `layout: {found.choice}`; {help}"
        yield Diagnostic("C012", message, found.span, "not a choice", help)


def check_value_known(word: str, enum: Enum, where: Span) -> Iterator[Diagnostic]:
    """Yield a diagnostic, at ``where``, unless ``word`` is the name of a value of the enum. Numbers
    and spellings are not accepted.
    """
    spans = {value.name: value.span for value in enum.values}
    if word not in spans:
        message = f'"{word}" is not a value of the enum "{enum.name}"'
        help = hint(word, spans) or f"the enum is at {enum.span}"
        yield Diagnostic("C012", message, where, "not a value", help)


def _check_enum_known(name: str, where: Span, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic, at ``where``, if ``name`` is not declared, or is a layout or choice.
    Yield nothing if another diagnostic covers the name.
    """
    if name in model.enums or model.is_broken(name):
        return
    other = model.layouts.get(name) or model.choices.get(name)
    if other is not None:
        kind = "a layout" if name in model.layouts else "a choice"
        message = f'"{name}" is {kind}, but an enum is needed here'
        help = f"it is declared at {other.span}"
        yield Diagnostic("C012", message, where, "not an enum", help)
        return
    help = unknown(name, model.enums)
    yield Diagnostic("C012", f'unknown enum "{name}"', where, "not declared", help)


def _check_enums(layout: Layout, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each enum that a field or bit member names and that is not declared,
    and for each value under ``only`` that its enum lacks or that is listed twice. ``only`` is not
    checked for an unknown enum.
    """
    for thing, name, only in enum_uses(layout):
        yield from _check_enum_known(name, place(thing, "enum"), model)
        enum = model.enums.get(name)
        if enum is None:
            continue
        for i, word in enumerate(only or ()):
            where = thing.places.get(f"only.{i}", place(thing, "only"))
            yield from check_value_known(word, enum, where)
            if word in (only or ())[:i]:
                yield Diagnostic("C008", f'"{word}" is listed twice', where)


def _check_field_known(word: str, layout: Layout, where: Span) -> Iterator[Diagnostic]:
    """Yield a diagnostic at ``where`` unless ``word`` is a field of the layout or a value from
    outside that it is given. Its help is the closest name, or a list of names.
    """
    spans = field_spans(layout)
    if word not in spans:
        message = f'"{layout.name}" has no field "{word}"'
        yield Diagnostic("C014", message, where, "not a field", hint(word, spans))


def _check_count(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the ``count`` of an array names no field of the layout and no value
    from outside, or a value from outside that is no integer or has an enum. Yield nothing for other
    fields, and for an array that ``counts`` of another field names.
    """
    if not isinstance(f.type, ArrayType) or f.type.counted_by is None or "count" not in f.places:
        return
    where, name = place(f, "count"), f.type.counted_by
    found = value_of(layout, name)
    if found is None:
        yield from _check_field_known(name, layout, where)
    elif found.is_given and not _is_plain_integer(found):
        message = f'"{name}" is no integer: it cannot be a number of elements'
        yield Diagnostic("C016", message, where, help=f"it is declared at {found.span}")


def _check_size(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the length of bytes or text is a name that is neither a field of the
    layout nor an integer from outside. Also yield one if the field of this name has ``measures``
    for another range, or for exactly these bytes although their length is that field plus or minus
    a number. Yield nothing for other fields.
    """
    type_ = f.type
    if not isinstance(type_, BytesType) or type_.sized_by is None:
        return
    where, name = place(f, "string" if type_.text else "bytes"), type_.sized_by
    found = value_of(layout, name)
    if found is None:
        yield from _check_field_known(name, layout, where)
    elif found.is_given and not _is_plain_integer(found):
        message = f'"{name}" is no integer: it cannot be a number of bytes'
        yield Diagnostic("C016", message, where, help=f"it is declared at {found.span}")
    elif not found.is_given and (
        found.measures is None or (found.measures.first, found.measures.last) != (f.name, f.name)
    ):
        message = f'"{name}" is the length of something else already'
        yield Diagnostic("C016", message, where, help=f"see {place(found, 'measures')}")
    elif not found.is_given and found.excess != type_.plus:
        message = (
            f'"{name}" has `measures`, so it is the number of these bytes, no more and no less'
        )
        help_ = f"remove `measures` at {place(found, 'measures')}"
        yield Diagnostic("C016", message, where, help=help_)


def _is_plain_integer(f: Field) -> bool:
    """Return whether a value from outside is an integer without an enum."""
    return isinstance(f.type, ScalarType) and f.type.enum is None and f.type.name != "bool"


def _check_counts(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each name under ``counts`` of a field that is no field of the layout,
    not an array, or listed twice. Yield nothing without ``counts``.
    """
    if not f.counts:
        return
    arrays = {g.name: g.span for g in layout.fields if isinstance(g.type, ArrayType)}
    for i, name in enumerate(f.counts):
        target = field_of(layout, name)
        where = f.places.get(f"counts.{i}", place(f, "counts"))
        if target is None:
            message = f'"{layout.name}" has no array "{name}"'
            yield Diagnostic(
                "C014", message, where, "not an array", hint(name, arrays, "arrays here")
            )
        elif name not in arrays:
            message = f'"{f.name}" counts the elements of "{name}", which is not an array'
            yield Diagnostic("C016", message, where, help=f'"{name}" is at {target.span}')
        elif name in f.counts[:i]:
            yield Diagnostic("C008", f'"{name}" is listed twice', where)


def _check_codecs(f: Field, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each codec under ``except`` or ``variants`` of a compressed array that
    is no value of its enum, and for each variant of writing or reading that the codec does not
    have. Variants are not checked for a name that is no codec. Yield nothing for other fields, and
    if the enum is unknown.
    """
    compression = f.type.compression if isinstance(f.type, ArrayType) else None
    if compression is None:
        return
    enum = model.enums.get(compression.enum)
    if enum is None:
        return
    for i, word in enumerate(compression.excluded):
        where = compression.places.get(f"except.{i}", place(f, "compressed"))
        yield from check_value_known(word, enum, where)
    for word, _, write, read in compression.variants:
        where = compression.places.get(f"variants.{word}", place(f, "compressed"))
        yield from check_value_known(word, enum, where)
        if word in CODECS:
            yield from _check_variant(
                write,
                CODECS[word].write_variants,
                f"{word} has no variant for writing called",
                where,
            )
            yield from _check_variant(
                read, CODECS[word].read_variants, f"{word} has no variant for reading called", where
            )


def _check_codec_enums(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each value of an enum that selects the codec of an array, unless a
    codec has its name or the array excludes it. Arrays with an unknown enum are skipped. A value
    comes once per array; the caller drops repeats.
    """
    for layout in model.layouts.values():
        for f in layout.fields:
            compression = f.type.compression if isinstance(f.type, ArrayType) else None
            enum = model.enums.get(compression.enum) if compression is not None else None
            for value in enum.values if enum is not None else ():
                left_out = compression is not None and value.name in compression.excluded
                if value.name not in CODECS and not left_out:
                    known = ", ".join(sorted(CODECS))
                    help = f"known: {known}; the array at {f.span} is compressed with it"
                    message = f'no codec is called "{value.name}"'
                    yield Diagnostic("C023", message, value.span, help=help)


def _check_variant(
    name: str, known: tuple[str, ...], what: str, where: Span
) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless ``name`` is in ``known``, the variants of a codec. ``what``
    describes it in messages.
    """
    if name not in known:
        help = f"known: {', '.join(known)}" if known else "it has no variants"
        yield Diagnostic("C023", f'{what} "{name}"', where, help=help)


def _check_derived_arrays(layout: Layout) -> Iterator[Diagnostic]:
    """Yield one diagnostic for each array that derived values name and that is no field of the
    layout, or is a field but not an array.
    """
    seen = set()
    for d in layout.derived:
        if d.array is None or d.array in seen:
            continue
        seen.add(d.array)
        field = field_of(layout, d.array)
        arrays = {f.name: f.span for f in layout.fields if isinstance(f.type, ArrayType)}
        if field is None:
            message = f'"{d.name}" is derived for elements of "{d.array}", but "{layout.name}" has no such array'
            yield Diagnostic(
                "C014", message, place(d, "array"), help=hint(d.array, arrays, "arrays here")
            )
        elif d.array not in arrays:
            message = f'"{d.name}" is derived for elements of "{d.array}", which is not an array'
            help = f'"{d.array}" is at {field.span}'
            yield Diagnostic("C014", message, place(d, "array"), help=help)


def _check_overhead(overhead: Overhead, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each column of an overhead table that names an unknown layout, or an
    unknown array or field of it.
    """
    for column in overhead.columns:
        yield from check_layout_known(column.layout, model)
        layout = model.layouts.get(column.layout.layout)
        if layout is not None:
            yield from _check_column(column, layout, model)


def _check_column(column: OverheadOf, layout: Layout, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a column of an overhead table names an ``array`` that the layout lacks,
    or a field (``sizes``, ``number``) that the layout, or the layout of the array's elements,
    lacks. Yield nothing about fields if the array is wrong, or its elements are no known layout.
    """
    message: Layout | None = layout
    if column.array is not None:
        array = field_of(layout, column.array)
        where = place_of(column, "array")
        if array is None or not isinstance(array.type, ArrayType):
            spans = {f.name: f.span for f in layout.fields if isinstance(f.type, ArrayType)}
            text = f'"{layout.name}" has no array "{column.array}"'
            help = hint(column.array, spans, "arrays here")
            yield Diagnostic("C014", text, where, "not an array", help)
            return
        ref = reference_of(array)
        message = model.layouts.get(ref.layout) if ref is not None else None
    if message is None:
        return
    for name in column.sizes:
        yield from _check_field_known(name, message, place_of(column, f"each.{name}"))
    if column.number is not None:
        yield from _check_field_known(column.number, message, place_of(column, "number"))


def place_of(column: OverheadOf, key: str) -> Span:
    """Return the place of a key of an overhead column, or of the column's layout if the key is missing."""
    return column.places.get(key, column.layout.span)


def _check_choice(choice: Choice, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a case of a choice names neither a layout nor a choice, a value from
    outside (``given``) names an unknown enum, or a case is no value of that enum, no number of the
    given type, or no value of the field ``by``, which must be in all cases.
    """
    for _, ref in choice.named:
        if ref.layout not in model.choices:
            yield from check_layout_known(ref, model)
    for f in choice.outer:
        if isinstance(f.type, ScalarType) and f.type.enum is not None:
            yield from _check_enum_known(f.type.enum, place(f, "enum"), model)
    if choice.given is not None:
        enum = model.enums.get(choice.given)
        for key, ref in choice.named:
            where = choice.places.get(f"cases.{key}", ref.span)
            if isinstance(key, int):
                message = f"{key} is a number: the cases are values of an enum"
                help = _enum_value_help(key, enum)
                yield Diagnostic("C012", message, where, help=help)
            elif enum is not None:
                yield from check_value_known(key, enum, where)
    for key, ref in choice.named if choice.given_type is not None else ():
        where = choice.places.get(f"cases.{key}", ref.span)
        reach = integer_range(choice.given_type or "")
        if isinstance(key, str):
            message = f'"{key}" is not a number: the cases are numbers of type {choice.given_type}'
            yield Diagnostic("C012", message, where)
        elif reach is not None:
            yield from check_reach(key, choice.given_type or "", reach, where)
    if choice.by is not None:
        yield from _check_by(choice, choice.by, model)


def _enum_value_help(number: int, enum: Enum | None) -> str:
    """Return help that names the enum value with a number, or ``""`` if there is none."""
    found = next((v.name for v in enum.values if v.value == number), "") if enum is not None else ""
    return f'write "{found}"' if found else ""


def _check_by(choice: Choice, by: str, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each case that is text but no value of the enum of the field ``by``,
    also if the field has no known enum. Yield one more that lists the layouts of cases without a
    field ``by``. Cases that are numbers are not compared with the field.
    """
    for key, ref in choice.named:
        layout = model.layouts.get(first_layout(ref, model.choices))
        if isinstance(key, str):
            where = choice.places.get(f"cases.{key}", ref.span)
            field = None if layout is None else field_of(layout, by)
            enum = model.enums.get(str(getattr(field and field.type, "enum", "")))
            if enum is not None:
                yield from check_value_known(key, enum, where)
                continue
            message = f'"{key}" is not a number: the cases are numbers that "{by}" can have'
            yield Diagnostic("C012", message, where)
    missing = [
        layout.name
        for _, ref in choice.cases
        if (layout := model.layouts.get(ref.layout)) is not None and field_of(layout, by) is None
    ]
    if missing:
        some = next(
            model.layouts[ref.layout] for _, ref in choice.cases if ref.layout == missing[0]
        )
        names = ", ".join(f'"{name}"' for name in dict.fromkeys(missing))
        message = f'`by` is a field of every case, but {names} has no field "{by}"'
        help = hint(by, field_spans(some))
        yield Diagnostic("C014", message, place(choice, "by"), help=help)
