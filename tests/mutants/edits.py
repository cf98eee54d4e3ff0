"""Mutants of a schema file, and the edits of YAML text that make them. Comments and all other text stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode


@dataclass(frozen=True, slots=True)
class Mutant:
    """A schema file with one fact changed: ``text[start:end]`` becomes ``new``. ``place`` is where in the schemas."""

    file: str
    place: str
    kind: str
    start: int
    end: int
    old: str
    new: str

    @property
    def name(self) -> str:
        """The same in every run, as long as the fact stands in the schemas."""
        old, new = (" ".join(text.split()) or "nothing" for text in (self.old, self.new))
        return f"{self.file} {self.place}: {_short(old)} -> {_short(new)}"

    def apply(self, text: str) -> str:
        """The text of the file with the change."""
        assert text[self.start : self.end] == self.old
        return text[: self.start] + self.new + text[self.end :]


def _short(text: str) -> str:
    return text if len(text) <= 90 else f"{text[:60]} ... {text[-25:]}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A key and its value in a mapping, or an item of a list (then ``key`` is the item itself)."""

    holder: MappingNode | SequenceNode
    index: int
    key: Node
    value: Node

    @property
    def name(self) -> str:
        return str(self.key.value)


def entries(node: Node | None) -> list[Entry]:
    """The entries of a mapping; none of anything else."""
    if not isinstance(node, MappingNode):
        return []
    return [Entry(node, i, key, value) for i, (key, value) in enumerate(node.value)]


def items(node: Node | None) -> list[Entry]:
    """The items of a list; none of anything else."""
    if not isinstance(node, SequenceNode):
        return []
    return [Entry(node, i, value, value) for i, value in enumerate(node.value)]


def child(node: Node | None, name: str) -> Node | None:
    """The value of a key; None when it is not there."""
    return next((e.value for e in entries(node) if e.name == name), None)


def word(node: Node | None) -> str | None:
    """The text of a scalar; None for anything else."""
    return node.value if isinstance(node, ScalarNode) else None


@dataclass(frozen=True, slots=True)
class Editor:
    """Makes the mutants of one file."""

    file: str
    text: str

    def span(self, node: Node) -> tuple[int, int]:
        """The text of a node, without the space that follows it."""
        start, end = node.start_mark.index, node.end_mark.index
        return start, start + len(self.text[start:end].rstrip())

    def raw(self, node: Node) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def change(self, place: str, kind: str, node: Node, new: str) -> Mutant:
        """The node with other text."""
        start, end = self.span(node)
        return Mutant(self.file, place, kind, start, end, self.text[start:end], new)

    def remove(self, place: str, kind: str, entry: Entry) -> Iterator[Mutant]:
        """The holder without an entry."""
        others = _entries_of(entry.holder)
        _, end = self.span(entry.value)
        start = entry.key.start_mark.index
        if entry.index + 1 < len(others):
            end = others[entry.index + 1].key.start_mark.index
        elif entry.index:
            _, start = self.span(others[entry.index - 1].value)
        elif not entry.holder.flow_style:
            return  # a block mapping cannot be empty
        yield Mutant(self.file, place, kind, start, end, self.text[start:end], "")

    def swap(self, place: str, kind: str, first: Entry, second: Entry) -> Mutant:
        """Two neighbours in each other's place."""
        start, middle = first.key.start_mark.index, second.key.start_mark.index
        _, end = self.span(second.value)
        whole = self.text[start:middle]
        before = whole.rstrip(", \n")
        after, between = self.text[middle:end], whole[len(before) :]
        old = self.text[start:end]
        return Mutant(self.file, place, kind, start, end, old, after + between + before)

    def add(self, place: str, kind: str, entry: Entry, line: str) -> Mutant:
        """The holder with one more entry after a given one."""
        _, end = self.span(entry.value)
        new = f", {line}"
        if not entry.holder.flow_style:
            new = "\n" + " " * entry.key.start_mark.column + line
        return Mutant(self.file, place, kind, end, end, "", new)


def _entries_of(holder: MappingNode | SequenceNode) -> list[Entry]:
    return entries(holder) or items(holder)
