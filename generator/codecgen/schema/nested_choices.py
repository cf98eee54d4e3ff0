"""Choices whose cases are choices: resolve them to layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from codecgen.schema.key_types import MAX_CASES
from codecgen.schema.model import Choice
from codecgen.schema.types import Reference, Step

Case = tuple[int | str, Reference]
Cases = tuple[Case, ...]


def with_layouts(choices: Mapping[str, Choice], every: Mapping[str, Choice]) -> dict[str, Choice]:
    """Return the choices, by name, with each case that is a choice replaced by the cases of that
    choice, and at most ``MAX_CASES`` + 1 cases each. Cases whose nested choice cannot be decided
    are left out; a check reports them. ``every`` also has the choices of used directories.
    """
    known: dict[str, Cases] = {}
    return {
        name: replace(choice, cases=_resolve_cases(choice, every, known))
        for name, choice in choices.items()
    }


def _resolve_cases(choice: Choice, every: Mapping[str, Choice], known: dict[str, Cases]) -> Cases:
    """Return the cases of a choice with nested choices replaced by their cases, at most
    ``MAX_CASES`` + 1. ``known`` caches results; a choice inside itself has no cases there.
    """
    if choice.name not in known:
        known[choice.name] = ()  # those that it holds itself have no end
        found = islice(_iterate_cases(choice, every, known), MAX_CASES + 1)
        known[choice.name] = tuple(found)
    return known[choice.name]


def _iterate_cases(
    choice: Choice, every: Mapping[str, Choice], known: dict[str, Cases]
) -> Iterator[Case]:
    """Yield the cases of a choice, with the cases of nested choices (``every`` has all choices) in
    their places. With the same discriminator only the inner case of the same key counts; otherwise
    each inner case gets a Step. Undecidable nested choices are skipped. ``known`` caches results.
    """
    for key, ref in choice.named:
        inner = every.get(ref.layout)
        if inner is None:
            yield key, ref
        elif can_nest(choice, inner):
            for number, found in _resolve_cases(inner, every, known):
                if not has_same_discriminator(choice, inner):
                    step = Step(
                        inner.name,
                        inner.by or "",
                        number if isinstance(number, int) else 0,
                        ref.span,
                    )
                    yield key, replace(found, span=ref.span, steps=(step, *found.steps))
                elif number == key:
                    yield key, found


def list_cases(choice: Choice) -> tuple[tuple[int | str, Reference, str | None], ...]:
    """Return each discriminator of a choice once, as (discriminator, its first layout, name of the
    nested choice that decides further, or None).
    """
    out: dict[int | str, tuple[int | str, Reference, str | None]] = {}
    for key, ref in choice.cases:
        out.setdefault(key, (key, ref, ref.steps[0].choice if ref.steps else None))
    return tuple(out.values())


def case_names(choice: Choice) -> tuple[str, ...]:
    """Return a name for each discriminator of a choice, in order, repeats included: the nested
    choice that decides further, or else the layout.
    """
    return tuple(inner or ref.layout for _, ref, inner in list_cases(choice))


def inner_choices(choice: Choice | None) -> list[str]:
    """Return the name of the nested choice of each case that decides by a field of its own, in
    order, repeats included; ``[]`` for None.
    """
    return [inner for _, _, inner in list_cases(choice) if inner] if choice is not None else []


def has_same_discriminator(choice: Choice, inner: Choice) -> bool:
    """Return whether a choice and a nested choice are decided by a field of the same name or the
    same enum. Two choices that are decided by numbers of a type from outside always count as the
    same.
    """
    if choice.by is not None or inner.by is not None:
        return choice.by == inner.by
    return choice.given == inner.given


def can_nest(choice: Choice, inner: Choice) -> bool:
    """Return whether the choice ``inner`` can be a case of another: it decides by a field, or by
    the same value.
    """
    return inner.by is not None or has_same_discriminator(choice, inner)


def first_layout(ref: Reference, choices: Mapping[str, Choice]) -> str:
    """Return the name of the first layout that a case leads to through nested choices. Return the
    name of a choice if they nest without end or have no cases.
    """
    name, seen = ref.layout, set[str]()
    while name in choices and name not in seen and choices[name].named:
        seen.add(name)
        name = choices[name].named[0][1].layout
    return name
