"""The facts of texts, changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from yaml.nodes import Node

from codecgen.schema.texts import LINE_TOLERANCES, TEXT_TOLERANCES
from tests.mutants import words
from tests.mutants.edits import Editor, Entry, Mutant, child, entries, items, word
from tests.mutants.expressions import changes

OTHERS = {
    "true": ("false",),
    "false": ("true",),
    "keep": ("refuse",),
    "word": ("rest",),
    "rest": ("word",),
}
FLAGS = {"may_be_empty": "limit", "final_newline": "limit", "unknown": "freedom"}


def text_mutants(editor: Editor, document: Node) -> Iterator[Mutant]:
    """The mutants of a text."""
    name = word(child(document, "text")) or ""
    for entry in entries(document):
        if entry.name in FLAGS:
            for new in OTHERS.get(word(entry.value) or "", ()):
                yield editor.change(f"{name}.{entry.name}", FLAGS[entry.name], entry.value, new)
        elif entry.name == "accepts":
            yield from _freedoms(editor, name, entry, tuple(TEXT_TOLERANCES))
        elif entry.name == "lines":
            yield from _swapped(editor, name, entry.value)
        if entry.name in ("lines", "properties"):
            known = [e.name for e in entries(entry.value)]
            for line in entries(entry.value):
                yield from _value(editor, f"{name}.{line.name}", line.value, known)


def _swapped(editor: Editor, place: str, node: Node) -> Iterator[Mutant]:
    for first, second in pairwise(entries(node)):
        yield editor.swap(f"{place}.{first.name}", "order", first, second)


def _freedoms(
    editor: Editor, place: str, entry: Entry, possible: Sequence[str]
) -> Iterator[Mutant]:
    there = [str(item.value.value) for item in items(entry.value)]
    for item in items(entry.value):
        yield from editor.remove(f"{place}.accepts", "freedom", item)
    for freedom in possible:
        if freedom not in there:
            yield editor.add(f"{place}.accepts", "freedom", items(entry.value)[-1], freedom)


def _value(editor: Editor, place: str, node: Node, known: Sequence[str]) -> Iterator[Mutant]:
    """The mutants of a line or a value."""
    for entry in entries(node):
        where = f"{place}.{entry.name}"
        value = word(entry.value) or ""
        if entry.name == "decimal":
            for new in words.TYPES.get(value, ()):
                yield editor.change(where, "type", entry.value, new)
        elif entry.name == "string":
            for new in OTHERS[value]:
                yield editor.change(where, "type", entry.value, new)
        elif entry.name in ("const", "default"):
            for new in words.numbers(value):
                yield editor.change(where, "default", entry.value, new)
            yield from editor.remove(where, "default", entry)
        elif entry.name in ("label", "spelled"):
            yield editor.change(where, "type", entry.value, f"{value}x")
            yield from editor.remove(where, "type", entry)
        elif entry.name == "separator":
            yield editor.change(where, "type", entry.value, '", "')
        elif entry.name == "counts":
            yield from editor.remove(where, "span", entry)
        elif entry.name in ("valid", "refuse"):
            yield from editor.remove(where, "limit", entry)
            start = entry.value.start_mark.index
            for first, end, new in changes(editor.raw(entry.value), [known]):
                at = start + first
                old = editor.text[at : start + end]
                yield Mutant(editor.file, where, "limit", at, start + end, old, new)
        elif entry.name == "accepts":
            yield from _freedoms(editor, place, entry, LINE_TOLERANCES)
        elif entry.name == "each":
            yield from _swapped(editor, place, entry.value)
            inner = [e.name for e in entries(entry.value)]
            for one in entries(entry.value):
                yield from _value(editor, f"{place}.{one.name}", one.value, inner)
