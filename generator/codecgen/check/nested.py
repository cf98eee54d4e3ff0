"""Choices whose cases are choices: what decides in them is known, and there is an end to it."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic
from codecgen.schema.model import Choice, Model
from codecgen.schema.nested_choices import fits, same
from codecgen.schema.number_ranges import MOST
from codecgen.schema.types import Reference, Span
from codecgen.spans import place


def check(model: Model) -> Iterator[Diagnostic]:
    for choice in model.choices.values():
        reported: set[Span] = set()
        for key, ref in choice.named:
            inner = model.choices.get(ref.layout)
            if inner is not None and (found := _wrong(choice, key, ref, inner, model)) is not None:
                if ref.span not in reported:
                    yield found
                reported.add(ref.span)
        if len(choice.cases) > MOST:
            message = f'"{choice.name}" comes down to more than {MOST} cases'
            yield Diagnostic("C006", message, place(choice, "cases"))


def _wrong(
    choice: Choice, key: int | str, ref: Reference, inner: Choice, model: Model
) -> Diagnostic | None:
    """What is wrong with a case that is a choice."""
    if ref.version is not None:
        message = f'"{inner.name}" is a choice, which has no versions'
        return Diagnostic("C020", message, ref.span, help=f'write "{inner.name}"')
    way = _back(choice.name, inner.name, model)
    if way:
        message = " holds ".join(f'"{name}"' for name in way)
        help = "a case of each choice comes down to layouts"
        return Diagnostic("C019", f"{message}, without end", ref.span, help=help)
    if not fits(choice, inner):
        message = f'nothing says which case of "{inner.name}" it is'
        help = (
            f'"{inner.name}" is chosen by {_decider(inner)}, "{choice.name}" by {_decider(choice)}'
        )
        return Diagnostic("C054", message, ref.span, help=f"{help} ({inner.span})")
    if same(choice, inner) and key not in {key for key, _ in inner.named}:
        message = f'"{inner.name}" has no case for {key}'
        return Diagnostic("C054", message, ref.span, help=f"the choice is at {inner.span}")
    return None


def _decider(choice: Choice) -> str:
    if choice.by is not None:
        return f'the field "{choice.by}"'
    return f'the enum "{choice.given}"' if choice.given is not None else "a number"


def _back(start: str, name: str, model: Model) -> list[str]:
    """The choices on the way from one, by a case of it, back to itself; none where there is no such way."""
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
