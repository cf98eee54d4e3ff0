"""Random rules of layouts: what all fields have to meet together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.laws.draws import Draw
from tests.laws.keys import Made
from tests.laws.names import Names
from tests.laws.world import Tree

NUMBERS = (0, 1, -1, 127, 300, 1 << 31)


def draw_rules(d: Draw, made: Made, others: Sequence[Made]) -> None:
    """Give a layout rules about its numbers, and about those of elements; none if it has no numbers."""
    out: Tree = {}
    names = Names(d, {"item", "version"})
    fields = {name: spec for name, spec in made.tree["fields"].items() if isinstance(spec, dict)}
    settled = [name for name, spec in fields.items() if {"const", "is", "tag"} & set(spec)]
    sides = [name for name in made.numbers if name not in settled]
    for name, part in _parts(d, fields, others):
        if d.chance(3):
            out[names.fresh()] = {"about": name, "ascending": f"{name}.{part}"}
        sides += [f"{end}({name}).{part}" for end in ("first", "last", "max", "min")]
    for _ in range(d.number(1, 3) if sides else 0):
        other = d.pick(sides) if d.chance(2) else str(d.pick(NUMBERS))
        text = f"{d.pick(sides)} {d.pick(('<', '<=', '>', '>=', '!='))} {other}"
        if d.chance(4):
            text = f"{text} {d.pick(('and', 'or'))} {d.pick(sides)} >= {d.pick((0, -5))}"
        if len(set(re.findall(r"\((.*?)\)", text))) < 2:  # of one array at most
            out[names.fresh()] = {"about": d.pick(list(made.tree["fields"])), "is": text}
    if out:
        made.tree["rules"] = out


def _parts(d: Draw, fields: Tree, others: Sequence[Made]) -> list[tuple[str, str]]:
    """The arrays that are there in all versions, each with a number of its elements."""
    out = []
    for name, spec in fields.items():
        if "array" in spec and "versions" not in spec:
            element = str(spec["array"]).partition("@")[0]
            found = next((made for made in others if made.name == element), None)
            if found is not None and found.numbers:
                out.append((name, d.pick(found.numbers)))
    return out
