"""Columns for fields: what of structs and lists a random view shows, to any depth."""

from __future__ import annotations

from collections.abc import Callable

from tests.laws.draws import Draw
from tests.laws.seen import UNSIGNED_VARINTS
from tests.laws.world import INTEGERS, VARINTS, Tree, reach

WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
OTHERS = {"f32": "float", "f64": "double", "uuid": "uuid", "bool": "bool", "u64": "uint64"}

Held = Callable[[str], "Tree | None"]
"""The fields of a layout by its name; None where a view cannot show them."""


def number_column(d: Draw, type_: str, *, signed: bool = False) -> str | None:
    """A column that has room for an integer type: the narrowest, or one of those above."""
    if type_ in UNSIGNED_VARINTS and reach(type_)[1] >= 1 << 63:
        return None
    low, high = reach(type_)
    if high >= 1 << 63:
        return None if signed else "uint64"
    fitting = [n for n, bits in WIDTHS.items() if -(1 << bits - 1) <= low and high < 1 << bits - 1]
    if low == 0 and not signed:
        unsigned = [n for n, bits in UNSIGNED.items() if high < 1 << bits]
        fitting = unsigned + fitting if d.chance(2) else fitting + unsigned
    return fitting[0] if signed or not d.chance(3) else d.pick(fitting)


def column_of(d: Draw, spec: object, held: Held, deep: int = 0) -> Tree | None:
    """The column that a field can have, and None for one that has none."""
    spec = {"type": spec} if isinstance(spec, str) else spec
    if not isinstance(spec, dict):
        return None
    made = _column(d, spec, held, deep)
    if made is not None and {"when", "null", "versions"} & set(spec):
        made["nullable"] = True
    return made


def _column(d: Draw, spec: Tree, held: Held, deep: int) -> Tree | None:
    if isinstance(spec.get("type"), str):
        type_ = plain(d, spec["type"])
        return None if type_ is None else {"type": type_}
    if isinstance(spec.get("bits"), str):
        type_ = number_column(d, spec["bits"])
        return None if type_ is None else {"type": type_}
    if "bytes" in spec or "string" in spec:
        return {"type": "binary" if "bytes" in spec or d.chance(4) else "string"}
    if "layout" in spec or "fields" in spec:
        fields = held(spec["layout"]) if "layout" in spec else spec["fields"]
        return _members(d, fields, held, deep, "struct")
    if "array" in spec and "compressed" not in spec:
        return _list(d, spec["array"], held, deep)
    return None


def _list(d: Draw, element: object, held: Held, deep: int) -> Tree | None:
    if isinstance(element, str) and plain(d, element) is not None:
        return {"list": plain(d, element)}
    if isinstance(element, str):
        return _members(d, held(element), held, deep, "list")
    if isinstance(element, dict) and "fields" in element:
        return _members(d, element["fields"], held, deep, "list")
    if isinstance(element, dict) and "null" not in element:
        return {"list": "binary" if "bytes" in element or d.chance(4) else "string"}
    return None


def _members(d: Draw, fields: Tree | None, held: Held, deep: int, key: str) -> Tree | None:
    if fields is None or deep > 3:
        return None
    out: Tree = {}
    for name, spec in fields.items():
        column = None if d.chance(5) else column_of(d, spec, held, deep + 1)
        if column is not None:
            out[name] = column | ({"nullable": True} if d.chance(8) else {})
    return {key: out} if out else None


def plain(d: Draw, type_: str) -> str | None:
    """A column for a number, true or false, or a uuid."""
    if type_ in OTHERS:
        return OTHERS[type_]
    if type_ not in INTEGERS and type_ not in VARINTS:
        return None
    found = number_column(d, type_)
    return "timestamp_ms" if found == "int64" and d.chance(3) else found


def names_in(name: str, tree: Tree) -> list[str]:
    """What the parts of a column are called where each has buffers of its own."""
    inside = tree.get("struct", tree.get("list"))
    out = []
    if isinstance(inside, str):
        out.append(f"{name}_element")
    for member, column in inside.items() if isinstance(inside, dict) else ():
        out += [f"{name}_{member}", *names_in(f"{name}_{member}", column)]
    return out
