"""The keys ``none`` and ``count`` of fields, and what the trees of the laws have in their place.

What is as many as a value from outside is in a tree ``outside``, the name of that value, with ``more``. A length
with ``excess`` measures the field whose bytes are a number less. An array with a ``count`` like ``n + 1`` is in a tree an array that ``n`` counts, with ``more``: how many elements there are
more than ``n`` says. A tree says ``null`` for a length or count, ``absent`` for a number, ``present`` and ``null`` for a number in front of a
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
        out[key] = _fields(document[key], change)
    return out


def _fields(fields: Tree, change: Any) -> Tree:
    out = {name: _field(spec, change) for name, spec in fields.items()}
    move = _to_amounts if change is _to_none else _from_amounts
    move(out)
    return out


def _to_amounts(fields: Tree) -> None:
    """Say at arrays how many elements there are, instead of at the field that counts them."""
    for name, spec in fields.items():
        if isinstance(spec, dict) and "excess" in spec:
            measured = fields[spec.pop("measures")["from"]]
            key = "bytes" if "bytes" in measured else "string"
            measured[key] = _amount(name, -spec.pop("excess"))
        for array in counted_arrays(spec):
            if "more" in fields[array]:
                more = fields[array].pop("more")
                fields[array]["count"] = _amount(name, more)
                left = [other for other in counted_arrays(spec) if other != array]
                spec.pop("counts")
                if left:
                    spec["counts"] = left if len(left) > 1 else left[0]


def _from_amounts(fields: Tree) -> None:
    """Say at a field which arrays it counts, instead of at the arrays."""
    for array, spec in fields.items():
        count = spec.get("count") if isinstance(spec, dict) else None
        if isinstance(count, str) and " " in count:
            name, sign, number = count.split()
            del spec["count"]
            spec["more"] = int(sign + number)
            if isinstance(fields[name], str):
                fields[name] = {"type": fields[name]}
            arrays = [*counted_arrays(fields[name]), array]
            fields[name]["counts"] = arrays if len(arrays) > 1 else array


def _amount(name: str, more: int) -> str:
    """A field, or a value from outside, plus or minus a number."""
    return f"{name} {'-' if more < 0 else '+'} {abs(more)}" if more else name


def counted_arrays(spec: Any) -> list[str]:
    """Return the names of the arrays that a field counts."""
    counts = spec.get("counts", []) if isinstance(spec, dict) else []
    return [counts] if isinstance(counts, str) else counts


def _field(spec: Any, change: Any) -> Any:
    if not isinstance(spec, dict):
        return spec
    out: Tree = {}
    for key, value in spec.items():
        if key == "fields":
            value = _fields(value, change)
        elif key == "array" and isinstance(value, dict):
            value = _field(value, change)
        out[key] = value
    return dict(change(out))


def _to_none(spec: Tree) -> Tree:
    out = {key: value for key, value in spec.items() if key not in _OURS}
    out.pop("looks_up", None)
    if "outside" in out:
        key = next((one for one in ("bytes", "string") if one in out), "count")
        out[key] = _amount(out.pop("outside"), out.pop("more"))
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
