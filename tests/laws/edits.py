"""Small random edits of the YAML of a schema directory, as a person makes them: most are refused by `check`."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.laws.world import CHECKS, INTEGERS, VARINTS, Tree, World, span

NUMBERS = (*INTEGERS, *VARINTS, "f32", "f64", "bool", "uuid")
PREFIXES = (*INTEGERS, *VARINTS, "compact")
FIELDS: tuple[Any, ...] = (
    "u8",
    {"type": "u16", "default": 3},
    {"bytes": 2, "default": {"hex": "0102"}},
    {"padding": 4},
    {"array": "u8", "count": "u8"},
)
TAGGED: tuple[Any, ...] = (
    {"type": "u8"},
    {"type": "i32", "default": 7},
    {"array": "u8", "count": "u8"},
)


def edited(world: World, r: random.Random) -> tuple[World, str]:
    """Return a copy of a directory with one or two edits, and what they are."""
    out = copy.deepcopy(world)
    made = []
    for _ in range(r.choice((1, 1, 1, 2))):
        edit = r.choice(EDITS)
        made.append(f"{edit.__name__} {edit(out, r)}")
    return out, "; ".join(made)


def _mappings(value: Any, path: str = "") -> Iterator[tuple[str, Tree]]:
    """Yield all mappings below a value, with their paths."""
    if isinstance(value, dict):
        yield path, value
        for key, part in value.items():
            yield from _mappings(part, f"{path}.{key}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _mappings(part, f"{path}.{i}")


def _documents(world: World) -> list[Tree]:
    return [document for document in world.documents() if "view" not in document]


def _layouts(world: World) -> list[Tree]:
    return [document for document in world.documents() if "layout" in document]


def _any_mapping(world: World, r: random.Random) -> tuple[str, Tree]:
    found = [pair for document in _documents(world) for pair in _mappings(document)]
    return r.choice([pair for pair in found if pair[1]] or [("", {"": 0})])


def _remove_key(world: World, r: random.Random) -> str:
    path, tree = _any_mapping(world, r)
    key = r.choice(list(tree))
    del tree[key]
    return f"{path}.{key}"


def _change_value(world: World, r: random.Random) -> str:
    """A number, a word or a flag becomes another one of its kind."""
    places = [
        (path, tree, key)
        for document in _documents(world)
        for path, tree in _mappings(document)
        for key, value in tree.items()
        if isinstance(value, str | int) and key not in ("doc", "layout", "choice", "text", "title")
    ]
    if not places:
        return "nothing"
    path, tree, key = r.choice(places)
    old = tree[key]
    tree[key] = _other_value(key, old, world, r)
    return f"{path}.{key}: {old} becomes {tree[key]}"


def _other_value(key: str, old: Any, world: World, r: random.Random) -> Any:
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return old + r.choice((-2, -1, 1, 2, 100))
    if old in CHECKS:
        return r.choice(list(CHECKS))
    if key in ("string", "bytes", "count", "length", "present"):
        return r.choice((*PREFIXES, "rest", 2, 4))
    if old in NUMBERS:
        return r.choice(NUMBERS)
    if old in ("big", "little"):
        return "little" if old == "big" else "big"
    if key in ("when", "valid", "refuse", "default", "until"):
        for one, other in (("<=", "<"), (">", ">="), ("==", "!="), ("1", "2"), ("not ", "")):
            if one in old:
                return old.replace(one, other, 1)
    names = [str(name) for tree in _layouts(world) for name in tree["fields"]]
    names += [*world.layouts, *world.enums]
    return r.choice(names)


def _swap_fields(world: World, r: random.Random) -> str:
    layouts = [tree for tree in _layouts(world) if len(tree["fields"]) > 1]
    if not layouts:
        return "nothing"
    tree = r.choice(layouts)
    items = list(tree["fields"].items())
    at = r.randrange(len(items) - 1)
    items[at], items[at + 1] = items[at + 1], items[at]
    tree["fields"] = dict(items)
    return f"{tree['layout']}.{items[at][0]}"


def _add_field(world: World, r: random.Random) -> str:
    tree = r.choice(_layouts(world))
    items = list(tree["fields"].items())
    spec = copy.deepcopy(r.choice(FIELDS))
    if "versions" in tree and r.random() < 0.6:
        spec = {"type": spec} if isinstance(spec, str) else spec
        spec["versions"] = f"{_add_one_version(tree)}+"
    items.insert(r.randint(0, len(items)), ("brand_new", spec))
    tree["fields"] = dict(items)
    return f"{tree['layout']}: {spec}"


def _add_tagged(world: World, r: random.Random) -> str:
    layouts = [tree for tree in _layouts(world) if "flexible" in tree]
    if not layouts:
        return "nothing"
    tree = r.choice(layouts)
    spec = {"tag": r.choice((0, 1, 2, 3, 77)), **copy.deepcopy(r.choice(TAGGED))}
    if "versions" in tree and r.random() < 0.5:
        spec["versions"] = f"{_add_one_version(tree)}+"
    tree.setdefault("tagged", {})["brand_new"] = spec
    return f"{tree['layout']}: {spec}"


def _add_one_version(tree: Tree) -> int:
    low, high = span(tree["versions"])
    assert high is not None
    tree["versions"] = f"{low}-{high + 1}"
    return high + 1


def _add_version(world: World, r: random.Random) -> str:
    """All layouts that hold each other get a version, as they must; sometimes one alone, or a layout without any."""
    layouts = [tree for tree in _layouts(world) if "versions" in tree]
    if not layouts or r.random() < 0.2:
        tree = r.choice(_layouts(world))
        tree.setdefault("versions", "0-1")
        return str(tree["layout"])
    if r.random() < 0.3:
        layouts = [r.choice(layouts)]
    for tree in layouts:
        _add_one_version(tree)
    return ", ".join(str(tree["layout"]) for tree in layouts)


def _remove_version(world: World, r: random.Random) -> str:
    layouts = [tree for tree in _layouts(world) if "versions" in tree]
    if not layouts:
        return "nothing"
    tree = r.choice(layouts)
    low, high = span(tree["versions"])
    assert high is not None
    tree["versions"] = r.choice((f"{low + 1}-{high}", f"{low}-{high - 1}", f"{low}"))
    return str(tree["layout"])


def _rename_field(world: World, r: random.Random) -> str:
    tree = r.choice(_layouts(world))
    old = r.choice(list(tree["fields"]))
    tree["fields"] = {
        "brand_new" if name == old else name: spec for name, spec in tree["fields"].items()
    }
    for _, mapping in _mappings(tree):
        for key in ("counts", "from", "to", "by"):
            if mapping.get(key) == old:
                mapping[key] = "brand_new"
            elif key == "counts" and isinstance(mapping.get(key), list):
                mapping[key] = ["brand_new" if name == old else name for name in mapping[key]]
    return f"{tree['layout']}.{old}"


def _edit_enum(world: World, r: random.Random) -> str:
    enums = world.enums
    if not enums:
        return "nothing"
    name = r.choice(list(enums))
    values = enums[name]["values"]
    kind = r.randrange(4)
    if kind == 0:
        values["brand_new"] = r.choice((0, 1, 2, 3, 9, 77))
        return f"{name} gets brand_new = {values['brand_new']}"
    one = r.choice(list(values))
    if kind == 1:
        del values[one]
        return f"{name} loses {one}"
    if kind == 2:
        values["brand_new"] = values.pop(one)
        return f"{name}.{one} is renamed"
    enums[name].pop("unknown", None) or enums[name].update(unknown="keep")
    return f"{name} turns unknown"


def _edit_bits(world: World, r: random.Random) -> str:
    found = [
        (path, tree)
        for document in _layouts(world)
        for path, tree in _mappings(document)
        if "members" in tree
    ]
    if not found:
        return "nothing"
    path, tree = r.choice(found)
    members = tree["members"]
    if r.random() < 0.5:
        kept = {name: bit for name, bit in members.items() if "at" in bit}
        rest = {name: bit for name, bit in members.items() if "at" not in bit}
        new: Tree = {"at": r.randint(0, 15)}
        if world.enums and r.random() < 0.3:
            new["enum"] = r.choice(list(world.enums))
            new["at"] = f"{new['at']}-{new['at'] + 2}"
        tree["members"] = {**kept, "brand_new": new, **rest}
        return f"{path} gets {new}"
    one = r.choice(list(members))
    del members[one]
    if r.random() < 0.7:
        members.setdefault("free", {"reserved": "keep"})
    return f"{path} loses {one}"


def _add_rule(world: World, r: random.Random) -> str:
    places = [
        (tree["layout"], name, spec)
        for tree in _layouts(world)
        for name, spec in tree["fields"].items()
        if isinstance(spec, dict) and spec.get("type") in (*INTEGERS, *VARINTS)
    ]
    if not places:
        return "nothing"
    layout, name, spec = r.choice(places)
    condition = f"{name} {r.choice(('<', '>=', '!='))} {r.choice((-1, 0, 1, 5, 200))}"
    key = r.choice(("valid", "refuse", "rule"))
    if key == "rule":
        rules = world.layouts[layout].setdefault("rules", {})
        rules["brand_new"] = {"about": name, "is": condition}
    else:
        spec[key] = condition
    return f"{layout}.{name}: {key} {condition}"


def _change_null(world: World, r: random.Random) -> str:
    """Null is another number, is possible, or is not possible any more."""
    places = [
        (path, tree)
        for document in _layouts(world)
        for path, tree in _mappings(document)
        if {"string", "bytes", "count", "null", "nullable"} & set(tree)
    ]
    if not places:
        return "nothing"
    path, tree = r.choice(places)
    if ("null" in tree or "nullable" in tree) and r.random() < 0.5:
        tree.pop("null", None)
        tree.pop("nullable", None)
        return f"{path} loses null"
    tree.pop("nullable", None)
    tree["null"] = r.choice((-2, -1, 0, 1, 3))
    return f"{path}: null {tree['null']}"


def _change_doc(world: World, r: random.Random) -> str:
    tree = r.choice(_layouts(world))
    tree["doc"] = "Something else."
    return str(tree["layout"])


EDITS: tuple[Callable[[World, random.Random], str], ...] = (
    _change_value,
    _change_value,
    _change_value,
    _remove_key,
    _remove_key,
    _swap_fields,
    _add_field,
    _add_tagged,
    _add_version,
    _remove_version,
    _rename_field,
    _edit_enum,
    _edit_enum,
    _edit_bits,
    _add_rule,
    _change_null,
    _change_doc,
)
