"""The facts of views, changed: columns, rows, and what a table is written as."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from yaml.nodes import MappingNode, Node

from tests.mutants import words
from tests.mutants.edits import Editor, Mutant, child, entries, items, word
from tests.mutants.expressions import changes

PLAIN = re.compile(r"[\w.]+|-?\d+")


def view_mutants(
    editor: Editor, document: Node, enums: Sequence[Sequence[str]]
) -> Iterator[Mutant]:
    """The mutants of one view."""
    view = word(child(document, "view"))
    for column in entries(child(document, "columns")):
        yield from _column(editor, f"{view}.{column.name}", column.value)
    for rows in items(child(document, "rows")):
        of = f"{view}.rows[{rows.index}]"
        for entry in entries(rows.value):
            where = f"{of}.{entry.name}"
            if entry.name == "columns":
                yield from _values(editor, where, entry.value, enums, "view column")
            elif entry.name == "write":
                for part in entries(entry.value):
                    yield from _values(
                        editor, f"{where}.{part.name}", part.value, enums, "write expression"
                    )
            elif entry.name in ("when", "full_check"):
                yield from _expression(editor, where, entry.value, enums, "view column")
                yield from editor.remove(where, "view column", entry)
            elif entry.name in ("head", "each"):
                yield from editor.remove(where, "view column", entry)


def _column(editor: Editor, place: str, node: Node) -> Iterator[Mutant]:
    given = {e.name: e for e in entries(node)}
    kind = "view column"
    for name, entry in given.items():
        where = f"{place}.{name}"
        value = word(entry.value) or ""
        if name == "type":
            for new in words.COLUMN_TYPES.get(value, ()):
                yield editor.change(where, kind, entry.value, new)
        elif name == "default":
            for new in words.numbers(value):
                yield editor.change(where, kind, entry.value, new)
            yield from editor.remove(where, kind, entry)
        elif name in ("nullable", "on_request"):
            yield from editor.remove(where, kind, entry)
        elif name == "list":
            for part in entries(entry.value):
                yield from _column(editor, f"{place}.{part.name}", part.value)
    if "type" in given:
        for name in {"nullable", "on_request"} - set(given):
            yield editor.add(f"{place}.{name}", kind, given["type"], f"{name}: true")


def _values(
    editor: Editor, place: str, node: Node, enums: Sequence[Sequence[str]], kind: str
) -> Iterator[Mutant]:
    """Expressions by name: each changed, taken from the next one, or left out."""
    found = [e for e in entries(node) if not isinstance(e.value, MappingNode)]
    names = [word(e.value) or "" for e in found]
    for i, entry in enumerate(found):
        where = f"{place}.{entry.name}"
        yield from editor.remove(where, kind, entry)
        if PLAIN.fullmatch(names[i]):
            for new in _neighbours(i, names):
                yield editor.change(where, kind, entry.value, new)
        yield from _expression(editor, where, entry.value, enums, kind)
    for entry in entries(node):
        if isinstance(entry.value, MappingNode):
            yield from _values(editor, f"{place}.{entry.name}", entry.value, enums, kind)


def _neighbours(at: int, names: Sequence[str]) -> Iterator[str]:
    """The nearest plain expressions before and after one that are different from it."""
    before = [n for n in reversed(names[:at]) if PLAIN.fullmatch(n) and n != names[at]]
    after = [n for n in names[at + 1 :] if PLAIN.fullmatch(n) and n != names[at]]
    yield from {*before[:1], *after[:1]}


def _expression(
    editor: Editor, place: str, node: Node, enums: Sequence[Sequence[str]], kind: str
) -> Iterator[Mutant]:
    begin, _ = editor.span(node)
    for start, end, new in changes(editor.raw(node), enums):
        old = editor.text[begin + start : begin + end]
        spot = f"{place}[{start}]"
        yield Mutant(editor.file, spot, kind, begin + start, begin + end, old, new)
