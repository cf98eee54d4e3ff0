"""Choices inside layouts, by the laws' own reading of the YAML: which layout a value is, and in which version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.laws.meaning import Meaning, look_in, words_of
from tests.laws.world import Facts, Tree, version_field


def choice_in(spec: Tree) -> Tree | None:
    """What a field says of the choice that it is, or that its elements are."""
    inner = spec.get("array")
    found = inner if isinstance(inner, dict) else spec
    return found if "choice" in found else None


def cases(facts: Facts, choice: str) -> dict[int, str]:
    """The layout for each number."""
    tree = facts.choices[choice]
    out: dict[int, str] = {}
    for key, reference in tree["cases"].items():
        span = re.fullmatch(r"([0-9]+)-([0-9]+)", str(key))
        if span is not None:
            out |= dict.fromkeys(range(int(span[1]), int(span[2]) + 1), reference)
        elif re.fullmatch(r"-?[0-9]+", str(key)):
            out[int(key)] = reference
        elif str(key).startswith("0x"):
            out[int(key, 16)] = reference
        else:
            out[_words(facts, tree, reference)[key]] = reference
    return out


def _words(facts: Facts, tree: Tree, reference: str) -> dict[str, int]:
    """The values of the enum whose names stand for numbers."""
    if by_field(tree) is None:
        return facts.values(tree["given"][tree["by"]])
    while reference in facts.choices:
        reference = next(iter(facts.choices[reference]["cases"].values()))
    field = facts.layouts[reference.partition("@")[0]]["fields"][tree["by"]]
    return facts.values(field["enum"])


def by_field(tree: Tree) -> str | None:
    """The field of its cases that decides in a choice; None where a value that it is given does."""
    by = str(tree["by"])
    return None if by in tree.get("given", {}) else by


def layouts_in(facts: Facts, choice: str) -> list[str]:
    """The layouts of a choice, and of the choices among its cases."""
    out: list[str] = []
    for reference in cases(facts, choice).values():
        out += layouts_in(facts, reference) if reference in facts.choices else [reference]
    return out


def number_of(
    facts: Facts, layout: str, spec: Tree, fields: Mapping[str, Any], version: int | None
) -> int | None:
    """The number that ``given`` of a choice gives."""
    found = Meaning(look_in(fields, version), words_of(facts, layout)).of(
        spec["given"][facts.choices[spec["choice"]]["by"]]
    )
    return None if found is None else int(found)


def versions_of(
    facts: Facts,
    layout: str,
    spec: Tree,
    reference: str,
    fields: Mapping[str, Any],
    version: int | None,
) -> list[int | None]:
    """The versions that a layout can be in where a field holds it; none where the one that is told is not there."""
    if "version" not in spec:
        return facts.held(reference, version)
    there = facts.held(reference, None) if "@" in reference else facts.versions(reference)
    if there == [None]:
        return there
    told = Meaning(look_in(fields, version), words_of(facts, layout)).of(spec["version"])
    return [one for one in there if one == told]


def case_of(
    facts: Facts,
    layout: str,
    spec: Tree,
    fields: Mapping[str, Any],
    version: int | None,
    value: Any,
) -> tuple[str, int | None] | None:
    """The layout that a value is, and its version; None where there is no case."""
    if "layout" in spec:
        reference: str | None = spec["layout"]
    else:
        tree = facts.choices[spec["choice"]]
        number = (
            number_of(facts, layout, spec, fields, version)
            if by_field(tree) is None
            else value[by_field(tree)]
        )
        reference = cases(facts, spec["choice"]).get(number)  # type: ignore[arg-type]
        while reference in facts.choices:
            inner = facts.choices[reference]
            number = number if by_field(inner) is None else value[by_field(inner)]
            reference = cases(facts, reference).get(number)  # type: ignore[arg-type]
    if reference is None:
        return None
    name = reference.partition("@")[0]
    there = versions_of(facts, layout, spec, reference, fields, version)
    own = version_field(facts.layouts[name])
    if own is not None:
        there = [one for one in there if one == value[own]]
    return (name, there[0]) if there else None
