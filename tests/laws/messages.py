"""Layouts that are requests, responses and headers."""

from __future__ import annotations

from tests.laws.draws import Draw
from tests.laws.world import INTEGERS, Tree


def add(documents: list[Tree], d: Draw) -> None:
    """Make some layouts messages, in place; others become their headers."""
    layouts = [one for one in documents if "layout" in one and one["layout"] != "api"]
    versioned = [one for one in layouts if "versions" in one]
    if not versioned:
        return
    taken = [d.pick(versioned)]
    others = [one for one in layouts if one not in taken]
    header = d.pick(others) if others and d.chance(2) else None
    field = None if header is None else _first_number(header)
    if header is not None:
        header["message"] = {"role": "header"}
        if field is not None:
            header["message"] |= {"key_field": field, "version_field": field}
    rest = [one for one in versioned if one not in taken and one is not header]
    for i, layout in enumerate([*taken, *rest[:2]]):
        role = d.pick(("request", "response"))
        message: Tree = {"role": role, "key": i if d.chance(2) else -i}
        low, _, high = layout["versions"].partition("-")
        if header is not None and (role == "response" or field is not None):
            one = header["layout"]
            if "versions" in header:
                one += f"@{header['versions'].partition('-')[0]}"
            message["header"] = {f"{low}+": one} if d.chance(2) else one
        if d.chance(2):
            message["unstable"] = d.pick((high or low, f"{high or low}+"))
        if d.chance(2):
            message["facts"] = {"port": d.pick((["main", "other"], "main")), "cost": "low"}
        layout["message"] = message


def _first_number(layout: Tree) -> str | None:
    """Return the first field if it is an integer in all versions, which lies at byte 0."""
    name, spec = next(iter(layout["fields"].items()))
    type_ = spec if isinstance(spec, str) else spec.get("type")
    plain = isinstance(spec, str) or not {"versions", "when"} & set(spec)
    return name if plain and isinstance(type_, str) and type_ in INTEGERS else None
