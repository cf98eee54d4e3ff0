"""Check values from outside: whoever holds a layout gives it each value that it declares, of the right type."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.check.expressions import check_ages
from codecgen.diagnostics import Diagnostic, Span, unique
from codecgen.plan.as_of import inherit_since
from codecgen.plan.nodes import FieldValue, Value
from codecgen.plan.resolve import Resolver
from codecgen.plan.scope import Scope
from codecgen.plan.type_text import given_type_words
from codecgen.plan.types import Type, scalar_type
from codecgen.plan.value_ranges import exact_range
from codecgen.schema.expression import Expression
from codecgen.schema.lookup import choice_of, given_of, integer_range, reference_of, versions_of
from codecgen.schema.model import Choice, Field, Layout, Model, View
from codecgen.schema.types import ArrayType, BytesType, Element, ScalarType
from codecgen.spans import expression_span, hint, place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield diagnostics about values from outside, which the holder of a layout or choice gives it
    (``given``). A field gives too few, unknown or wrongly typed ones. A choice lacks those that its
    cases need, or is decided by a boolean. A view or tagged field, which cannot give any, holds a
    layout that needs them.
    """
    for layout in model.layouts.values():
        found: list[Diagnostic] = []
        for i, f in enumerate(layout.fields):
            found += _check_field(f, layout, model)
            for version in versions_of(layout, f.versions):
                since = inherit_since(f.since, layout.since)
                found += _check_values(
                    f, Scope(model, layout, version, before=i, owner=f.name, since=since)
                )
        yield from unique(found)
    for choice in model.choices.values():
        yield from unique(_check_choice(choice, model))
    for view in model.views.values():
        yield from _check_view(view, model)


def _check_choice(choice: Choice, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the value that decides is a boolean, and for each value from outside
    that the layout of a case needs and the choice does not have, or has with another type. Layouts
    that are not declared are skipped.
    """
    known = {f.name: f for f in choice.outer}
    if choice.given_type == "bool":
        message = (
            f'"{choice.decider}" is true or false: what decides is a number or a value of an enum'
        )
        yield Diagnostic("C071", message, known[choice.decider or ""].span)
    for _, ref in choice.cases:
        held = model.layouts.get(ref.layout)
        for f in held.given if held is not None else ():
            own = known.get(f.name)
            if own is None:
                message = f'"{ref.layout}" needs the value "{f.name}", but "{choice.name}" is not given it'
                help = f"write it under `given` of the choice too; it is declared at {f.span}"
                yield Diagnostic("C071", message, ref.span, help=help)
            elif own.type != f.type:
                message = f'"{f.name}" has another type in "{ref.layout}"'
                yield Diagnostic("C071", message, own.span, help=f"it is declared at {f.span}")


def _check_view(view: View, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each layout of a view's entries or payload parts that needs values
    from outside, and for each choice that needs some besides its discriminator: a view cannot give
    them. Unknown names are skipped.
    """
    for key, name in (("of", view.of), *((f"of.{k}", v) for k, v in view.parts.items())):
        layout, choice = model.layouts.get(name), model.choices.get(name)
        given = layout.given if layout is not None else ()
        if choice is not None:
            given = tuple(f for f in choice.outer if f.name != choice.decider)
        if given:
            yield _reject(name, given, f'an entry of the view "{view.name}"', place(view, key))


def _reject(name: str, given: tuple[Field, ...], what: str, where: Span) -> Diagnostic:
    """Return the diagnostic that the layout or choice ``name`` needs the values ``given`` from
    outside, and ``what``, such as a view, cannot give them.
    """
    names = ", ".join(f'"{f.name}"' for f in given)
    message = f'"{name}" needs the values {names}, and {what} cannot give them'
    help = "hold it in a field, or in an array, which gives them: `given: {..}`"
    return Diagnostic("C071", message, where, help=help)


def _check_field(f: Field, layout: Layout, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each name under ``given`` of a field that the held layout or choice
    does not declare, and for each declared one that is missing. The discriminator of a choice may
    be missing. Yield only one if a field without a layout, or with a layout declared in place, has
    ``given``, or if a tagged field would have to give values. Yield nothing if the layout or choice
    is unknown.
    """
    given = {name: _place_of(f, name) for name, _ in f.gives}
    choice = choice_of(f)
    held: Layout | Choice | None
    if choice is not None:
        held = model.choices.get(choice.choice)
        where = choice.span
    else:
        ref = reference_of(f)
        held = None if ref is None else model.layouts.get(ref.layout)
        where = f.span if ref is None else ref.span
        if ref is None and given:
            message = f'"given" is only for a layout, a choice or an array of them, which "{f.name}" is not'
            yield Diagnostic("C071", message, place(f, "given"))
    if held is None:
        return  # reported elsewhere
    if given and isinstance(held, Layout) and held.is_local:
        message = f'the fields of "{f.name}" are declared in place, and are given no values'
        help = "give the layout a name, and declare the values there"
        yield Diagnostic("C071", message, place(f, "given"), help=help)
        return
    declared = held.given if isinstance(held, Layout) else held.outer
    deciding = None if isinstance(held, Layout) else held.decider
    if f.tag is not None and any(one.name != deciding for one in declared):
        yield _reject(held.name, declared, f'the tagged field "{f.name}"', where)
        return
    wanted = {one.name: one.span for one in declared}
    for name, where in given.items():
        if name not in wanted:
            message = f'"{held.name}" takes no value "{name}"'
            help = (
                hint(name, wanted) or f"declare it there: `given: {{{name}: bool}}` ({held.span})"
            )
            yield Diagnostic("C071", message, where, help=help)
    for name, span in wanted.items():
        if name not in given and name != deciding:
            message = f'"{held.name}" needs the value "{name}", but "{f.name}" does not give it'
            help = f"write `given: {{{name}: ..}}` with an expression; it is declared at {span}"
            yield Diagnostic("C071", message, place(f, "given") if given else where, help=help)


def _place_of(f: Field, name: str) -> Span:
    """Return the place of a value that a field gives."""
    return f.places.get(f"given.{name}", f.places.get(f"array.given.{name}", f.span))


def _check_values(f: Field, scope: Scope) -> Iterator[Diagnostic]:
    """Yield diagnostics unless each value that a field gives resolves and has the type that the
    held layout or choice declares for its name. Names that are not declared, and the discriminator
    of a choice, are skipped. ``scope`` has the names that the expressions can use.
    """
    choice = scope.model.choices.get(getattr(choice_of(f), "choice", ""))
    declared = {
        one.name: one
        for one in given_of(f, scope.model)
        if choice is None or one.name != choice.decider
    }
    for name, value in f.gives:
        if name in declared:
            yield from _check_value(value, declared[name], scope)


def _check_value(value: Expression, declared: Field, scope: Scope) -> Iterator[Diagnostic]:
    """Yield diagnostics about names in an expression that do not exist, or only since a later
    release. Also yield one if its type or enum is not the declared one, it may be null, its
    integers can be outside the range of the declared type, or it is an array with other elements.
    ``scope`` has the names that the expression can use; ``declared`` is the value as the held
    layout declares it.
    """
    array = isinstance(declared.type, ArrayType)
    wanted = scalar_type(declared.type) if isinstance(declared.type, ScalarType) else Type("array")
    resolver = Resolver(value, scope)
    found = resolver.resolve(wanted.enum)
    yield from resolver.found
    yield from check_ages(resolver)
    if found is None:
        return
    where = expression_span(scope.model, value)
    help = f"it is declared at {declared.span}"
    type_ = found.type
    if (type_.kind, type_.enum) != (wanted.kind, wanted.enum):
        message = f'"{declared.name}" needs {wanted}, but is given {type_}'
        yield Diagnostic("C071", message, where, help=help)
    elif type_.nullable:
        message = f'"{declared.name}" may be null here: a layout is given values, not null'
        yield Diagnostic(
            "C071",
            message,
            where,
            help="" if array else "say what stands for null: `if x == null then -1 else x`",
        )
    elif array:
        yield from _check_elements(found, declared, where)
    elif isinstance(declared.type, ScalarType) and wanted.kind == "int":
        low, high = exact_range(found)
        minimum, maximum = integer_range(declared.type.name) or (low, high)
        if low < minimum or high > maximum:
            message = f'"{declared.name}" is {declared.type.name}, and numbers from {low} to {high} are given'
            yield Diagnostic("C071", message, where, help=help)


def _check_elements(found: Value, declared: Field, where: Span) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless the array that is given is a field whose elements are of the
    declared kind, are never null and, if integers, fit the declared type. Raise AssertionError if
    ``declared`` is no array, which the caller excludes.
    """
    assert isinstance(declared.type, ArrayType)
    types = found.field.all_types() if isinstance(found, FieldValue) else ()
    elements = [type_.element for type_ in types if isinstance(type_, ArrayType)]
    if elements and all(_is_element_accepted(one, declared.type.element) for one in elements):
        return
    message = f'"{declared.name}" needs an {given_type_words(declared)}, and the array that it is given has other elements'
    help = f"it is declared at {declared.span}; elements are plain and never null"
    yield Diagnostic("C071", message, where, help=help)


def _is_element_accepted(element: Element, declared: Element) -> bool:
    """Return whether an array with elements of type ``element`` can be given where one of
    ``declared`` is. Text goes for text, bytes for bytes, and integers for integers of the same or a
    larger range. False for elements that may be null, for values of an enum, and for all other
    types.
    """
    match element, declared:
        case BytesType(text=text, null=null), BytesType(text=wanted):
            return text == wanted and null is None
        case ScalarType(name, enum), ScalarType(wanted):
            own, other = integer_range(name), integer_range(wanted)
            if own is None or other is None or enum is not None:
                return False
            return other[0] <= own[0] and own[1] <= other[1]
    return False
