"""The key ``none`` of fields, and what the trees of the laws have in its place.

A tree says ``null`` for a length or count, ``absent`` for a number, ``present`` and ``null`` for a number in front of a
layout, and ``nullable`` where a flexible layout settles it: an oracle that reads one key for each meaning is simple.
"""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]

_OURS = {"null", "absent", "present", "nullable"}


def spoken(document: Tree) -> Tree:
    """A document in the words of the language."""
    return _mapped(document, _to_none)


def heard(document: Tree) -> Tree:
    """A document of the language in the words of trees."""
    return _mapped(document, _from_none)


def _mapped(document: Tree, change: Any) -> Tree:
    if "layout" not in document:
        return document
    out = dict(document)
    for key in {"fields", "tagged"} & set(document):
        out[key] = {name: _field(spec, change) for name, spec in document[key].items()}
    return out


def _field(spec: Any, change: Any) -> Any:
    if not isinstance(spec, dict):
        return spec
    out: Tree = {}
    for key, value in spec.items():
        if key == "fields":
            value = {name: _field(inner, change) for name, inner in value.items()}
        elif key == "array" and isinstance(value, dict):
            value = _field(value, change)
        out[key] = value
    return dict(change(out))


def _to_none(spec: Tree) -> Tree:
    out = {key: value for key, value in spec.items() if key not in _OURS}
    if "nullable" in spec:
        out["none"] = True if spec["nullable"] == "0+" else {spec["nullable"]: True}
    elif "present" in spec:
        present, null = spec["present"], spec["null"]
        if isinstance(present, dict) or isinstance(null, dict):
            ranges = list(present if isinstance(present, dict) else null)
            out["none"] = {one: _number(_of(present, one), _of(null, one)) for one in ranges}
        else:
            out["none"] = _number(present, null)
    elif "null" in spec or "absent" in spec:
        out["none"] = spec["null"] if "null" in spec else spec["absent"]
    return out


def _number(type_: str, value: int) -> Tree:
    return {"type": type_, "value": value}


def _of(value: Any, versions: str) -> Any:
    return value[versions] if isinstance(value, dict) else value


def _from_none(spec: Tree) -> Tree:
    if "none" not in spec:
        return spec
    out = {key: value for key, value in spec.items() if key != "none"}
    none = spec["none"]
    if none is True:
        out["nullable"] = "0+"
    elif not isinstance(none, dict):
        out["absent" if "type" in spec else "null"] = none
    elif "type" in none:
        out |= {"present": none["type"], "null": none["value"]}
    elif True in none.values():
        (out["nullable"],) = none
    elif all(isinstance(one, dict) for one in none.values()):
        out["present"] = {versions: one["type"] for versions, one in none.items()}
        out["null"] = {versions: one["value"] for versions, one in none.items()}
    else:
        out["null"] = none
    return out
