"""Random rules of layouts, what builders put into elements, and which values are secrets by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.laws.draws import Draw
from tests.laws.keys import Kit, Made
from tests.laws.names import Names
from tests.laws.world import INTEGERS, VARINTS, Tree

NUMBERS = (0, 1, -1, 127, 300, 1 << 31)


FREE = {"type", "doc", "unit", "spelled", "endian", "sensitive"}
"""Keys of a number that whoever builds always gives."""


def draw_rules(d: Draw, made: Made, kit: Kit) -> None:
    """Give a layout rules about its numbers, and about those of elements; none if it has no numbers."""
    out: Tree = {}
    names = Names(d, {"item", "version"})
    fields = {name: spec for name, spec in made.tree["fields"].items() if isinstance(spec, dict)}
    settled = [name for name, spec in fields.items() if {"const", "is", "tag"} & set(spec)]
    sides = [name for name in made.numbers if name not in settled]
    for name, part in _parts(d, fields, kit.made):
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
    for rule in out.values():
        if d.chance(5):
            rule["doc"] = d.pick(("It holds.", "a | `b`"))
        if kit.releases and d.chance(5):
            rule["since"] = {"doc_no": 9}
        if made.versions is not None and d.chance(4):
            low, high = made.versions
            rule["versions"] = d.pick((str(low), f"{high}+", str(made.tree["versions"])))
    if out:
        made.tree["rules"] = out


def draw_fills(d: Draw, made: Made, others: Sequence[Made]) -> None:
    """Let elements of an array have another value instead of a number: that and a number of the layout together."""
    fields = made.tree["fields"]
    bases = [name for name, spec in fields.items() if _is_free(spec)]
    for name, spec in fields.items():
        if not bases or not isinstance(spec, dict) or {"when", "versions"} & spec.keys():
            continue
        found = next((one for one in others if one.name == str(spec.get("array"))), None)
        targets = [n for n, s in found.tree["fields"].items() if _is_free(s)] if found else []
        if found is None or not targets:
            continue
        names = Names(d, {*found.tree["fields"], *found.tree.get("derived", {}), "item", "version"})
        fill = {"from": names.fresh(), "less": d.pick(bases), "otherwise": d.pick(("index", 0, 1))}
        made.tree["build"] = {name: {d.pick(targets): fill}}
        return


def _is_free(spec: object) -> bool:
    tree = spec if isinstance(spec, dict) else {"type": spec}
    return tree.get("type") in (*INTEGERS, *VARINTS) and not tree.keys() - FREE


def draw_secrets(d: Draw, made: Made) -> None:
    """Let the value of a field be a secret if a text of the layout names it so."""
    fields = {name: spec for name, spec in made.tree["fields"].items() if isinstance(spec, dict)}
    texts = [name for name, spec in fields.items() if isinstance(spec.get("string"), str | int)]
    secrets = [name for name, spec in fields.items() if "bytes" in spec or "string" in spec]
    if texts and len(secrets) > 1:
        fields[d.pick(secrets)]["sensitive"] = {
            "named_by": d.pick(texts),
            "endings": d.pick((["x"], ["key", "-\u00e4"])),
        }


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
