"""Choices of choices: the layouts that the choices among the cases of a choice come down to."""

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
    """The choices, with the layouts of cases that are choices in the place of those. ``every`` has those of other directories
    too. What cannot be decided is left out: checks say what is wrong with it."""
    known: dict[str, Cases] = {}
    return {
        name: replace(choice, cases=_layouts(choice, every, known))
        for name, choice in choices.items()
    }


def _layouts(choice: Choice, every: Mapping[str, Choice], known: dict[str, Cases]) -> Cases:
    """The layouts of a choice, of which ``known`` has those that were worked out already."""
    if choice.name not in known:
        known[choice.name] = ()  # those that it holds itself have no end
        found = islice(_held(choice, every, known), MAX_CASES + 1)
        known[choice.name] = tuple(found)
    return known[choice.name]


def _held(choice: Choice, every: Mapping[str, Choice], known: dict[str, Cases]) -> Iterator[Case]:
    for key, ref in choice.named:
        inner = every.get(ref.layout)
        if inner is None:
            yield key, ref
        elif fits(choice, inner):
            for number, found in _layouts(inner, every, known):
                if not same(choice, inner):
                    step = Step(
                        inner.name,
                        inner.by or "",
                        number if isinstance(number, int) else 0,
                        ref.span,
                    )
                    yield key, replace(found, span=ref.span, steps=(step, *found.steps))
                elif number == key:
                    yield key, found


def cases_of(choice: Choice) -> tuple[tuple[int | str, Reference, str | None], ...]:
    """The cases, each once: a layout, or (its name) a choice that decides by itself."""
    out: dict[int | str, tuple[int | str, Reference, str | None]] = {}
    for key, ref in choice.cases:
        out.setdefault(key, (key, ref, ref.steps[0].choice if ref.steps else None))
    return tuple(out.values())


def names_of(choice: Choice) -> tuple[str, ...]:
    """The layouts and choices that are its cases."""
    return tuple(inner or ref.layout for _, ref, inner in cases_of(choice))


def inner_of(choice: Choice | None) -> list[str]:
    """The choices among the cases that decide by themselves."""
    return [inner for _, _, inner in cases_of(choice) if inner] if choice is not None else []


def same(choice: Choice, inner: Choice) -> bool:
    """Whether the value that decides in a choice is the one that decides in a case of it."""
    if choice.by is not None or inner.by is not None:
        return choice.by == inner.by
    return choice.given == inner.given


def fits(choice: Choice, inner: Choice) -> bool:
    """Whether a choice can be a case: its layouts say which of them it is, or what decides is given."""
    return inner.by is not None or same(choice, inner)


def first_layout(ref: Reference, choices: Mapping[str, Choice]) -> str:
    """The name of a layout that a case is, or that one of its cases is. Of choices without end the name of one."""
    name, seen = ref.layout, set[str]()
    while name in choices and name not in seen and choices[name].named:
        seen.add(name)
        name = choices[name].named[0][1].layout
    return name


__all__ = ["cases_of", "first_layout", "fits", "inner_of", "names_of", "same", "with_layouts"]
