"""Part of a schema directory in a directory of its own, which the rest uses.

In a :class:`~tests.laws.world.World` all names are plain, so that what a value is and what its bytes are is the same wherever
a declaration stands. The files of the other directory are those below ``PLACE``; the YAML has ``base.name`` for what they
declare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from codecgen.schema.scalars import SCALARS
from tests.laws.draws import Draw

Tree = dict[str, Any]
Files = dict[str, list[Tree]]

ALIAS = "base"
PACKAGE = "laws_base"
PLACE = f"../{ALIAS}/"


def split(files: Files, d: Draw) -> Files:
    """Some of the declarations in files of the other directory, with all that they name."""
    documents = [document for file in files.values() for document in file]
    layouts = {document["layout"]: document for document in documents if "layout" in document}
    first = d.some(list(layouts), at_least=1)
    layouts |= {document["choice"]: document for document in documents if "choice" in document}
    told = _told(documents)
    moved = set(first)
    todo = list(moved)
    enums: set[str] = set()
    while todo:
        names = set(_names(layouts[todo.pop()]))
        enums |= names - set(layouts)
        todo += sorted((names & set(layouts)) - moved)
        moved |= names & set(layouts)
    out: Files = {}
    for file, inside in files.items():
        for document in inside:
            name = document.get("layout") or document.get("choice")
            free = (
                "choice" in document and name not in told
            )  # with one that is told goes who tells it
            if free and set(_names(document)) <= moved | enums and d.chance(2):
                moved.add(name)
            if "enums" in document:
                table = document["enums"]
                apart = {n: e for n, e in table.items() if n in enums or d.chance(3)}
                own = {n: e for n, e in table.items() if n not in apart}
                parts = ((PLACE + file, {"enums": apart}), (file, {"enums": own}))
                for place, part in parts:
                    if part["enums"]:
                        out.setdefault(place, []).append(part)
            else:
                out.setdefault(PLACE + file if name in moved else file, []).append(document)
    return out


def _told(documents: list[Tree]) -> set[str]:
    """The choices in fields."""
    out = set()
    for document in documents:
        for spec in document.get("fields", {}).values():
            inner = spec.get("array") if isinstance(spec, dict) else None
            for part in (spec, inner):
                if isinstance(part, dict) and "choice" in part:
                    out.add(part["choice"])
    for document in documents[::-1]:  # choices stand behind those that are cases of theirs
        if document.get("choice") in out:
            out |= set(document["cases"].values())
    return out


def declared(files: Mapping[str, list[Tree]]) -> frozenset[str]:
    """What the other directory declares."""
    out: set[str] = set()
    for file, documents in files.items():
        for document in documents if file.startswith(PLACE) else ():
            out |= set(document.get("enums", ()))
            out |= {document[kind] for kind in ("layout", "choice") if kind in document}
    return frozenset(out)


def used(document: Tree, names: frozenset[str]) -> Tree:
    """A document as it stands in the YAML, where the other directory declares some names."""
    return _changed(document, lambda name: _with(name, names))


def plain(document: Tree) -> Tree:
    """A document with plain names."""
    return _changed(document, lambda name: name.removeprefix(f"{ALIAS}."))


def _with(name: str, names: frozenset[str]) -> str:
    return f"{ALIAS}.{name}" if name.partition("@")[0] in names else name


def _names(document: Tree) -> Iterator[str]:
    """The declarations that a document names, and types."""
    found: list[str] = []

    def look(name: str) -> str:
        found.append(name)
        return name

    _changed(document, look)
    yield from (head for name in found if (head := name.partition("@")[0]) not in SCALARS)


def _changed(document: Tree, change: Callable[[str], str]) -> Tree:
    out = dict(document)
    if "fields" in document:
        out["fields"] = {name: _spec(spec, change) for name, spec in document["fields"].items()}
    if "tagged" in document:
        out["tagged"] = {name: _spec(spec, change) for name, spec in document["tagged"].items()}
    if "documentation" in document:
        overhead = document["documentation"]["overhead"]
        columns = [{**c, "layout": change(c["layout"])} for c in overhead["columns"]]
        out["documentation"] = {"overhead": {**overhead, "columns": columns}}
    if "cases" in document:
        out["cases"] = {key: change(ref) for key, ref in document["cases"].items()}
    if "given" in document:
        out["given"] = {
            name: type_ if isinstance(type_, dict) else change(type_)
            for name, type_ in document["given"].items()
        }
    if "view" in document:
        out["of"] = _of(document["of"], change)
        out["rows"] = [{**rows, "of": _of(rows["of"], change)} for rows in document["rows"]]
    return out


def _of(of: Any, change: Callable[[str], str]) -> Any:
    """What a view is of: one thing, or a thing for each part of a payload."""
    return {name: change(one) for name, one in of.items()} if isinstance(of, dict) else change(of)


def _spec(spec: Any, change: Callable[[str], str]) -> Any:
    if not isinstance(spec, dict):
        return spec
    out = dict(spec)
    for key in ("layout", "array", "enum", "choice"):
        if key in spec:
            named = isinstance(spec[key], str)
            out[key] = change(spec[key]) if named else _spec(spec[key], change)
    if "fields" in spec:
        out["fields"] = {name: _spec(inner, change) for name, inner in spec["fields"].items()}
    if "members" in spec:
        out["members"] = {name: _spec(bit, change) for name, bit in spec["members"].items()}
    return out
