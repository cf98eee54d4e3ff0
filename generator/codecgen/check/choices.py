"""Check choices: their discriminators, their cases, choices in layouts, and choices within choices."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.check.expressions import check_ages
from codecgen.diagnostics import Diagnostic, Span, unique
from codecgen.plan import LayoutPlan, Plan, make_plan
from codecgen.plan.as_of import inherit_since
from codecgen.plan.resolve import Resolver
from codecgen.plan.scope import Scope
from codecgen.plan.types import Type
from codecgen.schema.expression import Expression
from codecgen.schema.key_types import MAX_CASES
from codecgen.schema.lookup import choice_of, has_byte_order, versions_of
from codecgen.schema.model import Choice, Enum, Field, Layout, Model
from codecgen.schema.nested_choices import can_nest, has_same_discriminator
from codecgen.schema.scalars import INTEGERS, VARINTS
from codecgen.schema.types import ChoiceType, Reference, ScalarType, choosing, held_layouts
from codecgen.spans import expression_span, place, version_place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a choice has no cases (nothing more then) or has a case twice. For a
    choice that is given an enum value, also report values without a case, unless its ``doc``
    mentions them. The version field of a layout, and the field ``by`` of a choice, must be an
    integer of one type at one fixed position in all versions and cases. Mistakes in that are
    reported once per id and place. Raise ValueError if an expression is invalid, and KeyError if
    the enum is unknown; passes before this one report both.
    """
    plan = make_plan(model)
    for layout in model.layouts.values():
        if layout.version_is is not None:
            plans = [(p, version_place(layout)) for p in plan.versions[layout.name]]
            yield from unique(_check_position(layout.version_is, plans))
    for choice in model.choices.values():
        if not choice.named:
            yield Diagnostic("C017", f'"{choice.name}" has no cases', place(choice, "cases"))
            continue
        yield from _check_duplicates(choice)
        if choice.by is not None:
            yield from unique(
                _check_position(choice.by, list(_iterate_cases(choice, plan)), varints=True)
            )
        elif choice.given is not None:
            yield from _check_complete(choice, model.enums[choice.given])


def _iterate_cases(choice: Choice, plan: Plan) -> Iterator[tuple[LayoutPlan, Span]]:
    """Yield the plan of each version that a case of the choice can have, with the place of the
    case.
    """
    for _, ref in choice.cases:
        for p in plan.of(ref):
            yield p, ref.span


def _check_duplicates(choice: Choice) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each case whose key an earlier case of the choice has."""
    keys = [key for key, _ in choice.named]
    for i, (key, ref) in enumerate(choice.named):
        if key in keys[:i]:
            yield Diagnostic("C008", f"case {key} is given twice", ref.span)


def _check_position(
    by: str, plans: list[tuple[LayoutPlan, Span]], *, varints: bool = False
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each plan in which the field ``by`` is missing, is not an integer, has
    a ``when`` or no fixed offset, or differs in offset, type or byte order from the first valid
    plan. Varints count as integers only if ``varints``. ``plans`` have the place at which each is
    reported.
    """
    allowed = (*INTEGERS, *VARINTS) if varints else INTEGERS
    what = "an integer" if varints else "an integer of fixed size"
    first: tuple[int, str, LayoutPlan] | None = None
    for plan, where in plans:
        name = _layout_name(plan.layout, plan.version)
        fp = plan.field(by)
        if fp is None:
            yield Diagnostic("C020", f'"{by}" is not there in {name}', where)
            continue
        if not isinstance(fp.field.type, ScalarType) or fp.field.type.name not in allowed:
            message = f'"{by}" is not {what} in {name}: it cannot decide what the bytes are'
            yield Diagnostic("C021", message, where, help=f"see {fp.field.span}")
            continue
        if fp.offset is None or fp.field.when is not None:
            message = f'"{by}" must be at a fixed byte in all cases, but is not in {name}'
            yield Diagnostic("C021", message, where, help=f"see {fp.field.span}")
            continue
        type_ = fp.field.type.name
        if has_byte_order(fp.field):
            type_ += f", {fp.field.endian} endian"
        if first is None:
            first = (fp.offset, type_, plan)
            continue
        other = _layout_name(first[2].layout, first[2].version)
        if fp.offset != first[0]:
            message = f'"{by}" is at byte {fp.offset} in {name}, but at byte {first[0]} in {other}; all cases need it at the same byte'
            yield Diagnostic("C021", message, where, help=f"see {fp.field.span}")
        elif type_ != first[1]:
            message = (
                f'"{by}" is {type_} in {name}, but {first[1]} in {other}; all cases need the same'
            )
            yield Diagnostic("C021", message, where, help=f"see {fp.field.span}")


def _layout_name(layout: Layout, version: int | None) -> str:
    """Return the name of a layout with its version: ``message@1``."""
    return layout.name if version is None else f"{layout.name}@{version}"


def _check_complete(choice: Choice, enum: Enum) -> Iterator[Diagnostic]:
    """Yield one diagnostic that lists the values of ``enum`` without a case in ``choice``, except
    values whose name or spelling occurs in the choice's ``doc``, in any letter case. Yield nothing
    if none are missing.
    """
    given = {key for key, _ in choice.named}
    doc = choice.doc.lower()
    missing = [
        value.name
        for value in enum.values
        if value.name not in given
        and value.name not in doc
        and (value.spelled is None or value.spelled.lower() not in doc)
    ]
    if missing:
        words = ", ".join(f'"{name}"' for name in missing)
        message = f'"{choice.name}" has no case for {words}'
        help = f"add the cases, or name them in the `doc` of the choice if they are missing on purpose; the enum is at {enum.span}"
        yield Diagnostic("C030", message, place(choice, "cases"), help=help)


def check_uses(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a field holds a choice that is decided from outside, and its ``given``
    is missing, invalid or of the wrong type. ``given`` is not checked for a choice with ``by``, and
    for an unknown choice. Also yield one if a field's ``version`` expression is invalid or no
    number, if nothing that the field holds has versions, or if a reference in it already names one.
    Each id is reported once per place in a layout.
    """
    for layout in model.layouts.values():
        found: list[Diagnostic] = []
        for i, f in enumerate(layout.fields):
            for version in versions_of(layout, f.versions):
                one = f.in_versions((version,))
                since = inherit_since(f.since, layout.since)
                scope = Scope(model, layout, version, before=i, owner=f.name, since=since)
                choice = choice_of(one)
                if choice is not None and choice.choice in model.choices:
                    found += _check_given(one, choice, scope)
                if choosing(one.type)[1] is not None:
                    found += _check_version(one, layout, scope)
        yield from unique(found)


def _check_given(f: Field, type_: ChoiceType, scope: Scope) -> Iterator[Diagnostic]:
    """Yield a diagnostic if ``given`` of a field that holds a choice is missing, is invalid, names
    something newer than the field, or is not of the choice's enum. Without an enum it must be an
    integer or enum value. Yield nothing if a field of the choice's own cases decides (``by``).
    ``scope`` has the names that ``given`` can use. Raise KeyError if the choice is not declared.
    """
    choice = scope.model.choices[type_.choice]
    where = type_.span
    if choice.by is not None:
        return
    wanted = f'a value of the enum "{choice.given}"' if choice.given else "a number"
    if type_.given is None:
        message = f'nothing decides which case of "{choice.name}" it is'
        help = (
            f"write `given: {{{choice.decider}: ..}}` with {wanted}; the choice is at {choice.span}"
        )
        yield Diagnostic("C054", message, where, help=help)
        return
    found: list[Diagnostic] = []
    given = _resolve_type(type_.given, scope, found, choice.given)
    yield from found
    if given is None:
        return
    fits = given.enum == choice.given if choice.given else given.kind in ("int", "enum")
    if not fits:
        message = f'"{choice.name}" is chosen by {wanted}, not by {given}'
        place = expression_span(scope.model, type_.given)
        yield Diagnostic("C054", message, place, help=f"the choice is at {choice.span}")


def _check_version(f: Field, layout: Layout, scope: Scope) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the ``version`` expression of a field, which must have one, does not
    resolve, names something newer than the field, or is not an integer; if no held layout has
    versions; and for each reference such as ``name@3`` that fixes one version of a layout without a
    version field. Unknown layouts are skipped. ``scope`` has the model, and the names that the
    expression can use.
    """
    expression = choosing(f.type)[1]
    assert expression is not None
    found: list[Diagnostic] = []
    value = _resolve_type(expression, scope, found)
    yield from found
    where = expression_span(scope.model, expression)
    if value is not None and value.kind != "int":
        message = f'`version` of "{f.name}" needs a number, but its value is {value}'
        yield Diagnostic("C055", message, where, help="name an integer field in front of it")
    held = [ref for ref in held_layouts(f.type) if ref.layout in scope.model.layouts]
    with_versions = [ref for ref in held if scope.model.layouts[ref.layout].versions is not None]
    if held and not with_versions:
        message = f'nothing that "{f.name}" holds has versions'
        yield Diagnostic("C055", message, where, help=_take_out_help(held, scope.model))
    for ref in with_versions:
        if ref.version is not None and scope.model.layouts[ref.layout].version_is is None:
            message = f'`version` of "{f.name}" selects a version, but "{ref}" already names one'
            yield Diagnostic("C055", message, _reference_span(ref, f), help=f'write "{ref.layout}"')


def _reference_span(ref: Reference, f: Field) -> Span:
    """Return the place of the reference ``ref``; that of the field ``f`` if it holds a choice, of
    which ``ref`` is a case.
    """
    return ref.span if choice_of(f) is None else f.span


def _take_out_help(held: list[Reference], model: Model) -> str:
    """Return the help for a field with ``version`` whose held layouts have no versions: take
    ``version`` out, or give ``versions`` to the layout of the first reference in ``held``, which
    must not be empty.
    """
    layout = model.layouts[held[0].layout]
    return f'take out "version", or give "{layout.name}" `versions` ({layout.span})'


def _resolve_type(
    expression: Expression, scope: Scope, found: list[Diagnostic], enum: str | None = None
) -> Type | None:
    """Return the type of an expression, or None if it does not resolve. A single word is a value of
    ``enum`` if the enum has it. Append to ``found`` the diagnostics of the resolution (none if
    another diagnostic covers the cause), and one for each name newer than the owner of the
    expression. ``scope`` has the names that the expression can use.
    """
    resolver = Resolver(expression, scope)
    value = resolver.resolve(enum)
    found += resolver.found
    found += check_ages(resolver)
    return None if value is None else value.type


def check_nested(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a case that is a choice itself has a version, contains the outer
    choice, is decided from outside by another value, or has the same discriminator and lacks the
    case's key. Also yield one if a choice has more than ``MAX_CASES`` cases after its nested
    choices are replaced by their cases.
    """
    for choice in model.choices.values():
        reported: set[Span] = set()
        for key, ref in choice.named:
            inner = model.choices.get(ref.layout)
            if (
                inner is not None
                and (found := _find_nested_mistake(choice, key, ref, inner, model)) is not None
            ):
                if ref.span not in reported:
                    yield found
                reported.add(ref.span)
        if len(choice.cases) > MAX_CASES:
            message = f'"{choice.name}" comes down to more than {MAX_CASES} cases'
            yield Diagnostic("C006", message, place(choice, "cases"))


def _find_nested_mistake(
    choice: Choice, key: int | str, ref: Reference, inner: Choice, model: Model
) -> Diagnostic | None:
    """Return the first diagnostic for the case ``ref``, which is the choice ``inner``: it has a
    version, contains ``choice`` again, is decided from outside by another value than ``choice``, or
    has the same discriminator and no case for ``key``. Return None if it is valid; an inner choice
    may be decided by any field.
    """
    if ref.version is not None:
        message = f'"{inner.name}" is a choice, which has no versions'
        return Diagnostic("C020", message, ref.span, help=f'write "{inner.name}"')
    way = _find_way_back(choice.name, inner.name, model)
    if way:
        message = " holds ".join(f'"{name}"' for name in way)
        help = "replace one of these cases by a layout"
        return Diagnostic("C019", f"{message}, without end", ref.span, help=help)
    if not can_nest(choice, inner):
        message = f'nothing decides which case of "{inner.name}" it is'
        help = f'"{inner.name}" is chosen by {_describe_decider(inner)}, "{choice.name}" by {_describe_decider(choice)}'
        return Diagnostic("C054", message, ref.span, help=f"{help} ({inner.span})")
    if has_same_discriminator(choice, inner) and key not in {key for key, _ in inner.named}:
        message = f'"{inner.name}" has no case for {key}'
        return Diagnostic("C054", message, ref.span, help=f"the choice is at {inner.span}")
    return None


def _describe_decider(choice: Choice) -> str:
    """Return the discriminator of a choice in words: ``the field ".."``, ``the enum ".."``, or ``a
    number``.
    """
    if choice.by is not None:
        return f'the field "{choice.by}"'
    return f'the enum "{choice.given}"' if choice.given is not None else "a number"


def _find_way_back(start: str, name: str, model: Model) -> list[str]:
    """Return the names of the choices on a shortest way from ``start`` through ``name`` back to
    ``start``, with ``start`` first and last. Return ``[]`` if there is no such way. Raise KeyError
    if ``name`` is no choice.
    """
    came_from: dict[str, str] = {name: start}
    todo = [name]
    while todo:
        name = todo.pop(0)
        if name == start:
            way = [start]
            while len(way) == 1 or way[-1] != start:
                way.append(came_from[way[-1]])
            return way[::-1]
        for _, ref in model.choices[name].named:
            if ref.layout in model.choices and ref.layout not in came_from:
                came_from[ref.layout] = name
                todo.append(ref.layout)
    return []
