"""Examples of random layouts: values beside the bytes that they have."""

from __future__ import annotations

import random
import uuid
from typing import Any

from tests.laws import bytes_of
from tests.laws.bytes_of import Unfit
from tests.laws.chosen import case_of, choice_in
from tests.laws.given import drawn
from tests.laws.values import Full, NoValue, Values
from tests.laws.world import Facts, Tree, World, version_field


def add(world: World, seed: int, released: bool) -> None:
    """Fill in the examples of the layouts that are to have some; layouts without a value lose theirs."""
    facts = Facts(world)
    r = random.Random(seed)
    for name, tree in world.layouts.items():
        if "examples" not in tree:
            continue
        made = [e for e in (_example(facts, name, i, r) for i in range(2)) if e is not None]
        if made and released and r.random() < 0.3:
            made[0]["since"] = {"doc_no": 1}
        if made:
            tree["examples"] = made
        else:
            del tree["examples"]


def _example(facts: Facts, name: str, number: int, r: random.Random) -> Tree | None:
    version = r.choice(facts.versions(name))
    try:
        full = Values(facts, r).layout(name, version, told=drawn(facts, name, r))
        data = bytes_of.built(facts, name, version, full)
    except (NoValue, Unfit):
        return None
    out: Tree = {"name": f"number {number}"}
    if version is not None:
        out["version"] = version
        own = version_field(facts.layouts[name])
        if own is not None:
            full.left.discard(own)
    if r.random() < 0.3:
        out["doc"] = "One of many."
    # check refuses examples that are built where something is compressed
    hexed = r.random() < 0.7 or "compressed" in str(facts.layouts)
    out |= {"hex": data.hex()} if hexed else {"build": True}
    try:
        out["values"] = _shown(facts, name, version, full)
    except NoValue:
        return None
    return out


def _shown(facts: Facts, name: str, version: int | None, full: Full) -> Tree:
    """Values as YAML has them. Raises NoValue for what it has no way of writing."""
    out: Tree = {}
    for one, type_ in facts.layouts[name].get("given", {}).items():
        if isinstance(type_, dict):
            out[one] = [_plain(item) for item in full[one]]
            continue
        out[one] = _bit(facts, {"enum": type_} if type_ in facts.enums else {}, full[one])
    for field, spec in facts.fields(name, version):
        if field in full.left or (full[field] is None and "null" not in spec):
            continue
        value = full[field]
        if "tags" in spec:
            value = [{"tag": item["tag"], "data": _plain(item["data"])} for item in value]
        elif "enum" in spec:
            value = next((n for n, v in facts.values(spec["enum"]).items() if v == value), value)
        elif "bits" in spec:
            value = {m: _bit(facts, spec["members"][m], v) for m, v in value.items()}
        elif choice_in(spec) is not None or "version" in spec:
            value = _several(facts, name, spec, full, version, value)
        elif "layout" in spec:
            value = _element(facts, spec["layout"], version, value)
        elif "array" in spec and value is not None:
            value = [_element(facts, spec["array"], version, item) for item in value]
        else:
            value = _plain(value)
        out[field] = value
    return out


def _several(
    facts: Facts, layout: str, spec: Tree, full: Full, version: int | None, value: Any
) -> Any:
    """One of several layouts, or an array of them."""
    choice = choice_in(spec) or spec

    def one(item: Any) -> Any:
        if not isinstance(item, Full):
            return _plain(item)
        case = case_of(facts, layout, choice, full, version, item)
        assert case is not None
        return _shown(facts, *case, item)

    if "array" in spec and value is not None:
        return [one(item) for item in value]
    return one(value)


def _bit(facts: Facts, member: Tree, value: Any) -> Any:
    if "enum" in member:
        return next((n for n, v in facts.values(member["enum"]).items() if v == value), value)
    return value


def _element(facts: Facts, reference: str, holder: int | None, value: Any) -> Any:
    if isinstance(value, Full):
        version = bytes_of.version_of(facts, reference, holder, value)
        return _shown(facts, reference.partition("@")[0], version, value)
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        raise NoValue("a fraction")
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    return str(value) if isinstance(value, uuid.UUID) else value
