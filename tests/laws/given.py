"""Values from outside: some layouts are given values, and whoever holds them gives them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.laws.draws import Draw
from tests.laws.names import Names
from tests.laws.world import INTEGERS, VARINTS, Facts, Tree, bits_of, reach

NUMBERS = (*INTEGERS, *VARINTS)
_READ = (
    "u8",
    "i8",
    "i16",
    "u16",
    "i24",
    "u24",
    "i32",
    "u32",
    "i64",
    "varint",
    "varlong",
    "uvarint",
)


def add(documents: list[Tree], d: Draw) -> None:
    """Give values to some of the layouts that only fields hold, and a last field that depends on them."""
    layouts = [document for document in documents if "layout" in document]
    enums = {n: e for document in documents for n, e in document.get("enums", {}).items()}
    for held in layouts:
        name = held["layout"]
        if not d.chance(3) or _is_used_otherwise(name, documents) or _reaches_to_end(held):
            continue
        holders = [one for document in layouts for one in _holders(document["fields"], name)]
        if not holders:
            continue
        names = Names(d, {*_names(held), "version"})
        given: Tree = {}
        for _ in range(d.number(1, 2)):
            number = d.pick(("i64", "i32", "u8", "i16", d.pick(NUMBERS)))
            given[names.fresh()] = d.pick(("bool", number, d.pick(list(enums))))
        if d.chance(2):
            element = d.pick(({"string": "u8"}, {"bytes": "i16"}, d.pick(_READ)))
            for fields, index in holders:
                _add_array(fields, index, element)
            holders = [one for document in layouts for one in _holders(document["fields"], name)]
        arrays = [_arrays(fields, index) for fields, index in holders]
        kinds = [kind for kind in arrays[0] if all(kind in one for one in arrays)]
        array = names.fresh() if kinds and d.number(0, 3) else None
        kind = d.pick(kinds) if kinds else ""
        for i, (fields, index) in enumerate(holders):
            spec = list(fields.values())[index]
            spec["given"] = {
                n: _value(type_, fields, index, enums, d) for n, type_ in given.items()
            }
            if array is not None:
                spec["given"][array] = d.pick(arrays[i][kind])
        _use(held, given, enums, names, d)
        held["given"] = given
        if array is not None:
            given[array] = {"array": kind}
            _look_up(held, array, kind, names)


def _is_used_otherwise(name: str, documents: list[Tree]) -> bool:
    """Whether something else than a field of a layout names a layout."""
    for document in documents:
        if "choice" in document and name in _bare(document["cases"].values()):
            return True
        if "view" in document and (
            f"'{name}'" in str(document["of"])
            or any(f"'{name}'" in str({"of": rows["of"]}) for rows in document["rows"])
        ):
            return True
        if "layout" in document:
            if f"'layout': '{name}'" in str(document.get("overhead", "")):
                return True
            if any(_names_layout(spec, name) for spec in document.get("tagged", {}).values()):
                return True
    return False


def _bare(references: Any) -> set[str]:
    return {str(one).partition("@")[0] for one in references}


def _names_layout(spec: Any, name: str) -> bool:
    """Whether a field holds a layout, itself or in fields that are declared in its place."""
    if not isinstance(spec, dict):
        return False
    inner = spec.get("array")
    held = [spec.get("layout"), inner if isinstance(inner, str) else None]
    if name in _bare(one for one in held if isinstance(one, str)):
        return True
    for part in (spec, inner):
        if isinstance(part, dict) and "fields" in part:
            return any(_names_layout(one, name) for one in part["fields"].values())
    return False


def _holders(fields: Tree, name: str) -> Iterator[tuple[Tree, int]]:
    """The fields that hold a layout: the mapping that each stands in, and its place there."""
    for i, spec in enumerate(fields.values()):
        if not isinstance(spec, dict):
            continue
        inner = spec.get("array")
        held = [spec.get("layout"), inner if isinstance(inner, str) else None]
        if name in _bare(one for one in held if isinstance(one, str)):
            yield fields, i
        for part in (spec, inner):
            if isinstance(part, dict) and "fields" in part:
                yield from _holders(part["fields"], name)


def _reaches_to_end(layout: Tree) -> bool:
    """Whether nothing but fields of fixed size can follow the fields of a layout."""
    for spec in layout["fields"].values():
        if isinstance(spec, dict):
            ends = "rest" in (spec.get("bytes"), spec.get("string")) or "unknown" in spec
            if ends or spec.get("until") == "end" or "compressed" in spec or "choice" in spec:
                return True
            if "layout" in spec or "flexible" in layout:
                return True  # which may reach to the end itself
    return False


def _names(layout: Tree) -> set[str]:
    return {*layout["fields"], *layout.get("tagged", {}), *layout.get("derived", {})}


def _value(type_: str, fields: Tree, index: int, enums: dict[str, Tree], d: Draw) -> Any:
    """What a field gives: something of the fields before it, or the same always."""
    name = list(fields)[index]
    known = []
    for other, spec in fields.items():
        if other == name or f"'{name}'" in str(spec) or f"({name})" in str(spec):
            break
        full = {"type": spec} if isinstance(spec, str) else spec
        if not {"when", "versions", "measures", "checksum", "is", "counts"} & set(full):
            known.append((other, full))
    found = [text for one in known for text in _paths(*one, type_)]
    if found and d.number(0, 3):
        return d.pick(found)
    if type_ == "bool":
        return d.chance(2)
    return d.number(0, 3) if type_ in NUMBERS else d.pick(list(enums[type_]["values"]))


def _paths(name: str, spec: Tree, type_: str) -> Iterator[str]:
    """Expressions of a type that ask for a field."""
    bits = spec.get("members", {})
    for member, bit in bits.items():
        low, high = bits_of(bit["at"]) if "at" in bit else (0, 1)
        if "versions" in bit or "at" not in bit:
            continue
        if (
            (type_ == "bool" and low == high and "enum" not in bit)
            or (low < high and "enum" not in bit and type_ in NUMBERS and high - low < 7)
            or bit.get("enum") == type_
        ):
            yield f"{name}.{member}"
    kind = spec.get("type")
    if isinstance(kind, dict):
        return
    if spec.get("enum", kind if kind == "bool" else None) == type_:
        yield name
    if kind in _READ and "enum" not in spec:
        if type_ == "bool":
            yield f"{name} > 1"
        low, high = reach(kind)
        if type_ in NUMBERS and reach(type_)[0] <= low and high <= reach(type_)[1]:
            yield name


def _arrays(fields: Tree, index: int) -> dict[str, list[str]]:
    """The arrays before a field that it can give, by what their elements are."""
    out: dict[str, list[str]] = {}
    for name, spec in list(fields.items())[: _before(fields, index)]:
        if not isinstance(spec, dict) or "array" not in spec or {*spec} & _NOT_GIVEN:
            continue
        element = spec["array"]
        if isinstance(element, dict):
            kind = next((one for one in ("string", "bytes") if one in element), None)
            if kind is None or "null" in element or isinstance(element[kind], dict):
                continue
            out.setdefault(kind, []).append(name)
        elif element in _READ:
            low, high = reach(element)
            for kind in (*INTEGERS, *VARINTS):
                if reach(kind)[0] <= low and high <= reach(kind)[1]:
                    out.setdefault(kind, []).append(name)
    return out


def _add_array(fields: Tree, index: int, element: Any) -> None:
    """Put an array in front of one of some fields, unless there is one already."""
    if "looked_at" in fields:
        return
    items, at = list(fields.items()), _before(fields, index)
    fields.clear()
    array = {"array": element, "count": "u8"}
    fields.update([*items[:at], ("looked_at", array), *items[at:]])


def _before(fields: Tree, index: int) -> int:
    """The place of the first field that says something of one of them, such as its count, or of that one."""
    name = list(fields)[index]
    told = (i for i, spec in enumerate(fields.values()) if f"'{name}'" in str(spec))
    return min(index, next(told, index))


_NOT_GIVEN = {"when", "versions", "null", "nullable", "default", "absent", "outside", "length"}


def _look_up(held: Tree, array: str, kind: str, names: Names) -> None:
    """A last field with the number of an element, from 1, or 0, and a value that is derived of it."""
    number = names.fresh()
    held["fields"][number] = {"type": "u8", "looks_up": array}
    held.setdefault("derived", {})[names.fresh()] = {
        "type": kind if kind in ("string", "bytes") else "i64",
        "is": f"if {number} == 0 then null else {array}[{number} - 1]",
    }


def _use(held: Tree, given: Tree, enums: dict[str, Tree], names: Names, d: Draw) -> None:
    """A last field that is there by what is given, and perhaps a value that is derived of it."""
    name, type_ = d.pick(list(given.items()))
    if type_ == "bool":
        condition = d.pick((name, f"not {name}"))
    elif type_ in NUMBERS:
        condition = f"{name} {d.pick(('<', '==', '>='))} {d.number(0, 2)}"
    else:
        condition = f"{name} {d.pick(('==', '!='))} {d.pick(list(enums[type_]['values']))}"
    spec: Tree = {"type": d.pick(("u8", "i32", "varlong")), "when": condition}
    if type_ in NUMBERS and d.chance(2):
        spec = {"array": d.pick(("u8", "i16", "varint"))}
        if d.chance(2):
            spec = {d.pick(("bytes", "string")): "outside"}
        held["fields"][names.fresh()] = spec | {"outside": name, "more": d.pick((0, 0, 1, -1))}
        return
    held["fields"][names.fresh()] = spec if d.number(0, 4) else {"string": "u8", "when": condition}
    numbers = [n for n, t in given.items() if t in NUMBERS]
    if numbers and d.chance(2):
        derived = held.setdefault("derived", {})
        derived[names.fresh()] = {"type": "i64", "is": f"{d.pick(numbers)} + 1"}


def drawn(facts: Facts, layout: str, r: random.Random) -> dict[str, Any]:
    """Values that somebody outside might give to a layout."""
    out: dict[str, Any] = {}
    for name, type_ in facts.layouts[layout].get("given", {}).items():
        if type_ == "bool":
            out[name] = r.random() < 0.5
        elif isinstance(type_, dict):
            one = {"string": "ab", "bytes": b"\1"}.get(type_["array"], 7)
            out[name] = [one] * r.choice((0, 1, 3))
        elif type_ in NUMBERS:
            out[name] = r.choice((0, 1, 2, 5))
        else:
            out[name] = r.choice(list(facts.values(type_).values()))
    return out
