"""Check views of payloads: the parts are decided, their rows can occur, and the columns have values."""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from codecgen.check import view_columns
from codecgen.check.views import check_value_type, check_values
from codecgen.diagnostics import Diagnostic, unique
from codecgen.plan import Plan, make_plan
from codecgen.plan.constant_folding import as_truth, is_known
from codecgen.plan.payloads import (
    PartKind,
    iterate_combinations,
    matches_parts,
    part_kinds,
    part_scopes,
)
from codecgen.plan.resolve_views import (
    ViewResolver,
    find_rows_array,
    payload_scope,
    resolve_condition_of_rows,
    scope_under_condition,
)
from codecgen.schema.lookup import all_versions, field_of
from codecgen.schema.model import Choice, Layout, Model, Rows, View
from codecgen.schema.nested_choices import inner_choices
from codecgen.schema.types import ArrayType, ScalarType
from codecgen.spans import hint, place

_TAKEN = frozenset(
    {
        *("item", "row", "entry", "place", "part", "first", "last", "max", "min", "version"),
        *("bool", "int", "tuple", "wrap", "end_of", "value_at", "plus", "minus", "ordered"),
        *("bits_of", "null", "true", "false", "and", "or", "not", "if", "then", "else"),
    }
)
"""What parts cannot be called: it means something in expressions, or in the code that is generated."""


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield diagnostics about views over payloads (views with ``parts``): bad names, unknown or
    undecidable parts, and, if these are fine, rows with wrong parts, arrays, columns or conditions.
    Views over entries are skipped. Raise ValueError if an expression of a layout is invalid, which
    passes before this one report.
    """
    plan = None
    for view in model.views.values():
        if not view.parts:
            continue
        found = [*view_columns.check_names(view), *_check_parts(view, model)]
        if not found:
            plan = plan or make_plan(model)
            for rows in view.rows:
                found += _check_rows(rows, view, plan)
        yield from unique(found)


def _check_parts(view: View, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each part with a reserved name, of an unknown layout or choice,
    decided by a second field, decided by nothing before it or by a field of another enum, with a
    choice inside its choice, or with a layout whose bytes do not give its version.
    """
    kinds = part_kinds(model, view)
    deciders = [kind for kind in kinds if kind.decides]
    for i, kind in enumerate(kinds):
        where = place(view, f"of.{kind.name}")
        if kind.name in _TAKEN or keyword.iskeyword(kind.name):
            message = f'"{kind.name}" has a meaning of its own in the generated code'
            yield Diagnostic("C027", message, where, help="give the part another name")
        if kind.choice is None and kind.of not in model.layouts:
            if not model.is_broken(kind.of):
                message = f'unknown choice or layout "{kind.of}"'
                declared: list[Layout | Choice] = [*model.layouts.values(), *model.choices.values()]
                help = hint(kind.of, {thing.name: thing.span for thing in declared})
                yield Diagnostic("C012", message, where, help=help)
        elif kind.decides and kind is not deciders[0]:
            message = f'"{deciders[0].name}" decides what the payload is: "{kind.of}" is a second choice by a field'
            help = "one of them is a layout, or a choice that is `given` what the other one has"
            yield Diagnostic("C059", message, where, help=help)
        elif kind.choice is not None and not kind.decides:
            if not any(before.decides for before in kinds[:i]):
                message = f'nothing before "{kind.name}" decides which layout of "{kind.of}" it is'
                help = f"a part before it is a choice by a field whose values are those of {kind.choice.given or kind.choice.given_type}"
                yield Diagnostic("C059", message, where, help=help)
            else:
                yield from _check_same_enum(deciders[0], kind, model, view)
        nested = inner_choices(kind.choice)
        if kind.choice is not None and nested:
            message = f'"{nested[0]}" is a choice in "{kind.of}": one number tells the layouts of a part apart'
            help = f'write `{kind.name}: {nested[0]}` in `of` for a view of these layouts only, or replace "{nested[0]}" by one layout in "{kind.of}" ({kind.choice.span})'
            yield Diagnostic("C059", message, where, help=help)
            continue
        for name in sorted(_layouts_of(kind)):
            layout = model.layouts.get(name)
            refs = [ref for ref in kind.cases.values() if ref.layout == name]
            open_ = not refs or any(ref.version is None for ref in refs)
            if layout and open_ and layout.version_is is None and len(all_versions(layout)) > 1:
                message = f'the bytes of "{name}" do not contain their version'
                help = "give it a field that says so: `version: {type: .., is: version}`"
                if kind.choice is not None:
                    help += f", or name one in the choice: {name}@{all_versions(layout)[-1]}"
                yield Diagnostic("C059", message, where, help=help)


def _layouts_of(kind: PartKind) -> set[str]:
    """Return the names of the layouts that a part can have: its own, or those of the cases of its
    choice.
    """
    if kind.choice is None:
        return {kind.of}
    return {ref.layout for _, ref in kind.choice.cases}


def _check_same_enum(
    decider: PartKind, kind: PartKind, model: Model, view: View
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a layout of the deciding part has a discriminator of another enum than
    the one ``kind``'s choice is given. Only the first is reported. Nothing is reported if either
    has no enum. Raise AssertionError if one of the parts is no choice, which the caller excludes.
    """
    assert decider.choice is not None and kind.choice is not None
    for name in sorted(_layouts_of(decider)):
        f = field_of(model.layouts[name], decider.choice.by or "")
        enum = f.type.enum if f is not None and isinstance(f.type, ScalarType) else None
        given = kind.choice.given
        if enum is not None and given is not None and enum != given:
            message = f'"{kind.of}" is chosen by a value of the enum "{given}", but "{decider.choice.by}" has the enum "{enum}"'
            help = f'name a choice `given` the enum "{enum}", or a layout'
            yield Diagnostic("C059", message, place(view, f"of.{kind.name}"), help=help)
            return


def _check_rows(rows: Rows, view: View, plan: Plan) -> Iterator[Diagnostic]:
    """Yield a diagnostic if rows name no parts, have ``header_only``, ``full_check`` or ``write``
    (not for payloads), or name an unknown part or a layout that the part never has. Rows with valid
    parts are checked further by ``_check_occurrence``.
    """
    model = plan.model
    if not rows.parts:
        known = ", ".join(f"{name}: .." for name in view.parts)
        message = "rows of payloads say what each part is"
        help = f"write `of: {{{known}}}` with the layout of each part"
        yield Diagnostic("C059", message, place(rows, "of"), help=help)
        return
    for key, there in (
        ("header_only", rows.header_only),
        ("full_check", rows.full_check is not None),
        ("write", rows.write is not None),
    ):
        if there:
            message = f"rows of payloads have no `{key}`"
            yield Diagnostic("C059", message, place(rows, key), help=f"leave out `{key}`")
    kinds = {kind.name: kind for kind in part_kinds(model, view)}
    wrong = False
    for name, layout in rows.parts.items():
        where = place(rows, f"of.{name}")
        if name not in kinds:
            wrong = True
            message = f'the view has no part "{name}"'
            help = f"its parts are {', '.join(kinds)}"
            yield Diagnostic("C059", message, where, help=help)
        elif layout not in _layouts_of(kinds[name]):
            wrong = True
            message = f'"{layout}" is not a layout of "{kinds[name].of}"'
            help = f"its layouts are {', '.join(sorted(_layouts_of(kinds[name])))}"
            yield Diagnostic("C060", message, where, help=help)
    if not wrong:
        yield from _check_occurrence(rows, view, plan, kinds)


def _check_occurrence(
    rows: Rows, view: View, plan: Plan, kinds: dict[str, PartKind]
) -> Iterator[Diagnostic]:
    """Yield one diagnostic and stop if no discriminator value gives the parts of the rows together.
    Otherwise yield one for each column that the view lacks, and one if ``each`` names several
    arrays, or no array of one of the parts. If ``each`` is right, check the columns and conditions
    too. ``kinds`` has the parts of the view by name.
    """
    decider = next((kind for kind in kinds.values() if kind.decides), None)
    numbers: list[int | None] = [None] if decider is None else [*decider.cases]
    found = ({n: kind.reference(number) for n, kind in kinds.items()} for number in numbers)
    if not any(matches_parts(rows, refs) for refs in found):
        pair = " and ".join(f'{name} "{layout}"' for name, layout in rows.parts.items())
        message = f"no payload has {pair} together"
        last = [*rows.parts][-1]
        yield Diagnostic(
            "C060", message, place(rows, f"of.{last}"), help=_list_companions(rows, kinds)
        )
        return
    spans = {c.name: c.span for c in view.columns}
    for name in rows.values:
        if name not in spans:
            message = f'the view has no column "{name}"'
            help = hint(name, spans)
            yield Diagnostic("C032", message, rows.places[f"columns.{name}"], help=help)
    if rows.other_arrays:
        message = "rows of a part of a payload are the elements of one array"
        yield Diagnostic("C032", message, place(rows, "each"))
        return
    if rows.each is not None:
        part, _, array = rows.each.partition(".")
        layout = plan.model.layouts.get(rows.parts.get(part, ""))
        f = None if layout is None else field_of(layout, array)
        if f is None or not isinstance(f.type, ArrayType):
            message = f'"{rows.each}" is not an array of a part of these rows'
            help = f"write a part and its array: `each: {part if part in rows.parts else next(iter(rows.parts))}.ARRAY`"
            yield Diagnostic("C032", message, place(rows, "each"), help=help)
            return
    yield from _check_columns(rows, view, plan)


def _list_companions(rows: Rows, kinds: dict[str, PartKind]) -> str:
    """Return as text which layouts the other parts can have together with the rows' layout of the
    deciding part: ``with "key", value is a or b``. Return ``""`` if no part decides or the rows do not
    name it. Parts that are no choice are left out.
    """
    decider = next((kind for kind in kinds.values() if kind.decides), None)
    if decider is None or decider.name not in rows.parts:
        return ""
    keys = [n for n, ref in decider.cases.items() if ref.layout == rows.parts[decider.name]]
    companions = []
    for kind in kinds.values():
        if kind is not decider and kind.choice is not None:
            other = {ref.layout for n in keys if (ref := kind.reference(n)) is not None}
            what = " or ".join(sorted(other)) or "nothing"
            companions.append(f'with "{rows.parts[decider.name]}", {kind.name} is {what}')
    return "; ".join(companions)


def _check_columns(rows: Rows, view: View, plan: Plan) -> Iterator[Diagnostic]:
    """Yield a diagnostic, for each combination of layouts that selects these rows, if ``when`` is
    no valid condition or a column value is invalid, of the wrong type or too wide. Skip a
    combination in which ``when`` is always false or the array of ``each`` does not exist.
    """
    for _, layouts, named in iterate_combinations(plan, view):
        if not any(one is rows for one in named):
            continue
        parts = part_scopes(plan.model, view, rows, layouts)
        scope = payload_scope(plan.model, view, rows, parts)
        if rows.when is not None:
            resolver = ViewResolver(rows.when, scope, parts)
            condition = list(check_value_type(resolver, "`when`", ("bool",), False))
            yield from condition
            resolved = resolve_condition_of_rows(rows, scope, parts)
            if condition or resolved is None or (is_known(resolved) and not as_truth(resolved)):
                continue
        part, array = find_rows_array(rows, parts)
        if rows.each is not None and (part is None or part.null or array is None):
            continue
        scope = scope_under_condition(scope, rows, parts)
        yield from check_values(
            view,
            rows,
            lambda e, s=scope, p=parts: ViewResolver(e, s, p),  # type: ignore[misc]
        )
