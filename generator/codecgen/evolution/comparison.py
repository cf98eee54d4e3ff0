"""Compare two models of a schema directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from codecgen.evolution.changes import GROUPS, Change, merge_versions
from codecgen.evolution.descriptions import compare_documentation, compare_names
from codecgen.evolution.layouts import LayoutComparer
from codecgen.evolution.texts import compare_texts
from codecgen.plan import make_plan
from codecgen.schema.declarations import used_of
from codecgen.schema.lookup import choice_of, enum_uses
from codecgen.schema.model import Choice, Enum, Model
from codecgen.schema.types import Reference

T = TypeVar("T")


def compare_models(old: Model, new: Model) -> list[Change]:
    """Return all changes from ``old`` to ``new``: first those of bytes, then of names, then of
    documentation, each by kind of declaration and in the order of ``old``. Changes that are equal
    in several versions become one. Byte changes of layouts, choices and enums that only drafts use
    are left out. The checks must have accepted both models.
    """
    found = [
        *_Comparison(old, new).compare_bytes(),
        *compare_names(old, new),
        *compare_documentation(old, new),
    ]
    merged = merge_versions(found)
    return [change for group in GROUPS for change in merged if change.group == group]


class _Comparison:
    """Compares the bytes of two models."""

    def __init__(self, old: Model, new: Model) -> None:
        self.old = old
        self.new = new
        self.plans = (make_plan(old), make_plan(new))
        self.layouts = LayoutComparer(*self.plans)

    def compare_bytes(self) -> Iterator[Change]:
        """Yield the byte changes of released layouts, choices and enums, and of texts: removals and
        changes, with the rule that a breaking one violates. Added declarations yield nothing. A
        removed enum or inline layout is not reported here.
        """
        released = _find_released(self.old)
        for name, layout in _every(self.old.layouts).items():
            if name not in released:
                continue
            if name in _every(self.new.layouts):
                yield from self.layouts.compare(name)
            elif not layout.is_local:
                yield Change("bytes", name, "is removed", "B001", span=layout.span, side="old")
        for name, choice in _every(self.old.choices).items():
            if name in released:
                yield from self._compare_choices(choice)
        used = _enums_used(self.old, released)
        for name, enum in _every(self.old.enums).items():
            other = _every(self.new.enums).get(name)
            if other is not None and name in used:
                yield from _compare_enums(enum, other)
        yield from compare_texts(self.plans)

    def _compare_choices(self, old: Choice) -> Iterator[Change]:
        """Yield one change if a choice is removed or decided by something else; nothing more is
        compared then. An enum that has all numbers of the old one counts as the same. Otherwise
        yield a change for each case that is removed, leads to an incompatible layout, or is added
        (which breaks nothing).
        """
        new = _every(self.new.choices).get(old.name)
        if new is None:
            yield Change("bytes", old.name, "is removed", "B019", span=old.span, side="old")
            return
        by = [_discriminator(choice) for choice in (old, new)]
        if by[0] != by[1] and not self._is_enum_renamed(old, new):
            message = f"{by[0]} becomes {by[1]}"
            yield Change("bytes", old.name, message, "B019", span=new.span)
            return
        sides = [_cases(self.old, old), _cases(self.new, new)]
        for key, ref in sides[0].items():
            other = sides[1].get(key)
            case = " and ".join(map(str, key))
            if other is None:
                message = f"case {case}, {ref}, is removed"
                yield Change("bytes", old.name, message, "B020", span=new.span)
                continue
            reason, certain = self.layouts.find_incompatibility(
                *(plan.of(one) for plan, one in zip(self.plans, (ref, other), strict=True))
            )
            if reason:
                message = f"case {case} is {other} instead of {ref}: {reason}"
                yield Change("bytes", old.name, message, "B020", certain, span=other.span)
        for key, ref in sides[1].items():
            if key not in sides[0]:
                case = " and ".join(map(str, key))
                message = f"case {case}, {ref}, is added"
                yield Change("bytes", old.name, message, span=ref.span)

    def _is_enum_renamed(self, old: Choice, new: Choice) -> bool:
        """Return whether both choices are given enum values and the enum of the new one has all
        numbers of the old one's.
        """
        if old.given is None or new.given is None:
            return False
        numbers = [
            {value.value for value in enums[str(choice.given)].values}
            for choice, enums in ((old, self.old.enums), (new, self.new.enums))
        ]
        return numbers[0] <= numbers[1]


def _every(declarations: Mapping[str, T]) -> dict[str, T]:
    """Return the declarations of a directory and of the directories that it uses."""
    return {**declarations, **used_of(declarations)}


def _find_released(model: Model) -> set[str]:
    """Return the names of the released layouts and choices: layouts that are no drafts, choices
    with a case that is no draft, and all that they hold, declarations of used directories included.
    """
    layouts, choices = _every(model.layouts), _every(model.choices)
    todo = [name for name, layout in model.layouts.items() if layout.draft is None]
    todo += [
        name
        for name, choice in model.choices.items()
        if any(model.layouts[ref.layout].draft is None for _, ref in choice.cases)
    ]
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        if name in choices:
            todo += [ref.layout for _, ref in choices[name].cases]
            continue
        todo += [ref.layout for ref in model.references(layouts[name])]
        todo += [choice.choice for f in layouts[name].fields if (choice := choice_of(f))]
    return found


def _enums_used(model: Model, released: set[str]) -> set[str]:
    """Return the names of the enums that released layouts and choices use, and of the directory's
    own enums that no draft uses.
    """
    layouts, choices = _every(model.layouts), _every(model.choices)
    by_drafts = {
        enum
        for name, layout in layouts.items()
        if name not in released
        for _, enum, _ in enum_uses(layout)
    }
    used = {
        enum
        for name, layout in layouts.items()
        if name in released
        for _, enum, _ in enum_uses(layout)
    }
    used |= {str(choice.given) for name, choice in choices.items() if name in released}
    return used | (set(model.enums) - by_drafts)


def _compare_enums(old: Enum, new: Enum) -> Iterator[Change]:
    """Yield a change for each value whose number is changed or removed (breaking) or is added, and
    one if unknown numbers are rejected now. A value that only has another name yields nothing.
    """
    by_name = {value.name: value for value in new.values}
    by_number = {value.value: value for value in new.values}
    for value in old.values:
        path = f"{old.name}.{value.name}"
        other = by_name.get(value.name)
        if other is not None and other.value != value.value:
            message = f"{value.value} becomes {other.value}"
            yield Change("bytes", path, message, "B017", span=other.span)
        elif value.value not in by_number:
            message = f"the value {value.value} is removed"
            yield Change("bytes", path, message, "B016", span=value.span, side="old")
    numbers = {value.value for value in old.values}
    names = {value.name for value in old.values}
    for value in new.values:
        if value.value not in numbers and value.name not in names:
            message = f"the value {value.value} is added"
            yield Change("bytes", f"{old.name}.{value.name}", message, span=value.span)
    if old.keep_unknown and not new.keep_unknown:
        message = "unknown numbers are rejected"
        yield Change("bytes", old.name, message, "B018", span=new.span)


def _discriminator(choice: Choice) -> str:
    """Return what decides between the cases of a choice, in words."""
    return f"by {choice.by}" if choice.by else f"given {choice.given or choice.given_type}"


def _cases(model: Model, choice: Choice) -> dict[tuple[int, ...], Reference]:
    """Return the layout references of a choice by the numbers that lead to them: the discriminator,
    then those of nested choices. Enum names become numbers. Raise ValueError for an unknown name of
    a value, and KeyError for an unknown enum.
    """
    values = {}
    if choice.given is not None:
        values = {value.name: value.value for value in model.enums[choice.given].values}
    return {
        (int(values.get(str(key), key)), *(step.number for step in ref.steps)): ref
        for key, ref in choice.cases
    }
