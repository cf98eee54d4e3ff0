"""Check recursion: layouts that contain themselves end at some depth."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic
from codecgen.runtime.located_bytes import Limits
from codecgen.schema.declarations import is_used
from codecgen.schema.lookup import choice_of, references_of
from codecgen.schema.model import Field, Layout, Model
from codecgen.schema.types import ArrayType, ChoiceType, Reference

DEEPEST = Limits().depth


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each group of layouts that contain themselves without a field that can
    end it (no ``when``, null, limited array or ending case). If there are none, yield one for the
    first layout that nests deeper than ``DEEPEST``.
    """
    ending = _ending_layouts(model)
    endless = {
        name: [f for f in layout.fields if _is_endless(f) and not _has_ending_case(f, ending)]
        for name, layout in model.layouts.items()
    }
    reported: set[str] = set()
    for layout in model.layouts.values():
        cycle = _shortest_cycle(layout.name, endless)
        if cycle and not reported & set(cycle):
            reported |= set(cycle)
            yield _endless_diagnostic(layout, cycle, endless[layout.name])
    if not reported:
        yield from _check_depth(model)


def _is_endless(f: Field) -> bool:
    """Return whether a field holds layouts and nothing in the field itself can end a recursion.
    False if it holds none, has a ``when``, is an optional struct, a choice that can be null or
    unknown, or an array with a ``nesting`` limit that can be empty. An array without such a limit
    counts as endless.
    """
    if not references_of(f) or f.when is not None or getattr(f.type, "present", None):
        return False
    choice = choice_of(f)
    if choice is not None and (choice.unknown or choice.null is not None) and choice is f.type:
        return False
    return not (isinstance(f.type, ArrayType) and f.type.nesting is not None and _can_be_empty(f))


def _can_be_empty(f: Field) -> bool:
    """Return whether a field is, in every version, an array without fixed number of elements and
    without end condition.
    """
    types = f.all_types()
    return all(isinstance(t, ArrayType) and t.fixed is None and t.until is None for t in types)


def _has_ending_case(f: Field, ending: set[str]) -> bool:
    """Return whether a field is a choice with at least one case whose layout is in ``ending`` or of
    a used directory.
    """
    return isinstance(f.type, ChoiceType) and any(_is_ending(ref, ending) for ref in f.type.layouts)


def _is_ending(ref: Reference, ending: set[str]) -> bool:
    """Return whether the layout of a reference is in ``ending``, or is of a used directory, which
    was checked on its own.
    """
    return ref.layout in ending or is_used(ref.layout)  # what is used was checked by itself


def _ending_layouts(model: Model) -> set[str]:
    """Return the names of the layouts of which every field can end: it is optional or limited in
    depth, or holds layouts that can end.
    """
    ending: set[str] = set()
    grows = True
    while grows:
        more = {
            name
            for name, layout in model.layouts.items()
            if name not in ending
            and all(not _is_endless(f) or _does_field_end(f, ending) for f in layout.fields)
        }
        grows = bool(more)
        ending |= more
    return ending


def _does_field_end(f: Field, ending: set[str]) -> bool:
    """Return whether the content of a field ends: the layout of one case of a choice, or of every
    possible element of an array or struct, is in ``ending`` or of a used directory. True for other
    fields that hold no layout.
    """
    if isinstance(f.type, ChoiceType):
        return _has_ending_case(f, ending)
    return all(_is_ending(ref, ending) for ref in references_of(f))


def _shortest_cycle(start: str, edges: dict[str, list[Field]]) -> list[str]:
    """Return the layouts on a shortest way from ``start`` back to itself along the fields in
    ``edges``, beginning with ``start`` and without repeating it. Return ``[]`` if there is none.
    The order is that in which each holds the next.
    """
    came_from: dict[str, str] = {}
    todo = [start]
    while todo:
        name = todo.pop(0)
        for ref in (ref for f in edges.get(name, ()) for ref in references_of(f)):
            if ref.layout == start:
                way = [name]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if ref.layout not in came_from:
                came_from[ref.layout] = name
                todo.append(ref.layout)
    return []


def _endless_diagnostic(layout: Layout, cycle: list[str], fields: list[Field]) -> Diagnostic:
    """Return the diagnostic about a layout that contains itself without end. It points to the
    field, one of ``fields``, that holds the next layout of ``cycle``; its help depends on whether
    that is a choice, an array or a struct. Raise IndexError if none of ``fields`` does.
    """
    following = cycle[1] if len(cycle) > 1 else cycle[0]
    refs = [(f, ref) for f in fields for ref in references_of(f) if ref.layout == following]
    f, ref = refs[0]
    way = " holds ".join(f'"{name}"' for name in [*cycle, cycle[0]])
    help = "write a `when` at the field, so that it can be missing"
    if isinstance(f.type, ChoiceType):
        help = f'add a case that does not hold "{cycle[0]}"'
    if isinstance(f.type, ArrayType):
        help = "limit how deep the array may go: `nesting: 8`"
        if not _can_be_empty(f):
            help = "write a `when` at the array, so that it can be missing: it always has elements"
    return Diagnostic("C019", f"{way}, without end", ref.span, help=help)


def _check_depth(model: Model) -> Iterator[Diagnostic]:
    """Yield one diagnostic for the first layout that nests layouts deeper than ``DEEPEST``, the
    limit of parsers. An array of layouts counts as one more level. A layout inside itself counts no
    further.
    """
    depth: dict[str, int] = {}
    for layout in model.layouts.values():
        todo = [layout.name]
        while todo:
            name = todo[-1]
            held = _held_depths(model.layouts[name], model)
            waiting = [inner for inner in held if inner not in depth and inner not in todo]
            if waiting and name not in depth:
                todo.append(waiting[0])
                continue
            todo.pop()
            depth[name] = 1 + max(
                (steps + depth.get(inner, 0) for inner, steps in held.items()), default=0
            )
        if depth[layout.name] > DEEPEST:
            message = f'layouts are nested {depth[layout.name]} deep in "{layout.name}", more than {DEEPEST}'
            help = "let fewer layouts hold each other; an array of layouts counts as two levels"
            yield Diagnostic("C026", message, layout.span, help=help)
            return


def _held_depths(layout: Layout, model: Model) -> dict[str, int]:
    """Return each declared layout that a layout holds directly, with 1 if an array holds it, else
    0: the levels to add to its own depth.
    """
    out: dict[str, int] = {}
    for f in layout.fields:
        for ref in references_of(f):
            if ref.layout not in model.layouts:
                continue
            steps = 1 if isinstance(f.type, ArrayType) else 0
            out[ref.layout] = max(out.get(ref.layout, 0), steps)
    return out
